"""Retries: how often, how long, what is booked, and what is held meanwhile."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from parts import Billing

from rewoo_bench.calls.retry import AdaptiveLimiter, RetryingModel
from rewoo_bench.errors import ModelError
from rewoo_bench.testing.scripted_model import ScriptedModel, ScriptLine
from rewoo_bench.types import CallCost, Completion, Message, Request, Usage

pytestmark = pytest.mark.anyio

ASK = [Message("user", "Which river?")]


class Clock:
    """A sleep that takes no time and remembers what it was asked for."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()


class Highest(random.Random):
    """A draw that always comes out at the top."""

    def uniform(self, a: float, b: float) -> float:
        return b


def busy(**settings: Any) -> ModelError:
    return ModelError("busy", status=429, retryable=True, **settings)


def paid(tokens: int, cost: float | None = None) -> CallCost:
    return CallCost(billed=Usage(input_tokens=tokens), cost_usd=cost)


def retrying(lines: Sequence[ScriptLine], **settings: Any) -> tuple[Billing, ScriptedModel, Clock]:
    inner, clock = ScriptedModel(lines), Clock()
    return Billing(RetryingModel(inner, sleep=clock.sleep, rng=Highest(), **settings)), inner, clock


async def test_back_off_doubles_up_to_a_limit() -> None:
    model, _, clock = retrying([busy()] * 5 + ["Seine"], base_delay=1.0, max_delay=6.0)
    completion = await model.complete(Request(ASK, role="solver"))
    assert clock.slept == [1.0, 2.0, 4.0, 6.0, 6.0]
    assert completion.call_cost.attempts == 6
    assert len(completion.call_cost.waiting) == 5


@pytest.mark.parametrize(("asked", "slept"), [(0.1, 0.5), (7.0, 7.0), (3600.0, 60.0)])
async def test_retry_after_counts_where_it_is_longer_and_bearable(asked: float, slept: float) -> None:
    model, _, clock = retrying([busy(retry_after=asked), "Seine"])
    await model.complete(Request(ASK, role="solver"))
    assert clock.slept == [slept]


async def test_a_long_wait_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    model, _, _ = retrying([busy(retry_after=7.0), busy(retry_after=3600.0), busy(retry_after=3600.0), "Seine"])
    await model.complete(Request(ASK, role="solver"))
    (said,) = (record.getMessage() for record in caplog.records)
    assert "waiting 60 s: " in said
    assert "busy" in said


@pytest.mark.parametrize("max_retries", [0, 1, 3])
async def test_it_gives_up_after_so_many_attempts(max_retries: int) -> None:
    model, inner, clock = retrying([busy()] * 9, max_retries=max_retries)
    with pytest.raises(ModelError, match="busy") as caught:
        await model.complete(Request(ASK, role="solver"))
    assert len(inner.requests) == max_retries + 1
    assert len(clock.slept) == max_retries
    assert caught.value.call_cost is not None
    assert caught.value.call_cost.attempts == max_retries + 1


async def test_what_cannot_succeed_is_not_tried_again() -> None:
    model, inner, _ = retrying([ModelError("no such model", status=404), "Seine"])
    with pytest.raises(ModelError, match="no such model") as caught:
        await model.complete(Request(ASK, role="solver"))
    assert len(inner.requests) == 1
    assert caught.value.call_cost == CallCost(attempts=1)


async def test_failed_attempts_are_billed_too() -> None:
    answer = Completion("Seine", Usage(input_tokens=10), call_cost=paid(10, 0.5))
    model, _, _ = retrying([busy(call_cost=paid(4, 0.25)), busy(), answer])
    completion = await model.complete(Request(ASK, role="solver"))
    assert completion.usage == Usage(input_tokens=10)
    assert completion.call_cost.billed == Usage(input_tokens=14)
    assert completion.call_cost.cost_usd == 0.75


async def test_a_failure_keeps_what_it_cost() -> None:
    model, _, _ = retrying([busy(call_cost=paid(4, 0.25))] * 2, max_retries=1)
    with pytest.raises(ModelError) as caught:
        await model.complete(Request(ASK, role="solver"))
    assert caught.value.call_cost is not None
    assert (caught.value.call_cost.billed, caught.value.call_cost.cost_usd) == (Usage(input_tokens=8), 0.5)


async def test_no_place_is_held_during_a_back_off() -> None:
    limiter = AdaptiveLimiter(1)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        with anyio.fail_after(30):
            async with limiter:
                slept.append(seconds)

    model = RetryingModel(ScriptedModel([busy(), "Seine"]), limiter=limiter, sleep=sleep)
    await model.complete(Request(ASK, role="solver"))
    assert len(slept) == 1


async def test_waiting_for_a_place_is_booked_and_shared() -> None:
    limiter, in_flight, most = AdaptiveLimiter(2), 0, 0

    class Slow(ScriptedModel):
        async def complete(self, request: Request) -> Completion:
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            await anyio.sleep(0.02)
            in_flight -= 1
            return await super().complete(request)

    models = [Billing(RetryingModel(Slow(["Seine"]), limiter=limiter)) for _ in range(4)]
    receipts: list[CallCost] = []

    async def ask(model: Billing) -> None:
        receipts.append((await model.complete(Request(ASK, role="solver"))).call_cost)

    async with anyio.create_task_group() as group:
        for model in models:
            group.start_soon(ask, model)
    assert most == 2
    assert sorted(len(call_cost.waiting) for call_cost in receipts) == [0, 0, 1, 1]
    assert all(end - start >= 0.01 for call_cost in receipts for start, end in call_cost.waiting)


async def test_cancellation_passes_and_frees_the_place() -> None:
    limiter = AdaptiveLimiter(1)

    class Hanging(ScriptedModel):
        async def complete(self, request: Request) -> Completion:
            await anyio.sleep_forever()
            raise AssertionError("unreachable")

    with anyio.move_on_after(0.01) as scope:
        await RetryingModel(Hanging([]), limiter=limiter).complete(Request(ASK, role="solver"))
    assert scope.cancelled_caught
    with anyio.fail_after(30):
        async with limiter:
            pass
