"""Token counts, in each form that providers send them in."""

from __future__ import annotations

from typing import Any

import pytest

from rewoo_bench.models.hosted.responses import read_usage, salvage_usage
from rewoo_bench.types import Usage


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (None, Usage()),
        ({}, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(9, 0, 2)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "total_tokens": 14,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(9, 4, 5, 3),
        ),
        # xAI: reasoning beside the completion.
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            Usage(32, 0, 103, 94),
        ),
        # Gemini's OpenAI endpoint: reasoning only in the total.
        ({"prompt_tokens": 20, "completion_tokens": 151, "total_tokens": 553}, Usage(20, 0, 533, 382)),
        # DeepSeek and Moonshot: cached input under names of their own.
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 8}, Usage(9, 8, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 8}, Usage(9, 8, 2)),
        # Perplexity and others: reasoning at the top.
        ({"prompt_tokens": 9, "completion_tokens": 7, "reasoning_tokens": 5}, Usage(9, 0, 7, 5)),
        # Anthropic's own form: cached input beside the input.
        (
            {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 3},
            Usage(125, 100, 3, 0, 20),
        ),
        # litellm's form of it: inside.
        (
            {
                "prompt_tokens": 125,
                "completion_tokens": 3,
                "total_tokens": 128,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 100},
            },
            Usage(125, 100, 3, 0, 20),
        ),
        # A total that has more than input, output and reasoning: the total is what is paid.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 33,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(10, 0, 23, 7),
        ),
        ({"prompt_tokens": 9.0, "completion_tokens": 2}, Usage(9, 0, 2)),
    ],
)
def test_counts_are_read(sent: Any, read: Usage) -> None:
    assert read_usage(sent) == read


@pytest.mark.parametrize("count", [10**30, -1, "nine", [9], True, 1.5, float("inf"), float("nan"), {"a": 1}])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "total_tokens"])
def test_a_count_that_cannot_be_right_makes_the_usage_unreadable(name: str, count: Any) -> None:
    assert read_usage({"prompt_tokens": 9, "completion_tokens": 2, name: count}) is None


@pytest.mark.parametrize("sent", ["words", [1, 2], 7])
def test_a_usage_that_is_no_object_is_unreadable(sent: Any) -> None:
    assert read_usage(sent) is None


def test_a_total_far_beyond_its_parts_cannot_be_right() -> None:
    assert read_usage({"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10**9}) is None


def test_more_cached_input_than_input_cannot_be_right() -> None:
    assert read_usage({"prompt_tokens": 9, "cached_tokens": 10, "completion_tokens": 1}) is None


def test_the_usage_of_an_answer_that_was_cut_is_found() -> None:
    assert salvage_usage('{"choices": [{"te, "usage": {"prompt_tokens": 9, "completion_tokens": 2}') == Usage(9, 0, 2)
    assert salvage_usage('{"choices": [{"te') is None
    assert salvage_usage('{"usage": {"prompt_tok') is None
    assert salvage_usage('"usage": {"prompt_tokens": -3}') is None
