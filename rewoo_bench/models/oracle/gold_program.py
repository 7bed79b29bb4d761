"""The oracle's programs: the plan of the gold chain as Python, which also goes on where no plan can foresee it.

    async def follow(page, left, right):
        if left not in page:
            return ""
        return await Search(page.split(left)[1].split(right)[0])

    page1 = await Search("Kyiv")
    fact2 = await LLM("The river? Context: " + page1)
    page3 = await Search(fact2)
    page4 = await follow(page3, "on to ", ", who")
    print(page1, page3, page4, sep="\\n")

What a plan reads with a model step, the program reads with one too. Where the next page only shows itself in the one
before, the program looks at its text. Where tools may fail, it catches their error and calls once more, as the oracle's
turns do:

    try:
        page1 = await Search("Kyiv")
    except ToolError:
        page1 = await Search("Kyiv")
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from rewoo_bench.models.oracle.gold_plan import CALCULATOR, READER, GoldCall, LookupPath, is_calculation
from rewoo_bench.runners.notation.plan import Plan, PlanStep

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
    shown = [names[step.id] for step in plan.steps if step.tool != READER]
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
