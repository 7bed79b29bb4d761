"""Plans and programs in the forms of others run as ours; what can't is one fault, which the model is told.

The contents are this project's own. Forms: the plans of Otani et al. 2026 (megagonlabs/cais26-planning-horizon), and
programs for FastMCP's code mode, Pydantic AI's, Anthropic's programmatic tool calling, CodeAct and smolagents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from parts import Told, toolbox
from pydantic import BaseModel

from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.programs import fenced
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.types import Tool, Trajectory

pytestmark = pytest.mark.anyio

FACTS = {
    "Who designed the Turning Torso?": "Santiago Calatrava",
    "In which country was Santiago Calatrava born?": "Spain",
    "Did Santiago Calatrava take less than $5 million, or $1.50 each?": "yes",
}
PAGES = {
    "Kyiv": {"title": "Kyiv", "river": "Dnieper", "people": 2_952_301},
    "Rostov": {"title": "Rostov", "river": "Don", "people": 1_142_162},
}


class Question(BaseModel):
    question: str


async def ask(name: str, lines: Script, *tools: Tool) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    runner = load_architecture(name, style="multihop", max_exemplars=0).runner
    return await runner.run("What is asked?", model=model, tools=toolbox(*tools)), model


def plan(*questions: str, answer: Any, start: int = 0) -> str:
    """A plan as Otani et al. write it: numbered from 0, `$0` for the result of the first step."""
    actions: list[dict[str, Any]] = [{"name": "search", "arguments": {"question": each}} for each in questions]
    actions.append({"name": "finish", "arguments": {"answer": answer}})
    return json.dumps({"steps": [{"index": n, "action": action} for n, action in enumerate(actions, start)]})


DESIGNED, BORN = "Who designed the Turning Torso?", "In which country was $0 born?"


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        (plan(DESIGNED, BORN, answer="$1"), "Spain"),
        (plan(DESIGNED, BORN, answer=["$0", "$1"]), "Santiago Calatrava | Spain"),
        (
            f"```json\n{plan(DESIGNED, 'Did ${0} take less than $5 million, or $1.50 each?', answer='$1')}\n```",
            "yes",
        ),
    ],
)
async def test_a_published_plan_runs(written: str, answer: str) -> None:
    trajectory, model = await ask("rewoo-lazy", [written], Told(FACTS.__getitem__, "search", Question))
    assert (trajectory.answer, trajectory.stop_reason, len(model.requests)) == (answer, "answered", 1)


async def test_a_published_rest_of_a_plan_is_numbered_on_from_the_step_that_failed() -> None:
    search = Told(lambda question: FACTS.get(question, ""), "search", Question)
    lines = [plan(DESIGNED, "Birthplace of $0", answer="$1"), plan(BORN, answer="$2", start=2)]
    trajectory, _ = await ask("rewoo-lazy", lines, search)
    assert (trajectory.answer, trajectory.replans, len(search.asked)) == ("Spain", 1, 3)


PROGRAMS: Mapping[str, tuple[list[str], list[str], int]] = {  # a program for each turn, their outputs, calls of tools
    "FastMCP: a tool by its name, and a result that is returned": (
        [
            'pages = await asyncio.gather(*[call_tool("search", {"query": name}) for name in ["Kyiv", "Rostov"]])\n'
            'first = await call_tool("Search", {"query": "Kyiv"})\n'
            "return [len(pages), first == pages[0]]"
        ],
        ["[2, True]"],
        3,
    ),
    "Pydantic AI: functions with keywords, and the last expression": (
        [
            "import asyncio, json\n\n"
            "async def people(name: str) -> int:\n    return json.loads(await Search(query=name))['people']\n\n"
            'counts = await asyncio.gather(people("Kyiv"), people("Rostov"))\n'
            "max(counts)"
        ],
        ["2952301"],
        2,
    ),
    "CodeAct: plain calls, and variables of earlier turns": (
        ['page = Search("Kyiv")\nprint("Dnieper" in page)', 'other = Search("Rostov")\nprint(len(page) < len(other))'],
        ["True", "False"],
        2,
    ),
    "smolagents: plain calls, helpers and a pattern": (
        [
            "import re\n\n"
            "def river(page: str) -> str:\n"
            '    found = re.search(r\'"river": "(\\w+)"\', page)\n'
            '    return found.group(1) if found else "unknown"\n\n'
            'rivers = {name: river(Search(query=name)) for name in ["Kyiv", "Rostov"]}\n'
            'print("Rivers:", rivers)'
        ],
        ["Rivers: {'Kyiv': 'Dnieper', 'Rostov': 'Don'}"],
        2,
    ),
}


def page(query: str) -> str:
    return json.dumps(PAGES[query])


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_published_program_runs(name: str) -> None:
    programs, outputs, calls = PROGRAMS[name]
    tool = Told(page)
    trajectory, model = await ask("react-code", [*map(fenced, programs), "Answer: Kyiv"], tool)
    assert (trajectory.answer, trajectory.stop_reason, len(tool.asked)) == ("Kyiv", "answered", calls)
    assert [request.messages[-1].content for request in model.requests[1:]] == [f"Output:\n{each}" for each in outputs]


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ('final_answer(Search("Kyiv"))', "name 'final_answer' is not defined; the tools are: Search (line 1)"),
        ('await call_tool("fetch", {"url": "a"})', "name 'fetch' is not defined; the tools are: Search (line 1)"),
        ('const page = await codemode.Search({query: "Kyiv"});', "SyntaxError: "),
    ],
)
async def test_a_published_program_that_cant_run_is_told_why(program: str, told: str) -> None:
    _, model = await ask("react-code", [fenced(program), "Answer: Kyiv"], Told(page))
    assert told in model.requests[1].messages[-1].content


async def test_tags_in_the_place_of_a_fence_are_no_program() -> None:
    tagged = '<execute>\nprint(Search("Kyiv"))\n</execute>'  # CodeAct; smolagents has <code>
    _, model = await ask("react-code", [tagged, "Answer: Kyiv"], Told(page))
    assert "No program found" in model.requests[1].messages[-1].content
