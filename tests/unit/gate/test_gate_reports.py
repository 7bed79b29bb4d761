"""A verdict as text, as Markdown, as JUnit XML, as points to track; and the baseline as a file."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from gate_runs import FAILED, manifest, row, rows, write_run

from rewoo_bench.analysis.summary import summaries_of
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.gate.check import check_run, open_baseline
from rewoo_bench.gate.verdict import Check, Group, Verdict, junit, tracked, verdict_markdown, verdict_text, write_output
from rewoo_bench.runs.folder import load_table
from rewoo_bench.runs.rows import Rows

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
        "FAILED: 3 of 14 checks, 1 warning",
        "n = 4 questions",
        "WARNING: fewer than 20 questions: what is rare may be missing",
        "",
        "rewoo, sample, oracle",
        "  fail  total_tokens max: 1,200.0 is over the limit of 1,040.0",
        "  fail  total_tokens +50.0 a question, 1,000.0 -> 1,050.0 (+5.0%), 2% is allowed; "
        "the agent's tokens grew most, by 50.0 a question: longer answers (+50.0 output tokens)",
        "          q002 +200 (agent, 1,000 -> 1,200)",
        "  fail  output_tokens +50.0 a question, 50.0 -> 100.0 (+100.0%), 2% is allowed",
        "  warn  latency_s p95: 1.00 s is over the limit of 0.50 s",
        "",
        "                                                                     measured    limit  head room",
        "rewoo, sample, oracle: total_tokens max                               1,200.0  1,040.0     -15.4%",
        "rewoo, sample, oracle: total_tokens mean                              1,050.0  1,200.0      12.5%",
        "rewoo, sample, oracle: latency_s p95                                   1.00 s   0.50 s    -100.0%",
        "rewoo, sample, oracle: exact_match min (an oracle's: means nothing)     1.000    0.500     +0.500",
        "",
        "                                      baseline      now   change    limit",
        "rewoo, sample, oracle: total_tokens    1,000.0  1,050.0    +5.0%  1,020.0",
        "rewoo, sample, oracle: output_tokens      50.0    100.0  +100.0%     51.0",
    ]


def test_markdown_folds_the_questions_and_the_figures(verdict: Verdict) -> None:
    shown = verdict_markdown(verdict)
    assert shown.startswith(
        "### Token budgets: FAILED: 3 of 14 checks, 1 warning\n\nn = 4 questions\n\n"
        "WARNING: fewer than 20 questions: what is rare may be missing\n\n**rewoo, sample, oracle**\n\n- ❌ "
    )
    assert "<details><summary>questions that grew most</summary>\n\n- q002 +200 (agent" in shown
    assert "| rewoo, sample, oracle: total_tokens max | 1,200.0 | 1,040.0 | -15.4% |" in shown
    assert shown.count("<details>") == shown.count("</details>") == 3


def test_a_name_can_not_break_the_markdown() -> None:
    group = Group("a|b", "<img src=x>", "@somebody")
    shown = verdict_markdown(Verdict((Check("budget", "fail", group, "llm_calls max", "too | many", 2.0, 1.0),)))
    assert "<img" not in shown
    assert "@" not in shown
    assert "| a\\|b, &lt;img src=x>, &#64;&#8203;somebody: llm_calls max | 2.00 | 1.00 | -100.0% |" in shown


def test_junit_has_a_case_a_check(verdict: Verdict) -> None:
    root = ElementTree.fromstring(junit(verdict))
    (suite,) = root
    assert (root.tag, suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuites", "testsuite", "14", "3")
    cases = {str(case.get("name")): case for case in suite}
    assert len(cases) == 14
    assert {case.get("classname") for case in suite} == {"rewoo.sample.oracle"}
    failed = cases["total_tokens (growth)"].find("failure")
    assert failed is not None
    assert (failed.get("type"), str(failed.text).splitlines()[1]) == ("growth", "q002 +200 (agent, 1,000 -> 1,200)")
    assert "1.00 s is over" in str(cases["latency_s p95 (latency)"].findtext("system-out"))
    assert list(cases["total_tokens mean (budget)"]) == []


def test_junit_holds_any_text_and_an_incomplete_run() -> None:
    group = Group("a.b", "s", "m")
    check = Check("budget", "fail", group, "llm_calls max", "half a \ud83d, a \x00 and an &", 2.0, 1.0)
    suite = ElementTree.fromstring(junit(Verdict((check,))).encode())[0]
    assert suite[0].get("classname") == "a_b.s.m"
    assert suite[0][0].text == "half a ?, a ? and an &"
    suite = ElementTree.fromstring(junit(Verdict((), incomplete="interrupted")))[0]
    assert (suite.get("failures"), suite[0][0].get("message")) == ("1", "interrupted")


def test_the_number_of_questions_stands_alone_where_it_is_enough() -> None:
    check = Check("budget", "pass", Group("a", "s", "m"), "llm_calls max", "…", 1.0, 2.0, n=20)
    assert verdict_text(Verdict((check,))).splitlines()[1:3] == ["n = 20 questions", ""]
    more = replace(check, n=40)
    assert verdict_text(Verdict((check, more))).splitlines()[1:3] == ["n = 20 to 40 questions", ""]


def test_one_is_singular() -> None:
    group = Group("a", "s", "m")
    check = Check("budget", "pass", group, "llm_calls max", "…", 1.0, 2.0)
    assert verdict_text(Verdict((check,))).startswith("PASSED: 1 check, 0 warnings\n")
    failed = Check("budget", "fail", group, "llm_calls max", "…", 2.0, 1.0)
    assert verdict_text(Verdict((failed, check))).startswith("FAILED: 1 of 2 checks, 0 warnings\n")


def test_far_over_the_limit_is_a_factor() -> None:
    check = Check("budget", "fail", Group("a", "s", "m"), "latency_s p95", "…", 0.5131, 0.01)
    assert verdict_text(Verdict((check,))).splitlines()[-1].split("  ")[-1].strip() == "51.3 times the limit"
    small = Check("budget", "pass", Group("a", "s", "m"), "latency_s p95", "…", 0.0005, 0.001)
    assert "0.0005 s  0.001 s" in verdict_text(Verdict((small,)))


@pytest.mark.parametrize(
    ("kind", "measured", "limit", "room"),
    [
        ("budget", 1500.0, 2000.0, "25.0%"),
        ("budget", 2000.0, 2000.0, "0.0%"),
        ("budget", 3000.0, 2000.0, "-50.0%"),
        ("budget", 19900.0, 2000.0, "-895.0%"),
        ("budget", 20000.0, 2000.0, "10 times the limit"),
        ("budget", 0.0, 0.0, "0.0%"),
        ("budget", 3.0, 0.0, "none"),
        ("accuracy", 0.25, 0.3, "+0.050"),
        ("accuracy", 0.35, 0.3, "-0.050"),
        ("cost unknown", None, 0.5, "-"),
    ],
)
def test_head_room_is_what_is_left_of_a_limit(kind: Any, measured: float | None, limit: float, room: str) -> None:
    check = Check(kind, "pass", Group("rewoo", "sample", "oracle"), "total_tokens mean", "", measured, limit, n=20)
    assert verdict_text(Verdict((check,))).splitlines()[-1].endswith(f"  {room}")


@pytest.mark.parametrize(
    ("kind", "measured", "limit", "room"),
    [
        ("accuracy", 0.35, 0.3, "+0.050"),
        ("accuracy", 0.25, 0.3, "-0.050"),
        ("prefix cache", 0.6, 0.5, "20.0%"),
        ("prefix cache", 0.4, 0.5, "-20.0%"),
        ("prefix cache", 0.4, 0.0, "-"),
        ("failed questions", 8.0, 27.0, "-70.4%"),
    ],
)
def test_head_room_of_a_least_limit_is_what_is_above_it(kind: Any, measured: float, limit: float, room: str) -> None:
    check = Check(kind, "pass", Group("rewoo", "sample", "oracle"), "rows", "", measured, limit, n=20, least=True)
    assert verdict_text(Verdict((check,))).splitlines()[-1].endswith(f"  {room}")


def test_points_are_means_that_are_better_when_smaller(tmp_path: Path) -> None:
    lines = [row(n, total_tokens=1000 + 10 * n, cost_usd=None if n == 0 else 0.1) for n in range(5)]
    points = json.loads(tracked(Rows(load_table(write_run(tmp_path / "run", lines)))))
    assert points[0] == {
        "name": "rewoo / sample / oracle: total_tokens",
        "unit": "tokens/question",
        "value": 1020.0,
        "range": "± 12.4",
        "extra": "n = 5 questions, p95 = 1038, max = 1040",
    }
    assert {point["unit"] for point in points} == {"tokens/question", "calls/question"}  # an unknown cost is no point


def test_points_leave_out_failed_questions_and_say_how_many(tmp_path: Path) -> None:
    lines = [*rows(2), *rows(2, trial=1), row(2, **FAILED, total_tokens=9), row(3, **FAILED, total_tokens=9)]
    points = json.loads(tracked(Rows(load_table(write_run(tmp_path / "run", lines)))))
    assert (points[0]["value"], points[0]["range"]) == (1000.0, "± 0")
    assert points[0]["extra"] == "n = 2 questions (4 rows), 2 failed left out, p95 = 1000, max = 1000"


def test_points_are_means_of_questions(tmp_path: Path) -> None:
    lines = [*(row(0, trial=trial, total_tokens=400) for trial in range(3)), row(1, total_tokens=1000)]
    run = Rows(load_table(write_run(tmp_path / "run", lines)))
    point = json.loads(tracked(run))[0]
    assert point["value"] == summaries_of(run)[0].total_tokens == 700
    assert point["range"] == "± 415.8"  # 1.96 * 300 / sqrt(2)
    assert point["extra"] == "n = 2 questions (4 rows), p95 = 910, max = 1000"


def test_points_are_finite_numbers(tmp_path: Path) -> None:
    lines = [*rows(2, cost_usd=float("inf")), *rows(2, architecture="react", **FAILED)]
    points = json.loads(tracked(Rows(load_table(write_run(tmp_path / "run", lines)))))
    assert {point["name"].partition(":")[0] for point in points} == {"rewoo / sample / oracle"}
    assert not [point for point in points if "cost_usd" in point["name"]]


def test_reports_hold_no_raw_control_character_and_no_command() -> None:
    group = Group("a\u202eb", "s", "m")
    check = Check("budget", "fail", group, "llm_calls max", "over\n::set-output name=a::b \x9b \u2066", 2.0, 1.0)
    written = junit(Verdict((check,)))
    assert re.search("[\x9b\u202e\u2066]", written) is None
    assert re.search(r"^\s*::", written, re.MULTILINE) is None
    assert ElementTree.fromstring(written)[0][0].get("classname") == "a\\u202eb.s.m"


def test_a_report_keeps_links_and_devices(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    write_output(tmp_path / "link.json", "one", "--json")
    write_output(tmp_path / "link.json", "two", "--json")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "target.json").read_text() == "two"
    (tmp_path / "null").symlink_to("/dev/null")
    write_output(tmp_path / "null", "lost", "--json")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(UsageError, match="--json: can't write '/dev/full': No space left on device"):
        write_output(Path("/dev/full"), "lost", "--json")


def test_a_report_is_written_into_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_output(tmp_path / "pipe", "through", "--json")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_a_report_that_can_not_be_written_is_told_by_its_flag(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--junit: can't write .*: No such file or directory"):
        write_output(tmp_path / "no" / "j.xml", "", "--junit")


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
