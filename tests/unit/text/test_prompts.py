"""Prompts of one conversation: what is known of a beginning isn't worked out again."""

from __future__ import annotations

from rewoo_bench.text.prompts import Prompt, Prompts, folded
from rewoo_bench.types import Message

ASK, SAY, ON = Message("user", "2 + 2?"), Message("assistant", "4"), Message("user", "And 3?")


def read_by(prompts: Prompts[Message], *prompt: Message) -> tuple[int, list[str]]:
    """The characters of a prompt, and the messages that were read for it."""
    read: list[str] = []

    def step(characters: int, message: Message) -> int:
        read.append(message.content)
        return characters + len(message.content)

    return folded(prompts.of(list(prompt)), "characters", step, 0), read


def test_a_prompt_that_goes_on_reads_what_is_new() -> None:
    prompts = Prompts[Message]()
    assert read_by(prompts, ASK) == (6, ["2 + 2?"])
    assert read_by(prompts, ASK, SAY, ON) == (13, ["4", "And 3?"])
    assert read_by(prompts, ASK, SAY) == (7, [])


def test_prompts_that_part_have_their_own_values() -> None:
    prompts = Prompts[Message]()
    read_by(prompts, ASK, SAY, ON)
    assert read_by(prompts, ASK, Message("assistant", "four")) == (10, ["four"])
    assert read_by(prompts, ASK, SAY, ON, SAY) == (14, ["4"])


def test_a_prompt_is_the_sequence_of_its_messages() -> None:
    prompt = Prompt[Message]().with_message(ASK)
    longer, other = prompt.with_message(SAY), prompt.with_message(ON)
    assert (list(prompt), list(longer), list(other)) == ([ASK], [ASK, SAY], [ASK, ON])
    assert (longer[-1], len(longer), longer[1:], longer == (ASK, SAY)) == (SAY, 2, [SAY], True)
    assert list(longer.beginning(1)) == [ASK]
