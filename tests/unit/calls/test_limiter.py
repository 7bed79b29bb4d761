"""Calls in flight: fewer after a 429, more again after good answers."""

from __future__ import annotations

import anyio
import pytest

from rewoo_bench.calls.retry import AdaptiveLimiter

pytestmark = pytest.mark.anyio


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_429_halves_the_places_once_for_calls_that_fail_together() -> None:
    clock = Clock()
    limiter = AdaptiveLimiter(16, hold_s=2.0, clock=clock)
    for _ in range(5):
        limiter.failed(429)
    assert limiter.places == 8
    clock.now = 2.0
    limiter.failed(429)
    assert limiter.places == 4


async def test_one_place_is_always_left() -> None:
    limiter = AdaptiveLimiter(2, hold_s=0.0)
    for _ in range(5):
        limiter.failed(429)
    assert limiter.places == 1


@pytest.mark.parametrize("status", [None, 500, 400])
async def test_other_failures_say_nothing_of_the_rate(status: int | None) -> None:
    limiter = AdaptiveLimiter(8)
    limiter.failed(status)
    assert limiter.places == 8


async def test_places_come_back_one_by_one_and_never_beyond_the_first_limit() -> None:
    limiter = AdaptiveLimiter(4, hold_s=0.0)
    limiter.failed(429)
    grown = []
    for _ in range(12):
        limiter.succeeded()
        grown.append(limiter.places)
    assert grown == [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]


async def test_no_more_calls_are_in_flight_than_there_are_places() -> None:
    limiter = AdaptiveLimiter(8, hold_s=0.0)
    limiter.failed(429)
    in_flight = most = 0

    async def call() -> None:
        nonlocal in_flight, most
        async with limiter:
            in_flight += 1
            most = max(most, in_flight)
            await anyio.sleep(0.01)
            in_flight -= 1

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(call)
    assert most == 4


async def test_a_server_is_absent_where_three_attempts_and_all_first_calls_made_no_connection() -> None:
    limiter = AdaptiveLimiter(8)
    for refusals in range(4):
        assert limiter.nobody_there == (refusals >= 3)
        limiter.failed(None, unreachable=True)
    limiter.failed(500)
    assert not limiter.nobody_there
    many, begun = AdaptiveLimiter(8), 0

    async def first_call() -> None:
        nonlocal begun
        async with many:
            begun += 1
            await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(first_call)
        await anyio.wait_all_tasks_blocked()
        for refusals in range(begun + 1):
            assert many.nobody_there == (refusals >= 5)
            many.failed(None, unreachable=True)
        group.cancel_scope.cancel()
    assert begun == 5
