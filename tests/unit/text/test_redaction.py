"""What counts as a credential in the texts and values of other programs, and what must stay as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_data import HOTPOTQA, TAU_BENCH, RealData
from timing import processor_time

from rewoo_bench.text.redaction import (
    plain_environment,
    redact,
    redact_settings,
    sent_in,
    without_credentials,
)

SECRET = "hunter22Xy"
TEXTS = {
    "JSON": '{"password":"%s","n":1}',
    "JSON with spaces": '{"api_key" : "%s", "n": 1}',
    "JSON of a short value": '{"passwd":"%.4s"}',
    "JSON of a number": '{"password":12345678}',
    "Python": "{'client_secret': '%s', 'n': 1}",
    "JSON in JSON": r'{"h": "{\"access_token\": \"%s\", \"n\": 1}"}',
    "JSON in JSON in JSON": r'{"h": "{\"i\": \"{\\\"refresh_token\\\":\\\"%s\\\"}\"}"}',
    "quotes in a password": r'{"password": "a\"%s\\", "n": 1}',
    "quotes in a password in JSON in JSON": r"{\"password\": \"a\\\"%s\\\\\", \"n\": 1}",
    "camel case": '"clientSecret": "%s"',
    "name=value": "url?x=1 password=%s&user=bob",
    "name: value": "user: bob\npassword: %s\n",
    "variable": "AWS_SECRET_ACCESS_KEY=%s",
    "YAML": "aws_secret_access_key: %s",
    "option": "login --user bob --password %s",
    "option with a dash": "run --api-key %s --verbose",
    "header": "x-api-key: %s",
    "Basic": "Authorization: Basic aHVudGVyMjJYeQ==",
    "short Bearer": "Authorization: Bearer %s",
    "Bearer of letters": 'curl -H "Authorization: Bearer qwertzui" https://x',
    "signed": "Authorization: AWS4-HMAC-SHA256 Credential=A/2015, SignedHeaders=host, Signature=%s",
    "cookie": "Cookie: theme=dark; session=%s",
    "set-cookie": "HTTP/1.1 200\r\nSet-Cookie: sid=%s; Path=/\r\n",
    "cookie in quotes": "curl -H 'Cookie: sid=%s' https://x",
    "connection": "Protocol=https;AccountKey=%s+/aaaaaaaaaaaaaa==;Suffix=x",
    "OpenAI": "sk-proj-%s_abcdefghijkl-mnop",
    "an older key of OpenAI": "sk-%sabcdefghijklmnopqrstuvwx",
    "Anthropic": "sk-ant-api03-%s-abcdefghijkl_mn",
    "Google": "AIzaSy%sabcdefghijklmno_pqrstuvw",
    "Groq": "gsk_%sabcdefghijklmnopqrstuvwxyzabcdefghijklmnop",
    "Stripe": "rk_live_51%s",
    "SendGrid": "SG.abcdefghijklmnop123456.%sopqrstuvwxyz0123456789ABCDEFG",
    "Twilio": "SK0123456789abcdef0123456789abcdef",
    "PyPI": "pypi-AgEIcHlwaS5vcmcC%saaaa",
    "Shopify": "shpat_0123456789abcdef0123456789abcdef",
    "DigitalOcean": "dop_v1_" + "0123456789abcdef" * 4,
    "Linear": "lin_api_%sabcdefghijklmnopqrstuvwxyz0123",
    "Docker": "dckr_pat_%s-abcdefghijkl",
    "age": "AGE-SECRET-KEY-1" + "HUNTER22XY" * 5,
    "Telegram": "https://api.telegram.org/bot123456789:AAE%s7ik6ad9r_QXMENQjcrGbqC/getMe",
    "Discord": "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.%sZnCjm1XVW7vRze4b7Cq4se7",
    "names and values in JSON": '{"h":[{"name":"Cookie","value":"s=%s"},{"value":"%s","on":true,"key":"x-api-key"}]}',
    "a list in JSON": '{"db":{"password":["%s"]},"passwords":["%s"]}',
    "names and values in JSON in JSON": r'{"h": "[{\"name\":\"password\",\"value\":\"%s\"}]"}',
    "pwd": '{"pwd":"%s"}',
    "CSRF": '{"csrf_token":"%s"}',
    "a key of a cipher": "ENCRYPTION_KEY=%s",
    "AWS": "X-Amz-Security-Token: %s",
    "credentials": '{"credentials":"%s"}',
    "bearer": '{"bearer":"%s"}',
    "session": "{'sessionid': '%s'}",
    "token": '{"token":"%s"}',
    "token in Python": "{'token': '%s'}",
    "auth": '{"auth":["bob","%s"]}',
}
GONE = ("hunt", "HUNTER", "12345678", "aHVudGVy", "qwertzui", "0123456789abcdef")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_credential_in_a_text_is_taken_out(text: str) -> None:
    text = text.replace("%s", SECRET).replace("%.4s", SECRET[:4])
    found = without_credentials(text)
    assert "[key]" in found
    assert [part for part in GONE if part in found] == []
    assert without_credentials(found) == found
    if text.startswith("{") and "'" not in text and "\\" not in text and "12345678" not in text:
        assert json.loads(found).keys() == json.loads(text).keys()


@pytest.mark.parametrize(
    "value",
    [
        {"password": SECRET},
        {"api-key": "hunter"},
        {"input": {"headers": [{"X-Api-Key": SECRET}, {"Cookie": SECRET}]}},
        {"db": {"userPassword": SECRET, "clientSecret": SECRET, "aws_secret_access_key": SECRET}},
        {"authorization": [SECRET]},
        {"password": 12345678},
        {"headers": [{"name": "Authorization", "value": SECRET}]},
        {"key": "http.request.header.x-api-key", "value": {"stringValue": SECRET}},
    ],
)
def test_a_field_that_says_that_it_is_secret_has_no_value_at_any_depth(value: Any) -> None:
    found = json.dumps(without_credentials(value))
    assert "[key]" in found
    assert "hunter" not in found
    assert "1234" not in found


def test_what_stands_beside_a_credential_stays() -> None:
    arguments = {"user": "bob", "password": "x", "n": 3, "token": 5, "more": [{"api_key": "y", "city": "Oslo"}]}
    left = {"user": "bob", "password": "[key]", "n": 3, "token": 5, "more": [{"api_key": "[key]", "city": "Oslo"}]}
    assert without_credentials(arguments) == left
    assert without_credentials(json.dumps(arguments)) == json.dumps(left)
    text = r'{"a": "{\"password\": \"x\\\"y\", \"city\": \"Oslo\"}"}'
    assert json.loads(json.loads(without_credentials(text))["a"]) == {"password": "[key]", "city": "Oslo"}


OWN_NAMES = [
    "pk_order_line_items_2024",
    "data/sk-learn_datasets_2024_v2.jsonl",
    "gsk_customer_table_2023_with_a_long_name.csv",
    "xai-explanations-of-2024-and-more",
    "pk_test_order_lines",
    "./my_set?key=order_1234&token=abc12345",
    "rewoo?slot_tokens=100",
    "Basic economy, Bearer bonds of 2024",
]


@pytest.mark.parametrize("name", OWN_NAMES)
def test_names_of_the_users_own_are_never_taken_for_keys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact(f"no such data file: {name!r}") == f"no such data file: {name!r}"
    options = {"dataset": name, "architectures": [name], "extra_body": {"table": name}}
    assert redact_settings(options) == options
    monkeypatch.setenv("ORDERS", name)
    assert plain_environment()["ORDERS"] == name


@pytest.mark.parametrize("name", OWN_NAMES[:4])
def test_names_of_tables_in_a_trace_stay(name: str) -> None:
    assert without_credentials(f"SELECT * FROM {name}") == f"SELECT * FROM {name}"


@pytest.mark.parametrize("known", ["environment", "given"])
def test_what_is_known_as_a_secret_is_taken_out_of_names_too(known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if known == "environment":
        monkeypatch.setenv("SHOP_TOKEN", "pk_order_line_items_2024")
    secrets = sent_in(None, ["pk_order_line_items_2024"]) if known == "given" else ()
    assert redact_settings({"x": "a pk_order_line_items_2024"}, secrets) == {"x": "a [key]"}


STAY = [
    "Which film has the secret: who wrote it?",
    "The Secret of Roan Inish and The Secret: Dare to Dream are films.",
    "What is the password: is it a word?",
    "a password of 12 characters, a secret number 123456789",
    "Cookie: chocolate, 3 eggs",
    "cookies: 12, secretary: a1b2c3d4e5",
    "Basic Economy 12345678, Basic Authorization: required for all",
    "Authorization: the passenger has to agree",
    "The access key: press Alt+S",
    '{"max_tokens": 1000, "token": 5, "tokens": 12345678, "prompt_tokens": 123456789}',
    '{"primary_key": "user_1234567", "foreign_key": "abc12345", "key": "value12345", "eos_token": "</s1234567>"}',
    '{"password": {"type": "string", "description": "at least 8 signs"}, "required": ["password"]}',
    '{"password": "string", "api_key": null, "secret": true}',
    "def login(user: str, password: str, api_key: Optional[str] = None) -> None:",
    'client = Client(api_key=os.environ["KEY"], password=self.password, secret=settings.client_secret)',
    "password = get_password(user_1)",
    "Authorization: Bearer $TOKEN, password: <your password>, api_key={API_KEY_1}",
    "password_reset_url=https://x/y12345678",
    "password=*** Cookie: [key]",
    '{"token": "hello", "tokens": ["a1b2c3d4e5"], "auth": "oauth2", "credentials": "include", "bearer": "bob"}',
    '{"token": 12345678, "session_tokens": 123456, "sessionId": "a1b2c3d4e5", "next_token": "a1b2c3d4e5"}',
    '{"pwd": "/home/ada1", "token": "0x1f9840a85d5af5bf1d1762f925bdadc4201f984a", "ring_bearer": "frodo12345"}',
    "PWD=/home/ada1 make, pwd: prints the folder, passwords: should be long",
    "The author: born in 1912a3b4. Bearer: of news1234. Credentials: see abc12345. A token: a1b2c3d4e5",
    '{"url":"https://example.com","subject":"Hello","to":"ada@corp.org"}',
    r'{"h": "{\"url\":\"https://example.com:80\",\"to\":\"ada@corp.org\"}"}',
    "Ada,https://ada.dev,ada@x.org",
    "Ada;https://ada.dev:8080;ada@x.org",
    "[Ada](https://ada.dev)(ada@x.org) <https://ada.dev>ada@x.org ('https://ada.dev','ada@x.org')",
    r"https://ada.dev:443\nada@x.org u=https://ada.dev&to=ada@x.org",
    "https://medium.com/@ada",
    {"password": {"type": "string"}, "secret": True, "max_tokens": 12345, "key": "abc12345", "name": "password"},
    {"password": "", "api_key": None, "primary_key": "user_1234567", "secret_count": "12345678"},
    {"name": "city", "value": "Oslo"},
]


@pytest.mark.parametrize("value", STAY, ids=str)
def test_what_is_no_credential_stays(value: Any) -> None:
    assert without_credentials(value) == value


def test_recorded_conversations_stay_as_they_are(real_data: RealData) -> None:
    recorded = json.loads(real_data(TAU_BENCH).read_text(encoding="utf-8"))
    assert without_credentials(recorded) == recorded


def test_real_questions_stay_as_they_are(real_data: RealData) -> None:
    texts = [
        line
        for path in sorted(real_data(HOTPOTQA).parent.rglob("*.json*"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert texts
    assert [text for text in texts if without_credentials(text) != text] == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("see https://me:hunter22@host/v1, or", "see https://***@host/v1, or"),
        ("https://ghp_hunter22@host", "https://***@host"),
        ("https://me@corp.org:hunt@er22@host", "https://***@host"),
        ("postgres://me:h%40u!n$t&e;(r)|{2}=2@host:5432/x", "postgres://***@host:5432/x"),
        (r'{"u":"https:\/\/me:hunter22@host\/v1"}', r'{"u":"https:\/\/***@host\/v1"}'),
        ("redis://:22hunter@host", "redis://***@host"),
        (r'{"h": "{\"u\":\"https://host?key=hunter22\"}"}', r'{"h": "{\"u\":\"https://host?key=***\"}"}'),
        ("Ada,https://host?token=hunter22,5", "Ada,https://host?token=***,5"),
    ],
)
def test_credentials_in_an_address_are_taken_out_and_nothing_else(text: str, left: str) -> None:
    assert without_credentials(text) == left
    assert without_credentials(left) == left


PIECES = st.sampled_from([
    "password", "api_key", "Authorization", "Cookie", "secret", "Bearer ", "Basic ", "sk-", "SG.", "://", "@", "?key=",
    ":", "=", '"', "'", "\\", '\\"', " ", "\n", ", ", "; ", "{", "}", "<", "$", "[key]", "***", "--", "a1b2c3d4", "é",
    '{"name": "password", "value": "a1"}', "pwd", '"token": ', "[", "]", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.",
])  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_a_text_without_credentials_stays_so(text: str) -> None:
    once = without_credentials(text)
    assert without_credentials(once) == once


@pytest.mark.by_day(14)
@pytest.mark.parametrize(
    "piece",
    ["password", "password:", "password=", "password: ", 'password:"', 'password\\":\\"', "api_key=", "secret:x=", "\\",
     "authorization:", "Authorization: Bearer ", "Authorization: Basic", "cookie:", "Cookie: a", "Cookie: a=", "SG.",
     "SK", "Basic ", "Bearer ", '"password": "\\', "api_key: <", "password: {", "access_token[", "token-",
     "--password ", "a.b(", "password: a.b(", "key=" + "\\" * 9, "eyJ", "-----BEGIN PRIVATE KEY",
     "://a:", "://a@", "://a:;", ":\\\\", "://", "1:A", ".a.b", '{"password":', '{"token":["',
     '[{"name":"pwd","value":'],
)  # fmt: skip
def test_hostile_texts_take_linear_time(piece: str) -> None:
    for text in (piece * (400_000 // len(piece)), "password: " + piece * (400_000 // len(piece))):
        with processor_time(5):
            without_credentials(text)
