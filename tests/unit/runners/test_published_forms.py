"""Plans and programs in the forms of others run as ours; what can't is one fault, which the model is told.

The contents are this project's own. Forms: the plans of Otani et al. 2026 (megagonlabs/cais26-planning-horizon), and
programs for FastMCP's code mode, Pydantic AI's, Anthropic's programmatic tool calling, CodeAct and smolagents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from parts import Told, toolbox
from pydantic import BaseModel

from rewoo_bench.errors import ToolError
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.programs import fenced
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.types import Tool, Trajectory

pytestmark = pytest.mark.anyio

FACTS = {
    "Who designed the Turning Torso?": "Santiago Calatrava",
    "In which country was Santiago Calatrava born?": "Spain",
    "How long is the Dnieper?": "2,201 km",
    "How long is the Don?": "1,870 km",
    "Which is longer, the Dnieper (2,201 km) or the Don (1,870 km)?": "the Dnieper",
    "Who painted Guernica?": "Pablo Picasso",
    "In which city was Pablo Picasso born?": "Málaga",
    "Which film won the first Oscar for best picture?": "Wings",
    "Did Wings cost less than $5 million, or $1.50 a seat?": "yes",
}
PAGES = {
    "Kyiv": {"title": "Kyiv", "river": "Dnieper", "people": 2_952_301},
    "Rostov": {"title": "Rostov", "river": "Don", "people": 1_142_162},
}


class Question(BaseModel):
    question: str


def fact(question: str) -> str:
    if question not in FACTS:
        raise ToolError(f"nothing is known of {question!r}")
    return FACTS[question]


def page(query: str) -> str:
    if query not in PAGES:
        raise ToolError(f"no page {query!r}")
    return json.dumps(PAGES[query])


async def ask(name: str, lines: Script, *tools: Tool) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    runner = load_architecture(name, style="multihop", max_exemplars=0).runner
    return await runner.run("What is asked?", model=model, tools=toolbox(*tools)), model


async def planned(*plans: str) -> tuple[Trajectory, ScriptedModel, list[str]]:
    """A question to rewoo-lazy with the tools of Otani et al., and what these were asked."""
    tools = [Told(fact, name, Question) for name in ("search", "reasoning")]
    trajectory, model = await ask("rewoo-lazy", list(plans), *tools)
    return trajectory, model, [question for tool in tools for question in tool.asked]


Action = tuple[str, Mapping[str, Any]]


def search(question: str) -> Action:
    return "search", {"question": question}


def reasoning(question: str) -> Action:
    return "reasoning", {"question": question}


def finish(answer: str | Sequence[str]) -> Action:
    return "finish", {"answer": answer}


def plan(*actions: Action, start: int = 0) -> str:
    steps = [
        {"index": index, "action": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(actions, start)
    ]
    return json.dumps({"steps": steps}, ensure_ascii=False)


DESIGNED, BORN = search("Who designed the Turning Torso?"), search("In which country was $0 born?")
PLANS: Mapping[str, tuple[list[str], str, int]] = {  # plans, the answer, calls of tools
    "a bridge": ([plan(DESIGNED, BORN, finish("$1"))], "Spain", 2),
    "a comparison, in a fence": (
        [
            "```json\n"
            + plan(
                search("How long is the Dnieper?"),
                search("How long is the Don?"),
                reasoning("Which is longer, the Dnieper ($0) or the Don ($1)?"),
                finish("$2"),
            )
            + "\n```"
        ],
        "the Dnieper",
        3,
    ),
    "steps appended after one that failed": (
        [
            plan(DESIGNED, search("Birthplace of $0"), reasoning("Country of $1"), finish("$2")),
            plan(BORN, finish("$2"), start=2),
        ],
        "Spain",
        3,
    ),
    "two objectives, and a list of their answers": (
        [
            plan(
                DESIGNED,
                search("Who painted Guernica?"),
                BORN,
                search("In which city was $1 born?"),
                finish(["$2", "$3"]),
            )
        ],
        "Spain | Málaga",
        4,
    ),
    "dollars that are no references": (
        [
            plan(
                search("Which film won the first Oscar for best picture?"),
                reasoning("Did ${0} cost less than $5 million, or $1.50 a seat?"),
                finish("yes"),
            )
        ],
        "yes",
        2,
    ),
}


@pytest.mark.parametrize("name", PLANS)
async def test_a_published_plan_runs(name: str) -> None:
    plans, answer, calls = PLANS[name]
    trajectory, model, asked = await planned(*plans)
    assert (trajectory.answer, trajectory.stop_reason) == (answer, "answered")
    assert (len(model.requests), len(asked)) == (len(plans), calls)


async def test_a_published_plan_names_bundled_tools_in_its_own_spelling() -> None:
    actions: list[Action] = [("search", {"query": "Kyiv"}), ("search", {"query": "$0"}), finish("$1")]
    trajectory, _ = await ask("rewoo-lazy", [plan(*actions)], Told())
    assert (trajectory.answer, trajectory.stop_reason) == ("page of page of Kyiv", "answered")


async def test_a_list_of_answers_ends_the_projects_own_plan_too() -> None:
    steps = [
        {"id": "E1", "tool": "search", "args": {"question": "Who designed the Turning Torso?"}},
        {"id": "E2", "tool": "Finish", "args": {"answer": ["{{E1}}", "Oslo"]}, "depends_on": ["E1"]},
    ]
    trajectory, model, _ = await planned(json.dumps({"steps": steps}))
    assert (trajectory.answer, trajectory.stop_reason) == ("Santiago Calatrava | Oslo", "answered")
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (plan(DESIGNED, BORN), "the plan has to end with Finish"),
        (plan(finish("$0")), None),  # no earlier step: a text, where Otani et al. reject it
        (plan(DESIGNED, ("math", {"question": "2 + 2"}), finish("$1")), "#E2 uses the unknown tool 'math'"),
        (plan(("search", {"query": "Spain"}), finish("$0")), "#E1: 'Spain' doesn't fit search: the field 'question'"),
        (plan(DESIGNED, DESIGNED, start=1).replace('"index": 1, ', ""), "step 1: it names no tool"),
        (plan(DESIGNED, finish([])), "#E2 has an empty argument"),
        ('{"steps": [{"index": 0, "action": {"name": "search", "arguments": ["a"]}}]}', "its args are ['a']"),
    ],
)
async def test_a_published_plan_that_cant_run_is_told_why(broken: str, fault: str | None) -> None:
    trajectory, model, asked = await planned(broken, plan(DESIGNED, finish("$0")))
    assert trajectory.answer == ("Santiago Calatrava" if fault else "$0")
    if fault:
        assert fault in model.requests[1].messages[-1].content
        assert len(asked) == 1


@pytest.mark.parametrize(
    ("rest", "fault"),
    [
        (plan(DESIGNED, finish("$0")), "#E1 was done by an earlier plan; number on from there"),
        (plan(reasoning("Is it $0?"), finish("$1"), start=1), "#E2 uses #E1, which failed"),
    ],
)
async def test_a_published_rest_that_cant_run_is_told_why(rest: str, fault: str) -> None:
    _, model, asked = await planned(plan(search("Who?"), finish("$0")), rest, plan(DESIGNED, finish("$1"), start=1))
    assert fault in model.requests[2].messages[-1].content
    assert asked == ["Who?", DESIGNED[1]["question"]]


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
    "Anthropic: results that are parsed, and a loop that ends early": (
        [
            "import json\n"
            'for name in ["Rostov", "Kyiv", "Odesa"]:\n'
            "    data = json.loads(await Search(name))\n"
            '    if data["river"] == "Dnieper":\n'
            "        print(f\"{data['title']}: {data['people']:,}\")\n"
            "        break"
        ],
        ["Kyiv: 2,952,301"],
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


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_published_program_runs(name: str) -> None:
    programs, outputs, calls = PROGRAMS[name]
    tool = Told(page)
    trajectory, model = await ask("rewoo-code", [fenced("\n".join(programs)), "Answer: Kyiv"], tool)
    assert (trajectory.answer, trajectory.notes["output"]) == ("Kyiv", "\n".join(outputs))
    assert (trajectory.notes["fault"], len(tool.asked)) == ("", calls)
    tool = Told(page)
    trajectory, model = await ask("react-code", [*map(fenced, programs), "Answer: Kyiv"], tool)
    assert (trajectory.answer, trajectory.stop_reason, len(tool.asked)) == ("Kyiv", "answered", calls)
    assert [request.messages[-1].content for request in model.requests[1:]] == [f"Output:\n{each}" for each in outputs]


TOLD: Mapping[str, tuple[str, str]] = {  # a program, its fault
    "smolagents: an answer is a line of its own here": (
        'final_answer(Search("Kyiv"))',
        "NameError: name 'final_answer' is not defined; the tools are: Search (line 1)",
    ),
    "FastMCP: a tool that there isn't": (
        'await call_tool("fetch", {"url": "a"})',
        "NameError: name 'fetch' is not defined; the tools are: Search (line 1)",
    ),
    "FastMCP: a result is a text here": (
        'found = await call_tool("Search", {"query": "Kyiv"})\nfound["result"]',
        "TypeError: string indices must be integers, not 'str' (line 2)",
    ),
    "Anthropic: faults that are gathered": (
        'await asyncio.gather(Search("Kyiv"), return_exceptions=True)',
        "NotImplementedError: gather() does not yet support keyword arguments (line 1)",
    ),
    "Anthropic: a text that isn't JSON": (
        'import json\njson.loads((await Search("Kyiv"))[:9])',
        "JSONDecodeError: Expecting value: line 1 column 10 (char 9) (line 2)",
    ),
    "CodeAct: a package": (
        "import numpy as np\nprint(np.mean([1, 2]))",
        "ModuleNotFoundError: No module named 'numpy' (line 1)",
    ),
    "Cloudflare: TypeScript": (
        'const page = await codemode.Search({query: "Kyiv"});',
        "SyntaxError: ",
    ),
}


@pytest.mark.parametrize("name", TOLD)
async def test_a_published_program_that_cant_run_is_told_why(name: str) -> None:
    program, fault = TOLD[name]
    for architecture in ("rewoo-code", "react-code"):
        lines = [fenced(program), *["Answer: Kyiv"] * 2]
        trajectory, model = await ask(architecture, lines, Told(page))
        told = model.requests[1].messages[-1].content
        assert fault in told
        assert "Traceback" not in told
        assert trajectory.stop_reason in ("answered", "invalid_plan")


async def test_tags_in_the_place_of_a_fence_are_no_program() -> None:
    tagged = '<execute>\nprint(Search("Kyiv"))\n</execute>'  # CodeAct; smolagents has <code>
    _, model = await ask("react-code", [tagged, "Answer: Kyiv"], Told(page))
    assert "No program found" in model.requests[1].messages[-1].content
