"""A killed run's folder, copied in part or damaged: a resume asks no paid call again without a word."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_runs import SCRIPT, quiet

from rewoo_bench.runs.folder import load
from rewoo_bench.testing.server import ModelServer, ServerReply

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.timeout(900)]

QUESTIONS, ASKED, AT_ONCE = 60, 40, 4
FLIPS = 8
SIDE_FILES = ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-count"]


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


def partial(name: str, flips: int) -> list[tuple[str, int]]:
    moments = random.Random(name)
    return [
        ("without", 0),
        *(("cut", share) for share in (0, 40, 90)),
        *(("flip", moments.randrange(1_000_000)) for _ in range(flips)),
    ]


def spoil(path: Path, how: str, number: int) -> None:
    """Removes a file, cuts it to a percentage, or flips a bit at so many millionths of it."""
    if how == "without":
        path.unlink()
        return
    content = bytearray(path.read_bytes())
    if how == "cut":
        path.write_bytes(content[: len(content) * number // 100])
        return
    content[len(content) * number // 1_000_000] ^= 1 << number % 8
    path.write_bytes(content)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", SIDE_FILES)
def test_of_a_copy_in_part_no_call_is_asked_again_without_a_word(
    server: ModelServer,
    killed: Path,
    name: str,
    capfd: pytest.CaptureFixture[str],
    repeats: Callable[[int], int],
) -> None:
    copied(killed)
    code, in_flight = resumed(server)
    assert code == 0
    billed = load("here")["billed_tokens"].sum()
    refused = 0
    for how, number in partial(name, repeats(FLIPS)):
        spoil(copied(killed) / name, how, number)
        capfd.readouterr()
        code, asked = resumed(server)
        err = capfd.readouterr().err
        if code == 0:
            assert (asked, load("here")["billed_tokens"].sum()) == (in_flight, billed), (how, number)
            continue
        refused += 1
        assert (code, asked) == (2, 0), (how, number, err)
        assert err.splitlines()[-1].startswith("rewoo-bench: "), (how, number, err)
        if "--accept-loss" not in err:
            assert "the file is damaged" in err or "can't be" in err, (how, number, err)
            continue
        code, asked = resumed(server, "--accept-loss")
        assert code == 0, (how, number, capfd.readouterr().err)
        lost = sum(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) of [\d,]+ recorded calls are", err))
        assert asked == in_flight + lost or "count" in err or "empty" in err, (how, number, err)
        assert quiet("--resume", "here") == 0  # once is enough
    assert refused


def test_the_database_alone_of_a_killed_run_is_refused(
    server: ModelServer, killed: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its header says that it had a log, and a count beside it."""
    for path in copied(killed).glob("journal.sqlite-*"):
        path.unlink()
    capfd.readouterr()
    assert resumed(server) == (2, 0)
    assert "its number of calls (journal.sqlite-count) is missing or damaged" in capfd.readouterr().err
    assert resumed(server, "--accept-loss")[0] == 0


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
