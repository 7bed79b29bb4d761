"""litellm's table of models, read without litellm: prices that are equal to litellm's own, and limits."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rewoo_bench.config.price_table import PriceEntry, find_price_entry
from rewoo_bench.models.hosted.providers import find_route, load_litellm, price, price_list
from rewoo_bench.types import Usage

PROVIDERS = (
    *("openai", "anthropic", "gemini", "mistral", "groq", "deepseek", "xai"),
    *("together_ai", "azure", "bedrock", "bedrock_converse", "dashscope", "cerebras"),
)
USAGES = [
    Usage(1000, output_tokens=200),
    Usage(1000, cached_input_tokens=600, output_tokens=200, reasoning_tokens=150),
    Usage(1000, cached_input_tokens=600, output_tokens=200, cache_write_tokens=300),
    Usage(130_000, output_tokens=10),
    Usage(300_000, cached_input_tokens=100_000, output_tokens=5000, reasoning_tokens=3000),
    Usage(300_000, cached_input_tokens=1000, output_tokens=5000, cache_write_tokens=50_000),
]


def by_litellm(entry: PriceEntry, usage: Usage) -> float:
    litellm = load_litellm()
    counted = litellm.Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details={
            "cached_tokens": usage.cached_input_tokens,
            "cache_creation_tokens": usage.cache_write_tokens,
        },
        completion_tokens_details={"reasoning_tokens": usage.reasoning_tokens},
    )
    paid = litellm.cost_per_token(model=entry.name, custom_llm_provider=entry.provider, usage_object=counted)
    return float(sum(paid))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_price_is_litellms(provider: str) -> None:
    known = load_litellm().model_cost.items()
    names = [name for name, fields in known if fields.get("litellm_provider") == provider]
    priced = [
        entry
        for name in names
        if (entry := find_price_entry(name)) and entry.rates(1) is not None and entry.fields["mode"] == "chat"
    ]
    entries = [entry for entry in priced if "off_peak_pricing" not in entry.fields]  # it would depend on the hour
    assert entries
    for entry in entries[:20]:
        for usage in USAGES:
            if not (usage.cache_write_tokens and provider == "deepseek"):  # which litellm never charges for them
                assert entry.price(usage) == pytest.approx(by_litellm(entry, usage), rel=1e-9), entry.name


@pytest.mark.parametrize(
    ("input_tokens", "output_tokens", "dollars"),
    [(200, 0, 200.0), (201, 0, 402.0), (200, 10, 230.0), (201, 10, 452.0)],
)
def test_a_long_prompt_has_prices_of_its_own(input_tokens: int, output_tokens: int, dollars: float) -> None:
    fields: dict[str, Any] = {"input_cost_per_token": 1.0, "output_cost_per_token": 3.0}
    longer = {"input_cost_per_token_above_200_tokens": 2.0, "output_cost_per_token_above_200_tokens": 5.0}
    other = {"input_cost_per_token_above_200_tokens_priority": 9.0, "input_cost_per_token_flex": 9.0}
    entry = PriceEntry("mine", {**fields, **longer, **other})
    assert entry.price(Usage(input_tokens, output_tokens=output_tokens)) == dollars


def test_an_unknown_price_is_none_and_a_free_model_costs_nothing() -> None:
    assert find_price_entry("openai/nobody-knows") is None
    assert PriceEntry("mine", {"litellm_provider": "openai"}).price(Usage(1)) is None
    assert PriceEntry("mine", {"input_cost_per_token": 0, "output_cost_per_token": 0}).price(Usage(1)) == 0.0


def test_the_limit_of_an_answer_is_known_but_not_of_somebody_elses_server() -> None:
    entry = find_route("openai/gpt-4o-mini").entry
    assert entry is not None
    assert entry.max_output_tokens == 16_384
    assert find_route("openai/gpt-4o-mini", "http://127.0.0.1:9/v1").entry is None


def test_a_price_list_is_of_usual_prompts() -> None:
    found = find_route("openai/gpt-4o-mini", form="completion")
    assert price_list(found) == {"input": 0.15, "cached_input": 0.075, "output": 0.6}
    assert price(found, Usage(1_000_000)) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gpt-4o", "openai/gpt-4o"),
        ("gpt-3.5-turbo-instruct", "text-completion-openai/gpt-3.5-turbo-instruct"),
        ("ft:gpt-4o-mini-2024-07-18:me::1", "openai/ft:gpt-4o-mini-2024-07-18:me::1"),
        ("openai/openai/gpt-4o", "openai/openai/gpt-4o"),
    ],
)
def test_a_model_of_openai_is_found_and_priced_as_litellm_would(name: str, model: str) -> None:
    litellm = load_litellm()
    bare, provider, _, _ = litellm.get_llm_provider(name)
    route = find_route(name)
    assert f"{route.provider}/{route.bare}" == f"{provider}/{bare}" == model
    assert route.takes_schema == litellm.supports_response_schema(bare, provider)
    assert price(route, Usage(1000)) is not None


def test_names_in_the_openai_form_load_no_litellm() -> None:
    code = (
        "import sys; from rewoo_bench.models.hosted.client import HostedModel, ModelSettings\n"
        "for name in ('openai/gpt-4o', 'gpt-4o', 'openai/mine'): HostedModel(name, api_key='k').check()\n"
        "HostedModel('openai/mine', ModelSettings(api_base='http://127.0.0.1:9/v1')).check()\n"
        "from rewoo_bench.models.hosted.provider_errors import to_model_error\n"
        "to_model_error(OSError('gone'), 'm', timeout=1)\n"
        "assert not {'litellm', 'openai', 'httpx', 'aiohttp'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_written_to_a_cache_for_an_hour_has_a_price_of_its_own() -> None:
    entry = PriceEntry(
        "m",
        {
            "input_cost_per_token": 3e-6,
            "output_cost_per_token": 0.0,
            "cache_creation_input_token_cost": 3.75e-6,
            "cache_creation_input_token_cost_above_1hr": 6e-6,
        },
    )
    usage = Usage(input_tokens=1000, cache_write_tokens=900, cache_write_1h_tokens=600)
    assert entry.price(usage) == pytest.approx((100 * 3 + 300 * 3.75 + 600 * 6) / 1e6)
