"""Everything that reads a reply takes a time that grows with its length, whatever stands in it, not with its square."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from parts import Told, toolbox
from pydantic import BaseModel

from rewoo_bench.errors import RewooBenchError
from rewoo_bench.runners.notation.plan_checks import read_checked
from rewoo_bench.runners.notation.plan_formats import complete_steps
from rewoo_bench.runners.notation.replies import answer_in, citations, gives_up, parse_action, read_joined
from rewoo_bench.runners.plan_execute import read_items
from rewoo_bench.runners.programs import program_in, waits
from rewoo_bench.runners.prompts import nearest_sentences
from rewoo_bench.runners.react_native import read_final, written_calls
from rewoo_bench.text.scoring import score
from rewoo_bench.text.tokens import count_tokens, truncate
from rewoo_bench.text.words import index_terms, title_key, without_disambiguation

LENGTH = 40_000
BOUND_S = 4.0  # of the processor; some milliseconds is usual, with the square it was ten seconds


class Inputs(BaseModel):
    """More than a text, so that calls are read by the schema."""

    a: str
    b: int = 0
    c: list[str] = []


TOOLS = toolbox(Told(), Told(name="S", arguments=Inputs))

UNITS = [
    *(" ", "\n", "\r\n", "*", "-", "`", "'", '"', "\\", "[", "{", "(", "()", "_", "a", "é", "1", "1,", "\n1.", "\n *"),
    *("$1 ", "\n1. S(", '\n1. S("a', "a=1,", "a='", "\\'", "\njoin", "\nThought", "\nReplan", ") after $1", '"""'),
    *("#E1", "#E1 = ", "#E1 = S[", '#E1=S["', '#E1=S[{"a":', "[#E1 ", "#E1, ", "{{E1", "after #E1 ", "f'{", "\n```"),
    *("Action: a", "\nAction", "Answer:", "\nAnswer", "final\n", "Thought ", "Plan ", "unknown", "A. ", "\u0301\u0327"),
    *('"name":', '"name":"arguments"', '{"name":', "[{", '[{"a":', '{"a":', "[1,", "&#1", "\x00"),
]
BEGINNINGS = ["", "Action: Search[", "#E1 = Search[", '{"steps":["', '1. Search("', "1. Search(", "#E1 = S[a=", "S(a='"]

READERS: dict[str, Callable[[str], Any]] = {
    "an action": lambda text: parse_action(text, TOOLS),
    "an answer": lambda text: (answer_in(text), citations(text, {}), gives_up(text), read_joined(text)),
    "a plan in text": lambda text: read_checked(text, "text", TOOLS, 8),
    "a plan in JSON": lambda text: read_checked(text, "json", TOOLS, 8),
    "a numbered plan": lambda text: (complete_steps(text), read_checked(text, "numbered", TOOLS, 8)),
    "a plan in words": read_items,
    "a program": lambda text: (waits(text), program_in(text)),
    "a written call": lambda text: written_calls(text, TOOLS) or read_final(text),
    "words": lambda text: (index_terms(text), title_key(without_disambiguation(text))),
    "evidence": lambda text: (nearest_sentences(text, "Oslo", 5), count_tokens(text), truncate(text, 200)),
    "a prediction": lambda text: score(text, ["x"]),
}


@pytest.mark.by_day(4)
@pytest.mark.parametrize("reader", READERS)
def test_a_long_reply_is_read_in_no_time(reader: str, repeats: Callable[[int], int]) -> None:
    """By day every unit with some of the beginnings, and each beginning with some of the units."""
    pairs = list(product(UNITS, BEGINNINGS))
    for unit, beginning in pairs[:: len(pairs) // repeats(len(pairs))]:
        text = beginning + unit * (LENGTH // len(unit)) + "!"
        start = time.process_time()
        with suppress(RewooBenchError):
            READERS[reader](text)
        assert time.process_time() - start < BOUND_S, (beginning, unit)
