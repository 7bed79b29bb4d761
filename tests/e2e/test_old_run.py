"""A run folder of version 0.1.0 (tests/golden/run-of-0.1) works in every command, with its own architectures.

Its manifests and its architecture.toml files name runners and generators by import paths that have moved since.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rewoo_bench import compare, load
from rewoo_bench.cli.main import main

GOLDEN = Path(__file__).parents[1] / "golden" / "run-of-0.1"
EIGHT = ["rewoo", "rewoo-json", "react", "react-native", "rewoo-react", "plan-execute", "direct", "cot"]
FOLDERS = ",".join(f"architectures/{name}" for name in EIGHT)
TIMES = ["latency_s", "working_s", "startup_s", "started_at", "run_id", "run_folder"]
NEWER = ["flags", "answers_sha256", "loop_step", "loop_tokens", "broken_plans"]  # of which the older rows say nothing


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, and the working directory that its commands were given in."""
    folder = tmp_path / "old"
    shutil.copytree(GOLDEN, folder)
    monkeypatch.chdir(folder)
    return folder


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(list(arguments))
    return int(done.value.code or 0)


def test_it_loads_and_compares(old: Path) -> None:
    rows = load("finished")
    assert list(rows["architecture"].unique()) == EIGHT
    assert rows[["startup_s", "flags"]].isna().all(axis=None)
    ratio = compare(rows).pairs[1]["total_tokens"].interval
    assert ratio is not None
    assert ratio.estimate == pytest.approx(
        rows[rows["architecture"] == "react"]["total_tokens"].mean()
        / rows[rows["architecture"] == "rewoo"]["total_tokens"].mean()
    )


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "finished", "--format", "markdown"),
        ("claims", "finished", "chain"),
        ("publish", "finished", "--out", "published"),
        ("rescore", "finished"),
        ("plot", "finished", "chain", "--out", "figures"),
        ("gate", "finished", "--baseline", "baseline.json"),
        ("gate", "finished", "--baseline", "finished"),
        ("baseline", "update", "finished", "--out", "again.json"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_each_command_reads_it(old: Path, command: tuple[str, ...]) -> None:
    assert run(*command) == 0


def test_claims_know_its_chain(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("claims", "finished", "chain", "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert "chain?hops=1..3" in json.dumps(found)


def test_a_run_of_today_passes_its_baseline(old: Path) -> None:
    assert run("run", "--arch", FOLDERS, "--model", "oracle", "-n", "2", "--out", "now", "--no-progress") == 0
    assert run("gate", "now", "--baseline", "baseline.json") == 0
    assert run("gate", "now", "--baseline", "finished") == 0


def test_it_is_compared_with_a_run_of_today(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("run", "--arch", FOLDERS, "--model", "oracle", "-n", "2", "--out", "now", "--no-progress")
    assert run("compare", "finished", "now") == 0
    assert "runner" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["finished", "chain"])
def test_it_replays(old: Path, name: str) -> None:
    recorded = load(name)
    architectures = FOLDERS if name == "finished" else "architectures/rewoo,architectures/react"
    data = ["-n", "2"] if name == "finished" else ["--dataset", "chain?hops=1..3", "-n", "4", "--max-steps", "6"]
    model = ["--model", f"replay/{name}", "--out", "replayed", "--no-progress"]
    assert run("run", "--arch", architectures, *data, *model) == 0
    same = ["architecture", "example_id", "prediction", "exact_match", "input_tokens", "output_tokens", "stop_reason"]
    assert load("replayed")[same].to_dict("records") == recorded[same].to_dict("records")


def test_where_it_stopped_it_goes_on(old: Path) -> None:
    before = load("unfinished")
    assert run("run", "--resume", "unfinished", "--run-tokens", "1000000", "--no-progress", "--trust") == 0
    after = load("unfinished")
    assert (len(before), len(after)) == (4, 12)
    kept = after.merge(before, on=["architecture", "example_id", "started_at"])
    assert len(kept) == 4
    assert run("run", "--arch", "architectures/rewoo,architectures/react", "--model", "oracle", "-n", "6", "--out",
               "whole", "--no-progress") == 0  # fmt: skip
    whole = load("whole")
    same = [name for name in whole.columns if name not in (*TIMES, *NEWER)]
    assert after[same].to_dict("records") == whole[same].to_dict("records")
