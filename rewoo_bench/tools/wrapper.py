"""A tool around another tool, that looks like it: for what counts, limits, records or breaks its calls."""

from __future__ import annotations

from pydantic import BaseModel

from rewoo_bench.types import Tool


class WrappedTool:
    """Has the other's name, description, arguments and traits; a subclass says what a call does."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.arguments: type[BaseModel] = tool.arguments
        self.stateful = bool(getattr(tool, "stateful", False))
        self.asks_model = bool(getattr(tool, "asks_model", False))
        self._tool = tool
