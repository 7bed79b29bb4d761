"""A killed run's folder, copied in part or damaged: a resume asks no paid call again without a word."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_runs import SCRIPT, quiet
from model_server import ModelServer, ServerReply

from rewoo_bench.runs.folder import load

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.timeout(900)]

QUESTIONS, ASKED, AT_ONCE = 60, 40, 4


def reply(request: dict[str, Any]) -> ServerReply:
    return ServerReply("Answer: Neva " + "of course " * (len(str(request)) % 40))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(reply, latency_s=0.02) as server:
        yield server


@pytest.fixture
def killed(server: ModelServer) -> Path:
    """The folder of a run whose process group was killed while calls were in flight, within its first second."""
    flags = ["--out", "killed", "--concurrency", str(AT_ONCE), "--no-progress", "--no-report"]
    asked = ["--arch", "direct", "-n", str(QUESTIONS), "--model", "openai/test", "--api-base", server.api_base]
    command = [sys.executable, str(SCRIPT), *asked, *flags]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as process:
        while len(server.books) < ASKED:
            assert process.poll() is None
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGKILL)
    server.latency_s = 0.0
    return Path("killed")


def resumed(server: ModelServer, *flags: str) -> tuple[int, int]:
    """The exit code of a resume of `here`, and the number of calls that it made."""
    before = len(server.books)
    code = quiet("--resume", "here", *flags)
    return code, len(server.books) - before


def copied(killed: Path) -> Path:
    shutil.rmtree("here", ignore_errors=True)
    return Path(shutil.copytree(killed, "here"))


def test_a_whole_copy_has_every_call_but_those_in_flight(server: ModelServer, killed: Path) -> None:
    asked = len(server.books)
    copied(killed)
    code, again = resumed(server)
    assert code == 0
    recorded = QUESTIONS - again
    assert asked - AT_ONCE <= recorded <= asked
    tokens = {str(entry.request["messages"]): entry.usage.total_tokens for entry in server.books if entry.usage}
    assert load("here")["billed_tokens"].sum() == sum(tokens.values())


def test_the_file_alone_lacks_at_most_what_was_written_last(server: ModelServer, killed: Path) -> None:
    asked = len(server.books)
    for path in copied(killed).glob("journal.sqlite-*"):
        path.unlink()
    code, again = resumed(server)
    assert code == 0
    assert asked - 2 * AT_ONCE <= QUESTIONS - again <= asked  # in flight, and in the last group


@pytest.mark.parametrize("share", [0, 40, 90])
def test_a_cut_file_is_refused_in_a_line(
    server: ModelServer, killed: Path, share: int, capfd: pytest.CaptureFixture[str]
) -> None:
    path = copied(killed) / "journal.sqlite"
    for log in path.parent.glob("journal.sqlite-*"):  # which has all that was written last
        log.unlink()
    path.write_bytes(path.read_bytes()[: path.stat().st_size * share // 100])
    capfd.readouterr()
    assert resumed(server) == (2, 0)
    (line,) = capfd.readouterr().err.splitlines()
    assert "is missing or empty" in line if share == 0 else "damaged" in line or "can't be" in line


def test_an_older_copy_of_a_finished_journal_is_refused(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    hosted = ("--model", "openai/test", "--api-base", server.api_base)
    assert quiet("--arch", "direct", "-n", 3, *hosted, "--out", "here") == 0
    shutil.copy("here/journal.sqlite", "older.sqlite")
    assert quiet("--resume", "here", "-n", 5) == 0
    shutil.copy("older.sqlite", "here/journal.sqlite")
    capfd.readouterr()
    assert resumed(server) == (2, 0)
    err = capfd.readouterr().err
    assert "here/journal.sqlite: 2 of 5 recorded calls are missing; " in err
    assert "--resume here --accept-loss" in err
    assert resumed(server, "--accept-loss") == (0, 2)


def test_a_loss_that_was_accepted_is_no_loss_when_the_run_is_killed_then() -> None:
    expected: list[int] = []

    def reply(request: dict[str, Any]) -> ServerReply:
        if Path("older.sqlite").exists():
            expected.append(json.loads(Path("here/run.json").read_text())["recorded_calls"])
        return ServerReply("Answer: Neva")

    with ModelServer(reply) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base)
        assert quiet("--arch", "direct", "-n", 3, *hosted, "--out", "here") == 0
        shutil.copy("here/journal.sqlite", "older.sqlite")
        assert quiet("--resume", "here", "-n", 5) == 0
        expected.clear()
        shutil.copy("older.sqlite", "here/journal.sqlite")
        assert resumed(server, "--accept-loss") == (0, 2)
    assert expected == [3, 3]  # and no longer 5, while it goes on
