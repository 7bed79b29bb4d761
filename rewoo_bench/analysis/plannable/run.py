"""A run's traces and calls -> what could have been planned, and what that would have saved.

    found = plannable(Path("results/local/mine"))
    found.calls         # a row for each tool call: its values by kind, its choice, depth in the plan graph
    found.tasks         # a row for each trajectory and horizon: model calls, tokens, dollars, seconds
    print(tables.text(found))

Only loops are read: architectures that plan ahead have nothing to gain, nor have those that call no tool. Intervals are
over tasks, the trials of a task inside them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.call_costs import cached_tokens
from rewoo_bench.analysis.plannable.steps import KINDS, Source, ToolStep, TracedTask, traced_tasks
from rewoo_bench.analysis.prices import SHOWN, example_note, own_tariffs, pricing_of
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.analysis.verdict import pairs_of_run, verdict
from rewoo_bench.config.price_sheets import Tariff, named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, NO_STEP_ROLES, SHARED, UNPRICED_ROLES
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE, load_table, manifests, read_table
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.rows import Rows
from rewoo_bench.text.tokens import count_tokens

_KEY = ("architecture", "example_id", "trial")
_READ = (*_KEY, "kind", "role", "place", "input_tokens", "output_tokens", "latency_s", *SHARED)
_PLANS = {"planner", "router"}
"""Roles of calls that a loop doesn't make."""
_TURN = re.compile(r"turn (\d+)$")
_FITTED = 1_000
"""Calls through which a line of seconds is drawn: half a million pairs of them."""


@dataclass(frozen=True, slots=True)
class Plannable:
    """What could have been planned in a run. `left_out` counts trajectories, by the reason why they aren't in it."""

    folder: Path
    calls: pd.DataFrame
    tasks: pd.DataFrame
    left_out: Mapping[str, int]
    prices: Mapping[str, str]
    """Each price, and what it is: `OpenAI's rule, gpt-4o`."""
    pricing: str = ""
    """Where the prices come from, unless they are those of the run's one model, or were given."""
    measured: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Of a loop whose questions a planner of the run answered, too: what that one took, in sentences (verdict.py)."""

    def architectures(self) -> list[str]:
        return list(dict.fromkeys(self.tasks["architecture"]))


def plannable(
    folder: Path,
    prices: Sequence[str] = (),
    *,
    most: int | None = None,
    on_task: Callable[[TracedTask], None] | None = None,
) -> Plannable:
    """Reads a run. `prices` are short names or SHEET:MODEL.

    By default they are those of each trajectory's model, with the rule of its provider's cache and without a cache,
    where sheets have all models of the run, else those of `SHOWN`.

    Of each architecture at most `most` trajectories are read, those of a random sample of tasks, always the same one.
    `on_task` is called with each trajectory that counts.
    Raises `DataError` where the run has no traces or no loop with tool calls, and `UsageError` for a wrong price.
    """
    table = load_table(folder)
    rows = table.select([*_KEY, "model"]).to_pylist()
    model_of = {tuple(row[name] for name in _KEY): str(row["model"]) for row in rows}
    tariffs, pricing = _tariffs(list(dict.fromkeys(model_of.values())), prices, manifests(folder))
    path = folder / TRACES_FILE
    if not path.is_file():
        raise DataError(
            f"{str(folder)!r} has no {TRACES_FILE}, as a published copy: nothing is known of its tool calls"
        )
    own_calls, traces = _calls_by_task(folder), _traces(path)
    left_out: Counter[str] = Counter()
    of_calls: list[dict[str, Any]] = []
    of_tasks: list[dict[str, Any]] = []
    for architecture in dict.fromkeys(row["architecture"] for row in rows):
        own = {key: calls for key, calls in own_calls.items() if key[0] == architecture}
        if any(_PLANS & set(calls["role"]) for calls in own.values()):
            left_out[f"{architecture} plans ahead itself"] += len(own)
            continue
        pace = _pace(own.values())
        tasks = Counter(row["example_id"] for row in rows if row["architecture"] == architecture)
        sample = _sample(tasks, most)
        if unread := sum(tasks.values()) - sum(tasks[each] for each in sample):
            left_out[f"{architecture} in tasks outside the random sample that was read"] += unread
        of_architecture: list[dict[str, Any]] = []
        judged: list[list[dict[str, Any]]] = []
        for task in traced_tasks(trace for trace in traces[architecture] if trace["example_id"] in sample):
            key = architecture, task.example_id, task.trial
            calls = own.get(key)
            if calls is None or not (models := _loop_calls(calls)):
                left_out["no model call was recorded with its tokens"] += 1
                continue
            if task.unknown:
                left_out[task.unknown] += 1
                continue
            turns = [turn for turn, _ in models]
            if any(step.turn not in turns for step in task.steps):
                left_out["its tool calls can't be told apart by the model calls that asked for them"] += 1
                continue
            if on_task and task.steps:
                on_task(task)
            of_architecture += _call_rows(task)
            own_tariffs = {name: of_models[model_of[key]] for name, of_models in tariffs.items()}
            judged.append(list(_task_rows(task, calls, models, works(task, turns), own_tariffs, pace)))
        if judged and not of_architecture:
            left_out[f"{architecture} made no tool call"] += len(judged)
            continue
        of_calls += of_architecture
        of_tasks += chain.from_iterable(judged)
    if not of_calls:
        why = ", ".join(f"{reason}: {count:,}" for reason, count in left_out.items())
        raise DataError(f"{str(folder)!r} has no tool call of a loop that can be judged{f' ({why})' if why else ''}")
    titles = {name: _title(list(of_models.values())) for name, of_models in tariffs.items()}
    frames = pd.DataFrame(of_calls), pd.DataFrame(of_tasks)
    return Plannable(folder, *frames, dict(left_out), titles, pricing, _measured(folder, Rows(table)))


def _measured(folder: Path, rows: Rows) -> dict[str, list[str]]:
    """By loop what each planner of the run took of the same questions."""
    pricing, found = pricing_of([folder], rows, manifests(folder)), dict[str, list[str]]()
    for pair in pairs_of_run(rows, pricing):
        if pair.loop_and_plan:
            found.setdefault(pair.b, []).extend(verdict(pair, pricing))
    return found


def _tariffs(models: Sequence[str], prices: Sequence[str], runs: Manifests) -> tuple[dict[str, dict[str, Tariff]], str]:
    """Each price by its name, as the tariff of each model, and where they come from (`Plannable.pricing`)."""
    own = own_tariffs(models, runs)
    if prices or len(own) < len(models):
        note = "" if prices else example_note([each for each in models if each not in own], "plannable")
        return {name: dict.fromkeys(models, named_tariff(name)) for name in prices or SHOWN}, note
    uncached = {model: tariff.without_cache() for model, tariff in own.items()}
    names = dict.fromkeys(f"{tariff.sheet}:{tariff.model}" for tariff in own.values())
    note = "each trajectory is priced at its own model's prices" if len(names) > 1 else ""
    cached = {" and ".join(names): own} if any(tariff.rule for tariff in own.values()) else {}
    return {**cached, "none": uncached}, note


def _title(tariffs: Sequence[Tariff]) -> str:
    """`OpenAI's rule, gpt-4o`."""
    rules, models = ([each.cache_rule.partition(":")[0] for each in tariffs], [each.model for each in tariffs])
    return ", ".join(" and ".join(dict.fromkeys(names)) for names in (rules, models))


def _sample(tasks: Mapping[str, int], most: int | None) -> set[str]:
    """Tasks with at most `most` trajectories in all, at least one task; `tasks` are their numbers of trajectories."""
    if most is None or sum(tasks.values()) <= most:
        return set(tasks)
    shuffled = sorted(tasks, key=lambda task: sha256(task.encode("utf-8", "replace")).digest())
    count = bisect_right(list(accumulate(tasks[task] for task in shuffled)), most)
    return set(shuffled[: max(1, count)])


def _traces(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The lines of each architecture."""
    found = defaultdict[str, list[dict[str, Any]]](list)
    with path.open(encoding="utf-8") as lines:
        for trace in map(json.loads, lines):
            found[trace["architecture"]].append(trace)
    return found


_Columns = Mapping[str, NDArray[Any]]


def _calls_by_task(folder: Path) -> dict[tuple[str, str, int], _Columns]:
    """The calls of each trajectory, in their order, without those that are in no question's cost."""
    frame = read_table(folder / CALLS_FILE, CALLS, columns=list(_READ)).to_pandas()
    frame = frame[~frame["role"].isin(UNPRICED_ROLES)]
    found: dict[tuple[str, str, int], _Columns] = {}
    for (architecture, example, trial), own in frame.groupby(list(_KEY), sort=False):
        found[str(architecture), str(example), int(trial)] = {name: own[name].to_numpy() for name in _READ[3:]}
    return found


def _loop_calls(calls: _Columns) -> list[tuple[int, int]]:
    """Turn and position of each model call of the loop: not those of its tools, and none that failed."""
    found = []
    for position, (kind, role, place) in enumerate(zip(calls["kind"], calls["role"], calls["place"], strict=True)):
        if kind == "model" and role not in NO_STEP_ROLES and calls["input_tokens"][position] > 0:
            turn = _TURN.search(str(place))
            found.append((int(turn.group(1)) if turn else 0, position))
    return found


def _call_rows(task: TracedTask) -> Iterator[dict[str, Any]]:
    for (position, needs, depth), step in zip(graph(task), task.steps, strict=True):
        start = task.starts[step.segment]
        kinds = Counter(value.kind(start) for value in step.values)
        copied = sources(task, step)
        guessed = [value.by_chance for value in step.values if value.by_chance and value.kind(start) != "constant"]
        yield {
            **dict(zip(_KEY, (task.architecture, task.example_id, task.trial), strict=True)),
            "step": position, "turn": step.turn, "segment": step.segment, "tool": step.tool,
            **{kind: kinds[kind] for kind in KINDS},
            "values": len(step.values),
            "chosen": sum(source.how == "choice" for source in copied),
            "in_longer_text": sum(source.how == "part" for source in copied),
            "by_chance": sum(any(found) for found in guessed),
            "guessed": len(guessed),
            "choice": step.choice, "depth": depth, "copies_from": list(needs),
            "values_plannable": not kinds["derived"],
            "plannable": not kinds["derived"] and step.choice == "unconditional",
        }  # fmt: skip


def value_rows(task: TracedTask) -> Iterator[dict[str, Any]]:
    """A row for each value of a trajectory's tool calls: its kind, and where a copied one stands."""
    for position, step in enumerate(task.steps):
        start = task.starts[step.segment]
        for value in step.values:
            source = next(iter(value.copied_from(start)), None)
            yield {
                **dict(zip(_KEY, (task.architecture, task.example_id, task.trial), strict=True)),
                "step": position, "tool": step.tool, "path": value.path, "value": value.value,
                "kind": value.kind(start), "copied_from": source and source.step, "how": source and source.how,
                "field": source and source.path,
            }  # fmt: skip


def _task_rows(
    task: TracedTask,
    calls: _Columns,
    models: Sequence[tuple[int, int]],
    of_horizons: Mapping[Horizon, Work],
    tariffs: Mapping[str, Tariff],
    pace: Pace,
) -> Iterator[dict[str, Any]]:
    positions = [position for _, position in models]
    others = [  # calls of tools that ask a model: the same under each horizon
        place
        for place, kind in enumerate(calls["kind"])
        if kind == "model" and place not in positions and calls["input_tokens"][place] > 0
    ]
    depth, width = depth_and_width(task)
    segments = {step.segment for step in task.steps}
    for horizon in HORIZONS:
        work = of_horizons[horizon]
        columns = _remaining(task, calls, positions, others, work)
        row = {
            **dict(zip(_KEY, (task.architecture, task.example_id, task.trial), strict=True)),
            "horizon": horizon, "segments": len(segments), "tool_calls": len(task.steps),
            "depth": depth, "width": width,
            "planned": work.planned, "model_calls": len(columns["input_tokens"]), "extractions": len(work.extractions),
            "sequential_calls": len(work.kept) + len({each.step for each in work.extractions}),
            "input_tokens": columns["input_tokens"].sum(), "output_tokens": columns["output_tokens"].sum(),
            "latency_s": _latency(calls, positions, others, work, pace),
        }  # fmt: skip
        for name, tariff in tariffs.items():
            cached, written = cached_tokens(columns, tariff.rule)
            written = written * float(tariff.cache_write is not None)
            usd = tariff.cost_usd(columns["input_tokens"], cached, written, columns["output_tokens"])
            row |= {f"usd:{name}": float(np.sum(usd)), f"cached:{name}": float(np.sum(cached))}
        yield row


def _remaining(
    task: TracedTask, calls: _Columns, positions: Sequence[int], others: Sequence[int], work: Work
) -> dict[str, Floats]:
    """The columns of calls.parquet for the model calls that remain."""
    kept = [positions[each.call] for each in work.kept]
    names = ("input_tokens", "output_tokens", *SHARED)
    columns = {name: calls[name][[*kept, *others]].astype(float) for name in names}
    output = calls["output_tokens"].astype(float)
    for place, each in enumerate(work.kept):
        columns["output_tokens"][place] = sum(output[positions[other]] for other in each.writes)
    for name in ("shared_question_tokens", "shared_marked_tokens"):
        known = dict(enumerate(calls[name][positions].astype(float)))
        least = shares(work.kept, known)
        columns[name][: len(kept)] = [least[each.call] for each in work.kept]
    asked = [count_tokens(task.steps[each.step].result) + EXTRACTION_TOKENS for each in work.extractions]
    wrote = [count_tokens(each.value) for each in work.extractions]
    more = {"input_tokens": asked, "output_tokens": wrote}
    return {
        name: np.concatenate([values, np.array(more.get(name, np.zeros(len(asked))), dtype=float)])
        for name, values in columns.items()
    }


class Pace(NamedTuple):
    """Seconds of a model call: until it begins to write, and for each token that it writes."""

    start: float
    a_token: float


def _pace(trajectories: Iterable[_Columns]) -> Pace:
    """The line through the loop's calls of an architecture: the median of the slopes between any two (Theil and Sen).

    NaN where no call was timed.
    """
    calls = [(own["latency_s"][at], own["output_tokens"][at]) for own in trajectories for _, at in _loop_calls(own)]
    known = np.array([call for call in calls if not np.isnan(call).any()], dtype=float).reshape(-1, 2)
    if not len(known):
        return Pace(np.nan, np.nan)
    seconds, tokens = np.random.default_rng(0).permutation(known)[:_FITTED].T
    one, other = np.triu_indices(len(seconds), 1)
    apart = tokens[other] - tokens[one]
    slopes = (seconds[other] - seconds[one])[apart != 0] / apart[apart != 0]
    a_token = max(0.0, float(np.median(slopes))) if len(slopes) else 0.0
    return Pace(max(0.0, float(np.median(seconds - a_token * tokens))), a_token)


def _latency(calls: _Columns, positions: Sequence[int], others: Sequence[int], work: Work, pace: Pace) -> float:
    """Seconds of the model calls that remain, one after the other; NaN where they weren't measured.

    A call that writes for another one takes longer by what that output takes, but by no more than the other one took.
    """
    seconds, output = calls["latency_s"].astype(float), calls["output_tokens"].astype(float)
    own, written = seconds[list(positions)], output[list(positions)]
    longer = np.minimum(pace.a_token * written, own)
    kept = sum(own[each.call] + sum(longer[at] for at in each.writes if at != each.call) for each in work.kept)
    read = sum(pace.start + pace.a_token * count_tokens(each.value) for each in work.extractions)
    return float(kept + read + seconds[list(others)].sum())


# What planning ahead could have saved: the model calls of a loop that a plan makes superfluous.
#
# A plan is written by a model call that the loop made, from the same prompt. The loop's later calls of the segment fall
# away as long as each asks for what the plan could have: values that are known, constant or copied from results of the
# plan, and a choice that no result made necessary. Then a new plan begins with the next call of the loop. The call that
# answers the user stays.
#
#     plan-ahead         the whole segment in one plan, or the loop as it was
#     lazy replanning    as few plans as its calls allow
#     plans as code      the same, and a program decides after errors, empty results and branches, and picks among items
#
# A text plan takes one of several items, and any plan a value out of a longer text, with one more model call whose
# prompt is that result: who writes the plan hasn't seen it. No plan takes more model calls than the loop did: a turn
# that would need two of these begins a new plan, and a whole plan that needs too many leaves the segment as it was.
#
# It is an estimate, whose error was measured (predicted.csv): prompts and outputs are the loop's own, a plan has no
# faults, and costs what its calls cost to write. What prompts share is the loop's, too: the prefix that two calls share
# is the shortest of those that each call between them shares with the one before it.


Horizon = Literal["loop", "plan-ahead", "lazy replanning", "plans as code"]
HORIZONS: tuple[Horizon, ...] = ("loop", "plan-ahead", "lazy replanning", "plans as code")
EXTRACTION_TOKENS = 40
"""Tokens of the prompt that asks for a value in a text, beside the text."""


class Kept(NamedTuple):
    """A model call that remains: the position of the loop's own one, and of those whose output it writes."""

    call: int
    writes: tuple[int, ...]


class Extraction(NamedTuple):
    """A model call that takes values out of the result of a step, for the steps of a turn from `needed_by` on."""

    step: int
    needed_by: int
    value: str


@dataclass(frozen=True, slots=True)
class Work:
    """The model calls of a task under a horizon, and how many of its tool calls are planned before the loop's turn."""

    kept: tuple[Kept, ...]
    extractions: tuple[Extraction, ...] = ()
    planned: int = 0


def works(task: TracedTask, turns: Sequence[int]) -> dict[Horizon, Work]:
    """What remains of a task's model calls. `turns` are the turn numbers of its model calls, in their order."""
    loop = tuple(Kept(place, (place,)) for place in range(len(turns)))
    asked: dict[int, list[int]] = {}
    for position, step in enumerate(task.steps):
        asked.setdefault(step.turn, []).append(position)
    segments: dict[int, list[int]] = {}
    for place, turn in enumerate(turns):
        segments.setdefault(task.segment_of_turn.get(turn, -1), []).append(place)
    found: dict[Horizon, Work] = {"loop": Work(loop)}
    for horizon in HORIZONS[1:]:
        kept: list[Kept] = []
        extractions: list[Extraction] = []
        planned = 0
        for places in segments.values():
            own = _segment(task, [(place, asked.get(turns[place], [])) for place in places], horizon)
            kept += own.kept
            extractions += own.extractions
            planned += own.planned
        found[horizon] = Work(tuple(sorted(kept)), tuple(extractions), planned)
    return found


def _segment(task: TracedTask, calls: Sequence[tuple[int, list[int]]], horizon: Horizon) -> Work:
    """One segment: the loop's model calls, each with the steps that it asks for."""
    kept: list[Kept] = []
    extractions: dict[Extraction, None] = {}
    planned = position = 0
    while position < len(calls):
        place, steps = calls[position]
        writes, after = [place], position + 1
        if steps:
            start = steps[0]
            while after < len(calls) and calls[after][1]:
                needed = _needs(task, calls[after][1], start, steps[-1] + 1, horizon)
                if needed is None or (len(needed) > 1 and horizon != "plan-ahead"):  # the loop's own call is one
                    break
                extractions |= dict.fromkeys(needed)
                writes.append(calls[after][0])
                planned += len(calls[after][1])
                after += 1
        kept.append(Kept(place, tuple(writes)))
        position = after
    asks = dict(calls)
    plans = sum(bool(asks[each.call]) for each in kept)
    if horizon == "plan-ahead" and (plans > 1 or len(kept) + len(extractions) > len(calls)):
        return Work(tuple(Kept(place, (place,)) for place, _ in calls))
    return Work(tuple(kept), tuple(extractions), planned)


def _needs(
    task: TracedTask, steps: Sequence[int], start: int, written: int, horizon: Horizon
) -> list[Extraction] | None:
    """The extractions that a plan made before the step `start` needs for these steps; None where it can't have them.

    Its writer knows what it wrote into the steps before `written`.
    """
    needed: dict[int, list[str]] = {}  # by the step whose result has them
    read = ("part",) if horizon == "plans as code" else ("choice", "part")
    for position in steps:
        step = task.steps[position]
        if horizon != "plans as code" and step.choice != "unconditional":
            return None
        for value in step.values:
            if value.kind(start, written) == "derived":
                return None
            for source in value.copied_from(start):
                if source.how in read:
                    needed.setdefault(source.step, []).append(str(value.value))
    return [Extraction(place, steps[0], " ".join(found)) for place, found in needed.items()]


def graph(task: TracedTask) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """The plan graph: each step, the steps that it copies from, and its depth in the segment, from 1."""
    depths: list[int] = []
    for position, step in enumerate(task.steps):
        needs = sorted({source.step for source in sources(task, step)})
        depths.append(1 + max((depths[each] for each in needs), default=0))
        yield position, tuple(needs), depths[-1]


def sources(task: TracedTask, step: ToolStep) -> list[Source]:
    """The results of its segment that a step copies from."""
    start = task.starts[step.segment]
    return [found for value in step.values for found in value.copied_from(start)]


def depth_and_width(task: TracedTask) -> tuple[int, int]:
    """The longest chain of steps that copy from each other, and the most steps at one depth of a segment."""
    levels: dict[tuple[int, int], int] = {}
    for position, _, depth in graph(task):
        key = task.steps[position].segment, depth
        levels[key] = levels.get(key, 0) + 1
    return max((depth for _, depth in levels), default=0), max(levels.values(), default=0)


def shares(kept: Sequence[Kept], shared: Mapping[int, float]) -> dict[int, float]:
    """The tokens that each remaining call shares with an earlier one: the least of the calls since the one before."""
    found, before = {}, -1
    for each in kept:
        found[each.call] = min(shared[place] for place in range(before + 1, each.call + 1))
        before = each.call
    return found
