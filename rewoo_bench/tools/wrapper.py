"""A tool around another tool, with the same interface; subclasses count, limit, record or break its calls."""

from __future__ import annotations

from pydantic import BaseModel

from rewoo_bench.types import Tool


class WrappedTool:
    """Has the name, description, arguments and traits of `tool`; a subclass defines the call."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.arguments: type[BaseModel] = tool.arguments
        self.stateful = bool(getattr(tool, "stateful", False))
        self.asks_model = bool(getattr(tool, "asks_model", False))
        self._tool = tool
