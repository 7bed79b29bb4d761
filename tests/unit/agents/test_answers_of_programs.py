"""What a program's output answers, and outputs of any length in bounded memory."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.agents.program import agent_environment, answer_in_output, error_line
from rewoo_bench.system.processes import Tail


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("", None),
        ("Paris", "Paris"),
        ("thinking\n\nParis \n", "Paris"),
        ('{"answer": "Paris"}', "Paris"),
        ('log\n{"answer": "Paris"}\n', "Paris"),
        ('{\n  "answer": "Paris"\n}\n', "Paris"),
        ('{"answer": null}', None),
        ("Paris\u2028France", "Paris\u2028France"),
        ('{"answer": ["a", "b"]}', '["a", "b"]'),
        ('{"result": "Paris"}', '{"result": "Paris"}'),
    ],
)
def test_the_answer_is_the_last_line_or_json(output: str, answer: str | None) -> None:
    assert answer_in_output(output) == answer


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 20), st.integers(1, 20))
def test_a_tail_has_the_beginning_and_the_end(pieces: list[bytes], head: int, tail: int) -> None:
    kept, whole = Tail(head, tail), b"".join(pieces)
    for piece in pieces:
        kept.add(piece)
    assert kept.size == len(whole)
    if len(whole) <= head + tail:
        assert kept.text == whole.decode("utf-8", "replace")
    else:
        begin, end = whole[:head].decode("utf-8", "replace"), whole[-tail:].decode("utf-8", "replace")
        assert kept.text.startswith(begin[:-1])
        assert kept.text.endswith(end[1:])
        assert f"{len(whole) - head - tail:,} bytes left out" in kept.text


OF_MODELS = {
    "OPENAI_ORG_ID": "org",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_CLOUD_PROJECT": "mine",
    "GOOGLE_GEMINI_BASE_URL": "https://mine",
    "AZURE_OPENAI_ENDPOINT": "https://mine",
    "OLLAMA_HOST": "mine:11434",
}


def test_an_agent_gets_no_key_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"OPENAI_API_KEY": "sk-real", "MY_TOKEN": "t0ken", "SERPER_API_KEY": "serper", "AWS_SECRET": "aws"}
    for name, value in {**secrets, **OF_MODELS, "HTTPS_PROXY": "http://me:pw@proxy", "PLAIN": "yes"}.items():
        monkeypatch.setenv(name, value)
    made = agent_environment({"SERPER_API_KEY": "$SERPER_API_KEY"}, {"OPENAI_API_KEY": "q-1"})
    assert made["OPENAI_API_KEY"] == "q-1"
    assert made["SERPER_API_KEY"] == "serper"
    assert made["PLAIN"] == "yes"
    assert made["PATH"] == os.environ["PATH"]
    assert not {"MY_TOKEN", "AWS_SECRET", "HTTPS_PROXY", *OF_MODELS} & made.keys()


CREDENTIALS = """PGPASSWORD SERPER_APIKEY GITHUB_PAT DB_PASS AWS_ACCESS_KEY_ID MY_CREDENTIALS HF_TOKEN API_KEYS
    API_KEY_PROD MY_API_KEY2 MYSQL_PWD BORG_PASSPHRASE REDISCLI_AUTH NPM_CONFIG__AUTH DOCKER_AUTH_CONFIG
    SLACK_WEBHOOK_URL CONNECTION_STRING SECRET_KEY_BASE HF_TOKEN2"""


@pytest.mark.parametrize("name", CREDENTIALS.split())
def test_credentials_by_other_names_stay_here_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "hunter2secret")
    assert name not in agent_environment({}, {})


KEY = "sk-proj-RealKey0123456789abcdefghij"


@pytest.mark.parametrize(
    "value",
    [
        *(KEY, f"Bearer {KEY}", f'{{"api_key": "{KEY}"}}', "AIzaSyA1234567890abcdefghijklmnopqrstuv"),
        *("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "xoxb-123456789012-abcdefghij", "AKIAIOSFODNN7EXAMPLE"),
        *("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "eyJhbGci.eyJzdWIiOiIx"),
        *("a hunter2secret of another", "my a-PAT-of-mine"),
    ],
)
def test_a_credential_under_an_innocent_name_stays_here(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OTHER_TOKEN", "hunter2secret")
    monkeypatch.setenv("GITHUB_PAT", "a-PAT-of-mine")
    monkeypatch.setenv("INNOCENT", value)
    assert "INNOCENT" not in agent_environment({}, {})


@pytest.mark.parametrize(
    "value",
    ["en_GB.UTF-8", "/usr/bin:/bin", "keyboard=us", "the bearer of news", "sk-learn", "Basic Authentication", "1"],
)
def test_innocent_values_are_passed_on(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("INNOCENT", value)
    assert agent_environment({}, {})["INNOCENT"] == value


@pytest.mark.parametrize(
    "name", ["PWD", "KEYBOARD", "COMPASS", "MONKEY_BUSINESS", "XKEYSYMDB", "OLDPWD", "MAX_TOKENS", "AUTHOR"]
)
def test_other_variables_are_passed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "plain")
    assert agent_environment({}, {})[name] == "plain"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("starts\nno idea\n", ": no idea"),
        (
            "Traceback (most recent call last):\n  File 'a.py', line 1\n    f()\nmine.Failed: no idea\nbye\n",
            ": mine.Failed: no idea",
        ),
    ],
    ids=["empty", "last line", "Python"],
)
def test_the_line_that_names_the_error_is_the_reason(log: str, line: str) -> None:
    tail = Tail()
    tail.add(log.encode())
    assert error_line(tail) == line
