"""The door for JSON that somebody else wrote: a provider, a server, an agent, a model, a data file.

    load_json('{"a": [1, NaN]}')    # {"a": [1, None]}

What it returns is nested no deeper than `DEEPEST`, so that whoever goes through it may call itself for each level.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

from pydantic_core import from_json

from rewoo_bench.text.escaping import replace_surrogates

DEEPEST = 200
"""Levels of a document."""
TOO_DEEP = f"it is nested deeper than {DEEPEST} levels"


def load_json(data: str | bytes) -> Any:
    """The value of a JSON text. Raises `ValueError`, also where it is nested too deeply or a number has no end.

    NaN and Infinity, which are no JSON and which some programs write, are read as null.
    """
    with suppress(ValueError, TypeError):  # it reads no half of a surrogate pair, and no deeper than `DEEPEST`
        return from_json(data, allow_inf_nan=False)
    try:
        value = json.loads(data, parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise ValueError("a whole number with too many digits") from None
    if is_too_deep(value):
        raise ValueError(TOO_DEEP)
    return _sound(value)


def _sound(value: Any) -> Any:
    """The value with U+FFFD for each half of a surrogate pair in its texts, which no file can hold."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {replace_surrogates(name): _sound(each) for name, each in value.items()}
    return [_sound(each) for each in value] if isinstance(value, list) else value


def is_too_deep(value: Any) -> bool:
    """Whether a value of JSON has more than `DEEPEST` levels."""
    level = [value]
    for _ in range(DEEPEST + 1):
        parts = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [each for inner in parts for each in inner if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def with_finite_numbers(value: Any) -> Any:
    """Nested dicts and lists, ready for JSON: None in the place of NaN and infinity."""
    if isinstance(value, dict):
        return {key: with_finite_numbers(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_finite_numbers(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
