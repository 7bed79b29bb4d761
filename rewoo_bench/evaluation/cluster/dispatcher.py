"""The driver's side of its connections: sends leases and replies to the workers, and handles what they send."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from anyio import to_thread

from rewoo_bench.calls.live import CallCaps
from rewoo_bench.calls.rate_limiter import AdaptiveLimiter
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.concurrency import TaskStarter, background_tasks
from rewoo_bench.errors import JournalError
from rewoo_bench.evaluation.cluster.link import batches
from rewoo_bench.evaluation.cluster.messages import Message, Reply
from rewoo_bench.evaluation.cluster.pool import Pool, PoolWorker
from rewoo_bench.journal.records import CallRecord


@dataclass(frozen=True)
class Dispatcher:
    """The messages between the driver and its workers."""

    recorder: Recorder
    pool: Pool
    say: Callable[[str], None]
    limiters: Mapping[str, AdaptiveLimiter]
    """By model: the calls in flight of the whole run."""

    async def serve(self, worker: PoolWorker) -> None:
        """Sends and receives as long as the worker lives. Raises `RayActorError` where it died."""
        async with background_tasks() as start:
            start(_send, worker)
            async for reference in worker.handle.messages.options(num_returns="streaming").remote():
                batch: list[Message] = await reference
                records = [message for message in batch if message.kind == "record"]
                for reply in await asyncio.gather(*map(self._keep, records)):
                    worker.outgoing.put_nowait(reply)
                for message in batch:
                    if message.kind != "record":
                        self._handle(worker, message, start)

    def end(self, worker: PoolWorker) -> None:
        """Ends the questions of a dead worker, and frees what it had: connections, and room under the caps."""
        for asked in worker.asked.values():
            if not asked.ended.done():
                asked.ended.set_result(None)
        for reservation in worker.reservations:
            self._caps.release(reservation, None)
        worker.reservations.clear()
        for model, connections in worker.connections.items():
            for connection in connections:
                self.limiters[model].release_for(connection)
        worker.connections.clear()

    async def _keep(self, message: Message) -> Reply:
        """Writes a record into the journal."""
        assert message.number is not None
        record: CallRecord = message.value
        try:
            await self.recorder.keep(record)
        except JournalError as error:
            self.recorder.shutdown.request(error)
            return Reply(message.number, error=("JournalError", str(error)))
        except (TypeError, ValueError, RecursionError) as error:  # an answer that is no JSON
            return Reply(message.number, error=(type(error).__name__, str(error)))
        return Reply(message.number)

    def _handle(self, worker: PoolWorker, message: Message, start: TaskStarter) -> None:
        kind, value = message.kind, message.value
        if kind == "ended":
            number, ended = value
            asked = worker.asked.get(number)
            if asked and not asked.ended.done():
                # As safe as Ray itself, which unpickles whatever its workers return: they are this user's processes and
                # run this user's code. What comes from outside are answers, texts in the results.
                asked.ended.set_result(pickle.loads(ended))
        elif kind == "release":
            reservation, call_cost = value
            worker.reservations.remove(reservation)
            self._caps.release(reservation, call_cost)
        elif kind == "disconnect":
            model, good = value
            self.limiters[model].release_for(worker.connections[model].pop())
            for _ in range(good):
                self.limiters[model].succeeded()
        elif kind == "limited":
            self.limiters[value].halve()
        elif kind == "event":
            number, event = value
            if (asked := worker.asked.get(number)) and asked.on_event:
                asked.on_event(asked.task, event)
        elif kind == "notice":
            self.say(value)
        else:
            start(partial(self._answer, worker), message)

    async def _answer(self, worker: PoolWorker, message: Message) -> None:
        """Answers a message that may have to wait."""
        assert message.number is not None
        if message.kind == "admit":
            value: Any = await self._caps.admit(message.value)
            if worker.dead:
                self._caps.release(value, None)
                return
            worker.reservations.append(value)
        elif message.kind == "connect":
            value, connection = None, object()
            await self.limiters[message.value].acquire_for(connection)
            if worker.dead:
                self.limiters[message.value].release_for(connection)
                return
            worker.connections[message.value].append(connection)
        elif message.kind == "cached":
            assert self.recorder.cache is not None
            value = await to_thread.run_sync(self.recorder.cache.get, message.value)
        else:
            assert self.recorder.cache is not None
            value = await to_thread.run_sync(self.recorder.cache.put, *message.value)
        worker.outgoing.put_nowait(Reply(message.number, value))

    @property
    def _caps(self) -> CallCaps:
        caps = self.recorder.live.caps
        assert caps is not None, "workers ask only where the run has caps"
        return caps


async def _send(worker: PoolWorker) -> None:
    """Sends what waits for a worker; more comes together while a batch is on its way.

    Where the worker died, this ends quietly: what it had sent before is still handled.
    """
    from ray.exceptions import RayActorError

    with suppress(RayActorError):
        async for batch in batches(worker.outgoing):
            await worker.handle.receive.remote(batch)
