"""Settings of an external agent: credentials in them are in no manifest."""

from __future__ import annotations

import json

import pytest

from rewoo_bench.agents.settings import AgentSettings

KEY = "tvly-ARGSECRET12345678"


@pytest.mark.parametrize("arguments", [("--api-key", KEY), (f"--api-key={KEY}",), ("--token", KEY)])
def test_credentials_are_used_and_not_written(arguments: tuple[str, ...]) -> None:
    env = {"LIT_KEY": "literalSECRET1", "MODE": "fast", "SERPER_KEY": "$SERPER_KEY_OF_NOBODY"}
    settings = AgentSettings(command=("python", "agent.py", *arguments), env=env)
    assert settings.env["LIT_KEY"] == "literalSECRET1"
    assert KEY in "".join(settings.command)
    written = json.dumps(settings.model_dump())
    assert KEY not in written
    assert "literalSECRET1" not in written
    assert "fast" in written
    assert "$SERPER_KEY_OF_NOBODY" in written
    assert settings.secrets == {KEY, "literalSECRET1"}


def test_a_command_without_credentials_is_written_as_it_is() -> None:
    settings = AgentSettings(command=("python", "agent.py", "--key-file", "a.txt", "--max-tokens=5"))
    assert list(settings.model_dump()["command"]) == ["python", "agent.py", "--key-file", "a.txt", "--max-tokens=5"]
