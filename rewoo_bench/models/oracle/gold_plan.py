"""The oracle's plan: every step of the gold chain that can be foreseen.

#E1 = Search[Kyiv]                              a page that the question names
#E2 = LLM[The river? Context: #E1]              a step that reads what the next one needs from the page
#E3 = Search[#E2]
#E4 = Calculator[48 + #E2]                      an expression with the numbers of earlier steps
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from rewoo_bench.models.oracle.lookup_path import CALCULATOR, LookupPath, fill, is_calculation
from rewoo_bench.models.oracle.page_queries import PageQueries
from rewoo_bench.notation.plan import Plan, PlanStep
from rewoo_bench.text.words import fold

READER = "LLM"


class GoldPlan:
    """Writes the plan of one question, with the tools that the prompt lists.

    `known` has the value of each hop that earlier plans have found, and `called` the arguments of their calls, folded:
    a second plan has only what is missing, and may have what couldn't be foreseen before. `first` is the number of its
    first step.
    """

    def __init__(
        self,
        path: LookupPath,
        tools: Sequence[str],
        search_tool: str,
        wordy: Callable[[str], str],
        *,
        known: Mapping[int, str] | None = None,
        called: Collection[str] = (),
        first: int = 1,
    ) -> None:
        self._path = path
        self._queries = PageQueries(path.example)
        self._tools = tools
        self._search_tool = search_tool
        self._wordy = wordy
        self._steps: list[PlanStep] = []
        self._known = dict(known or {})
        self._called = called
        self._first = first
        self._done = dict(self._known)  # hop -> the step that finds it, or its value where that is known at once
        self._read: dict[int, str] = {}  # look-up -> the step that reads its value

    def plan(self, question: str) -> Plan:
        """The whole plan; a single look-up of the question where nothing can be foreseen."""
        for number, hop in enumerate(self._path.hops):
            possible = hop.foreseen or set(hop.needs) <= self._known.keys()
            if number not in self._done and possible and set(hop.needs) <= self._done.keys():
                self._calculate(number) if is_calculation(hop) else self._look_up(number)
        for extra in self._path.extras if self._first == 1 else ():
            if extra.tool != CALCULATOR:
                self._add(self._search_tool, extra.argument, "Look at one more page to be sure.")
            elif CALCULATOR in self._tools:
                self._add(CALCULATOR, extra.argument, "Work out one more number to be sure.")
        if not self._steps:
            tool = self._search_tool if self._search_tool in self._tools else (*self._tools, self._search_tool)[0]
            self._add(tool, question[:100], "Look for the question itself.")
        return Plan(steps=tuple(self._steps))

    def _look_up(self, number: int) -> None:
        hop, wrong = self._path.hops[number], self._path.wrong(number)
        wrong = "" if fold(wrong) in self._called else wrong
        query = wrong or hop.title
        if self._first > 1 and set(hop.needs) <= self._known.keys():
            again = self._path.next_call(number, self._called)
            if again is None:
                return
            query = again.argument
        elif hop.needs and not wrong:
            query = fill(self._queries.query(number), self._slot)
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
        if number in self._known:
            return done
        if is_calculation(self._path.hops[number]) or READER not in self._tools:
            return done
        if number not in self._read:
            request = f"{self._path.sub_question(number)} Context: {done}"
            self._read[number] = self._add(READER, request, "Read from that page what leads on.")
        return self._read[number]

    def _add(self, tool: str, args: str, thought: str) -> str:
        """Adds a step; returns its slot."""
        id_ = f"E{len(self._steps) + self._first}"
        self._steps.append(PlanStep(id=id_, tool=tool, args=args, thought=self._wordy(thought)))
        return f"#{id_}"
