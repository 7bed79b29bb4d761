"""Rows of several systems -> the same questions and trials of each, in the same order; or why they can't be compared.

rows, warnings = aligned({"rewoo": …, "react": …}, unlike=[], intersect=False)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.errors import UsageError
from rewoo_bench.text.counts import counted

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
