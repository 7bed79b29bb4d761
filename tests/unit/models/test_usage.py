"""Token counts, in each form that providers send them in."""

from __future__ import annotations

from typing import Any

import pytest

from rewoo_bench.models.hosted.responses import count_usage, read_usage
from rewoo_bench.types import Usage


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (None, Usage()),
        ({}, Usage()),
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
    ],
)
def test_counts_are_read(sent: Any, read: Usage) -> None:
    assert read_usage(sent) == read


@pytest.mark.parametrize("count", [10**30, -1, "nine", True, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["prompt_tokens", "total_tokens"])
def test_a_count_that_cannot_be_right_makes_the_usage_unreadable(name: str, count: Any) -> None:
    assert read_usage({"prompt_tokens": 9, "completion_tokens": 2, name: count}) is None


GEMINI = {"promptTokenCount": 100, "candidatesTokenCount": 18, "thoughtsTokenCount": 50}
INSPECT = {"output_tokens": 50, "total_tokens": 1050}
COMPACTION = {
    "type": "compaction", "input_tokens": 7000, "cache_read_input_tokens": 2000,
    "cache_creation_input_tokens": 100, "output_tokens": 400,
}  # fmt: skip
MESSAGE = {"type": "message", "input_tokens": 900, "cache_read_input_tokens": 50, "output_tokens": 30}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        # Gemini's own form: thoughts beside the candidates, tool-use tokens beside the prompt, cached ones in it.
        ({**GEMINI, "totalTokenCount": 168}, Usage(100, 0, 68, 50)),
        (
            {**GEMINI, "toolUsePromptTokenCount": 30, "cachedContentTokenCount": 60, "totalTokenCount": 198},
            Usage(130, 60, 68, 50),
        ),
        # The total says whether cached tokens are in the input, whatever the names say.
        ({**INSPECT, "input_tokens": 1000, "input_tokens_cache_read": 800}, Usage(1000, 800, 50)),
        ({**INSPECT, "input_tokens": 200, "input_tokens_cache_read": 800}, Usage(1000, 800, 50)),
        # And whether the reasoning is in the output.
        (
            {"input_tokens": 100, "output_tokens": 60, "reasoning_tokens": 50, "total_tokens": 210},
            Usage(100, 0, 110, 50),
        ),
        (
            {"input_tokens": 100, "output_tokens": 60, "reasoning_tokens": 50, "total_tokens": 160},
            Usage(100, 0, 60, 50),
        ),
        # Bedrock's own form.
        ({"inputTokens": 100, "cacheReadInputTokens": 900, "outputTokens": 50}, Usage(1000, 900, 50)),
    ],
)
def test_the_total_or_the_names_say_what_stands_beside_what(sent: Any, read: Usage) -> None:
    counted = count_usage(sent)
    assert counted is not None
    assert counted[:2] == (read, "provider")


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"prompt_tokens": 500, "completion_tokens": 5, "total_tokens": 900_000}, Usage(500, 0, 5)),
        ({"input_tokens": 50, "output_tokens": 5, "total_tokens": 90}, Usage(50, 0, 5)),
        ({"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 5}, Usage(50, 0, 5)),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 33, "reasoning_tokens": 7},
            Usage(10, 0, 12, 7),
        ),
        ({"prompt_tokens": 9, "cached_tokens": 10, "completion_tokens": 1}, Usage(9, 9, 1)),
    ],
)
def test_a_total_that_nothing_explains_is_not_believed(sent: Any, read: Usage) -> None:
    counted = count_usage(sent)
    assert counted is not None
    assert counted[:2] == (read, "inconsistent")


def test_the_requests_of_a_compaction_are_counted_each() -> None:
    usage = {"input_tokens": 900, "cache_read_input_tokens": 50, "output_tokens": 30}
    assert read_usage({**usage, "iterations": [COMPACTION, MESSAGE]}) == Usage(10050, 2050, 430, 0, 100)


def test_an_attempt_that_was_declined_is_not_billed() -> None:
    declined = {**MESSAGE, "model": "claude-a", "output_tokens": 0}
    served = {**MESSAGE, "model": "claude-b", "type": "fallback_message"}
    earlier = {**MESSAGE, "model": "claude-b"}
    usage = {"input_tokens": 900, "output_tokens": 30, "iterations": [declined, earlier, served]}
    assert read_usage(usage) == Usage(1900, 100, 60)


def test_writes_to_a_cache_are_split_by_how_long_they_are_kept() -> None:
    split = {"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 60}
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_creation": split}
    assert read_usage({**usage, "cache_creation_input_tokens": 100}) == Usage(110, 0, 1, 0, 100, 60)
    assert read_usage(usage) == Usage(110, 0, 1, 0, 100, 60)
