"""Agents that are functions of this process and end in odd ways: each is one row, and the run goes on."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from command_runs import start
from dialect_server import DialectServer
from gateway_runs import rows, run_agents, write_agent, write_questions

pytestmark = pytest.mark.usefixtures("own_folder")


async def raises_cancelled(question: str, **_: Any) -> str:
    raise asyncio.CancelledError


async def cancels_its_task(question: str, **_: Any) -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(60)
    return "late"


async def exits(question: str, **_: Any) -> str:
    sys.exit("done")


async def waits(question: str, **_: Any) -> str:
    await anyio.Path("has-begun").touch()
    try:
        await asyncio.sleep(60)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.Path("was-cancelled").touch()
    return "late"


ENDS = {
    "raises_cancelled": "RuntimeError: the agent cancelled itself",
    "cancels_its_task": "RuntimeError: the agent cancelled itself",
    "exits": "RuntimeError: SystemExit: done",
}


def function(name: str, **settings: Any) -> Path:
    return write_agent(name.replace("_", "-"), callable=f"test_agent_functions:{name}", **settings)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_function_that_ends_itself_is_a_row_of_its_own() -> None:
    with DialectServer() as provider:
        assert run_agents(provider, [function(name) for name in ENDS], questions=2) == 1
    found = dict(zip(rows().architecture, rows().error, strict=True))
    assert {name.replace("-", "_"): error for name, error in found.items()} == ENDS
    assert set(rows().stop_reason) == {"agent_failed"}
    assert len(rows()) == 2 * len(ENDS)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_function_is_cancelled_at_its_time_limit() -> None:
    with DialectServer() as provider:
        run_agents(provider, [function("waits", timeout_s=1)], questions=1)
    assert set(rows().stop_reason) == {"time_limit"}
    assert Path("was-cancelled").exists()


def test_ctrl_c_ends_a_run_of_functions() -> None:
    Path("mine.py").write_text(Path(__file__).read_text(encoding="utf-8").partition("ENDS = ")[0])
    support = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
    with DialectServer() as provider:
        model = ("--model", "openai/gpt-x", "--api-base", provider.api_base, "--out", "out", "--grace", "1")
        agent = write_agent("waits", callable="mine:waits")
        process = start("--arch", agent, "--dataset", write_questions(2), *model, env={"PYTHONPATH": ":".join(support)})
        deadline = time.monotonic() + 120
        while not Path("has-begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 3
    assert Path("was-cancelled").exists()
