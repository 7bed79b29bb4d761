"""One pinned tokenizer, offline, without litellm; cuts that keep their promises."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.text.tokens import count_messages, count_tokens, truncate
from rewoo_bench.types import Message, ToolCall

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("Paris", 1), ("Plan: find the river.", 6), ("Search[Gabriel García Márquez]", 9), ("日本", 2)],
)
def test_counts_are_pinned(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_a_message_costs_more_than_its_content() -> None:
    plain = Message("user", "Paris")
    calling = Message("assistant", "Paris", tool_calls=(ToolCall("1", "search", {"query": "Seine"}),))
    assert count_messages([plain]) == 1 + 3 + 3
    assert count_messages([plain, plain]) == 2 * (1 + 3) + 3
    assert count_messages([calling]) > count_messages([plain])


def test_counting_needs_neither_litellm_nor_a_setting() -> None:
    code = (
        "import os, sys; from rewoo_bench.text.tokens import count_tokens;"
        "before = dict(os.environ); count_tokens('a');"
        "assert dict(os.environ) == before; assert 'litellm' not in sys.modules; assert 'httpx' not in sys.modules"
    )
    environment = {**os.environ, "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_cut_falls_after_a_word() -> None:
    assert truncate("The Seine flows through Paris", 100) == ("The Seine flows through Paris", False)
    assert truncate("The Seine flows through Paris", 4) == ("The Seine flows", True)
    assert truncate("The Seine flows through Gabrielville", 6) == ("The Seine flows through", True)
    assert truncate("The Seine flows through Paris", 0) == ("", True)


@given(TEXT, st.integers(0, 60))
def test_a_cut_is_a_start_that_fits(text: str, limit: int) -> None:
    start, cut = truncate(text, limit)
    assert text.startswith(start)
    assert count_tokens(start) <= limit
    assert cut == (start != text)
    assert cut == (count_tokens(text) > limit)


@pytest.mark.parametrize("piece", [" ", "\n", "a", "\u0301", "x ", "[", "\ud800"])
def test_a_megabyte_of_anything_is_counted_and_cut(piece: str) -> None:
    text = "[" + piece * (1_000_000 // len(piece)) + "!"
    assert count_tokens(text) > 0
    assert count_tokens(truncate(text, 50)[0]) <= 50
