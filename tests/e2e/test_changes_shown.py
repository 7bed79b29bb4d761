"""Steps that change state, marked in the terminal and on the report's page, and how many changes a question made."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewoo_bench.cli.main import main
from rewoo_bench.report.write import write_page
from rewoo_bench.runs.columns import QUESTIONS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TASK: dict[str, Any] = {
    **{"id": "t1", "question": "Count the mugs, and add 2 hats and 2 mugs.", "stock": {"mug": 3}, "orders": []},
    "stock_after": {"mug": 5},
    "calls": [
        {"tool": "stock_of", "arguments": {"sku": "mug"}},
        {"tool": "update_stock", "arguments": {"sku": "hat", "change": 2}},  # which fails: there are no hats
        {"tool": "update_stock", "arguments": {"sku": "mug", "change": 2}},
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan and a loop on a task in a world, of whose calls one reads, one fails and one changes state."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "questions.jsonl").write_text(json.dumps(TASK) + "\n", encoding="utf-8")

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "rewoo_bench"]  # a process of its own: playwright has this one's event loop
        return subprocess.run([*program, *arguments], cwd=folder, check=True, capture_output=True, text=True)

    command("new", "world", "shop")
    asked = ("--world", "shop/shop.py", "--dataset", "questions.jsonl", "--model", "oracle", "--out", "run")
    said = command("run", "--arch", "rewoo,react-native", *asked)
    assert re.search(r"2/2 answers, .* solved (rewoo|react-native) 1.00, ", said.stderr)
    assert re.search(r"^architecture  n +solved +answered$", said.stdout, re.MULTILINE)
    changes = r"^architecture +rows  changes of state  unasked changes\nrewoo +1 +1\.00 +0\.00\nreact-native +1 +1\.00"
    for text in (said.stdout, command("compare", "run").stdout.replace("system      ", "architecture")):
        assert re.search(changes, text, re.MULTILINE), text
    assert "an oracle makes no mistake" in said.stdout
    return folder / "run"


def test_the_terminal_marks_the_step_that_changed_something(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["show", str(run), "t1"])
    lines = [line.strip("│ \n") for line in capsys.readouterr().out.splitlines()]
    plan = ["E1 stock_of", "E2 update_stock failed", "E3 update_stock changes state"]
    loop = ["1.1 stock_of", "1.2 update_stock failed", "1.3 update_stock changes state"]
    assert [line for line in lines if re.match(r"E\d |1\.\d ", line)] == plan + loop


@contextmanager
def opened(page: Path, **settings: Any) -> Iterator[Any]:
    """The page of the task in a browser with the network off."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
    if CHROMIUM is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        shown = browser.new_context(offline=True, **settings).new_page()
        shown.goto(f"file://{page}#q=t1")
        shown.wait_for_selector(".trajectories .step")
        yield shown
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_marks_it_also_where_it_is_narrow(run: Path, scheme: str) -> None:
    width = 400
    with opened(run / "report.html", color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        heads = [" ".join(text.split()) for text in page.locator(".step header").all_inner_texts()]
        assert heads == ["E1 stock_of", "E2 update_stock failed", "E3 update_stock changes state"]
        box = page.locator(".step .tag", has_text="changes state").bounding_box()
        assert box["x"] + box["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_facts_of_a_question_count_its_changes(run: Path, tmp_path: Path) -> None:
    with opened(run / "report.html") as page:
        assert "F1" not in page.locator(".answers").inner_text()  # which a world's check is, too
        facts = page.locator(".answer .numbers").all_inner_texts()
        assert [text.split(" · ")[-1] for text in facts] == ["1 change of state"] * 2
        assert page.get_by_text("Time in seconds").count() == 0, "an oracle's seconds are those of the harness"
    copy = shutil.copytree(run, tmp_path / "unasked")
    rows = pq.read_table(copy / "questions.parquet").to_pylist()
    rows[0] |= {"state_changes": 3, "unasked_changes": 2}
    rows[1] |= {"state_changes": None, "unasked_changes": None}
    pq.write_table(pa.Table.from_pylist(rows, schema=QUESTIONS), copy / "questions.parquet")
    write_page([copy], copy / "report.html", texts=False, figures=False)
    with opened(copy / "report.html") as page:
        first, second = page.locator(".answer .numbers").all_inner_texts()
        assert first.endswith(" · 3 changes of state, 2 unasked")
        assert "state" not in second
        marks = page.locator(".step .tag", has_text="changes state")
        assert marks.count() == 2, "also on a page without texts"
