"""Reads single fields of a raw row, in each spelling of its sources."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter

from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.types import Example

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


def encodable(example: Example) -> Example:
    """The example with U+FFFD for every half of a surrogate pair, which no file can hold.

    Raises `RowError` where the id has one: it might become that of another question.
    """
    texts = [example.question, *example.answers, example.kind, example.level]
    texts += [text for page in example.documents for text in (page.title, page.text)]
    texts += [text for hop in example.chain for text in (hop.title, hop.value, hop.ask)]
    texts += [str(value) for action in example.actions for value in action.arguments.values()]
    try:
        "".join([example.id, *texts]).encode()
        return example
    except UnicodeEncodeError:
        clean = replace_surrogates
    if clean(example.id) != example.id:
        raise RowError(f"the id {example.id!r} has half of a surrogate pair, expected Unicode text")
    return TypeAdapter(Example).validate_json(clean(json.dumps(asdict(example), ensure_ascii=False)))


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


def paired_fields(value: object, left: str, right: str) -> list[tuple[Any, Any]]:
    """Pairs of two sub-fields, from any of the forms that the same table is published in.

        [["Ann", 0]]                               official files
        {"title": ["Ann"], "sent_id": [0]}         Hugging Face rows
        [{"title": "Ann", "sent_id": 0}]           newer parquet exports

    A pair whose right side is missing is left out. Raises `RowError` for any other form.
    """
    read: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        rights = list(value.get(right) or ())
        lefts = list(value.get(left) or [None] * len(rights))
        if rights and len(lefts) != len(rights):
            raise RowError(f"{len(lefts)} values of {left!r} but {len(rights)} of {right!r}")
        read = list(zip(lefts, rights, strict=False))
    elif value is not None and not isinstance(value, list):
        raise RowError(f"expected a list of {left} and {right}, got {value!r:.80}")
    else:
        for item in value or ():
            if isinstance(item, Mapping):
                read.append((item.get(left), item.get(right)))
            elif isinstance(item, list) and len(item) == 2:
                read.append((item[0], item[1]))
            else:
                raise RowError(f"expected {left} and {right}, got {item!r:.80}")
    return [(first, second) for first, second in read if second is not None]
