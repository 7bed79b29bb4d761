"""`gate --mcp` and `gate --tools`: tokens of tool schemas against a budget, without a model and without a run."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rewoo_bench.cli.main import main

pytest.importorskip("mcp", reason="needs the MCP SDK (pip install 'rewoo-bench[mcp]')")

SERVER = Path(__file__).parents[1] / "support" / "mcp_tools.py"
COMMAND = shlex.join([sys.executable, str(SERVER)])


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def gate(*arguments: object) -> int:
    """`rewoo-bench gate …` in this process; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["gate", *map(str, arguments)])
    return int(ended.value.code or 0)


def test_the_schemas_of_a_server_are_counted_the_largest_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate("--mcp", COMMAND, "--json", "tools.json") == 0
    title, _, head, *rows = capsys.readouterr().out.splitlines()
    assert title == "6 tools: tokens of each model call that is given them (cl100k_base)"
    assert head.split() == ["tool", "schema", "line", "of", "text"]
    sizes = [int(row.split()[-2]) for row in rows]
    assert rows[0].startswith("population ")
    assert rows[-1].startswith("all tools ")
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    assert sum(sizes[:-1]) == sizes[-1]
    assert [point["value"] for point in json.loads(Path("tools.json").read_text())] == sizes


def test_a_budget_of_tools_fails_with_the_tools_that_take_most(capsys: pytest.CaptureFixture[str]) -> None:
    Path("budgets.toml").write_text(
        "[[tools]]\ntotal_tokens = { max = 100 }\ntokens_per_tool = { max = 60 }\nnumber_of_tools = { max = 6 }\n"
    )
    assert gate("--mcp", COMMAND, "--budgets", "budgets.toml", "--junit", "gate.xml") == 1
    told = capsys.readouterr().out
    assert "FAILED: 2 of 3 checks" in told
    assert " is over the limit of 100 (the largest: population " in told
    assert "tokens_per_tool: " in told
    assert ElementTree.parse("gate.xml").getroot().get("failures") == "2"


def test_a_tool_that_grew_or_is_new_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate("--mcp", f"[only=population,nothing] {COMMAND}", "--json", "before.json") == 0
    points = json.loads(Path("before.json").read_text())
    points[0]["value"] -= 20
    Path("before.json").write_text(json.dumps(points))
    capsys.readouterr()
    assert gate("--mcp", f"[only=population,nothing,huge] {COMMAND}", "--baseline", "before.json") == 1
    told = capsys.readouterr().out
    assert "tokens of 3 tool schemas " in told
    assert "2% is allowed: huge +" in told
    assert "(new), population +20 (" in told
    assert gate("--mcp", f"[only=population] {COMMAND}", "--baseline", "before.json") == 0


def test_bundled_tools_are_counted_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    Path("budgets.toml").write_text("[[tools]]\ntotal_tokens = { max = 600 }\n")
    assert gate("--tools", "Search,Lookup,LLM,Calculator,Wikipedia", "--budgets", "budgets.toml") == 0
    told = capsys.readouterr().out
    assert "Calculator " in told
    assert max(map(len, told.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to judge: give a RUN, --mcp or --tools"),
        (["run", "--tools", "Search"], "RUN is about a run: leave it or --mcp and --tools out"),
        (["--tools", "Search", "--strict"], "--strict is about a run"),
        (["--tools", "Search", "--live"], "--live is about a run"),
        (["--tools", "Serch"], "unknown tool 'Serch', did you mean 'Search'"),
        (["--tools", "Search", "--baseline", "none.json"], "'none.json' is no count of tools"),
        (["--tools", "Search", "--budgets", "budgets.toml"], "unknown server 'uvx other'"),
        (["--mcp", "no-such-program-here"], "--mcp"),
    ],
)
def test_what_can_not_be_counted_is_an_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("budgets.toml").write_text('[[tools]]\nserver = "uvx other"\nnumber_of_tools = { max = 1 }\n')
    assert gate(*arguments) == 2
    assert said in capsys.readouterr().err


def test_a_tool_of_the_working_folder_is_found_as_in_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    Path("gate_shelf.py").write_text(
        "from rewoo_bench.tools import Calculator\n\n\ndef author():\n    return Calculator()\n"
    )
    before = list(sys.path)
    assert gate("--tools", "gate_shelf:author", "--json", "tools.json") == 0
    assert [point["name"] for point in json.loads(Path("tools.json").read_text())] == ["Calculator", "all tools"]
    assert sys.path == before
