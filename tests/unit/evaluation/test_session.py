"""One session of a run: which results end it early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from parts import model_call, result

from rewoo_bench.calls.call import Call
from rewoo_bench.calls.caps import RunLimits, Totals
from rewoo_bench.calls.live import LiveCalls
from rewoo_bench.errors import RepeatedCrash
from rewoo_bench.evaluation.session import Session
from rewoo_bench.evaluation.tasks import Result, Task
from rewoo_bench.system.crashes import Crash
from rewoo_bench.types import CallCost

pytestmark = pytest.mark.anyio

LIVE = model_call()
RECALLED = model_call(call_cost=CallCost(measured_s=0.5))


async def session_of(calls: Sequence[Call]) -> list[Result]:
    """The results of a session whose five questions all end with the same crash, after these calls."""
    crash = Crash("KeyError", "'x'", "own.py:3", "KeyError in Own: 'x'", "")
    crashed = [result(index, answer=None, calls=calls, crashes=(crash,)) for index in range(5)]
    kept: list[Result] = []

    async def run_task(task: Task, on_event: Any, live: Any) -> Result:
        return crashed[task.index]

    session = Session(
        run_task,
        iter([each.task for each in crashed]),
        Totals(tasks=len(crashed)),
        run_limits=RunLimits(),
        live=LiveCalls(),
        concurrency=1,
        grace_s=0.0,
        on_result=kept.append,
        store=None,
        on_event=None,
    )
    await session.run()
    return kept


@pytest.mark.parametrize("calls", [[LIVE], [RECALLED, LIVE], [LIVE, RECALLED], []])
async def test_the_same_crash_on_several_questions_ends_the_run(calls: list[Call]) -> None:
    with pytest.raises(RepeatedCrash, match=r"KeyError in own\.py:3"):
        await session_of(calls)


async def test_a_crash_after_calls_that_are_all_recalled_is_known_and_ends_no_later_session() -> None:
    assert len(await session_of([RECALLED, RECALLED])) == 5
