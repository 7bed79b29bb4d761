"""ReAct whose prompts begin differently for each question, as $PREFIX says: what breaks a provider's prefix cache."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rewoo_bench.runners.react import ReAct
from rewoo_bench.runners.react_native import NativeReAct
from rewoo_bench.types import Completion, Model, Request, Tool, Trajectory


class _AtATime:
    """The model, with the time at the start of its system prompt."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def complete(self, request: Request) -> Completion:
        first, *others = request.messages
        stamped = replace(first, content=f"It is {time.time_ns()} now.\n{first.content}")
        return await self._model.complete(replace(request, messages=[stamped, *others]))


class _WithSteps:
    """The model, with the number of the step ahead of the question and its trace."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._steps = 0

    async def complete(self, request: Request) -> Completion:
        self._steps += 1
        *others, last = request.messages
        numbered = replace(last, content=f"Step {self._steps}.\n{last.content}")
        return await self._model.complete(replace(request, messages=[*others, numbered]))


def _broken(question: str, model: Model, tools: Mapping[str, Tool]) -> dict[str, Any]:
    how = os.environ.get("PREFIX")
    if how == "tools in any order" and len(question) % 2:
        tools = dict(reversed(list(tools.items())))
    broken = _AtATime(model) if how == "time" else _WithSteps(model) if how == "step" else model
    return {"model": broken, "tools": tools}


class Broken(ReAct):
    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool], **_: Any) -> Trajectory:
        return await super().run(question, **_broken(question, model, tools))


class BrokenNative(NativeReAct):
    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool], **_: Any) -> Trajectory:
        return await super().run(question, **_broken(question, model, tools))
