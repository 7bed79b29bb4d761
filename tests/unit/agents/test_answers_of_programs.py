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


CREDENTIALS = ("PGPASSWORD", "GITHUB_PAT", "AWS_ACCESS_KEY_ID", "API_KEY_PROD", "HF_TOKEN2", "SLACK_WEBHOOK_URL")
OTHERS = ("PWD", "KEYBOARD", "MONKEY_BUSINESS", "MAX_TOKENS", "AUTHOR")


@pytest.mark.parametrize("name", [*CREDENTIALS, *OTHERS])
def test_credentials_by_other_names_stay_here_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "hunter2secret")
    assert (name in agent_environment({}, {})) == (name in OTHERS)


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


@pytest.mark.parametrize("value", ["/usr/bin:/bin", "keyboard=us", "the bearer of news", "sk-learn", "1"])
def test_innocent_values_are_passed_on(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("INNOCENT", value)
    assert agent_environment({}, {})["INNOCENT"] == value


@pytest.mark.parametrize(
    ("log", "line"), [("", ""), ("Traceback …\n  f()\nmine.Failed: no idea\n", ": mine.Failed: no idea")]
)
def test_the_last_line_is_the_reason(log: str, line: str) -> None:
    tail = Tail()
    tail.add(log.encode())
    assert error_line(tail) == line
