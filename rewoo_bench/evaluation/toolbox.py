"""Makes the tools of a question, anew each time, since lookup remembers the last page.

runner -> concurrency limit -> meter -> recorder -> faults on purpose -> deadline -> tool
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import SpecError
from rewoo_bench.http_session import open_session
from rewoo_bench.metering.meter import Meter
from rewoo_bench.metering.recorded_tools import recorded_tools
from rewoo_bench.metering.recorder import QuestionRecorder
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.tools import Calculator, DocumentPages, Lookup, Pages, PageState, Search, Wikipedia
from rewoo_bench.tools.factories import Supplies, find_factory
from rewoo_bench.tools.faults import Faults, FaultyTool
from rewoo_bench.tools.guards import Deadline, limited
from rewoo_bench.tools.llm import LLM
from rewoo_bench.tools.mcp import McpServers
from rewoo_bench.tools.wikipedia import WIKIPEDIA
from rewoo_bench.types import Example, Tool

if TYPE_CHECKING:
    import aiohttp


class Toolbox:
    """The tools that architectures may name. `pages` is a corpus that replaces the questions' own documents,
    `faults` are those to inject, `servers` the connected MCP servers.

    A context manager: connections to live Wikipedia are shared by all questions and closed at the end.
    """

    def __init__(
        self, pages: Pages | None = None, faults: Faults | None = None, servers: McpServers | None = None
    ) -> None:
        self._pages = pages
        self._faults = faults
        self._servers = servers
        self._client: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Toolbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            with anyio.CancelScope(shield=True):
                await client.close()

    def check(self, architecture: Architecture, example: Example | None = None) -> None:
        """Raises `SpecError` for a tool that can't be made; tools of other packages are made once, for `example`."""
        for name, settings in architecture.spec.tools.items():
            where = f"architecture {architecture.name!r}: [tools.{name}]"
            factory = find_factory(name, settings, where)
            if factory and example:
                factory.check(self._supplies(example, Meter({})), where)
            elif name == "LLM" and not settings.prompt and not settings.mcp:
                raise SpecError(f"{where}: the LLM tool needs a prompt file")

    def tools(
        self,
        architecture: Architecture,
        example: Example,
        meter: Meter,
        recorder: QuestionRecorder | None = None,
    ) -> dict[str, Tool]:
        """The architecture's tools for one question, metered and guarded, in the order of its spec."""
        supplies = self._supplies(example, meter)
        state = PageState()
        settings_of = architecture.spec.tools
        timed: dict[str, Tool] = {}
        for name, settings in settings_of.items():
            if factory := find_factory(name, settings, f"[tools.{name}]"):
                timed[name] = Deadline(factory.tool(supplies), settings, asks_model=factory.takes_model)
                timed[name].name = name  # what a model reads is what it may call
            elif settings.mcp:
                timed[name] = Deadline(self._of_server(name, settings), settings)
            elif name == "LLM":
                llm = LLM(meter, architecture.tool_prompts[name], settings.max_tokens)
                timed[name] = Deadline(llm, settings)
            else:
                timed[name] = Deadline(self._built_in(name, supplies.pages, state), settings)
        if self._faults and self._faults.rate:
            timed = {name: FaultyTool(tool, self._faults, example.id) for name, tool in timed.items()}
        recorded = recorded_tools(recorder, timed) if recorder else timed
        metered = meter.wrap(recorded)
        return {name: limited(tool, settings_of[name].max_concurrency) for name, tool in metered.items()}

    def _supplies(self, example: Example, meter: Meter) -> Supplies:
        pages = DocumentPages(example.documents) if self._pages is None else self._pages
        return Supplies(example.documents, pages, meter)

    def _of_server(self, name: str, settings: ToolSettings) -> Tool:
        assert self._servers is not None, "its server is connected when the inputs are read"
        assert settings.mcp is not None
        return self._servers.of(settings.mcp).tool(settings.mcp_tool or name, name)

    def _built_in(self, name: str, pages: Pages, state: PageState) -> Tool:
        if name == "Search":
            return Search(pages, state)
        if name == "Lookup":
            return Lookup(state)
        if name == "Calculator":
            return Calculator()
        return Wikipedia(self._shared_client(), state=state)

    def _shared_client(self) -> aiohttp.ClientSession:
        if self._client is None:
            self._client = open_session(WIKIPEDIA)
        return self._client
