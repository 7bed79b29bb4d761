"""The examples of the READMEs run, and print the text below them."""

from __future__ import annotations

import importlib
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from rewoo_bench import ScriptedModel, evaluate
from rewoo_bench.config.named import find_scorer
from rewoo_bench.config.names import bundled_folder
from rewoo_bench.loaders.load import load_dataset_examples

ROOT = Path(__file__).parents[3]


def blocks(file: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)


def test_the_worked_examples_are_what_they_print_now(capsys: pytest.CaptureFixture[str]) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "readme_examples.py"))
    assert script["main"](["--check"]) == 0, capsys.readouterr().out


def test_an_example_that_prints_something_else_is_rewritten(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "readme_examples.py"))
    shown = "```python\na = 1\na + 1\n```\nand so\n```text\n3\n```\n```python\nprint(a)\n```\n\n```text\n```\n"
    assert script["rewritten"](shown, tmp_path) == shown.replace("text\n3\n", "text\n2\n").replace(
        "text\n```", "text\n1\n```"
    )


def test_an_example_that_differs_only_in_seconds_stays() -> None:
    newer = runpy.run_path(str(ROOT / "scripts" / "readme_examples.py"))["newer"]
    before = "3 calls\np95  0.31 s  20.00 s\n"
    assert newer(before, "3 calls\np95  0.07 s  20.00 s\n") == before
    assert newer(before, "4 calls\np95  0.07 s  20.00 s\n") == "4 calls\np95  0.07 s  20.00 s\n"


@pytest.fixture
def look_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The class of architectures/README.md, as a module."""
    (tmp_path / "look_once.py").write_text(blocks("architectures/README.md")[0], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return "look_once:LookOnce"


def test_the_loop_in_the_architectures_readme_runs(look_once: str) -> None:
    model = ScriptedModel(lambda messages, role: messages[0].content[:6])
    (result,) = anyio.run(lambda: evaluate("sample", [look_once], model=model, questions=1))
    assert (result.trajectory.answer, result.trajectory.stop_reason) == ("Answer", "answered")
    assert [call.name for call in result.calls if call.kind == "tool"] == ["Search"]
    assert "\n\nQuestion: " in model.requests[0].messages[1].content


def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    """A module that Python can import."""
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()


def test_the_tool_in_the_architectures_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, monkeypatch, "page_titles", blocks("architectures/README.md")[2])
    table = blocks("architectures/README.md", "toml")[0]
    folder = tmp_path / "listing"
    shutil.copytree(bundled_folder("architectures") / "react", folder)
    description = (folder / "architecture.toml").read_text(encoding="utf-8")
    changed = re.sub(r"\[tools\.Search\]\n(\w.*\n)*", table, description).replace(
        "../rewoo", str(ROOT / "architectures/rewoo")
    )
    (folder / "architecture.toml").write_text(changed, encoding="utf-8")
    turns = ["Thought: t\nAction: Titles[a]", "Thought: t\nAction: Titles[no such phrase]", "Action: Finish[x]"]
    (result,) = anyio.run(lambda: evaluate("chain", [str(folder)], model=ScriptedModel(turns), questions=1))
    titles, missing, _ = result.trajectory.steps
    assert {page.title for page in result.task.example.documents} >= set(titles.observation.split("; "))
    assert missing.observation == "ERROR: no page contains 'no such phrase'"


def test_the_scorer_in_the_data_sets_readme_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = [block for block in blocks("datasets/README.md") if "Score" in block]
    written(tmp_path, monkeypatch, "lenient", code)
    assert find_scorer("lenient:contains")("The city of Lund.", ["Lund"]).exact_match


def test_the_row_in_the_data_sets_readme_has_a_way_to_its_answer(tmp_path: Path) -> None:
    text = (ROOT / "datasets/README.md").read_text(encoding="utf-8")
    (row,) = re.findall(r'^    \{"id": "s1".*?\]\}\n\n', text, re.DOTALL | re.MULTILINE)
    (tmp_path / "rows.jsonl").write_text(" ".join(row.split()), encoding="utf-8")
    path = str(tmp_path / "rows.jsonl")
    results = anyio.run(lambda: evaluate(path, ["rewoo", "react"], model="oracle"))
    assert [result.score.exact_match for result in results if result.score] == [True, True]


def test_the_smallest_row_and_folder_of_the_data_sets_readme_are_data_sets(tmp_path: Path) -> None:
    text = (ROOT / "datasets/README.md").read_text(encoding="utf-8")
    (row,) = re.findall(r'^    (\{"question".*\})\n\nA folder', text, re.MULTILINE)
    (tmp_path / "questions.jsonl").write_text(row, encoding="utf-8")
    (tmp_path / "passages.jsonl").write_text('{"title": "Lund", "text": "A town."}', encoding="utf-8")
    (tmp_path / "dataset.toml").write_text(blocks("datasets/README.md", "toml")[0], encoding="utf-8")
    for dataset in (tmp_path / "questions.jsonl", tmp_path):
        assert [example.answers for example in load_dataset_examples(str(dataset)).examples] == [("Lund",)]


def test_the_example_of_watching_a_question_prints_its_events(capsys: pytest.CaptureFixture[str]) -> None:
    watching: dict[str, Any] = {}
    exec(blocks("architectures/README.md")[3], watching)
    shown = capsys.readouterr().out
    for name in ("planner_started", "step_started", "answered"):
        assert name in shown


def test_the_example_in_the_readme_answers(capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = [block for block in blocks("rewoo_bench/evaluation/README.md") if "anyio.run(main)" in block]
    exec(shown.replace("questions=2", 'questions=2, model="oracle"'), {})
    assert len(capsys.readouterr().out.splitlines()) == 4  # two questions, two architectures
