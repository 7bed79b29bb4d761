"""An agent as a function in this process: `async def answer(question, *, base_url, api_key, model, tools) -> str`.

A plain function runs in a thread of its own, so that it may use a client that blocks; a thread that never ends holds up
neither other questions nor the end of the run. `tools` maps a name to an async function
(to a plain one, for a plain agent) of the tool's arguments.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import anyio

from rewoo_bench.agents.program import AgentFailed
from rewoo_bench.agents.session import AgentSession, SessionClosed
from rewoo_bench.errors import LimitReached
from rewoo_bench.system.crashes import text_of

_END_S = 5.0  # for an agent to end after its question was cancelled


async def answer_with(
    function: Callable[..., Any], question: str, session: AgentSession, *, base_url: str, model: str
) -> str | None:
    """The function's answer. Raises `AgentFailed`."""
    tools = {name: _as_function(session, name) for name in session.tools}
    given: dict[str, Any] = {"base_url": base_url, "api_key": session.key, "model": model}
    try:
        if inspect.iscoroutinefunction(function):
            answer = await _in_task(function(question, **given, tools=tools))
        else:
            loop = asyncio.get_running_loop()
            plain = {name: _from_thread(tool, loop) for name, tool in tools.items()}
            answer = await _in_thread(lambda: function(question, **given, tools=plain))
    except (LimitReached, SessionClosed) as error:
        raise AgentFailed(str(error)) from error
    except Exception as error:  # of the user's code: this question's failure
        raise AgentFailed(_shown(error)[:300]) from error
    if answer is not None and not isinstance(answer, str):
        raise AgentFailed(f"the agent returned {type(answer).__name__}; expected a text")
    return answer


def _as_function(session: AgentSession, name: str) -> Callable[..., Coroutine[Any, Any, str]]:
    async def call(**arguments: Any) -> str:
        return (await session.call_tool(name, arguments)).text

    call.__name__, call.__doc__ = name, session.tools[name].description
    return call


async def _in_task(work: Coroutine[Any, Any, Any]) -> Any:
    """The work's result. A task of its own, so that an agent that cancels itself cancels nothing else."""

    async def run() -> Any:
        try:
            return await work
        except (SystemExit, GeneratorExit, BaseExceptionGroup) as error:  # the end of the agent, not of the run
            if isinstance(error, Exception):
                raise
            raise RuntimeError(_shown(error)) from error

    task = asyncio.create_task(run())
    try:
        await asyncio.wait([task])
    finally:
        if not task.done():  # the question is cancelled
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task], timeout=_END_S)
    if task.cancelled():
        raise RuntimeError("the agent cancelled itself")
    return task.result()


async def _in_thread(work: Callable[[], Any]) -> Any:
    """The work's result. anyio's threads are few, shared with the journal, and waited for at the end of the process."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():  # the question was cancelled
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result: Any = None
        failure: Exception | None = None
        try:
            result = work()
        except StopIteration as error:  # no future can hold one
            failure = RuntimeError(_shown(error))
        except Exception as error:  # raised again where the work is awaited
            failure = error
        except BaseException as error:  # such as SystemExit: the end of the agent, not of the run
            failure = RuntimeError(_shown(error))
        with suppress(RuntimeError):  # the run has ended
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True, name="agent").start()
    return await future


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {text_of(error)}".removesuffix(": ")


def _from_thread(tool: Callable[..., Coroutine[Any, Any, str]], loop: asyncio.AbstractEventLoop) -> Callable[..., str]:
    def call(**arguments: Any) -> str:
        return asyncio.run_coroutine_threadsafe(tool(**arguments), loop).result()

    call.__name__, call.__doc__ = tool.__name__, tool.__doc__
    return call
