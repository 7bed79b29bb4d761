"""Reads a provider's token counts, in each form that providers send them in.

    read_usage({"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 62,
                "completion_tokens_details": {"reasoning_tokens": 20}})
    # Usage(input_tokens=12, output_tokens=50, reasoning_tokens=20): here the reasoning stands beside the completion

A count that can't be right (negative, absurdly large, no number) makes the whole usage unreadable: `None`,
and the caller counts with a tokenizer of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rewoo_bench.types import Usage

# No call has more tokens: a thousand times the longest context of 2026.
MOST_TOKENS = 10**9

_MOST_BESIDE = 10**6  # tokens that a total may have beyond input and output: a model's thoughts

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
_REASONING = ("reasoning_tokens",)
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")
# Read from a cache: OpenAI's, DeepSeek's, Moonshot's, Anthropic's name for it.
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_CACHE_WRITE = ("cache_creation_input_tokens", "cache_creation_tokens", "cache_write_tokens")
_CACHE_FIELDS = frozenset({*_INPUT_DETAILS, *_CACHED, *_CACHE_WRITE})
_THOUGHT_FIELDS = frozenset({*_OUTPUT_DETAILS, *_REASONING})


class _Absurd(Exception):
    """A count that no call can have."""


def read_usage(usage: Any) -> Usage | None:
    """The counts of a usage object; zeros where it says nothing, None where it can't be right.

    Reasoning that is counted beside the completion (xAI; Gemini's total_tokens) is added to the output.
    Cached input that is counted beside the input (Anthropic's own form) is added to the input.
    """
    if usage is None:
        return Usage()
    if not isinstance(usage, dict):
        return None
    try:
        return _read(usage)
    except _Absurd:
        return None


def salvage_usage(text: str) -> Usage | None:
    """The usage in an answer that is no JSON as a whole, such as one cut at its end; None where there is none."""
    start = text.rfind('"usage"')
    brace = text.find("{", start)
    if start < 0 or brace < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text, brace)
    except (ValueError, RecursionError):
        return None
    usage = read_usage(found)
    return usage if usage != Usage() else None


def _read(usage: Mapping[str, Any]) -> Usage:
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
    beside = total - input_tokens - output_tokens
    if beside > _MOST_BESIDE:
        raise _Absurd
    if beside > 0 and input_tokens and _OUTPUT[0] in usage:  # the total is what is paid
        reasoning = reasoning or beside
        output_tokens += beside
    elif reasoning > output_tokens:
        output_tokens += reasoning
    if cached > input_tokens or cache_write > input_tokens:
        raise _Absurd
    return Usage(input_tokens, cached, output_tokens, reasoning, cache_write)


def _anywhere(usage: Mapping[str, Any], details: tuple[str, ...], names: tuple[str, ...]) -> int:
    """A count that stands in the details or beside them; the first that isn't zero."""
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
