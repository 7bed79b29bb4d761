"""How a call of a tool is written, with the facts of its schema, in each notation.

text        Search[query]                             a tool with one input that is a text
            flights[city: string, seats?: integer = 1 (at most 9)]
numbered    flights(city: string, seats?: integer = 1 (at most 9))
json        flights {"city": string, "seats"?: integer = 1 (at most 9)}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, Field, ValidationError

from rewoo_bench.errors import ToolError
from rewoo_bench.runners.notation.arguments import Arguments, show_call, to_model
from rewoo_bench.runners.notation.plan_formats import Notation
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.runners.notation.schemas import ToolInputs, inputs
from rewoo_bench.text.model_output import check_text, excerpt
from rewoo_bench.types import Tool

_BRACKETS = {"text": ("[", "]"), "numbered": ("(", ")"), "json": (" {", "}")}
_LEGEND = {
    "text": 'Inputs with a type go by name: Tool[text="a, b", number=3, list=["a"]].',
    "numbered": 'Inputs with a type go by name: Tool(text="a, b", number=3, list=["a"]).',
    "json": "",
}
_OPTIONAL = "An input marked ? may be left out."


def describe_tools(tools: Mapping[str, Tool], notation: Notation = "text") -> str:
    """The tools as a prompt shows them, a line each; before them, how inputs are written that aren't just a text."""
    known = [inputs(tool.arguments) for tool in tools.values()]
    legend = [_LEGEND[notation] if any(_has_types(each) for each in known) else ""]
    legend.append(_OPTIONAL if any(not each.required for about in known for each in about) else "")
    lines = [f"{form(tool, notation)}: {tool.description}" for tool in tools.values()]
    return "\n".join([" ".join(filter(None, legend)), *lines] if any(legend) else lines)


def form(tool: Tool, notation: Notation, *, details: bool = True) -> str:
    """The call of a tool: `flights[city: string, seats?: integer = 1]`, with descriptions and limits in `details`."""
    return f"{tool.name}{_show_inputs(tool.arguments, notation, details)}"


@lru_cache(maxsize=4096)
def _show_inputs(arguments: type[BaseModel], notation: Notation, details: bool) -> str:
    about = inputs(arguments)
    opening, closing = _BRACKETS[notation]
    typed = notation == "json" or _has_types(about)
    # A bundled tool's own description says what its text is.
    details = details and (notation == "json" or not getattr(arguments, "described_by_tool", False))
    parts: list[str] = []
    for each in about:
        default, said = about.schema.resolve(each.schema).get("default"), about.schema.about(each.schema)
        part = json.dumps(each.name, ensure_ascii=False) if notation == "json" else each.name
        part += "" if each.required else "?"
        part += f": {about.schema.show(each.schema)}" if typed else ""
        part += f" = {json.dumps(default, ensure_ascii=False)}" if default is not None else ""
        parts.append(f"{part} ({said})" if details and said else part)
    return f"{opening}{', '.join(parts)}{closing}"


def _has_types(about: ToolInputs) -> bool:
    return bool(about.items) and not about.is_text


NO_RESULTS = "No results."
_NOTHING_FOUND = re.compile(r"No (?:more )?results\b")


class AnswerArguments(BaseModel):
    """The input of `Finish`."""

    answer: str = Field(min_length=1, description="a name, a date, a number, a few words, or yes or no")


class Finish:
    """What ends a plan or a loop: its input is the answer. It is listed as a tool, and never called."""

    name = FINISH
    description = "ends with the answer alone."
    arguments = AnswerArguments

    async def __call__(self, arguments: AnswerArguments) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a tool call; `failed` where it was an error."""

    text: str
    failed: bool = False


def found_nothing(observation: str) -> bool:
    """Whether a tool found nothing: it returned no text, or says so, as the bundled ones do (`No results for 'x'.`)."""
    return _NOTHING_FOUND.match(observation) is not None


async def call_tool(tool: Tool, arguments: Arguments, notation: Notation = "text") -> Observation:
    """The tool's answer; a fault of the tool or of its arguments is an answer too."""
    try:
        fitting = to_model(tool, arguments)
    except ValueError as error:
        fault = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            named = isinstance(arguments, dict) and first["loc"]
            fault = f"{excerpt(first['loc'][0])}: {first['msg']}" if named else first["msg"]
        wanted = "" if inputs(tool.arguments).is_text else f"; it is called as {form(tool, notation, details=False)}"
        call = show_call(arguments)[:80]
        return Observation(check_text(f"ERROR: {call!r} doesn't fit {tool.name}: {fault}{wanted}"), failed=True)
    try:
        text = await tool(fitting)
    except ToolError as error:
        said = check_text(str(error))
        return Observation(said if said[:5].casefold() == "error" else f"ERROR: {said}", failed=True)
    return Observation(check_text(text).strip() or NO_RESULTS)
