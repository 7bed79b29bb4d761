"""The embedded server decodes by the grammars and schemas of tools with several inputs, none, and nested ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from enum import StrEnum
from typing import Any

import pytest
from parts import Told, toolbox
from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.models.hosted.client import ModelSettings
from rewoo_bench.models.open import open_model
from rewoo_bench.runners.notation.grammars import plan_schema
from rewoo_bench.runners.notation.plan_checks import read_checked
from rewoo_bench.runners.notation.plan_formats import Notation
from rewoo_bench.runners.notation.tools import describe_tools
from rewoo_bench.tools.mcp import McpTool, ToolSchema
from rewoo_bench.types import Message, Model, Request, Tool

pytestmark = [pytest.mark.model, pytest.mark.anyio]


class Nothing(BaseModel):
    pass


class Kind(StrEnum):
    RIVER = "river"
    CITY = "city"


class Place(BaseModel):
    name: str
    kind: Kind
    inside: Place | None = None


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    place: Place
    tags: list[str] = Field(default=[], max_length=3)
    size: float | None = None


SERVED = {
    "type": "object",
    "properties": {
        "date": {"type": "string", "format": "date-time", "pattern": "^(?=2)\\d+"},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "extra": {"type": "object", "additionalProperties": {"type": "number"}},
        "anything": True,
        "list": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/properties/either"}},
    },
    "required": ["either"],
    "$schema": "http://json-schema.org/draft-07/schema#",
}
TOOLS: Mapping[str, Tool] = {
    **toolbox(Told(), Told(name="edit-place", arguments=Edit), Told(name="ns/clock", arguments=Nothing)),
    "served": McpTool(None, ToolSchema("served", "does it.", SERVED), "served"),  # type: ignore[arg-type]
}


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with open_model("local/smollm2-135m", ModelSettings(reply_tokens=400)) as opened:
        yield opened.model


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("notation", "form"),
    [
        ("json", {"schema": plan_schema(TOOLS, 3)}),
    ],
)
async def test_a_constrained_plan_calls_the_tools_as_they_are(
    model: Model, notation: Notation, form: dict[str, Any]
) -> None:
    asked = Message("user", f"Plan how to edit Kyiv, a city.\n{describe_tools(TOOLS, notation)}")
    completion = await model.complete(Request([asked], role="planner", **form))
    plan, faults, _ = read_checked(completion.text, notation, TOOLS, 3)
    if completion.finish_reason != "length":
        assert plan is not None, (completion.text, faults)
        assert all("called as" not in fault for fault in faults), (completion.text, faults)
