"""Makes the tools of a question, anew each time, since lookup remembers the page found last.

runner -> places (so many calls at once) -> meter -> recorder -> faults on purpose -> deadline -> tool
"""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

import anyio

from rewoo_bench.config.specs import ToolSettings, import_object
from rewoo_bench.errors import RewooBenchError, SpecError, ToolError, unknown
from rewoo_bench.evaluation.crashes import RUN_STOPPING, deciding, harness_fault
from rewoo_bench.metering.meter import Meter
from rewoo_bench.metering.recorder import QuestionRecorder
from rewoo_bench.models.hosted.rate_limiter import take
from rewoo_bench.redaction import redact
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.tools import Calculator, DocumentPages, Lookup, Pages, PageState, Search, Wikipedia
from rewoo_bench.tools.faults import Faults, FaultyTool
from rewoo_bench.tools.llm import LLM
from rewoo_bench.tools.wrapper import WrappedTool
from rewoo_bench.types import Example, Tool

if TYPE_CHECKING:
    import httpx

BUILT_IN = ("Search", "Lookup", "LLM", "Calculator", "Wikipedia")


class Toolbox:
    """The tools that architectures may name. `pages` is a corpus that replaces the questions' own documents,
    `faults` are those to inject.

    A context manager: connections to live Wikipedia are shared by all questions and closed at the end.
    """

    def __init__(self, pages: Pages | None = None, faults: Faults | None = None) -> None:
        self._pages = pages
        self._faults = faults
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Toolbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            with anyio.CancelScope(shield=True):
                await client.aclose()

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

    def tools(
        self,
        architecture: Architecture,
        example: Example,
        meter: Meter,
        recorder: QuestionRecorder | None = None,
    ) -> dict[str, Tool]:
        """The architecture's tools for one question, metered and guarded, in the order of its spec."""
        pages = DocumentPages(example.documents) if self._pages is None else self._pages
        state = PageState()
        made: dict[str, Tool] = {}
        for name, settings in architecture.spec.tools.items():
            if settings.factory:
                made[name] = import_object(settings.factory, f"[tools.{name}]")()
            elif name == "LLM":
                made[name] = LLM(meter, architecture.tool_prompts[name], settings.max_tokens)
            else:
                made[name] = self._built_in(name, pages, state)
        settings_of = architecture.spec.tools
        timed: dict[str, Tool] = {name: Deadline(tool, settings_of[name]) for name, tool in made.items()}
        if self._faults and self._faults.rate:
            timed = {name: FaultyTool(tool, self._faults, example.id) for name, tool in timed.items()}
        recorded = recorder.tools(timed) if recorder else timed
        metered = meter.wrap(recorded)
        return {name: limited(tool, settings_of[name].max_concurrency) for name, tool in metered.items()}

    def _built_in(self, name: str, pages: Pages, state: PageState) -> Tool:
        if name == "Search":
            return Search(pages, state)
        if name == "Lookup":
            return Lookup(state)
        if name == "Calculator":
            return Calculator()
        return Wikipedia(self._shared_client(), state=state)

    def _shared_client(self) -> httpx.AsyncClient:
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient()
        return self._client


_LONGEST_FAULT = 300  # characters of an exception's text; it goes into prompts


def limited(tool: Tool, max_concurrency: int | None) -> Tool:
    """The tool, with at most so many of its calls running at once; None is no limit."""
    return tool if max_concurrency is None else Places(tool, max_concurrency)


class Places(WrappedTool):
    """A tool of which at most `max_concurrency` calls run at once."""

    def __init__(self, tool: Tool, max_concurrency: int) -> None:
        super().__init__(tool)
        self._limiter = anyio.CapacityLimiter(max_concurrency)

    async def __call__(self, arguments: Any) -> str:
        await take(self._limiter)
        try:
            return await self._tool(arguments)
        finally:
            self._limiter.release()


class Deadline(WrappedTool):
    """A tool whose calls fail as `ToolError`, in time, whatever the tool raises: no question ends by a tool's fault.

    What is no `RewooBenchError` is a fault in the tool's own code: it is warned of, once for each type.
    Raises `HarnessFault` where this machine is out of something: that says nothing of the tool.
    """

    def __init__(self, tool: Tool, settings: ToolSettings) -> None:
        super().__init__(tool)
        self._timeout_s = settings.timeout_s

    async def __call__(self, arguments: Any) -> str:
        try:
            async with asyncio.timeout(self._timeout_s):  # anyio's takes nearly three times as long
                text: object = await self._tool(arguments)
        except TimeoutError:
            after = "" if self._timeout_s is None else f" after {self._timeout_s:g} s"
            raise ToolError(f"timeout{after}") from None
        except Exception as error:
            if isinstance(error, RUN_STOPPING):
                raise
            if fault := harness_fault(deciding(error), self.name):
                raise fault from error
            if isinstance(error, RewooBenchError):
                raise
            kind = type(error).__name__
            warnings.warn(f"the tool {self.name!r} raised {kind}, taken as a failed call", RuntimeWarning, stacklevel=2)
            said = " ".join(redact(str(error)).split())
            raise ToolError(f"{kind}: {said[:_LONGEST_FAULT]}" if said else kind) from error
        if not isinstance(text, str):
            raise ToolError(f"{self.name} answered with {type(text).__name__}, expected text")
        return text
