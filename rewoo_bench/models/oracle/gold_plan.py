"""The oracle's plan: every step of the gold chain that can be foreseen.

#E1 = Search[Kyiv]                              a page that the question names
#E2 = LLM[The river? Context: #E1]              a step that reads what the next one needs from the page
#E3 = Search[#E2]
#E4 = Calculator[48 + #E2]                      an expression with the numbers of earlier steps
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewoo_bench.models.oracle.lookup_path import CALCULATOR, LookupPath, fill, is_calculation
from rewoo_bench.notation.plan import Plan, PlanStep
from rewoo_bench.text.words import fold

READER = "LLM"


class GoldPlan:
    """Writes the plan of one question, with the tools that the prompt lists."""

    def __init__(self, path: LookupPath, tools: Sequence[str], search_tool: str, wordy: Callable[[str], str]) -> None:
        self._path = path
        self._tools = tools
        self._search_tool = search_tool
        self._wordy = wordy
        self._steps: list[PlanStep] = []
        self._done: dict[int, str] = {}  # hop -> the step that finds it, or its value where it is worked out at once
        self._read: dict[int, str] = {}  # look-up -> the step that reads its value

    def plan(self, question: str) -> Plan:
        """The whole plan; a single look-up of the question where nothing can be foreseen."""
        for number, hop in enumerate(self._path.hops):
            if hop.foreseen and set(hop.needs) <= self._done.keys():
                self._calculate(number) if is_calculation(hop) else self._look_up(number)
        for extra in self._path.extras:
            if extra.tool != CALCULATOR:
                self._add(self._search_tool, extra.argument, "Look at one more page to be sure.")
            elif CALCULATOR in self._tools:
                self._add(CALCULATOR, extra.argument, "Work out one more number to be sure.")
        if not self._steps:
            tool = self._search_tool if self._search_tool in self._tools else (*self._tools, self._search_tool)[0]
            self._add(tool, question[:100], "Look for the question itself.")
        return Plan(steps=tuple(self._steps))

    def _look_up(self, number: int) -> None:
        hop, query = self._path.hops[number], self._path.query(number)
        if hop.needs and not self._path.wrong(number):
            query = self._slot(self._names(number))
        self._done[number] = self._add(
            self._search_tool, query, f"Find {hop.ask or 'the page that the question needs'}."
        )

    def _calculate(self, number: int) -> None:
        """A step of the calculator; without one only the value, if no step has to be waited for."""
        hop = self._path.hops[number]
        if CALCULATOR in self._tools:
            expression = fill(hop.title, self._slot)
            self._done[number] = self._add(CALCULATOR, expression, f"Work out {hop.ask or 'the next number'}.")
        elif not any(self._done[need].startswith("#") for need in hop.needs):
            self._done[number] = hop.value

    def _slot(self, number: int) -> str:
        """The text that stands for a hop's value in a later step. A look-up's value is read by a step of its own."""
        done = self._done[number]
        if is_calculation(self._path.hops[number]) or READER not in self._tools:
            return done
        if number not in self._read:
            request = f"{self._path.sub_question(number)} Context: {done}"
            self._read[number] = self._add(READER, request, "Read from that page what leads on.")
        return self._read[number]

    def _names(self, number: int) -> int:
        """The earlier hop with the name of this hop's page as its value."""
        hop = self._path.hops[number]
        named = [need for need in hop.needs if fold(self._path.hops[need].value) in fold(hop.title)]
        return (named or list(hop.needs))[0]

    def _add(self, tool: str, args: str, thought: str) -> str:
        """Adds a step; returns its slot."""
        id_ = f"E{len(self._steps) + 1}"
        self._steps.append(PlanStep(id=id_, tool=tool, args=args, thought=self._wordy(thought)))
        return f"#{id_}"
