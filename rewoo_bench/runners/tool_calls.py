"""Calls a tool; an error is an observation, too."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from rewoo_bench.errors import ToolError
from rewoo_bench.notation.arguments import Arguments, show_call, to_model
from rewoo_bench.text.model_output import check_text, shown
from rewoo_bench.types import Tool

NO_RESULTS = "No results."


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a tool call; `failed` where it was an error."""

    text: str
    failed: bool = False


async def call_tool(tool: Tool, arguments: Arguments) -> Observation:
    """The tool's answer; a fault of the tool or of its arguments is an answer too."""
    try:
        fitting = to_model(tool, arguments)
    except ValidationError as error:
        fault = error.errors()[0]
        field = f"{shown(fault['loc'][0])}: " if isinstance(arguments, dict) and fault["loc"] else ""
        call = show_call(arguments)[:80]
        return Observation(f"ERROR: {call!r} doesn't fit {tool.name}: {field}{fault['msg']}", failed=True)
    try:
        text = await tool(fitting)
    except ToolError as error:
        return Observation(check_text(f"ERROR: {error}"), failed=True)
    return Observation(check_text(text).strip() or NO_RESULTS)
