"""A worker's side of its connection with the driver: messages go out in batches, replies come in by number.

link.tell("limited", "openai/gpt-5")           # no reply
await link.ask("record", record)               # returns once the journal has it
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from rewoo_bench.calls.caps import CallEstimate, GracefulShutdown, Reservation
from rewoo_bench.calls.retry import CallLimiter
from rewoo_bench.errors import JournalError
from rewoo_bench.evaluation.cluster.messages import DriverReply, WorkerMessage
from rewoo_bench.types import CallCost

Item = TypeVar("Item")
_RAISED = {"TypeError": TypeError, "ValueError": ValueError, "RecursionError": RecursionError}
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

    def tell(self, kind: str, value: Any) -> None:
        """Sends a message without a reply."""
        self._outgoing.put_nowait(WorkerMessage(kind, value))

    async def ask(self, kind: str, value: Any) -> Any:
        """The driver's reply to a message. Raises what the driver's part raised."""
        self._asked += 1
        number = self._asked
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._outgoing.put_nowait(WorkerMessage(kind, value, number))
        try:
            return await reply
        finally:
            del self._waiting[number]

    async def ask_for(self, kind: str, value: Any, give_back: Callable[[Any], None]) -> Any:
        """What the driver grants. Where this task is cancelled meanwhile, `give_back` gets it when it comes."""
        asking = asyncio.ensure_future(self.ask(kind, value))

        def unused(asked: asyncio.Future[Any]) -> None:
            if not asked.cancelled() and asked.exception() is None:
                give_back(asked.result())

        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(unused)
            raise

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
                name, text = reply.error
                waiting.set_exception(_RAISED.get(name, JournalError)(text))


class RemoteCaps:
    """The caps of the run, which the driver keeps: each call asks for its place."""

    def __init__(self, link: Link, shutdown: GracefulShutdown) -> None:
        self._link = link
        self._shutdown = shutdown

    async def reserve(self, estimate: CallEstimate) -> Reservation:
        """Waits until the driver has room for the call. Doesn't return once a cap is reached."""
        await self._shutdown.admit()
        reservation: Reservation = await self._link.ask_for("reserve", estimate, partial(self.release, call_cost=None))
        try:
            await self._shutdown.admit()  # requested since: a call that began now would be cancelled, and paid for
        except asyncio.CancelledError:
            self.release(reservation, None)
            raise
        return reservation

    def release(self, reservation: Reservation, call_cost: CallCost | None) -> None:
        self._link.tell("release", (reservation, call_cost))


# The connections to a provider, which the driver grants to the calls of all workers in turn.
#
# The driver has one limiter for each model, so `--max-connections` and the halving after a 429 are those of the whole
# run. Each call asks for its connection, which takes some milliseconds: a worker that kept one would let others wait.


class RemoteLimiter(CallLimiter):
    """A worker's limiter of the calls to one model."""

    def __init__(self, link: Link, model: str) -> None:
        super().__init__()
        self._link = link
        self._model = model
        self._good = 0  # answers that the driver doesn't know of

    def succeeded(self) -> None:
        super().succeeded()
        self._good += 1

    def halve(self) -> None:
        """The driver halves the limit of the whole run."""
        self._link.tell("limited", self._model)

    async def acquire(self) -> None:
        await self._link.ask_for("connect", self._model, lambda _: self.release())

    def release(self) -> None:
        self._link.tell("disconnect", (self._model, self._good))
        self._good = 0
