"""The tools of a question as functions of its programs: their calls, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.arguments import Arguments, map_strings, show_call
from rewoo_bench.runners.notation.quoting import quoted_in
from rewoo_bench.runners.notation.tools import Function, Observation, call_tool, functions
from rewoo_bench.runners.prompts import EvidenceBudget
from rewoo_bench.runners.sources import ProgramSources
from rewoo_bench.text.model_output import excerpt
from rewoo_bench.types import Step, Tool

LONGEST_FAULT = 500  # characters of an exception's message


class TooManyCalls(Exception):
    """A program wants more tool calls than are allowed."""


@dataclass(slots=True)
class ToolUse:
    """A call of a tool in a program. It begins when the program waits for it."""

    id: str
    function: Function
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    place: str
    step: Step | None = None
    """What came of it; None before it begins."""
    level: int = 0
    """Depth in the program: one more than that of the calls whose results it had when this one began."""


class ProgramTools:
    """The tools of a question as functions of its programs, and the calls that were made."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        evidence_budget: EvidenceBudget,
        *,
        slot_tokens: int,
        max_calls: int,
        frozen: bool | tuple[str, ...] = False,
    ) -> None:
        self.functions = functions(tools)
        self.max_calls = max_calls
        self.thought = ""
        """Of the calls to come."""
        self._evidence_budget = evidence_budget
        self._slot_tokens = slot_tokens
        self._uses: list[ToolUse] = []
        self.level = 0
        """Of the next call."""
        self.sources = ProgramSources(frozen)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The calls that have begun, in the order in which the programs have them."""
        return tuple(use.step for use in self._uses if use.step is not None)

    def use(self, function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], place: str) -> ToolUse:
        """A new call, which hasn't begun. Raises `TooManyCalls`."""
        if len(self._uses) >= self.max_calls:
            raise TooManyCalls(f"it wants more than {self.max_calls} tool calls ({place})")
        self._uses.append(ToolUse(f"E{len(self._uses) + 1}", function, args, kwargs, place))
        return self._uses[-1]

    async def call(self, use: ToolUse) -> Step:
        """Makes the call, whose result is shortened. A fault of the tool or of the arguments is a failed step."""
        tool, fault, refusal, thought = use.function.tool, "", "", self.thought
        budget = self._evidence_budget
        arguments: Arguments
        try:
            given = use.function.arguments(use.args, use.kwargs)
            refusal = self.sources.refusal(given, tool)
            arguments = self.sources.without_read(given) if refusal else self._shown(given, tool)
        except ValueError as error:
            fault, arguments = str(error), ", ".join([*map(excerpt, use.args), *use.kwargs])[:LONGEST_FAULT]
        argument = show_call(arguments)
        use.step = Step(use.id, thought, tool.name, argument, failed=True)
        emit("step_started", use.id, tool=tool.name, argument=argument)
        with at_place(use.place, use.level):
            if fault:
                wanted = f"{use.function.name} is called as {use.function.signature}"
                observation = Observation(f"ERROR: {fault}; {wanted}", failed=True)
            elif refusal:
                observation = Observation(f"ERROR: {refusal}", failed=True)
            else:
                observation = await call_tool(tool, arguments)
            text = await budget.shortened(
                use.id, observation.text, query=f"{thought} {argument}", max_tokens=self._slot_tokens
            )
        use.step = Step(use.id, thought, tool.name, argument, text, observation.failed)
        if not fault:
            is_summary = budget.shorten == "llm" and text != observation.text
            self.sources.add(given, tool, text, is_summary=is_summary)
        emit("step_finished", use.id, observation=text, failed=observation.failed)
        return use.step

    def _shown(self, args: Arguments, tool: Tool) -> Arguments:
        """Arguments as the tool gets them: one that asks a model, with marks around the results that they have."""
        if not self._evidence_budget.quote or not getattr(tool, "asks_model", False):
            return args
        results = [step.observation for step in self.steps]
        shown: Arguments = map_strings(args, lambda text: quoted_in(text, results))
        return shown
