"""A worker whose question ends while its process starts."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import anyio
import pytest
from anyio.abc import Process

from rewoo_bench.agents.program import WorkerProcess
from rewoo_bench.agents.session import AgentSession
from rewoo_bench.agents.settings import AgentSettings
from rewoo_bench.calls.meter import Meter
from rewoo_bench.system.processes import ProcessGroups

ANSWERS = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "answer": "Oslo"}), flush=True)
"""
NAMES = ("MODEL", "TOOLS_URL", "MCP_URL")


class SlowToStart(ProcessGroups):
    starts = 0

    @asynccontextmanager
    async def start(self, *arguments: Any, **settings: Any) -> AsyncIterator[Process]:
        self.starts += 1
        await anyio.sleep(0.2)
        async with super().start(*arguments, **settings) as process:
            yield process


async def ask(worker: WorkerProcess, key: str) -> str | None:
    address = "http://127.0.0.1:1/v1"
    variables = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": address, "ANTHROPIC_BASE_URL": address}
    variables |= {f"REWOO_BENCH_{name}": address for name in NAMES}
    with closing(AgentSession(key, Meter({}), {})) as session:
        return await worker.answer("Which city?", session, variables)


@pytest.mark.anyio
async def test_the_process_answers_the_next_question_and_ends_in_good_order() -> None:
    command = (sys.executable, "-c", ANSWERS)
    groups = SlowToStart()
    async with groups:
        worker = WorkerProcess(AgentSettings(command=command, protocol="worker"), command, groups)
        with anyio.move_on_after(0.05) as limit:
            await ask(worker, "q-1")
        assert limit.cancelled_caught
        assert await ask(worker, "q-2") == "Oslo"
        await worker.aclose()
    assert groups.starts == 1
