"""The bundled descriptions are sound, and every example in a prompt is one that its architecture could do."""

from __future__ import annotations

import pytest

from rewoo_bench.config.specs import ArchitectureSpec, DatasetSpec, read_spec
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.metering.meter import Meter
from rewoo_bench.notation.plan_checks import plan_faults
from rewoo_bench.notation.plan_formats import Notation, read_plan, write_plan
from rewoo_bench.notation.replies import parse_action
from rewoo_bench.paths import bundled_folder
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import Example, Tool

NAMES = ["cot", "direct", "plan-execute", "react", "react-native", "rewoo", "rewoo-json", "rewoo-react"]
SHOWN = {  # which prompt of an architecture has the six multi-hop exemplars; hosted agents have none
    "cot": ["answer"],
    "direct": ["answer"],
    "plan-execute": ["planner"],
    "react": ["agent"],
    "rewoo": ["planner"],
    "rewoo-json": ["planner"],
    "rewoo-react": ["agent", "planner"],
}


def test_every_bundled_description_is_sound() -> None:
    architectures = sorted(bundled_folder("architectures").glob("*/architecture.toml"))
    datasets = sorted(bundled_folder("datasets").glob("*/dataset.toml"))
    assert [read_spec(path, ArchitectureSpec).name for path in architectures] == NAMES
    assert [read_spec(path, DatasetSpec).name for path in datasets] == ["chain", "hotpotqa", "sample", "triviaqa"]


@pytest.mark.parametrize(("style", "count"), [("multihop", 6), ("trivia", 1)])
def test_all_architectures_see_the_same_example_questions(style: str, count: int) -> None:
    questions = [
        [exemplar[0].content for exemplar in load_architecture(name, style=style).prompts.exemplars[prompt]]
        for name, prompts in SHOWN.items()
        for prompt in prompts
    ]
    assert len(questions[0]) == count
    assert all(own == questions[0] for own in questions)


def tools_of(name: str, style: str) -> dict[str, Tool]:
    made = Toolbox().tools(
        load_architecture(name, style=style), Example("q", "?", ("a",)), Meter({"": ScriptedModel([])})
    )
    return dict(made)


@pytest.mark.parametrize("style", ["multihop", "trivia"])
@pytest.mark.parametrize(("name", "notation"), [("rewoo", "text"), ("rewoo-json", "json")])
def test_every_example_plan_could_be_run(name: str, notation: Notation, style: str) -> None:
    for question, written in load_architecture(name, style=style).prompts.exemplars["planner"]:
        assert (question.role, written.role) == ("user", "assistant")
        plan = read_plan(written.content, notation)
        assert plan_faults(plan, tools_of(name, style), max_steps=8) == []
        assert write_plan(plan, notation) == written.content


@pytest.mark.parametrize("style", ["multihop", "trivia"])
def test_both_notations_show_the_same_plans(style: str) -> None:
    text, as_json = (
        load_architecture(name, style=style).prompts.exemplars["planner"] for name in ("rewoo", "rewoo-json")
    )
    for (_, one), (_, other) in zip(text, as_json, strict=True):
        first, second = read_plan(one.content, "text"), read_plan(other.content, "json")
        assert [step.call for step in first.steps] == [step.call for step in second.steps]
        assert first.dependencies() == second.dependencies()


@pytest.mark.parametrize("style", ["multihop", "trivia"])
def test_every_example_step_of_plan_execute_could_be_done(style: str) -> None:
    actions = tools_of("plan-execute", style)
    for exemplar in load_architecture("plan-execute", style=style).prompts.exemplars["planner"]:
        turns = [message.content for message in exemplar]
        for plan, step, action, observation in zip(*(turns[start::4] for start in (1, 2, 3, 4)), strict=False):
            assert plan.startswith(f"Plan:\n1. {step.removeprefix('Step: ')}")
            assert parse_action(action, actions).tool in actions
            assert observation.startswith("Observation: ")
        assert turns[-1].startswith("Answer: ")


@pytest.mark.parametrize("style", ["multihop", "trivia"])
def test_every_example_turn_could_be_taken(style: str) -> None:
    actions = dict.fromkeys([*tools_of("react", style), "Finish"])
    for exemplar in load_architecture("react", style=style).prompts.exemplars["agent"]:
        turns = [message for message in exemplar if message.role == "assistant"]
        taken = [parse_action(turn.content, actions) for turn in turns]
        assert [action.render() for action in taken] == [turn.content for turn in turns]
        assert [action.tool == "Finish" for action in taken] == [False] * (len(taken) - 1) + [True]
        assert all(turn.content.startswith(("Question:", "Observation:")) for turn in exemplar if turn.role == "user")
