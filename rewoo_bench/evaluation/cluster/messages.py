"""What the driver and a worker send each other, and a worker's side of their connection.

The messages are plain data, pickled by Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Any, Literal, TypeVar

from rewoo_bench import errors
from rewoo_bench.calls.caps import CallEstimate, GracefulShutdown, Reservation
from rewoo_bench.errors import JournalError
from rewoo_bench.evaluation.folder import Result, Task
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.text.redaction import redact
from rewoo_bench.types import CallCost


@dataclass(frozen=True)
class WorkerSetup:
    """Everything that a worker needs once."""

    options: RunOptions
    dataset: Dataset
    """The data set with its first question only."""
    secrets: Mapping[str, str] = field(repr=False)
    """Environment variables with keys of providers."""
    sent: Mapping[str, Any]
    """By role: what earlier sessions learnt of the endpoints."""
    folder: str
    """The driver's working folder, which each node has, too: relative paths belong to it."""
    has_answers: bool
    """Whether earlier sessions of the run got answers."""
    version: str
    """The driver's rewoo-bench."""


@dataclass(frozen=True)
class Ended:
    """The end of a question: a result without its task, or the name and message of an error that ends the run."""

    result: Result | None
    stopped: tuple[str, str] | None = None
    endpoints: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)
    """Model -> whether its provider accepted a request, and whether it answered anything."""
    sent: Mapping[str, Any] = field(default_factory=dict)
    """By role: how requests differed from the options."""

    @classmethod
    def with_error(cls, error: Exception) -> Ended:
        if isinstance(error, errors.RewooBenchError):
            return cls(None, (type(error).__name__, str(error)))
        return cls(None, ("HarnessFault", f"a worker: {type(error).__name__}: {error}"))

    def result_of(self, task: Task) -> Result:
        """The result. Raises the error that ends the run."""
        if self.stopped is not None:
            name, message = self.stopped
            raise getattr(errors, name)(message)
        assert self.result is not None
        return replace(self.result, task=task)


@dataclass(frozen=True)
class WorkerMessage:
    """A message of a worker. One with a number waits for the driver's `DriverReply` of that number."""

    kind: Literal["notice", "record", "release", "reserve"]
    value: Any
    number: int | None = None


@dataclass(frozen=True)
class DriverReply:
    """The driver's answer to a message: a value, or why the journal can't be written."""

    number: int
    value: Any = None
    error: JournalError | None = None


# A worker's side of its connection with the driver: messages go out in batches, replies come in by number.
#
#     link.tell("notice", "it waits")                # no reply
#     await link.ask("record", record)               # returns once the journal has it


Item = TypeVar("Item")
_MOST = 256  # messages of a batch


async def batches(queue: asyncio.Queue[Item]) -> AsyncIterator[list[Item]]:
    """What comes into the queue, as much at once as there is: a message of its own costs Ray 0.4 ms."""
    while True:
        batch = [await queue.get()]
        while len(batch) < _MOST and not queue.empty():
            batch.append(queue.get_nowait())
        yield batch


class Link:
    """WorkerMessages to the driver, and its replies."""

    def __init__(self) -> None:
        self._outgoing: asyncio.Queue[WorkerMessage] = asyncio.Queue()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0

    def tell(self, kind: Any, value: Any) -> None:
        """Sends a message without a reply."""
        self._outgoing.put_nowait(WorkerMessage(kind, value))

    async def ask(self, kind: Any, value: Any) -> Any:
        """The driver's reply to a message. Raises what the driver's part raised."""
        self._asked += 1
        number = self._asked
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._outgoing.put_nowait(WorkerMessage(kind, value, number))
        try:
            return await reply
        finally:
            del self._waiting[number]

    def batches(self) -> AsyncIterator[list[WorkerMessage]]:
        """The messages, as many at once as there are."""
        return batches(self._outgoing)

    def receive(self, replies: Sequence[DriverReply]) -> None:
        """Passes replies on to those who asked; one who was cancelled gets none."""
        for reply in replies:
            waiting = self._waiting.get(reply.number)
            if waiting is None or waiting.done():
                continue
            if reply.error is None:
                waiting.set_result(reply.value)
            else:
                waiting.set_exception(reply.error)


class RemoteCaps:
    """The caps of the run, which the driver keeps: each call asks for its place."""

    def __init__(self, link: Link, shutdown: GracefulShutdown) -> None:
        self._link = link
        self._shutdown = shutdown

    async def reserve(self, estimate: CallEstimate) -> Reservation:
        """Waits until the driver has room for the call. Doesn't return once a cap is reached."""
        await self._shutdown.admit()
        asking = asyncio.ensure_future(self._link.ask("reserve", estimate))
        try:
            reservation: Reservation = await asyncio.shield(asking)
            await self._shutdown.admit()  # requested since: a call that began now would be cancelled, and paid for
        except asyncio.CancelledError:
            asking.add_done_callback(self._give_back)
            raise
        return reservation

    def _give_back(self, asked: asyncio.Future[Reservation]) -> None:
        """Releases what was granted to a call that was cancelled meanwhile."""
        if not asked.cancelled() and asked.exception() is None:
            self.release(asked.result(), None)

    def release(self, reservation: Reservation, call_cost: CallCost | None) -> None:
        self._link.tell("release", (reservation, call_cost))


def last_line(error: BaseException) -> str:
    """The end of Ray's message, in one line: the beginning is a traceback or the actor's address."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return redact(shorten(lines[-1], 200, placeholder=" …")) if lines else type(error).__name__
