"""A run's traces and calls -> which results a model had to read, and what a plan would have taken (planned.py).

    found = plannable(Path("results/local/mine"))
    found.calls         # a row for each tool call: its values by kind, its choice, whether its result had to be read
    found.tasks         # a row for each trajectory: the loop, and each way to plan: model calls, tokens, dollars
    print(tables.text(found))

Only loops are read: architectures that plan ahead have nothing to gain, nor have those that call no tool. Intervals are
over tasks, the trials of a task inside them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.call_costs import cached_tokens
from rewoo_bench.analysis.compare import compare_run
from rewoo_bench.analysis.law import cost_of
from rewoo_bench.analysis.plannable.attacks import of_attacks, ways_of_attacks
from rewoo_bench.analysis.plannable.planned import WAYS, Loop, graph, passed_on, planned, read_results
from rewoo_bench.analysis.plannable.steps import KINDS, TracedTask, traced_tasks
from rewoo_bench.analysis.prices import SHOWN, example_note, own_tariffs, pricing_of
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.analysis.verdict import verdict
from rewoo_bench.config.price_sheets import Tariff, named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, NO_STEP_ROLES, SHARED, UNPRICED_ROLES
from rewoo_bench.runs.folder import CALLS_FILE, TRACES_FILE, load_table, manifests, read_table
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.rows import Rows

_KEY = ("architecture", "example_id", "trial")
_AMOUNTS = ("input_tokens", "output_tokens", *SHARED)
_READ = (*_KEY, "kind", "role", "place", "reasoning_tokens", *_AMOUNTS)
_PLANS = {"planner", "router"}
"""Roles of calls that a loop doesn't make."""
_BUNDLED = {"react", "react-native", "react-code"}
"""Runners of loops whose instructions are this package's."""
_TURN = re.compile(r"turn (\d+)$")


@dataclass(frozen=True, slots=True)
class Plannable:
    """What a plan would have taken in a run. `left_out` counts trajectories, by the reason why they aren't in it."""

    folder: Path
    calls: pd.DataFrame
    tasks: pd.DataFrame
    left_out: Mapping[str, int]
    prices: Mapping[str, str]
    """Each price, and what it is: `OpenAI's rule, gpt-4o`."""
    pricing: str = ""
    """Where the prices come from, unless they are those of the run's one model, or were given."""
    attacks: pd.DataFrame = field(default_factory=pd.DataFrame)
    """By which way attacks succeeded (attacks.py); without a row where there were none."""
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
    runs = manifests(folder)
    tariffs, pricing = _tariffs(list(dict.fromkeys(model_of.values())), prices, runs)
    path = folder / TRACES_FILE
    if not path.is_file():
        raise DataError(
            f"{str(folder)!r} has no {TRACES_FILE}, as a published copy: nothing is known of its tool calls"
        )
    own_calls, traces = _calls_by_task(folder), _traces(path)
    bundled = {each.name for run in runs.values() for each in run.architectures if each.runner in _BUNDLED}
    left_out: Counter[str] = Counter()
    loops: list[str] = []
    of_calls: list[dict[str, Any]] = []
    of_tasks: list[dict[str, Any]] = []
    for architecture in dict.fromkeys(row["architecture"] for row in rows):
        own = {key: calls for key, calls in own_calls.items() if key[0] == architecture}
        if any(_PLANS & set(calls["role"]) for calls in own.values()):
            left_out[f"{architecture} plans ahead itself"] += len(own)
            continue
        loops.append(architecture)
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
            loop = _loop(calls, models, is_bundled=architecture in bundled)
            judged.append(list(_task_rows(task, calls, loop, [place for _, place in models], own_tariffs)))
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
    attacks = ways_of_attacks(table, loops)
    if len(attacks) and (unjudged := len(of_attacks(table, loops)) - attacks["attacks"].sum()):
        left_out["an attack without a verdict, as of a case that an error ended"] += int(unjudged)
    return Plannable(folder, *frames, dict(left_out), titles, pricing, attacks, _measured(folder, Rows(table)))


def _measured(folder: Path, rows: Rows) -> dict[str, list[str]]:
    """By loop what each planner of the run took of the same questions."""
    pricing, found = pricing_of([folder], rows, manifests(folder)), dict[str, list[str]]()
    compared = compare_run(rows, pricing)
    for pair in compared.pairs if compared else ():
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
    rules = [each.rule_name if each.rule else "no cache" for each in tariffs]
    models = [each.model for each in tariffs]
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
    read, passed = read_results(task), passed_on(task)
    for (position, needs, depth), step in zip(graph(task), task.steps, strict=True):
        start = task.starts[step.segment]
        kinds = Counter(value.kind(start) for value in step.values)
        copied = [found for value in step.values for found in value.copied_from(start)]
        yield {
            **dict(zip(_KEY, (task.architecture, task.example_id, task.trial), strict=True)),
            "step": position, "turn": step.turn, "segment": step.segment, "tool": step.tool,
            **{kind: kinds[kind] for kind in KINDS},
            "values": len(step.values),
            "is_read": position in read, "is_passed_on": position in passed and position not in read,
            "chosen": sum(source.how == "choice" for source in copied),
            "in_longer_text": sum(source.how == "part" for source in copied),
            "choice": step.choice, "depth": depth, "copies_from": list(needs),
            "values_plannable": not kinds["derived"],
            "plannable": not kinds["derived"] and step.choice == "unconditional",
        }  # fmt: skip


def _task_rows(
    task: TracedTask, calls: _Columns, loop: Loop, positions: Sequence[int], tariffs: Mapping[str, Tariff]
) -> Iterator[dict[str, Any]]:
    """The loop as it was, and each way to plan by the law."""
    models = [place for place, kind in enumerate(calls["kind"]) if kind == "model" and calls["input_tokens"][place] > 0]
    others = [place for place in models if place not in positions]  # tools that ask a model: as they were
    key = dict(zip(_KEY, (task.architecture, task.example_id, task.trial), strict=True))
    yield {
        **{**key, "way": "loop", "model_calls": len(models), "sequential_calls": len(models)},
        **_amounts({name: calls[name][models].astype(float) for name in _AMOUNTS}, tariffs),
    }
    for way in WAYS:
        found = planned(task, loop, way)
        costs = [cost_of(found.sent, found.in_sequence, tariff) for tariff in tariffs.values()]
        own = {
            **{"input_tokens": costs[0].input_tokens, "output_tokens": costs[0].output_tokens},
            **{f"usd:{name}": each.usd for name, each in zip(tariffs, costs, strict=True)},
        }
        same = _amounts({name: calls[name][others].astype(float) for name in _AMOUNTS}, tariffs)
        yield {
            **{**key, "way": way, "model_calls": len(found.sent) + len(others)},
            "sequential_calls": found.in_sequence + len(others),
            **{name: value + same[name] for name, value in own.items()},
        }


def _amounts(columns: Mapping[str, Floats], tariffs: Mapping[str, Tariff]) -> dict[str, float]:
    """Tokens of recorded calls, and their dollars under each price."""
    tokens = columns["input_tokens"], columns["output_tokens"]
    found = {"input_tokens": float(tokens[0].sum()), "output_tokens": float(tokens[1].sum())}
    for name, tariff in tariffs.items():
        cached, written = cached_tokens(columns, tariff.rule)
        written = written * float(tariff.cache_write is not None)
        found[f"usd:{name}"] = float(tariff.cost_usd(tokens[0], cached, written, tokens[1]).sum())
    return found


def _loop(calls: _Columns, models: Sequence[tuple[int, int]], *, is_bundled: bool) -> Loop:
    places = [place for _, place in models]
    names = ("input_tokens", "output_tokens", "shared_question_tokens", "shared_run_tokens", "reasoning_tokens")
    inputs, outputs, before, between, reasoning = (np.nan_to_num(calls[name][places].astype(float)) for name in names)
    turns, mean = [turn for turn, _ in models], float(reasoning.mean())
    return Loop(turns, inputs.tolist(), outputs.tolist(), before.tolist(), between.tolist(), mean, is_bundled)
