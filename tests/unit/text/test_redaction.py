"""What counts as a credential in the texts and values of other programs, and what must stay as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_data import HOTPOTQA, TAU_BENCH, RealData
from timing import processor_time

from rewoo_bench.text.redaction import plain_environment, redact, redact_settings, without_credentials

TOKENS = {
    "OpenAI": "sk-proj-hunter22Xy_abcdefghijkl-mnop",
    "an older key of OpenAI": "sk-hunter22Xyabcdefghijklmnopqrstuvwx",
    "Anthropic": "sk-ant-api03-hunter22Xy-abcdefghijkl_mn",
    "Google": "AIzaSyhunter22Xyabcdefghijklmno_pqrstuvw",
    "Groq": "gsk_hunter22Xyabcdefghijklmnopqrstuvwxyzabcdefghijklmnop",
    "Hugging Face": "hf_hunter22Xyabcdefghijklmnopqrstuvwxyz",
    "GitHub": "ghp_hunter22Xyabcdefghijklmnopqrstuvwxyz",
    "Slack": "xoxb-hunter22Xy-0123456789",
    "Stripe": "rk_live_51hunter22Xy",
    "AWS": "AKIAHUNTER22XYABCDEF",
    "JWT": "eyJhunter22Xy.eyJzdWIiOiIx.c2ln",
    "Bearer": "Bearer hunter22Xy0123456789",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nhunter22Xy\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_well_known_token_is_taken_out_of_a_trace_and_nothing_beside_it(token: str) -> None:
    found = without_credentials({"said": [f"I use {token} here", {token: 5, "city": "Oslo"}]})
    shown = json.dumps(found)
    assert "hunter22" not in shown.lower()
    assert shown.count("[key]") == 2
    assert found["said"][0].startswith("I use ")
    assert found["said"][0].endswith(" here")
    assert found["said"][1]["city"] == "Oslo"
    assert without_credentials(found) == found


OWN_NAMES = [
    "pk_order_line_items_2024",
    "data/sk-learn_datasets_2024_v2.jsonl",
    "gsk_customer_table_2023_with_a_long_name.csv",
    "pk_test_order_lines",
    "./my_set?key=order_1234&token=abc12345",
    "Basic economy, Bearer bonds of 2024",
]


@pytest.mark.parametrize("name", OWN_NAMES)
def test_names_of_the_users_own_are_never_taken_for_keys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact(f"no such data file: {name!r}") == f"no such data file: {name!r}"
    options = {"dataset": name, "architectures": [name], "extra_body": {"table": name}}
    assert redact_settings(options) == options
    assert without_credentials(f"SELECT * FROM {name}") == f"SELECT * FROM {name}"
    monkeypatch.setenv("ORDERS", name)
    assert plain_environment()["ORDERS"] == name


@pytest.mark.parametrize("known", ["environment", "given"])
def test_what_is_known_as_a_secret_is_taken_out_of_names_too(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if known == "environment":
        monkeypatch.setenv("SHOP_TOKEN", "pk_order_line_items_2024")
    address = "http://me:pk_order_line_items_2024@host" if known == "given" else None
    assert redact_settings({"x": "a pk_order_line_items_2024"}, address) == {"x": "a [key]"}


def test_a_field_of_settings_that_is_named_like_a_secret_has_no_value() -> None:
    body = {"api_key": "hunter22", "headers": {"Authorization": ["hunter22"]}, "user": "ada", "max_tokens": 5}
    kept = {"api_key": "[key]", "headers": {"Authorization": ["[key]"]}, "user": "ada", "max_tokens": 5}
    assert redact_settings({"extra_body": body}) == {"extra_body": kept}
    assert redact_settings({"command": [f"--extra-body={json.dumps(body)}"]}) == {
        "command": [f"--extra-body={json.dumps(kept)}"]
    }
    assert redact_settings({"api_key": "$KEY"}) == {"api_key": "$KEY"}


STAY = [
    '{"max_tokens": 1000, "token": 5, "primary_key": "user_1234567", "eos_token": "</s1234567>"}',
    "Authorization: Bearer $TOKEN, password: <your password>, api_key={API_KEY_1}",
    "The author: born in 1912a3b4. Bearer: of news1234. Credentials: see abc12345. A token: a1b2c3d4e5",
    r'{"h": "{\"url\":\"https://example.com:80\",\"to\":\"ada@corp.org\"}"}',
    "Ada,https://ada.dev,ada@x.org;https://ada.dev:8080;ada@x.org",
    "[Ada](https://ada.dev)(ada@x.org) <https://ada.dev>ada@x.org ('https://ada.dev','ada@x.org')",
    r"https://ada.dev:443\nada@x.org u=https://ada.dev&to=ada@x.org https://medium.com/@ada",
    {"password": {"type": "string"}, "secret": True, "max_tokens": 12345, "key": "abc12345", "name": "password"},
]


@pytest.mark.parametrize("value", STAY, ids=str)
def test_what_is_no_credential_stays(value: Any) -> None:
    assert without_credentials(value) == value


def test_recorded_conversations_and_questions_stay_as_they_are(real_data: RealData) -> None:
    recorded = json.loads(real_data(TAU_BENCH).read_text(encoding="utf-8"))
    assert without_credentials(recorded) == recorded
    for path in sorted(real_data(HOTPOTQA).parent.rglob("*.json*")):
        text = path.read_text(encoding="utf-8")
        assert without_credentials(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("see https://me:hunter22@host/v1, or", "see https://***@host/v1, or"),
        ("https://ghp_hunter22@host", "https://***@host"),
        ("https://me@corp.org:hunt@er22@host", "https://***@host"),
        ("postgres://me:h%40u!n$t&e;(r)|{2}=2@host:5432/x", "postgres://***@host:5432/x"),
        ("redis://:22hunter@host", "redis://***@host"),
        (r'{"h": "{\"u\":\"https://host?key=hunter22\"}"}', r'{"h": "{\"u\":\"https://host?key=***\"}"}'),
        ("Ada,https://host?token=hunter22,5", "Ada,https://host?token=***,5"),
    ],
)
def test_credentials_in_an_address_are_taken_out_and_nothing_else(text: str, left: str) -> None:
    assert without_credentials(text) == redact(text) == left
    assert without_credentials(left) == left


PIECES = st.sampled_from([
    "Bearer ", "sk-", "eyJ", "://", "@", "?key=", "&token=", ":", "=", '"', "'", "\\", " ", "\n", ", ", "; ", "{", "}",
    "<", "$", "[key]", "***", "--", "a1b2c3d4", "é", "-----BEGIN PRIVATE KEY-----", "hf_", "AKIA",
])  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_a_text_without_credentials_stays_so(text: str) -> None:
    once = without_credentials(text)
    assert without_credentials(once) == once


@pytest.mark.parametrize("piece", ["eyJ", "eyJa.", "-----BEGIN PRIVATE KEY", "://a:", "://a@", "://", "sk-", "Bearer "])
def test_hostile_texts_take_linear_time(piece: str) -> None:
    with processor_time(5):
        without_credentials(piece * (400_000 // len(piece)))
