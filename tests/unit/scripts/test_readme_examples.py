"""The examples of README.md and docs/ run, and print the text below them."""

from __future__ import annotations

import importlib
import re
import runpy
from pathlib import Path

import anyio
import pytest

from rewoo_bench import ScriptedModel, evaluate
from rewoo_bench.config.named import find_scorer

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"


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
def examples(monkeypatch: pytest.MonkeyPatch) -> Path:
    """docs/examples, whose modules Python can import."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.syspath_prepend(EXAMPLES / "my_set")
    importlib.invalidate_caches()
    return EXAMPLES


def test_a_file_that_a_page_shows_is_the_one_in_the_examples() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "readme_examples.py"))["with_made_parts"]
    assert made("<!-- file: my_set/dataset.toml -->\n\n<!-- end -->") == (
        "<!-- file: my_set/dataset.toml -->\n\n[dataset.toml](examples/my_set/dataset.toml):\n\n"
        '```toml\nquestions = "rows.json"\nscoring = "lenient:contains"\n```\n\n<!-- end -->'
    )


def test_the_page_of_data_sets_names_each_with_its_source() -> None:
    table = runpy.run_path(str(ROOT / "scripts" / "readme_examples.py"))["name_table"]("datasets")
    sources = dict(re.findall(r"^\| \[([^]]+)\]\(\S+\) \| .* \| ([^|]+) \|$", table, re.MULTILINE))
    assert sources["sample"] == "bundled"
    assert sources["hotpotqa"] == "hub, or a file"
    assert sources["chain"] == "generated"
    assert sources["physics"] == "a file"


def test_the_loop_of_the_examples_answers_from_one_page(examples: Path) -> None:
    model = ScriptedModel(lambda messages, role: messages[0].content[:6])
    (result,) = anyio.run(lambda: evaluate("sample", ["look_once:LookOnce"], model=model, questions=1))
    assert (result.trajectory.answer, result.trajectory.stop_reason) == ("Answer", "answered")
    assert [call.name for call in result.calls if call.kind == "tool"] == ["Search"]
    assert "\n\nQuestion: " in model.requests[0].messages[1].content


def test_the_scorer_of_the_examples_takes_an_answer_within_a_sentence(examples: Path) -> None:
    assert find_scorer("lenient:contains")("The city of Lund.", ["Lund"]).exact_match


@pytest.mark.parametrize("dataset", ["my_set", "my_set/rows.json"])
def test_the_row_of_the_examples_has_a_way_to_its_answer(dataset: str, examples: Path) -> None:
    results = anyio.run(lambda: evaluate(str(examples / dataset), ["rewoo", "react"], model="oracle"))
    assert [result.score.exact_match for result in results if result.score] == [True, True]


def test_the_world_of_the_examples_shows_what_a_plan_cannot_decide(examples: Path) -> None:
    results = anyio.run(
        lambda: evaluate(
            str(examples / "tasks.json"), ["rewoo-json", "react-native"],
            model="oracle", world=str(examples / "shop.py"),
        )
    )  # fmt: skip
    solved = {(each.task.architecture.name, each.task.example.question[:2]): each.score for each in results}
    assert {key for key, score in solved.items() if score and score.exact_match} == {
        ("rewoo-json", "Ad"), ("react-native", "Ad"), ("react-native", "If"),
    }  # fmt: skip
