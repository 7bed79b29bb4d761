"""Progress where there is no terminal, and what a run is called."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import anyio
import pytest
from parts import result

from rewoo_bench.evaluation.progress import Progress
from rewoo_bench.evaluation.resume import environment, new_run_id
from rewoo_bench.types import Trajectory


def test_a_line_for_the_first_answer_one_now_and_then_and_one_at_the_end() -> None:
    """What is left is reckoned from the first answer on, which waited for the model to load."""
    stream, now = io.StringIO(), 0.0
    progress = Progress(5, stream=stream, clock=lambda: now)
    for index, moment in enumerate([30.0, 35.0, 41.0, 42.0, 43.0]):
        now = moment
        progress.add(result(index, None if index == 0 else "Seine" if index == 1 else "Rhine"))
    progress.close()
    assert stream.getvalue().splitlines() == [
        "1/5 answers, 30 s, EM -, 12 tokens, $0.0010, 1 failed",
        "3/5 answers, 41 s, 11 s to go, EM 0.50, 36 tokens, $0.0030, 1 failed",
        "5/5 answers, 43 s, EM 0.25, 60 tokens, $0.0050, 1 failed",
    ]


@pytest.mark.anyio
async def test_a_question_that_takes_long_is_seen_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewoo_bench.evaluation.progress._SECONDS_A_LINE", 0.05)
    stream, calls = io.StringIO(), iter([5, 6, 8, *range(9, 99)])
    progress = Progress(2, stream=stream, calls=lambda: next(calls))
    with progress.moving():
        await anyio.sleep(0.5)
    shown = stream.getvalue()
    assert shown.startswith("0/2 answers, 0 s, 1 call so far\n0/2 answers, 0 s, 3 calls so far\n")
    await anyio.sleep(0.2)
    assert stream.getvalue() == shown


@pytest.mark.parametrize(("taken", "to_go"), [(10.0, "30 s"), (100.0, "5 min"), (4000.0, "3.3 h")])
def test_a_session_that_goes_on_speaks_of_itself(taken: float, to_go: str) -> None:
    stream, now = io.StringIO(), 0.0
    progress = Progress(100, done=95, stream=stream, clock=lambda: now)
    progress.add(result(0, "Seine"))
    now = taken
    progress.add(result(1, "Seine"))
    last = stream.getvalue().splitlines()[-1]
    assert (
        last == f"97/100 answers, {taken:.0f} s, {to_go} to go, EM of 2 new answers: 1.00, 24 tokens, $0.0020, 0 failed"
    )


def test_a_crash_of_an_agent_counts_as_failed() -> None:
    stream = io.StringIO()
    crashed = replace(result(0, "Rhine"), trajectory=Trajectory(None, "agent_failed"))
    Progress(1, stream=stream).add(crashed)
    assert "EM 0.00," in stream.getvalue()
    assert stream.getvalue().endswith(", 1 failed\n")


def test_runs_sort_by_time_and_never_share_a_name() -> None:
    now = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
    first, second = (new_run_id(["rewoo", "react"], now) for _ in range(2))
    assert first.startswith("20261122-093000-rewoo+react-")
    assert first != second


def test_the_environment_names_versions_and_nobody() -> None:
    found = environment()
    assert set(found) == {"python", "platform", "packages", "git_commit"}
    assert all(found["packages"].values())


def test_dollars_so_far_are_shown_where_every_price_is_known() -> None:
    def shown(*costs: float | None) -> str:
        stream = io.StringIO()
        progress = Progress(len(costs), stream=stream)
        for index, cost in enumerate(costs):
            done = result(index, "Seine")
            paid = [replace(call, call_cost=replace(call.call_cost, cost_usd=cost)) for call in done.calls]
            progress.add(replace(done, calls=paid, cost_usd=cost))
        return stream.getvalue()

    assert "$" not in shown(0.001, None).splitlines()[-1]
    assert "tokens, $0.0030, 0 failed" in shown(0.001, 0.002)
    assert "$" not in shown(None, 0.002)
