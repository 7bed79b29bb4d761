"""Evidence at the border: how much of it a model gets to read, and what was cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.events import at_place
from rewoo_bench.runners.prompts import EvidenceBudget, Prompts, Shorten, nearest_sentences, shares
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.text.tokens import count_tokens

PAGE = (
    "Jørn Utzon: Jørn Utzon was a Danish architect. He won a competition in 1957. "
    "He was born in Copenhagen in 1918. His father built ships. He liked the sea. He died in 2008."
)
SUMMARY = Prompts({"summary": "Sum up what is looked for."})


async def admit(shorten: Shorten, text: str, max_tokens: int, model: Any = None) -> tuple[str, EvidenceBudget]:
    evidence_budget = EvidenceBudget(shorten, model or ScriptedModel([]), SUMMARY)
    with at_place("E1"):
        return await evidence_budget.shortened(
            "E1", text, query="Where was Utzon born?", max_tokens=max_tokens
        ), evidence_budget


@pytest.mark.anyio
@pytest.mark.parametrize("shorten", ["truncate", "sentences", "llm"])
async def test_what_fits_is_not_touched(shorten: Shorten) -> None:
    kept, evidence_budget = await admit(shorten, PAGE, 100)
    assert (kept, evidence_budget.cuts) == (PAGE, [])


@pytest.mark.anyio
async def test_truncation_keeps_the_beginning() -> None:
    kept, evidence_budget = await admit("truncate", PAGE, 12)
    assert PAGE.startswith(kept)
    assert count_tokens(kept) <= 12
    assert evidence_budget.cuts == [
        {"slot": "E1", "at": "slot", "tokens": count_tokens(PAGE), "kept": count_tokens(kept)}
    ]


@pytest.mark.anyio
async def test_the_sentences_nearest_to_the_query_stay_in_their_order() -> None:
    kept, _ = await admit("sentences", PAGE, 28)
    assert kept == "Jørn Utzon: Jørn Utzon was a Danish architect. He was born in Copenhagen in 1918."


@given(st.text(max_size=400), st.text(max_size=40), st.integers(1, 30))
def test_the_nearest_sentences_keep_to_the_budget(text: str, query: str, max_tokens: int) -> None:
    assert count_tokens(nearest_sentences(text, query, max_tokens)) <= max_tokens


@pytest.mark.anyio
async def test_a_model_sums_up_and_is_asked_through_the_meter() -> None:
    model = ScriptedModel({"tool": ["Utzon was born in Copenhagen."]})
    kept, evidence_budget = await admit("llm", PAGE, 12, model)
    assert kept == "Utzon was born in Copenhagen."
    assert model.requests[0].max_tokens == 12
    assert model.requests[0].messages[1].content == f"Looking for: Where was Utzon born?\n\n{PAGE}"
    assert evidence_budget.cuts[0]["kept"] == count_tokens(kept)


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 1000), max_size=12), st.integers(12, 2000))
def test_shares_never_add_up_to_more_than_the_budget(sizes: dict[str, int], budget: int) -> None:
    allowed = shares(sizes, budget)
    assert sum(allowed.values()) <= budget
    assert all(allowed[slot] <= size for slot, size in sizes.items())
    if sum(sizes.values()) <= budget:
        assert allowed == sizes
