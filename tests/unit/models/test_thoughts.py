"""Reasoning in the text of a reply, in each form that models write it in."""

from __future__ import annotations

import pytest

from rewoo_bench.models.hosted.responses import ParsedResponse, split

FINAL = "<|start|>assistant<|channel|>final<|message|>Answer: Oslo<|return|>"
ANALYSIS = "<|channel|>analysis<|message|>Norway?<|end|>"


@pytest.mark.parametrize(
    "text",
    [
        "<think>Norway?</think>\nAnswer: Oslo",
        "<THINK>Norway?</THINK>Answer: Oslo",
        "<thinking>Norway?</thinking>Answer: Oslo",
        "<thought>Norway?</thought>Answer: Oslo",
        "<reasoning>Norway?</reasoning>Answer: Oslo",
        "[THINK]Norway?[/THINK]Answer: Oslo",
        "◁think▷Norway?◁/think▷Answer: Oslo",
        "<|channel>thought Norway?<channel|>Answer: Oslo",
        "<think>Norway?</think><answer>Answer: Oslo</answer>",
        "Norway?</think>Answer: Oslo",
        "Norway?</reasoning>\n\nAnswer: Oslo",
        "Answer: Oslo<think>Norway?</think>",
        ANALYSIS + FINAL,
        ANALYSIS + "<|start|>assistant<|channel|>final <|constrain|>json<|message|>Answer: Oslo<|return|>",
    ],
)
def test_thoughts_are_no_part_of_the_answer(text: str) -> None:
    found = split(text)
    assert (found.text, found.thoughts) == ("Answer: Oslo", "Norway?")
    assert not found.cut_thought


@pytest.mark.parametrize(
    "text",
    ["<think>Norway?", "<thought>Norway?", "<|channel|>analysis<|message|>Norway?"],
)
def test_a_thought_that_was_cut_leaves_no_text(text: str) -> None:
    assert split(text) == ParsedResponse("", "Norway?", cut_thought=True)


def test_a_closing_mark_alone_says_that_the_reply_began_in_a_thought() -> None:
    assert split("Norway?</think>Oslo").late_close
    assert not split("<think>Norway?</think>Oslo").late_close


def test_several_thoughts_are_taken_out() -> None:
    found = split("<think>a</think>Plan: x\n<think>b</think>#E1 = Search[y]")
    assert (found.text, found.thoughts) == ("Plan: x\n#E1 = Search[y]", "a\nb")


def test_a_mark_inside_a_thought_of_another_kind_is_a_part_of_it() -> None:
    assert split("<think>the tag <thought> is odd</think>Oslo") == ParsedResponse("Oslo", "the tag <thought> is odd")


@pytest.mark.parametrize("text", ["Answer: Oslo", "a < b", "Search[<title>]", ""])
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert split(text) == ParsedResponse(text)


def test_many_marks_are_read_in_a_time_that_grows_with_the_text() -> None:
    assert split("<think>" * 200_000, cut=True).cut_thought
