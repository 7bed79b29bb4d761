"""Differences between two parts of manifests, in words.

>>> list(differences({"seed": 0, "style": "chat"}, {"seed": 1, "style": "chat"}, "model"))
['model.seed was 0 and is 1 now']
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile
from typing import Any

# Facts that change no answer, or repeat another fact.
LOOSE = frozenset(
    {"litellm", "xllamacpp", "llama_server", "llama_server_arguments", "n_parallel", "threads", "prefix_cache"}
    | {"api_base", "path", "texts_sha256"}
    | {"with_chain", "without_chain", "without_pages"}
)

_MOST, _BEFORE = 60, 20  # characters shown of a value, and of those before the difference


def differences(before: Any, now: Any, where: str, without: Collection[str] = ()) -> Iterator[str]:
    """A line for each changed value, without the keys in `without` at any depth."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in {**before, **now}:
            if key not in without:
                yield from differences(before.get(key), now.get(key), f"{where}.{key}", without)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, (a, b) in enumerate(zip(before, now, strict=True)):
            yield from differences(a, b, f"{where}.{_name(b, i)}", without)
    elif before != now:
        old, new = _shown(before, now)
        yield f"{where} was {old} and is {new} now"


def _name(value: Any, position: int) -> str:
    return str(value.get("name", position)) if isinstance(value, Mapping) else str(position)


def _shown(before: Any, now: Any) -> tuple[str, str]:
    """Both values in up to 60 characters, which hold the first difference."""
    old, new = repr(before), repr(now)
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    start = alike - _BEFORE if alike > _MOST - _BEFORE else 0
    return _cut(old, start), _cut(new, start)


def _cut(text: str, start: int) -> str:
    text = f"…{text[start:]}" if start else text
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}…"
