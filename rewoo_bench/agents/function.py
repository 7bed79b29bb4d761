"""An agent as a function in this process: `async def answer(question, *, base_url, api_key, model, tools) -> str`.

A plain function runs in a thread, so that it may use a client that blocks. `tools` maps a name to an async function
(to a plain one, for a plain agent) of the tool's arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from anyio import from_thread, to_thread

from rewoo_bench.agents.program import AgentFailed
from rewoo_bench.agents.session import AgentSession, SessionClosed
from rewoo_bench.errors import LimitReached


async def answer_with(
    function: Callable[..., Any], question: str, session: AgentSession, *, base_url: str, model: str
) -> str | None:
    """The function's answer. Raises `AgentFailed`."""
    tools = {name: _as_function(session, name) for name in session.tools}
    given: dict[str, Any] = {"base_url": base_url, "api_key": session.key, "model": model}
    try:
        if inspect.iscoroutinefunction(function):
            answer = await function(question, **given, tools=tools)
        else:
            plain = {name: _in_thread(tool) for name, tool in tools.items()}
            answer = await to_thread.run_sync(lambda: function(question, **given, tools=plain), abandon_on_cancel=True)
    except (LimitReached, SessionClosed) as error:
        raise AgentFailed(str(error)) from error
    except Exception as error:  # of the user's code: this question's failure
        raise AgentFailed(f"{type(error).__name__}: {error}"[:300]) from error
    if answer is not None and not isinstance(answer, str):
        raise AgentFailed(f"the agent returned {type(answer).__name__}; expected a text")
    return answer


def _as_function(session: AgentSession, name: str) -> Callable[..., Coroutine[Any, Any, str]]:
    async def call(**arguments: Any) -> str:
        return (await session.call_tool(name, arguments)).text

    call.__name__, call.__doc__ = name, session.tools[name].description
    return call


def _in_thread(tool: Callable[..., Coroutine[Any, Any, str]]) -> Callable[..., str]:
    def call(**arguments: Any) -> str:
        return from_thread.run(lambda: tool(**arguments))

    call.__name__, call.__doc__ = tool.__name__, tool.__doc__
    return call
