"""Shell completion of names and folders, as a shell asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from rewoo_bench.cli.main import group


def completed(*words: str) -> list[tuple[str, str]]:
    """Completions of the last word: their kinds and values."""
    *before, incomplete = words
    shell = ShellComplete(group, {}, "rewoo-bench", "_REWOO_BENCH_COMPLETE")
    return [(item.type, item.value) for item in shell.get_completions(list(before), incomplete)]


@pytest.fixture(autouse=True)
def past_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in results/local of the working folder."""
    folder = tmp_path / "results" / "local" / "20261122-093000-rewoo"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    monkeypatch.chdir(tmp_path)


def test_architectures_are_completed_after_a_comma_too() -> None:
    assert completed("run", "--arch", "rewoo-") == [
        ("plain", "rewoo-code"),
        ("plain", "rewoo-json"),
        ("plain", "rewoo-lazy"),
        ("plain", "rewoo-react"),
        ("dir", "rewoo-"),
    ]
    assert ("plain", "react,direct") in completed("run", "--arch", "react,di")


def test_data_sets_are_completed() -> None:
    samples = ["sample", "sample-arithmetic", "sample-parallel", "sample-yes-no"]
    assert completed("run", "--dataset", "sam") == [*(("plain", name) for name in samples), ("file", "sam")]


def test_models_are_completed() -> None:
    assert completed("run", "--model", "or") == [("plain", "oracle")]
    assert ("plain", "local/smollm2-135m") in completed("run", "--planner-model", "local/smol")
    assert completed("run", "--model", "rep") == [("plain", "replay/results/local/20261122-093000-rewoo")]


@pytest.mark.parametrize("command", ["compare", "gate", "run --resume"])
def test_runs_are_completed_as_folders(command: str) -> None:
    found = completed(*command.split(), "results/l")
    assert found == [("plain", "results/local/20261122-093000-rewoo"), ("dir", "results/l")]
