"""The report's page: what stands where, what is folded, and tables to paste."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from opened_page import CHROMIUM, Opened, unfold

from rewoo_bench.report.planned import read_planned
from rewoo_bench.report.write import write_page
from rewoo_bench.runs.columns import QUESTIONS

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)")

STUDIED = Path(__file__).parents[2] / "results" / "study" / "runs" / "main-hotpotqa-qwen"
WINDOW = {"width": 1280, "height": 900}
ASKED = 'Which is it | "this", & 50% of_that?'
FORMULA = "=1+1"
FOLDED = ["How the questions ended", "Figures", "Published claims that this run tests", "The run"]


def made(out: Path, architectures: str) -> Path:
    """A run of the oracle on twenty questions, of which some are hard to paste."""
    arguments = ["--arch", architectures, "--model", "oracle", "-n", "20", "--no-progress", "--no-report"]
    program = [sys.executable, "-m", "rewoo_bench", "run"]  # a process of its own: playwright has this one's event loop
    subprocess.run([*program, *arguments, "--out", str(out)], check=True, capture_output=True)
    first, second, *_ = ids(out)
    hard = {first: ASKED, second: FORMULA}
    return changed(out, lambda row: row | {"question": hard.get(row["example_id"], row["question"])})


def ids(run: Path) -> list[str]:
    return list(dict.fromkeys(pq.read_table(run / "questions.parquet")["example_id"].to_pylist()))


def changed(run: Path, change: Any) -> Path:
    """The run with its rows changed, and its page."""
    rows = [change(row) for row in pq.read_table(run / "questions.parquet").to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, schema=QUESTIONS), run / "questions.parquet")
    write_page([run], run / "report.html", figures=False)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("order") / "run", "rewoo,react")


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("loop") / "run", "react")


@pytest.mark.parametrize("studied", [False, True])
def test_the_questions_begin_in_the_first_window_below_the_verdict(
    browser: Any, run: Path, tmp_path: Path, studied: bool
) -> None:
    write_page([STUDIED if studied else run], tmp_path / "page.html", figures=False)
    with Opened(browser, tmp_path / "page.html", viewport=WINDOW) as opened:
        places = [".sentences", ".threats", ".means", "#questions", ".lines", "#details"]
        tops = [opened.page.locator(place).first.bounding_box()["y"] for place in places]
        assert tops == sorted(tops)
        assert tops[3] < WINDOW["height"]


def test_what_is_folded_is_named_and_caveats_say_how_they_begin(browser: Any, run: Path) -> None:
    with Opened(browser, run / "report.html") as opened:
        assert opened.page.locator("details[open]").count() == 0
        assert "Few questions (20)" in opened.page.locator(".threats summary").inner_text()
        assert "intervals are wide" not in opened.page.locator("main").inner_text()
        titles = opened.page.locator(".details > details > summary").all_inner_texts()
        assert [title.partition(" (")[0] for title in titles] == FOLDED


def cells_of(text: str, form: str) -> list[list[str]]:
    """The cells of a table that was pasted."""
    if form == "CSV":
        return list(csv.reader(StringIO(text)))
    if form == "LaTeX":
        rows = [line.removesuffix(" \\\\").split(" & ") for line in text.splitlines() if line.endswith(" \\\\")]
    else:
        rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in text.splitlines() if "---" not in line]
    return [[re.sub(r"\\(.)", r"\1", cell) for cell in row] for row in rows]


@pytest.mark.parametrize("form", ["Markdown", "LaTeX", "CSV"])
def test_a_copied_table_has_exactly_the_cells_that_are_shown(browser: Any, run: Path, form: str) -> None:
    with Opened(browser, run / "report.html", permissions=["clipboard-read", "clipboard-write"]) as opened:
        table = opened.page.locator(".pasteable").first
        table.get_by_role("button", name=form).click()
        table.get_by_text(f"copied as {form}").wait_for()
        head = table.locator("thead th").all_inner_texts()
        rows = [
            [cell.evaluate("cell => cell.lastChild.textContent") for cell in row.locator("th, td").all()]
            for row in table.locator("tbody tr").all()
        ]
        assert len(rows) == 2
        assert cells_of(opened.page.evaluate("navigator.clipboard.readText()"), form) == [head, *rows]


def test_without_a_clipboard_the_text_stands_in_a_field(browser: Any, run: Path) -> None:
    with Opened(browser, run / "report.html", "#find=50%25") as opened:
        opened.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        copy = opened.page.get_by_role("group", name="Copy: Questions")
        for form in ("Markdown", "LaTeX", "CSV"):
            copy.get_by_role("button", name=form).click()
            copy.get_by_text(f"{form}, to be copied").wait_for()
            head, line = cells_of(copy.locator("textarea").input_value(), form)
            assert head[:3] == ["question", "type", "rewoo"]
            assert line[0] == ASKED
        assert opened.console == []


def test_no_spreadsheet_reads_a_question_as_a_formula(browser: Any, run: Path) -> None:
    with Opened(browser, run / "report.html", "#find=%3D1%2B1") as opened:
        opened.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        copy = opened.page.get_by_role("group", name="Copy: Questions")
        copy.get_by_role("button", name="CSV").click()
        assert cells_of(copy.locator("textarea").input_value(), "CSV")[1][0] == f"'{FORMULA}"


def test_a_loop_alone_says_what_could_have_been_planned_and_a_run_with_a_planner_does_not(
    browser: Any, run: Path, loop: Path
) -> None:
    assert [each["label"] for each in read_planned([loop]).shown] == ["react"]
    assert read_planned([run]).shown == read_planned([loop, run]).shown == []
    for folder, count in ((loop, 1), (run, 0)):
        with Opened(browser, folder / "report.html") as opened:
            assert opened.page.locator("summary", has_text="What could have been planned").count() == count
            opened.page.evaluate(f"location.hash = '#q={ids(folder)[2]}'")
            assert opened.question().get_by_role("heading", name="What could have been planned").count() == count


def test_nothing_is_timed_of_an_oracle(browser: Any, run: Path, tmp_path: Path) -> None:
    def sorts(opened: Opened) -> Any:
        return opened.page.locator(".header .group").first.locator(".sort").all_inner_texts()

    def whole(opened: Opened) -> str:
        unfold(opened.page)
        return str(opened.page.locator("main").text_content())

    zero = re.compile(r"\b0(\.0+)? s\b")
    with Opened(browser, run / "report.html") as opened:
        assert sorts(opened) == ["✓", "tokens", "calls"]
        assert not zero.search(whole(opened))
        opened.page.evaluate(f"location.hash = '#q={ids(run)[2]}'")
        assert not zero.search(opened.question().locator("main").text_content())
        assert opened.page.locator("figure.lanes").count() == 1
    asked = shutil.copytree(run, tmp_path / "asked")
    changed(asked, lambda row: row | {"model": "openai/small", "oracle": False, "latency_s": 0.04})
    with Opened(browser, asked / "report.html") as opened:
        assert sorts(opened) == ["✓", "tokens", "calls", "s"]
        opened.page.evaluate(f"location.hash = '#q={ids(run)[2]}'")
        assert "0.04 s" in opened.question().locator(".answers").inner_text()
        assert opened.page.locator("figure.lanes").count() == 2
        assert not zero.search(opened.page.locator("main").text_content())
