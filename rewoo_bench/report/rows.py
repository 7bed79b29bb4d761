"""Rows of questions.parquet as the columns of the page's table: a line a question, an outcome for each system.

    {"ids": ["q1"], "types": ["bridge"], "questions": ["…"], "answers": [["Oslo"]],
     "systems": [{"label": "rewoo", "outcome": "r", "tokens": [1711], "prediction": ["Oslo"], …}]}

Outcomes are one letter a line: `r` right, `w` wrong, `f` failed by the infrastructure, `u` not scored, for which there
is no gold answer, `-` not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rewoo_bench.analysis.compare import Key, labels, run_names
from rewoo_bench.runs.rows import UNMETERED, Rows, failed

if TYPE_CHECKING:
    import pandas as pd


RIGHT, WRONG, FAILED, NOT_SCORED, NOT_ASKED = "r", "w", "f", "u", "-"


class QuestionKey(NamedTuple):
    """A question of the page: which rows of the tables it is of."""

    dataset: str
    example_id: str
    trial: int


_KEY = list(QuestionKey._fields)


@dataclass(frozen=True)
class QuestionTable:
    """The page's table, and what is needed to find the trajectories of its lines."""

    columns: dict[str, Any]
    lines: Sequence[QuestionKey]
    systems: Sequence[Key]


def question_table(rows: pd.DataFrame, *, texts: bool = True) -> QuestionTable:
    """The rows as a table with a line for each data set, question and trial, in their order."""
    first = rows.drop_duplicates(_KEY)
    size = len(first)
    position = first[_KEY].assign(line=range(size))
    answers = _plain(first["answers"]) if texts else [None] * size
    columns: dict[str, Any] = {
        "ids": first["example_id"].astype(str).tolist(),
        "trials": first["trial"].astype(int).tolist(),
        "datasets": first["dataset"].astype(str).tolist(),
        "types": first["question_type"].astype(str).replace("<NA>", "").tolist(),
        "questions": first["question"].astype(object).fillna("").tolist() if texts else [""] * size,
        "answers": [[] if each is None else list(map(str, each)) for each in answers],
    }
    systems = {Key(*map(str, key)): own for key, own in rows.groupby(list(Key._fields), sort=False, observed=True)}
    keys = list(systems)
    columns["systems"] = [
        {
            "label": label,
            "architecture": key.architecture,
            "model": key.model,
            **_columns(own.merge(position, on=_KEY), size, texts=texts),
        }
        for (key, own), label in zip(systems.items(), labels(keys, run_names(Rows(rows))), strict=True)
    ]
    lines = list(map(QuestionKey, columns["datasets"], columns["ids"], columns["trials"]))
    return QuestionTable(columns, lines, keys)


def _columns(rows: pd.DataFrame, lines: int, *, texts: bool) -> dict[str, Any]:
    """A system's columns, each as long as the table; null where a question wasn't asked of it."""
    at, lost, unseen = rows["line"].to_numpy(), failed(rows), Rows(rows).flagged(UNMETERED)
    timed = rows.assign(latency_s=rows["latency_s"].mask(Rows(rows).oracle))  # an oracle's seconds are the harness's

    def column(name: str, digits: int | None = None, *, metered: bool = False) -> list[Any]:
        """What the questions took (`metered`) isn't known where no call was metered."""
        values: list[Any] = [None] * lines
        for line, value, unknown in zip(at, _plain(timed[name]), unseen, strict=True):
            if not (metered and unknown):
                values[line] = value if value is None or digits is None else round(float(value), digits)
        return values

    outcome = np.full(lines, NOT_ASKED)
    outcome[at] = [
        FAILED if lost[i] else NOT_SCORED if value is None else RIGHT if value else WRONG
        for i, value in enumerate(_plain(rows["exact_match"]))
    ]
    return {
        "outcome": "".join(outcome),
        "stop": column("stop_reason"),
        "tokens": column("total_tokens", 0, metered=True),
        "calls": column("llm_calls", 0, metered=True),
        "latency": column("latency_s", 3),
        "startup": column("startup_s", 3),
        "changes": column("state_changes", 0),
        "unasked": column("unasked_changes", 0),
        "cost": column("cost_usd", 8, metered=True),
        "flags": [[] if each is None else [str(flag) for flag in each] for each in column("flags")],
        "f1": column("f1", 3),
        "prediction": column("prediction") if texts else [None] * lines,
        "error": column("error") if texts else [None] * lines,
    }


def _plain(column: pd.Series[Any]) -> list[Any]:
    """The column as Python's own values, None where there is none."""
    return column.astype(object).where(column.notna(), None).tolist()
