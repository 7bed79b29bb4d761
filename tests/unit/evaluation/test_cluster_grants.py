"""Connections and room under the caps, which the driver grants; the driver's part is played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rewoo_bench.calls.caps import CallEstimate, GracefulShutdown, Reservation
from rewoo_bench.evaluation.cluster.messages import DriverReply, Link, RemoteCaps, RemoteLimiter, WorkerMessage

pytestmark = pytest.mark.anyio

MODEL = "openai/x"


class Driver:
    """Grants so many connections, and counts what comes back."""

    def __init__(self, connections: int) -> None:
        self._connections = self._free = connections
        self._waiting: list[tuple[Link, int]] = []
        self.all_are_back = asyncio.Event()
        self.good = 0
        self.limited = 0

    async def serve(self, link: Link) -> None:
        async for batch in link.batches():
            for message in batch:
                self._handle(link, message)
            while self._free and self._waiting:
                self._free -= 1
                self.all_are_back.clear()
                asking, number = self._waiting.pop(0)
                asking.receive([DriverReply(number)])

    def _handle(self, link: Link, message: WorkerMessage) -> None:
        if message.kind == "connect":
            assert message.number is not None
            self._waiting.append((link, message.number))
        elif message.kind == "limited":
            self.limited += 1
        else:
            self.good += message.value[1]
            self._free += 1
            if self._free == self._connections:
                self.all_are_back.set()


@contextmanager
def served(driver: Driver, *links: Link) -> Iterator[None]:
    tasks = [asyncio.create_task(driver.serve(link)) for link in links]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


@pytest.mark.parametrize(("connections", "workers"), [(1, 3), (4, 3), (50, 2)])
async def test_calls_of_all_workers_have_no_more_connections_than_the_driver_has(
    connections: int, workers: int
) -> None:
    driver, links = Driver(connections), [Link() for _ in range(workers)]
    limiters = [RemoteLimiter(link, MODEL) for link in links]
    in_flight = most = done = 0

    async def call(limiter: RemoteLimiter) -> None:
        nonlocal in_flight, most, done
        async with limiter:
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(0.001)
            in_flight -= 1
        limiter.succeeded()
        done += 1

    calls = 50
    with served(driver, *links):
        await asyncio.gather(*(call(limiter) for limiter in limiters for _ in range(calls)))
        await asyncio.wait_for(driver.all_are_back.wait(), 30)
    assert most == min(connections, workers * calls)
    assert done == workers * calls


async def test_a_call_that_is_cancelled_while_it_waits_keeps_no_connection() -> None:
    driver, link = Driver(1), Link()
    limiter = RemoteLimiter(link, MODEL)
    with served(driver, link):
        async with limiter:
            waiting = asyncio.create_task(limiter.acquire())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        async with asyncio.timeout(30), limiter:
            pass
        await asyncio.wait_for(driver.all_are_back.wait(), 30)


async def test_a_429_goes_to_the_driver_and_so_do_the_good_answers() -> None:
    driver, link = Driver(2), Link()
    limiter = RemoteLimiter(link, MODEL)
    with served(driver, link):
        async with limiter:
            limiter.failed(429)
        async with limiter:
            limiter.succeeded()
        await asyncio.wait_for(driver.all_are_back.wait(), 30)
    assert (driver.limited, driver.good) == (1, 1)


async def test_room_that_is_granted_too_late_is_given_back() -> None:
    link = Link()
    caps = RemoteCaps(link, GracefulShutdown())
    asking = asyncio.create_task(caps.reserve(CallEstimate(60, 40, None)))
    (asked,) = await anext(link.batches())
    assert (asked.kind, asked.number is not None) == ("reserve", True)
    asking.cancel()  # the question's time limit
    await asyncio.wait([asking])
    assert asked.number is not None
    granted = Reservation(100, None, 100)
    link.receive([DriverReply(asked.number, granted)])
    (released,) = await anext(link.batches())
    assert (released.kind, released.value) == ("release", (granted, None))
