"""The JSON Schema of a tool's arguments: its inputs in the order of a call, in words, and values that fit it.

    inputs(Flight)      [ToolInput("city", …), ToolInput("year", …), ToolInput("seats", …, required=False)]
    schema.show({"type": "integer"})            "integer"
    schema.convert({"type": "integer"}, "3")    3
    schema.fault({"enum": ["a", "b"]}, "c")     "'c' is none of: "a", "b""

A schema may come from a server that somebody else wrote: it may be no schema, refer to itself, or be huge. What
can't be read here is left to the tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel

from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.model_output import as_object, decode, excerpt
from rewoo_bench.types import input_schema

_T = TypeVar("_T")
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
class ToolInput:
    """One input of a tool."""

    name: str
    schema: Mapping[str, Any]
    required: bool = True


@dataclass(frozen=True)
class ToolInputs:
    """The inputs of a tool: the required ones first, each in the order of the schema."""

    items: tuple[ToolInput, ...]
    schema: Schema
    is_open: bool = True
    """Whether the tool may take inputs that its schema doesn't name."""

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
        about = self.schema.resolve(self.items[0].schema)
        kinds = self.schema.kinds(about)
        return (kinds is None or kinds <= {"string", "null"}) and not self.schema.has_choices(about)


@lru_cache(maxsize=512)
def inputs(arguments: type[BaseModel]) -> ToolInputs:
    """The inputs of a tool with these arguments."""
    return inputs_of(input_schema(arguments))


def inputs_of(root: Mapping[str, Any]) -> ToolInputs:
    """The inputs of a tool with this schema."""
    about = Schema(root)
    whole = about.resolve(root)
    properties = as_object(whole.get("properties"))
    needed = _names(whole.get("required"))
    listed = [ToolInput(name, as_object(each), name in needed) for name, each in properties.items()]
    listed.sort(key=lambda each: not each.required)
    return ToolInputs(tuple(listed), about, whole.get("additionalProperties") is not False)


class Schema:
    """A JSON Schema; its methods take any part of it, in which `$ref` is an address in the whole."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self._steps = _MOST_STEPS

    def resolve(self, part: Any) -> Mapping[str, Any]:
        """The part, or what it refers to; `{}` for what is no schema, or is somewhere else."""
        found = as_object(part)
        for _ in range(_DEEPEST):
            reference = found.get("$ref")
            if not isinstance(reference, str):
                return found
            target: Any = self.root if reference.startswith("#") else None
            for key in filter(None, reference[1:].split("/")):
                key = key.replace("~1", "/").replace("~0", "~")
                if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
                    target = target[int(key)]
                else:
                    target = target.get(key) if isinstance(target, Mapping) else None
            found = {**as_object(target), **{key: value for key, value in found.items() if key != "$ref"}}
        return {}

    def kinds(self, part: Any) -> set[str] | None:
        """The types of JSON that a value may have; None where any may be."""
        return self._bounded(self._kinds, part, otherwise=None)

    def has_choices(self, part: Any) -> bool:
        """Whether the values, or some of them, are listed."""
        part = self.resolve(part)
        return any("enum" in each or "const" in each for each in (part, *map(self.resolve, _branches(part))))

    def show(self, part: Any) -> str:
        """The type in a few words: `"a" | "b"`, `[{name: string, size?: integer (at least 1)}]`."""
        self._steps = _MOST_SHOWN
        return self._show(part, _DEEPEST)

    def about(self, part: Any) -> str:
        """What else is known of a value: its description, and its limits; empty where nothing is."""
        resolved = self.resolve(part)
        said = [" ".join(str(resolved.get("description") or "").split())]
        for keyword, words in (*((keyword, words) for keyword, words, *_ in _LIMITS), *_UNCHECKED):
            limit = resolved.get(keyword)
            is_endless = isinstance(limit, int | float) and abs(limit) >= 2**53 - 1  # as some makers add to all numbers
            if isinstance(limit, int | float | str) and not is_endless and (keyword, limit) != ("minLength", 1):
                said.append(r"\n".join(words.format(limit).splitlines()))
        return "; ".join(filter(None, said))

    def convert(self, part: Any, value: Any) -> Any:
        """The value, in which text became the number, truth value, list or object that has to be there."""
        return self._bounded(self._convert, part, value, otherwise=value)

    def fault(self, part: Any, value: Any, *, pending: bool = False) -> str | None:
        """Why the value doesn't fit, or None. With `pending`, text that names a step (`#E1`) fits everywhere."""
        return self._bounded(self._fault, part, value, pending, otherwise=None)

    def _bounded(self, find: Callable[..., _T], *args: Any, otherwise: _T) -> _T:
        self._steps = _MOST_STEPS
        with suppress(RecursionError):
            return find(*args)
        return otherwise

    def _is_spent(self) -> bool:
        self._steps -= 1
        return self._steps < 0

    def _kinds(self, part: Any) -> set[str] | None:
        if self._is_spent():
            return None
        part = self.resolve(part)
        if (listed := choices(part)) is not None:
            return {kind_of(each) for each in listed}
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
        if self._is_spent() or not depth:
            return "…"

        def with_limits(part: Any) -> str:
            default = self.resolve(part).get("default")
            about = self.about(part)
            with_default = f" = {_json(default)}" if default is not None else ""
            return self._show(part, depth - 1) + with_default + (f" ({about})" if about else "")

        def show_kind(kind: str) -> str:
            first, items, others = part.get("prefixItems"), part.get("items"), part.get("additionalProperties")
            if kind == "array" and (isinstance(first, list) or as_object(items)):
                return f"[{', '.join(map(with_limits, first if isinstance(first, list) else [items]))}]"
            if kind != "object":
                return kind
            required, known = _names(part.get("required")), as_object(part.get("properties"))
            fields = [f"{name}{'' if name in required else '?'}: {with_limits(each)}" for name, each in known.items()]
            fields += [f"any name: {with_limits(others)}"] if as_object(others) else []
            return f"{{{', '.join(fields)}}}" if fields else "object"

        if (listed := choices(part)) is not None:
            said: Iterable[str] = map(_json, listed)
        elif branches := _branches(part):
            said = map(with_limits, branches)
        else:
            kinds = self._kinds(part)
            said = map(show_kind, _named_kinds(part) or sorted(kinds)) if kinds else ["any"]
        return " | ".join(dict.fromkeys(said))

    def _convert(self, part: Any, value: Any) -> Any:
        if self._is_spent():
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
        if isinstance(value, list):
            return [self._convert(part.get("items"), each) for each in value]
        if not isinstance(value, Mapping):
            return value
        properties, required = as_object(part.get("properties")), _names(part.get("required"))
        converted: dict[str, Any] = {}
        for name, each in value.items():
            if each is None and name in properties and name not in required:
                kinds = self._kinds(properties[name])
                if kinds is not None and "null" not in kinds:
                    continue  # null can only mean that the input was left out
            converted[name] = self._convert(properties.get(name, part.get("additionalProperties")), each)
        return converted

    def _fault(self, part: Any, value: Any, pending: bool) -> str | None:
        if self._is_spent() or (pending and isinstance(value, str) and _REFERENCE.search(value)):
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
            properties, others = as_object(part.get("properties")), part.get("additionalProperties")
            if missing := [name for name in _names(part.get("required")) if name not in value]:
                return f"{excerpt(missing[0])!r} is missing"
            for name, each in value.items():
                if name not in properties and others is False:
                    return f"there is no {excerpt(name)!r}; there is: {', '.join(map(str, properties)) or 'nothing'}"
                if fault := self._fault(properties.get(name, others), each, pending):
                    return _at_place(f".{excerpt(name)}", fault)
        elif isinstance(value, list) and as_object(part.get("items")):
            for at, each in enumerate(value):
                if fault := self._fault(part["items"], each, pending):
                    return _at_place(f"[{at}]", fault)
        return None


def choices(part: Mapping[str, Any]) -> list[Any] | None:
    """The values that a schema lists; None where it lists none."""
    if "const" in part:
        return [part["const"]]
    return part["enum"] if isinstance(part.get("enum"), list) else None


def _branches(part: Mapping[str, Any]) -> Sequence[Any]:
    for keyword in ("anyOf", "oneOf"):
        if isinstance(part.get(keyword), list) and part[keyword]:
            return list(part[keyword])
    one = part.get("allOf")
    return one if isinstance(one, list) and len(one) == 1 else []


def _named_kinds(part: Mapping[str, Any]) -> list[str]:
    """The types that a schema names itself."""
    named = part.get("type")
    return [named] if isinstance(named, str) else _names(named)


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
