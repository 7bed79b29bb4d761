"""Runs answered by what is recorded: a replay, a replay judged anew, a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_runs import new, quiet
from model_server import ModelServer, ServerFault

from rewoo_bench.analysis.prices import pricing_of
from rewoo_bench.cli.main import main
from rewoo_bench.runs.folder import load, manifests

pytestmark = pytest.mark.usefixtures("own_folder")

GOLDEN = Path(__file__).parents[1] / "golden" / "replay"
TIMES = ["run_id", "run_folder", "started_at", "latency_s", "working_s", "startup_s", "retries", "billed_tokens"]
TIMES += ["trial_seed"]  # of requests, which a replay doesn't send
TIMES += ["exemplar_tokens"]  # which the recording lacks


def test_a_recorded_run_of_the_embedded_model_replays_to_the_same_rows(capfd: pytest.CaptureFixture[str]) -> None:
    """Where this fails after a change of a prompt, tests/golden/README.md says how to record it anew."""
    code = quiet("--arch", "rewoo,react,direct", "-n", 5, "--model", f"replay/{GOLDEN}", "--out", "here")
    assert code == 0, capfd.readouterr().err
    rows, recorded = load("here"), load(GOLDEN / "questions.parquet")
    assert rows["error"].isna().all(), rows["error"].dropna().iloc[0]
    same = [name for name in recorded.columns if name not in (*TIMES, "model", "planner_model", "solver_model")]
    pd.testing.assert_frame_equal(rows[same], recorded[same])
    assert rows["latency_s"].isna().all()
    assert rows["billed_tokens"].sum() == 0


def test_a_replay_of_the_oracle_has_the_dollars_and_the_cached_tokens_of_its_run() -> None:
    asked = ("--arch", "rewoo,react", "--dataset", "chain", "-n", 3)
    assert quiet(*asked, "--model", "oracle", "--out", "recorded") == 0
    assert quiet(*asked, "--model", "replay/recorded", "--out", "here") == 0
    recorded, here = (pricing_of([run], load(run), manifests(run)) for run in ("recorded", "here"))
    assert recorded.under == here.under
    assert recorded.note == here.note
    for one, other in ((recorded.cost_usd, here.cost_usd), (recorded.cached, here.cached)):
        assert one is not None
        assert other is not None
        assert one.tolist() == other.tolist()


def test_a_replayed_run_can_be_judged_anew(server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert new(server, "--out", "recorded") == 0
    asked = len(server.books)
    with ModelServer(lambda request: "yes") as judge:
        judged = ("--judge-model", "openai/judge", "--api-base", judge.api_base)
        assert quiet("--arch", "direct,cot", "-n", 4, "--model", "replay/recorded", *judged, "--out", "here") == 0
        assert len(judge.books) == 8
    assert " judged\n" in capfd.readouterr().out
    with pytest.raises(SystemExit):
        main(["compare", "here"])
    assert "judged" in capfd.readouterr().out
    rows = load("here")
    assert len(server.books) == asked
    assert rows["judged_correct"].all()
    assert rows["prediction"].tolist() == load("recorded")["prediction"].tolist()
    assert (rows["billed_tokens"] == 0).all()
    calls = pd.read_parquet("here/calls.parquet")
    assert (calls["role"] == "judge").sum() == 8


def test_a_call_that_failed_fails_in_the_replay_too(capfd: pytest.CaptureFixture[str]) -> None:
    left: list[str | ServerFault] = [
        "Thought: I look.\nAction: Search[Kyiv]",
        ServerFault(status=400, message="blocked by a filter"),
    ]

    def reply(_: dict[str, Any]) -> str | ServerFault:
        return left.pop(0) if left else "Thought: I know.\nAction: Finish[Neva]"

    with ModelServer(reply) as server:
        hosted = ("--model", "openai/test", "--api-base", server.api_base, "--concurrency", 1)
        assert quiet("--arch", "react", "-n", 4, *hosted, "--out", "recorded") == 3
    assert quiet("--arch", "react", "-n", 4, "--model", "replay/recorded", "--out", "here") == 3
    assert "1 of 4 answers failed" in capfd.readouterr().err
    rows, recorded = load("here"), load("recorded")
    same = [name for name in recorded.columns if name not in (*TIMES, "model", "planner_model", "solver_model")]
    same = [name for name in same if name not in ("error", "usage_source", "trial_seed")]
    pd.testing.assert_frame_equal(rows[same], recorded[same])
    (error,) = rows["error"].dropna()
    assert error.startswith("it failed in the recorded run: ")
    assert "blocked by a filter" in error
    assert rows["billed_tokens"].sum() == 0


@pytest.mark.parametrize(
    ("flag", "model", "role_model"),
    [("--planner-model", "replay/here", "openai/test"), ("--solver-model", "openai/test", "replay/here")],
)
def test_a_replay_answers_for_planner_and_solver(
    flag: str, model: str, role_model: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert quiet("--arch", "rewoo", "-n", 1, "--model", model, flag, role_model) == 2
    assert f"{flag}: a replay answers for the planner and the solver both" in capfd.readouterr().err


@pytest.mark.parametrize(("content", "code"), [(None, 0), (b"[]", 2)])
def test_a_replay_needs_no_manifest_and_refuses_a_damaged_one(
    server: ModelServer, capfd: pytest.CaptureFixture[str], content: bytes | None, code: int
) -> None:
    assert new(server, "--out", "recorded") == 0
    manifest = Path("recorded/run.json")
    manifest.unlink() if content is None else manifest.write_bytes(content)
    assert quiet("--arch", "direct,cot", "-n", 4, "--model", "replay/recorded", "--out", "here") == code
    assert ("run.json" in capfd.readouterr().err) is bool(content)


def test_a_replay_asks_the_recorded_questions_unless_others_are_named(server: ModelServer) -> None:
    assert new(server, "--seed", 4, "--out", "recorded") == 0
    replayed = ("--arch", "direct,cot", "--model", "replay/recorded")
    assert quiet(*replayed, "--out", "again") == 0
    assert load("again")["example_id"].tolist() == load("recorded")["example_id"].tolist()
    assert load("again")["error"].isna().all()
    chosen = str(load("recorded")["example_id"].iloc[1])
    Path("ids").write_text(chosen)
    assert quiet(*replayed, "--ids", "ids", "--out", "one") == 0
    assert set(load("one")["example_id"]) == {chosen}


def test_a_replay_of_something_else_says_where_it_differs(capfd: pytest.CaptureFixture[str]) -> None:
    assert quiet("--arch", "rewoo", "-n", 1, "--max-steps", 7, "--model", f"replay/{GOLDEN}", "--out", "here") == 3
    (error,) = load("here")["error"]
    assert "at 'planner 0' the prompt differs from the recorded one, which has '8 steps." in error
    assert "where this has '7 steps." in error


def test_a_cache_answers_the_second_run(server: ModelServer) -> None:
    assert new(server, "--out", "a", "--answer-cache", "answers") == 0
    asked = len(server.books)
    assert new(server, "--out", "b", "--answer-cache", "answers") == 0
    assert len(server.books) == asked
    a, b = load("a"), load("b")
    assert a["total_tokens"].tolist() == b["total_tokens"].tolist()
    assert (a["billed_tokens"].sum() > 0, b["billed_tokens"].sum()) == (True, 0)
    assert b["latency_s"].isna().all()
    assert pd.read_parquet("b/calls.parquet")["replayed"].all()
    assert new(server, "--out", "c", "--answer-cache", "answers", "--temperature", 1) == 0
    assert len(server.books) == 2 * asked
