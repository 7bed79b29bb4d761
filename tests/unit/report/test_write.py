"""report.html: where it is written, and how."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from gate_runs import LIVE, row, write_run

from rewoo_bench.report.write import write_page

GOLDEN = Path(__file__).parents[2] / "golden" / "runs" / "finished"
MODELS = Path(__file__).parents[2] / "golden" / "models"
END = b"</body>\n</html>\n"


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


def test_the_page_names_a_planner_with_a_model_of_its_own(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [{**row(), **LIVE, "planner_model": "openai/big"}])
    write_page([run], tmp_path / "page.html", figures=False)
    assert "openai/gpt (planner openai/big)" in (tmp_path / "page.html").read_text(encoding="utf-8")
