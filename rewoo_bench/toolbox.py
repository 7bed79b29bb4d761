"""Makes the tools of a question, anew each time, since lookup remembers the page found last.

runner -> guard (the architecture's limits) -> meter -> tool
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
from pydantic import BaseModel

from rewoo_bench.architecture import Architecture
from rewoo_bench.errors import SpecError, ToolError, unknown
from rewoo_bench.meter import Meter
from rewoo_bench.specs import ToolSettings, import_object
from rewoo_bench.tools import Calculator, DocumentPages, Pages, Wikipedia, document_tools
from rewoo_bench.tools.llm import LLM
from rewoo_bench.types import Document, Model, Tool

BUILT_IN = ("Search", "Lookup", "LLM", "Calculator", "Wikipedia")


class Toolbox:
    """The tools that architectures may name. `pages` is a corpus that replaces the questions' own documents."""

    def __init__(self, pages: Pages | None = None, wikipedia: Callable[[], Wikipedia] = Wikipedia) -> None:
        self._pages = pages
        self._wikipedia = wikipedia

    def check(self, architecture: Architecture) -> None:
        """Raises `SpecError` for a tool that can't be made."""
        for name, settings in architecture.spec.tools.items():
            where = f"architecture {architecture.name!r}: [tools.{name}]"
            if settings.factory:
                import_object(settings.factory, where)
            elif name not in BUILT_IN:
                raise SpecError(f"{where}: {unknown('tool', name, BUILT_IN)}; or give it a factory")
            elif name == "LLM" and not settings.prompt:
                raise SpecError(f"{where}: the LLM tool needs a prompt file")

    def tools(self, architecture: Architecture, documents: tuple[Document, ...], meter: Meter) -> dict[str, Tool]:
        """The architecture's tools for one question, metered and guarded, in the order of its spec."""
        wanted = architecture.spec.tools
        made: dict[str, Tool] = {}
        if wanted.keys() & {"Search", "Lookup"}:
            made.update(document_tools(self._pages or DocumentPages(documents)))
        for name, settings in wanted.items():
            if name not in made or settings.factory:
                made[name] = self._make(name, settings, architecture.tool_prompts, meter)
        metered = meter.wrap({name: made[name] for name in wanted})
        return {name: Guard(tool, wanted[name]) for name, tool in metered.items()}

    def _make(self, name: str, settings: ToolSettings, prompts: Mapping[str, str], model: Model) -> Tool:
        if settings.factory:
            tool: Tool = import_object(settings.factory, f"[tools.{name}]")()
            return tool
        if name == "LLM":
            return LLM(model, prompts[name], settings.max_tokens)
        return Calculator() if name == "Calculator" else self._wikipedia()


class Guard:
    """A tool under its architecture's limits: so many calls at once, so long each."""

    def __init__(self, tool: Tool, settings: ToolSettings) -> None:
        self.name = tool.name
        self.description = tool.description
        self.arguments: type[BaseModel] = tool.arguments
        self._tool = tool
        self._timeout_s = settings.timeout_s
        self._limiter = anyio.CapacityLimiter(settings.max_concurrency or float("inf"))

    async def __call__(self, arguments: Any) -> str:
        async with self._limiter:
            try:
                with anyio.fail_after(self._timeout_s):
                    return await self._tool(arguments)
            except TimeoutError:
                raise ToolError(f"timeout after {self._timeout_s:g} s") from None
