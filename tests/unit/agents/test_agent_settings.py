"""Settings of an external agent: credentials in them are in no manifest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rewoo_bench.agents.settings import AgentSettings, command_in_environment
from rewoo_bench.errors import SpecError, UsageError
from rewoo_bench.runners.architecture import load_architecture

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


@pytest.mark.parametrize("flag", [f"--api-key {KEY}", f"--api-key={KEY}", f"-e API_KEY={KEY}", "--password hunter2"])
def test_a_credential_behind_a_flag_of_a_command_line_is_refused(flag: str) -> None:
    with pytest.raises(UsageError, match=r"--agent: .*: its value would stand in run\.json; .* write \$NAME") as raised:
        load_architecture(f"agent:python agent.py {flag}", style="multihop")
    assert flag.split()[-1].rpartition("=")[2] not in str(raised.value)


def test_a_variable_behind_a_flag_has_its_value_when_the_agent_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_MINE", KEY)
    made = load_architecture("agent:./agent --api-key $OF_MINE --token=$OF_MINE $OF_MINE", style="multihop")
    assert isinstance(made.settings, AgentSettings)
    words = ["./agent", "--api-key", KEY, f"--token={KEY}", "$OF_MINE"]
    assert list(command_in_environment(made.settings)) == words
    assert KEY not in json.dumps(made.manifest)
    assert "--token=$OF_MINE" in json.dumps(made.manifest)


def test_a_command_without_credentials_is_written_as_it_is() -> None:
    settings = AgentSettings(command=("python", "agent.py", "--key-file", "a.txt", "--max-tokens=5"))
    assert list(settings.model_dump()["command"]) == ["python", "agent.py", "--key-file", "a.txt", "--max-tokens=5"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('comand = "x"', "[agent]: unknown key 'comand', did you mean 'command'?"),
        (
            'command = "x"\nprotocol = "wroker"',
            "[agent]: protocol: Input should be 'question' or 'worker', got 'wroker'",
        ),
        ("", "name either a command or a callable"),
    ],
)
def test_a_wrong_table_is_one_line_that_names_it(table: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "architecture.toml").write_text(f"[agent]\n{table}\n", encoding="utf-8")
    with pytest.raises(SpecError) as raised:
        load_architecture(str(tmp_path), style="multihop")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "name", "command", "env"),
    [
        ("python my_agent.py --fast", "my_agent", ["python", "my_agent.py", "--fast"], {}),
        ("./start.sh --mode fast", "start", ["./start.sh", "--mode", "fast"], {}),
        ("mine=python my_agent.py", "mine", ["python", "my_agent.py"], {}),
        ("mine=MODE=fast python my_agent.py", "mine", ["python", "my_agent.py"], {"MODE": "fast"}),
        ("MODE=fast LANG=C python 'my agent.py'", "my agent", ["python", "my agent.py"], {"MODE": "fast", "LANG": "C"}),
    ],
)
def test_a_command_gives_its_name_its_variables_and_its_words(
    line: str, name: str, command: list[str], env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("my_agent.py", "my agent.py", "start.sh"):
        Path(file).touch()
    made = load_architecture(f"agent:{line}", style="multihop")
    assert isinstance(made.settings, AgentSettings)
    assert (made.name, list(made.settings.command), dict(made.settings.env)) == (name, command, env)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("python 'my agent.py", '--agent: "python \'my agent.py" is not a command: No closing quotation'),
        ("", "--agent: the command is empty"),
        ("mine= MODE=fast", "--agent: the command is empty"),
    ],
)
def test_what_is_no_command_is_refused(line: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        load_architecture(f"agent:{line}", style="multihop")
