"""What ends a run or a question early, and how much is in flight at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from answering import answer, examples, priced
from asking import read, run
from model_server import ModelServer

from rewoo_bench.calls.caps import RunLimits
from rewoo_bench.calls.meter import Limits
from rewoo_bench.calls.retry import AdaptiveLimiter
from rewoo_bench.errors import RunStopped
from rewoo_bench.tools import Corpus

pytestmark = pytest.mark.anyio


async def test_questions_in_flight_are_finished_and_kept(tmp_path: Path) -> None:
    with ModelServer(priced(100), latency_s=0.05) as server, pytest.raises(RunStopped):
        await run(tmp_path, server, examples(20), ["direct"], concurrency=4, run_limits=RunLimits(run_tokens=100))
    rows, _ = read(tmp_path)
    assert len(rows) == len(server.books)
    assert len(rows) <= 4


@pytest.mark.parametrize(
    ("limits", "stop_reason", "calls"),
    [(Limits(tokens=150), "token_limit", 2), (Limits(time_s=0.7), "time_limit", 2)],
)
async def test_a_question_stops_at_its_limits_as_a_wrong_answer(
    tmp_path: Path, corpus: Corpus, limits: Limits, stop_reason: str, calls: int
) -> None:
    with ModelServer(priced(100), latency_s=0.4) as server:
        (row,), found = await run(tmp_path, server, examples(1), ["react"], corpus, limits=limits)
    assert (row["stop_reason"], row["prediction"], row["exact_match"], row["f1"]) == (stop_reason, None, False, 0.0)
    assert (row["llm_calls"], row["steps"]) == (calls, 0)
    last = [c["status"] for c in found if c["kind"] == "model"][-1]
    assert last == ("cancelled" if stop_reason == "time_limit" else "ok")
    assert row["error"]


@pytest.mark.parametrize(("concurrency", "connections", "most"), [(3, 99, 3), (8, 2, 2)])
async def test_no_more_is_in_flight_than_allowed(
    tmp_path: Path, corpus: Corpus, concurrency: int, connections: int, most: int
) -> None:
    patience = {"limiter": AdaptiveLimiter(connections)}
    with ModelServer(answer, latency_s=0.02) as server:
        await run(tmp_path, server, examples(12), ["rewoo"], corpus, patience=patience, concurrency=concurrency)
        assert server.peak_connections == most
