"""Reads single fields of a raw row, in each spelling of its sources."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from typing import Any

RawRow = Mapping[str, Any]

ANSWER_KEYS = ("answers", "answer", "golden_answers")
"""Names of the field with the answers of a question; NQ-open has a list under `answer`, FlashRAG `golden_answers`."""
HIDDEN_ANSWER = "every question needs one; the test splits of public sets hide theirs"


class RowError(ValueError):
    """A faulty row; becomes a `DataError` that names the file and the row."""


def text_field(row: RawRow, key: str) -> str:
    """The text under `key`, without outer white space. Raises `RowError` where there is none."""
    if key not in row:
        raise RowError(f"no {key!r}; it has {', '.join(sorted(map(str, row)))}")
    value = row[key]
    if not isinstance(value, str) or not value.strip():
        raise RowError(f"{key!r} is {value!r}, expected text")
    return value.strip()


def identifier(row: RawRow, key: str) -> str:
    """The id under `key`: a text, or a whole number as text. Raises `RowError` where there is none."""
    value = row.get(key)
    return str(value) if type(value) is int else text_field(row, key)


def gold(row: RawRow, *keys: str) -> Any:
    """The answer under the first of the keys that the row has. Raises `RowError` where it is missing or blank."""
    key = next((key for key in keys if key in row), keys[0])
    value = row.get(key)
    if value is None or value == [] or (isinstance(value, str) and not value.strip()):
        raise RowError(f"no answer under {key!r}; {HIDDEN_ANSWER}")
    return value


def plain_answer(value: object, key: str) -> str | None:
    """A text, a number or a truth value as text; None stays. Raises `RowError` for anything else."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return str(value).lower()
    raise RowError(f"{key!r} has {value!r:.80}, expected a text or a number")


def listed(text: str, *, numbers: bool = False) -> list[object] | None:
    """The items of a list that a text is, as JSON or Python write one; None where it is no such list.

    Items are texts, with `numbers` also numbers.
    """
    if not text.lstrip().startswith(("[", "(")):
        return None
    try:
        items = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return None
    expected = (str, int, float) if numbers else str
    is_list = isinstance(items, list | tuple) and all(isinstance(item, expected) for item in items)
    return list(items) if is_list else None


def answers(texts: Iterable[object], key: str) -> tuple[str, ...]:
    """The distinct texts that aren't blank, in order. Raises `RowError` where none is left."""
    golds = tuple(dict.fromkeys(item.strip() for item in texts if isinstance(item, str) and item.strip()))
    if not golds:
        raise RowError(f"no answer under {key!r}; {HIDDEN_ANSWER}")
    return golds


def paired_fields(value: Any, left: str, right: str) -> list[tuple[Any, Any]]:
    """Pairs of two sub-fields, from any of the forms that the same table is published in.

        [["Ann", 0]]                               official files
        {"title": ["Ann"], "sent_id": [0]}         Hugging Face rows
        [{"title": "Ann", "sent_id": 0}]           newer parquet exports

    A pair whose right side is missing is left out.
    """
    if isinstance(value, Mapping):
        rights = value.get(right) or []
        read = list(zip(value.get(left) or [None] * len(rights), rights, strict=True))
    else:
        read = [(each.get(left), each.get(right)) if isinstance(each, Mapping) else tuple(each) for each in value or ()]
    return [(first, second) for first, second in read if second is not None]
