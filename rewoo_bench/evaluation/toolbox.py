"""Makes the tools of a question, anew each time, since lookup remembers the last page.

runner -> order of state -> concurrency limit -> limit of tokens -> meter -> recorder -> faults on purpose -> deadline
       -> tool
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import anyio

from rewoo_bench.calls.meter import Meter
from rewoo_bench.calls.recorded import recorded_tools
from rewoo_bench.calls.recorder import QuestionRecorder
from rewoo_bench.config.functions import file_tool
from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import SpecError
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.system.http_session import open_session
from rewoo_bench.text.redaction import of_environment
from rewoo_bench.tools import Calculator, DocumentPages, Lookup, Pages, PageState, Search, Wikipedia
from rewoo_bench.tools.factories import LLM, Supplies, ToolFactory, find_factory
from rewoo_bench.tools.guards import ConcurrencyLimit, Deadline, Faults, FaultyTool, LeftAlone, ResultLimit, StateOrder
from rewoo_bench.tools.mcp_server import McpServers, QuestionServers
from rewoo_bench.tools.recordings import Recording
from rewoo_bench.tools.wikipedia import WIKIPEDIA
from rewoo_bench.types import Example, Tool
from rewoo_bench.worlds.world import World, Worlds, opened_in_time

if TYPE_CHECKING:
    import aiohttp


class Toolbox:
    """The tools that architectures may name. `pages` is a corpus that replaces the questions' own documents,
    `faults` are those to inject, `servers` the connected MCP servers, `result_tokens` the limit of a tool's result,
    `recordings` what recorded tools answer from, by the id of its run, `worlds` what makes each question's world,
    `timeout_s` the seconds that a call of a world or of a function may take.

    A context manager: connections to live Wikipedia are shared by all questions and closed at the end.
    """

    def __init__(
        self,
        pages: Pages | None = None,
        faults: Faults | None = None,
        servers: McpServers | None = None,
        result_tokens: int | None = None,
        recordings: Mapping[str, Recording] | None = None,
        worlds: Worlds | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        self._pages = pages
        self._faults = faults
        self._servers = servers
        self._result_tokens = result_tokens
        self._recordings = recordings or {}
        self.worlds = worlds
        self._timeout_s = timeout_s
        self._secrets = of_environment()
        self._client: aiohttp.ClientSession | None = None
        self._factories: dict[tuple[str, ToolSettings], ToolFactory | None] = {}
        self.changes_nothing = False
        """Whether tools that change state outside of a world are left alone, as in a dry run."""

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
            elif name == "LLM" and not settings.prompt and factory is None and _is_bundled(settings):
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

    @asynccontextmanager
    async def world(self, example: Example) -> AsyncIterator[World | None]:
        """The world of one question; None in a run without worlds. Raises `WorldFault`."""
        if self.worlds is None:
            yield None
            return
        async with opened_in_time(self.worlds, example, self._timeout_s) as world:
            yield world

    async def solved(self, world: World, answer: str | None) -> bool | None:
        """What the world's check says of an answer; None where it has no check. Raises `WorldFault`."""
        return await world.solved(answer or "", self._timeout_s)

    def tools(
        self,
        architecture: Architecture,
        example: Example,
        meter: Meter,
        recorder: QuestionRecorder | None = None,
        servers: QuestionServers | None = None,
        world: World | None = None,
    ) -> dict[str, Tool]:
        """The architecture's tools for one question, metered and guarded, in the order of its spec."""
        supplies = self._supplies(example, meter)
        state, guarded = PageState(), partial(Deadline, secrets=self._secrets)
        settings_of = architecture.spec.tools
        timed: dict[str, Tool] = {}
        runs = dict.fromkeys(settings.recording for settings in settings_of.values() if settings.recording)
        recorded_in = {run: self._recordings[run].of_task(example.id) for run in runs}
        for name, settings in settings_of.items():
            if settings.world:
                if world is not None and name in world.tools:
                    timed[name] = guarded(world.tools[name], self._limited(settings))
            elif settings.function:
                file, _, function = settings.function.rpartition(":")
                timed[name] = guarded(file_tool(file, function, f"[tools.{name}]"), self._limited(settings))
                timed[name].name = name
            elif factory := self._factory(name, settings, f"[tools.{name}]"):
                timed[name] = guarded(factory.tool(supplies), settings, asks_model="model" in factory.parameters)
                timed[name].name = name  # what a model reads is what it may call
            elif settings.mcp:
                assert servers is not None
                server, remote = servers.server(settings.mcp), settings.mcp_tool or name
                untimed = settings.model_copy(update={"timeout_s": None})  # its start isn't part of a call
                timed[name] = guarded(server.tool(remote, name, settings.timeout_s), untimed)
            elif settings.recording:
                recorded_tool = recorded_in[settings.recording].tool(settings.recorded_tool or name, name)
                timed[name] = guarded(recorded_tool, settings)
            elif name == "LLM":
                llm = LLM(meter, architecture.tool_prompts[name], settings.max_tokens)
                timed[name] = guarded(llm, settings)
            else:
                timed[name] = guarded(self._built_in(name, supplies.pages, state), settings)
        if self.changes_nothing:
            timed = {
                name: LeftAlone(tool) if getattr(tool, "changes_state", False) and not settings_of[name].world else tool
                for name, tool in timed.items()
            }
        if self._faults and self._faults.rate:
            timed = {name: FaultyTool(tool, self._faults, example.id) for name, tool in timed.items()}
        recorded = recorded_tools(recorder, timed) if recorder else timed
        metered = meter.wrap(recorded)
        if (limit := self._result_tokens) is not None:
            metered = {name: ResultLimit(tool, limit) for name, tool in metered.items()}
        bounded = {
            name: ConcurrencyLimit(tool, most) if (most := settings_of[name].max_concurrency) else tool
            for name, tool in metered.items()
        }
        if not any(getattr(tool, "changes_state", False) for tool in timed.values()):
            return bounded
        order = StateOrder()
        return {name: order.of(tool) for name, tool in bounded.items()}

    def _limited(self, settings: ToolSettings) -> ToolSettings:
        """The settings with the run's limit of seconds where they have none."""
        return settings if settings.timeout_s else settings.model_copy(update={"timeout_s": self._timeout_s})

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


def _is_bundled(settings: ToolSettings) -> bool:
    return not (settings.mcp or settings.recording or settings.function or settings.world)


_pages_of = lru_cache(maxsize=128)(DocumentPages)
"""The pages of a question, indexed once for all its architectures."""
