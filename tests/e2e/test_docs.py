"""The pages of docs/ run as they stand: every command, and the Python of the plots, in the folder of their examples."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from answering import KEY
from model_server import ModelServer, ServerReply

from rewoo_bench.runs.folder import load
from rewoo_bench.types import ToolCall

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
ELSEWHERE = ("ci.md", "homework.md")  # these have tests of their own
SERVER = "http://localhost:8000/v1"
HAS_LANGGRAPH = bool(importlib.util.find_spec("langgraph") and importlib.util.find_spec("langchain_openai"))

pytestmark = pytest.mark.usefixtures("own_folder")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)


def commands(page: str) -> list[str]:
    """The lines of a page for a terminal, without those that install something or say what else they need."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line for line in lines if line.startswith("rewoo-bench ") and "  # needs " not in line]


def reply(request: Mapping[str, Any]) -> ServerReply:
    """One look-up where a tool for it is offered, then a number."""
    offered = {tool["function"]["name"] for tool in request.get("tools", ())}
    if "stock_of" in offered and request["messages"][-1]["role"] != "tool":
        return ServerReply("", "tool_calls", tool_calls=[ToolCall("call-1", "stock_of", {"product": "mug"})])
    return ServerReply("3")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """The examples' files and the committed study are in the working folder, and a model answers."""
    shutil.copytree(ROOT / "docs" / "examples", Path.cwd(), dirs_exist_ok=True)
    Path("results").mkdir()
    Path("results/study").symlink_to(ROOT / "results" / "study")
    with ModelServer(reply) as started:
        yield started


def do(line: str, server: ModelServer) -> None:
    """A command in a process of its own. Fails with what it said."""
    words = [sys.executable, "-m", "rewoo_bench", *shlex.split(line.replace(SERVER, server.api_base))[1:]]
    if "--run-cost" in words and "--resume" not in words:  # list prices aren't those of another address
        words += ["--price", "input=0.15,output=0.6"]
    env = {**os.environ, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.api_base}
    ended = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{line}: {ended.stdout}{ended.stderr}"


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in (*ELSEWHERE, "langgraph.md") and commands(page)]
)
def test_every_command_of_a_page_runs(page: str, server: ModelServer) -> None:
    for line in commands(page):
        do(line, server)


def test_the_commands_of_the_readme_run(server: ModelServer) -> None:
    """With the files of docs/compare.md; the first one, which asks the embedded model, has tests of its own."""
    asked = commands("../README.md")
    assert len(asked) == 2
    for number, line in enumerate(asked):
        do(f"{line} -n 2 --out run{number}", server)


@pytest.mark.slow  # after the extra dev is installed
@pytest.mark.skipif(not HAS_LANGGRAPH, reason="needs langgraph and langchain-openai, as its page says")
def test_the_langgraph_agent_is_metered_beside_a_plan(server: ModelServer) -> None:
    for line in commands("langgraph.md"):
        do(line, server)
    rows = load("results/local/graph").set_index("architecture").loc["my_agent"]
    assert rows["prediction"].tolist() == ["3", "3"]
    assert rows["llm_calls"].tolist() == [2, 2]
    assert rows["tool_calls"].tolist() == [1, 1]
    assert sorted(rows["exact_match"]) == [False, True]
    assert not any("unmetered" in flags for flags in rows["flags"])


def test_the_plots_are_drawn_by_the_code_above_them(server: ModelServer) -> None:
    code = "import matplotlib\nmatplotlib.use('svg')\n" + "\n".join(blocks("pandas.md", "python"))
    subprocess.run([sys.executable, "-c", code], check=True)
    drawn = {path.name for path in Path.cwd().glob("*.svg")}
    assert drawn == {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    text = (ROOT / "docs" / "pandas.md").read_text(encoding="utf-8")
    assert re.findall(r"\(pictures/(.*?)\)", text) == re.findall(r'savefig\("(.*?)"\)', text)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a clone: git lists the pages")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in (*ELSEWHERE, "columns.md")])
def test_a_page_begins_with_what_to_type_and_is_short(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert re.match(r"# .+\n\n```(console|python)\n", text)
    written = re.sub(r"<!-- [\w ]+: .*?<!-- end -->", "", text, flags=re.DOTALL)  # not by a script
    assert len(written.split()) <= 450
