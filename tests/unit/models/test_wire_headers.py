"""Headers and query parameters between an agent and its provider: what passes, and what never does."""

from __future__ import annotations

import pytest

from rewoo_bench.models.hosted.wire import passed_back, passed_on, passed_query

KEY = "q-0123"
PASSED = """OpenAI-Beta anthropic-beta anthropic-version Idempotency-Key
    X-Client-Request-Id X-Title"""
WITHHELD = """Authorization x-api-key api-key x-goog-api-key Cookie Proxy-Authorization Proxy-Connection Forwarded
    X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto Host Connection Keep-Alive Transfer-Encoding Content-Length
    Content-Encoding Content-Type TE Trailer Upgrade Origin Referer x-litellm-api-base x-litellm-tags X-Auth-Token
    X-Access-Token X-Amz-Security-Token X-Real-IP X-Original-URL X-Rewrite-URL X-HTTP-Method-Override X-Target-URL
    x-portkey-provider x-portkey-virtual-key X-Model X-Provider X-RapidAPI-Host X-RapidAPI-Key X-Upstream
    X-Backend X-Hop x-goog-user-project openai-api-key x-ms-deployment-name Accept-Encoding User-Agent
    x-stainless-lang X-Trace-Id
    X-Api-Base X-Tenant OpenAI-Organization OpenAI-Project"""


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
