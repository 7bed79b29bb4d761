"""docs/homework.md and its notebook: what they show is what a run gives, by the oracle and by a server.

PYTHONPATH=tests/support python tests/e2e/test_homework.py    # writes the page's files and the notebook's outputs anew
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from command_runs import quiet
from model_server import ModelServer, ServerReply

from rewoo_bench import compare
from rewoo_bench.runs.folder import load
from rewoo_bench.types import ToolCall

pytestmark = pytest.mark.usefixtures("own_folder")

DOCS = Path(__file__).parents[2] / "docs"
PAGE, NOTEBOOK = DOCS / "homework.md", DOCS / "homework" / "homework.ipynb"
FILES = {"csv": "questions.csv", "python": "tools.py"}
"""In the order of the page."""
has_kernel = pytest.mark.skipif(find_spec("nbclient") is None, reason="needs nbclient and ipykernel (the extra dev)")
NAMES = {"rewoo-json": "ReWOO", "react-native": "ReAct", "plan-execute": "plan-and-execute"}
ONE_CALL, TWO_IN_SEQUENCE = "1", "4"
"""Ids of questions."""


def page() -> str:
    """The page with its two files as they are."""
    head, *parts = re.split(r"(?<= -->\n\n)(```.*?```)(?=\n\n<!-- end -->)", PAGE.read_text("utf-8"), flags=re.DOTALL)
    for place, (language, file) in enumerate(FILES.items()):
        parts[2 * place] = f"```{language}\n{(DOCS / 'homework' / file).read_text(encoding='utf-8')}```"
    return "".join([head, *parts])


def executed(folder: Path, changed: Mapping[str, str] = {}) -> Any:
    """The notebook after a run in a folder, with some of its text changed."""
    import nbclient
    import nbformat

    shutil.copytree(DOCS / "homework", folder, ignore=shutil.ignore_patterns("results"))
    text = NOTEBOOK.read_text(encoding="utf-8")
    for before, after in changed.items():
        assert before in text
        text = text.replace(before, after)
    resources = {"metadata": {"path": str(folder)}}
    return nbclient.NotebookClient(
        nbformat.reads(text, as_version=4), kernel_name="python3", record_timing=False, resources=resources
    ).execute()


def texts(notebook: Any) -> list[str]:
    """What the cells print and show, but for pictures."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output.get("text") or output["data"]["text/plain"] for output in outputs]


def test_the_page_shows_the_files_that_its_commands_name() -> None:
    assert page() == PAGE.read_text(encoding="utf-8")


def test_the_first_commands_work_and_the_calls_are_as_many_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Path.cwd() / "homework"
    monkeypatch.chdir(DOCS.parent)
    text = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"^rewoo-bench run (.*) --out results/local/homework$", text, re.MULTILINE)
    assert quiet(*shlex.split(command), "--out", out) == 0
    rows = load(out)
    asked = rows.set_index(["architecture", "example_id"])["llm_calls"].groupby(level=[0, 1]).mean()
    for question, k in ((ONE_CALL, 1), (TWO_IN_SEQUENCE, 2)):
        assert asked["react-native", question] == k + 1
        assert asked["plan-execute", question] == 2 * k + 1
        assert asked["rewoo-json", question] == 2
    right = rows.groupby("architecture")["exact_match"].sum()
    assert right.to_dict() == {"react-native": 15, "plan-execute": 15, "rewoo-json": 12}  # it can't decide on the way
    accuracy = compare(out).to_frame().query("measure == 'exact_match' and system == 'react-native' and kind == 'mean'")
    assert round(1 - accuracy["low"].item(), 1) == 0.4  # "four in ten"


@pytest.mark.slow
@has_kernel
def test_the_notebook_shows_what_a_run_gives_today(tmp_path: Path) -> None:
    import nbformat

    notebook = executed(tmp_path / "run")
    assert texts(notebook) == texts(nbformat.read(NOTEBOOK, as_version=4))
    _is_of_its_rows(notebook, tmp_path / "run")


class Model:
    """Makes one call by tools, else answers; the second of three trials is wrong."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: dict[str, Any]) -> str | ServerReply:
        self.asked += 1
        if request.get("tools") and request["messages"][-1]["role"] != "tool":
            return ServerReply("", "tool_calls", [ToolCall("1", "stock_of", {"product": "mug"})])
        return f"Answer: {self.asked % 3}"


@pytest.mark.slow
@has_kernel
def test_one_cell_changes_the_model(tmp_path: Path) -> None:
    with ModelServer(Model()) as server:
        own = {'MODEL = \\"oracle\\"': 'MODEL = \\"openai/mine\\"', "OPTIONS = {}": f"OPTIONS = {_options(server)}"}
        own["plt.show()"] = 'plt.show()\\n",\n    "print(figure.get_suptitle())'
        notebook = executed(tmp_path / "run", own)
        rows = _is_of_its_rows(notebook, tmp_path / "run")
        assert rows["llm_calls"].sum() == len(server.books)
        assert rows["total_tokens"].sum() == server.totals().input_tokens + server.totals().output_tokens
    said = texts(notebook)[-1]
    assert "openai/mine" in said
    assert said.count("too close to call") >= 2  # right answers, of both pairs
    assert not any(name in said for name in NAMES)
    title = texts(notebook)[-2]
    shown = re.findall(r"^(\S+) took about (\S+) times the tokens of ReWOO", said, re.MULTILINE)
    assert shown or title == "Tokens are too close to call\n"
    for name, times in shown:
        less, more = (name, "ReWOO") if float(times) < 1 else ("ReWOO", name)
        assert re.search(rf"{less} took fewer tokens than .*{more}", title)


def _options(server: ModelServer) -> str:
    return repr({"api_base": server.api_base, "temperature": 0.7})


def _is_of_its_rows(notebook: Any, folder: Path) -> pd.DataFrame:
    """The table and the sentences have the figures of questions.parquet, which are returned."""
    (run,) = (folder / "results" / "local").iterdir()
    rows = pd.read_parquet(run / "questions.parquet")
    assert len(rows) == 45
    (html,) = (
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    )
    shown, said = _cells(html), texts(notebook)[-1]
    for name in rows["architecture"].unique():
        own = rows[rows["architecture"] == name]
        tokens, calls, right = own["total_tokens"].mean(), own["llm_calls"].mean(), int(own["exact_match"].sum())
        row = shown[NAMES[name]]
        assert (int(row["answers"]), int(row["right"])) == (15, right)
        assert row["right, each trial"] == ", ".join(f"{n}" for n in own.groupby("trial")["exact_match"].sum())
        assert float(row["tokens"]) == pytest.approx(tokens, abs=0.005)
        assert float(row["model calls"]) == pytest.approx(calls, abs=0.005)
        spread = own.groupby("trial")["total_tokens"].mean().std()
        assert float(row["spread of tokens"]) == pytest.approx(spread, abs=0.005)
        assert f"{NAMES[name]} was right in {right} of 15 answers" in said or f"{NAMES[name]} in {right}" in said
        assert f"{tokens:,.0f}" in re.findall(r"Per question they took (.*) tokens\.", said)[0]
    spans = rows.groupby(["architecture", "trial"])["exact_match"].sum().groupby(level=0).agg(["min", "max"])
    assert f"the right answers differed by at most {(spans['max'] - spans['min']).max()}." in said
    return rows


def _cells(html: str) -> dict[str, dict[str, str]]:
    """A table of pandas: its index -> column -> text."""
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL)]
    head, _, *below = rows
    return {name: dict(zip(head[1:], values, strict=True)) for name, *values in below}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    with TemporaryDirectory() as scratch:
        import nbformat

        nbformat.write(executed(Path(scratch) / "run"), NOTEBOOK)
