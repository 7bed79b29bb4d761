"""What is known of a model before it is called: its provider, its key, its price."""

from __future__ import annotations

import pytest

from rewoo_bench.errors import MissingKey, ModelNotFound
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.models.hosted.providers import find_route, price
from rewoo_bench.text.redaction import redact
from rewoo_bench.types import Usage

KEY = "sk-live-0123456789abcdef"


@pytest.mark.parametrize("name", ["nosuch", "nosuch/model"])
def test_a_name_that_litellm_cannot_place_is_refused(name: str) -> None:
    with pytest.raises(ModelNotFound, match=f"{name!r}.*put the provider first"):
        HostedModel(name).check()


def test_a_provider_without_completions_is_refused() -> None:
    with pytest.raises(ModelNotFound, match="'anthropic' has no completion endpoint"):
        HostedModel("anthropic/claude-sonnet-4-5", ModelSettings(prompt_form="completion")).check()


@pytest.mark.parametrize(
    ("name", "variable"),
    [("openai/gpt-4o-mini", "OPENAI_API_KEY"), ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY")],
)
def test_a_missing_key_is_named_before_a_run(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(MissingKey, match=f"set {variable}"):
        HostedModel(name).check()
    HostedModel(name, api_key=KEY).check()
    HostedModel(name, ModelSettings(api_base="http://127.0.0.1:9/v1")).check()
    monkeypatch.setenv(variable, KEY)
    HostedModel(name).check()


def test_a_price_is_known_or_null() -> None:
    usage = Usage(input_tokens=1_000_000, cached_input_tokens=500_000, output_tokens=1_000_000)
    assert price(find_route("openai/gpt-4o-mini"), usage) == pytest.approx(0.15 / 2 + 0.075 / 2 + 0.6)
    assert price(find_route("openai/gpt-4o-mini", "http://127.0.0.1:9/v1"), usage) is None
    assert price(find_route("openai/nobody-knows"), usage) is None


def test_a_key_that_is_known_is_taken_out_and_nothing_that_looks_like_one() -> None:
    assert redact("key sk-proj-abcdef123456, my-secret", ["my-secret"]) == "key sk-proj-abcdef123456, [key]"
    assert redact("the model none has no key", ["none"]) == "the model none has no key"
