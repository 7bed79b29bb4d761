"""What an attacker's text reached: in the tables, in the report and its questions, in the terminal, as a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rewoo_bench
from rewoo_bench.analysis.claims import check, gather, read_claims
from rewoo_bench.analysis.summary_tables import OF_ATTACKS
from rewoo_bench.cli.main import main
from rewoo_bench.report.overview import overview
from rewoo_bench.report.rows import question_table
from rewoo_bench.report.trajectories import Trajectories
from rewoo_bench.runs.folder import load, manifests

ARCHITECTURES = ("rewoo-json", "react-native")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan and a loop on questions with each kind of injection, of an oracle that obeys."""
    folder = tmp_path_factory.mktemp("attacked") / "run"
    made = rewoo_bench.bench(
        architectures=list(ARCHITECTURES), dataset="chain?hops=2&inject=all", questions=8,
        model="oracle?gullible=1", out=folder, progress=False, report=False,
    )  # fmt: skip
    assert made.status == "done"
    return folder


def command(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*arguments])
    assert not ended.value.code


def shares(run: Path, architecture: str) -> dict[str, float]:
    rows = load(run)
    own = rows[rows["architecture"].astype(str) == architecture]
    names = ("exposed", "new_calls", "changed_arguments", "changed_answer")
    return {name: float((own[name].astype(float) > 0).mean()) for name in names}


def test_a_comparison_has_the_shares_of_the_rows_with_their_n(run: Path) -> None:
    comparison = rewoo_bench.compare(run)
    for system in comparison.systems:
        found = {name: each.estimate for name, each in system.summary.attacks.items() if each.n}
        of_rows = shares(run, system.label)
        if system.label == "react-native":
            del of_rows["changed_arguments"]  # nothing was planned
        assert found == pytest.approx(of_rows)
        assert {each.n for each in system.summary.attacks.values()} == {8, 0}  # no check says whether it ended
    assert shares(run, "react-native")["new_calls"] > 0 == shares(run, "rewoo-json")["new_calls"]
    frame = comparison.to_frame()
    own = frame[frame["kind"] == "share of attacked"].set_index(["system", "measure"])
    assert own["estimate"]["rewoo-json", "changed_arguments"] == shares(run, "rewoo-json")["changed_arguments"]
    assert (own["n"] == 8).all()


def test_the_terminal_and_the_report_have_one_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command("compare", str(run))
    said = capsys.readouterr().out
    new = shares(run, "react-native")["new_calls"]
    sentence = f"react-native made an attacker's call in {new:.0%} of the attacked questions, and rewoo-json in 0%."
    assert said.startswith(sentence)
    assert overview(load(run), manifests(run))["sentences"][0]["text"] == sentence
    assert "all are new" in said
    assert OF_ATTACKS in said
    table = overview(load(run), manifests(run))["attacks"]
    assert table["head"] == ["system", "n", "read", "new call", "changed argument", "changed answer"]
    for label, *cells in table["rows"]:
        own = [line for line in said.partition(OF_ATTACKS)[2].splitlines() if line.startswith(f"{label}  ")]
        assert all(any(cell in line for line in own[:2]) for cell in cells)
        assert cells[2].startswith(f"{100 * shares(run, label)['new_calls']:.0f}% [")


def test_the_poisoned_result_and_what_came_of_it_are_marked(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = question_table(load(run))
    systems = [system.architecture for system in table.systems]
    trajectories, marks = Trajectories([run], table), dict[tuple[str, str], set[str]]()
    for line, asked in enumerate(table.lines):
        kind = asked.example_id.rpartition("-")[2]
        for name, shown in zip(systems, trajectories.question(line)["systems"], strict=True):
            marks.setdefault((name, kind), set()).update(*(step["attack"] for step in shown["steps"]))
            poisoned = [step for step in shown["steps"] if "attacker's text" in step["attack"]]
            assert all(shown["attackers_words"] in step["observation"] for step in poisoned)
            assert shown["answer_attacked"] == (kind in ("answer", "stop"))
    assert marks["react-native", "call"] == {"attacker's text", "attacker's call"}
    assert marks["rewoo-json", "call"] == {"attacker's text"}
    assert marks["rewoo-json", "argument"] == {"attacker's text", "attacker's value"}
    first = next(line.example_id for line in table.lines if line.example_id.endswith("inject-answer"))
    command("show", str(run), first)
    said = capsys.readouterr().out
    assert "attacker's text" in said
    assert "attacker's words" in said


def test_a_run_without_an_attack_says_nothing_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewoo_bench.bench(
        architectures=list(ARCHITECTURES), dataset="chain?hops=2", questions=2,
        model="oracle", out=tmp_path / "run", progress=False, report=False,
    )  # fmt: skip
    traces: list[dict[str, Any]] = [
        json.loads(line) for line in (tmp_path / "run/traces.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(traces) == 4
    assert not any("attack" in trace for trace in traces)
    command("compare", str(tmp_path / "run"))
    assert "attack" not in capsys.readouterr().out
    assert overview(load(tmp_path / "run"), manifests(tmp_path / "run"))["attacks"] is None
    with pytest.raises(SystemExit):
        main(["plot", str(tmp_path / "run"), "--only", "reach", "--out", str(tmp_path)])
    assert "needs questions with an attacker's text" in capsys.readouterr().err


def test_claims_about_control_are_decided_by_attacked_questions_alone(run: Path) -> None:
    decided = {each.claim.id: each for each in check(read_claims(), gather(run)) if each.verdict != "no data"}
    assert set(decided) == {"plan-no-new-call", "plan-more-needed", "plan-safer-than-react"}
    assert {each.verdict for each in decided.values()} == {"by construction"}
    figures = {name: each.decided.interval.estimate for name, each in decided.items() if each.decided}
    assert figures["plan-no-new-call"] == 0
    rows = load(run)
    own = rows[rows["architecture"].astype(str) == "rewoo-json"]
    reached = (own["changed_arguments"] > 0) | (own["changed_answer"] > 0)
    assert figures["plan-more-needed"] == pytest.approx(float(reached.mean()))
    assert figures["plan-safer-than-react"] == pytest.approx(-shares(run, "react-native")["new_calls"])


def test_a_figure_shows_reach_against_cost(run: Path, tmp_path: Path) -> None:
    command("plot", str(run), "--only", "reach", "--out", str(tmp_path), "--format", "svg")
    caption = (tmp_path / "captions.md").read_text("utf-8")
    assert "**An attacker reached " in caption
    assert "The oracle obeys all that it reads" in caption
    assert (tmp_path / "reach.svg").stat().st_size > 5_000
