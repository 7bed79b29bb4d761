"""The tools as functions of a program: how a prompt shows them, and which call a program's call is.

    async def Search(query: str) -> str: ...  # searches an encyclopedia …
    async def flights(city: str, seats: int = 1) -> str: ...  # finds flights (seats: at most 9)

Names that Python doesn't take get one that it does: `web-search` is `web_search`, and `list` is `list_tool`.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rewoo_bench.runners.notation.arguments import Arguments, Misfit
from rewoo_bench.runners.notation.schemas import Schema, ToolInput, choices, inputs
from rewoo_bench.text.model_output import check_argument, check_fields
from rewoo_bench.types import Tool

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
        schema = inputs(self.tool.arguments).schema
        shown = []
        for name, each in self.parameters.items():
            default = schema.resolve(each.schema).get("default")
            shown.append(f"{name}: {_type(schema, each.schema)}{'' if each.required else f' = {default!r}'}")
        return f"{self.name}({', '.join(shown)})"

    @property
    def stub(self) -> str:
        """The function as a prompt shows it, in one line."""
        about = inputs(self.tool.arguments)
        said = [(name, about.schema.about(each.schema)) for name, each in self.parameters.items()]
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
            return check_argument(args[0])
        if len(args) == 1 and isinstance(args[0], Mapping) and not kwargs and set(args[0]) <= about.by_name.keys():
            return check_fields(args[0])  # as those who are used to JSON write it
        names = list(self.parameters)
        if len(args) > len(names):
            raise Misfit(f"{len(args)} arguments are given, and there {_are(len(names))}")
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


def _type(schema: Schema, part: object, depth: int = _DEEPEST) -> str:
    """A JSON Schema as a type of Python."""
    about = schema.resolve(part)
    if (listed := choices(about)) and all(isinstance(each, str | int | None) for each in listed):
        return f"Literal[{', '.join(map(repr, listed))}]"
    kinds = schema.kinds(about)
    if not kinds:
        return "Any"
    if "array" in kinds and depth and isinstance(about.get("items"), Mapping):
        types = {**_TYPES, "array": f"list[{_type(schema, about['items'], depth - 1)}]"}
    else:
        types = {**_TYPES, "array": "list"}
    return " | ".join(types.get(kind, "Any") for kind in sorted(kinds, key=lambda kind: (kind == "null", kind)))


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count or 'none'}"
