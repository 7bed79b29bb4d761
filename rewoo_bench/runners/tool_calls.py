"""Calls a tool; an error is an observation, too."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from rewoo_bench.errors import ToolError
from rewoo_bench.notation.arguments import Arguments, show_call, to_model
from rewoo_bench.notation.plan_formats import Notation
from rewoo_bench.notation.schemas import inputs
from rewoo_bench.notation.tool_forms import form
from rewoo_bench.text.model_output import check_text, shown
from rewoo_bench.types import Tool

NO_RESULTS = "No results."


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a tool call; `failed` where it was an error."""

    text: str
    failed: bool = False


async def call_tool(tool: Tool, arguments: Arguments, notation: Notation = "text") -> Observation:
    """The tool's answer; a fault of the tool or of its arguments is an answer too."""
    try:
        fitting = to_model(tool, arguments)
    except ValueError as error:
        fault = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            named = isinstance(arguments, dict) and first["loc"]
            fault = f"{shown(first['loc'][0])}: {first['msg']}" if named else first["msg"]
        wanted = "" if inputs(tool.arguments).is_text else f"; it is called as {form(tool, notation, details=False)}"
        call = show_call(arguments)[:80]
        return Observation(check_text(f"ERROR: {call!r} doesn't fit {tool.name}: {fault}{wanted}"), failed=True)
    try:
        text = await tool(fitting)
    except ToolError as error:
        return Observation(check_text(f"ERROR: {error}"), failed=True)
    return Observation(check_text(text).strip() or NO_RESULTS)
