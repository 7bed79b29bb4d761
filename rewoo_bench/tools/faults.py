"""Tools that fail on purpose: drawn with a seed by question, step number and tool, never by the order of arrival.

    --tool-failure-rate 0.25 --tool-failure-mode timeout

Search in step 3 of a plan and in turn 3 of ReAct fails on a question in every architecture, trial and run, or in none.
Rate 1 with `empty` is the setting of the ReWOO paper (section 3.4).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from rewoo_bench.errors import ToolError
from rewoo_bench.events import current_place
from rewoo_bench.types import FaultMode, Tool, WrappedTool

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
