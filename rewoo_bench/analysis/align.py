"""Rows of several systems -> the same questions and trials of each, in the same order; or why they can't be compared.

rows, warnings = aligned({"rewoo": …, "react": …}, unlike=[], intersect=False)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.text.words import counted

if TYPE_CHECKING:
    import pandas as pd


Keys = NDArray[np.int64]
_UNUSED = ["question", "answers", "prediction", "error"]  # heavy, and no measure reads them


def aligned(
    systems: Mapping[str, pd.DataFrame], unlike: Sequence[str], *, intersect: bool
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The rows by system, and warnings. `unlike` are reasons against comparing that the manifests give.

    Raises `UsageError` for a question that a system has twice, and, but for `intersect`, where the
    systems didn't answer the same questions.
    """
    keys = _keys(systems)
    for label, own in keys.items():
        _check_once(label, systems[label], own)
    shared = next(iter(keys.values()))
    for own in keys.values():
        shared = np.intersect1d(shared, own)
    reasons = [*unlike, *_others(systems, keys)]
    if reasons and not intersect:
        hint = "--intersect compares on the questions that they share" if len(shared) else "they share no question"
        raise UsageError(f"not comparable: {'; '.join(reasons)}; {hint}")
    if not len(shared):
        raise UsageError(f"not comparable: {'; '.join(reasons)}; they share no question")
    rows = {label: _ordered(systems[label], own, shared) for label, own in keys.items()}
    if not reasons:
        return rows, []
    return rows, [f"not all answered the same questions: {'; '.join(reasons)}; {_only(shared, rows)}"]


def _keys(systems: Mapping[str, pd.DataFrame]) -> dict[str, Keys]:
    """A number for each question and trial, the same in every system and whatever the order of rows."""
    import pandas as pd

    trials = 1 + max(int(rows["trial"].max()) for rows in systems.values())
    codes = pd.factorize(pd.concat([rows["example_id"] for rows in systems.values()]), sort=True)[0]
    parts = np.split(codes.astype(np.int64), np.cumsum([len(rows) for rows in systems.values()])[:-1])
    return {
        label: part * trials + rows["trial"].to_numpy(dtype=np.int64)
        for (label, rows), part in zip(systems.items(), parts, strict=True)
    }


def _check_once(label: str, rows: pd.DataFrame, keys: Keys) -> None:
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(again):
        row = rows.iloc[order[again[0]]]
        where = f"question {row['example_id']!r}, trial {row['trial']}"
        raise UsageError(f"{label!r} has {where} more than once in the run {row['run_id']!r}; was it given twice?")


def _others(systems: Mapping[str, pd.DataFrame], keys: Mapping[str, Keys]) -> list[str]:
    """How each system's questions differ from those of the first."""
    (first, reference), *rest = keys.items()
    unit = "row" if any(rows["trial"].max() > 0 for rows in systems.values()) else "question"
    reasons = []
    for label, own in rest:
        missing, more = len(np.setdiff1d(reference, own)), len(np.setdiff1d(own, reference))
        lacks = [f"lacks {missing:,} of the {counted(len(reference), unit)} of {first!r}"] if missing else []
        has = [f"has {counted(more, unit)} that {first!r} lacks"] if more else []
        if lacks or has:
            reasons.append(f"{label!r} {' and '.join([*lacks, *has])}")
    return reasons


def _ordered(rows: pd.DataFrame, keys: Keys, shared: Keys) -> pd.DataFrame:
    light = rows.drop(columns=_UNUSED, errors="ignore")
    order: NDArray[Any] = np.argsort(keys, kind="stable")
    return light.iloc[order[np.isin(keys[order], shared, assume_unique=True)]]


def _only(shared: Keys, rows: Mapping[str, pd.DataFrame]) -> str:
    questions = next(iter(rows.values()))["example_id"].nunique()
    trials = f" ({counted(len(shared), 'row')} with their trials)" if len(shared) != questions else ""
    return f"all below is of the {counted(questions, 'question')} that all share{trials}"


# The names of a comparison's systems, and the pairs that it compares.
#
# names = run_names(rows)                              # {"20261124-…-1f0a": "my-run"}: the run's folder
# labels(keys, names)                                  # ["rewoo, run before", "rewoo, run after"]
# chosen(systems, None, all_pairs=False)               # (a, b) of each pair, as labels


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
