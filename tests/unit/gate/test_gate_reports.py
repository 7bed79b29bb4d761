"""A verdict as text, as Markdown; and the baseline as a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from gate_runs import manifest, row, rows, write_run

from rewoo_bench.errors import DataError
from rewoo_bench.gate.check import check_run, open_baseline
from rewoo_bench.gate.verdict import Check, Group, Verdict, verdict_markdown, verdict_text

BUDGETS = """
[[budget]]
architecture = "rewoo"
dataset = "sample"
model = "oracle"
total_tokens = { mean = 1200, max = 1040 }
exact_match = { min = 0.5 }
latency_s = { p95 = 0.5 }
"""


@pytest.fixture
def verdict(tmp_path: Path) -> Verdict:
    """One failed budget, one warning, and growth of 5% because of q002."""
    (tmp_path / "budgets.toml").write_text(BUDGETS)
    before = write_run(tmp_path / "before", rows(4))
    now = write_run(tmp_path / "now", [*rows(2), row(2, total_tokens=1200, agent_tokens=200), row(3)])
    return check_run(now, budgets=tmp_path / "budgets.toml", baseline=before)


def test_the_text_has_the_verdict_first_then_reasons_then_figures(verdict: Verdict) -> None:
    assert verdict_text(verdict).splitlines() == [
        "FAILED: 3 of 13 checks, 1 warning; 7 that passed aren't shown",
        "n = 4 questions",
        "WARNING: fewer than 20 questions: what is rare may be missing",
        "",
        "rewoo, sample, oracle",
        "  fail  total_tokens max: 1,200.0 is over the limit of at most 1,040.0",
        "  fail  total_tokens +50.0 a question, 1,000.0 -> 1,050.0 (+5.0%), 2% is allowed; "
        "the agent's tokens grew most, by 50.0 a question: longer answers (+50.0 output tokens)",
        "          q002 +200 (agent, 1,000 -> 1,200)",
        "  fail  output_tokens +50.0 a question, 50.0 -> 100.0 (+100.0%), 2% is allowed",
        "  warn  latency_s p95: 1.00 s is over the limit of at most 0.50 s",
        "",
        "                                 measured            limit  head room",
        "rewoo, sample, oracle",
        "  total_tokens max                1,200.0  at most 1,040.0     -15.4%",
        "  total_tokens mean               1,050.0  at most 1,200.0      12.5%",
        "  latency_s p95                    1.00 s   at most 0.50 s    -100.0%",
        "  exact_match min (an oracle's)     1.000   at least 0.500     +0.500",
        "",
        "                 baseline      now   change            limit",
        "rewoo, sample, oracle",
        "  total_tokens    1,000.0  1,050.0    +5.0%  at most 1,020.0",
        "  output_tokens      50.0    100.0  +100.0%     at most 51.0",
    ]


def test_markdown_folds_the_questions_and_the_figures(verdict: Verdict) -> None:
    shown = verdict_markdown(verdict)
    assert shown.startswith(
        "### Token budgets: FAILED: 3 of 13 checks, 1 warning; 7 that passed aren't shown\n\nn = 4 questions\n\n"
        "WARNING: fewer than 20 questions: what is rare may be missing\n\n**rewoo, sample, oracle**\n\n- ❌ "
    )
    assert "<details><summary>questions that grew most</summary>\n\n- q002 +200 (agent" in shown
    assert "| rewoo, sample, oracle | total_tokens max | 1,200.0 | at most 1,040.0 | -15.4% |" in shown
    titles = re.findall(r"<details><summary>(.*?)</summary>", shown)
    assert titles == ["questions that grew most", "budgets: 4 figures", "baseline: 2 figures"]
    assert shown.count("</details>") == 3


def test_a_comment_on_an_incomplete_run_is_one_line_without_its_reason() -> None:
    verdict = Verdict((), incomplete="last: not recorded: it has 'a\\n\\nsecret plan'", notes=("a note",))
    assert "secret plan" in verdict_text(verdict)
    assert verdict_markdown(verdict).splitlines() == [
        "### Token budgets: the run is incomplete, so nothing was judged; the job's log says why"
    ]


def test_a_name_can_not_break_the_markdown() -> None:
    group = Group("a|b", "<img src=x>", "@somebody")
    shown = verdict_markdown(Verdict((Check("budget", "fail", group, "llm_calls max", "too | many", 2.0, 1.0),)))
    assert "<img" not in shown
    assert "@" not in shown
    assert "| a\\|b, &lt;img src=x>, &#64;&#8203;somebody | llm_calls max | 2.00 | at most 1.00 | -100.0% |" in shown


@pytest.mark.parametrize(
    ("kind", "measured", "limit", "least", "room"),
    [
        ("budget", 1500.0, 2000.0, False, "25.0%"),
        ("budget", 3.0, 0.0, False, "-"),
        ("cost unknown", None, 0.5, False, "not measured"),
        ("accuracy", 0.25, 0.3, True, "-0.050"),
        ("prefix cache", 0.6, 0.5, True, "20.0%"),
    ],
)
def test_head_room_is_what_is_left_of_a_limit(
    kind: Any, measured: float | None, limit: float, least: bool, room: str
) -> None:
    group = Group("rewoo", "sample", "oracle")
    check = Check(kind, "pass", group, "total_tokens mean", "", measured, limit, n=20, least=least)
    assert verdict_text(Verdict((check,))).splitlines()[-1].endswith(f"  {room}")


def test_a_baseline_file_is_read_as_the_run_it_is_of(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [*rows(3), *rows(3, architecture="react", f1=1 / 3, evidence_tokens=None)])
    found = open_baseline(run)
    path = tmp_path / "baseline.json"
    path.write_text(found.text())
    assert open_baseline(path) == found
    assert open_baseline(path).text() == found.text()
    assert check_run(run, baseline=path).code == 0


def test_a_baseline_has_a_line_a_question_and_no_text(tmp_path: Path) -> None:
    written = open_baseline(write_run(tmp_path / "run", rows(3)[::-1])).text()
    lines = [line for line in written.splitlines() if line.startswith("      [")]
    assert [json.loads(line.rstrip(","))[:2] for line in lines] == [["q000", 0], ["q001", 0], ["q002", 0]]
    assert "Which river" not in written
    assert "Neva" not in written


def test_a_baseline_names_no_folder(tmp_path: Path) -> None:
    facts = manifest(
        dataset={**manifest()["dataset"], "source": {"file": "/home/me/questions.jsonl", "sha256": "d1"}},
        models={"default": {"name": "local//home/me/mine.gguf", "path": "/home/me"}},
        prices={"local//home/me/mine.gguf": None},
    )
    written = open_baseline(write_run(tmp_path / "run", rows(1, model="local//home/me/mine.gguf"), facts)).text()
    assert "home" not in written
    assert '"local/mine.gguf"' in written


@pytest.mark.parametrize(
    ("model", "deterministic"), [("oracle?extra_steps=2", True), ("replay/x", True), ("gpt", False)]
)
def test_a_baseline_says_whether_its_counts_are_always_the_same(
    tmp_path: Path, model: str, deterministic: bool
) -> None:
    found = open_baseline(write_run(tmp_path / "run", rows(1, solver_model=model)))
    assert found.deterministic is deterministic
    assert open_baseline(tmp_path / "run", deterministic=not deterministic).deterministic is not deterministic


@pytest.mark.parametrize(
    ("content", "fault"),
    [("", "Invalid JSON"), ('{"format": 2}', "format"), ("changed", "questions.rewoo.0.3: ")],
)
def test_a_file_that_is_no_baseline_is_refused_with_its_first_fault(tmp_path: Path, content: str, fault: str) -> None:
    path = tmp_path / "baseline.json"
    if content == "changed":
        values = json.loads(open_baseline(write_run(tmp_path / "run", rows(3))).text())
        values["questions"]["rewoo"][0][values["columns"].index("total_tokens")] = "x"
        content = json.dumps(values)
    path.write_text(content)
    with pytest.raises(DataError, match=f"{path}: invalid baseline file: {fault}"):
        open_baseline(path)
