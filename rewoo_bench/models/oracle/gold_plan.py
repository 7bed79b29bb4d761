"""The oracle's plan: every step of the gold chain that can be foreseen, as steps and as a program.

#E1 = Search[Kyiv]                              a page that the question names
#E2 = LLM[The river? Context: #E1]              a step that reads what the next one needs from the page
#E3 = Search[#E2]
#E4 = Calculator[48 + #E2]                      an expression with the numbers of earlier steps
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.text.numbers import without_gaps
from rewoo_bench.text.words import bm25, fold, index_terms, title_key, without_disambiguation
from rewoo_bench.types import Example, Hop, Message

UNKNOWN_ANSWER = "unknown"
SEARCH, CALCULATOR, READER = "Search", "Calculator", "LLM"
_MORE = ("history", "overview", "details", "facts", "sources", "background")
_WHICH = "which name leads on"
_PLACE = re.compile(r"\{(\d+)\}")
_NUMBER = re.compile(r"[$€£]?\s*([-−]?(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?)\s*%?\.?", re.IGNORECASE)
_SHOWN = re.compile(r"(?m)^(?:Observation|Evidence|Result(?: of E\d+)?): (.*)$|^(?:#E|(?=\d+\. \w+\())(\d+)(?: = |\. )")
_OUTPUT = re.compile(r"^Output:\n(.*?)(?:^Question:|\Z)", re.MULTILINE | re.DOTALL)  # of a program
_THE_SAME = re.compile(r"the same as (?:#E|\$)(\d+)")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a prompt. With `calculator` that tool has to work out each number, else the oracle does."""

    text: str
    numbers: tuple[str, ...] = ()
    calculator: bool = False


def read_number(text: str) -> float | None:
    """The number that a text is, with or without separators of thousands: 1234.0 for "1,234"; None for other text."""
    match = _NUMBER.fullmatch(without_gaps(text.strip()))
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
            found += [line for output in _OUTPUT.findall(message.content) for line in output.splitlines()]
    return tuple(text for text in found if read_number(text) is not None)


def _is_in(value: str, text: str) -> bool:
    """Whether a text shows a value; a number not as a part of a longer one."""
    return re.search(rf"(?<!\d){value}(?!\d)", text) is not None if value.isdecimal() else value in text


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

        path = LookupPath(example)
        path.next_calls(["kyiv"], path.found(Evidence("… on the Dnieper …")))  ->  [GoldCall("Search", "Dnieper")]

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

    def next_calls(self, called: Collection[str], found: Sequence[bool]) -> list[GoldCall]:
        """The calls that are possible now, in the order of the chain; empty at its end. `called` is folded."""
        possible = [n for n, hop in enumerate(self.hops) if not found[n] and all(found[need] for need in hop.needs)]
        calls = [call for number in possible if (call := self.next_call(number, called))]
        return calls or [call for call in self.extras if fold(call.argument) not in called][:1]

    def calls_of_turn(self, called: Collection[str], found: Sequence[bool]) -> list[GoldCall]:
        """The calls of a turn in which one may use another's result, as `#1`; empty at the chain's end.

        Besides those that are possible now there are those that take such a result unread.
        """
        calls: list[GoldCall] = []
        signs: dict[int, str] = {}  # hop -> its call of this turn

        def value(need: int) -> str:
            return signs.get(need, self.hops[need].value)

        for number, hop in enumerate(self.hops):
            waited_for = [need for need in hop.needs if not found[need]]
            if found[number] or not all(need in signs and self.hops[need].passes_on for need in waited_for):
                continue
            call = None if waited_for else self.next_call(number, called)
            if waited_for and hop.foreseen:
                text = hop.title if is_calculation(hop) else self.page_query(number)
                call = GoldCall(hop.tool, fill(text, value))
            if call:
                calls.append(call)
                signs[number] = f"#{len(calls)}"
        return calls or self.next_calls(called, found)

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

    def found(self, seen: Evidence) -> list[bool]:
        """Whether the evidence so far shows the value of each hop."""
        text, found = fold(seen.text), list[bool]()
        for number, hop in enumerate(self.hops):
            if is_calculation(hop):
                needs = all(found[need] for need in hop.needs)
                found.append(needs and (not seen.calculator or self._is_shown(number, seen)))
            else:
                found.append(_is_in(fold(hop.value or f"{hop.title}:"), text))
        return found

    def _is_shown(self, number: int, seen: Evidence) -> bool:
        """Whether an observation is a calculation's value. Earlier ones with the same value need one each."""
        value = self.hops[number].value
        equal = [earlier for earlier in self.hops[:number] if is_calculation(earlier)]
        needed = 1 + sum(same_number(earlier.value, value) for earlier in equal)
        return sum(same_number(shown, value) for shown in seen.numbers) >= needed

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

    def page_query(self, number: int) -> str:
        """How a plan asks for the page of a hop that needs others, which it can't name yet.

            "{0}"                        the value of hop 0 is the page's title
            "{1} shares border with"     the value of hop 1 isn't, and with these words the search finds the page

        Each query is tried on the question's documents with the gold values put in. Where no such query finds the page,
        it is asked for by its title, without waiting for anything.
        """
        hop, pages = self.hops[number], self.example.documents
        values = [each.value for each in self.hops]
        named = [need for need in hop.needs if (value := fold(values[need])) and value in fold(hop.title)]
        if not pages:  # the pages of a corpus aren't at hand
            return f"{{{(named or list(hop.needs))[0]}}}"
        slots = " ".join(f"{{{need}}}" for need in hop.needs)
        counts = [Counter(index_terms(f"{page.title}\n{page.text}")) for page in pages]
        for query in (*(f"{{{need}}}" for need in named), f"{slots} {hop.ask}".strip(), f"{slots} {hop.title}"):
            # Search shows the page of this title, else the best by BM25.
            words = fill(query, values.__getitem__)
            same = [page for page in pages if title_key(page.title) == title_key(words)]
            alike = [page for page in pages if title_key(without_disambiguation(page.title)) == title_key(words)]
            if same or len(alike) == 1:
                found = (same or alike)[0]
            else:
                scores = bm25(index_terms(words), counts)
                found = pages[max(range(len(pages)), key=scores.__getitem__)]
            if found.title == hop.title:
                return query
        return hop.title


def gold_plan(
    path: LookupPath,
    tools: Sequence[str],
    search_tool: str,
    wordy: Callable[[str], str],
    known: Mapping[int, str],
    called: Collection[str],
    first: int,
) -> tuple[Plan, dict[int, str]]:
    """The plan of one question, with the tools that the prompt lists; a look-up of the question if nothing is foreseen.

    With it, for each hop, the step that finds it (`#E1`), or its value where that is known at once.

    `known` has the value of each hop that earlier plans have found, and `called` the arguments of their calls, folded:
    a second plan has only what is missing, and may have what couldn't be foreseen before. `first` is the number of its
    first step.
    """
    steps: list[PlanStep] = []
    done = dict(known)
    read: dict[int, str] = {}  # look-up -> the step that reads its value

    def add(tool: str, args: str, thought: str) -> str:
        step = PlanStep(id=f"E{len(steps) + first}", tool=tool, args=args, thought=wordy(thought))
        steps.append(step)
        return f"#{step.id}"

    def slot(number: int) -> str:
        """The text that stands for a hop's value in a later step. A look-up's value is read by a step of its own."""
        if number in known or path.hops[number].passes_on or READER not in tools:
            return done[number]
        if number not in read:
            request = f"{path.sub_question(number)} Context: {done[number]}"
            read[number] = add(READER, request, "Read from that page what leads on.")
        return read[number]

    for number, hop in enumerate(path.hops):
        needs = set(hop.needs)
        if number in done or not needs <= done.keys() or not (hop.foreseen or needs <= known.keys()):
            continue
        if is_calculation(hop):
            if CALCULATOR in tools:
                done[number] = add(CALCULATOR, fill(hop.title, slot), f"Work out {hop.ask or 'the next number'}.")
            elif not any(done[need].startswith("#") for need in needs):  # else it would have to wait for a step
                done[number] = hop.value
            continue
        wrong = path.wrong(number)
        query = hop.title if fold(wrong) in called else wrong or hop.title
        if first > 1 and needs <= known.keys():
            again = path.next_call(number, called)
            if again is None:
                continue
            query = again.argument
        elif needs and query != wrong:
            query = fill(path.page_query(number), slot)
        done[number] = add(search_tool, query, f"Find {hop.ask or 'the page that the question needs'}.")
    for extra in path.extras if first == 1 else ():
        if extra.tool != CALCULATOR:
            add(search_tool, extra.argument, "Look at one more page to be sure.")
        elif CALCULATOR in tools:
            add(CALCULATOR, extra.argument, "Work out one more number to be sure.")
    if not steps and not (known and FINISH in tools):
        tool = search_tool if search_tool in tools else (*tools, search_tool)[0]
        add(tool, path.example.question[:100], "Look for the question itself.")
    if FINISH in tools:
        answer, last = path.example.answers[0], len(path.hops) - 1
        if last in done and path.hops[last].value == answer:
            found = slot(last)
        elif READER in tools:
            shown = " ".join(done[number] or f"{hop.title}:" for number, hop in enumerate(path.hops) if number in done)
            found = add(READER, f"{path.example.question} Context: {shown}", "Read the answer.")
        else:
            found = f"#{steps[-1].id}" if steps else UNKNOWN_ANSWER
        add(FINISH, found, "End with the answer.")
    return Plan(steps=tuple(steps)), done


# The oracle's programs: the plan of the gold chain as Python, which also goes on where no plan can foresee it.
#
#     async def follow(page, left, right):
#         if left not in page:
#             return ""
#         return await Search(page.split(left)[1].split(right)[0])
#
#     page1 = await Search("Kyiv")
#     fact2 = await LLM("The river? Context: " + page1)
#     page3 = await Search(fact2)
#     page4 = await follow(page3, "on to ", ", who")
#     print(page1, page3, page4, sep="\n")
#
# What a plan reads with a model step, the program reads with one too. Where the next page only shows itself in the one
# before, the program looks at its text. Where tools may fail, it catches their error and calls once more, as the
# oracle's turns do:
#
#     try:
#         page1 = await Search("Kyiv")
#     except ToolError:
#         page1 = await Search("Kyiv")


_REFERENCE = re.compile(r"\{\{(E\d+)\}\}")
_NAMES = {READER: "fact", CALCULATOR: "number"}  # of the variables; those of pages are `page`
_FOLLOW = """async def follow(page, left, right):
    if left not in page:
        return ""
    return await {search}(page.split(left)[1].split(right)[0])
"""


def gold_program(
    path: LookupPath, plan: Plan, found_by: Mapping[int, str], search_tool: str, *, tools_fail: bool = False
) -> str:
    """A plan as a program, with the hops that it couldn't have. `found_by` has the step that finds each hop: `#E1`.

    With `tools_fail` calls that raise `ToolError` are made once more.
    """
    names = {step.id: f"{_NAMES.get(step.tool or '', 'page')}{step.number}" for step in plan.steps}
    lines: list[str] = []
    levels = plan.levels()
    for level in sorted(set(levels.values())):
        steps = [step for step in plan.steps if levels[step.id] == level]
        lines += _calls([names[step.id] for step in steps], [_call(step, names) for step in steps], tools_fail)
    pages = {number: names[slot.removeprefix("#")] for number, slot in found_by.items() if slot.startswith("#")}
    read = {need for step in plan.steps if step.tool == READER for need in step.depends_on}
    shown = [names[step.id] for step in plan.steps if step.id not in read]  # of a page that was read, what was found
    unforeseen: list[str] = []
    while following := _followed(path, pages):
        targets = [f"page{len(plan.steps) + len(unforeseen) + n}" for n in range(1, 1 + len(following))]
        lines += _calls(targets, list(following.values()), tools_fail)
        pages |= dict(zip(following, targets, strict=True))
        unforeseen += targets
    if unforeseen:
        lines.insert(0, _FOLLOW.format(search=search_tool))
    return "\n".join([*lines, f"print({', '.join([*shown, *unforeseen])}, sep={json.dumps(chr(10))})"])


def program_of(calls: Sequence[GoldCall], search_tool: str) -> str:
    """The program of a turn: calls that need each other's results in no way."""
    written = [f"{CALCULATOR if call.tool == CALCULATOR else search_tool}({_text(call.argument)})" for call in calls]
    if len(written) == 1:
        return f"print(await {written[0]})"
    return f"for page in await gather({', '.join(written)}):\n    print(page)"


def _followed(path: LookupPath, pages: Mapping[int, str]) -> dict[int, str]:
    """The calls for hops whose title stands in the text of a page that the program has, by their numbers."""
    calls: dict[int, str] = {}
    for number, hop in enumerate(path.hops):
        if number in pages or is_calculation(hop) or not set(hop.needs) <= pages.keys():
            continue
        for need in hop.needs:
            before = path.hops[need]
            page = next((page for page in path.example.documents if page.title == before.title), None)
            marks = _marks(f"{page.title}: {page.text}", before.value) if page else None
            if marks is not None:
                calls[number] = f"follow({pages[need]}, {_text(marks[0])}, {_text(marks[1])})"
                break
    return calls


def _marks(text: str, value: str) -> tuple[str, str] | None:
    """What stands before and behind a value in a text, so that it can be cut out; None where it can't."""
    start = text.find(value)
    end = start + len(value)
    if not value or start <= 0:
        return None
    for words in range(2, 12):
        match = re.search(rf"(?:\S+\s+){{{words}}}$", text[:start])
        if match and text.find(match[0]) == match.start():
            behind = re.match(r"\W*\w*", text[end:])
            right = behind[0] if behind else ""
            return (match[0], right) if right and text.find(right, start) == end else None
    return None


def _calls(targets: Sequence[str], calls: Sequence[str], tools_fail: bool) -> list[str]:
    """Calls that don't need each other, at the same time."""
    called = calls[0] if len(calls) == 1 else f"gather({', '.join(calls)})"
    line = f"{', '.join(targets)} = await {called}"
    return ["try:", f"    {line}", "except ToolError:", f"    {line}"] if tools_fail else [line]


def _call(step: PlanStep, names: Mapping[str, str]) -> str:
    """A step's call: `LLM("The river? Context: " + page1)`."""
    parts = _REFERENCE.split(str(step.args))  # every second one is a step's id
    texts = [_text(part) if not number % 2 else names[part] for number, part in enumerate(parts) if part]
    return f"{step.tool}({' + '.join(texts)})"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
