"""report.html: where it is written, and how."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

from gate_runs import LIVE, row, write_run

from rewoo_bench.report.plots.style import INK
from rewoo_bench.report.write import write_page

GOLDEN = Path(__file__).parents[2] / "golden" / "runs" / "finished"
MODELS = Path(__file__).parents[2] / "golden" / "models"
END = b"</body>\n</html>\n"


def test_without_javascript_the_page_has_its_summary_and_comparison(tmp_path: Path) -> None:
    sizes = {"rewoo": 1000, "<b>react": 2000}
    lines = [row(n, architecture=name, total_tokens=tokens) for name, tokens in sizes.items() for n in range(3)]
    run = write_run(tmp_path / "run", lines)
    write_page([run], tmp_path / "page.html", figures=False)
    plain = re.search("<noscript>(.*)</noscript>", (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert plain is not None
    assert "<th>system</th><th>n</th><th>EM</th>" in plain[1]
    assert "<td>&lt;b&gt;react</td>" in plain[1]
    assert "In tokens &lt;b&gt;react and rewoo are too close to call with 3 questions." in plain[1]
    assert "<b>" not in plain[1]


def test_a_page_on_standard_output_is_alone_there() -> None:
    # Not /dev/stdout: a mistake in what is tested would replace this machine's own.
    command = [sys.executable, "-m", "rewoo_bench", "report", str(GOLDEN), "--no-figures", "--out", "/dev/fd/1"]
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.returncode == 0
    assert done.stdout.startswith(b"<!doctype html>")
    assert done.stdout.endswith(END)
    assert done.stderr.startswith(b"/dev/fd/1 (")


def test_a_run_that_was_killed_is_not_called_running(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({**manifest, "status": "running"}))
    write_page([tmp_path / "run"], tmp_path / "page.html", figures=False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "the run run was killed" in page


def test_plots_have_the_ink_of_the_scheme_that_they_are_shown_in(tmp_path: Path) -> None:
    write_page([MODELS / "hotpotqa-qwen-1.5b"], tmp_path / "page.html")
    head = re.search('id="overview">(.+?)</script>', (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert head
    pictures = [each["src"].removeprefix("data:image/svg+xml;base64,") for each in json.loads(head[1])["figures"]]
    for svg in (b64decode(picture).decode() for picture in pictures):
        assert "@media(prefers-color-scheme:dark)" in svg
        assert svg.count(INK) == 1  # where the light scheme is defined
    assert pictures


def test_the_page_names_a_planner_with_a_model_of_its_own(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{**row(), **LIVE, "planner_model": "openai/big"}])
    write_page([run], tmp_path / "page.html", figures=False)
    assert "openai/gpt (planner openai/big)" in (tmp_path / "page.html").read_text(encoding="utf-8")
