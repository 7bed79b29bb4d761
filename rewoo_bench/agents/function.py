"""An agent as a function in this process: `async def answer(question, *, base_url, api_key, model, tools) -> str`.

A plain function runs in a thread of its own, so that it may use a client that blocks; a thread that never ends holds up
neither other questions nor the end of the run. `tools` maps a name to an async function
(to a plain one, for a plain agent) of the tool's arguments.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import anyio

from rewoo_bench.agents.program import AgentFailed
from rewoo_bench.agents.session import AgentSession, SessionClosed
from rewoo_bench.errors import LimitReached
from rewoo_bench.system.crashes import text_of

_END_S = 5.0  # for an agent to end after its question was cancelled


class Function:
    """Calls the function for each question."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    async def answer(self, question: str, session: AgentSession, variables: Mapping[str, str]) -> str | None:
        """The function's answer. `variables` are the gateway's. Raises `AgentFailed`."""
        is_async = inspect.iscoroutinefunction(self._function)
        loop = asyncio.get_running_loop()

        def as_function(name: str) -> Callable[..., Any]:
            async def call(**arguments: Any) -> str:
                return (await session.call_tool(name, arguments)).text

            def call_from_thread(**arguments: Any) -> str:
                return asyncio.run_coroutine_threadsafe(call(**arguments), loop).result()

            made: Callable[..., Any] = call if is_async else call_from_thread
            made.__name__, made.__doc__ = name, session.tools[name].description
            return made

        work = partial(
            self._function,
            question,
            base_url=variables["OPENAI_BASE_URL"],
            api_key=session.key,
            model=variables["REWOO_BENCH_MODEL"],
            tools={name: as_function(name) for name in session.tools},
        )
        try:
            answer = await _in_task(work()) if is_async else await _in_thread(work)
        except (LimitReached, SessionClosed) as error:
            raise AgentFailed(str(error)) from error
        except Exception as error:  # of the user's code: this question's failure
            raise AgentFailed(_shown(error)[:300]) from error
        if answer is not None and not isinstance(answer, str):
            raise AgentFailed(f"the agent returned {type(answer).__name__}; expected a text")
        return answer


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
    future: Future[Any] = Future()

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except Exception as error:  # raised again where the work is awaited; no future can hold a StopIteration
            failure = RuntimeError(_shown(error)) if isinstance(error, StopIteration) else error
        except BaseException as error:  # such as SystemExit: the end of the agent, not of the run
            failure = RuntimeError(_shown(error))
        with suppress(InvalidStateError):  # the question was cancelled
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True, name="agent").start()
    return await asyncio.wrap_future(future)


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {text_of(error)}".removesuffix(": ")
