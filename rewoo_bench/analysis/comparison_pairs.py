"""The names of a comparison's systems, and the pairs that it compares.

names = run_names(rows)                              # {"20261124-…-1f0a": "my-run"}: the run's folder
labels(keys, names)                                  # ["rewoo, run before", "rewoo, run after"]
chosen(systems, None, all_pairs=False)               # (a, b) of each pair, as labels
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from rewoo_bench.errors import UsageError, unknown

if TYPE_CHECKING:
    import pandas as pd


class Key(NamedTuple):
    """The identity of a system: rows with the same values in these columns are of the same one."""

    run_id: str
    architecture: str
    dataset: str
    model: str


def run_names(rows: pd.DataFrame) -> dict[str, str]:
    """Run id -> the name of its folder, where `load` read the rows; else the id, or its last part if that is enough."""
    runs = list(map(str, rows["run_id"].unique()))
    short = {run: run.rpartition("-")[2] for run in runs}
    if "run_folder" in rows.columns:
        folders = rows.drop_duplicates("run_id").set_index("run_id")["run_folder"]
        short = {run: str(folders[run]) for run in runs}
    return short if len(set(short.values())) == len(short) else {run: run for run in runs}


def labels(keys: Sequence[Key], names: Mapping[str, str]) -> list[str]:
    """Names of systems: the architecture, and the model and the run where the others differ in them."""
    models = len({key.model for key in keys}) > 1
    plain = [f"{key.architecture}, {key.model}" if models else key.architecture for key in keys]
    alike = Counter(plain)
    return [
        f"{label}, run {names[key.run_id]}" if alike[label] > 1 else label
        for label, key in zip(plain, keys, strict=True)
    ]


def chosen(
    systems: Mapping[str, Key], baseline: str | None, *, all_pairs: bool, within_model: bool = False
) -> list[tuple[str, str]]:
    """The pairs (a, b) to compare, of the systems of one data set by label.

    `within_model`: of each model apart, unless no model has two systems.
    Each with each, or the others with the `baseline`. Without one: where two runs have the same
    architectures, each architecture before and after; else the others with the first. Raises `UsageError`.
    """
    if within_model:
        models = [
            {label: key for label, key in systems.items() if key.model == model}
            for model in dict.fromkeys(key.model for key in systems.values())
        ]
        if len(models) > 1 and max(map(len, models)) > 1:
            return [pair for model in models for pair in chosen(model, baseline, all_pairs=all_pairs)]
    names = list(systems)
    if all_pairs:
        return list(combinations(names, 2))
    if baseline is None and (twins := before_and_after(systems)):
        return twins
    first = names[0] if baseline is None else _named(baseline, names)
    return [(first, label) for label in names if label != first]


def before_and_after(systems: Mapping[str, Key]) -> list[tuple[str, str]]:
    """Each architecture in the first run and in the second; empty unless both runs have the same two or more."""
    runs: dict[str, dict[str, str]] = {}
    for label, key in systems.items():
        runs.setdefault(key.run_id, {})[key.architecture] = label
    if len(runs) != 2 or sum(map(len, runs.values())) != len(systems):
        return []
    before, after = runs.values()
    if before.keys() != after.keys() or len(before) < 2:
        return []
    return [(label, after[architecture]) for architecture, label in before.items()]


def _named(baseline: str, labels: Sequence[str]) -> str:
    exact = [label for label in labels if label == baseline]
    matches = exact or [label for label in labels if label.split(", ")[0] == baseline]
    if not matches:
        raise UsageError(unknown("baseline", baseline, labels))
    if len(matches) > 1:
        raise UsageError(f"baseline {baseline!r} may be any of {', '.join(map(repr, matches))}; give one of them")
    return matches[0]
