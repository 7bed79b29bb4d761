"""`--tools my_module:make_tool` in every bundled architecture: a tool with two inputs, and one with none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import rewoo_bench
from rewoo_bench import ScriptedModel
from rewoo_bench.errors import SpecError
from rewoo_bench.types import Completion, ToolCall

pytestmark = pytest.mark.anyio


class City(BaseModel):
    city: str
    days: int = 1


class Nothing(BaseModel):
    pass


class Weather:
    name = "weather"
    description = "tells the weather."
    arguments: type[BaseModel] = City

    async def __call__(self, arguments: City) -> str:
        return f"{arguments.city}: rain for {arguments.days} days"


class Now:
    name = "clock-now"
    description = "tells the time."
    arguments: type[BaseModel] = Nothing

    async def __call__(self, arguments: Nothing) -> str:
        return "It is noon."


def make_weather() -> Weather:
    return Weather()


TOOLS = (f"{__name__}:make_weather", f"{__name__}:Now")
PLAN = "Plan: a\n#E1 = clock-now[]\nPlan: b\n#E2 = weather[city=Oslo, days=3]"
JSON = {
    "steps": [
        {"id": "E1", "tool": "clock-now", "args": {}},
        {"id": "E2", "tool": "weather", "args": {"city": "Oslo", "days": 3}},
    ]
}
CALLS = (ToolCall("1", "clock-now", {}), ToolCall("2", "weather", {"city": "Oslo", "days": 3}))
TURNS = [
    "Thought: a\nAction: clock-now[]",
    'Thought: b\nAction: weather["Oslo", 3]',
    "Thought: c\nAction: Finish[rain]",
]
SCRIPTS: Mapping[str, Any] = {
    "rewoo": [PLAN, "Answer: rain"],
    "rewoo-json": [json.dumps(JSON), "Answer: rain"],
    "rewoo-react": [PLAN, "Answer: rain"],
    "llmcompiler": ['1. clock-now()\n2. weather("Oslo", 3)\n3. join()', "Thought: x\nAnswer: rain"],
    "react": TURNS,
    "react-native": [Completion("", tool_calls=CALLS), "Answer: rain"],
    "plan-execute": [
        "Plan:\n1. time\n2. weather",
        "Action: clock-now[]",
        "Plan:\n1. weather",
        'Action: weather[{"city": "Oslo", "days": 3}]',
        "Answer: rain",
    ],
    "rewoo-code": ['```python\nprint(await clock_now(), await weather("Oslo", days=3))\n```', "Answer: rain"],
    "react-code": [
        "Thought: a\n```python\nnow = await clock_now()\n```",
        'Thought: b\n```python\nnow, await weather(city="Oslo", days=3)\n```',
        "Thought: c\nAnswer: rain",
    ],
    "router": [PLAN, "Answer: rain"],
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_tools_of_ones_own_are_shown_to_and_called_by_every_architecture(name: str) -> None:
    model = ScriptedModel(SCRIPTS[name])
    (result,) = await rewoo_bench.evaluate("sample", name, model=model, questions=1, tools=TOOLS)
    assert [step.observation for step in result.trajectory.steps if step.observation] == [
        "It is noon.",
        "Oslo: rain for 3 days",
    ]
    assert result.trajectory.answer == "rain"
    asked = model.requests[0]
    shown = asked.messages[0].content + str([tool.arguments.model_json_schema() for tool in asked.tools])
    assert "clock-now" in shown.replace("clock_now", "clock-now") + str([tool.name for tool in asked.tools])
    assert "days" in shown
    assert "integer" in shown or "days: int" in shown


async def test_the_manifest_has_the_import_paths(tmp_path: Path) -> None:
    model = ScriptedModel(SCRIPTS["rewoo"])
    await rewoo_bench.evaluate("sample", "rewoo", model=model, questions=1, tools=TOOLS, out=tmp_path / "run")
    facts = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["architectures"][0]["tools"]
    assert facts == {"weather": {"factory": TOOLS[0]}, "clock-now": {"factory": TOOLS[1]}}


def finish(documents: object) -> None:
    """Has the name of the action that ends a question."""


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{__name__}:finish", r"\[tools.finish\]: 'finish' is the action that ends a question of ReAct"),
        ("no_module_of_that_name:make", "--tools: can't import 'no_module_of_that_name:make'"),
        (f"{__name__}:make", f"--tools: module {__name__!r} has no 'make'"),
        ("Serch", "did you mean 'Search'.*or give an import path 'module:function'"),
        (f"{__name__}:City", "\\[tools.City\\]: the factory"),
    ],
)
async def test_what_makes_no_tool_is_refused_by_name(path: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        await rewoo_bench.evaluate("sample", "rewoo", model=ScriptedModel([]), questions=1, tools=(path,))


@pytest.mark.parametrize("call", ["weather[city=Oslo, days=#E1]", 'weather[{"city": "#E1 Oslo", "days": #E1}]'])
async def test_what_a_step_found_becomes_the_number_that_the_schema_asks_for(call: str) -> None:
    plan = f"Plan: a\n#E1 = Calculator[1 + 2]\nPlan: b\n#E2 = {call}"
    tools = ("Calculator", TOOLS[0])
    model = ScriptedModel([plan, "Answer: rain"])
    (result,) = await rewoo_bench.evaluate("sample", "rewoo", model=model, questions=1, tools=tools)
    assert result.trajectory.steps[1].observation.endswith("Oslo: rain for 3 days")
