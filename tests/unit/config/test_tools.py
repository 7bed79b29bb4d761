"""The tools of a data set take the place of an architecture's, as far as it can use them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from loader_rows import own_set, written
from pydantic import BaseModel

from rewoo_bench import ScriptedModel, evaluate
from rewoo_bench.config.named import tools_for
from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.inputs import read_run_inputs
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.types import Model, Tool, Trajectory

REWOO, REACT = ("Search", "LLM"), ("Search", "Lookup")


@pytest.mark.parametrize(
    ("own", "wanted", "expected"),
    [
        (REWOO, (), "Search LLM"),
        (REWOO, ("Calculator", "LLM"), "Calculator LLM"),
        (REACT, ("Calculator", "LLM"), "Calculator"),
        (REWOO, ("Calculator", "Search", "LLM"), "Calculator Search LLM"),
        (REACT, ("Calculator", "Search", "LLM"), "Calculator Search Lookup"),
        (REACT, ("Search",), "Search Lookup"),
        (REACT, ("Lookup", "Search"), "Lookup Search"),
        ((), ("Calculator", "LLM"), ""),
        (("Wikipedia", "Lookup"), ("Search", "LLM"), "Wikipedia Lookup"),
        (("Search", "Glossary"), ("Calculator",), "Calculator Glossary"),
        (("Search", "Glossary"), ("none",), ""),
    ],
)
def test_an_architecture_has_the_tools_that_the_questions_need(
    own: tuple[str, ...], wanted: tuple[str, ...], expected: str
) -> None:
    assert " ".join(tools_for({name: ToolSettings() for name in own}, wanted)) == expected


class Search:
    """A tool of somebody's own, with the name of a bundled one."""

    def __init__(self) -> None: ...


def test_a_tool_that_somebody_names_takes_the_place_of_one_with_its_name() -> None:
    own = {"Search": ToolSettings(max_concurrency=2, mcp="a server", prompt="x"), "LLM": ToolSettings()}
    mine = ToolSettings(factory="test_tools:Search", max_concurrency=2)
    assert tools_for(own, ["test_tools:Search"]) == {"Search": mine}
    assert tools_for({"Calculator": ToolSettings()}, ["test_tools:Search"])["Search"].factory == mine.factory
    glossary = ToolSettings(factory="theirs:make")
    assert tools_for({"Search": ToolSettings(), "NamesTools": glossary}, ["test_tools:NamesTools"]) == {
        "NamesTools": ToolSettings(factory="test_tools:NamesTools")
    }
    for name in ("rewoo", "react"):
        chosen = load_architecture(f"{name}?tools=test_tools:Search", style="multihop").spec.tools
        assert (list(chosen), chosen["Search"].factory) == (["Search"], mine.factory)


def test_a_tool_may_be_given_a_name() -> None:
    own = {"Search": ToolSettings()}
    named = tools_for(own, ["Search", "Mine=test_tools:Search"])
    assert named["Mine"] == ToolSettings(factory="test_tools:Search")
    assert [*load_architecture("rewoo?tools=Search+Mine=test_tools:Search", style="multihop").spec.tools] == [*named]
    inputs = anyio.run(lambda: read_run_inputs(RunOptions(("rewoo",), tools=("Word=test_tools:Glossary",))))
    assert [*inputs.architectures[0].spec.tools] == ["Word"]


class NamesTools:
    """A runner whose answer is the names of its tools."""

    def __init__(self, prompts: object) -> None: ...

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        return Trajectory(" ".join(tools), "answered")


def set_with_tools(tmp_path: Path, tools: list[str]) -> str:
    folder = own_set(tmp_path)
    with (folder / "dataset.toml").open("a") as file:
        file.write(f"tools = {json.dumps(tools)}\n")
    return str(folder)


def answer(dataset: str, **more: Any) -> str | None:
    (result,) = anyio.run(
        lambda: evaluate(dataset, ["test_tools:NamesTools"], model=ScriptedModel([]), questions=1, **more)
    )
    return result.trajectory.answer


def test_a_run_has_the_tools_of_the_data_set_and_those_of_the_flag_before_them(tmp_path: Path) -> None:
    folder = set_with_tools(tmp_path, ["Calculator", "LLM"])
    assert answer(folder) == "Calculator"  # and needs no corpus
    assert answer(folder, tools=("Lookup", "Calculator"), corpus=written(tmp_path, "c.jsonl", [PAGE])) == (
        "Lookup Calculator"
    )
    assert answer("sample") == "Search Lookup"


@pytest.mark.parametrize(
    ("name", "tools"),
    [("react", ("LLM",)), ("react-native", ("none",)), ("router?parents=rewoo+react", ("LLM",))],
)
def test_an_architecture_that_would_be_left_without_a_tool_is_refused(name: str, tools: tuple[str, ...]) -> None:
    model = ScriptedModel([])
    with pytest.raises(UsageError, match=f"--tools {tools[0]} leaves .* without a tool; add one of Search, Lookup"):
        anyio.run(lambda: evaluate("sample", name, model=model, questions=1, tools=tools))
    assert not model.requests


@pytest.mark.parametrize(
    ("name", "tools", "shots"),
    [
        ("react", ("test_tools:Glossary",), 0),
        ("rewoo", ("Search", "test_tools:Glossary"), 0),  # they call LLM, too
        ("router", ("test_tools:Glossary",), 0),
        ("rewoo", ("Search", "LLM", "test_tools:Glossary"), 6),
        ("react?max_exemplars=2", ("test_tools:Glossary",), 2),
        ("react", ("Calculator",), 6),  # an ablation of bundled tools keeps the rest of the prompt
    ],
)
def test_with_tools_of_ones_own_only_exemplars_whose_tools_are_there_are_shown(
    name: str, tools: tuple[str, ...], shots: int
) -> None:
    (made,) = anyio.run(lambda: read_run_inputs(RunOptions((name,), tools=tools))).architectures
    assert max(map(len, made.prompts.exemplars.values())) == shots
    parents = [len(each.prompts.exemplars["agent"]) for each in made.parents if "agent" in each.prompts.exemplars]
    assert parents in ([], [shots])


@pytest.mark.parametrize("name", ["react", "react-native", "rewoo", "router"])
def test_an_oracle_that_does_not_know_the_tools_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="the oracle plays Search, Calculator and LLM alone") as refused:
        anyio.run(lambda: evaluate("sample", name, model="oracle", questions=1, tools=("test_tools:Glossary",)))
    assert "Glossary" in str(refused.value)


class Term(BaseModel):
    term: str


class Glossary:
    name = "Glossary"
    description = "explains a term."
    arguments = Term

    async def __call__(self, arguments: Term) -> str:
        return arguments.term


PAGE = {"title": "Lund", "text": "A town."}
