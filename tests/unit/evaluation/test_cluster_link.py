"""A worker's connection with the driver, with the driver's part played by the test."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from rewoo_bench.calls.caps import CallEstimate, GracefulShutdown, Reservation
from rewoo_bench.errors import JournalError, ModelError, UsageError
from rewoo_bench.evaluation.cluster.messages import DriverReply, Ended, Link, RemoteCaps, WorkerMessage

pytestmark = pytest.mark.anyio


async def test_replies_come_to_those_who_asked_in_whatever_order() -> None:
    link = Link()
    asked = [asyncio.create_task(link.ask("record", number)) for number in range(3)]
    link.tell("notice", "a word")
    await asyncio.sleep(0)
    batch = await anext(link.batches())
    assert [(message.kind, message.value) for message in batch] == [
        ("notice", "a word"), ("record", 0), ("record", 1), ("record", 2),
    ]  # fmt: skip
    numbers = [message.number for message in batch if message.number is not None]
    link.receive([DriverReply(number, value=10 * number) for number in reversed(numbers)])
    assert await asyncio.gather(*asked) == [10 * number for number in numbers]


async def test_a_journal_that_the_driver_cannot_write_is_the_workers_error() -> None:
    link = Link()
    asked = asyncio.create_task(link.ask("record", 1))
    (message,) = await anext(link.batches())
    assert message.number is not None
    link.receive([pickle.loads(pickle.dumps(DriverReply(message.number, error=JournalError("the disk is full"))))])
    with pytest.raises(JournalError, match="the disk is full"):
        await asked


async def test_a_reply_to_one_who_was_cancelled_is_dropped() -> None:
    link = Link()
    asked = asyncio.create_task(link.ask("reserve", None))
    await asyncio.sleep(0)
    (message,) = await anext(link.batches())
    asked.cancel()
    await asyncio.wait([asked])
    assert isinstance(message, WorkerMessage)
    assert message.number is not None
    link.receive([DriverReply(message.number)])


def test_an_error_that_ends_the_run_is_raised_as_what_it_was() -> None:
    with pytest.raises(UsageError, match="no price"):
        Ended.with_error(UsageError("no price")).result_of(None)  # type: ignore[arg-type]  # it isn't looked at


def test_a_refusal_survives_its_way() -> None:
    sent = ModelError("no such model", status=404, unreachable=True)
    sent.refused_by = "openai/x"
    came: Any = pickle.loads(pickle.dumps(sent))
    assert (str(came), came.refused_by, came.status, came.unreachable) == ("no such model", "openai/x", 404, True)


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
