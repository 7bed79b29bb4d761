"""A provider answers with a snapshot's name, and a gateway puts providers before it: both find the model's price."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from rewoo_bench.config.price_sheets import named_tariff, price_of
from rewoo_bench.config.price_table import find_price_entry, is_same_model


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("gpt-4o-mini-2024-07-18", "openai:gpt-4o-mini"),
        ("azure/gpt-4o-mini", "openai:gpt-4o-mini"),
        ("claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "anthropic:claude-sonnet-4-5"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "anthropic:claude-sonnet-4-5"),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic:claude-sonnet-4-5"),
        ("gemini/gemini-2.5-flash", "google:gemini-2.5-flash"),
    ],
)
def test_a_snapshot_and_a_prefix_find_the_price_of_the_model(name: str, price: str) -> None:
    assert price_of(name) == price


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("ft:gpt-4o-mini-2024-07-18:me::1", None),
        ("claude-sonnet-4-5-mine", None),
        ("o3-pro-2025-06-10", "openai:o3-pro"),
        ("azure/gpt-4o-2024-05-13", "openai:gpt-4o-2024-05-13"),
    ],
)
def test_another_model_has_its_own_price_or_none(name: str, price: str | None) -> None:
    assert price_of(name) == price


def test_a_model_that_no_sheet_has_is_at_litellms_price_under_its_providers_rule() -> None:
    tariff, entry = named_tariff("openai:gpt-4.1-mini"), find_price_entry("gpt-4.1-mini")
    assert entry
    rates = entry.rates(1)
    assert rates
    assert (tariff.input, tariff.output, tariff.cache_read) == (rates["input"], rates["output"], rates["cached_input"])
    assert tariff.brief == f"gpt-4.1-mini's prices in litellm {version('litellm')} under OpenAI's rule"
    assert str(tariff.rule) == "prefixes of 1,024 tokens and more, in blocks of 128, kept for 5 minutes"
    assert named_tariff("openai:gpt-3.5-turbo-0125").rule is None  # its cached input isn't cheaper


def test_a_sheet_alone_has_the_price_of_a_snapshot() -> None:
    assert named_tariff("openai", "openai/gpt-4o-mini-2024-07-18").model == "gpt-4o-mini"


def test_a_snapshot_that_has_a_price_of_its_own_keeps_it() -> None:
    entries = [find_price_entry(name) for name in ("gpt-4o", "gpt-4o-2024-05-13", "gpt-4o-2031-01-01")]
    found = [entry.name if entry else None for entry in entries]
    assert found == ["gpt-4o", "gpt-4o-2024-05-13", "gpt-4o"]


@pytest.mark.parametrize(
    ("asked", "answered", "is_same"),
    [
        ("openai/gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", False),
        ("openai/gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("anthropic/claude-sonnet-4-5-latest", "claude-sonnet-4-5-20250929", True),
        ("openrouter/anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4.5", True),
        ("ollama/qwen3", "qwen3:latest", True),
        ("openai/mine", "Qwen/Qwen3-8B", False),
    ],
)
def test_a_snapshot_is_the_model_that_was_asked(asked: str, answered: str, is_same: bool) -> None:
    assert is_same_model(asked, answered) is is_same
