"""Plans: one way to write a reference, what waits for what, and one substitution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import plan_of

from rewoo_bench.runners.notation.plan import (
    PlanStep,
    ToolNames,
    canonical,
    references,
    substitute,
    with_hash_signs,
)


@pytest.mark.parametrize("written", ["#E1", "{E1}", "{{E1}}", "{{ E1 }}", "#E01"])
def test_a_reference_has_one_form(written: str) -> None:
    step = PlanStep(id="E2", tool="LLM", args=f"Where was {written} born?")
    assert (step.args, step.depends_on) == ("Where was {{E1}} born?", ("E1",))
    assert step.call == "LLM[Where was #E1 born?]"


def test_a_tenth_step_is_not_the_first_with_a_zero() -> None:
    assert references(canonical("#E10, #E1, #E10")) == ["E10", "E1", "E10"]
    assert substitute("{{E10}} {{E1}}.", {"E1": "one", "E10": "ten"}) == "ten one."


@given(st.lists(st.sampled_from(["{", "}", "#", "E1", "E", "1", " ", "{{E2}}", "#E3"])).map("".join))
def test_a_canonical_text_stays_as_it_is(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once
    assert canonical(with_hash_signs(once)) == once


def test_evidence_is_put_in_once_and_stays_as_it_is() -> None:
    evidence = {"E1": r"see {{E2}}, #E2 and \1", "E2": "[{{E1}}]"}
    assert substitute("{{E1}} / {{E2}} / {{E3}} at 10:30", evidence) == (
        r"see {{E2}}, #E2 and \1 / [{{E1}}] / {{E3}} at 10:30"
    )


def test_references_are_found_and_filled_in_nested_values() -> None:
    args = {"query": "#E2", "filters": [{"year": "{{E1}}", "lang": "en"}, 7], "{E9}": None}
    step = PlanStep(id="E3", tool="Search", args=args)
    assert step.depends_on == ("E1", "E2")
    filled = substitute(step.args, {"E1": "1973", "E2": "tower"})
    assert filled == {"query": "tower", "filters": [{"year": "1973", "lang": "en"}, 7], "{E9}": None}


def test_a_level_is_the_longest_chain_before_a_step() -> None:
    plan = plan_of("Search[#E3 #E2]", "Search[a]", "Search[#E2]", "Search[b]")
    assert plan.levels() == {"E1": 2, "E2": 0, "E3": 1, "E4": 0}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("search", "Search"),
        ("fs_read", "fs.read"),
        ("web-search", "web-search"),
        ("Web-Search", "Web-Search"),  # either of two
    ],
)
def test_a_tool_is_meant_where_only_one_is_spelt_nearly_so(written: str, meant: str) -> None:
    assert ToolNames(["Search", "fs.read", "web-search", "web_search"]).spelt(written) == meant
