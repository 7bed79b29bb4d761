"""Prompt caches played on calls: what they find, against a plain reading of their rules."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from repricing_runs import text

from rewoo_bench.config.price_sheets import CacheRule
from rewoo_bench.repricing.prefix_cache import AutomaticCache, ExplicitCache, Found, PrefixTimes
from rewoo_bench.repricing.recorded import Prompt, RecordedCall
from rewoo_bench.repricing.slot_cache import SlotCache, common_prefix


def rule(kind: str, **facts: Any) -> CacheRule:
    return CacheRule(kind=kind, source="made up", as_of=date(2026, 11, 24), **facts)  # type: ignore[arg-type]


def call(
    start: float, *texts: str, marks: tuple[int, ...] = (), end: float | None = None, answer: str = ""
) -> RecordedCall:
    """A call with a token for each four characters."""
    prompt = Prompt(tuple(map(hash, texts)), texts, marks)
    return RecordedCall(0, start, start if end is None else end, prompt.characters // 4, 1, prompt, answer)


TEXTS = st.lists(
    st.sampled_from("abc").flatmap(lambda c: st.integers(1, 400).map(lambda n: c * n)), min_size=1, max_size=4
)


@given(st.lists(TEXTS, min_size=1, max_size=6), st.sampled_from([1, 16, 128]))
def test_an_automatic_cache_finds_no_more_than_there_is_and_little_less(prompts: list[list[str]], block: int) -> None:
    """The longest prefix of whole texts that all earlier prompts have is found but for its last chunk and block."""
    cache = AutomaticCache([rule("automatic", block_tokens=block)])
    for number, texts in enumerate(prompts):
        sent = call(float(number), *texts)
        (found,) = cache.send(sent)
        most = max((common_prefix("".join(texts), "".join(before)) for before in prompts[:number]), default=0)
        alike = max((_same(texts, before) for before in prompts[:number]), default=0)
        assert found.cached * 4 <= most + 4
        assert found.cached % block == 0
        assert found.cached + block + 1 > min(alike // 4, sent.input_tokens - 1)


def _same(texts: list[str], before: list[str]) -> int:
    """Characters of the whole texts that two prompts begin with."""
    same = 0
    for first, second in zip(texts, before, strict=False):
        if first != second:
            break
        same += len(first)
    return same


@given(st.text("ab", max_size=300), st.text("ab", max_size=300))
def test_the_common_prefix_of_two_texts(a: str, b: str) -> None:
    plain = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert common_prefix(a, b) == plain


def test_rules_with_the_same_lifetime_are_played_at_once() -> None:
    cache = AutomaticCache([rule("automatic"), rule("automatic", block_tokens=128, minimum_prefix_tokens=1024)])
    cache.send(call(0, text("P", 1300)))
    assert cache.send(call(1, text("P", 1300), text("q", 100))) == [Found(1300, 100), Found(1280, 0)]


def test_a_whole_prompt_again_is_computed_from_its_last_token_on() -> None:
    cache = AutomaticCache([rule("automatic"), rule("automatic", block_tokens=10)])
    cache.send(call(0, text("P", 100)))
    assert [found.cached for found in cache.send(call(1, text("P", 100)))] == [99, 90]


def test_expired_prefixes_are_forgotten() -> None:
    times = PrefixTimes(10.0, renewed_by_hit=True)
    for start in range(0, 400_000, 1000):
        times.add(range(start, start + 1000), float(start))
        times.settle(float(start))
    assert len(times) < 110_000
    assert times.has(399_500, 399_000.0)
    assert not times.has(398_500, 399_011.0)


def test_an_explicit_cache_finds_a_mark_only_so_many_messages_back() -> None:
    texts = [text(f"{number}", 100) for number in range(8)]
    for back, cached in ((3, 0), (4, 400)):
        cache = ExplicitCache(rule("explicit", look_back_messages=back))
        cache.send(call(0, *texts[:4], marks=(3,)))
        assert cache.send(call(1, *texts, marks=(7,))) == [Found(cached, 800 - cached)]


def test_an_explicit_cache_without_marks_finds_nothing() -> None:
    cache = ExplicitCache(rule("explicit"))
    assert [cache.send(call(second, text("P", 2000))) for second in (0, 1)] == [[Found(0, 0)], [Found(0, 0)]]


def test_what_comes_before_a_mark_has_to_be_the_same() -> None:
    cache = ExplicitCache(rule("explicit"))
    cache.send(call(0, text("P", 100), text("q", 100), marks=(1,)))
    assert cache.send(call(1, text("R", 100), text("q", 100), marks=(1,))) == [Found(0, 200)]


def test_a_slot_has_its_last_prompt_and_answer() -> None:
    cache = SlotCache(rule("slots"))
    first, answer = text("P", 400), text("a", 40)
    cache.send(call(0, first, answer=f"\n\n{answer}"))
    (found,) = cache.send(call(1, first, answer, text("o", 60)))
    assert found.cached == pytest.approx(440, abs=2)


@pytest.mark.parametrize(("saved", "cached"), [(0, 0), (10_000, 400)])
def test_a_prompt_that_left_its_slot_is_found_where_it_was_saved(saved: int, cached: int) -> None:
    """A planner's prompt, a solver's, and the planner's next one: llama.cpp saves the first in main memory."""
    cache = SlotCache(rule("slots", saved_tokens=saved))
    cache.send(call(0, text("P", 400), text("q1", 30)))
    cache.send(call(1, text("S", 300), text("q1", 30)))
    cache.send(call(2, text("T", 500)))  # with nothing saved the last one that left stays in no place
    (found,) = cache.send(call(3, text("P", 400), text("q2", 30)))
    assert found.cached == pytest.approx(cached, abs=3)


def test_calls_at_the_same_time_take_different_slots() -> None:
    cache = SlotCache(rule("slots", slots=2))
    cache.send(call(0, text("P", 400), end=10))
    assert cache.send(call(1, text("P", 400), text("q", 10), end=10))[0].cached == 0
    assert cache.send(call(11, text("P", 400), text("q", 10), end=12))[0].cached == pytest.approx(409, abs=2)
