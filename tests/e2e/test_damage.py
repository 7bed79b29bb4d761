"""A journal with a flipped bit: the run goes on to the same rows, or says in a line why it can't."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from command_runs import quiet

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


def places(path: Path, seed: int, count: int) -> list[int]:
    return random.Random(seed).sample(range(8 * path.stat().st_size), count)


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
    recorded: Path, capfd: pytest.CaptureFixture[str], repeats: Callable[[int], int]
) -> None:
    whole, codes = compared("recorded", NOT_THE_SAME), Counter[int]()
    for place in places(recorded / "journal.sqlite", seed=1, count=repeats(FLIPS)):
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
    assert codes[0] > repeats(FLIPS) / 2


def test_a_replay_of_a_damaged_journal_has_the_same_rows_or_says_why_not(
    recorded: Path, capfd: pytest.CaptureFixture[str], repeats: Callable[[int], int]
) -> None:
    whole, codes = compared("recorded", OF_A_REPLAY), Counter[int]()
    for place in places(recorded / "journal.sqlite", seed=2, count=repeats(FLIPS)):
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
    assert codes[0] > repeats(FLIPS) / 2


def test_a_damaged_call_is_named_and_made_again(capfd: pytest.CaptureFixture[str]) -> None:
    with ModelServer(lambda _: "Answer: Neva") as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base, "--concurrency", 1)
        assert quiet("--arch", "direct", "-n", 4, *hosted, "--out", "here") == 0
        with closing(sqlite3.connect("here/journal.sqlite")) as database, database:
            database.execute("DELETE FROM questions WHERE rowid = 2")  # as if it had been killed there
            database.execute("UPDATE calls SET answer = replace(answer, 'Neva', 'Reva') WHERE rowid = 2")
            database.execute("UPDATE questions SET rows = replace(rows, 'Neva', 'Reva') WHERE rowid = 3")
        capfd.readouterr()
        assert quiet("--resume", "here") == 2
        assert len(server.books) == 4
        err = capfd.readouterr().err
        assert 'rewoo-bench: here/journal.sqlite: 1 of 4 recorded calls are damaged, first that of ["direct", ' in err
        assert "; bring back " in err
        assert "rewoo-bench: here/journal.sqlite: 1 of 3 recorded questions are damaged, first that of [" in err
        assert quiet("--resume", "here", "--accept-loss") == 0
        assert len(server.books) == 5  # the damaged call again, and of the damaged question nothing
    assert "1 of 4 recorded calls are damaged" in capfd.readouterr().err
    assert load("here")["prediction"].tolist() == ["Neva"] * 4
