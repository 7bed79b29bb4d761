"""What is put around a tool: guards, and failures on purpose.

The guards are limits of concurrent calls and of a result, a deadline, and `ToolError` for every exception.
"""

from __future__ import annotations

import asyncio
import re
import warnings
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import anyio

from rewoo_bench.config.functions import FunctionTool
from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import NotRecorded, RewooBenchError, ToolError
from rewoo_bench.events import current_place
from rewoo_bench.system.concurrency import take
from rewoo_bench.system.crashes import RUN_STOPPING, deciding, harness_fault
from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.redaction import without
from rewoo_bench.text.tokens import count_tokens, truncate
from rewoo_bench.types import FaultMode, Tool, WrappedTool, sees_state

_MISTAKES = (AttributeError, ImportError, NameError, TypeError)  # rather of the code than of a call
_LONGEST_FAULT = 300  # characters of an exception's text; it goes into prompts


class ConcurrencyLimit(WrappedTool):
    """A tool of which at most `max_concurrency` calls run at once."""

    def __init__(self, tool: Tool, max_concurrency: int) -> None:
        super().__init__(tool)
        self._limiter = anyio.CapacityLimiter(max_concurrency)

    async def __call__(self, arguments: Any) -> str:
        await take(self._limiter)
        try:
            return await self._tool(arguments)
        finally:
            self._limiter.release()


class StateOrder:
    """The order of a question's calls where a tool changes state.

    A call that changes state waits for all calls before it, and every call for the last change before it.
    """

    def __init__(self) -> None:
        self._change: anyio.Event | None = None
        self._others: list[anyio.Event] = []  # since that change

    def of(self, tool: Tool) -> Tool:
        """The tool in this order; one that sees no state needs none."""
        return InOrder(tool, self) if sees_state(tool) else tool

    async def call(self, tool: Tool, arguments: Any) -> str:
        """Calls the tool in its turn."""
        ended, last = anyio.Event(), [self._change] if self._change else []
        if getattr(tool, "changes_state", False):
            before, self._change, self._others = [*last, *self._others], ended, []
        else:
            before = last
            self._others.append(ended)
        try:
            for each in before:
                if not each.is_set():
                    await each.wait()
            return await tool(arguments)
        finally:
            ended.set()


class InOrder(WrappedTool):
    """A tool whose calls keep the order of state."""

    def __init__(self, tool: Tool, order: StateOrder) -> None:
        super().__init__(tool)
        self._order = order

    async def __call__(self, arguments: Any) -> str:
        return await self._order.call(self._tool, arguments)


class LeftAlone(WrappedTool):
    """A tool that says that it is done, and does nothing: a dry run changes nothing outside."""

    async def __call__(self, arguments: Any) -> str:
        return "Done."


class ResultLimit(WrappedTool):
    """A tool whose results and errors have at most `max_tokens` tokens; a note says how many more there were."""

    def __init__(self, tool: Tool, max_tokens: int) -> None:
        super().__init__(tool)
        self._max_tokens = max_tokens

    async def __call__(self, arguments: Any) -> str:
        try:
            return self._cut(await self._tool(arguments))
        except ToolError as error:
            raise ToolError(self._cut(str(error))) from error

    def _cut(self, text: str) -> str:
        start, is_cut = truncate(text, self._max_tokens)
        return f"{start}\n… {count_tokens(text) - count_tokens(start):,} tokens left out" if is_cut else text


class Deadline(WrappedTool):
    """A tool that fails only with `ToolError`, within its time, so that no question ends by a tool's fault.

    The `secrets` are in no result: a server or a user's tool may answer with what it was started with.
    Any other exception than a `RewooBenchError` is a fault in the tool's code: a warning, once for each type.
    Raises `HarnessFault` where this machine lacks something, such as memory.
    """

    def __init__(
        self, tool: Tool, settings: ToolSettings, secrets: Collection[str] = (), *, asks_model: bool = False
    ) -> None:
        super().__init__(tool)
        self.asks_model = self.asks_model or asks_model
        self._secrets = secrets
        self._timeout_s = settings.timeout_s
        self._is_function = isinstance(tool, FunctionTool)  # whose exceptions are its way to say that a call failed

    async def __call__(self, arguments: Any) -> str:
        limit = asyncio.timeout(self._timeout_s)  # anyio's takes nearly three times as long
        try:
            async with limit:
                text: object = await self._tool(arguments)
        except TimeoutError:
            after = f" after {self._timeout_s:g} s" if limit.expired() else ""
            raise ToolError(f"timeout{after}") from None
        except Exception as error:  # of the tool, which may be the user's own
            if isinstance(error, RUN_STOPPING):
                raise
            if fault := harness_fault(deciding(error), self.name):
                raise fault from error
            if isinstance(error, ToolError):
                kept = NotRecorded if isinstance(error, NotRecorded) else ToolError
                raise kept(self._shown(str(error))) from error
            if isinstance(error, RewooBenchError):
                raise
            kind = type(error).__name__
            if not self._is_function or isinstance(error, _MISTAKES):
                warnings.warn(
                    f"the tool {self.name!r} raised {kind}, taken as a failed call", RuntimeWarning, stacklevel=2
                )
            message = " ".join(self._shown(str(error)).split())
            raise ToolError(f"{kind}: {message[:_LONGEST_FAULT]}" if message else kind) from error
        if not isinstance(text, str):
            raise ToolError(f"{self.name} answered with {type(text).__name__}, expected text")
        return self._shown(text)

    def _shown(self, text: str) -> str:
        return without(replace_surrogates(text), self._secrets)


# Tools that fail on purpose: drawn with a seed by question, step number and tool, never by the order of arrival.
#
#     --tool-failure-rate 0.25 --tool-failure-mode timeout
#
# Search in step 3 of a plan and in turn 3 of ReAct fails on a question in every architecture, trial and run, or in
# none. Rate 1 with `empty` is the setting of the ReWOO paper (section 3.4).


_NUMBER = re.compile(r"\d+(?!.*\d)")  # the last one: 3 of "E3", "turn 3" and "react/turn 3"


@dataclass(frozen=True, slots=True)
class Faults:
    """How often tools fail, and how. `rate` is between 0 and 1."""

    rate: float = 0.0
    mode: FaultMode = "empty"
    seed: int = 0

    def strikes(self, example_id: str, step: int | str, tool: str) -> bool:
        """Whether this call fails."""
        drawn = sha256(f"{self.seed}:{example_id}:{step}:{tool}".encode()).digest()
        return int.from_bytes(drawn[:8], "big") < self.rate * 2**64


class FaultyTool(WrappedTool):
    """A tool of one question that fails where `faults` says so. A `timeout` fails at once, without the wait."""

    def __init__(self, tool: Tool, faults: Faults, example_id: str) -> None:
        super().__init__(tool)
        self._faults = faults
        self._example_id = example_id
        self._calls: Counter[str] = Counter()

    def count_recalled(self) -> None:
        """Counts a call that its record answers."""
        self._calls[current_place().name] += 1

    async def __call__(self, arguments: Any) -> str:
        place = current_place().name
        self._calls[place] += 1
        number = _NUMBER.search(place)
        # Of the plan or the turn, else the call's own; a later turn's program has the same lines as the one before.
        step = place if "/line " in place else int(number[0]) if number else self._calls[place]
        if not self._faults.strikes(self._example_id, step, self.name):
            return await self._tool(arguments)
        if self._faults.mode == "empty":
            return ""
        raise ToolError("timeout" if self._faults.mode == "timeout" else "the tool failed")
