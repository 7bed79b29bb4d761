"""`rewoo-bench show`: a question and its trajectories in the terminal."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewoo_bench import load
from rewoo_bench.cli.main import main

GOLDEN = Path(__file__).parents[1] / "golden" / "runs" / "finished"


def show(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        main(["show", *arguments])
    out, err = capsys.readouterr()
    return int(done.value.code or 0), out, err


def test_a_question_shows_gold_and_each_trajectory(capsys: pytest.CaptureFixture[str]) -> None:
    row = load(GOLDEN).iloc[0]
    code, out, _ = show(capsys, str(GOLDEN), str(row["example_id"]))
    assert code == 0
    assert str(row["answers"][0]) in out
    assert all(f"{name} right" in out for name in ("rewoo", "react", "direct"))
    assert "\x1b" not in out  # piped: plain text


def test_a_step_that_reads_names_the_result_in_place_of_repeating_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    _, out, _ = show(capsys, str(GOLDEN), "barber of seville", "--arch", "rewoo")
    lines = [line.strip("│ ") for line in out.splitlines()]
    assert lines[lines.index("E2 LLM") :][2:4] == [
        "asks: The composer? Context: … (E1)",
        "result: Gioachino Rossini",
    ]
    assert out.count("Count Almaviva wins") == 1


@pytest.mark.parametrize(("width", "columns"), [("140", 2), ("70", 1)])
def test_two_systems_are_next_to_each_other_where_there_is_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    _, out, _ = show(capsys, str(GOLDEN), "sample-028", "--arch", "rewoo", "--arch", "react")
    head = next(line for line in out.splitlines() if "rewoo right" in line)
    assert ("react right" in head) == (columns == 2)
    assert ("one below the other, since the terminal has 70 columns" in out) == (columns == 1)


def test_the_questions_that_a_run_says_ended_without_an_answer_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--arch", "rewoo,react", "--model", "oracle", "-n", "4", "--max-steps", "2", "--out", str(tmp_path)]
    with pytest.raises(SystemExit):
        main(["run", *arguments, "--no-report", "--no-progress"])
    said = capsys.readouterr().err
    assert f"ended without an answer: react: 4 step_limit; rewoo-bench show {tmp_path} --unanswered lists them" in said
    unanswered = load(tmp_path).query("stop_reason == 'step_limit'")
    _, out, _ = show(capsys, str(tmp_path), "--unanswered")
    assert out.count("gold:") == len(unanswered) == 4
    assert show(capsys, str(tmp_path), "--unanswered", "--arch", "rewoo")[2] == "no question fits\n"


def test_the_last_lines_say_at_which_price_dollars_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `compare` says it, of a run whose model has no price."""
    monkeypatch.setenv("COLUMNS", "1000")
    _, out, _ = show(capsys, str(GOLDEN), "sample-028", "--arch", "rewoo")
    assert re.search(r"calls, \$0\.\d+", out)
    with pytest.raises(SystemExit):
        main(["compare", str(GOLDEN)])
    lines = capsys.readouterr().out.splitlines()
    (said,) = [line for line in lines if line.startswith("dollars are at ")]
    assert "; an example, since no price of oracle is known" in said
    assert out.splitlines()[-1].rstrip() == said


def test_escapes_in_evidence_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(GOLDEN, run)
    traces = [json.loads(line) for line in (run / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    for trace in traces:
        for step in trace["steps"]:
            step["observation"] = "\x1b[2J\x1b]0;title\x07 [bold red]not markup[/]"
    (run / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces), encoding="utf-8")
    _, out, _ = show(capsys, str(run), "sample-028", "--arch", "rewoo")
    assert "\x1b" not in out
    assert "\\u001b[2J" in out
    assert "[bold red]not markup[/]" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing of that kind",), "has no question 'nothing of that kind'"),
        (("sample-28",), "has no question 'sample-28', did you mean 'sample-028'?"),
        (("sample-028", "--arch", "rewo"), "did you mean 'rewoo'?"),
        (("--only-right", "nobody"), "unknown architecture 'nobody'"),
    ],
)
def test_what_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = show(capsys, str(GOLDEN), *arguments)
    assert code in (2, 3)
    assert message in err
    assert err.count("\n") == 1


def test_questions_are_chosen_by_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = show(capsys, str(GOLDEN), "--only-right", "react")
    assert (code, out) == (0, "")
    assert "no question fits" in err
    _, out, _ = show(capsys, str(GOLDEN), "--random", "1", "--arch", "direct")
    assert out.count("gold:") == 1


def test_a_run_ends_with_a_link_to_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    arguments = ["run", "--arch", "rewoo", "--model", "oracle", "-n", "3", "--no-progress"]
    for extra in ([], ["--no-report"]):
        with pytest.raises(SystemExit):
            main([*arguments, "--out", str(out.with_name(f"run{len(extra)}")), *extra])
        *_, line, folder = capsys.readouterr().out.splitlines()
        page = Path(folder) / "report.html"
        assert page.is_file() == (page.resolve().as_uri() in line) == (not extra)


def test_a_resumed_run_writes_a_page_where_it_began_with_one(tmp_path: Path) -> None:
    begun = ["run", "--arch", "direct", "--model", "oracle", "-n", "3", "--no-progress", "--no-report"]
    for arguments in ([*begun, "--out", str(tmp_path / "run")], ["run", "--resume", str(tmp_path / "run"), "-n", "5"]):
        with pytest.raises(SystemExit):
            main(arguments)
    assert not (tmp_path / "run" / "report.html").exists()
    with pytest.raises(SystemExit):
        main(["run", "--resume", str(tmp_path / "run"), "--report"])
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_answer_of_a_published_run_is_that_of_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(__file__).parents[2] / "results" / "study" / "runs" / "main-hotpotqa-qwen"
    assert not (run / "traces.jsonl").exists()
    answered = load(run).query("stop_reason == 'answered'").iloc[0]
    _, shown, _ = show(capsys, str(run), answered.example_id, "--arch", answered.architecture)
    assert f"answer  {answered.prediction.split()[0]}" in shown
    assert "(this copy of the run is without the questions' texts)" in shown


def test_an_agents_log_and_the_gateways_notes_are_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(GOLDEN, run)
    traces = [json.loads(line) for line in (run / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    for trace in traces:
        trace["notes"] = {"gateway": {"second_attempts": 2}, "stderr": "Traceback\nValueError: \x1b[2J no key"}
    (run / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces), encoding="utf-8")
    _, out, _ = show(capsys, str(run), "sample-028", "--arch", "rewoo")
    assert "second_attempts: 2" in out
    assert "ValueError: \\u001b[2J no key" in " ".join(out.split())


def test_flags_and_words_between_steps_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    shutil.copytree(GOLDEN, run)
    table = pq.read_table(run / "questions.parquet")
    kept = table.select([name for name in table.column_names if name != "flags"])
    pq.write_table(kept.append_column("flags", pa.array([["unmetered"]] * len(table))), run / "questions.parquet")
    traces = [json.loads(line) for line in (run / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    said = [{**trace, "steps": [{"id": "1", "thought": "Let me think first."}, *trace["steps"]]} for trace in traces]
    (run / "traces.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in said), encoding="utf-8")
    _, out, _ = show(capsys, str(run), "--random", "1", "--arch", "react")
    assert "unmetered" in out
    assert "Let me think first." in out


def test_without_a_question_the_first_ones_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = show(capsys, str(GOLDEN))
    row = load(GOLDEN).iloc[0]
    assert code == 2
    assert "name a QUESTION" in err
    assert f"rewoo-bench show {GOLDEN} {row['example_id']}   # {row['question'][:20]}" in err


def test_programs_stand_before_the_calls_that_they_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    arguments = ["--model", "oracle", "--dataset", "chain", "-n", "1", "--no-progress", "--no-report", "--out", run]
    with pytest.raises(SystemExit):
        main(["run", "--arch", "rewoo-code,react-code", *arguments])
    capsys.readouterr()
    for name, title in (("rewoo-code", "program"), ("react-code", "program of turn 1")):
        _, out, _ = show(capsys, run, "--random", "1", "--arch", name)
        order = [out.index(each) for each in (f"│ {title} ", "Search(", "printed: ", "│ E1 Search")]
        assert order == sorted(order)
