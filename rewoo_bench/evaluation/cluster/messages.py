"""What the driver and a worker send each other, and a worker's side of their connection.

The messages are plain data, pickled by Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from anyio import to_thread

from rewoo_bench import errors
from rewoo_bench.calls.caps import CallEstimate, GracefulShutdown, Reservation
from rewoo_bench.calls.live import LiveCalls
from rewoo_bench.calls.retry import CallLimiter
from rewoo_bench.errors import JournalError
from rewoo_bench.evaluation.folder import Result, Task
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.loaders.sources import file_sha256
from rewoo_bench.runs.journal.records import CallRecord
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.system.files import cache_dir, replaced
from rewoo_bench.types import CallCost, Example


@dataclass(frozen=True)
class ShippedCorpus:
    """The passages of a run, for nodes that don't see the driver's file: its hash, and the object with its bytes."""

    path: Path
    sha256: str
    content: Any
    """A list with one `ray.ObjectRef`, since Ray would replace a bare one by its value."""


@dataclass(frozen=True)
class WorkerSetup:
    """Everything that a worker needs once."""

    options: RunOptions
    dataset: Dataset
    """The data set with its first question only."""
    corpus: ShippedCorpus | None
    secrets: Mapping[str, str] = field(repr=False)
    """Environment variables with keys of providers."""
    sent: Mapping[str, Any]
    """By role: what earlier sessions learnt of the endpoints."""
    folder: str
    """The driver's working folder, to which relative paths belong."""
    wants_events: bool
    has_cache: bool
    has_answers: bool
    """Whether earlier sessions of the run got answers."""


@dataclass(frozen=True)
class Lease:
    """One question for a worker, with the calls that the journal has of it."""

    number: int
    example: Example
    trial: int
    architecture: str
    index: int
    records: Sequence[CallRecord]


@dataclass(frozen=True)
class Ended:
    """The end of a lease: a result, or the name and message of an error that ends the run."""

    result: Mapping[str, Any] | None
    stopped: tuple[str, str] | None = None
    endpoints: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)
    """Model -> whether its provider accepted a request, and whether it answered anything."""
    sent: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def with_result(cls, result: Result, live: LiveCalls, sent: Mapping[str, Any]) -> Ended:
        """Without the task, which the driver has."""
        facts = {each.name: getattr(result, each.name) for each in fields(result) if each.name != "task"}
        return cls(facts, endpoints=live.endpoint_states(), sent=sent)

    @classmethod
    def with_error(cls, error: Exception) -> Ended:
        if isinstance(error, errors.RewooBenchError):
            return cls(None, (type(error).__name__, str(error)))
        return cls(None, ("HarnessFault", f"a worker: {type(error).__name__}: {error}"))

    def result_of(self, task: Task) -> Result:
        """The result. Raises the error that ends the run."""
        if self.stopped is not None:
            name, message = self.stopped
            raise getattr(errors, name, errors.HarnessFault)(message)
        assert self.result is not None
        return Result(task=task, **self.result)


@dataclass(frozen=True)
class WorkerMessage:
    """A message of a worker. One with a number waits for the driver's `DriverReply` of that number."""

    kind: str
    value: Any
    number: int | None = None


RECORDING_ERRORS = (JournalError, TypeError, ValueError)
"""What recording a call raises: where the journal can't be written, and for an answer that is no JSON."""


@dataclass(frozen=True)
class DriverReply:
    """The driver's answer to a message: a value, or an exception to raise."""

    number: int
    value: Any = None
    error: Exception | None = None

    @classmethod
    def failed(cls, number: int, error: Exception) -> DriverReply:
        """With an error that a record raised. Its own class may be one that can't be sent."""
        kind = next(each for each in RECORDING_ERRORS if isinstance(error, each))
        return cls(number, error=kind(str(error)))


# The passages of a run on each node: the driver's file where the node sees it, else one copy in the node's cache.


async def local_corpus(corpus: ShippedCorpus) -> Path:
    """The passages as a file of this node."""
    if corpus.path.is_file() and await to_thread.run_sync(file_sha256, corpus.path) == corpus.sha256:
        return corpus.path
    copy = cache_dir() / "corpora" / corpus.sha256[:16] / corpus.path.name
    if not copy.exists():
        (content,) = corpus.content
        await to_thread.run_sync(_write, copy, await content)
    return copy


def _write(copy: Path, content: bytes) -> None:
    """Two workers of a node may both write: each replaces the whole file by the same bytes."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    with replaced(copy, follows=False) as file:
        file.write(content)


# A worker's side of its connection with the driver: messages go out in batches, replies come in by number.
#
#     link.tell("limited", "openai/gpt-5")           # no reply
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
                waiting.set_exception(reply.error)


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

    async def acquire(self) -> bool:
        await self._link.ask_for("connect", self._model, lambda _: self.release())
        return True

    def release(self) -> None:
        self._link.tell("disconnect", (self._model, self._good))
        self._good = 0
