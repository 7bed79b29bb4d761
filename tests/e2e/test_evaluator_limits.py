"""What ends a run or a question early, and how much is in flight at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from answering import Trouble, answer, examples, priced
from asking import read, run

from rewoo_bench.calls.caps import RunLimits
from rewoo_bench.calls.meter import Limits
from rewoo_bench.calls.retry import AdaptiveLimiter
from rewoo_bench.errors import ProviderRefused, RunStopped
from rewoo_bench.testing.server import ModelServer, ServerFault
from rewoo_bench.tools import Corpus

pytestmark = pytest.mark.anyio


async def test_a_run_stops_at_its_tokens_and_keeps_what_it_has(tmp_path: Path) -> None:
    with ModelServer(priced(100)) as server, pytest.raises(RunStopped, match=r"used 300 of 250 tokens"):
        await run(tmp_path, server, examples(9), ["direct"], concurrency=1, run_limits=RunLimits(run_tokens=250))
    assert [row["example_id"] for row in read(tmp_path)[0]] == ["q00", "q01", "q02"]
    assert len(server.books) == 3


async def test_questions_in_flight_are_finished_and_kept(tmp_path: Path) -> None:
    with ModelServer(priced(100), latency_s=0.05) as server, pytest.raises(RunStopped):
        await run(tmp_path, server, examples(20), ["direct"], concurrency=4, run_limits=RunLimits(run_tokens=100))
    rows, _ = read(tmp_path)
    assert len(rows) == len(server.books)
    assert len(rows) <= 4


async def test_a_cap_that_the_last_questions_reach_stops_nothing(tmp_path: Path) -> None:
    with ModelServer(priced(100)) as server:
        rows, _ = await run(tmp_path, server, examples(3), ["direct"], run_limits=RunLimits(run_tokens=250))
    assert len(rows) == 3


@pytest.mark.parametrize(("max_errors", "rows"), [(0, 1), (1, 2), (0.5, 4), (5, 6)])
async def test_too_many_failures_end_a_run(tmp_path: Path, max_errors: float, rows: int) -> None:
    always = {f"q{i:02}": ServerFault(status=400, message="no") for i in range(6)}
    message = rf"{rows} answers? failed \(--fail-on-error {max_errors:g}\); last: .*answered 400: no"
    with ModelServer(Trouble(always=always)) as server, pytest.raises(RunStopped, match=message):
        await run(tmp_path, server, examples(6), ["direct"], concurrency=1, run_limits=RunLimits(max_errors=max_errors))
    assert len(read(tmp_path)[0]) == rows


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_provider_that_refuses_everything_ends_the_run(tmp_path: Path, status: int) -> None:
    at_once = {401: 2, 403: 4, 404: 4}  # a key is wrong for all; a prompt may be refused by itself
    with ModelServer(lambda _: ServerFault(status=status, message="not you")) as server:
        with pytest.raises(ProviderRefused, match=f"answered {status}: not you"):
            await run(tmp_path, server, examples(9), ["rewoo"], concurrency=2)
        assert len(server.books) <= at_once[status]
    assert [row["exact_match"] for row in read(tmp_path)[0]] in ([], [None, None])


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
