"""The JSON Schema of a tool's arguments: its inputs in the order of a call, in words, and values that fit it.

    inputs(Flight)      [ToolInput("city", …), ToolInput("year", …), ToolInput("seats", …, required=False)]
    show({"type": "integer"})            "integer"
    convert({"type": "integer"}, "3")    3
    fault({"enum": ["a", "b"]}, "c")     "'c' is none of: "a", "b""

A schema may come from a server that somebody else wrote: it may be no schema, refer to itself, or be huge.
`plain_schema` makes it a tree of a limited size, and the other functions read such trees. What can't be read here is
left to the tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel

from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.model_output import as_object, decode, excerpt
from rewoo_bench.types import input_schema

_MOST_PARTS = 2_000  # of a schema
_DEEPEST = 12  # levels of a schema
_REFERENCE = re.compile(r"#E\d{1,9}|\{\{\s?E\d{1,9}\s?\}\}|\{E\d{1,9}\}", re.ASCII)
_STRING = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""", re.DOTALL)
_UNCLOSED = r"""["'].*"""  # takes the rest, so that a text of many quotes is read once
_PYTHON = re.compile(rf"{_STRING.pattern}|{_UNCLOSED}|\b(?:True|False|None)\b|^\+|{_REFERENCE.pattern}", re.DOTALL)
_TYPES: Mapping[str, Any] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
_LIMITS: Mapping[str, str] = {  # a prompt shows them, and the tool checks them
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "multipleOf": "a multiple of {}",
    "format": "{}",
    "pattern": "pattern {}",
}
_KEPT: Mapping[str, Any] = {  # keywords that stay as they are, and the types of their values
    **dict.fromkeys(_LIMITS, int | float),
    **dict.fromkeys(("description", "title", "format", "pattern"), str),
    **dict.fromkeys(("const", "default"), object),
    "enum": list,
}
_BRANCHES = ("anyOf", "oneOf")

Part = Mapping[str, Any]
"""A schema as `plain_schema` makes it, or a schema inside of it; `{}` allows every value."""


@dataclass(frozen=True, slots=True)
class ToolInput:
    """One input of a tool."""

    name: str
    schema: Part
    required: bool = True


@dataclass(frozen=True)
class ToolInputs:
    """The inputs of a tool: the required ones first, each in the order of the schema."""

    items: tuple[ToolInput, ...]
    schema: Part

    def __iter__(self) -> Iterator[ToolInput]:
        return iter(self.items)

    @cached_property
    def by_name(self) -> dict[str, ToolInput]:
        return {each.name: each for each in self.items}

    @cached_property
    def required(self) -> list[str]:
        return [each.name for each in self.items if each.required]

    @cached_property
    def is_text(self) -> bool:
        """Whether the tool has one input, and that is any text: what is written between its brackets is its value."""
        if len(self.items) != 1:
            return False
        about = self.items[0].schema
        named = kinds(about)
        return (named is None or named <= {"string", "null"}) and not has_choices(about)


@lru_cache(maxsize=512)
def inputs(arguments: type[BaseModel]) -> ToolInputs:
    """The inputs of a tool with these arguments."""
    whole = plain_schema(input_schema(arguments))
    needed = whole.get("required", ())
    listed = [ToolInput(name, each, name in needed) for name, each in whole.get("properties", {}).items()]
    listed.sort(key=lambda each: not each.required)
    return ToolInputs(tuple(listed), whole)


def plain_schema(root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with what it refers to in the place of each `$ref`, and without what is no schema.

    A part that lies too deep, as in a schema that refers to itself, allows every value.
    """
    left = _MOST_PARTS

    def plain(part: object, depth: int) -> dict[str, Any]:
        nonlocal left
        left -= 1
        found = _referred(root, part)
        if not depth or left < 0:
            return {}
        made: dict[str, Any] = {}
        for keyword, value in found.items():
            if keyword in ("items", "additionalProperties") and isinstance(value, Mapping):
                made[keyword] = plain(value, depth - 1)
            elif keyword == "properties":
                made[keyword] = {name: plain(each, depth - 1) for name, each in as_object(value).items()}
            elif keyword in (*_BRANCHES, "allOf", "prefixItems") and isinstance(value, list) and value:
                made[keyword] = [plain(each, depth - 1) for each in value]
            elif keyword == "type":
                made[keyword] = [value] if isinstance(value, str) else _names(value)
            elif keyword == "required":
                made[keyword] = _names(value)
            elif isinstance(value, _KEPT.get(keyword, ())) or (keyword == "additionalProperties" and value is False):
                made[keyword] = value
        if len(every := made.pop("allOf", ())) == 1:
            made = every[0] | made
        return made

    return plain(root, _DEEPEST)


def _referred(root: Mapping[str, Any], part: object) -> Mapping[str, Any]:
    """The part, with what it refers to; `{}` for what is no schema, or is somewhere else."""
    found = as_object(part)
    for _ in range(_DEEPEST):
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return found
        target: Any = root if reference.startswith("#") else None
        for key in filter(None, reference[1:].split("/")):
            target = as_object(target).get(key)
        found = {**as_object(target), **{key: value for key, value in found.items() if key != "$ref"}}
    return {}


def kinds(part: Part) -> set[str] | None:
    """The types of JSON that a value may have; None where any may be."""
    if (listed := choices(part)) is not None:
        return {kind_of(each) for each in listed}
    if part.get("type"):
        return set(part["type"])
    if branches := _branches(part):
        found = [kinds(each) for each in branches]
        return None if None in found else {kind for each in found if each for kind in each}
    if "properties" in part:
        return {"object"}
    return {"array"} if "items" in part else None


def choices(part: Part) -> list[Any] | None:
    """The values that a schema lists; None where it lists none."""
    return [part["const"]] if "const" in part else part.get("enum")


def has_choices(part: Part) -> bool:
    """Whether the values, or some of them, are listed."""
    return any(choices(each) is not None for each in (part, *_branches(part)))


def _branches(part: Part) -> Sequence[Part]:
    return next((part[keyword] for keyword in _BRANCHES if keyword in part), ())


def show(part: Part, depth: int = _DEEPEST) -> str:
    """The type in a few words: `"a" | "b"`, `[{name: string, size?: integer (at least 1)}]`."""
    if not depth:
        return "…"

    def with_limits(part: Part) -> str:
        default, said = part.get("default"), about(part)
        with_default = f" = {_json(default)}" if default is not None else ""
        return show(part, depth - 1) + with_default + (f" ({said})" if said else "")

    def show_kind(kind: str) -> str:
        if kind == "array" and (parts := part.get("prefixItems") or ([part["items"]] if part.get("items") else [])):
            return f"[{', '.join(map(with_limits, parts))}]"
        if kind != "object":
            return kind
        required, known = part.get("required", ()), part.get("properties", {})
        fields = [f"{name}{'' if name in required else '?'}: {with_limits(each)}" for name, each in known.items()]
        others = part.get("additionalProperties")
        fields += [f"any name: {with_limits(others)}"] if others else []
        return f"{{{', '.join(fields)}}}" if fields else "object"

    if (listed := choices(part)) is not None:
        said: Iterable[str] = map(_json, listed)
    elif branches := _branches(part):
        said = map(with_limits, branches)
    else:
        said = map(show_kind, part.get("type") or sorted(kinds(part) or ())) if kinds(part) else ["any"]
    return " | ".join(dict.fromkeys(said))


def about(part: Part) -> str:
    """What else is known of a value: its description, and its limits; empty where nothing is."""
    said = [" ".join(part.get("description", "").split())]
    for keyword, words in _LIMITS.items():
        limit = part.get(keyword)
        is_endless = isinstance(limit, int | float) and abs(limit) >= 2**53 - 1  # as some makers add to all numbers
        if limit is not None and not is_endless and (keyword, limit) != ("minLength", 1):
            said.append(r"\n".join(words.format(limit).splitlines()))
    return "; ".join(filter(None, said))


def convert(part: Part, value: Any) -> Any:
    """The value, in which text became the number, truth value, list or object that has to be there."""
    if branches := _branches(part):
        if fault(part, value) is None:
            return value
        tried = ((each, convert(each, value)) for each in branches)
        return next((made for each, made in tried if fault(each, made) is None), value)
    allowed = kinds(part)
    if isinstance(value, str) and allowed is not None and "string" not in allowed:
        read = literal(value)
        value = read[0] if read and is_one_of(allowed, read[0]) else value
    if isinstance(value, float) and allowed == {"integer"} and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [convert(part.get("items", {}), each) for each in value]
    if not isinstance(value, Mapping):
        return value
    properties, others = part.get("properties", {}), part.get("additionalProperties") or {}
    converted: dict[str, Any] = {}
    for name, each in value.items():
        if each is None and name in properties and name not in part.get("required", ()):
            own = kinds(properties[name])
            if own is not None and "null" not in own:
                continue  # null can only mean that the input was left out
        converted[name] = convert(properties.get(name, others), each)
    return converted


def fault(part: Part, value: Any, *, pending: bool = False) -> str | None:
    """Why the value doesn't fit, or None. With `pending`, text that names a step (`#E1`) fits everywhere."""
    if pending and isinstance(value, str) and _REFERENCE.search(value):
        return None
    if "const" in part and not _same(part["const"], value):
        return f"{_repeated(value)} is not {_json(part['const'])}"
    if "enum" in part and not any(_same(each, value) for each in part["enum"]):
        return f"{_repeated(value)} is none of: {', '.join(map(_json, part['enum'][:50]))}"
    if branches := _branches(part):
        faults = [fault(each, value, pending=pending) for each in branches]
        if None not in faults:
            return faults[0] if len(faults) == 1 else f"{_repeated(value)} is not {show(part, 4)}"
    if part.get("type") and not is_one_of(set(part["type"]), value):
        return f"{_repeated(value)} is not of the type {show(part, 4)}"
    if isinstance(value, Mapping):
        properties, others = part.get("properties", {}), part.get("additionalProperties", {})
        if missing := [name for name in part.get("required", ()) if name not in value]:
            return f"{excerpt(missing[0])!r} is missing"
        for name, each in value.items():
            if name not in properties and others is False:
                return f"there is no {excerpt(name)!r}; there is: {', '.join(properties) or 'nothing'}"
            if inner := fault(properties.get(name, others or {}), each, pending=pending):
                return _at_place(f".{excerpt(name)}", inner)
    elif isinstance(value, list) and "items" in part:
        for at, each in enumerate(value):
            if inner := fault(part["items"], each, pending=pending):
                return _at_place(f"[{at}]", inner)
    return None


def _names(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def kind_of(value: Any) -> str:
    """The type of a value in JSON; a whole number's is `integer`."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return next((kind for kind, type_ in _TYPES.items() if isinstance(value, type_)), "object")


def is_one_of(kinds: set[str], value: Any) -> bool:
    """Whether a value has one of these types of JSON."""
    kind = kind_of(value)
    whole = isinstance(value, float) and value.is_integer()
    return kind in kinds or ("number" in kinds and kind == "integer") or (whole and "integer" in kinds)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def literal(text: str) -> tuple[Any] | None:
    """The value that a text is, as JSON or as Python writes it, in a tuple; None for any other text.

    A reference to a step may stand in a list or an object without quotes: `[1, #E2]`.
    """
    text = text.strip()
    for candidate in (text, _PYTHON.sub(_as_json, text) if text[:1] in tuple("[{TFN'+") else text):
        try:
            value, end = decode(candidate)
        except ValueError:
            continue
        if end == len(candidate):
            return (value,)
    return None


def unquoted(text: str) -> str | None:
    """The text of a string in double or single quotes, which may go over lines; None for any other text."""
    if not _STRING.fullmatch(text):
        return None
    inner = text[1:-1]
    if text[0] == "'":
        inner = inner.replace("\\'", "'").replace('\\"', '"').replace('"', '\\"')
    try:
        return replace_surrogates(json.loads(f'"{inner}"', strict=False))
    except ValueError:  # with escapes that JSON doesn't have
        return text[1:-1]


def _as_json(found: re.Match[str]) -> str:
    """What Python writes in another way than JSON."""
    text = found[0]
    if text[0] == '"' or (text[0] == "'" and not _STRING.fullmatch(text)):
        return text
    words = {"True": "true", "False": "false", "None": "null", "+": ""}
    return words[text] if text in words else _json(unquoted(text) if text[0] == "'" else text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _repeated(value: Any) -> str:
    return repr(excerpt(value)) if isinstance(value, str) else excerpt(value)


def _at_place(place: str, fault: str) -> str:
    """The fault with its place in front: `edits[0].newText: …`."""
    return f"{place}{fault}" if fault.startswith((".", "[")) else f"{place}: {fault}"
