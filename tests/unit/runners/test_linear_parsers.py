"""Everything that reads a reply takes a time that grows with its length, whatever stands in it, not with its square."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import Told, toolbox
from pydantic import BaseModel

from rewoo_bench.errors import RewooBenchError
from rewoo_bench.runners.notation.arguments import read_arguments, write_call
from rewoo_bench.runners.notation.plan import canonical, with_hash_signs
from rewoo_bench.runners.notation.plan_checks import read_checked
from rewoo_bench.runners.notation.plan_formats import complete_steps
from rewoo_bench.runners.notation.replies import answer_in, citations, gives_up, parse_action, read_joined
from rewoo_bench.runners.notation.schemas import inputs
from rewoo_bench.runners.plan_execute import read_items
from rewoo_bench.runners.prompts import nearest_sentences
from rewoo_bench.runners.react_native import is_like_a_call, read_final, written_calls
from rewoo_bench.text.scoring import score
from rewoo_bench.text.tokens import count_tokens, truncate
from rewoo_bench.text.words import fold, index_terms, split_sentences, title_key, without_disambiguation

LENGTH = 40_000
BOUND_S = 4.0  # of the processor; some milliseconds is usual, with the square it was ten seconds


class Inputs(BaseModel):
    """More than a text, so that calls are read by the schema."""

    a: str
    b: int = 0
    c: list[str] = []


TOOLS = toolbox(Told(), Told(name="S", arguments=Inputs))

UNITS = [
    *(" ", "\n", "\r\n", "*", "-", "`", ".", "!", ",", "'", '"', "\\", "[", "]", "{", "}", "(", ")", "()", "_"),
    *(
        "$1",
        "${1}",
        "$1 ",
        "\n1. S(",
        '\n1. S("a',
        "a=1,",
        "a='",
        "\\'",
        "\njoin",
        "\nThought",
        "\nReplan",
        ") after $1",
    ),
    *("#E1", "#E1 = ", "#E1 = S[", '#E1=S["', '#E1=S[{"a":', "[#E1", "[#E1 ", "#E1, ", "{{E1", "{E", "after #E1 "),
    *("1", "1.", "1. ", "1,", "\n1.", "\n ", "\n*", " *", "` ", "a", "a.", "a. ", "A. ", "a'", "é", "中", "🙂"),
    *("Action:", "Action ", "Action: a", "\nAction", "Answer:", "\nAnswer", "final\n", "Thought ", "Plan ", "unknown"),
    *('"name"', '"name":', '"name":"arguments"', '"arguments":', '{"name":', "[{", '[{"a":', '{"a":', "[1,"),
    *("\u0301\u0327", "\u0327", "&#1", "\x00", "\u2028"),
]
BEGINNINGS = ["", "Action: Search[", "#E1 = Search[", '{"steps":["', '1. Search("', "1. Search(", "#E1 = S[a=", "S(a='"]

READERS: dict[str, Callable[[str], Any]] = {
    "an action": lambda text: parse_action(text, TOOLS),
    "an answer": answer_in,
    "citations": lambda text: citations(text, {}),
    "giving up": gives_up,
    "a plan in text": lambda text: read_checked(text, "text", TOOLS, 8),
    "a plan in JSON": lambda text: read_checked(text, "json", TOOLS, 8),
    "a numbered plan": lambda text: read_checked(text, "numbered", TOOLS, 8),
    "the beginning of a numbered plan": complete_steps,
    "a joiner's decision": read_joined,
    "a plan in words": read_items,
    "a written call": lambda text: written_calls(text, TOOLS) or read_final(text),
    "inputs": lambda text: read_arguments(text, inputs(Inputs)),
    "a call to write": write_call,
    "references": lambda text: with_hash_signs(canonical(text)),
    "terms": index_terms,
    "a title": lambda text: title_key(without_disambiguation(text)),
    "sentences": split_sentences,
    "evidence": lambda text: nearest_sentences("Oslo is. A city. It has a river.", text, 5),
    "a prediction": lambda text: score(text, ["x"]),
    "tokens": lambda text: (count_tokens(text), truncate(text, 200)),
}


@pytest.mark.by_day(5)
@pytest.mark.parametrize("reader", READERS)
def test_a_long_reply_is_read_in_no_time(reader: str, repeats: Callable[[int], int]) -> None:
    """By day every unit with some of the beginnings, and each beginning with a third of the units."""
    slow = {}
    pairs = list(product(UNITS, BEGINNINGS))
    for unit, beginning in pairs[:: len(pairs) // repeats(len(pairs))]:
        text = beginning + unit * (LENGTH // len(unit)) + "!"
        start = time.process_time()
        with suppress(RewooBenchError):
            READERS[reader](text)
        took_s = time.process_time() - start
        if took_s > BOUND_S:
            slow[beginning, unit] = took_s
            assert len(slow) < 3, slow
    assert not slow


# The patterns as they were, which took a time that grew with the square: what they matched is matched still.
_ITEM = re.compile(r"^[\s*`-]*\d{1,3}[.):][\s*`]*(.+)$", re.MULTILINE)
_CITATION = re.compile(r"\s*\[(?:#E\d{1,9}[\s,;]*)+\]", re.ASCII)
_LIKE_A_CALL = re.compile(r'"name"\s*:.*"(?:arguments|parameters)"\s*:', re.DOTALL)
_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)\s*$")


def texts_of(*pieces: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from([*pieces, " ", "\n", "x"]), max_size=12).map("".join)


@given(texts_of("1", "23", ".", ")", "*", "`", "-", "\r", "\u2028", "y"))
def test_the_same_lines_are_items(text: str) -> None:
    assert read_items(text) == [" ".join(item.split()) for item in _ITEM.findall(text)]


@given(texts_of("[", "]", "#E1", "#E2", ",", ";", "[#E1]", "\u3000"))
def test_the_same_citations_are_taken_out(text: str) -> None:
    assert citations(text, {})[0] == _CITATION.sub("", text).strip()


@given(texts_of('"name"', '"arguments"', '"parameters"', ":", "{"))
def test_the_same_texts_are_like_a_call(text: str) -> None:
    assert is_like_a_call(text) == (_LIKE_A_CALL.search(text) is not None)


@given(texts_of("(", ")", "(planet)", "\u3000"))
def test_the_same_titles_are_disambiguated(text: str) -> None:
    assert without_disambiguation(text) == (_DISAMBIGUATION.sub("", text) or text)


@given(
    st.lists(st.sampled_from(["a", "É", "\u0301", "\u0327", "’", "ﬃ", "İ", "x" * 254, " "]), max_size=9).map("".join)
)
def test_a_text_in_pieces_folds_to_the_same(text: str) -> None:
    whole = unicodedata.normalize("NFKD", text).replace("’", "'")
    assert fold(text) == re.sub("[\u0300-\u036f]", "", whole).casefold()
