"""How a prompt shows the tools: how a call is written, with the facts of its schema, in each notation.

text        Search[query]                             a tool with one input that is a text
            flights[city: string, seats?: integer = 1 (at most 9)]
numbered    flights(city: string, seats?: integer = 1 (at most 9))
json        flights {"city": string, "seats"?: integer = 1 (at most 9)}
program     async def flights(city: str, seats: int = 1) -> str: ...  # finds flights (seats: at most 9)
"""

from __future__ import annotations

import builtins
import json
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel, Field

from rewoo_bench.errors import ToolError
from rewoo_bench.runners.notation import schemas
from rewoo_bench.runners.notation.arguments import Arguments, Misfit, show_call, to_model
from rewoo_bench.runners.notation.plan_formats import Notation
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.runners.notation.schemas import ToolInput, ToolInputs, choices, inputs
from rewoo_bench.text.model_output import check_fields
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
        default, said = each.schema.get("default"), schemas.about(each.schema)
        part = json.dumps(each.name, ensure_ascii=False) if notation == "json" else each.name
        part += "" if each.required else "?"
        part += f": {schemas.show(each.schema)}" if typed else ""
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
    except Misfit as error:
        wanted = "" if inputs(tool.arguments).is_text else f"; it is called as {form(tool, notation, details=False)}"
        call = show_call(arguments)[:80]
        return Observation(f"ERROR: {call!r} doesn't fit {tool.name}: {error}{wanted}", failed=True)
    try:
        text = await tool(fitting)
    except ToolError as error:
        said = str(error)
        return Observation(said if said[:5].casefold() == "error" else f"ERROR: {said}", failed=True)
    return Observation(text.strip() or NO_RESULTS)


# The tools as functions of a program: how a prompt shows them, and which call a program's call is.
#
#     async def Search(query: str) -> str: ...  # searches an encyclopedia …
#     async def flights(city: str, seats: int = 1) -> str: ...  # finds flights (seats: at most 9)
#
# Names that Python doesn't take get one that it does: `web-search` is `web_search`, and `list` is `list_tool`.


_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "null": "None"}
_DEEPEST = 3  # levels of lists that a type shows
_RESERVED = frozenset({"gather", "asyncio", "ToolError"})  # names that a program has


@dataclass(frozen=True)
class Function:
    """A tool as a function, with the name that it has in programs."""

    name: str
    tool: Tool

    @cached_property
    def parameters(self) -> dict[str, ToolInput]:
        """The inputs of the tool by the names of parameters, the required ones first."""
        about = inputs(self.tool.arguments)
        return dict(zip(_identifiers(each.name for each in about), about, strict=True))

    @property
    def signature(self) -> str:
        """`flights(city: str, seats: int = 1)`."""
        shown = []
        for name, each in self.parameters.items():
            default = "" if each.required else f" = {each.schema.get('default')!r}"
            shown.append(f"{name}: {_type(each.schema)}{default}")
        return f"{self.name}({', '.join(shown)})"

    @property
    def stub(self) -> str:
        """The function as a prompt shows it, in one line."""
        said = [(name, schemas.about(each.schema)) for name, each in self.parameters.items()]
        # A bundled tool's own description says what its text is.
        is_said = getattr(self.tool.arguments, "described_by_tool", False)
        details = "; ".join(f"{name}: {words}" for name, words in said if words and not is_said)
        description = " ".join(self.tool.description.split())
        line = f"async def {self.signature} -> str: ...  # {description}{f' ({details})' if details else ''}"
        return line.replace("\0", " ")  # which Python doesn't take

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
        """The tool's arguments in a call with these values. Raises `Misfit`, or `ValueError` for no values of JSON."""
        about = inputs(self.tool.arguments)
        if about.is_text and len(args) == 1 and isinstance(args[0], str) and not kwargs:
            return args[0]
        if len(args) == 1 and isinstance(args[0], Mapping) and not kwargs and set(args[0]) <= about.by_name.keys():
            return check_fields(args[0])  # as those who are used to JSON write it
        names = list(self.parameters)
        if len(args) > len(names):
            are = "is 1" if len(names) == 1 else f"are {len(names) or 'none'}"
            raise Misfit(f"{len(args)} arguments are given, and there {are}")
        given = dict(zip(names, args, strict=False))
        if twice := next((name for name in kwargs if name in given), None):
            raise Misfit(f"{twice!r} is given twice")
        known = {name: each.name for name, each in self.parameters.items()}
        return check_fields({known.get(name, name): value for name, value in (given | dict(kwargs)).items()})


def functions(tools: Mapping[str, Tool]) -> dict[str, Function]:
    """The tools by the names that they have in programs."""
    return {name: Function(name, tool) for name, tool in zip(_identifiers(tools), tools.values(), strict=True)}


def describe_functions(tools: Mapping[str, Tool]) -> str:
    """The tools as a prompt for programs shows them, a line each."""
    return "\n".join(each.stub for each in functions(tools).values())


def _identifiers(names: Iterable[str]) -> list[str]:
    """A name that Python takes for each, no two the same."""
    made: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        if keyword.iskeyword(plain) or hasattr(builtins, plain) or plain in _RESERVED:
            plain += "_tool"
        while plain in made:
            plain += "_"
        made.append(plain)
    return made


def _type(part: schemas.Part, depth: int = _DEEPEST) -> str:
    """A JSON Schema as a type of Python."""
    if (listed := choices(part)) and all(isinstance(each, str | int | None) for each in listed):
        return f"Literal[{', '.join(map(repr, listed))}]"
    kinds = schemas.kinds(part)
    if not kinds:
        return "Any"
    items = part.get("items")
    array = f"list[{_type(items, depth - 1)}]" if items is not None and depth else "list"
    types = {**_TYPES, "array": array}
    return " | ".join(types.get(kind, "Any") for kind in sorted(kinds, key=lambda kind: (kind == "null", kind)))
