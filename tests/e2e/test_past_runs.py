"""`rewoo-bench runs`: past runs in a table or as JSON; a damaged folder is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_runs import quiet

from rewoo_bench.cli.main import main
from rewoo_bench.system.files import locked

pytestmark = pytest.mark.usefixtures("own_folder")


def runs(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["runs", *arguments])
    assert ended.value.code == 0


def begun_at(folder: str, moment: str, **changes: str) -> None:
    path = Path(folder, "run.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "started_at": moment, **changes}))


@pytest.fixture
def past(own_folder: None) -> None:
    """Three runs in results/local, the last of them damaged, and a folder that is no run."""
    local = "results/local"
    assert quiet("--arch", "react,react-native", "--model", "oracle", "-n", 4, "--out", f"{local}/old") == 0
    assert quiet("--arch", "direct", "--model", "oracle", "-n", 50, "--run-tokens", 500, "--out",
                 f"{local}/new") == 3  # fmt: skip
    begun_at(f"{local}/old", "2026-11-20T09:30:00+00:00")
    begun_at(f"{local}/new", "2026-11-22T09:30:00+00:00")
    Path(local, "damaged").mkdir()
    Path(local, "damaged", "run.json").write_text("{")
    Path(local, "notes").mkdir()


def test_past_runs_are_listed_newest_first(past: None, capsys: pytest.CaptureFixture[str]) -> None:
    runs()
    head, new, old, damaged, note = capsys.readouterr().out.splitlines()
    assert head.split()[:7] == ["folder", "started", "status", "n", "model", "data", "set"]
    assert new.split()[:6] == ["results/local/new", "2026-11-22", "09:30", "incomplete", "50", "oracle"]
    assert old.split()[:6] == ["results/local/old", "2026-11-20", "09:30", "done", "4", "oracle"]
    assert " sample " in old
    assert "react 1.00* " in old
    assert " react-native 1.00* " in old
    assert note == "* an oracle is told the answers: its accuracy means nothing"
    assert damaged.startswith("results/local/damaged")
    assert "damaged" in damaged
    assert "not valid JSON" in damaged


def test_past_runs_as_json(past: None, capsys: pytest.CaptureFixture[str]) -> None:
    runs("--json")
    new, old, damaged = json.loads(capsys.readouterr().out)
    assert (new["status"], new["questions"], new["architectures"]) == ("incomplete", 50, ["direct"])
    assert (new["oracle"], old["oracle"], damaged["oracle"]) == (True, True, False)
    assert old["exact_match"].keys() == old["tokens"].keys() == {"react", "react-native"}
    assert damaged["error"]


def test_a_killed_run_and_one_that_goes_on(past: None, capsys: pytest.CaptureFixture[str]) -> None:
    begun_at("results/local/new", "2026-11-22T09:30:00+00:00", status="running")
    runs("--json")
    assert json.loads(capsys.readouterr().out)[0]["status"] == "killed"
    with locked(Path("results/local/new/run.lock"), ""):
        runs("--json")
    assert json.loads(capsys.readouterr().out)[0]["status"] == "running"


def test_a_run_without_its_table_says_what_to_do(past: None, capsys: pytest.CaptureFixture[str]) -> None:
    Path("results/local/old/questions.parquet").unlink()
    runs("results/local/old")
    (_, old) = capsys.readouterr().out.splitlines()
    assert old.split()[:6] == ["results/local/old", "2026-11-20", "09:30", "damaged", "4", "oracle"]
    assert "has lost its questions.parquet; write it again from the journal with: rewoo-bench run --resume" in old
    assert quiet("--resume", "results/local/old") == 0
    capsys.readouterr()
    runs("--json", "results/local/old")
    assert json.loads(capsys.readouterr().out)[0]["status"] == "done"
    Path("results/local/old/questions.parquet").unlink()
    Path("results/local/old/journal.sqlite").unlink()
    runs("results/local/old")
    assert "has lost its questions.parquet and journal.sqlite; make the run again" in capsys.readouterr().out
