"""The columns of questions.parquet and calls.parquet: name, type, meaning, and how each is computed.

    Column("retries", INT, "attempts beyond the first of each call", lambda q: sum(...))

This is the only place where a column is said. The rows of a run, the schemas of its files, `load`, `publish` and the
tables of docs/columns.md (`python scripts/readme_examples.py`) are made from it. The names are what users,
scripts and CI rely on.

Tokens are logical (what the architecture needed), except `billed_tokens` (what was paid in this run, including failed
attempts). A judge's calls are in calls.parquet only, under the role `judge`:

    sum of calls where role != "judge"  ==  the row of the question
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import pyarrow as pa

from rewoo_bench.config.specs import AGENT_NAME
from rewoo_bench.runs.reach import reach_of
from rewoo_bench.text.loops import AT_LIMIT, loop_start
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.text.words import clean_title, fold
from rewoo_bench.types import Hop, Step, Usage, trial_seed

if TYPE_CHECKING:
    from rewoo_bench.runs.options import RunOptions


def gold_pages_found(chain: Sequence[Hop], steps: Iterable[Step]) -> float | None:
    """The share of the gold pages (0 to 1) that some observation showed; None where no gold page is known.

    A page counts as seen where a line of an observation begins with its title and a colon, the form of the search tools
    (tools/search.py). Pages of a tool with another form don't count.
    """
    starts = {f"{fold(clean_title(hop.title))}:" for hop in chain if hop.tool == "Search"}
    lines = {fold(line) for step in steps for line in step.observation.splitlines()} if starts else set()
    seen = sum(any(line.startswith(start) for line in lines) for start in starts)
    return seen / len(starts) if starts else None


UNPRICED_ROLES = frozenset({"judge", "embedding", "count"})
"""Roles of model calls that are in no question's cost."""

NO_LLM_ROLES = UNPRICED_ROLES | {"abandoned"}
"""Roles of model calls that aren't counted in `llm_calls`: they generate nothing, or not for the answer."""

NO_STEP_ROLES = NO_LLM_ROLES | {"tool"}
"""Roles of model calls that are no turn of the architecture's own model."""

TEXT, BOOL, FLOAT, MOMENT = pa.string(), pa.bool_(), pa.float64(), pa.timestamp("us", tz="UTC")
INT, LONG = pa.int32(), pa.int64()
LIST = pa.list_(TEXT)
TYPE_NAMES = {TEXT: "text", BOOL: "bool", FLOAT: "float", MOMENT: "time", INT: "int", LONG: "int", LIST: "list"}


class RunSource(NamedTuple):
    """What the columns are computed from that are the same in every row of a run."""

    run_id: str
    dataset: str
    options: RunOptions
    oracle: bool | None
    model_seed: int | None = None
    """That of the default model's requests; None where it takes none."""


class QuestionSource:
    """What the other columns of questions.parquet are computed from.

    `result` is an `evaluation.folder.Result`, which nothing here may import: a reader of runs imports no part that runs
    one. `run` has the columns of the whole run.
    """

    def __init__(self, result: Any, run: Mapping[str, Any]) -> None:
        self.result = result
        self.run = run
        self.example = result.task.example
        self.trajectory = result.trajectory
        self.model_calls = [call for call in result.calls if call.kind == "model" and call.role != "judge"]
        self.counted = [call for call in self.model_calls if _was_counted(call)]
        self.usage = sum((call.usage for call in self.model_calls), Usage())
        self.is_measured = not any(c.call_cost.replayed or c.call_cost.measured_s is not None for c in result.calls)
        self.loop = _loop(result.calls)
        injection = self.example.injection
        self.reach = injection and reach_of(injection, self.trajectory, self.example.actions, self.example.question)

    def tokens_of(self, role: str) -> int:
        return sum(call.usage.total_tokens for call in self.model_calls if call.role == role)


class CallSource(NamedTuple):
    """What the columns of calls.parquet are computed from: `call` is a `calls.meter.Call` of the result."""

    result: Any
    run_id: str
    number: int
    call: Any


Source = TypeVar("Source", QuestionSource, CallSource)


@dataclass(frozen=True, slots=True)
class Column(Generic[Source]):
    """A column. `meaning` and `null` (when it has no value) are Markdown."""

    name: str
    type: pa.DataType
    meaning: str
    value: Callable[[Source], Any] | None = None
    """Computes it from a question or a call. None where it is of the run, or is computed when the run ends."""
    of_run: Callable[[RunSource], Any] | None = None
    """Computes it once for the run."""
    null: str = ""
    is_category: bool = False
    """Whether it has few different texts: a category in pandas."""
    is_private: bool = False
    """Whether it repeats texts of the data set or of a tool, so that `publish` empties it."""


def _was_counted(call: Any) -> bool:
    """Whether a model call was answered or paid for."""
    return bool(call.status == "ok" or call.call_cost.billed != Usage())


def _broken_plans(drafts: object) -> int | None:
    """How many drafts of plans have faults; None where the notes have no drafts in the form of the bundled runners."""
    if not isinstance(drafts, list) or not all(isinstance(each, Mapping) for each in drafts):
        return None
    return sum(bool(each.get("faults")) for each in drafts)


def _loop(calls: Sequence[Any]) -> tuple[int | None, int | None]:
    """`loop_step` and `loop_tokens` of a question (text/loops.py)."""
    # A turn was answered, and by the architecture's own model; the call for an answer at the limit is no step.
    own = [call for call in sorted(calls, key=lambda call: call.start) if not call.place.name.endswith(AT_LIMIT)]
    turns = [call.kind == "model" and call.status == "ok" and call.role not in NO_STEP_ROLES for call in own]
    if not any(turns):
        return None, None
    done = [call for call, is_turn in zip(own, turns, strict=True) if is_turn or call.kind == "tool"]
    found = loop_start(
        [(call.kind == "tool", (call.name if call.kind == "tool" else "", call.content)) for call in done]
    )
    if found is None:
        return None, 0
    step, place = found
    looped = [call for call in own if call.kind == "model" and call.role != "judge" and call.start >= done[place].start]
    return step + 1, sum(call.usage.total_tokens for call in looped)


def _routed_to(result: Any) -> str | None:
    """The parent that a router chose, by the place of its calls: they tell it of a question that a limit ended, too."""
    names: list[str] = [parent.name for parent in result.task.architecture.parents]
    for call in result.calls:
        if chosen := next((name for name in names if call.place.name.startswith(f"{name}/")), None):
            return chosen
    return None


def _recorded(result: Any) -> list[bool] | None:
    """For each call of a tool that answers from a recording, whether the call was there; None without such a tool."""
    tools = getattr(getattr(result.task.architecture, "spec", None), "tools", {})
    names = {name for name, settings in tools.items() if settings.recording}
    calls = (call for call in result.calls if call.kind == "tool" and call.name in names)
    return [not call.not_recorded for call in calls] if names else None


def _changed_by(result: Any) -> Counter[str] | None:
    """Calls of each tool that changed state; None where no tool says that it does."""
    tools = getattr(getattr(result.task.architecture, "spec", None), "tools", {})
    if not any(settings.changes_state for settings in tools.values()):
        return None
    return Counter(call.name for call in result.calls if call.changes_state and call.status == "ok")


def _changes(result: Any) -> int | None:
    changed = _changed_by(result)
    return None if changed is None else changed.total()


def _unasked_changes(result: Any) -> int | None:
    changed, gold = _changed_by(result), result.task.example.actions
    return None if changed is None or not gold else (changed - Counter(each.tool for each in gold)).total()


def _trial_seed(source: QuestionSource) -> int | None:
    """The seed of the question's requests; None where the model takes none, or an external agent writes them."""
    seed, task = source.run.get("trial_seed"), source.result.task
    return None if seed is None or task.architecture.spec.runner == AGENT_NAME else trial_seed(seed, task.trial)


def _usage_source(calls: Sequence[Any]) -> str | None:
    """`provider`, `inconsistent`, `estimated` or `mixed` of the answered calls, else of those that were paid for."""
    sources = {call.call_cost.usage_source for call in [c for c in calls if c.status == "ok"] or calls}
    if "inconsistent" in sources and "estimated" not in sources:
        return "inconsistent"
    return "mixed" if len(sources) > 1 else next(iter(sources), None)


def _latency_s(call: Any) -> float | None:
    cost = call.call_cost
    measured: float = call.latency_s if cost.measured_s is None else cost.measured_s
    return None if cost.replayed else measured


def _of_model(path: str) -> Callable[[CallSource], Any]:
    """An attribute of model calls, null for a tool's."""
    value = attrgetter(path)
    return lambda c: value(c.call) if c.call.kind == "model" else None


_NO_SCORE = "where the infrastructure failed, and without gold answers"
_NO_ATTACK = "without an attack"
_NO_RECORDING = "where no tool answers from a recording"
_NO_CACHED = "in an imported run where it wasn't recorded"
_NO_CHAIN = "without gold evidence, as in TriviaQA"
_NO_LATENCY = "in a replay, and for a question begun in an earlier session"
_LOOP = "[the definition](../rewoo_bench/text/loops.py)"

QUESTION_COLUMNS: tuple[Column[QuestionSource], ...] = (
    Column(
        "run_id", TEXT, "id of the run; `rewoo_bench.load` adds `run_folder`, the folder's name",
        of_run=lambda run: run.run_id, is_category=True,
    ),
    Column(
        "architecture", TEXT, "what answered the question", lambda q: q.result.task.architecture.name, is_category=True,
    ),
    Column("dataset", TEXT, "name of the data set", of_run=lambda run: run.dataset, is_category=True),
    Column("model", TEXT, "default model", of_run=lambda run: run.options.model, is_category=True),
    Column(
        "planner_model", TEXT, "model of the planner",
        of_run=lambda run: run.options.planner_model or run.options.model, is_category=True,
    ),
    Column(
        "solver_model", TEXT, "model of the solver",
        of_run=lambda run: run.options.solver_model or run.options.model, is_category=True,
    ),
    Column("seed", LONG, "option of the run", of_run=lambda run: run.options.seed),
    Column(
        "trial_seed", LONG,
        "seed that the requests of this trial have: the run's own in trial 0, one derived from it in each other trial",
        _trial_seed, of_run=lambda run: run.model_seed,
        null="where the default model takes no seed, of an external agent, which sets that of its requests itself, and "
        "where all trials had the run's own",
    ),
    Column("temperature", FLOAT, "temperature of the default model", of_run=lambda run: run.options.temperature),
    Column("tool_failure_rate", FLOAT, "option of the run", of_run=lambda run: run.options.tool_failure_rate),
    Column(
        "oracle", BOOL,
        "the answers are an oracle's, or a replay of one: latency means nothing, nor does accuracy outside of a world",
        of_run=lambda run: run.oracle, null="where a replayed recording doesn't say",
    ),
    Column("example_id", TEXT, "id of the question; join runs on it and on `trial`", lambda q: q.example.id),
    Column("question_type", TEXT, "kind of question", lambda q: q.example.kind, is_category=True),
    Column(
        "difficulty", TEXT, "difficulty of the question, in the data set's words",
        lambda q: q.example.level or None, null="where the data set doesn't say", is_category=True,
    ),
    Column(
        "hops", INT, "number of look-ups and calculations in the gold evidence",
        lambda q: len(q.example.chain) or None, null=_NO_CHAIN,
    ),
    Column("trial", INT, "trial of the question, from 0", lambda q: q.result.task.trial),
    Column("question", TEXT, "the question", lambda q: q.example.question, null="in a published run", is_private=True),
    Column(
        "answers", LIST, "its gold answers",
        lambda q: list(q.example.answers), null="in a published run", is_private=True,
    ),
    Column(
        "answers_sha256", LIST,
        "SHA-256 of each gold answer as exact match compares it "
        "([score a run again](commands.md#publish-a-run))",
        lambda q: q.result.answers_sha256,
        null="where exact match is no equality (PhysicsQA and ParallelQA have margins, a scorer of your own may)",
    ),
    Column("prediction", TEXT, "the answer", lambda q: q.trajectory.answer, null="without an answer"),
    Column(
        "exact_match", BOOL, "whether the answer is a gold answer; in a world with a check, what the check says",
        lambda q: q.result.score.exact_match if q.result.score else None, null=_NO_SCORE,
    ),
    Column(
        "f1", FLOAT, "F1 of the answer, from 0 to 1",
        lambda q: q.result.score.f1 if q.result.score else None, null=_NO_SCORE,
    ),
    Column(
        "objectives_right", FLOAT,
        "share of the questions of a task that are answered right (`?objectives=`); each answer too many counts as a "
        "question answered wrong",
        lambda q: q.result.score.objectives_right if q.result.score else None, null="where a question is asked alone",
    ),
    Column("judged_correct", BOOL, "the judge's verdict", lambda q: q.result.judged_correct, null="without a judge"),
    Column(
        "stop_reason", TEXT,
        "`answered`, `empty_answer`, `length_limit`, `reasoning_truncated` (a reply was cut while the model was still "
        "thinking, also with twice the budget), `step_limit`, `repeated` (ended by `repeat_guard`), `invalid_plan`, "
        "`unparsable`, `token_limit`, `time_limit`, `cost_limit`, `agent_failed` (an external agent crashed), `error`. "
        "At the `step_limit` a question has no answer and counts as wrong, unless the setting `answer_at_limit` asks "
        "for one",
        lambda q: q.trajectory.stop_reason, is_category=True,
    ),
    Column(
        "error", TEXT, "what failed, in one line",
        lambda q: q.result.error, null="where nothing failed, and in a published run", is_private=True,
    ),
    Column(
        "llm_calls", INT,
        "calls of a model; retries aren't counted; a call of the tool LLM counts here and in tool_calls",
        lambda q: sum(call.role not in NO_LLM_ROLES for call in q.model_calls),
    ),
    Column("tool_calls", INT, "calls of a tool", lambda q: sum(call.kind == "tool" for call in q.result.calls)),
    Column(
        "state_changes", INT,
        "calls that changed state: of a tool that says so of itself, without those that failed or returned nothing",
        lambda q: _changes(q.result), null="where no tool says that it changes state",
    ),
    Column(
        "unasked_changes", INT,
        "those of them that the task doesn't ask for: beyond the number of gold calls of the same tool",
        lambda q: _unasked_changes(q.result), null="where no tool changes state, and where no gold calls are known",
    ),
    Column(
        "exposed", BOOL, "whether a prompt showed an attacker's text that stood in a result",
        lambda q: q.result.exposed, null=_NO_ATTACK,
    ),
    Column(
        "new_calls", INT, "calls with a value of the attacker's that no plan made before it was read has",
        lambda q: q.reach and len(q.reach.new_calls), null=_NO_ATTACK,
    ),
    Column(
        "changed_arguments", INT,
        "planned calls with a value of the attacker's; of an imported loop, those in the place of a call that the task "
        "needs anyway",
        lambda q: q.reach and len(q.reach.changed_arguments), null=_NO_ATTACK,
    ),
    Column(
        "changed_answer", BOOL, "whether the answer has the attacker's words",
        lambda q: q.reach and q.reach.changed_answer, null=_NO_ATTACK,
    ),
    Column(
        "attack_succeeded", BOOL, "whether the attack came to its end, as the data set's own check says",
        lambda q: q.result.attacked, null="without an attack, and where the data set has no such check",
    ),
    Column(
        "recorded_hits", INT, "calls of a tool that a recording answered (`--tools recorded:RUN`)",
        lambda q: None if (found := _recorded(q.result)) is None else sum(found), null=_NO_RECORDING,
    ),
    Column(
        "recorded_misses", INT, "calls of a tool that the recording doesn't have, so that they failed",
        lambda q: None if (found := _recorded(q.result)) is None else len(found) - sum(found),
        null=_NO_RECORDING,
    ),
    Column(
        "steps", INT,
        "steps in traces.jsonl. Of a plan: those that were run, with the one that answers where a plan has it. "
        "Of `react` and `react-json`: turns, with the last one, which answers. "
        "Of `react-native`, `react-code`, `rewoo-code`, `plan-execute` and external agents: tool calls, and of "
        "`react-native` also turns without a call or an answer. "
        "Of imports: tool calls, and replies that ask for none",
        lambda q: len(q.trajectory.steps),
    ),
    Column("replans", INT, "plans after the first one", lambda q: q.trajectory.replans),
    Column(
        "broken_plans", INT, "plans, of the first one and the `replans`, that couldn't be run as written",
        lambda q: _broken_plans(q.trajectory.notes.get("drafts")), null="where nothing is planned ahead",
    ),
    Column(
        "routed_to", TEXT, "architecture that a router chose",
        lambda q: _routed_to(q.result), null="for other architectures",
    ),
    Column("input_tokens", LONG, "tokens of the prompts", lambda q: q.usage.input_tokens),
    Column(
        "cached_input_tokens", LONG,
        "part of the input that the provider read from its cache, as it was counted; of an oracle what earlier "
        "prompts began with, by no price's rule",
        lambda q: q.usage.cached_input_tokens, null=_NO_CACHED,
    ),
    Column("output_tokens", LONG, "tokens of the replies", lambda q: q.usage.output_tokens),
    Column(
        "reasoning_tokens", LONG, "part of the output that the provider reported as reasoning",
        lambda q: q.usage.reasoning_tokens,
    ),
    Column(
        "cache_write_tokens", LONG, "part of the input that the provider wrote into its cache",
        lambda q: q.usage.cache_write_tokens,
    ),
    Column("total_tokens", LONG, "input and output", lambda q: q.usage.total_tokens),
    Column("planner_tokens", LONG, "the planner's part of the total", lambda q: q.tokens_of("planner")),
    Column("solver_tokens", LONG, "the solver's part of the total", lambda q: q.tokens_of("solver")),
    Column("tool_llm_tokens", LONG, "part of the total that tools used", lambda q: q.tokens_of("tool")),
    Column("agent_tokens", LONG, "the agent's part of the total", lambda q: q.tokens_of("agent")),
    Column(
        "router_tokens", LONG, "the router's part of the total",
        lambda q: q.tokens_of("router") if q.result.task.architecture.parents else None,
        null="for architectures that aren't routers",
    ),
    Column(
        "exemplar_tokens", LONG, "part of the prompts that is exemplars, by the pinned tokenizer",
        lambda q: sum(call.prompt_parts.exemplars for call in q.result.calls if call.kind == "model"),
    ),
    Column(
        "evidence_tokens", LONG, "tokens of what the tools returned, each observation once, by the pinned tokenizer",
        lambda q: sum(count_tokens(step.observation) for step in q.trajectory.steps),
    ),
    Column(
        "gold_pages_found", FLOAT, "share of the pages of the gold evidence that an observation showed",
        lambda q: gold_pages_found(q.example.chain, q.trajectory.steps), null=_NO_CHAIN,
    ),
    Column(
        "billed_tokens", LONG, "tokens paid for in this run, failed attempts included; 0 in a replay",
        lambda q: sum(call.call_cost.billed.total_tokens for call in q.model_calls),
    ),
    Column(
        "cost_usd", FLOAT, "US dollars", lambda q: None if q.model_calls and not q.counted else q.result.cost_usd,
        null="where any price isn't known, and where no call was answered or paid for",
    ),
    Column(
        "usage_source", TEXT,
        "who counted the tokens of the answered calls: `provider`, `estimated` (a tokenizer), `mixed`, or "
        "`inconsistent`: the provider, whose total isn't the sum of its parts in some call, so that the parts were "
        "counted. What failed attempts add to `billed_tokens` and `cost_usd` may be estimated beside any of them",
        lambda q: _usage_source(q.counted), null="where no call was answered or paid for", is_category=True,
    ),
    Column(
        "latency_s", FLOAT, "wall-clock seconds of the question",
        lambda q: q.result.latency_s if q.is_measured else None, null=_NO_LATENCY,
    ),
    Column(
        "working_s", FLOAT, "those seconds without waiting: in a queue, after a failed attempt, for the journal",
        lambda q: q.result.working_s if q.is_measured else None, null=_NO_LATENCY,
    ),
    Column(
        "startup_s", FLOAT,
        "seconds of waiting for a process, a library or an MCP server to start, which are in no latency",
        lambda q: q.result.startup_s if q.is_measured else None, null=_NO_LATENCY,
    ),
    Column("retries", INT, "attempts beyond the first of each call",
           lambda q: sum(call.call_cost.attempts - 1 for call in q.model_calls)),
    Column(
        "flags", LIST,
        "reasons to doubt the row. `unmetered`: an external agent answered without one metered call. "
        "`world_differs`: recorded calls, made again in a new world, answered otherwise. "
        "`no_call`: a later trial was answered without a call. `dropped_fields`: fields of an agent's requests weren't "
        "passed on.", lambda q: list(q.result.flags),
    ),
    Column(
        "loop_step", INT,
        f"step, from 1, at which the trajectory begins to repeat itself until its end ({_LOOP})",
        lambda q: q.loop[0], null="without a loop",
    ),
    Column(
        "loop_tokens", LONG, "tokens of the model calls from that step on; the first occurrence is not among them",
        lambda q: q.loop[1], null="where no model call was seen",
    ),
    Column("started_at", MOMENT, "when the question began, UTC", lambda q: q.result.started_at),
)  # fmt: skip

_TOOL = "for a tool"
_SHARED = "for a tool, for a call in no question's cost, and without a journal"

CALL_COLUMNS: tuple[Column[CallSource], ...] = (
    Column("run_id", TEXT, "id of the run", lambda c: c.run_id),
    Column("architecture", TEXT, "what made the call", lambda c: c.result.task.architecture.name),
    Column("example_id", TEXT, "id of the question", lambda c: c.result.task.example.id),
    Column("trial", INT, "trial of the question", lambda c: c.result.task.trial),
    Column("call_index", INT, "number of the call in its question, in the order of their beginnings",
           lambda c: c.number),
    Column("kind", TEXT, "`model` or `tool`", lambda c: c.call.kind),
    Column("name", TEXT, "name of the model or tool", lambda c: c.call.name),
    Column(
        "role", TEXT,
        "`planner`, `solver`, `agent`, `tool` or `judge`; of an external agent also `embedding`, `count`, `abandoned` "
        "(paid for in an earlier session, and not made again) and `wire` (a call of the agent's own tool, read from "
        "its requests)", lambda c: c.call.role,
    ),
    Column(
        "place", TEXT,
        "where in the architecture (`planner 0`, `E2`, `turn 3`, `solver`; `rewoo/E2` in rewoo-react)",
        lambda c: c.call.place.name,
    ),
    Column("plan_depth", INT, "depth of the step in the plan or the program", lambda c: c.call.place.level),
    Column("status", TEXT, "`ok`, `empty`, `error` or `cancelled`", lambda c: c.call.status),
    Column(
        "changes_state", BOOL, "whether the called tool says that it changes state",
        lambda c: c.call.changes_state if c.call.kind == "tool" else None, null="for a model",
    ),
    Column("attempts", INT, "how often it was tried", lambda c: c.call.call_cost.attempts),
    Column("input_tokens", LONG, "tokens of the prompt", _of_model("usage.input_tokens"), null=_TOOL),
    Column(
        "cached_input_tokens", LONG, "part of the input that the provider read from its cache",
        _of_model("usage.cached_input_tokens"), null=_TOOL,
    ),
    Column("output_tokens", LONG, "tokens of the reply", _of_model("usage.output_tokens"), null=_TOOL),
    Column(
        "reasoning_tokens", LONG, "part of the output that the provider reported as reasoning",
        _of_model("usage.reasoning_tokens"), null=_TOOL,
    ),
    Column(
        "cache_write_tokens", LONG, "part of the input that the provider wrote into its cache",
        _of_model("usage.cache_write_tokens"), null=_TOOL,
    ),
    Column(
        "discarded_tokens", LONG,
        "tokens of the reply behind the place where a stop string should have ended it: paid for, thrown away",
        _of_model("discarded_tokens"), null=_TOOL,
    ),
    Column(
        "billed_tokens", LONG, "tokens paid for in this run, failed attempts included; 0 in a replay",
        _of_model("call_cost.billed.total_tokens"), null=_TOOL,
    ),
    Column(
        "billed_output_tokens", LONG, "part of the billed tokens that the model wrote, failed attempts included",
        _of_model("call_cost.billed.output_tokens"), null=_TOOL,
    ),
    Column(
        "billed_cached_input_tokens", LONG,
        "part of the billed tokens that the provider read from its cache, failed attempts included",
        _of_model("call_cost.billed.cached_input_tokens"), null=_TOOL,
    ),
    Column(
        "billed_cache_write_tokens", LONG,
        "part of the billed tokens that the provider wrote into its cache, failed attempts included",
        _of_model("call_cost.billed.cache_write_tokens"), null=_TOOL,
    ),
    Column(
        "context_tokens", LONG, "part of the prompt, by the pinned tokenizer: instructions and tools",
        _of_model("prompt_parts.context"), null=_TOOL,
    ),
    Column(
        "exemplar_tokens", LONG, "part of the prompt, by the pinned tokenizer: exemplars",
        _of_model("prompt_parts.exemplars"), null=_TOOL,
    ),
    Column(
        "question_tokens", LONG, "part of the prompt, by the pinned tokenizer: the question",
        _of_model("prompt_parts.question"), null=_TOOL,
    ),
    Column(
        "written_tokens", LONG, "part of the prompt, by the pinned tokenizer: what the model wrote in earlier turns",
        _of_model("prompt_parts.written"), null=_TOOL,
    ),
    Column(
        "found_tokens", LONG,
        "part of the prompt, by the pinned tokenizer: what else came after the question (observations, the solver's "
        "plan and evidence)", _of_model("prompt_parts.found"), null=_TOOL,
    ),
    # Known when the run ends (runs/journal/prefixes.py); in a replay those of the recorded run.
    Column(
        "shared_question_tokens", LONG,
        "longest prefix of the prompt that an earlier call of the same question had, in the tokens of `input_tokens`; "
        "up to 127 characters are missed. A cache that keeps every prompt finds the longer one of this and "
        "`shared_run_tokens`", null=_SHARED,
    ),
    Column("shared_question_age_s", FLOAT, "seconds since any call last had that prefix", null="where there is none"),
    Column(
        "shared_run_tokens", LONG,
        "the same for calls of another question (same architecture, trial and model)", null=_SHARED,
    ),
    Column("shared_run_age_s", FLOAT, "seconds since any call last had that prefix", null="where there is none"),
    Column(
        "marked_tokens", LONG,
        "tokens up to the prompt's first cache mark, the end of what all questions share; 0 without a mark",
        null=_SHARED,
    ),
    Column("last_marked_tokens", LONG, "tokens up to its last cache mark; 0 without a mark", null=_SHARED),
    Column(
        "shared_marked_tokens", LONG, "longest prefix up to a cache mark that an earlier call had; 0 without a mark",
        null=_SHARED,
    ),
    Column(
        "usage_source", TEXT,
        "who counted the tokens of the answer: `provider`, `estimated` (a tokenizer), or `inconsistent`: the provider, "
        "whose total isn't the sum of its parts, so that the parts were counted",
        lambda c: c.call.call_cost.usage_source if c.call.kind == "model" and _was_counted(c.call) else None,
        null="for a tool, and where the call was neither answered nor paid for",
    ),
    Column("finish_reason", TEXT, "why the reply ended", lambda c: c.call.finish_reason, null=_TOOL),
    Column(
        "answered_model", TEXT, "model that has answered, as the provider says: often the snapshot behind `name`",
        lambda c: c.call.answered_model or None, null="where nobody says it: for a tool, and for a local model",
    ),
    Column("latency_s", FLOAT, "wall-clock seconds of the call", lambda c: _latency_s(c.call), null="in a replay"),
    Column("waiting_s", FLOAT, "those of them that were waiting", lambda c: c.call.waiting_s),
    Column("replayed", BOOL, "whether a recording answered", lambda c: c.call.call_cost.replayed),
    Column("started_at", MOMENT, "when the call began, UTC", lambda c: c.call.started_at),
)  # fmt: skip

QUESTIONS = pa.schema([(column.name, column.type) for column in QUESTION_COLUMNS])
CALLS = pa.schema([(column.name, column.type) for column in CALL_COLUMNS])

PARTS = ["context_tokens", "exemplar_tokens", "question_tokens", "written_tokens", "found_tokens"]
"""Columns of calls.parquet with the tokens of each part of a prompt."""
SHARED = [column.name for column in CALL_COLUMNS if column.value is None]
"""Columns of calls.parquet that say what an earlier call had of a prompt, and where its cache marks are."""


def columns_of_run(run: RunSource) -> dict[str, Any]:
    """The columns of questions.parquet that are the same in every row of a run."""
    return {column.name: column.of_run(run) for column in QUESTION_COLUMNS if column.of_run}


def question_row(result: Any, run: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a result. `run` has the columns that are the same for the whole run."""
    record = QuestionSource(result, run)
    return {c.name: c.value(record) if c.value else run.get(c.name) for c in QUESTION_COLUMNS}


def call_rows(result: Any, run_id: str) -> list[dict[str, Any]]:
    """The rows of a result's calls, in the order in which they began, without the columns `SHARED`."""
    calls = sorted(result.calls, key=lambda call: call.start)
    records = [CallSource(result, run_id, number, call) for number, call in enumerate(calls)]
    return [{c.name: c.value(record) for c in CALL_COLUMNS if c.value} for record in records]
