"""A GBNF grammar as a regular expression, for grammars without recursion, as ours are.

fits(answer_grammar(), "Answer: 24")    # True
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

_PART = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[a-z][a-z0-9]*|\{\d+,\d+\}|[()|*+?]|\s+')


def fits(grammar: str, text: str) -> bool:
    """Whether the grammar allows exactly this text."""
    return _pattern(str(grammar)).fullmatch(text) is not None


@lru_cache(maxsize=32)
def _pattern(grammar: str) -> re.Pattern[str]:
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())

    def expand(rule: str) -> str:
        parts = _PART.findall(rules[rule])
        assert "".join(parts) == rules[rule], rules[rule]
        return f"(?:{''.join(map(read, parts))})"

    def read(part: str) -> str:
        if part.startswith('"'):
            return f"(?:{re.escape(json.loads(part))})"
        if part[0].isalpha():
            return expand(part)
        return part.strip()

    return re.compile(expand("root"))
