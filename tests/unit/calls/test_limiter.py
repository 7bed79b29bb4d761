"""Calls in flight: fewer after a 429, more again after good answers."""

from __future__ import annotations

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
