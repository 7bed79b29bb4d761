"""Rows of questions.parquet as the columns of the page's table: a line a question, an outcome for each system.

    {"ids": ["q1"], "types": ["bridge"], "questions": ["…"], "answers": [["Oslo"]],
     "systems": [{"label": "rewoo", "outcome": "r", "tokens": [1711], "prediction": ["Oslo"], …}]}

Outcomes are one letter a line: `r` right, `w` wrong, `f` failed by the infrastructure, `-` not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rewoo_bench.analysis.compare import Key, labels, run_names
from rewoo_bench.runs.rows import UNMETERED, failed, flagged

if TYPE_CHECKING:
    import pandas as pd


RIGHT, WRONG, FAILED, NOT_ASKED = "r", "w", "f", "-"
LINE = ["dataset", "example_id", "trial"]


class Line(NamedTuple):
    """A question of the page: which rows of the tables it is of."""

    dataset: str
    example_id: str
    trial: int


@dataclass(frozen=True)
class QuestionTable:
    """The page's table, and what is needed to find the trajectories of its lines."""

    columns: dict[str, Any]
    lines: Sequence[Line]
    systems: Sequence[Key]


def question_table(rows: pd.DataFrame, *, texts: bool = True) -> QuestionTable:
    """The rows as a table with a line for each data set, question and trial, in their order."""
    systems = {Key(*map(str, key)): own for key, own in rows.groupby(list(Key._fields), sort=False, observed=True)}
    keys = list(systems)
    index = rows[LINE].drop_duplicates(ignore_index=True)
    position = index.assign(line=range(len(index)))
    columns: dict[str, Any] = {
        "ids": index["example_id"].astype(str).tolist(),
        "trials": index["trial"].astype(int).tolist(),
        "datasets": index["dataset"].astype(str).tolist(),
    }
    first = rows.drop_duplicates(LINE)
    columns["types"] = first["question_type"].astype(str).replace("<NA>", "").tolist()
    columns["questions"] = first["question"].astype(object).fillna("").tolist() if texts else [""] * len(index)
    columns["answers"] = (
        [[] if each is None else list(map(str, each)) for each in _plain(first["answers"])]
        if texts
        else [[] for _ in range(len(index))]
    )
    columns["systems"] = [
        _system(label, key, own.merge(position, on=LINE), len(index), texts=texts)
        for (key, own), label in zip(systems.items(), labels(keys, run_names(rows)), strict=True)
    ]
    lines = list(map(Line, columns["datasets"], columns["ids"], columns["trials"]))
    return QuestionTable(columns, lines, keys)


def _system(label: str, key: Key, rows: pd.DataFrame, lines: int, *, texts: bool) -> dict[str, Any]:
    """A system's columns, each as long as the table; null where a question wasn't asked of it."""
    at = rows["line"].to_numpy()
    right = _plain(rows["exact_match"])
    lost, unseen = failed(rows), flagged(rows, UNMETERED)
    outcome = np.full(lines, NOT_ASKED)
    outcome[at] = [FAILED if lost[i] else RIGHT if value else WRONG for i, value in enumerate(right)]

    def taken(name: str, digits: int) -> list[Any]:
        """What the question took; not known where no call was metered."""
        values = column(name, digits)
        for line in at[unseen]:
            values[line] = None
        return values

    def column(name: str, digits: int | None = None) -> list[Any]:
        values: list[Any] = [None] * lines
        if name not in rows.columns:  # an older run
            return values
        for line, value in zip(at, _plain(rows[name]), strict=True):
            values[line] = value if value is None or digits is None else round(float(value), digits)
        return values

    return {
        "label": label,
        "architecture": key.architecture,
        "model": key.model,
        "outcome": "".join(outcome),
        "stop": column("stop_reason"),
        "tokens": taken("total_tokens", 0),
        "calls": taken("llm_calls", 0),
        "latency": column("latency_s", 3),
        "startup": column("startup_s", 3),
        "cost": taken("cost_usd", 8),
        "flags": [[] if each is None else [str(flag) for flag in each] for each in column("flags")],
        "f1": column("f1", 3),
        "prediction": column("prediction") if texts else [None] * lines,
        "error": column("error") if texts else [None] * lines,
    }


def _plain(column: pd.Series[Any]) -> list[Any]:
    """The column as Python's own values, None where there is none."""
    return column.astype(object).where(column.notna(), None).tolist()
