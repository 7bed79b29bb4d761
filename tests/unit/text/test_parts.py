"""What a prompt is made of: the parts add up to the whole, and each is where it belongs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rewoo_bench
from rewoo_bench.evaluation.folder import Result
from rewoo_bench.text.tokens import PromptParts, count_messages, count_prompt, count_tokens, prompt_parts_of
from rewoo_bench.types import Message, ToolCall

QUESTION = "Which sea does Kyiv's river flow into?"
SHOTS = [Message("user", "Question: Where?"), Message("assistant", "Answer: Here")]
SYSTEM = Message("system", "Answer.")
PUT = Message("user", f"Question: {QUESTION}")


def size(*messages: Message) -> int:
    return count_messages(messages) - count_messages([])


def test_a_turn_of_react_is_context_exemplars_question_and_a_growing_trace() -> None:
    trace = [Message("assistant", "Action: Search[Kyiv]"), Message("user", "Observation: Kyiv is a city.")]
    assert prompt_parts_of([SYSTEM, *SHOTS, PUT, *trace], QUESTION) == PromptParts(
        count_messages([SYSTEM]), size(*SHOTS), size(PUT), size(trace[0]), size(trace[1])
    )


def test_a_solvers_plan_and_evidence_are_told_from_the_question_around_them() -> None:
    found = "Plan: look\n#E1 = Search[Kyiv]\nEvidence: Kyiv is a city."
    parts = prompt_parts_of(
        [SYSTEM, Message("user", f"Question: {QUESTION}\n\n{found}\n\nQuestion: {QUESTION}")], QUESTION
    )
    assert (parts.found, parts.exemplars, parts.written) == (count_tokens(found), 0, 0)
    assert parts.question >= 2 * count_tokens(QUESTION)


MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from(["system", "user", "assistant", "tool"]),
        st.sampled_from(["", "Be brief.", PUT.content, f"{QUESTION} Evidence: a city.", "Answer: Neva"]),
        st.sampled_from([(), (ToolCall("1", "Search", {"query": "Kyiv"}),)]),
    ),
    max_size=6,
)


@given(MESSAGES, st.sampled_from([QUESTION, "", "Not asked?"]))
def test_the_parts_add_up_to_the_prompt(messages: list[Message], question: str) -> None:
    assert sum(prompt_parts_of(messages, question)) == count_prompt(messages) == count_messages(messages)


@pytest.mark.anyio
async def test_the_parts_of_every_call_add_up_to_its_input() -> None:
    """The oracle counts with the same tokenizer, so its input is the whole to the token."""
    names = [
        "rewoo",
        "rewoo-json",
        "react",
        "react-native",
        "rewoo-react",
        "llmcompiler",
        "plan-execute",
        "rewoo-code",
        "react-code",
        "direct",
        "cot",
    ]
    names += ["router", "router?policy=model"]
    results: Sequence[Result] = await rewoo_bench.evaluate("sample", names, model="oracle", questions=5)
    calls = [call for result in results for call in result.calls if call.kind == "model"]
    assert len(calls) > 50
    assert [sum(call.prompt_parts) for call in calls] == [call.usage.input_tokens for call in calls]
