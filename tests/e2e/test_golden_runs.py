"""Committed run folders (tests/golden/runs) work in every command: the format of a run is public."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rewoo_bench import compare, load
from rewoo_bench.cli.main import main

GOLDEN = Path(__file__).parents[1] / "golden" / "runs"
EIGHT = ["rewoo", "rewoo-json", "react", "react-native", "rewoo-react", "plan-execute", "direct", "cot"]
TIMES = ["latency_s", "working_s", "startup_s", "started_at", "run_id", "run_folder"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(GOLDEN, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "runs")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(list(arguments))
    return int(done.value.code or 0)


def test_it_loads_and_compares() -> None:
    rows = load("finished")
    assert list(rows["architecture"].unique()) == EIGHT
    ratio = compare(rows).pairs[1]["total_tokens"].interval
    assert ratio is not None
    assert ratio.estimate == pytest.approx(
        rows[rows["architecture"] == "react"]["total_tokens"].mean()
        / rows[rows["architecture"] == "rewoo"]["total_tokens"].mean()
    )


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    "command",
    [
        ("compare", "finished", "--format", "markdown"),
        ("claims", "finished", "chain"),
        ("publish", "finished", "--out", "published"),
        ("rescore", "finished"),
        ("plot", "finished", "chain", "--out", "figures"),
        ("gate", "finished", "--baseline", "finished"),
        ("gate", "finished", "--baseline", "again.json", "--update"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_each_command_reads_it(command: tuple[str, ...]) -> None:
    assert run(*command) == 0


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    "command",
    [
        ("compare",),
        ("compare", "--format", "csv"),
        ("claims",),
        ("claims", "--format", "json"),
        ("plot", "--only", "ratio"),
    ],
    ids=" ".join,
)
def test_each_command_says_that_a_run_is_incomplete(
    command: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    run(*command, "unfinished")
    told = "".join(capfd.readouterr())
    assert told.count("the run unfinished is incomplete, with 4 of 12 answers: used ") == 1
    run(*command, "finished")
    assert "incomplete" not in "".join(capfd.readouterr())


def test_the_caption_of_a_figure_says_so_too() -> None:
    assert run("plot", "unfinished", "--only", "ratio", "--format", "svg") == 0
    assert "questions, of an unfinished run" in Path("unfinished/plots/captions.md").read_text()


@pytest.mark.parametrize("version", [None, 2, 99])
def test_another_format_is_one_line(version: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("finished/run.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": version}))
    assert run("compare", "finished") in (2, 3)
    assert f"its format_version is {version}; " in capsys.readouterr().err


def test_a_run_of_today_passes_the_gate_and_compares(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "--arch", ",".join(EIGHT), "--model", "oracle", "-n", "2", "--out", "now", "--no-progress") == 0
    assert run("gate", "now", "--baseline", "finished") == 0
    assert run("compare", "finished", "now") == 0
    assert "runner" not in capsys.readouterr().out


def test_it_replays() -> None:
    recorded = load("finished")
    model = ["--model", "replay/finished", "--out", "replayed", "--no-progress"]
    assert run("run", "--arch", ",".join(EIGHT), "-n", "2", *model) == 0
    same = ["architecture", "example_id", "prediction", "exact_match", "input_tokens", "output_tokens", "stop_reason"]
    assert load("replayed")[same].to_dict("records") == recorded[same].to_dict("records")


def test_where_it_stopped_it_goes_on() -> None:
    before = load("unfinished")
    assert run("run", "--resume", "unfinished", "--run-tokens", "1000000", "--no-progress", "--trust") == 0
    after = load("unfinished")
    assert (len(before), len(after)) == (4, 12)
    assert len(after.merge(before, on=["architecture", "example_id", "started_at"])) == 4
    assert run("run", "--arch", "rewoo,react", "--model", "oracle", "-n", "6", "--out", "whole", "--no-progress") == 0
    whole = load("whole")
    same = [name for name in whole.columns if name not in TIMES]
    assert after[same].to_dict("records") == whole[same].to_dict("records")
