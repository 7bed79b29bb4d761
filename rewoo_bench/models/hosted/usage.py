"""Read a provider's token counts, in each form in which providers send them.

    read_usage({"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 62,
                "completion_tokens_details": {"reasoning_tokens": 20}})
    # Usage(input_tokens=12, output_tokens=50, reasoning_tokens=20): here the completion doesn't include the reasoning

An impossible count (negative, absurdly large, not a number) makes the whole usage invalid: `None`, and the
caller counts with its own tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rewoo_bench.types import Usage

# No call has more tokens: a thousand times the longest context of 2026.
MOST_TOKENS = 10**9

_MOST_UNLISTED = 10**6  # tokens of a total that are neither input nor output: a model's thoughts

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
_REASONING = ("reasoning_tokens",)
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")
# Tokens read from a cache, by the names of OpenAI, DeepSeek, Moonshot and Anthropic.
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_CACHE_WRITE = ("cache_creation_input_tokens", "cache_creation_tokens", "cache_write_tokens")
_CACHE_FIELDS = frozenset({*_INPUT_DETAILS, *_CACHED, *_CACHE_WRITE})
_THOUGHT_FIELDS = frozenset({*_OUTPUT_DETAILS, *_REASONING})


class _Absurd(Exception):
    """A count that no call can have."""


def read_usage(usage: Any) -> Usage | None:
    """The counts of a usage object; zeros for missing counts, None where a count is impossible.

    Reasoning that the completion doesn't include (xAI; Gemini's total_tokens) is added to the output.
    Cached input that the input doesn't include (Anthropic's own form) is added to the input.
    """
    if usage is None:
        return Usage()
    if not isinstance(usage, dict):
        return None
    try:
        return _read_usage(usage)
    except _Absurd:
        return None


def salvage_usage(text: str) -> Usage | None:
    """The usage in a response that isn't valid JSON, such as one that was cut; None where there is none."""
    start = text.rfind('"usage"')
    brace = text.find("{", start)
    if start < 0 or brace < 0:
        return None
    try:
        counts, _ = json.JSONDecoder().raw_decode(text, brace)
    except (ValueError, RecursionError):
        return None
    usage = read_usage(counts)
    return usage if usage != Usage() else None


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    input_tokens = _first(usage, _INPUT)
    output_tokens = _first(usage, _OUTPUT)
    cached = cache_write = reasoning = 0
    if not _CACHE_FIELDS.isdisjoint(usage):
        cached = _anywhere(usage, _INPUT_DETAILS, _CACHED)
        cache_write = _anywhere(usage, _INPUT_DETAILS, _CACHE_WRITE)
    if not _THOUGHT_FIELDS.isdisjoint(usage):
        reasoning = _anywhere(usage, _OUTPUT_DETAILS, _REASONING)
    if "prompt_tokens" not in usage and ("cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage):
        input_tokens += cached + cache_write  # Anthropic's own form
    total = _count(usage.get("total_tokens"))
    unlisted = total - input_tokens - output_tokens
    if unlisted > _MOST_UNLISTED:
        raise _Absurd
    if unlisted > 0 and input_tokens and _OUTPUT[0] in usage:  # the total is what is paid
        reasoning = reasoning or unlisted
        output_tokens += unlisted
    elif reasoning > output_tokens:
        output_tokens += reasoning
    if cached > input_tokens or cache_write > input_tokens:
        raise _Absurd
    return Usage(input_tokens, cached, output_tokens, reasoning, cache_write)


def _anywhere(usage: Mapping[str, Any], details: tuple[str, ...], names: tuple[str, ...]) -> int:
    """A count in the details or outside them; the first that isn't zero."""
    for detail in details:
        part = usage.get(detail)
        if isinstance(part, dict) and (count := _first(part, names)):
            return count
    return _first(usage, names)


def _first(counts: Mapping[str, Any], names: tuple[str, ...]) -> int:
    for name in names:
        if name in counts and (value := counts[name]) is not None:
            return _count(value)
    return 0


def _count(value: Any) -> int:
    """A whole number of tokens. Raises `_Absurd`."""
    if type(value) is int and 0 <= value <= MOST_TOKENS:
        return value
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        raise _Absurd
    if value != int(value):
        raise _Absurd
    return int(value)
