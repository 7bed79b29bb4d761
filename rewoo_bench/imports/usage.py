"""Tokens of a call in the words of providers and of libraries above them.

    usage_of({"inputTokens": 100, "outputTokens": 50, "cacheReadInputTokens": 900})     # Bedrock
    # Usage(input_tokens=1000, cached_input_tokens=900, output_tokens=50)

Here cached tokens are a part of the input, and reasoning is a part of the output. Where a provider counts them apart,
they are added: by the total that it gives, or by the names that it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewoo_bench.imports.record import count, number
from rewoo_bench.types import Usage

_INPUT = (
    *("prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "input"),
    *("prompt_token_count", "promptTokenCount", "prompt_eval_count"),
)
_OUTPUT = (
    *("completion_tokens", "output_tokens", "completionTokens", "outputTokens", "output"),
    *("candidates_token_count", "candidatesTokenCount", "eval_count"),
)
_TOTAL = ("total_tokens", "totalTokens", "total", "total_token_count", "totalTokenCount")
_CACHED = (
    *("cached_tokens", "cache_read_input_tokens", "cacheReadInputTokens", "cachedInputTokens", "input_cached_tokens"),
    *("cache_read", "cache_read_tokens", "cacheReadTokens", "prompt_cache_hit_tokens", "input_tokens_cache_read"),
    *("cached_content_token_count", "cachedContentTokenCount"),
)
_STORED = (
    *("cache_creation_input_tokens", "cacheWriteInputTokens", "cache_write_input_tokens", "cacheCreationInputTokens"),
    *("cache_write_tokens", "cacheWriteTokens", "cache_creation", "input_tokens_cache_write"),
)
_REASONED = ("reasoning_tokens", "reasoningTokens", "reasoning", "output_reasoning_tokens")
_THOUGHTS = ("thoughts_token_count", "thoughtsTokenCount")  # Gemini's, which its candidates don't have
_APART = (  # Anthropic's and Bedrock's, which their input doesn't have
    *("cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
)


def usage_of(usage: Any) -> Usage | None:
    """The tokens of a usage object; None where it has neither input nor output. Raises `Unreadable`."""
    if not isinstance(usage, Mapping):
        return None
    given, written, total = (_count([usage], names) for names in (_INPUT, _OUTPUT, _TOTAL))
    if given is None and written is None:
        return None
    given, written = given or 0, written or 0
    cached, stored, reasoned = (_count(_places(usage), names) or 0 for names in (_CACHED, _STORED, _REASONED))
    thoughts = _count([usage], _THOUGHTS) or 0
    if _is_apart(usage, given, cached + stored, written, total):
        given += cached + stored
    if reasoned > written or given + written + reasoned == total:
        written += reasoned
    written, reasoned = written + thoughts, reasoned + thoughts
    return Usage(given, min(cached, given), written, min(reasoned, written), min(stored, given))


def names_cached(usage: Any) -> bool:
    """Whether a usage object says how many tokens came from a cache."""
    return isinstance(usage, Mapping) and _count(_places(usage), _CACHED) is not None


def _is_apart(usage: Mapping[str, Any], given: int, held: int, written: int, total: int | None) -> bool:
    """Whether the tokens that a cache held are no part of the input."""
    if held and total == given + held + written:
        return True
    if "prompt_tokens" in usage or (held <= given and total == given + written):
        return False
    return held > given or any(usage.get(name) is not None for name in _APART)


def _places(usage: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The object, and the details in it."""
    return [usage, *(each for each in usage.values() if isinstance(each, Mapping))]


def _count(places: Iterable[Mapping[str, Any]], names: Sequence[str]) -> int | None:
    """The first of these counts that is a number."""
    found = (each[name] for each in places for name in names if number(each.get(name)) is not None)
    return next(map(count, found), None)
