"""Descriptions of the tools of MCP servers (modelcontextprotocol.io): a server's schema decides what may be sent.

`tools.mcp_server` has a server, and `tools.mcp_address` the notation in which a user names it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, partial
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

from rewoo_bench.notation.schemas import Schema, inputs_of

CHARACTERS_LEFT_OUT = "characters left out"  # the end of a result that was cut before it was counted
_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list[Any]}


class ToolSchema:
    """A tool as its server describes it."""

    def __init__(
        self, name: str, description: str | None, schema: Mapping[str, Any], *, is_read_only: bool = False
    ) -> None:
        self.name = name
        self.description = (description or name).strip()
        self.schema = dict(schema)
        self.is_read_only = is_read_only
        """Whether the server says that the tool changes nothing (`readOnlyHint`)."""

    @cached_property
    def sha256(self) -> str:
        """A hash of all that a model reads of the tool."""
        return sha256(json.dumps([self.name, self.description, self.schema], sort_keys=True).encode()).hexdigest()

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """A model of the tool's arguments, made once for all questions."""
        return _arguments_of(self)


class McpTool:
    """A tool of a server, as a `rewoo_bench.types.Tool`; `call` gets the server's name of it and the arguments."""

    def __init__(
        self,
        call: Callable[[str, dict[str, Any]], Awaitable[str]],
        schema: ToolSchema,
        name: str,
        *,
        stateful: bool = False,
    ) -> None:
        self.name = name
        self.description = schema.description
        self.arguments: type[BaseModel] = schema.arguments
        self.stateful = stateful
        self._call = call
        self._remote = schema.name

    async def __call__(self, arguments: BaseModel) -> str:
        return await self._call(self._remote, arguments.model_dump(exclude_unset=True, by_alias=True))


def _arguments_of(schema: ToolSchema) -> type[BaseModel]:
    """A model of a tool's arguments, checked as far as notation/schemas.py reads schemas; the server does all."""
    whole = {"type": "object", "properties": {}, **schema.schema}
    known = inputs_of(whole)
    fields: dict[str, Any] = {}
    for number, each in enumerate(known):
        part = known.schema.resolve(each.schema)
        type_ = _TYPES.get(str(part.get("type")), Any)
        kind: Any = Annotated[type_, AfterValidator(partial(_fitting, known.schema, part))]
        default = ... if each.required else part.get("default")
        own = _is_field_name(each.name)
        described = Field(default, alias=None if own else each.name)
        fields[each.name if own else f"field_{number}"] = (kind if each.required else kind | None, described)
    base = _McpArguments if known.is_open else _ClosedMcpArguments
    made: type[BaseModel] = create_model(schema.name, __base__=base, **fields)
    made.json_schema = whole  # type: ignore[attr-defined]
    return made


def _fitting(about: Schema, part: Mapping[str, Any], value: Any) -> Any:
    if fault := about.fault(part, value):
        raise PydanticCustomError("schema", "{fault}", {"fault": fault})
    return value


def _is_field_name(name: str) -> bool:
    """Whether a model may have a field of that name."""
    return name.isidentifier() and not name.startswith(("_", "model_")) and not hasattr(_McpArguments, name)


class _McpArguments(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        schema: dict[str, Any] = cls.json_schema  # type: ignore[attr-defined]
        return schema


class _ClosedMcpArguments(_McpArguments):
    """Of a schema that allows no other properties."""

    model_config = ConfigDict(extra="forbid")
