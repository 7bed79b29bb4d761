"""A worker's connection with the driver, with the driver's part played by the test."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from rewoo_bench.calls.live import RequestRefused
from rewoo_bench.errors import JournalError, ModelError, UsageError
from rewoo_bench.evaluation.cluster import probe
from rewoo_bench.evaluation.cluster.engine import check_versions
from rewoo_bench.evaluation.cluster.messages import DriverReply, Ended, Link, WorkerMessage

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


class Unsendable(ValueError):
    """An error whose class no other process has."""

    def __reduce__(self) -> Any:
        raise pickle.PicklingError


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (JournalError("the disk is full"), JournalError),
        (TypeError("the disk is full"), TypeError),
        (UnicodeEncodeError("utf-8", "x", 0, 1, "the disk is full"), ValueError),
        (Unsendable("the disk is full"), ValueError),
    ],
)
async def test_an_error_of_the_driver_is_raised_at_the_worker(error: Exception, kind: type[Exception]) -> None:
    link = Link()
    asked = asyncio.create_task(link.ask("record", 1))
    await asyncio.sleep(0)
    (message,) = await anext(link.batches())
    assert message.number is not None
    link.receive([pickle.loads(pickle.dumps(DriverReply.failed(message.number, error)))])
    with pytest.raises(kind, match="the disk is full") as raised:
        await asked
    assert type(raised.value) is kind


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


def test_a_refusal_survives_its_way() -> None:
    sent = RequestRefused(ModelError("no such model", status=404, unreachable=True), "openai/x")
    came: Any = pickle.loads(pickle.dumps(sent))
    assert (str(came), came.model, came.status, came.unreachable) == ("no such model", "openai/x", 404, True)


def test_an_error_that_ends_the_run_is_raised_as_what_it_was() -> None:
    with pytest.raises(UsageError, match="no price"):
        Ended.with_error(UsageError("no price")).result_of(None)  # type: ignore[arg-type]  # it isn't looked at


def test_versions_of_a_node_have_to_be_those_of_the_driver() -> None:
    here = probe.versions()
    assert {"python", "rewoo-bench"} <= here.keys()
    check_versions(here, {**here, "python": "3.11.99"}, "10.0.0.7")  # a patch level doesn't matter
    with pytest.raises(UsageError, match=r"the Ray node 10\.0\.0\.7 has rewoo-bench 0\.0\.1, and this machine "):
        check_versions(here, {**here, "rewoo-bench": "0.0.1"}, "10.0.0.7")
    without = {name: version for name, version in here.items() if name != "rewoo-bench"}
    with pytest.raises(UsageError, match=r"the Ray node 10\.0\.0\.7 has no rewoo-bench: install rewoo-bench=="):
        check_versions(here, without, "10.0.0.7")
