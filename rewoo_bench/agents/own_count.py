"""The tokens that an agent counts itself, to lay beside the meter's: a line of JSON on its standard error.

{"own_count": {"input": 812, "output": 40, "calls": 3}}
{"id": "q-…", "own_count": …}       of a worker, whose standard error is that of several questions
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_NAME = "own_count"


def read_own_count(log: str, key: str) -> Mapping[str, Any] | None:
    """The last count in a log; where it names a question, of the question with this key."""
    for line in reversed(log.splitlines()):
        if _NAME not in line:
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(document, dict) or document.get("id", key) != key:
            continue
        count = document.get(_NAME)
        if isinstance(count, dict):
            return count
    return None
