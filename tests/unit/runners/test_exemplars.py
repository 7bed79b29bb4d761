"""The bundled descriptions are sound, and every example in a prompt is one that its architecture could do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from gbnf import fits

from rewoo_bench.calls.meter import Meter
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.notation.arguments import show_call
from rewoo_bench.runners.notation.grammars import (
    action_grammar,
    answer_grammar,
    join_grammar,
    numbered_grammar,
    plan_grammar,
    program_grammar,
    words_grammar,
)
from rewoo_bench.runners.notation.plan_checks import plan_faults
from rewoo_bench.runners.notation.plan_formats import Notation, read_plan, write_plan
from rewoo_bench.runners.notation.replies import answer_in, parse_action, read_joined
from rewoo_bench.runners.notation.tools import Finish
from rewoo_bench.runners.prompts import Exemplar, Prompts
from rewoo_bench.runners.react import JsonReAct
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.tools.calculator import calculate, show_number
from rewoo_bench.types import Example, Step, Tool

NAMES = [
    *("cot", "direct", "llmcompiler", "plan-execute", "react", "react-code", "react-json", "react-native"),
    *("rewoo", "rewoo-code", "rewoo-json", "rewoo-lazy", "rewoo-react", "router"),
]
STYLES = {"multihop": 6, "trivia": 1, "arithmetic": 4, "yes_no": 4}  # and the number of exemplars
SHOWN = {  # which prompt of an architecture has the exemplars of each style; hosted agents have none
    "cot": ["answer"],
    "direct": ["answer"],
    "llmcompiler": ["planner"],
    "plan-execute": ["planner"],
    "react": ["agent"],
    "react-json": ["agent"],
    "react-code": ["agent"],
    "rewoo": ["planner"],
    "rewoo-code": ["planner"],
    "rewoo-json": ["planner"],
    "rewoo-lazy": ["planner"],
    "rewoo-react": ["agent", "planner"],
    "router": ["rewoo/planner", "react/agent"],
}


def shots_of(name: str, prompt: str, style: str) -> Sequence[Exemplar]:
    """All exemplars of a prompt, those too that it hasn't by default."""
    option = "?max_exemplars=6" if name in ("direct", "rewoo-json") else ""
    option = "?solver_exemplars=1" if prompt == "solver" else option
    return load_architecture(f"{name}{option}", style=style).prompts.exemplars[prompt]


def questions_of(name: str, prompt: str, style: str) -> list[str]:
    return [exemplar[0].content for exemplar in shots_of(name, prompt, style)]


@pytest.mark.parametrize(("style", "count"), STYLES.items())
def test_all_architectures_see_the_same_example_questions(style: str, count: int) -> None:
    questions = [questions_of(name, prompt, style) for name, prompts in SHOWN.items() for prompt in prompts]
    assert len(questions[0]) == count
    assert all(own == questions[0] for own in questions)


def tools_of(name: str, style: str) -> dict[str, Tool]:
    """The tools of an architecture, and the calculator, which a data set of arithmetic adds."""
    tools = "+".join(load_architecture(name, style=style).spec.tools)
    if style == "arithmetic":
        tools += "+Calculator"
    architecture = load_architecture(f"{name}?tools={tools}", style=style)
    return dict(Toolbox().tools(architecture, Example("q", "?", ("a",)), Meter({"": ScriptedModel([])})))


@pytest.mark.parametrize("style", STYLES)
def test_the_answer_of_a_question_is_the_same_in_every_architecture(style: str) -> None:
    def answers(name: str, prompt: str) -> list[str]:
        return [
            answer_in(exemplar[-1].content.replace("Action: Finish[", "Answer: ").rstrip("]"))
            for exemplar in shots_of(name, prompt, style)
        ]

    direct = answers("direct", "answer")
    assert answers("cot", "answer") == answers("react", "agent") == answers("plan-execute", "planner") == direct
    assert answers("react-code", "agent") == direct
    solver = shots_of("rewoo", "solver", style)
    questions = dict(zip(questions_of("direct", "answer", style), direct, strict=True))
    for asked, answered in solver:
        question = asked.content.splitlines()[0]
        assert style == "trivia" or answer_in(answered.content) == questions[question]


def test_the_yes_no_exemplars_are_balanced_and_arithmetic_has_right_results() -> None:
    shots = shots_of("direct", "answer", "yes_no")
    assert sorted(exemplar[-1].content for exemplar in shots) == ["Answer: no"] * 2 + ["Answer: yes"] * 2
    for exemplar in load_architecture("react", style="arithmetic").prompts.exemplars["agent"]:
        turns = [message.content for message in exemplar]
        for turn, seen in zip(turns[1::2], turns[2::2], strict=False):
            expression = str(parse_action(turn, {"Calculator": None}).arguments)
            assert f"Observation: {show_number(calculate(expression))}" == seen


@pytest.mark.parametrize("style", STYLES)
def test_a_grammar_allows_every_reply_of_the_exemplars(style: str) -> None:
    def replies(name: str, prompt: str) -> list[str]:
        return [
            turn.content for exemplar in shots_of(name, prompt, style) for turn in exemplar if turn.role == "assistant"
        ]

    executed = [action_grammar(tools_of("plan-execute", style), thought=False), words_grammar(8, answer=True)]
    allowed = {
        ("direct", "answer"): [answer_grammar()],
        ("cot", "answer"): [answer_grammar(thought=True)],
        ("rewoo", "planner"): [plan_grammar(tools_of("rewoo", style), 8)],
        ("rewoo", "solver"): [answer_grammar()],
        ("rewoo-code", "planner"): [program_grammar()],
        ("react-code", "agent"): [program_grammar(answer=True)],
        ("react", "agent"): [action_grammar([*tools_of("react", style), "Finish"])],
        ("plan-execute", "planner"): executed,
        ("llmcompiler", "planner"): [numbered_grammar(tools_of("llmcompiler", style), 8)],
        ("llmcompiler", "joiner"): [join_grammar(replan=False)],
        ("llmcompiler", "joiner_replan"): [join_grammar(replan=True)],
    }
    for (name, prompt), grammars in allowed.items():
        for reply in replies(name, prompt):
            assert any(fits(grammar, reply) for grammar in grammars), (name, reply)


@pytest.mark.parametrize("style", STYLES)
def test_a_joiners_exemplar_begins_a_plan_of_the_planners_exemplars(style: str) -> None:
    prompts = load_architecture("llmcompiler", style=style).prompts
    multihop = load_architecture("llmcompiler", style="multihop").prompts
    shots = (*prompts.exemplars["planner"], *multihop.exemplars["planner"])
    plans = {asked.content: written.content for asked, written in shots}
    assert set(prompts.exemplars["joiner"]) <= set(prompts.exemplars["joiner_replan"])
    for asked, decided in prompts.exemplars["joiner_replan"]:
        question, *lines = asked.content.splitlines()
        tasks = "\n".join(line for line in lines if line[:2] in ("1.", "2.", "3."))
        assert plans[question].startswith(f"{tasks}\n")
        joined = read_joined(decided.content)
        assert bool(joined.answer) != bool(joined.missing)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("name", "notation"), [("rewoo", "text"), ("rewoo-json", "json"), ("llmcompiler", "numbered")])
def test_every_example_plan_could_be_run(name: str, notation: Notation, style: str) -> None:
    for question, written in shots_of(name, "planner", style):
        assert (question.role, written.role) == ("user", "assistant")
        plan = read_plan(written.content, notation)
        assert plan_faults(plan, tools_of(name, style), max_steps=8) == []
        assert write_plan(plan, notation) == written.content


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("name", "notation"), [("rewoo-json", "json"), ("llmcompiler", "numbered")])
def test_all_notations_show_the_same_plans(name: str, notation: Notation, style: str) -> None:
    text, others = (shots_of(each, "planner", style) for each in ("rewoo", name))
    for (_, one), (_, other) in zip(text, others, strict=True):
        first, second = read_plan(one.content, "text"), read_plan(other.content, notation)
        assert [step.call for step in first.steps] == [step.call for step in second.steps]
        assert first.dependencies() == second.dependencies()


@pytest.mark.parametrize("style", STYLES)
def test_every_example_turn_could_be_taken(style: str) -> None:
    actions = dict.fromkeys([*tools_of("react", style), "Finish"])
    for exemplar in load_architecture("react", style=style).prompts.exemplars["agent"]:
        turns = [message for message in exemplar if message.role == "assistant"]
        taken = [parse_action(turn.content, actions) for turn in turns]
        assert [action.as_turn() for action in taken] == [turn.content for turn in turns]
        assert [action.tool == "Finish" for action in taken] == [False] * (len(taken) - 1) + [True]
        assert all(turn.content.startswith(("Question:", "Observation:")) for turn in exemplar if turn.role == "user")


@pytest.mark.parametrize("style", STYLES)
def test_a_lazy_plan_is_that_of_rewoo_json_with_its_answer(style: str) -> None:
    plans, lazy = (shots_of(each, "planner", style) for each in ("rewoo-json", "rewoo-lazy"))
    tools = {**tools_of("rewoo-lazy", style), "Finish": Finish()}
    for (_, one), (_, other) in zip(plans, lazy, strict=True):
        plan = read_plan(other.content, "json")
        assert write_plan(plan, "json", bare=True) == other.content
        assert plan_faults(plan, tools, max_steps=8) == []
        first, calls = [[step.call for step in each.steps] for each in (read_plan(one.content, "json"), plan)]
        assert calls[: len(first)] == first
        assert len(calls) - len(first) in (1, 2)  # a step may read the answer, which a solver would
        assert calls[-1] == f"Finish[#E{len(calls) - 1}]"


@pytest.mark.parametrize("style", STYLES)
def test_the_turns_of_react_json_are_those_of_react(style: str) -> None:
    actions = {**tools_of("react-json", style), "Finish": Finish()}
    shots = (load_architecture(each, style=style).prompts.exemplars["agent"] for each in ("react", "react-json"))
    for one, other in zip(*shots, strict=True):
        turns = [message.content for message in other]
        done: list[Step] = []
        for turn, seen in zip(turns[1::2], [*turns[2::2], ""], strict=True):
            written, action = JsonReAct(Prompts({"agent": ""})).read(turn, actions, done)
            assert written == turn
            id_ = f"E{len(done) + 1}"
            done.append(
                Step(
                    id_,
                    tool=action.tool,
                    argument=show_call(action.arguments),
                    observation=seen.removeprefix(f"Result of {id_}: "),
                )
            )
        before = [parse_action(message.content, dict.fromkeys([*actions, "Lookup"])) for message in one[1::2]]
        wanted = [(each.tool, show_call(each.arguments)) for each in before if each.tool != "Lookup"]
        assert [(step.tool, step.argument) for step in done] == wanted
