"""A run's folder: one process has it, and nothing in it that was answered or paid for is ever removed."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runs import quiet, start
from full_disk import no_larger_files
from model_server import ModelServer, ServerFault, ServerReply

from rewoo_bench.runs.folder import load
from rewoo_bench.system.files import locked

pytestmark = pytest.mark.usefixtures("own_folder")

ROUNDS = 6
SHORT = ("--no-progress", "--no-report")
SEARCH = "Thought: I look.\nAction: Search[Kyiv]"


def refusing(status: int, answers: int, text: str = SEARCH) -> Any:
    """Answers so many requests, and refuses all others."""
    left = [text] * answers

    def reply(_: dict[str, Any]) -> str | ServerFault:
        return left.pop() if left else ServerFault(status=status, message="no more")

    return reply


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_before_the_first_row_keeps_the_calls_that_were_answered(
    status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    hosted = ("--arch", "react", "-n", 4, "--model", "openai/test", "--concurrency", 1)
    with ModelServer(refusing(status, 2)) as server:
        assert quiet(*hosted, "--api-base", server.api_base, "--out", "here") == 3
        assert sum(entry.status == 200 for entry in server.books) == 2
    assert "rewoo-bench run --resume here" in capfd.readouterr().err
    with ModelServer(lambda _: "Thought: I know.\nAction: Finish[Neva]") as server:
        assert quiet("--resume", "here", "--api-base", server.api_base) == 0
        assert len(server.books) == 4  # the two answered calls of the first question are not asked again
    assert load("here")["llm_calls"].tolist() == [3, 1, 1, 1]


def test_a_refused_resume_removes_nothing() -> None:
    with ModelServer(lambda _: ServerFault(status=401, message="revoked")) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base)
        assert quiet("--arch", "direct", "-n", 3, *hosted, "--out", "here") == 2
        assert not Path("here").exists()  # nothing was answered: the same --out can be used again
    with ModelServer(refusing(500, 0)) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base)
        assert quiet("--arch", "direct", "-n", 3, *hosted, "--max-retries", 0, "--out", "here") == 3
    with ModelServer(lambda _: ServerFault(status=401, message="revoked")) as server:
        assert quiet("--resume", "here", "--api-base", server.api_base) == 3
    assert Path("here/run.json").exists()


@pytest.mark.nightly
def test_of_two_starts_with_the_same_folder_one_wins_and_the_other_changes_nothing(
    repeats: Callable[[int], int],
) -> None:
    for number in range(repeats(ROUNDS)):
        out = Path(f"round{number}")
        command = ("--arch", "direct", "--model", "oracle", "-n", 5, *SHORT, "--out", out)
        both = [start(*command, "--seed", seed) for seed in (1, 2)]
        said = [process.communicate(timeout=120)[1] for process in both]
        codes = [process.returncode for process in both]
        assert sorted(codes) == [0, 2], said
        loser = codes.index(2)
        assert said[loser].count("\n") == 1
        assert any(why in said[loser] for why in ("holds another run", "isn't empty", "is at work on this run"))
        manifest = json.loads((out / "run.json").read_text())
        assert (manifest["status"], manifest["options"]["seed"]) == ("done", 2 - loser)
        assert set(load(out)["seed"]) == {2 - loser}
        assert set(load(out)["run_id"]) == {manifest["run_id"]}


def test_of_two_resumes_one_wins_and_the_other_changes_nothing(repeats: Callable[[int], int]) -> None:
    assert quiet("--arch", "direct", "--model", "oracle", "-n", 3, "--out", "here") == 0
    for number in range(repeats(ROUNDS)):
        both = [start("--resume", "here", "-n", 5 + number, *SHORT) for _ in range(2)]
        said = [process.communicate(timeout=120)[1] for process in both]
        codes = sorted(process.returncode for process in both)
        assert codes in ([0, 0], [0, 2]), said  # one after the other is fine
        assert all(
            "at work on this run" in text for text, process in zip(said, both, strict=True) if process.returncode
        )
        manifest = json.loads(Path("here/run.json").read_text())
        assert (manifest["status"], manifest["rows"]) == ("done", 5 + number)
        assert len(load("here")) == 5 + number


def test_the_folder_of_a_process_that_was_killed_is_free() -> None:
    asked, going_on = threading.Event(), threading.Event()

    def reply(_: dict[str, Any]) -> ServerReply:
        asked.set()
        going_on.wait(60)
        return ServerReply("Answer: Neva")

    with ModelServer(reply) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base)
        with start("--arch", "direct", "-n", 2, "--out", "here", *hosted) as process:
            assert asked.wait(60)
            with pytest.raises(Exception, match="busy"), locked(Path("here/run.lock"), "busy"):
                pass
            os.kill(process.pid, signal.SIGKILL)
            process.wait(timeout=30)
        going_on.set()
        assert quiet("--resume", "here") == 0
    assert len(load("here")) == 2


@pytest.mark.parametrize("name", ["journal.sqlite", "questions.parquet"])
def test_files_of_a_run_without_its_manifest_are_not_overwritten(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet("--arch", "direct", "--model", "oracle", "-n", 2, "--out", "here") == 0
    Path("here/run.json").unlink()
    for other in ("journal.sqlite", "questions.parquet", "calls.parquet", "traces.jsonl"):
        if other != name:
            Path("here", other).unlink()
    before = Path("here", name).read_bytes()
    assert quiet("--arch", "cot", "--model", "oracle", "-n", 2, "--out", "here") == 2
    assert "; choose a new " in capfd.readouterr().err
    assert Path("here", name).read_bytes() == before


def test_tables_that_cannot_be_written_stay_as_they_were(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet("--arch", "rewoo", "--model", "oracle", "-n", 25, "--out", "here") == 0
    names = ("questions.parquet", "calls.parquet", "traces.jsonl", "run.json")
    before = {name: Path("here", name).read_bytes() for name in names}
    with no_larger_files(40_000):  # bytes: less than the traces, more than the tables and SQLite's index
        assert quiet("--resume", "here") == 3
    err = capfd.readouterr().err
    assert "can't write the tables of 'here': " in err
    assert err.rstrip().endswith("; rewoo-bench run --resume here")
    assert {name: Path("here", name).read_bytes() for name in names[:3]} == {name: before[name] for name in names[:3]}
    assert not list(Path("here").glob("*.part"))
    assert quiet("--resume", "here") == 0
    assert len(load("here")) == 25


@pytest.mark.parametrize("left", [None, b""])
def test_a_run_whose_journal_is_gone_is_not_paid_for_again(
    left: bytes | None, capfd: pytest.CaptureFixture[str]
) -> None:
    assert quiet("--arch", "direct", "--model", "oracle", "-n", 3, "--out", "here") == 0
    tables = Path("here/questions.parquet").read_bytes()
    Path("here/journal.sqlite").unlink()
    if left is not None:
        Path("here/journal.sqlite").write_bytes(left)
    assert quiet("--resume", "here", "-n", 5) == 2
    assert "'here/journal.sqlite' is missing or empty: " in capfd.readouterr().err
    assert Path("here/questions.parquet").read_bytes() == tables


@pytest.mark.nightly
def test_a_folder_that_is_moved_away_during_a_run_loses_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    asked, going_on = threading.Event(), threading.Event()

    def reply(_: dict[str, Any]) -> ServerReply:
        if len(server.books) >= 3 and not going_on.is_set():
            asked.set()
            going_on.wait(60)
        return ServerReply("Answer: Neva")

    with ModelServer(reply) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base, "--concurrency", 1, "--no-progress")
        with start("--arch", "direct", "-n", 6, "--out", "here", *hosted) as process:
            assert asked.wait(60)
            Path("here").rename("elsewhere")
            going_on.set()
            _, err = process.communicate(timeout=60)
        assert (process.returncode, "Traceback" in err, err.count("\n")) == (3, False, 1), err
        assert quiet("--resume", "elsewhere") == 0
        assert len(server.books) == 6
    assert len(load("elsewhere")) == 6
