"""A worker: an async Ray actor with the models and the tools of a run, and the same evaluator as on one machine.

It asks the questions that the driver gives it. Each finished call goes to the driver's journal before its result
is used, and each call asks the driver for its place where the run has caps.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from rewoo_bench.calls.live import LiveCalls
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.errors import RewooBenchError, UsageError
from rewoo_bench.evaluation.cluster.messages import (
    DriverReply,
    Ended,
    Link,
    RemoteCaps,
    WorkerMessage,
    WorkerSetup,
)
from rewoo_bench.evaluation.folder import Task
from rewoo_bench.evaluation.inputs import PythonInputs
from rewoo_bench.evaluation.prepare import make_evaluator, prepared
from rewoo_bench.evaluation.progress import notices_to
from rewoo_bench.evaluation.resume import sent_differences
from rewoo_bench.events import in_architecture
from rewoo_bench.runs.journal.records import CallRecord, TaskKey

_log = logging.getLogger(__name__)


@dataclass
class RemoteJournal:
    """The driver's journal. `recorded` has the recorded calls that came with each question."""

    link: Link
    recorded: dict[TaskKey, Sequence[CallRecord]] = field(default_factory=dict)
    is_new = False

    async def add_call(self, record: CallRecord) -> None:
        await self.link.ask("record", record)

    def calls(self, task: TaskKey) -> Sequence[CallRecord]:
        return self.recorded[task]


class RayWorker:
    """The actor. `begin` comes first; `messages` runs as long as the actor lives."""

    def __init__(self) -> None:
        self._link = Link()
        self._asking: set[asyncio.Task[Any]] = set()
        self._ended = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def begin(self, setup: WorkerSetup) -> int | str:
        """Opens models and tools; the number of questions that this worker takes at the same time.

        A text is an error of usage, the same that a run on one machine would raise.
        """
        if (here := version("rewoo-bench")) != setup.version:
            return f"the Ray node {platform.node()} has rewoo-bench {here}, and this machine {setup.version}"
        _work_as_the_driver(setup)
        opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._open(setup, opened))  # cancel scopes end in the task that began them
        either: list[asyncio.Future[Any]] = [opened, self._life]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        try:
            if not opened.done():
                await self._life  # raises what ended it
            return opened.result()
        except UsageError as error:
            return str(error)

    async def _open(self, setup: WorkerSetup, opened: asyncio.Future[int]) -> None:
        """Holds models and tools open until the end."""
        options = setup.options
        with notices_to(lambda text: self._link.tell("notice", text)):
            async with prepared(options, PythonInputs(loaded=setup.dataset)) as run:
                for role, model in options.role_models.items():
                    run.models[model].recall(setup.sent.get(role or "default", {}))
                self._run, self._options = run, options
                self._live = LiveCalls(accepted_before=setup.has_answers)
                if options.run_tokens is not None or options.run_cost is not None:
                    self._live.caps = RemoteCaps(self._link, self._live.shutdown)
                self._journal = RemoteJournal(self._link)
                recorder = Recorder(self._journal, live=self._live)  # type: ignore[arg-type]  # as far as it is used
                self._evaluator = make_evaluator(options, run, recorder)
                opened.set_result(self._evaluator.concurrency)
                await self._ended.wait()

    async def messages(self) -> AsyncIterator[list[WorkerMessage]]:
        """Everything for the driver, in batches."""
        async for batch in self._link.batches():
            yield batch

    async def receive(self, replies: Sequence[DriverReply]) -> None:
        """The driver's replies."""
        self._link.receive(replies)

    async def ask(self, task: Task, architecture: str, records: Sequence[CallRecord]) -> Ended:
        """Asks one question; `task` comes without its architecture."""
        asking = asyncio.create_task(self._ask(task, architecture, records))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        return await asking

    async def stop(self, grace_s: float) -> None:
        """Begins no call any more, and returns when those in flight have ended, or after `grace_s` seconds."""
        self._live.shutdown.request()
        await self._live.shutdown.wait_idle(grace_s)

    async def end(self) -> None:
        """Closes models, tools and agents."""
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking)
        self._ended.set()
        if self._life is not None:
            await self._life

    async def _ask(self, task: Task, name: str, records: Sequence[CallRecord]) -> Ended:
        task = replace(task, architecture=next(each for each in self._run.architectures if each.name == name))
        self._journal.recorded[task.key] = records
        try:
            with in_architecture(name):
                result = await self._evaluator.run_task(task, live=self._live)
            sent = sent_differences(self._options, self._run)
            without_task = replace(result, task=None)  # type: ignore[arg-type]  # the driver has it
            return Ended(without_task, endpoints=self._live.endpoint_states(), sent=sent)
        except Exception as error:  # it ends the run: the driver raises it
            if not isinstance(error, RewooBenchError):
                _log.exception("unexpected error while a question was asked")
            return Ended.with_error(error)
        finally:
            del self._journal.recorded[task.key]


def _work_as_the_driver(setup: WorkerSetup) -> None:
    """The driver's keys; and its folder, for relative paths and a user's own code."""
    os.environ.update(setup.secrets)
    os.chdir(setup.folder)
    sys.path.append(setup.folder)
