"""The JSON Schema of a tool's arguments: its inputs in the order of a call, in words, and values that fit it.

    inputs(Flight)                              [Input("city", …), Input("year", …), Input("seats", …, required=False)]
    schema.show({"type": "integer"})            "integer"
    schema.convert({"type": "integer"}, "3")    3
    schema.fault({"enum": ["a", "b"]}, "c")     "'c' is none of: "a", "b""

A schema may come from a server that somebody else wrote: it may be no schema, refer to itself, or be huge. What
can't be read here is left to the tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel

from rewoo_bench.text.model_output import decode, shown
from rewoo_bench.types import input_schema

_MOST_STEPS = 20_000  # through a schema, for one question about it: one that refers to itself has no end
_MOST_SHOWN = 2_000  # of them, where the schema is shown
_DEEPEST = 12  # levels that are shown
_REFERENCE = re.compile(r"#E\d{1,9}|\{\{\s?E\d{1,9}\s?\}\}|\{E\d{1,9}\}", re.ASCII)
_STRING = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'""", re.DOTALL)
_UNCLOSED = r"""["'].*"""  # takes the rest, so that a text of many quotes is read once
_PYTHON = re.compile(rf"{_STRING.pattern}|{_UNCLOSED}|\b(?:True|False|None)\b|^\+|{_REFERENCE.pattern}", re.DOTALL)
_TYPES: Mapping[str, Any] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
# keyword, words, types that it is about, whether a value is fine
_LIMITS: Sequence[tuple[str, str, tuple[type, ...], Callable[[Any, Any], bool]]] = (
    ("minimum", "at least {}", (int, float), lambda value, limit: value >= limit),
    ("maximum", "at most {}", (int, float), lambda value, limit: value <= limit),
    ("exclusiveMinimum", "more than {}", (int, float), lambda value, limit: value > limit),
    ("exclusiveMaximum", "less than {}", (int, float), lambda value, limit: value < limit),
    ("minLength", "at least {} characters", (str,), lambda value, limit: len(value) >= limit),
    ("maxLength", "at most {} characters", (str,), lambda value, limit: len(value) <= limit),
    ("minItems", "at least {} items", (list,), lambda value, limit: len(value) >= limit),
    ("maxItems", "at most {} items", (list,), lambda value, limit: len(value) <= limit),
)
_UNCHECKED = (("multipleOf", "a multiple of {}"), ("format", "{}"), ("pattern", "pattern {}"))


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a tool."""

    name: str
    schema: Mapping[str, Any]
    required: bool = True


@dataclass(frozen=True)
class Inputs:
    """The inputs of a tool: the required ones first, each in the order of the schema."""

    items: tuple[Input, ...]
    schema: Schema
    is_open: bool = True
    """Whether the tool may take inputs that its schema doesn't name."""

    def __iter__(self) -> Iterator[Input]:
        return iter(self.items)

    @cached_property
    def by_name(self) -> dict[str, Input]:
        return {each.name: each for each in self.items}

    @cached_property
    def required(self) -> list[str]:
        return [each.name for each in self.items if each.required]

    @cached_property
    def is_text(self) -> bool:
        """Whether the tool has one input, and that is any text: what is written between its brackets is its value."""
        if len(self.items) != 1:
            return False
        about = self.schema.resolve(self.items[0].schema)
        kinds = self.schema.kinds(about)
        return (kinds is None or kinds <= {"string", "null"}) and not self.schema.has_choices(about)


@lru_cache(maxsize=512)
def inputs(arguments: type[BaseModel]) -> Inputs:
    """The inputs of a tool with these arguments."""
    return inputs_of(input_schema(arguments))


def inputs_of(root: Mapping[str, Any]) -> Inputs:
    """The inputs of a tool with this schema."""
    about = Schema(root)
    whole = about.resolve(root)
    properties = _mapping(whole.get("properties"))
    needed = _names(whole.get("required"))
    listed = [Input(name, _mapping(each), name in needed) for name, each in properties.items()]
    listed.sort(key=lambda each: not each.required)
    return Inputs(tuple(listed), about, whole.get("additionalProperties") is not False)


class Schema:
    """A JSON Schema; its methods take any part of it, in which `$ref` is an address in the whole."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self._steps = _MOST_STEPS

    def resolve(self, part: Any) -> Mapping[str, Any]:
        """The part, or what it refers to; `{}` for what is no schema, or is somewhere else."""
        found = _mapping(part)
        for _ in range(_DEEPEST):
            reference = found.get("$ref")
            if not isinstance(reference, str):
                return found
            own = {key: value for key, value in found.items() if key != "$ref"}
            found = {**_mapping(self._at(reference)), **own}
        return {}

    def kinds(self, part: Any) -> set[str] | None:
        """The types of JSON that a value may have; None where any may be."""
        self._steps = _MOST_STEPS
        with suppress(RecursionError):
            return self._kinds(part)
        return None

    def has_choices(self, part: Any) -> bool:
        """Whether the values, or some of them, are listed."""
        part = self.resolve(part)
        return _is_choice(part) or any(_is_choice(self.resolve(each)) for each in _branches(part))

    def show(self, part: Any) -> str:
        """The type in a few words: `"a" | "b"`, `[{name: string, size?: integer (at least 1)}]`."""
        self._steps = _MOST_SHOWN
        return self._show(part, _DEEPEST)

    def about(self, part: Any) -> str:
        """What else is known of a value: its description, and its limits; empty where nothing is."""
        resolved = self.resolve(part)
        said = " ".join(str(resolved.get("description") or "").split())
        return "; ".join(filter(None, [said, *_limits(resolved)]))

    def convert(self, part: Any, value: Any) -> Any:
        """The value, in which text became the number, truth value, list or object that has to be there."""
        self._steps = _MOST_STEPS
        with suppress(RecursionError):
            return self._convert(part, value)
        return value

    def fault(self, part: Any, value: Any, *, pending: bool = False) -> str | None:
        """Why the value doesn't fit, or None. With `pending`, text that names a step (`#E1`) fits everywhere."""
        self._steps = _MOST_STEPS
        with suppress(RecursionError):
            return self._fault(part, value, pending)
        return None

    def _at(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return None
        found: Any = self.root
        for key in filter(None, reference[1:].split("/")):
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def _spent(self) -> bool:
        self._steps -= 1
        return self._steps < 0

    def _kinds(self, part: Any) -> set[str] | None:
        if self._spent():
            return None
        part = self.resolve(part)
        if "const" in part:
            return {_kind(part["const"])}
        if isinstance(part.get("enum"), list):
            return {_kind(each) for each in part["enum"]}
        if named := _named_kinds(part):
            return set(named)
        if branches := _branches(part):
            kinds = [self._kinds(each) for each in branches]
            return None if None in kinds else {kind for each in kinds if each for kind in each}
        if "properties" in part:
            return {"object"}
        return {"array"} if "items" in part else None

    def _show(self, part: Any, depth: int) -> str:
        part = self.resolve(part)
        if self._spent() or not depth:
            return "…"
        if "const" in part:
            return _json(part["const"])
        if isinstance(part.get("enum"), list):
            return " | ".join(dict.fromkeys(map(_json, part["enum"])))
        if branches := _branches(part):
            return " | ".join(dict.fromkeys(self._shown_with_limits(each, depth - 1) for each in branches))
        kinds = self._kinds(part)
        if not kinds:
            return "any"
        order = _named_kinds(part) or sorted(kinds)
        return " | ".join(dict.fromkeys(self._show_kind(kind, part, depth) for kind in order))

    def _show_kind(self, kind: str, part: Mapping[str, Any], depth: int) -> str:
        if kind == "array":
            first = part.get("prefixItems")
            if isinstance(first, list):
                return f"[{', '.join(self._shown_with_limits(each, depth - 1) for each in first)}]"
            return f"[{self._shown_with_limits(part['items'], depth - 1)}]" if _mapping(part.get("items")) else "array"
        if kind != "object":
            return kind
        required = _names(part.get("required"))
        fields = [
            f"{name}{'' if name in required else '?'}: {self._shown_with_limits(each, depth - 1)}"
            for name, each in _mapping(part.get("properties")).items()
        ]
        if _mapping(part.get("additionalProperties")):
            fields.append(f"any name: {self._shown_with_limits(part['additionalProperties'], depth - 1)}")
        return f"{{{', '.join(fields)}}}" if fields else "object"

    def _shown_with_limits(self, part: Any, depth: int) -> str:
        resolved = self.resolve(part)
        default = f" = {_json(resolved['default'])}" if resolved.get("default") is not None else ""
        about = self.about(part)
        return self._show(part, depth) + default + (f" ({about})" if about else "")

    def _convert(self, part: Any, value: Any) -> Any:
        if self._spent():
            return value
        part = self.resolve(part)
        if branches := _branches(part):
            if self._fault(part, value, False) is None:
                return value
            tried = ((each, self._convert(each, value)) for each in branches)
            return next((made for each, made in tried if self._fault(each, made, False) is None), value)
        kinds = self._kinds(part)
        if isinstance(value, str) and kinds is not None and "string" not in kinds:
            read = literal(value)
            value = read[0] if read and is_one_of(kinds, read[0]) else value
        if isinstance(value, float) and kinds == {"integer"} and value.is_integer():
            return int(value)
        if isinstance(value, Mapping):
            properties = _mapping(part.get("properties"))
            others = part.get("additionalProperties")
            return {
                name: self._convert(properties.get(name, others), each)
                for name, each in value.items()
                if not (each is None and name in properties and self._is_omission(part, name))
            }
        if isinstance(value, list):
            return [self._convert(part.get("items"), each) for each in value]
        return value

    def _is_omission(self, part: Mapping[str, Any], name: str) -> bool:
        """Whether null can only mean that an input was left out."""
        kinds = self._kinds(part["properties"][name])
        return name not in _names(part.get("required")) and kinds is not None and "null" not in kinds

    def _fault(self, part: Any, value: Any, pending: bool) -> str | None:
        if self._spent() or (pending and isinstance(value, str) and _REFERENCE.search(value)):
            return None
        part = self.resolve(part)
        if "const" in part and not _same(part["const"], value):
            return f"{_repeated(value)} is not {_json(part['const'])}"
        if isinstance(part.get("enum"), list) and not any(_same(each, value) for each in part["enum"]):
            return f"{_repeated(value)} is none of: {', '.join(map(_json, part['enum'][:50]))}"
        if branches := _branches(part):
            faults = [self._fault(each, value, pending) for each in branches]
            if None not in faults:
                return faults[0] if len(faults) == 1 else f"{_repeated(value)} is not {self._show(part, 4)}"
        kinds = _named_kinds(part)
        if kinds and not is_one_of(set(kinds), value):
            return f"{_repeated(value)} is not of the type {self._show(part, 4)}"
        for keyword, words, types, is_fine in _LIMITS:
            limit = part.get(keyword)
            about_it = isinstance(value, types) and not isinstance(value, bool)
            if about_it and isinstance(limit, int | float) and not is_fine(value, limit):
                return f"{_repeated(value)} is not {words.format(limit)}"
        if isinstance(value, Mapping):
            return self._object_fault(part, value, pending)
        if isinstance(value, list) and _mapping(part.get("items")):
            found = ((at, self._fault(part["items"], each, pending)) for at, each in enumerate(value))
            return next((_at_place(f"[{at}]", fault) for at, fault in found if fault), None)
        return None

    def _object_fault(self, part: Mapping[str, Any], value: Mapping[str, Any], pending: bool) -> str | None:
        properties = _mapping(part.get("properties"))
        for name in _names(part.get("required")):
            if name not in value:
                return f"{shown(name)!r} is missing"
        others = part.get("additionalProperties")
        for name, each in value.items():
            if name not in properties and others is False:
                return f"there is no {shown(name)!r}; there is: {', '.join(map(str, properties)) or 'nothing'}"
            if fault := self._fault(properties.get(name, others), each, pending):
                return _at_place(f".{shown(name)}", fault)
        return None


def _is_choice(part: Mapping[str, Any]) -> bool:
    return "enum" in part or "const" in part


def _branches(part: Mapping[str, Any]) -> Sequence[Any]:
    for keyword in ("anyOf", "oneOf"):
        if isinstance(part.get(keyword), list) and part[keyword]:
            return list(part[keyword])
    one = part.get("allOf")
    return one if isinstance(one, list) and len(one) == 1 else []


def _limits(part: Mapping[str, Any]) -> list[str]:
    said = []
    for keyword, words in (*((keyword, words) for keyword, words, *_ in _LIMITS), *_UNCHECKED):
        limit = part.get(keyword)
        if isinstance(limit, int | float) and abs(limit) >= 2**53 - 1:  # as some makers add to every number
            continue
        if isinstance(limit, int | float | str) and (keyword, limit) != ("minLength", 1):
            said.append(words.format(limit))
    return said


def _named_kinds(part: Mapping[str, Any]) -> list[str]:
    """The types that a schema names itself."""
    named = part.get("type")
    return [named] if isinstance(named, str) else _names(named)


def _names(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return next((kind for kind, type_ in _TYPES.items() if isinstance(value, type_)), "object")


def is_one_of(kinds: set[str], value: Any) -> bool:
    """Whether a value has one of these types of JSON."""
    kind = _kind(value)
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
        return str(json.loads(f'"{inner}"', strict=False))
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
    return repr(shown(value)) if isinstance(value, str) else shown(value)


def _at_place(place: str, fault: str) -> str:
    """The fault with its place in front: `edits[0].newText: …`."""
    return f"{place}{fault}" if fault.startswith((".", "[")) else f"{place}: {fault}"
