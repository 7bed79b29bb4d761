"""What a model, an agent or an MCP server says reaches no terminal as a command to it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from command_runs import run
from model_server import ModelServer, ServerFault

from rewoo_bench.cli.main import main

pytestmark = pytest.mark.usefixtures("own_folder")
NASTY = "\x1b]0;title\x07\x1b[2J\x1b[8m \x9b31m \u202egnp.exe \u2066x \x08\x08\r::error::x"
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]")
AGENT = """
import sys
sys.stderr.write({nasty!r} + "\\n")
print({nasty!r} + " Answer: Neva")
sys.exit(len(sys.stdin.read()) % 2)
"""
SERVER = """
import sys
sys.stderr.write({nasty!r} + "\\n")
sys.exit(3)
"""


def clean(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr()
    text = said.out + said.err
    assert not COMMANDS.findall(re.sub("\x1b\\[[0-9;]*m", "", text)), text
    assert "\x1b]" not in text
    assert "\x1b[8m" not in text
    return text


def test_a_models_and_an_agents_words_are_no_commands(capsys: pytest.CaptureFixture[str]) -> None:
    Path("agent.py").write_text(AGENT.format(nasty=NASTY))
    with ModelServer(lambda request: f"Thought: {NASTY}\nAnswer: {NASTY}") as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base, "-n", 4)
        run("--arch", "direct,react", "--agent", f"{sys.executable} agent.py", *hosted, "--out", "here")
    assert "here" in clean(capsys)
    commands = (
        ["show", "here"], ["show", "here", "--failed"], ["runs", "."], ["compare", "here"], ["gate", "here"],
        ["report", "here"],
    )  # fmt: skip
    for command in commands:
        with pytest.raises(SystemExit):
            main(command)
        clean(capsys)


def test_neither_are_a_providers_error_and_an_mcp_servers_last_words(capsys: pytest.CaptureFixture[str]) -> None:
    Path("server.py").write_text(SERVER.format(nasty=NASTY))
    with ModelServer(lambda request: ServerFault(status=400, message=json.dumps(NASTY)[1:-1] + NASTY)) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base, "-n", 2)
        run("--arch", "direct", *hosted, "--out", "refused")
        clean(capsys)
        run("--arch", "react", *hosted, "--mcp", f"{sys.executable} server.py", "--out", "mcp")
    clean(capsys)
