"""The oracle's plan: every step of the gold chain that can be foreseen.

#E1 = Search[Kyiv]                              a page that the question names
#E2 = LLM[The river? Context: #E1]              a step that reads what the next one needs from the page
#E3 = Search[#E2]
#E4 = Calculator[48 + #E2]                      an expression with the numbers of earlier steps
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.text.words import bm25, fold, terms, title_key, without_disambiguation
from rewoo_bench.types import Example, Hop, Message

UNKNOWN = "unknown"
SEARCH, CALCULATOR, READER = "Search", "Calculator", "LLM"
_MORE = ("history", "overview", "details", "facts", "sources", "background")
_WHICH = "which name leads on"
_PLACE = re.compile(r"\{(\d+)\}")
_NUMBER = re.compile(r"[$€£]?\s*([-−]?(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?)\s*%?\.?", re.IGNORECASE)
_SHOWN = re.compile(r"(?m)^(?:Observation|Evidence|Result): (.*)$|^(?:#E|(?=\d+\. \w+\())(\d+)(?: = |\. )")
_THE_SAME = re.compile(r"the same as (?:#E|\$)(\d+)")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a prompt. With `calculator` that tool has to work out each number, else the oracle does."""

    text: str
    numbers: tuple[str, ...] = ()
    calculator: bool = False


def read_number(text: str) -> float | None:
    """The number that a text is, with or without separators of thousands: 1234.0 for "1,234"; None for other text."""
    match = _NUMBER.fullmatch(text.strip())
    return float(match[1].replace(",", "").replace("−", "-")) if match else None


def same_number(shown: str, gold: str) -> bool:
    """Whether two texts are the same number. A gold value with decimals may be rounded: 33.33 is 33.3333333333."""
    one, other = read_number(shown), read_number(gold)
    if one is None or other is None:
        return shown.strip() == gold.strip()
    decimals = len(gold.partition(".")[2].rstrip("%"))
    rounding = 0.5 * 10**-decimals if decimals else 0.0
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=rounding + 1e-9)


def shown_numbers(messages: Iterable[Message]) -> tuple[str, ...]:
    """Every number that is a whole observation, or the evidence of a step, in order."""
    found: list[str] = []
    for message in messages:
        if message.role == "tool":
            found += message.content.splitlines()
        elif message.role == "user":  # the first line of each observation; a solver's prompt has a step's number before
            step, shown = "", dict[str, str]()
            for match in _SHOWN.finditer(message.content):
                if match[2]:
                    step = match[2]
                    continue
                same = _THE_SAME.fullmatch(match[1])
                shown[step] = shown.get(same[1], "") if same else match[1]
            found += shown.values()
    return tuple(text for text in found if read_number(text) is not None)


@dataclass(frozen=True, slots=True)
class GoldCall:
    """A tool call on the way: `tool` is that of a hop, whatever the prompt calls its search tool."""

    tool: str
    argument: str


def is_calculation(hop: Hop) -> bool:
    """Whether a hop is worked out, not looked up."""
    return hop.tool == CALCULATOR


def fill(expression: str, value: Callable[[int], str]) -> str:
    """An expression with `value(0)` in the place of `{0}`."""
    return _PLACE.sub(lambda place: value(int(place[1])), expression)


@dataclass(frozen=True)
class LookupPath:
    """The gold chain of a question, with the faults that the oracle should make.

        LookupPath(example).next_calls(["kyiv"], Evidence("… on the Dnieper …"))  ->  [GoldCall("Search", "Dnieper")]

    A look-up is found if the text seen so far has its value (or its page, if the hop has no value). A calculation is
    found if an observation is its value; without a calculator the oracle works it out, and it is found with the hops
    that it needs. A hop can be done once the hops that it needs are found. If a call doesn't show its value, it is
    made once more in other words, and then given up.
    """

    example: Example
    extra_steps: int = 0
    wrong_title: float = 0.0
    seed: int = 0

    @property
    def hops(self) -> tuple[Hop, ...]:
        return self.example.chain

    def next_calls(self, called: Collection[str], seen: Evidence) -> list[GoldCall]:
        """The calls that are possible now, in the order of the chain; empty at its end. `called` is folded."""
        found = [self.found(number, seen) for number in range(len(self.hops))]
        possible = [n for n, hop in enumerate(self.hops) if not found[n] and all(found[need] for need in hop.needs)]
        calls = [call for number in possible if (call := self.next_call(number, called))]
        return calls or [call for call in self.extras if fold(call.argument) not in called][:1]

    def next_call(self, number: int, called: Collection[str]) -> GoldCall | None:
        """The call of a hop that wasn't made yet; None where all were."""
        hop = self.hops[number]
        if is_calculation(hop):
            expression = self.expression(number)
            tries = [expression, f"({expression})"]
        else:
            tries = [self.wrong(number), hop.title, f"{hop.title} {hop.ask}".strip()]
        argument = next((text for text in tries if text and fold(text) not in called), None)
        return GoldCall(hop.tool, argument) if argument else None

    def found(self, number: int, seen: Evidence) -> bool:
        """Whether the evidence so far shows this hop's value."""
        hop = self.hops[number]
        if not is_calculation(hop):
            return fold(hop.value or f"{hop.title}:") in fold(seen.text)
        if not all(self.found(need, seen) for need in hop.needs):
            return False
        if not seen.calculator:
            return True
        # Earlier calculations with the same value need an observation each.
        equal = [earlier for earlier in self.hops[:number] if is_calculation(earlier)]
        needed = 1 + sum(same_number(earlier.value, hop.value) for earlier in equal)
        return sum(same_number(number, hop.value) for number in seen.numbers) >= needed

    def answer(self, seen: Evidence) -> str:
        """The gold answer if the evidence so far shows every hop, else `unknown`."""
        shown = all(self.found(number, seen) for number in range(len(self.hops)))
        return self.example.answers[0] if shown else UNKNOWN

    def sub_question(self, number: int) -> str:
        """The question about the page of a hop."""
        ask = self.hops[number].ask or _WHICH
        return f"{ask[0].upper()}{ask[1:]}?"

    def expression(self, number: int) -> str:
        """The expression of a calculation, with the values of earlier hops put in; a negative one in parentheses."""
        values = [hop.value for hop in self.hops]
        return fill(self.hops[number].title, lambda n: f"({values[n]})" if values[n].startswith("-") else values[n])

    def wrong(self, number: int) -> str:
        """The wrong title of the first query for a hop's page; empty where the title is right."""
        if is_calculation(self.hops[number]):
            return ""
        key = f"{self.seed}:{self.example.id}:{number}".encode()
        drawn = int.from_bytes(sha256(key).digest()[:8], "big")
        if drawn >= self.wrong_title * 2**64:
            return ""
        gold = {hop.title for hop in self.hops if not is_calculation(hop)}
        others = [page.title for page in self.example.documents if page.title not in gold]
        return others[drawn % len(others)] if others else self.hops[number].title[::-1]

    @cached_property
    def extras(self) -> list[GoldCall]:
        """Calls that aren't needed: searches, or sums in a chain of nothing but calculations."""
        titles = [hop.title for hop in self.hops if not is_calculation(hop)]
        if self.hops and not titles:  # the results are numbers that no question is about
            return [GoldCall(CALCULATOR, f"{i + 1} / 1000000") for i in range(self.extra_steps)]
        titles = titles or [self.example.question]
        queries = (f"{titles[i % len(titles)]} {_MORE[i % len(_MORE)]} {i + 1}" for i in range(self.extra_steps))
        return [GoldCall(SEARCH, query) for query in queries]


@dataclass(frozen=True)
class PageQueries:
    """How a plan asks for a page that it can't name yet: by values that earlier steps will find.

        PageQueries(example).query(1)     # "{0}": the value of hop 0 is the page's title
        PageQueries(example).query(2)     # "{1} shares border with": it isn't, and with these words the search finds it

    Each query is tried on the question's documents with the gold values put in. Where no such query finds the page, it
    is asked for by its title, without waiting for anything.
    """

    example: Example

    def query(self, number: int) -> str:
        """The query for a hop that needs others; `{0}` in it stands for the value of hop 0."""
        hop = self.example.chain[number]
        named = [need for need in hop.needs if self._is_in(need, hop.title)]
        if not self.example.documents:  # the pages of a corpus aren't at hand
            return f"{{{(named or list(hop.needs))[0]}}}"
        values = " ".join(f"{{{need}}}" for need in hop.needs)
        queries = [*(f"{{{need}}}" for need in named), f"{values} {hop.ask}".strip(), f"{values} {hop.title}"]
        return next((query for query in queries if self._finds(query, hop.title)), hop.title)

    def _is_in(self, need: int, title: str) -> bool:
        value = fold(self.example.chain[need].value)
        return bool(value) and value in fold(title)

    def _finds(self, query: str, title: str) -> bool:
        """Whether Search shows this page for a query, once the values are known: by its title, else by BM25."""
        words = fill(query, lambda need: self.example.chain[need].value)
        key, pages = title_key(words), self.example.documents
        named = [page for page in pages if title_key(page.title) == key]
        alike = named or [page for page in pages if title_key(without_disambiguation(page.title)) == key]
        if named or len(alike) == 1:
            return alike[0].title == title
        scores = bm25(terms(words), self._counts)
        return pages[max(range(len(pages)), key=lambda page: scores[page])].title == title

    @cached_property
    def _counts(self) -> list[Counter[str]]:
        return [Counter(terms(f"{page.title}\n{page.text}")) for page in self.example.documents]


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
        known: Mapping[int, str],
        called: Collection[str],
        first: int,
    ) -> None:
        self._path = path
        self._queries = PageQueries(path.example)
        self._tools = tools
        self._search_tool = search_tool
        self._wordy = wordy
        self._steps: list[PlanStep] = []
        self._known = known
        self._called = called
        self._first = first
        self._done = dict(known)  # hop -> the step that finds it, or its value where that is known at once
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
