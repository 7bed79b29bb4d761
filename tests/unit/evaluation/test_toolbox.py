"""Tools of a question: made anew, counted, and under their architecture's limits."""

from __future__ import annotations

import errno
import os
import re
from itertools import pairwise
from typing import Any

import anyio
import pytest
from parts import Query, Told, architecture

from rewoo_bench.calls.meter import Meter
from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import HarnessFault, SpecError, ToolError
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.text.redaction import of_environment
from rewoo_bench.tools import LookupArguments, SearchArguments
from rewoo_bench.tools.guards import ConcurrencyLimit, Deadline
from rewoo_bench.types import Document, Example, Message, Request, Tool

pytestmark = pytest.mark.anyio

PAGES = (Document("Kyiv", "Kyiv lies on the Dnieper."),)
DEFAULT = ToolSettings()


def made(*names: str) -> tuple[dict[str, Tool], Meter]:
    meter = Meter({"": ScriptedModel([])})
    return Toolbox().tools(
        architecture(tools=dict.fromkeys(names, DEFAULT)), Example("q", "?", ("a",), PAGES), meter
    ), meter


async def test_an_architecture_gets_the_tools_it_names_in_its_order() -> None:
    tools, _ = made("Lookup", "Calculator", "Search")
    assert list(tools) == ["Lookup", "Calculator", "Search"]
    assert all(isinstance(tool, Tool) and tool.name == name for name, tool in tools.items())


async def test_lookup_reads_in_what_search_found() -> None:
    tools, meter = made("Search", "Lookup")
    await tools["Search"](SearchArguments(query="kyiv"))
    found = await tools["Lookup"](LookupArguments(keyword="dnieper"))
    assert found == "(Result 1 / 1) Kyiv lies on the Dnieper."
    assert [call.name for call in meter.calls] == ["Search", "Lookup"]


async def test_a_slow_tool_fails_after_its_time() -> None:
    async def answer(query: str) -> str:
        await anyio.sleep(60)
        return ""

    with pytest.raises(ToolError, match=r"timeout after 0\.05 s"):
        await Deadline(Told(answer), ToolSettings(timeout_s=0.05))(Query(query="a"))


async def test_a_tools_own_timeout_is_its_failure() -> None:
    async def answer(query: str) -> str:
        raise TimeoutError

    for settings in (DEFAULT, ToolSettings(timeout_s=30)):
        with pytest.raises(ToolError, match=r"^timeout$"):
            await Deadline(Told(answer), settings)(Query(query="a"))


async def test_a_fault_in_a_tools_code_is_a_failed_call_and_told() -> None:
    async def answer(query: str) -> str:
        return {"paris": "a city"}[query]

    tool = Deadline(Told(answer), DEFAULT)
    with (
        pytest.warns(RuntimeWarning, match="raised KeyError, taken as a failed call"),
        pytest.raises(ToolError, match=r"KeyError: 'rome'"),
    ):
        await tool(Query(query="rome"))


async def test_a_tools_result_and_error_have_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "Zx81-9fe2-ffeb")

    async def answer(query: str) -> str:
        if query == "fail":
            raise ToolError(f"refused with {os.environ['SERVICE_TOKEN']}")
        return f"asked with {os.environ['SERVICE_TOKEN']}"

    tool = Deadline(Told(answer), DEFAULT, of_environment())
    assert await tool(Query(query="a")) == "asked with [key]"
    with pytest.raises(ToolError, match=r"refused with \[key\]"):
        await tool(Query(query="fail"))


async def test_a_tool_that_answers_no_text_fails() -> None:
    async def answer(query: str) -> Any:
        return {"title": "Paris"}

    with pytest.raises(ToolError, match="answered with dict, expected text"):
        await Deadline(Told(answer), DEFAULT)(Query(query="paris"))


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3)])
async def test_a_tool_is_called_so_often_at_once(limit: int, most: int) -> None:
    running: list[int] = [0]

    async def answer(query: str) -> str:
        running.append(running[-1] + 1)
        await anyio.sleep(0.02)
        running.append(running[-1] - 1)
        return ""

    guard = ConcurrencyLimit(Told(answer), limit)
    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(guard, Query(query="a"))
    assert max(running) == most


async def test_waiting_for_a_tools_turn_is_no_part_of_its_call() -> None:
    async def answer(query: str) -> str:
        await anyio.sleep(0.1)
        return "page"

    meter = Meter({})
    (tool,) = meter.wrap({"Search": Told(answer)}).values()
    guard: Any = ConcurrencyLimit(tool, 1)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(guard, Query(query="a"))
    starts = [call.start for call in meter.calls]
    assert [later - earlier > 0.09 for earlier, later in pairwise(starts)] == [True, True]


LACKS = [
    OSError(errno.EMFILE, "Too many open files"),
    OSError(errno.ENOSPC, "No space left on device"),
    MemoryError(),
    ModuleNotFoundError("No module named 'tiktoken'"),
]


@pytest.mark.parametrize("lack", LACKS, ids=repr)
async def test_what_this_machine_lacks_is_no_answer_of_a_tool(lack: Exception) -> None:
    async def answer(query: str) -> str:
        raise lack

    with pytest.raises(HarnessFault, match=f"Search: {type(lack).__name__}"):
        await Deadline(Told(answer), DEFAULT)(Query(query="a"))


async def test_nor_where_the_tool_has_made_a_failure_of_it() -> None:
    async def answer(query: str) -> str:
        try:
            raise OSError(errno.EMFILE, "Too many open files")
        except OSError as error:
            raise ToolError("can't reach Wikipedia") from error

    with pytest.raises(HarnessFault, match="out of open files; raise the limit"):
        await Deadline(Told(answer), DEFAULT)(Query(query="a"))


class Pages:
    """A tool of one's own that takes what its parameters name."""

    name = "Pages"
    description = "says what it was given."
    arguments = Query

    def __init__(self, documents: Any, pages: Any, model: Any, shout: bool = False) -> None:
        self.documents, self.pages, self.model = documents, pages, model

    async def __call__(self, arguments: Query) -> str:
        completion = await self.model.complete(Request([Message("user", arguments.query)], role="tool"))
        found = self.pages.find(arguments.query)
        return f"{len(self.documents)} documents, {found and found.title}, {completion.text}"


class NoArguments(Pages):
    arguments = str  # type: ignore[assignment]


class NoDescription(Pages):
    description = ""


class NotAsync(Pages):
    def __call__(self, arguments: Query) -> str:  # type: ignore[override]
        return ""


def needs_gold(answers: Any) -> None: ...


def raising() -> None:
    raise KeyError("no index")


def with_factory(name: str) -> Architecture:
    return architecture(tools={"Mine": ToolSettings(factory=f"{__name__}:{name}")})


async def test_a_factory_gets_what_its_parameters_name_and_its_model_is_metered() -> None:
    meter = Meter({"": ScriptedModel(["read"])})
    tools = Toolbox().tools(with_factory("Pages"), Example("q", "?", ("a",), PAGES), meter)
    assert await tools["Mine"](Query(query="kyiv")) == "1 documents, Kyiv, read"
    assert [(call.kind, call.role) for call in meter.calls] == [("model", "tool"), ("tool", "tool")]
    assert getattr(tools["Mine"], "asks_model", False)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("NoArguments", "which is no tool: 'arguments' must be a pydantic model class"),
        ("NoDescription", "which is no tool: 'name' and 'description' must be texts"),
        ("NotAsync", "which is no tool: it must have a method `async def __call__(self, arguments)`"),
        ("needs_gold", "the factory's unknown parameter 'answers'; available: documents, model, pages"),
        ("raising", "the factory raised KeyError: 'no index'"),
        ("PAGES", "expected a function or a class that makes a tool"),
    ],
)
def test_a_factory_that_makes_no_tool_is_named_before_the_first_question(factory: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)) as caught:
        Toolbox().check(with_factory(factory), Example("q", "?", ("a",), PAGES))
    assert str(caught.value).startswith("architecture 'rewoo': [tools.Mine]: ")
