"""ReAct as a conversation: the trace grows, and every question ends in one of its ways."""

from __future__ import annotations

from typing import Any

import pytest
from parts import said, toolbox

from rewoo_bench.errors import ActionError
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.runners.notation.replies import Action, answer_in, parse_action
from rewoo_bench.runners.react import ReAct, ReActSettings
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.text.model_output import noting_repairs
from rewoo_bench.types import Message, Trajectory

PROMPTS = load_architecture("react", style="multihop").prompts
SEARCH = "Thought: find it\nAction: Search[Hermitage]"
FINISH = "Thought: I know it\nAction: Finish[Neva]"
QUESTION = "Which river flows through the Hermitage's city?"
ACTIONS = {"Search": None, "Finish": None}


async def ask(lines: Script, *tools: Any, **settings: Any) -> tuple[Trajectory, ScriptedModel]:
    model = ScriptedModel(lines)
    runner = ReAct(PROMPTS, ReActSettings(**settings))
    return await runner.run(QUESTION, model=model, tools=toolbox(*tools)), model


@pytest.mark.anyio
async def test_every_turn_sends_the_whole_trace() -> None:
    again = SEARCH.replace("Hermitage", "Neva")
    trajectory, model = await ask([SEARCH, again, FINISH])
    start, second, third = (request.messages for request in model.requests)
    seen = (Message("assistant", SEARCH), Message("user", "Observation: page of Hermitage"))
    assert start[-1] == Message("user", f"Question: {QUESTION}")
    assert second == (*start, *seen)
    assert third == (*start, *seen, Message("assistant", again), Message("user", "Observation: page of Neva"))
    assert (trajectory.answer, trajectory.stop_reason) == ("Neva", "answered")
    assert [step.tool for step in trajectory.steps] == ["Search", "Search", "Finish"]


@pytest.mark.anyio
async def test_an_invented_observation_is_not_told_back() -> None:
    invented = f"{SEARCH}\nObservation: It lies on the Tiber.\nThought: so\nAction: Finish[Tiber]"
    trajectory, model = await ask([invented, f"{FINISH} Observation: yes"])
    assert trajectory.answer == "Neva"
    assert "Tiber" not in said(model.requests[1].messages)


@pytest.mark.anyio
async def test_the_turns_have_a_limit() -> None:
    trajectory, model = await ask([SEARCH] * 3, max_steps=3)
    assert (trajectory.answer, trajectory.stop_reason, len(model.requests)) == (None, "step_limit", 3)
    assert len(trajectory.steps) == 3


@pytest.mark.anyio
@pytest.mark.parametrize("reply", [FINISH, "Finish[Neva]", "Answer: Neva", "Neva"])
async def test_where_the_limit_asks_for_the_best_answer_it_is_marked_as_partial(reply: str) -> None:
    trajectory, model = await ask([SEARCH] * 2 + [reply], max_steps=2, answer_at_limit=True)
    assert (trajectory.answer, trajectory.stop_reason) == ("Neva", "step_limit")
    assert trajectory.notes["partial_answer"] is True
    asked = model.requests[2].messages[-1].content
    assert asked.endswith("\nNo turn is left. Use Finish now, with the best answer there is.")
    assert '"Search["' not in (model.requests[2].grammar or "")


@pytest.mark.anyio
async def test_the_guard_tells_a_loop_once() -> None:
    trajectory, model = await ask([SEARCH] * 4 + [FINISH], repeat_guard="nudge")
    plain = "Observation: page of Hermitage"
    nudged = f"{plain}\nThese turns repeat themselves and bring nothing new. Do something else, or answer."
    assert [request.messages[-1].content for request in model.requests[1:]] == [plain, plain, nudged, plain]
    assert trajectory.answer == "Neva"


@pytest.mark.anyio
async def test_the_guard_ends_a_question_whose_turns_repeat_themselves() -> None:
    other = SEARCH.replace("Hermitage", "Neva")
    trajectory, model = await ask([SEARCH, other, SEARCH, other], repeat_guard="stop", answer_at_limit=True)
    assert (trajectory.answer, trajectory.stop_reason, len(model.requests)) == (None, "repeated", 4)


@pytest.mark.anyio
async def test_a_turn_without_an_action_is_told_so_once() -> None:
    trajectory, model = await ask(["I'd search.", FINISH])
    complaint = "Observation: No action found. Write one line 'Action: Tool[input]' with one of: Search, Finish."
    assert model.requests[1].messages[-2:] == (Message("assistant", "I'd search."), Message("user", complaint))
    assert trajectory.answer == "Neva"
    assert (trajectory.steps[0].failed, trajectory.steps[0].tool) == (True, None)


@pytest.mark.anyio
async def test_the_next_one_ends_the_question() -> None:
    trajectory, model = await ask(["I'd search.", SEARCH, "I'd finish."])
    assert (trajectory.answer, trajectory.stop_reason, len(model.requests)) == (None, "unparsable", 3)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (SEARCH, Action("find it", "Search", "Hermitage")),
        ("Thought 1: find it\nAction 1: search [Hermitage]", Action("find it", "Search", "Hermitage")),
        ("**Thought:** find it\n**Action:** `Search[Hermitage]`", Action("find it", "Search", "Hermitage")),
        ("find it\nAction: Search[Hermitage", Action("find it", "Search", "Hermitage")),
        ("Action: Search[List [of] rivers]", Action("", "Search", "List [of] rivers")),
        ("Thought: find it Action: Search[a] Observation: b", Action("find it", "Search", "a")),
        ("Thought: the\nfirst\nAction: Finish[10:30]\nAction: Search[b]", Action("the first", "Finish", "10:30")),
    ],
)
def test_a_turn_is_read_where_its_intent_is_plain(text: str, action: Action) -> None:
    assert parse_action(text, ACTIONS) == action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Thought: find it\nAction: Search\nAction Input: Oslo (city)", Action("find it", "Search", "Oslo (city)")),
        ('Action: Search\nAction Input: {"query": "Oslo"}\nObservation: x', Action("", "Search", {"query": "Oslo"})),
        ("Thought: I know it.\nFinal Answer: Rome, Italy", Action("I know it.", "Finish", "Rome, Italy")),
        ('Action: Search("Oslo (city)")', Action("", "Search", "Oslo (city)")),
        ("Final Answer: Rome\nAction: Search[a]", Action("Final Answer: Rome", "Search", "a")),
    ],
)
def test_the_forms_of_others_are_read_where_ours_isnt_there(text: str, action: Action) -> None:
    assert parse_action(text, ACTIONS) == action


@pytest.mark.anyio
async def test_a_turn_in_anothers_form_is_noted_and_goes_on_in_ours() -> None:
    with noting_repairs() as repairs:
        trajectory, model = await ask(["Thought: look\nAction: Search\nAction Input: Oslo", "Final Answer: Rome"])
    assert (trajectory.answer, trajectory.stop_reason) == ("Rome", "answered")
    assert trajectory.steps[0].argument == "Oslo"
    assert model.requests[1].messages[-2].content == "Thought: look\nAction: Search[Oslo]"
    assert {repair["place"] for repair in repairs} == {"turn 1", "turn 2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "No action found."),
        ("Action: Ask\nAction Input: him", "There is no action 'Ask'. The actions are: Search, Finish."),
        ("Action: Search Hermitage", "No action found."),
        ("Action: Finish[ ]", "The action 'Finish' has no input between its brackets."),
    ],
)
def test_another_turn_is_told_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ActionError) as caught:
        parse_action(text, ACTIONS)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("**Answer:**\nOslo", "Oslo"),
        ("Answer: Bergen\nAnswer:\nOslo", "Oslo"),
        ("Answer:\nThought: I don't know.", ""),
        ("Answer:\n```python\nprint(1)\n```", ""),
    ],
)
def test_an_answer_may_stand_on_the_line_below_its_name(reply: str, answer: str) -> None:
    assert answer_in(reply) == answer
