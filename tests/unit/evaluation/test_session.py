"""One session of a run: which results end it early."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest
from parts import model_call, result

from rewoo_bench.calls.caps import RunLimits, Totals
from rewoo_bench.calls.live import LiveCalls
from rewoo_bench.calls.meter import Call
from rewoo_bench.errors import (
    HarnessFault,
    JournalError,
    ModelError,
    ProviderRefused,
    RepeatedCrash,
    RewooBenchError,
    RunStopped,
    UsageError,
)
from rewoo_bench.evaluation.evaluator import Session
from rewoo_bench.evaluation.folder import Result, Task
from rewoo_bench.system.crashes import Crash
from rewoo_bench.types import CallCost, Example

pytestmark = pytest.mark.anyio

LIVE = model_call()
RECALLED = model_call(call_cost=CallCost(measured_s=0.5))


def crashed(calls: Sequence[Call]) -> list[Result]:
    """Five questions that all end with the same crash, after these calls."""
    crash = Crash("KeyError", "'x'", "own.py:3", "KeyError in Own: 'x'", "")
    return [result(index, answer=None, calls=calls, crashes=(crash,)) for index in range(5)]


def refused(index: int, model: str = "m", *, unreachable: bool = False, **values: Any) -> Result:
    """A question whose first request the provider of `model` refused."""
    error = ModelError("no such model", status=None if unreachable else 404, unreachable=unreachable)
    error.refused_by = model
    return result(index, answer=None, calls=(), refused=error, **values)


async def session_of(
    results: Sequence[Result],
    kept: list[Result] | None = None,
    *,
    live: LiveCalls | None = None,
    limits: RunLimits | None = None,
    asked: Callable[[int], Awaitable[None] | None] = lambda index: None,
    concurrency: int = 1,
    grace_s: float = 0.0,
    store: Callable[[Result], Awaitable[None]] | None = None,
) -> list[Result]:
    """Adds the results that a session counts to `kept`, in that order; `asked` is called with each question."""
    kept, totals = [] if kept is None else kept, Totals(tasks=len(results))

    async def run_task(task: Task) -> Result:
        if (waiting := asked(task.index)) is not None:
            await waiting
        totals.spent.add(100, 0.01)
        return results[task.index]

    session = Session(
        run_task,
        iter([each.task for each in results]),
        totals,
        run_limits=limits or RunLimits(),
        live=live or LiveCalls(),
        concurrency=concurrency,
        grace_s=grace_s,
        on_result=kept.append,
        store=store,
    )
    await session.run()
    return kept


@pytest.mark.parametrize("calls", [[LIVE], [RECALLED, LIVE], [LIVE, RECALLED], []])
async def test_the_same_crash_on_several_questions_ends_the_run(calls: list[Call]) -> None:
    with pytest.raises(RepeatedCrash, match=r"KeyError in own\.py:3"):
        await session_of(crashed(calls))


async def test_a_crash_after_calls_that_are_all_recalled_is_known_and_ends_no_later_session() -> None:
    assert len(await session_of(crashed([RECALLED, RECALLED]))) == 5


@pytest.mark.parametrize("unreachable", [False, True])
@pytest.mark.parametrize(("questions", "asked"), [(1, 1), (2, 2), (3, 3), (9, 3)])
async def test_a_run_of_refusals_alone_ends_with_the_refusal_after_three_questions_at_most(
    questions: int, asked: int, unreachable: bool
) -> None:
    kept, indices = list[Result](), list[int]()
    results = [refused(index, unreachable=unreachable) for index in range(questions)]
    with pytest.raises(ProviderRefused, match="no such model"):
        await session_of(results, kept, asked=indices.append)
    assert (kept, len(indices)) == (results[: asked - 1], asked)


async def test_refusals_of_one_questions_trials_may_be_its_prompts_and_dont_end_the_run_early() -> None:
    example, indices = Example("q0", "Which river?", ("Seine",)), list[int]()
    with pytest.raises(ProviderRefused):
        await session_of([refused(n, trial=n, example=example) for n in range(5)], asked=indices.append)
    assert indices == [0, 1, 2, 3, 4]


async def test_refusals_are_counted_by_model() -> None:
    indices = list[int]()
    with pytest.raises(ProviderRefused):
        await session_of([refused(n, f"m{n % 3}") for n in range(9)], asked=indices.append)
    assert indices == [0, 1, 2, 3, 4, 5, 6]


async def test_a_refusal_beside_other_results_is_its_questions_error() -> None:
    for results in ([result(0, calls=[RECALLED]), refused(1), refused(2)], [refused(0), refused(1), result(2)]):
        assert await session_of(results) == results


async def test_a_provider_that_has_accepted_a_request_may_refuse_any_number() -> None:
    live = LiveCalls()

    def asked(index: int) -> None:
        live.accepted |= {"m"} if index == 2 else set()

    results = [refused(index) for index in range(9)]
    assert await session_of(results, live=live, asked=asked) == results


LIMITS = RunLimits(run_tokens=250)


@pytest.mark.parametrize(
    ("reason", "limits", "told"),
    [
        (None, None, RunStopped("interrupted")),
        (RunStopped("the reason"), None, RunStopped("the reason")),
        (RunStopped("used 200 of 250 tokens"), LIMITS, RunStopped("used 300 of 250 tokens (--run-tokens)")),
        (JournalError("the disk is full"), LIMITS, JournalError("the disk is full")),
        (UsageError("wrong"), None, UsageError("wrong")),
    ],
)
async def test_a_run_that_was_ended_tells_the_reason(
    reason: RewooBenchError | None, limits: RunLimits | None, told: RewooBenchError
) -> None:
    live, kept = LiveCalls(), list[Result]()

    def asked(index: int) -> None:
        if index == 2:
            live.shutdown.request(reason)

    with pytest.raises(type(told)) as raised:
        await session_of([result(index) for index in range(5)], kept, live=live, limits=limits, asked=asked)
    assert str(raised.value) == str(told)
    assert len(kept) <= 3


async def test_a_request_to_end_after_the_last_question_ends_nothing() -> None:
    live, results = LiveCalls(), [result(0), result(1)]

    def asked(index: int) -> None:
        if index == 1:
            live.shutdown.request()

    assert await session_of(results, live=live, limits=RunLimits(run_tokens=200), asked=asked) == results


async def test_a_cap_ends_the_run_after_the_question_that_reached_it() -> None:
    kept = list[Result]()
    with pytest.raises(RunStopped, match=r"used 300 of 250 tokens \(--run-tokens\)"):
        await session_of([result(index) for index in range(5)], kept, limits=LIMITS)
    assert len(kept) == 3


async def test_too_many_failed_questions_end_the_run_even_at_its_last_one() -> None:
    limits, failed = RunLimits(max_errors=1), [result(index, answer=None) for index in range(3)]
    for results, number in (([result(0), *failed[1:]], 3), ([*failed[:2], result(2)], 2)):
        kept = list[Result]()
        with pytest.raises(RunStopped) as raised:
            await session_of(results, kept, limits=limits)
        assert str(raised.value) == "2 answers failed (--fail-on-error 1); last: the provider failed"
        assert len(kept) == number
    assert len(await session_of([failed[0], result(1), result(2)], limits=limits)) == 3


async def test_the_first_error_that_ends_a_run_is_told() -> None:
    async def asked(index: int) -> None:
        await anyio.sleep(0.01 * index)
        raise UsageError("first") if index == 0 else HarnessFault("second")

    with pytest.raises(UsageError, match="first"):
        await session_of([result(0), result(1)], asked=asked, concurrency=2)


async def test_a_provider_of_an_earlier_session_refuses_questions_but_has_to_be_there() -> None:
    refusals = [refused(index) for index in range(4)]
    assert await session_of(refusals, live=LiveCalls(accepted_before=True)) == refusals
    with pytest.raises(ProviderRefused):
        await session_of([refused(n, unreachable=True) for n in range(4)], live=LiveCalls(accepted_before=True))


@pytest.mark.parametrize(("error", "kept"), [(UsageError("no"), 1), (JournalError("the disk is full"), 0)])
async def test_calls_in_flight_are_waited_for_unless_their_answers_cant_be_kept(
    error: RewooBenchError, kept: int
) -> None:
    live, results = LiveCalls(), list[Result]()

    async def asked(index: int) -> None:
        if index == 0:
            await anyio.sleep(0.01)
            raise error
        with live.shutdown:
            await anyio.sleep(0.3)

    with pytest.raises(type(error)):
        await session_of([result(0), result(1)], results, live=live, asked=asked, concurrency=2, grace_s=30.0)
    assert len(results) == kept
