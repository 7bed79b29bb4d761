"""A run's traces and calls -> what could have been planned, and what that would have saved.

    found = plannable(Path("results/local/mine"))
    found.calls         # a row for each tool call: its values by kind, its choice, depth in the plan graph
    found.tasks         # a row for each trajectory and horizon: model calls, tokens, dollars, seconds
    print(found)

Only loops are read: architectures that plan ahead have nothing to gain. Intervals are over tasks, the trials of a task
inside them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.plannable.bounds import (
    EXTRACTION_TOKENS,
    HORIZONS,
    Horizon,
    Work,
    depth_and_width,
    graph,
    shares,
    works,
)
from rewoo_bench.analysis.plannable.steps import KINDS, TracedTask, traced_tasks
from rewoo_bench.analysis.prices import SHOWN, cached_tokens, example_note
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.config.price_sheets import Tariff, named_tariff, price_of
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, NO_STEP_ROLES, SHARED, UNPRICED_ROLES
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE, load_table, read_table
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
    rows = load_table(folder).select([*_KEY, "model"]).to_pylist()
    model_of = {tuple(row[name] for name in _KEY): str(row["model"]) for row in rows}
    tariffs, pricing = _tariffs(list(dict.fromkeys(model_of.values())), prices)
    path = folder / TRACES_FILE
    if not path.is_file():
        raise DataError(
            f"{str(folder)!r} has no {TRACES_FILE}, as a published copy: nothing is known of its tool calls"
        )
    own_calls = _calls_by_task(folder)
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
        for task in traced_tasks(partial(_traces, path, architecture, sample)):
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
            of_calls += _call_rows(task)
            own_tariffs = {name: of_models[model_of[key]] for name, of_models in tariffs.items()}
            of_tasks += _task_rows(task, calls, models, works(task, turns), own_tariffs, pace)
    if not of_calls:
        why = ", ".join(f"{reason}: {count:,}" for reason, count in left_out.items())
        raise DataError(f"{str(folder)!r} has no tool call of a loop that can be judged{f' ({why})' if why else ''}")
    titles = {name: _title(list(of_models.values())) for name, of_models in tariffs.items()}
    return Plannable(folder, pd.DataFrame(of_calls), pd.DataFrame(of_tasks), dict(left_out), titles, pricing)


def _tariffs(models: Sequence[str], prices: Sequence[str]) -> tuple[dict[str, dict[str, Tariff]], str]:
    """Each price by its name, as the tariff of each model, and where they come from (`Plannable.pricing`)."""
    listed = {model: found for model in models if (found := price_of(model))}
    if prices or len(listed) < len(models):
        note = "" if prices else example_note([each for each in models if each not in listed], "plannable")
        return {name: dict.fromkeys(models, named_tariff(name)) for name in prices or SHOWN}, note
    own = {model: named_tariff(price) for model, price in listed.items()}
    uncached = {model: tariff.without_cache() for model, tariff in own.items()}
    names = dict.fromkeys(listed.values())
    note = "each trajectory is priced at its own model's prices" if len(names) > 1 else ""
    return {" and ".join(names): own, "none": uncached}, note


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


def _traces(path: Path, architecture: str, tasks: Container[str]) -> Iterator[dict[str, Any]]:
    """The lines of one architecture's tasks; damaged ones are left out."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                trace = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(trace, dict) or trace.get("architecture") != architecture:
                continue
            if str(trace.get("example_id", "")) in tasks:
                yield trace


_Columns = Mapping[str, NDArray[Any]]


def _calls_by_task(folder: Path) -> dict[tuple[str, str, int], _Columns]:
    """The calls of each trajectory, in their order, without those that are in no question's cost."""
    try:
        table = read_table(folder / CALLS_FILE, CALLS, columns=list(_READ))
    except FileNotFoundError:
        raise DataError(f"{str(folder)!r} has no {CALLS_FILE}") from None
    frame = table.to_pandas()
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
        sources = [source for value in step.values for source in value.copied_from(start)]
        guessed = [value.by_chance for value in step.values if value.by_chance and value.kind(start) != "constant"]
        yield {
            **dict(zip(_KEY, (task.architecture, task.example_id, task.trial), strict=True)),
            "step": position, "turn": step.turn, "segment": step.segment, "tool": step.tool,
            **{kind: kinds[kind] for kind in KINDS},
            "values": len(step.values),
            "chosen": sum(source.how == "choice" for source in sources),
            "in_longer_text": sum(source.how == "part" for source in sources),
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
            usd = tariff.cost_usd(columns["input_tokens"], cached, written, columns["output_tokens"], batch=False)
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

    def seconds(self, tokens: float) -> float:
        return self.start + self.a_token * tokens


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
    read = sum(pace.seconds(count_tokens(each.value)) for each in work.extractions)
    return float(kept + read + seconds[list(others)].sum())
