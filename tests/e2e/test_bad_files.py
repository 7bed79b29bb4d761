"""A run folder with a damaged file: each command says which, in one line, and ends with 2."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_runs import quiet

from rewoo_bench.cli.main import main


def make_folder(run: Path) -> None:
    """A folder in the place of run.json."""
    (run / "run.json").unlink()
    (run / "run.json").mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a list": lambda run: (run / "run.json").write_text("[]"),
    "not UTF-8": lambda run: (run / "run.json").write_bytes(b'{"run_id": "\xff\xfe"}'),
    "deep": lambda run: (run / "run.json").write_text("[" * 200_000),
    "an integer of many digits": lambda run: (run / "run.json").write_text('{"a": ' + "9" * 5000 + "}"),
    "a folder": make_folder,
    "truncated": lambda run: (run / "questions.parquet").write_bytes((run / "questions.parquet").read_bytes()[:900]),
    "damaged": lambda run: (run / "questions.parquet").write_bytes(b"PAR1" + b"\x00" * 200 + b"PAR1"),
}
COMMANDS = {
    "compare": ("compare", "RUN"),
    "gate": ("gate", "RUN", "--baseline", "RUN"),
    "claims": ("claims", "RUN"),
    "publish": ("publish", "RUN", "--out", "copy"),
    "baseline": ("baseline", "update", "RUN", "--out", "base.json"),
    "resume": ("run", "--no-progress", "--resume", "RUN"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert quiet("--arch", "rewoo,react", "-n", 3, "--model", "oracle", "--out", folder) == 0
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_damaged_file_is_named_in_one_line(
    whole: Path,
    tmp_path: Path,
    command: str,
    damage: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if command == "resume" and damage in ("truncated", "damaged"):
        pytest.skip("the tables are made anew from the journal")
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    DAMAGES[damage](run)
    with pytest.raises(SystemExit) as ended:
        main([str(run) if word == "RUN" else word for word in COMMANDS[command]])
    err = capfd.readouterr().err
    assert (ended.value.code, err.count("\n")) == (2, 1), err[-2000:]
    assert "run.json" in err or "questions.parquet" in err or "is no run" in err


def test_a_step_summary_that_cannot_be_written_is_one_line(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["gate", str(whole), "--baseline", str(whole)])
    assert ended.value.code == 2
    assert "GITHUB_STEP_SUMMARY: can't write" in capfd.readouterr().err
