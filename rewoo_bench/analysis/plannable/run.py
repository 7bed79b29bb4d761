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
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

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
from rewoo_bench.analysis.prices import SHOWN, cached_tokens
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.config.price_sheets import named_tariff, price_of
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, NO_STEP_ROLES, SHARED, UNPRICED_ROLES
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE, load_table, read_table
from rewoo_bench.text.tokens import count_tokens

_KEY = ("architecture", "example_id", "trial")
_READ = (*_KEY, "kind", "role", "place", "input_tokens", "output_tokens", "latency_s", *SHARED)
_PLANS = {"planner", "router"}
"""Roles of calls that a loop doesn't make."""
_TURN = re.compile(r"turn (\d+)$")


@dataclass(frozen=True, slots=True)
class Plannable:
    """What could have been planned in a run. `left_out` counts trajectories, by the reason why they aren't in it."""

    folder: Path
    calls: pd.DataFrame
    tasks: pd.DataFrame
    left_out: Mapping[str, int]
    prices: Mapping[str, str]
    """Each price, and what it is: `OpenAI's rule, gpt-4o`."""
    unpriced: str = ""
    """The run's model, where no sheet has it, so that the prices are an example's."""

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

    By default they are those of the run's model with the rule of its provider's cache and without a cache, where a
    sheet has the model, else those of `SHOWN`.

    Of each architecture at most `most` trajectories are read, those of a random sample of tasks, always the same one.
    `on_task` is called with each trajectory that counts.
    Raises `DataError` where the run has no traces or no loop with tool calls, and `UsageError` for a wrong price.
    """
    rows = load_table(folder).select([*_KEY, "model"]).to_pylist()
    named = Counter(str(row["model"]) for row in rows).most_common(1)
    own_price = price_of(named[0][0]) if named else None
    tariffs = {name: named_tariff(name) for name in prices or ([own_price] if own_price else SHOWN)}
    if own_price and not prices:  # the same prices without the cache
        tariffs["none"] = replace(tariffs[own_price], rule=None, cache_rule=SHOWN["none"])
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
            of_tasks += _task_rows(task, calls, models, works(task, turns), tariffs)
    titles = {name: f"{each.cache_rule.partition(':')[0]}, {each.model}" for name, each in tariffs.items()}
    if not of_calls:
        why = ", ".join(f"{reason}: {count:,}" for reason, count in left_out.items())
        raise DataError(f"{str(folder)!r} has no tool call of a loop that can be judged{f' ({why})' if why else ''}")
    unpriced = str(named[0][0]) if named and not (own_price or prices) else ""
    return Plannable(folder, pd.DataFrame(of_calls), pd.DataFrame(of_tasks), dict(left_out), titles, unpriced)


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
    tariffs: Mapping[str, Any],
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
            "latency_s": _latency(calls, positions, work),
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


def _latency(calls: _Columns, positions: Sequence[int], work: Work) -> float:
    """Seconds of the model calls that remain, one after the other; NaN where they weren't measured.

    A call that writes for others takes longer by their output, at the trajectory's own seconds for a token.
    """
    seconds, output = calls["latency_s"].astype(float), calls["output_tokens"].astype(float)
    own, written = seconds[list(positions)], output[list(positions)]
    for_a_token = own.sum() / written.sum() if written.sum() else 0.0
    return float(
        sum(
            own[each.call] + for_a_token * sum(written[other] for other in each.writes if other != each.call)
            for each in work.kept
        )
    )
