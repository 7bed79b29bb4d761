"""What a plan and a loop cost for one task, call by call, from the task's shape alone: the law that the oracle follows.

    task = Task(depth=4, page=1500)
    requests("loop", task)                              # 5 requests, each with all results so far
    cost("plan", task, tariff).usd                      # dollars under a price and its cache rule
    estimate(depth=4, page=1500).sentence               # which design is cheapest, and what the others cost

A task has `breadth` strands of `depth` look-ups, each of which needs the one before, and an answer. With results that
outweigh all else and one strand, and input that costs r times as much where it is cached,

    loop / plan = (d + r d (d - 1) / 2) / (2 d - 1)

where a model has to read each result: a tie at d = 2 / r, or elsewhere where writing costs (`large_tie`). A loop sends
every result again with each later call; a plan sends nearly every result twice, to the step that reads it and to its
solver. Where a call takes the whole result before it, a placeholder passes it on; a loop's model has to write it out.
`results/law.md` holds the law against the oracle.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from rewoo_bench.analysis.call_costs import cached_tokens
from rewoo_bench.analysis.prices import EXAMPLE
from rewoo_bench.analysis.verdict import listed, two_digits
from rewoo_bench.config.price_sheets import Tariff, ToolBilling, named_tariff
from rewoo_bench.errors import UsageError, unknown

if TYPE_CHECKING:
    import pandas as pd

Design = Literal["loop", "loop-one", "loop-references", "react", "plan", "plan-unread", "rewoo", "rewoo-unread", "code"]
"""loop: native tool calls, independent ones in one turn; loop-one: one call a turn; loop-references: a turn's calls may
use each other's results; react: text, one call a turn. plan: JSON, its solver sees every result; plan-unread: those
that no step has read; rewoo, rewoo-unread: the same as text. code: a program, which prints what no step has read."""
DESIGNS: tuple[Design, ...] = get_args(Design)
ARCHITECTURES: Mapping[Design, str] = {
    "loop": "react-native",
    "loop-one": "react-native?parallel=no",
    "loop-references": "react-native?references=true",
    "react": "react?max_exemplars=0",
    "plan": "rewoo-json",
    "plan-unread": "rewoo-json?solver_evidence=unread",
    "rewoo": "rewoo?max_exemplars=0",
    "rewoo-unread": "rewoo?max_exemplars=0&solver_evidence=unread",
    "code": "rewoo-code?max_exemplars=0",
}
"""What `--arch` calls a design."""
_NAME = 5
"""Tokens of a title or an id."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of a design's texts, without names (`Task.name`). What a design doesn't have is 0."""

    agent: float = 0
    """Instructions of a loop, without tools."""
    planner: float = 0
    solver: float = 0
    reader: float = 0
    """Instructions of a step that reads."""
    tool: float = 0
    """Description of a tool, in every prompt that lists tools."""
    schema: float = 0
    """JSON schema of a plan whose only tool reads; not in `planner`, since it is billed by some providers alone."""
    schema_tool: float = 0
    """What each further tool adds to it."""
    call: float = 0
    """A call as a loop writes it, its thought included; beside it a name."""
    next_call: float = 0
    """One that takes the result of another call of its turn, in place of a name."""
    seen: float = 0
    """What a trace adds to a call and its result: marks of messages, `Observation:`."""
    turn: float = 0
    """What a trace adds to each turn."""
    frame: float = 0
    """What a plan has beside its steps."""
    step: float = 0
    """The first look-up of a strand as the planner writes it; beside it a name."""
    next_step: float = 0
    """One that takes the result of another step, in place of a name."""
    read_step: float = 0
    """A step that reads, as the planner writes it."""
    shown: float = 0
    """The first look-up of a strand as the solver sees it, without its result; beside it a name."""
    next_shown: float = 0
    shown_read: float = 0
    """A step that reads as the solver sees it, and what stands for the page where it isn't sent; beside it a name."""
    request: float = 0
    """The request of a step that reads, without the page."""
    read: float = 0
    """What such a step replies, beside a name."""
    asked: float = 0
    """How often the question stands in a solver's prompt."""
    answer: float = 0
    """The last reply, beside a name."""


@dataclass(frozen=True, slots=True)
class Task:
    """The shape of a task. Tokens throughout."""

    depth: int = 2
    """Look-ups in sequence."""
    breadth: int = 1
    """Strands of such look-ups that don't need each other."""
    page: float = 300
    """A look-up's result."""
    reads: bool = True
    """Whether a model has to read a result before the next call can be written; else the next call takes all of it."""
    question: float = 20
    name: float | None = None
    """What a call asks for, what a step reads, and the answer; None is 5, and the result where that is passed on."""
    start: float | None = None
    """What the first call of a strand asks for, which the question names; None is `name`, or 5 where that is None."""
    tools: int = 1
    """Tools that are listed beside the one that reads (`LLM`)."""
    tool: float | None = None
    """Description of a tool; None is that of the bundled Search."""
    reasoning: float = 0
    """Reasoning tokens of every reply of a loop, a planner and a solver."""
    readers_reason: bool = False
    """Whether those of a step that reads have as many."""
    system: float = 0
    """Instructions of one's own, before every prompt but that of a step that reads."""
    loop_exemplars: float = 0
    """In every prompt of a loop."""
    plan_exemplars: float = 0
    """In the planner's prompt."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and value < (1 if each.name in ("depth", "breadth") else 0):
                raise ValueError(
                    f"{each.name} must be {1 if each.name in ('depth', 'breadth') else 0} or more: {value!r}"
                )


class Sent(NamedTuple):
    """One request, in tokens."""

    role: str
    input: float
    own: float
    """Of the input, what an earlier request of the same task began with."""
    head: float
    """What the requests of all tasks begin with."""
    marked: float
    """Up to the last cache mark, for a provider that wants marks."""
    output: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a task costs in one design."""

    calls: int
    in_sequence: int
    """Calls that wait for each other: each takes a model's latency."""
    input_tokens: float
    cached_tokens: float
    output_tokens: float
    usd: float

    @property
    def total_tokens(self) -> float:
        return self.input_tokens + self.output_tokens


@cache
def default_sizes() -> Mapping[str, Sizes]:
    """The sizes of the bundled architectures by design, as `scripts/measure_law.py` measured them with the oracle."""
    tables = tomllib.loads(Path(__file__).with_name("law_sizes.toml").read_text("utf-8"))
    return {design: Sizes(**table) for design, table in tables.items()}


def requests(design: Design, task: Task, sizes: Sizes | None = None) -> list[Sent]:
    """The requests of a design for a task, in order."""
    write = _loop if design in ("loop", "loop-one", "loop-references", "react") else _plan
    return write(design, task, sizes or default_sizes()[design])


def _loop(design: Design, task: Task, sizes: Sizes) -> list[Sent]:
    """A turn for each look-up of the longest strand, or for every look-up, and one for the answer."""
    turns = [task.breadth] * task.depth
    if design in ("loop-one", "react"):
        turns = [1] * (task.depth * task.breadth)
    elif design == "loop-references" and not task.reads:
        turns = [task.depth * task.breadth]
    head = task.system + sizes.agent + task.tools * _tool(task, sizes) + task.loop_exemplars
    passes_on = design == "loop-references" and not task.reads
    trace, sent = 0.0, list[Sent]()
    for turn, calls in enumerate([*turns, 0]):
        prompt = head + task.question + trace
        named = task.breadth if passes_on and calls else calls
        name = _start(task) if turn % task.depth == 0 or passes_on else _name(task)
        written = named * (sizes.call + name) + (calls - named) * sizes.next_call
        reply = written if calls else sizes.answer + _name(task)
        sent.append(Sent("agent", prompt, sent[-1].input if sent else 0.0, head, prompt, reply + task.reasoning))
        trace += sizes.turn + written + calls * (sizes.seen + task.page)
    return sent


def _plan(design: Design, task: Task, sizes: Sizes) -> list[Sent]:
    """A planner, a reader for each page that another look-up needs, and a solver."""
    look_ups = task.depth * task.breadth
    reads = (task.depth - 1) * task.breadth if task.reads else 0
    head = task.system + sizes.planner + task.tools * _tool(task, sizes) + task.plan_exemplars
    following = look_ups - task.breadth
    plan = (
        sizes.frame + task.breadth * (sizes.step + _start(task)) + following * sizes.next_step + reads * sizes.read_step
    )
    sent = [Sent("planner", head + task.question, 0.0, head, head, plan + task.reasoning)]
    for number in range(reads):
        own = 0.0 if number < task.breadth else sizes.reader  # the first reader of each strand runs at the same time
        prompt = sizes.reader + sizes.request + task.page
        reply = sizes.read + _name(task) + (task.reasoning if task.readers_reason else 0)
        sent.append(Sent("tool", prompt, own, sizes.reader, sizes.reader, reply))
    is_lean = design in ("plan-unread", "rewoo-unread", "code")
    found = task.page * (look_ups - reads if is_lean else look_ups)
    found += task.breadth * (sizes.shown + _start(task)) + following * sizes.next_shown
    found += reads * (sizes.shown_read + _name(task))
    head = task.system + sizes.solver
    prompt = head + sizes.asked * task.question + found
    sent.append(Sent("solver", prompt, 0.0, head, head, sizes.answer + _name(task) + task.reasoning))
    return sent


def _tool(task: Task, sizes: Sizes) -> float:
    return sizes.tool if task.tool is None else task.tool


def _name(task: Task) -> float:
    if task.name is not None:
        return task.name
    return _NAME if task.reads else task.page


def _start(task: Task) -> float:
    if task.start is not None:
        return task.start
    return _NAME if task.name is None else task.name


def in_sequence(design: Design, task: Task) -> int:
    """Calls that wait for each other. Strands are worked on at the same time, but by a loop of one call a turn."""
    if design in ("loop", "loop-one", "loop-references", "react"):
        return len(requests(design, task))
    return 2 + (task.depth - 1 if task.reads else 0)


def as_billed(design: Design, task: Task, sizes: Sizes, billing: ToolBilling) -> tuple[Task, Sizes]:
    """The task and the sizes with the input tokens that a provider bills for tools and schemas.

    Tools of a loop with tool calls go to the provider as JSON. A planner has its tools as text, and a JSON plan has a
    schema. ReAct and ReWOO as text and programs have neither.
    """
    if design in ("loop", "loop-one", "loop-references"):
        per_call = billing.per_call if task.tools else 0
        return replace(task, tool=billing.share * _tool(task, sizes)), replace(sizes, agent=sizes.agent + per_call)
    schema = sizes.schema + task.tools * sizes.schema_tool
    return task, replace(sizes, planner=sizes.planner + billing.response_schema * schema)


def cost(
    design: Design, task: Task, tariff: Tariff, sizes: Sizes | None = None, *, tools_as_billed: bool = False
) -> Cost:
    """What a task costs under a price. The cache holds what earlier tasks have sent, as in a service that goes on.

    Tools are what their JSON counts, and schemas are free, as in the oracle's bills; with `tools_as_billed` they are
    what the tariff's provider bills, where its sheet says so.
    """
    sizes = sizes or default_sizes()[design]
    if tools_as_billed and tariff.tools:
        task, sizes = as_billed(design, task, sizes, tariff.tools)
    return cost_of(requests(design, task, sizes), in_sequence(design, task), tariff)


def cost_of(sent: Sequence[Sent], in_sequence: int, tariff: Tariff) -> Cost:
    """What the requests of a task cost under a price, in their order."""
    _, *columns = zip(*sent, strict=True)
    inputs, own, head, marked, outputs = (np.array(column, dtype=np.float64) for column in columns)
    none = np.zeros(len(sent))
    known = {
        **{"input_tokens": inputs, "shared_question_tokens": own, "shared_run_tokens": head},
        **{"shared_question_age_s": none, "shared_run_age_s": none},
        **{"marked_tokens": head, "last_marked_tokens": marked, "shared_marked_tokens": np.maximum(own, head)},
    }
    cached, written = cached_tokens(known, tariff.rule)
    usd = tariff.cost_usd(inputs, cached, written, outputs).sum()
    return Cost(
        calls=len(sent),
        in_sequence=in_sequence,
        input_tokens=float(inputs.sum()),
        cached_tokens=float(cached.sum()),
        output_tokens=float(outputs.sum()),
        usd=float(usd),
    )


MOST_DEPTH = 100
"""Look-ups in sequence that a tie is looked for in."""


def tie(
    task: Task, tariff: Tariff, loop: Design = "loop", plan: Design = "plan", *, tools_as_billed: bool = False
) -> float | None:
    """Look-ups in sequence from which on the plan costs fewer dollars, in between where no whole number ties.

    None where one of them is cheaper from the first look-up to `MOST_DEPTH`, or the loop is at the end.
    """
    found, before = None, 0.0
    for depth in range(1, MOST_DEPTH + 1):
        ahead = _ahead(replace(task, depth=depth), tariff, loop, plan, tools_as_billed=tools_as_billed)
        if ahead < 0:
            found = None
        elif before < 0:
            found = depth - 1 + before / (before - ahead)
        before = ahead
    return found


def large_tie(tariff: Tariff) -> float:
    """Look-ups in sequence from which on the plan is cheaper where results outweigh all else and have to be read."""
    r = tariff.cache_read / tariff.input if tariff.rule else 1.0
    write = (tariff.cache_write or tariff.input) / tariff.input if tariff.rule else 1.0
    fresh = write if tariff.rule and tariff.rule.kind == "automatic" else 1.0  # a plan's results have no mark
    # write d + r d (d - 1) / 2 = fresh (2 d - 1)
    half = (2 * fresh - write + r / 2) / r
    return half + math.sqrt(half**2 - 2 * fresh / r)


def _ahead(task: Task, tariff: Tariff, loop: Design = "loop", plan: Design = "plan", *, tools_as_billed: bool) -> float:
    """The logarithm of the loop's dollars by the plan's: below 0 where the loop is cheaper."""
    loop_usd, plan_usd = (cost(each, task, tariff, tools_as_billed=tools_as_billed).usd for each in (loop, plan))
    return math.log(loop_usd / plan_usd)


def compared(task: Task) -> tuple[Design, ...]:
    """The designs that an estimate weighs: those of hosted models that differ for a task.

    Where a model has to read each result, no turn can use its own results; where it hasn't to, nothing is read.
    """
    return ("loop", "plan", "plan-unread", "code") if task.reads else ("loop", "loop-references", "plan", "code")


def said_of(costs: Mapping[Design, float]) -> str:
    """Which design is cheapest, and what the others cost beside it: one or two sentences from dollars of a task."""
    cheapest, *others = sorted(costs, key=costs.__getitem__)
    times = {each: two_digits(costs[each] / costs[cheapest]) for each in others}
    same = [ARCHITECTURES[each] for each in others if float(times[each]) == 1]
    dearer = [each for each in others if float(times[each]) > 1]
    said = f"{ARCHITECTURES[cheapest]} is cheapest, at about ${two_digits(1000 * costs[cheapest])} for 1,000 tasks"
    if same:
        said += f"; {listed(same)} cost{'' if len(same) > 1 else 's'} about the same"
    if not dearer:
        return f"{said}."
    low, high = times[dearer[0]], times[dearer[-1]]
    if len(dearer) == 1:
        return f"{said}. {ARCHITECTURES[dearer[0]]} costs about {low} times as much."
    if low == high:
        return f"{said}. The others cost about {low} times as much."
    return f"{said}. The others cost {low} to {high} times as much; {ARCHITECTURES[dearer[-1]]} costs the most."


@dataclass(frozen=True)
class Estimate:
    """What the designs that a task can have (`compared`) cost at one price.

    `sentence` says which is cheapest, `to_frame` has the numbers, `ratio` and `tie` are of the loop and the plan, and
    `prices` names the price.
    """

    task: Task
    tariff: Tariff
    costs: Mapping[Design, Cost]
    tie: float | None
    """Look-ups in sequence from which on the plan (`rewoo-json`) is cheaper than the loop (`react-native`)."""
    tools_as_billed: bool = False

    @property
    def prices(self) -> str:
        """`gpt-5-mini's prices under OpenAI's rule`; the numbers are in `tariff`."""
        return self.tariff.name

    @property
    def ratio(self) -> float:
        """The dollars of the loop by those of the plan."""
        return self.costs["loop"].usd / self.costs["plan"].usd

    @property
    def ends_with_loop(self) -> bool:
        """Whether the loop is cheaper than the plan at `MOST_DEPTH` look-ups; then there is no `tie`."""
        deepest = replace(self.task, depth=MOST_DEPTH)
        return _ahead(deepest, self.tariff, tools_as_billed=self.tools_as_billed) < 0

    @property
    def sentence(self) -> str:
        """Which design is cheapest, what the others cost, and from how many look-ups on the plan beats the loop."""
        said = said_of({design: each.usd for design, each in self.costs.items()})
        loop, plan = ARCHITECTURES["loop"], ARCHITECTURES["plan"]
        if self.tie is not None:
            return f"{said} From about {two_digits(self.tie)} look-ups in sequence on, {plan} costs less than {loop}."
        less, more = (loop, plan) if self.ends_with_loop else (plan, loop)
        return f"{said} With more look-ups {less} costs less than {more}."

    def to_frame(self) -> pd.DataFrame:
        """A row for each design, by its `--arch`: model calls, those in sequence, tokens, dollars of 1,000 tasks."""
        import pandas as pd  # 0.3 s, which a sentence doesn't need

        names = ("calls", "in_sequence", "input_tokens", "cached_tokens", "output_tokens", "total_tokens")
        rows = {
            ARCHITECTURES[design]: {**{name: getattr(each, name) for name in names}, "usd_of_1000": 1000 * each.usd}
            for design, each in self.costs.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index")


def estimate(prices: str = EXAMPLE, *, tools_as_billed: bool = False, **shape: Any) -> Estimate:
    """What a task of this shape costs in each design. `shape` are fields of `Task`: depth=6, page=2000, reads=True.

    `prices` is a price by its name, as `compare --prices` takes it; the result has it as `prices` and `tariff`. Tools
    are what their JSON counts, and schemas are free; with `tools_as_billed` they are what the provider bills (`[tools]`
    of its sheet). Raises `UsageError`.
    """
    known = {each.name for each in fields(Task)}
    if wrong := next((name for name in shape if name not in known), None):
        raise UsageError(unknown("field of a task", wrong, known))
    try:
        task = Task(**shape)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    tariff = named_tariff(prices)
    if tools_as_billed and tariff.tools is None:
        raise UsageError(f"tools_as_billed: {tariff.path.name} has no [tools], how they are billed; write False")
    costs = {design: cost(design, task, tariff, tools_as_billed=tools_as_billed) for design in compared(task)}
    return Estimate(task, tariff, costs, tie(task, tariff, tools_as_billed=tools_as_billed), tools_as_billed)
