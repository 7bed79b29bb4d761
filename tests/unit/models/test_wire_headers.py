"""Headers and query parameters between an agent and its provider: what passes, and what never does."""

from __future__ import annotations

import pytest

from rewoo_bench.models.hosted.wire import passed_back, passed_on, passed_query

KEY = "q-0123"
PASSED = """OpenAI-Beta anthropic-beta anthropic-version Idempotency-Key
    X-Client-Request-Id X-Title"""
WITHHELD = """Authorization x-api-key Cookie Forwarded X-Forwarded-Host Host Content-Encoding x-litellm-api-base
    x-goog-user-project OpenAI-Organization User-Agent"""


@pytest.mark.parametrize("name", PASSED.split())
def test_what_an_agent_says_of_its_request_passes(name: str) -> None:
    assert passed_on([(name, "a")], key=KEY) == ((name, "a"),)


@pytest.mark.parametrize("name", WITHHELD.split())
def test_no_credential_no_hop_and_no_choice_of_an_address_passes(name: str) -> None:
    assert passed_on([(name, "a")], key=KEY) == ()


@pytest.mark.parametrize("value", [f"Bearer {KEY}", f"http://127.0.0.1/q/{KEY}/v1", "a\rb", "é", "a\udc80"])
def test_a_value_with_the_questions_key_or_a_strange_sign_does_not_pass(value: str) -> None:
    assert passed_on([("X-Title", value)], key=KEY) == ()


def test_a_providers_limits_and_request_ids_come_back_and_its_cookies_do_not() -> None:
    sent = {
        "x-request-id": "req_1",
        "request-id": "req_2",
        "x-ratelimit-remaining-tokens": "7",
        "anthropic-ratelimit-tokens-limit": "8",
        "retry-after": "2",
        "X-RateLimit-Echo": "sk-secret-of-mine",
        "Set-Cookie": "a=b",
        "openai-organization": "the-users-account",
        "Content-Encoding": "gzip",
        "Connection": "close",
        "x-should-retry": "true",
    }
    back = passed_back(sent, {"sk-secret-of-mine"})
    assert back.pop("x-ratelimit-echo") == "[key]"
    assert set(back) == {
        "x-request-id",
        "request-id",
        "x-ratelimit-remaining-tokens",
        "anthropic-ratelimit-tokens-limit",
        "retry-after",
    }


def test_a_query_passes_without_keys_and_addresses() -> None:
    given = f"beta=true&key={KEY}&api_key=x&base_url=http://evil&api_base=http://evil&model=big&tag=a%20b&beta={KEY}"
    assert passed_query(given, key=KEY) == "beta=true"
