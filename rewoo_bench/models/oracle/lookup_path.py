"""The steps that lead to an answer: the next pages to search for or sums to work out, and the hops already found.

LookupPath(example).next_calls(["kyiv"], Evidence("… on the Dnieper …"))  ->  [GoldCall("Search", "Dnieper")]

A look-up is found if the text seen so far has its value (or its page, if the hop has no value). A calculation is
found if an observation is its value; without a calculator the oracle works it out, and it is found with the hops
that it needs. A hop can be done once the hops that it needs are found. If a call doesn't show its value, it is
made once more in other words, and then given up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from rewoo_bench.models.oracle.evidence import Evidence, same_number
from rewoo_bench.text.words import fold
from rewoo_bench.types import Example, Hop

UNKNOWN = "unknown"
SEARCH, CALCULATOR = "Search", "Calculator"
_MORE = ("history", "overview", "details", "facts", "sources", "background")
_WHICH = "which name leads on"
_PLACE = re.compile(r"\{(\d+)\}")


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
    """The gold chain of a question, with the faults that the oracle should make."""

    example: Example
    extra_steps: int = 0
    wrong_title: float = 0.0
    seed: int = 0

    @property
    def hops(self) -> tuple[Hop, ...]:
        return self.example.chain

    def next_calls(self, called: Collection[str], seen: Evidence) -> list[GoldCall]:
        """The calls that are possible now, in the order of the chain; empty at its end. `called` is folded."""
        calls = [self.next_call(number, called) for number in range(len(self.hops)) if self._open(number, seen)]
        waiting = [call for call in calls if call]
        return waiting or [call for call in self.extras if fold(call.argument) not in called][:1]

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
        return not seen.calculator or seen.count(hop.value) > self._equals_before(number)

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

    def first_argument(self, number: int) -> str:
        """The page of a look-up, or the expression of a calculation."""
        return self.expression(number) if is_calculation(self.hops[number]) else self.hops[number].title

    def query(self, number: int) -> str:
        """The first query for a hop's page."""
        return self.wrong(number) or self.hops[number].title

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

    def _open(self, number: int, seen: Evidence) -> bool:
        return not self.found(number, seen) and all(self.found(need, seen) for need in self.hops[number].needs)

    def _equals_before(self, number: int) -> int:
        """How many earlier calculations have the same value, each of which needs an observation of its own."""
        value = self.hops[number].value
        return sum(is_calculation(hop) and same_number(hop.value, value) for hop in self.hops[:number])
