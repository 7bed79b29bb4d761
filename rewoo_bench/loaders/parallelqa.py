"""Rows of ParallelQA (Kim et al., 2024, arXiv:2312.04511) as examples.

    {"id": 1, "question": "How much higher would … be in metres, if …?", "answer": "201.9", "branch": 2}

`branch` is the number of independent look-ups. There are no documents and no gold chain: the pages are Wikipedia's.
"""

from __future__ import annotations

from rewoo_bench.loaders.row_fields import HIDDEN, Row, RowError, answers, identifier, text
from rewoo_bench.types import Example


def parallelqa_example(row: Row) -> Example:
    """A row as an example; its kind is its number of branches (`2 branches`). Raises `RowError`."""
    id_, question, answer = identifier(row, "id"), text(row, "question"), row.get("answer")
    if answer is None:
        raise RowError(f"no answer under 'answer'; {HIDDEN}")
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        answer = str(answer)
    branches = row.get("branch")
    kind = "1 branch" if str(branches) == "1" else f"{branches} branches"
    return Example(id_, question, answers((answer,), "answer"), (), kind)
