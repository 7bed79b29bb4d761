"""What the result of a tool says of itself.

says_error("[ERROR] no such airport")                # True
says_error('{"success": false}')                     # True
says_nothing("No results found. Try other words.")   # True
says_nothing('{"results": [], "total": 0}')          # True
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rewoo_bench.text.json_text import load_json

_ERROR = re.compile(
    r"""[\s\[(<*]*(?:(?:error|exception|traceback)(?![^\W_]|[ _-](?:rate|count|margin))
    |http(?:/[\d.]+)?[ ](?:error[ ])?[45]\d\d\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_ERROR_FIELD = re.compile(
    r""""(?:(?:error|is_?error)"|(?:success|ok)"\s*:\s*false|status"\s*:\s*"error)""", re.IGNORECASE
)
"""A quick look for what may be a field of an object that says so."""
_NOTHING = re.compile(
    r"""[\s"'()\[\]{},.:;–—-]*
    (?:(?:null|none|not[ ]found)[\s"'.!]*
    |no[ ](?:results?|match(?:es)?|evidence|data)(?:[ ](?:is|are|was|were))?(?:[ ](?:found|available|returned))?
    (?:[\s"']*(?:[.:!\n]|$)|[ ](?:for|in|on|to|with|match\w*)\b).*)?""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_LONGEST = 500  # characters of a result that may hold nothing


def says_error(text: str) -> bool:
    """Whether a result says that the tool failed.

    It begins with the word error, exception or traceback, or with HTTP and a status from 400; or it is an object with
    an `error`, with `is_error`, with a false `success` or `ok`, or with the `status` error.
    """
    if _ERROR.match(text[:200]):
        return True
    found = _json(text) if text.lstrip()[:1] == "{" and _ERROR_FIELD.search(text) else None
    return isinstance(found, Mapping) and bool(
        any(found.get(name) for name in ("error", "isError", "is_error"))
        or any(found.get(name) is False for name in ("success", "ok"))
        or str(found.get("status")).casefold() == "error"
    )


def says_nothing(text: str) -> bool:
    """Whether a result is empty.

    It has no letter, digit or symbol; it is null, none or not found, or begins with no results, matches, evidence or
    data; or it is JSON of empty lists, objects and texts, beside which there are only zeros and false.
    """
    return len(text) <= _LONGEST and (
        _NOTHING.fullmatch(text) is not None or (text.lstrip()[:1] in ("{", "[") and _is_hollow(_json(text, 0)))
    )


def _json(text: str, otherwise: Any = None) -> Any:
    try:
        return load_json(text)
    except ValueError:
        return otherwise


def _is_hollow(value: Any) -> bool:
    """Whether a value is null, an empty text, list or object, or has such in it, and no more than zeros beside them."""
    if not isinstance(value, Mapping | list):
        return value is None or value == ""
    parts = value.values() if isinstance(value, Mapping) else value
    rest = [part for part in parts if not _is_hollow(part)]
    return not parts or (len(rest) < len(parts) and all(part == 0 for part in rest))
