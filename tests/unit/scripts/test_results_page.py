"""The page of the published runs."""

from __future__ import annotations

import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "results_page.py"))
main: Callable[[list[str]], int] = SCRIPT["main"]
page: Callable[[Path], str] = SCRIPT["page"]
RUN = ROOT / "results" / "models" / "hotpotqa-qwen-1.5b"


def test_the_committed_page_is_the_one_of_the_committed_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_a_page_that_is_not_the_runs_one_fails_the_check(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("old", encoding="utf-8")
    assert main(["--check", "--results", str(tmp_path)]) == 1
    assert main(["--results", str(tmp_path)]) == 0
    assert main(["--check", "--results", str(tmp_path)]) == 0


def test_each_run_has_its_table_its_sentences_and_its_own_figures(tmp_path: Path) -> None:
    shutil.copytree(RUN, tmp_path / "models" / "study" / "<b>")
    for name in ("<b>-ratio.png", "<b>-100-ratio.png"):
        (tmp_path / "models" / "study" / name).write_bytes(b"")
    made = page(tmp_path)
    assert "<b>" not in made
    assert '<section id="study/&lt;b&gt;">' in made
    assert re.findall('<img [^>]*src="([^"]*)"', made) == ["models/study/&lt;b&gt;-ratio.png"]
    assert '<tr><th scope="row">rewoo</th><td>50</td><td>0.320 [0.208, 0.458]</td>' in made
    assert "react took 3.65 [2.91, 4.58] times the tokens of rewoo (n = 50; the data show a saving by rewoo)" in made


def test_the_figures_of_a_claim_unfold_below_its_line(tmp_path: Path) -> None:
    for name in ("hotpotqa-qwen-1.5b", "hotpotqa-smollm2-135m"):
        shutil.copytree(RUN.with_name(name), tmp_path / "models" / name)
    steps = next(line for line in page(tmp_path).splitlines() if "HotpotQA: ReAct&#x27;s steps" in line)
    assert re.search(
        r"<summary>.*claimed 4\.97 \(tested: from 3\.98 .*, ours 3\.60 .*n = 50: <strong>undecided</strong></summary>",
        steps,
    )
    assert "hotpotqa-smollm2-135m, local/smollm2-135m, 2.44 " in steps
