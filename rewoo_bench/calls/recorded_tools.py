"""A recorded tool: each answer is in the journal before it is used, and recalled from there.

meter -> recorded tool -> deadline -> tool
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256

from pydantic import BaseModel

from rewoo_bench.calls.recorder import QuestionRecorder
from rewoo_bench.errors import ToolError
from rewoo_bench.journal.records import CallKey, CallRecord, as_bytes
from rewoo_bench.tools.wrapper import WrappedTool
from rewoo_bench.types import CallCost, Tool


class RecordedText(str):
    """A tool's answer, with what its record says of the time that it took."""

    call_cost: CallCost

    @classmethod
    def of(cls, text: str, call_cost: CallCost) -> RecordedText:
        recorded = cls(text)
        recorded.call_cost = call_cost
        return recorded


class RecordedTool(WrappedTool):
    """A recorded tool. One with state (`stateful`) is called again in a resumed run, and its first answer counts."""

    def __init__(self, recorder: QuestionRecorder, tool: Tool) -> None:
        super().__init__(tool)
        self._recorder = recorder

    async def __call__(self, arguments: BaseModel) -> str:
        request = as_bytes(arguments)
        key = self._recorder.key("tool", self.name, sha256(request).digest())
        recalled = self._recorder.recall(key)
        if recalled is None:
            return await self._call(key, request.decode(), arguments)
        record, replayed = recalled
        if self.stateful and not replayed:
            with suppress(ToolError):  # the first answer counts, below
                await self._tool(arguments)
        if "error" in record.answer:
            raise ToolError(record.answer["error"])
        return RecordedText.of(record.answer["text"], CallCost(measured_s=record.answer["latency_s"]))

    async def _call(self, key: CallKey, request: str, arguments: BaseModel) -> str:
        self._recorder.check_live(key, (request,))
        await self._recorder.shutdown.admit()
        start = time.monotonic()
        with self._recorder.shutdown:
            try:
                result = {"text": await self._tool(arguments)}
            except ToolError as error:
                result = {"error": str(error)}
            answer = {**result, "latency_s": time.monotonic() - start}
            waited = await self._recorder.keep(CallRecord(self._recorder.task, key, "ok", (request,), answer))
        if "error" in result:
            raise ToolError(result["error"])
        return RecordedText.of(result["text"], CallCost(waiting=waited)) if waited else result["text"]


def recorded_tools(recorder: QuestionRecorder, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools, recorded. Those that ask a model aren't wrapped, since their model calls are recorded."""
    return {
        name: tool if getattr(tool, "asks_model", False) else RecordedTool(recorder, tool)
        for name, tool in tools.items()
    }
