"""The question's tools as JSON over HTTP: their OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rewoo_bench.types import Tool

_RESULT = {
    "type": "object",
    "properties": {"result": {"type": "string"}, "failed": {"type": "boolean"}},
    "required": ["result", "failed"],
}


def openapi(tools: Iterable[Tool], address: str) -> dict[str, Any]:
    """An OpenAPI 3.1 document with a POST operation for each tool."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tools of a question", "version": "1"},
        "servers": [{"url": address}],
        "paths": {f"/{tool.name}": {"post": _operation(tool)} for tool in tools},
    }


def _operation(tool: Tool) -> dict[str, Any]:
    schema = tool.arguments.model_json_schema()
    return {
        "operationId": tool.name,
        "description": tool.description,
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {
            "200": {"description": "The tool's answer", "content": {"application/json": {"schema": _RESULT}}}
        },
    }
