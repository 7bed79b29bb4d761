"""A run folder with a damaged file: each command says which, in one line, and ends with 2."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_runs import quiet

from rewoo_bench.cli.main import main


def make_folder(run: Path) -> None:
    """A folder in the place of run.json."""
    (run / "run.json").unlink()
    (run / "run.json").mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a list": lambda run: (run / "run.json").write_text("[]"),
    "deep": lambda run: (run / "run.json").write_text("[" * 200_000),
    "a folder": make_folder,
    "truncated": lambda run: (run / "questions.parquet").write_bytes((run / "questions.parquet").read_bytes()[:900]),
}
COMMANDS = {
    "compare": ("compare", "RUN"),
    "gate": ("gate", "RUN", "--baseline", "RUN"),
    "update": ("gate", "RUN", "--baseline", "base.json", "--update"),
    "resume": ("run", "--no-progress", "--resume", "RUN"),
}


READERS = {
    "report": ("calls", ("report", "RUN", "--no-figures")),
    "show": ("questions", ("show", "RUN", "sample-028")),
    "publish": ("calls", ("publish", "RUN", "--out", "copy")),
    "gate": ("questions", ("gate", "RUN", "--budgets", "budgets.toml")),
    "compare": ("questions", ("compare", "RUN")),
}
BUDGET = '[[budget]]\narchitecture = "rewoo"\ndataset = "sample"\nmodel = "oracle"\ntotal_tokens = { mean = 9999 }\n'


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert quiet("--arch", "rewoo,react", "-n", 3, "--model", "oracle", "--out", folder) == 0
    return folder


@pytest.mark.parametrize(
    ("command", "damage"), [*(("compare", damage) for damage in DAMAGES), *((each, "a list") for each in COMMANDS)]
)
def test_a_damaged_file_is_named_in_one_line(
    whole: Path,
    tmp_path: Path,
    command: str,
    damage: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    DAMAGES[damage](run)
    with pytest.raises(SystemExit) as ended:
        main([str(run) if word == "RUN" else word for word in COMMANDS[command]])
    err = capfd.readouterr().err
    assert (ended.value.code, err.count("\n")) == (2, 1), err[-2000:]
    assert "run.json" in err or "questions.parquet" in err or "is no run" in err


@pytest.mark.parametrize("reader", READERS)
def test_a_damaged_table_is_named_in_one_line(
    whole: Path, tmp_path: Path, reader: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, tmp_path / "run")
    Path("budgets.toml").write_text(BUDGET)
    table, command = READERS[reader]
    path = Path("run", f"{table}.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SystemExit) as ended:
        main(["run" if word == "RUN" else word for word in command])
    err = capfd.readouterr().err
    assert (ended.value.code, err.count("\n")) == (2, 1), err[-2000:]
    assert f"run/{table}.parquet: not a parquet file, or a damaged one: " in err


def test_a_damaged_table_is_a_row_among_the_past_runs(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("older", "whole"):
        shutil.copytree(whole, tmp_path / name)
    path = tmp_path / "older" / "questions.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["example_id"]), path)
    with pytest.raises(SystemExit) as ended:
        main(["runs", str(tmp_path)])
    out = capfd.readouterr().out
    assert ended.value.code == 0
    assert "the column 'example_id' is missing" in out.replace("\n", " ")
    assert out.count(" done ") == 1


@pytest.mark.parametrize(
    "arguments", [("compare", "NAME"), ("run", "--arch", "cot", "--dataset", "NAME.csv"), ("new", "arch", "NAME")]
)
def test_a_name_that_no_file_system_takes_is_one_line(
    arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([each.replace("NAME", "a" * 300) for each in arguments])
    err = capfd.readouterr().err
    assert (ended.value.code, err.count("\n")) == (2, 1), err[-2000:]
