"""A journal with a flipped bit: the run goes on to the same rows, or says in a line why it can't."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from struct import unpack

import anyio
import pandas as pd
import pytest
from command_runs import quiet

from rewoo_bench.journal.records import as_bytes
from rewoo_bench.journal.store import open_journal
from rewoo_bench.journal.writer_process import as_line
from rewoo_bench.runs.folder import load
from rewoo_bench.testing.server import ModelServer

pytestmark = pytest.mark.usefixtures("own_folder")

FLIPS = 60
QUESTIONS = 3
NOT_THE_SAME = ["run_id", "run_folder", "started_at", "latency_s", "working_s", "startup_s", "retries", "billed_tokens"]
OF_A_REPLAY = [*NOT_THE_SAME, "model", "planner_model", "solver_model", "cost_usd", "usage_source"]
ROWS = ["--arch", "rewoo,react", "-n", QUESTIONS]


def flip(path: Path, place: int) -> None:
    """Flips the bit that is so many bits from the start."""
    content = bytearray(path.read_bytes())
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)


def places(path: Path, seed: int) -> list[int]:
    return random.Random(seed).sample(range(8 * path.stat().st_size), FLIPS)


def compared(folder: str, without: list[str]) -> pd.DataFrame:
    rows: pd.DataFrame = load(folder).drop(columns=without)
    return rows


@pytest.fixture
def recorded() -> Path:
    assert quiet(*ROWS, "--model", "oracle", "--out", "recorded") == 0
    return Path("recorded")


def copied(recorded: Path) -> Path:
    shutil.rmtree("here", ignore_errors=True)
    shutil.rmtree("again", ignore_errors=True)
    shutil.copytree(recorded, "here")
    return Path("here/journal.sqlite")


def test_a_resume_of_a_damaged_journal_has_the_same_rows_or_says_why_not(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, codes = compared("recorded", NOT_THE_SAME), Counter[int]()
    for place in places(recorded / "journal.sqlite", seed=1):
        flip(copied(recorded), place)
        capfd.readouterr()
        codes[code := quiet("--resume", "here", "-n", QUESTIONS + 1)] += 1
        err = capfd.readouterr().err
        assert "Traceback" not in err, place
        if code == 0:
            rows = compared("here", NOT_THE_SAME).head(2 * QUESTIONS)
            pd.testing.assert_frame_equal(rows, whole, check_categorical=False)
        else:
            assert code in (2, 3), (place, err)
            assert err.startswith("rewoo-bench: "), (place, err)
            assert err.count("\n") == 1, (place, err)
    assert codes[0] > FLIPS / 2


def test_a_replay_of_a_damaged_journal_has_the_same_rows_or_says_why_not(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, codes = compared("recorded", OF_A_REPLAY), Counter[int]()
    for place in places(recorded / "journal.sqlite", seed=2):
        flip(copied(recorded), place)
        capfd.readouterr()
        codes[code := quiet(*ROWS, "--model", "replay/here", "--out", "again")] += 1
        err = capfd.readouterr().err
        assert "Traceback" not in err, place
        if code == 2:
            assert err.count("\n") == 1, (place, err)
            continue
        rows = compared("again", OF_A_REPLAY)
        failed = rows["exact_match"].isna()
        assert (code == 3) == failed.any()
        assert rows.loc[failed, "error"].str.contains("recorded").all()
        pd.testing.assert_frame_equal(rows[~failed], whole[~failed], check_categorical=False)
    assert codes[0] > FLIPS / 2


def test_a_damaged_call_is_named_and_made_again(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda _: "Answer: Neva") as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base, "--concurrency", 1)
        assert quiet("--arch", "direct", "-n", 4, *hosted, "--out", "here") == 0
        with closing(sqlite3.connect("here/journal.sqlite")) as database, database:
            database.execute("DELETE FROM questions WHERE rowid = 2")  # as if it had been killed there
            database.execute("UPDATE calls SET answer = replace(answer, 'Neva', 'Reva') WHERE rowid = 2")
            database.execute("UPDATE questions SET rows = replace(rows, 'Neva', 'Reva') WHERE rowid = 3")
        capfd.readouterr()
        assert quiet("--resume", "here") == 0
        assert len(server.books) == 5  # the damaged call again, and of the damaged question nothing
    err = capfd.readouterr().err
    assert 'rewoo-bench: here/journal.sqlite: 1 of 4 recorded calls are damaged, first that of ["direct", ' in err
    assert "rewoo-bench: here/journal.sqlite: 1 of 3 recorded questions are damaged, first that of [" in err
    assert load("here")["prediction"].tolist() == ["Neva"] * 4


def test_no_flipped_bit_of_a_killed_runs_log_changes_a_row(capfd: pytest.CaptureFixture[str]) -> None:
    log = killed_in_the_middle()
    whole = log.read_bytes()
    codes = Counter[int]()
    for place in places(log, seed=3):
        shutil.rmtree("here", ignore_errors=True)
        shutil.copytree("killed", "here")
        flip(Path("here", log.name), place)
        capfd.readouterr()
        codes[code := quiet("--resume", "here")] += 1
        err = capfd.readouterr().err
        assert "Traceback" not in err, place
        if code == 0:
            assert "its last record was only half written" in err, (place, whole[place // 8 - 20 : place // 8 + 20])
        else:
            assert code == 2
            assert "can't be read: a record is damaged: " in err
            assert Path("here", log.name).exists()
    assert codes[2] > FLIPS * 0.9


def killed_in_the_middle() -> Path:
    """A run whose log holds all that was recorded, and its journal nothing; the log's only piece."""
    assert quiet(*ROWS, "--model", "oracle", "--out", "done") == 0
    Path("killed").mkdir()
    shutil.copy("done/run.json", "killed/run.json")

    async def empty() -> None:
        async with open_journal(Path("killed/journal.sqlite")):
            pass

    anyio.run(empty)
    lines = b"".join(relogged(Path("done/journal.sqlite")))
    piece = Path("killed/journal.sqlite-log.2")
    piece.write_bytes(lines)
    return piece


def relogged(journal: Path) -> list[bytes]:
    """The lines of the log that a journal came of."""

    def line(head: list[object], *texts: str) -> bytes:
        return as_line(b"\t".join([as_bytes(head), *(text.encode() for text in texts)]))

    with closing(sqlite3.connect(journal)) as database:
        texts = [line(["text", *row]) for row in database.execute("SELECT id, text FROM texts")]
        calls = [
            line(
                ["call", *row[:4], row[4].hex(), *row[5:7], unpack(f"{len(row[7]) // 8}q", row[7]), *row[9:11]], row[8]
            )
            for row in database.execute("SELECT * FROM calls")
        ]
        asked = database.execute("SELECT task, failed, rows, trace FROM questions")
        questions = [line(["question", task, bool(failed)], rows, trace) for task, failed, rows, trace in asked]
    return [*texts, *calls, *questions]
