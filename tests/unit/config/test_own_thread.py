"""The thread of a world: one call at a time, and what becomes of those that are given up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextvars import ContextVar

import pytest

from rewoo_bench.config.own_thread import OwnThread
from rewoo_bench.errors import ToolError

pytestmark = pytest.mark.anyio

PLACE = ContextVar("PLACE", default="none")


async def test_while_a_call_that_was_given_up_runs_no_other_one_is_made() -> None:
    thread, log = OwnThread(), list[str]()

    def slow() -> None:
        time.sleep(0.3)
        log.append("slow")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(thread.call(slow), 0.05)
    with pytest.raises(ToolError, match="an earlier call, which took too long, is still running"):
        await thread.call(lambda: log.append("refused"))
    await asyncio.sleep(0.5)
    await thread.call(lambda: log.append("next"))
    thread.end()
    assert log == ["slow", "next"]


async def test_a_call_that_was_given_up_before_it_began_is_not_made_later() -> None:
    thread, log = OwnThread(), list[str]()
    running = asyncio.create_task(thread.call(lambda: time.sleep(0.2)))
    await asyncio.sleep(0.05)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(thread.call(lambda: log.append("too late")), 0.05)
    await running
    await thread.call(lambda: log.append("next"))
    thread.end()
    assert log == ["next"]


async def test_a_call_that_was_given_up_at_once_leaves_the_thread_usable() -> None:
    thread = OwnThread()
    task = asyncio.create_task(thread.call(lambda: time.sleep(0.05)))
    await asyncio.sleep(0)  # it is in the queue
    task.cancel()
    await asyncio.sleep(0.2)
    assert await thread.call(lambda: "next") == "next"
    thread.end()


async def test_a_call_sees_the_context_of_its_caller() -> None:
    PLACE.set("here")
    thread = OwnThread()
    assert await thread.call(PLACE.get) == "here"
    thread.end()


def test_a_call_that_hangs_keeps_no_program_from_ending() -> None:
    program = (
        "import asyncio, time\n"
        "from rewoo_bench.config.own_thread import OwnThread\n"
        "async def main(): await asyncio.wait_for(OwnThread().call(lambda: time.sleep(60)), 0.05)\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert ended.stderr.rstrip().endswith("TimeoutError")
