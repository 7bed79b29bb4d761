"""Rows of the question files that came with the ReWOO paper (Xu et al., 2023, arXiv:2305.18323) as examples.

    input,target
    "How far does it fall in 2 s?","Can be one of ['19.6 m', '20 m']"     physics
    "Determine whether … plausible or implausible: …",plausible            sports understanding
    "Answer with 'Yes' or 'No': …",Yes                                     StrategyQA

The three have the same columns, so their rows are read only under the name of a data set. They have no ids: the row's
number is the id.
"""

from __future__ import annotations

import ast

from rewoo_bench.loaders.row_fields import Row, RowError, answers, gold, identifier, text
from rewoo_bench.loaders.strategyqa import yes_or_no
from rewoo_bench.scoring.yes_no import says_yes
from rewoo_bench.types import Example

_CHOICE = "Can be one of "


def physics_example(row: Row) -> Example:
    """A physics question with every accepted rounding of its answer. Raises `RowError`."""
    target = str(gold(row, "target")).strip()
    golds = _choices(target) if target.startswith(_CHOICE) else [target]
    return Example(identifier(row, "id"), text(row, "input"), answers(golds, "target"))


def sports_example(row: Row) -> Example:
    """A statement about sports that is plausible or implausible. Raises `RowError`."""
    target = str(gold(row, "target")).strip()
    if says_yes(target) is None:
        raise RowError(f"'target' is {target!r:.80}, expected plausible or implausible")
    return Example(identifier(row, "id"), text(row, "input"), (target,))


def strategyqa_file_example(row: Row) -> Example:
    """A question for yes or no. Raises `RowError`."""
    return Example(identifier(row, "id"), text(row, "input"), (yes_or_no(row, "target"),))


def _choices(target: str) -> list[object]:
    try:
        choices = ast.literal_eval(target.removeprefix(_CHOICE))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        choices = None
    if not isinstance(choices, list):
        raise RowError(f"'target' is {target!r:.80}, expected {_CHOICE}[…], a list of texts")
    return choices
