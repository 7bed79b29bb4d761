"""Makes the tools of a question, anew each time, since lookup remembers the last page.

runner -> concurrency limit -> limit of tokens -> meter -> recorder -> faults on purpose -> deadline -> tool
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from rewoo_bench.calls.meter import Meter
from rewoo_bench.calls.recorded import recorded_tools
from rewoo_bench.calls.recorder import QuestionRecorder
from rewoo_bench.config.named import checked_tools, named_settings
from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import SpecError, UsageError
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.runners.notation.tools import form
from rewoo_bench.system.http_session import open_session
from rewoo_bench.text.redaction import hide_credentials
from rewoo_bench.text.tokens import ToolSize, count_tokens, count_tool
from rewoo_bench.tools import Calculator, DocumentPages, Lookup, Pages, PageState, Search, Wikipedia
from rewoo_bench.tools.factories import LLM, Supplies, ToolFactory, find_factory
from rewoo_bench.tools.guards import Deadline, Faults, FaultyTool, ResultLimit, limited
from rewoo_bench.tools.mcp_server import TIMEOUT_S, McpServers, QuestionServers
from rewoo_bench.tools.recordings import Recording
from rewoo_bench.tools.wikipedia import WIKIPEDIA
from rewoo_bench.types import Example, Tool

if TYPE_CHECKING:
    import aiohttp


class Toolbox:
    """The tools that architectures may name. `pages` is a corpus that replaces the questions' own documents,
    `faults` are those to inject, `servers` the connected MCP servers, `result_tokens` the limit of a tool's result,
    `recordings` what recorded tools answer from, by the id of its run.

    A context manager: connections to live Wikipedia are shared by all questions and closed at the end.
    """

    def __init__(
        self,
        pages: Pages | None = None,
        faults: Faults | None = None,
        servers: McpServers | None = None,
        result_tokens: int | None = None,
        recordings: Mapping[str, Recording] | None = None,
    ) -> None:
        self._pages = pages
        self._faults = faults
        self._servers = servers
        self._result_tokens = result_tokens
        self._recordings = recordings or {}
        self._client: aiohttp.ClientSession | None = None
        self._factories: dict[tuple[str, ToolSettings], ToolFactory | None] = {}

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
            if name.lower() == FINISH.lower():
                raise SpecError(f"{where}: {name!r} is the action that ends a question of ReAct; choose another name")
            factory = self._factory(name, settings, where)
            if factory and example:
                factory.check(self._supplies(example, Meter({})), where)
            elif name == "LLM" and not settings.prompt and not (settings.mcp or settings.recording):
                raise SpecError(f"{where}: the LLM tool needs a prompt file")

    @asynccontextmanager
    async def servers(self, architecture: Architecture, *, begin: bool = True) -> AsyncIterator[QuestionServers | None]:
        """The MCP servers of one question, which end with it; None where the architecture has none.

        With `begin` they start at once, else with their first calls.
        """
        addresses = {settings.mcp for settings in architecture.spec.tools.values() if settings.mcp}
        if not addresses:
            yield None
            return
        assert self._servers is not None, "its servers are connected when the inputs are read"
        async with self._servers.of_question(sorted(addresses) if begin else ()) as servers:
            yield servers

    def tools(
        self,
        architecture: Architecture,
        example: Example,
        meter: Meter,
        recorder: QuestionRecorder | None = None,
        servers: QuestionServers | None = None,
    ) -> dict[str, Tool]:
        """The architecture's tools for one question, metered and guarded, in the order of its spec."""
        supplies = self._supplies(example, meter)
        state = PageState()
        settings_of = architecture.spec.tools
        timed: dict[str, Tool] = {}
        runs = dict.fromkeys(settings.recording for settings in settings_of.values() if settings.recording)
        recorded_in = {run: self._recordings[run].of_task(example.id) for run in runs}
        for name, settings in settings_of.items():
            if factory := self._factory(name, settings, f"[tools.{name}]"):
                timed[name] = Deadline(factory.tool(supplies), settings, asks_model="model" in factory.parameters)
                timed[name].name = name  # what a model reads is what it may call
            elif settings.mcp:
                assert servers is not None
                server, remote = servers.server(settings.mcp), settings.mcp_tool or name
                untimed = settings.model_copy(update={"timeout_s": None})  # its start isn't part of a call
                timed[name] = Deadline(server.tool(remote, name, settings.timeout_s), untimed)
            elif settings.recording:
                recorded_tool = recorded_in[settings.recording].tool(settings.recorded_tool or name, name)
                timed[name] = Deadline(recorded_tool, settings)
            elif name == "LLM":
                llm = LLM(meter, architecture.tool_prompts[name], settings.max_tokens)
                timed[name] = Deadline(llm, settings)
            else:
                timed[name] = Deadline(self._built_in(name, supplies.pages, state), settings)
        if self._faults and self._faults.rate:
            timed = {name: FaultyTool(tool, self._faults, example.id) for name, tool in timed.items()}
        recorded = recorded_tools(recorder, timed) if recorder else timed
        metered = meter.wrap(recorded)
        if (limit := self._result_tokens) is not None:
            metered = {name: ResultLimit(tool, limit) for name, tool in metered.items()}
        return {name: limited(tool, settings_of[name].max_concurrency) for name, tool in metered.items()}

    def _factory(self, name: str, settings: ToolSettings, where: str) -> ToolFactory | None:
        """The tool's factory, looked up once a run; None for a bundled tool and that of a server."""
        key = name, settings
        if key not in self._factories:
            self._factories[key] = find_factory(name, settings, where)
        return self._factories[key]

    def _supplies(self, example: Example, meter: Meter) -> Supplies:
        pages = _pages_of(tuple(example.documents)) if self._pages is None else self._pages
        return Supplies(example.documents, pages, meter)

    def _built_in(self, name: str, pages: Pages, state: PageState) -> Tool:
        if name == "Search":
            return Search(pages, state)
        if name == "Lookup":
            return Lookup(state)
        if name == "Calculator":
            return Calculator()
        if self._client is None:
            self._client = open_session(WIKIPEDIA)
        return Wikipedia(self._client, state=state)


_pages_of = lru_cache(maxsize=128)(DocumentPages)
"""The pages of a question, indexed once for all its architectures."""
_BUNDLED = {made.name: made for made in (Search, Lookup, LLM, Calculator, Wikipedia)}


async def tool_sizes(
    mcp: Sequence[str] = (), tools: Sequence[str] = (), timeout_s: float = TIMEOUT_S
) -> list[ToolSize]:
    """What tools take of each prompt in tokens, without a model and without a run; the largest first.

    The servers of `mcp` are started for it; `tools` are names or import paths. Of ["uvx mcp-server-time"]:
    [ToolSize(name="get_current_time", source="uvx mcp-server-time", schema=181, line=45), …]

    Raises `UsageError` for a server that can't be used and for two tools of one name, `SpecError` for an unknown tool.
    """
    found = [_size(tool, "--tools") for given in checked_tools(tools, "--tools") for tool in _named(given)]
    async with McpServers(timeout_s) as servers:
        for address in dict.fromkeys(mcp):
            server = await servers.connect(address)
            offered = (server.tool(remote, name) for name, remote in server.names.items())
            found += [_size(tool, hide_credentials(address)) for tool in offered]
    names = [size.name for size in found]
    if twice := next((size for size in found if names.count(size.name) > 1), None):
        sources = " and ".join(repr(size.source) for size in found if size.name == twice.name)
        raise UsageError(
            f"two tools have the name {twice.name!r}, of {sources}; give one a prefix: --mcp '[prefix=other] …'"
        )
    return sorted(found, key=lambda size: (-size.schema, size.name))


def _named(given: str) -> list[Tool]:
    name, settings = named_settings(given, "--tools")
    if settings.recording:
        recording = Recording.read(Path(settings.recording))
        task = recording.of_task("")
        return [task.tool(remote, name) for name, remote in recording.names().items()]
    factory = find_factory(name, settings, f"--tools: {given}")
    if factory is None:
        return [_BUNDLED[name]]  # type: ignore[list-item]  # a class has the three as its attributes
    supplies = Supplies((), DocumentPages(()), Meter({}))
    factory.check(supplies, f"--tools: {given}")
    tool = factory.tool(supplies)
    tool.name = name  # what a model reads is what it may call
    return [tool]


def _size(tool: Tool, source: str) -> ToolSize:
    line = count_tokens(f"{form(tool, 'text')}: {tool.description}")
    return ToolSize(tool.name, source, count_tool(tool), line)
