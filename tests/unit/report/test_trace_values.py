"""Traces of people's own runners, whose steps, plans and notes may be anything: what can be shown is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.report.trajectories import trajectory_of, without_texts

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
STEP = st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "tool", "args", "depends_on", "failed"), ANYTHING))
NOTES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("drafts", "citations", "fallback", "dropped_steps", "repaired"), ANYTHING)
)


@pytest.mark.parametrize(
    ("trace", "name", "shown"),
    [
        ({"notes": {"drafts": 3}}, "drafts", [{"text": "3", "faults": []}]),
        ({"notes": {"drafts": [{"faults": "no tool"}]}}, "drafts", [{"text": "", "faults": ["no tool"]}]),
        ({"notes": "none"}, "notes", {}),
        ({"notes": {"citations": {"unknown": "abc"}}}, "notes", {"citations": {"cited": [], "unknown": ["abc"]}}),
        ({"notes": {"citations": "abc", "dropped_steps": "two"}}, "notes", {}),
        ({"plan": ["a"]}, "plan", [{"id": "1", "tool": "a", "args": "", "depends_on": []}]),
        ({"plan": []}, "plan", None),
        ({"answer": 5}, "answer", "5"),
    ],
)
def test_what_can_be_shown_is_shown(trace: dict[str, Any], name: str, shown: object) -> None:
    assert trajectory_of(trace)[name] == shown


@given(st.fixed_dictionaries({"steps": ANYTHING | st.lists(STEP), "plan": ANYTHING | st.lists(STEP), "notes": NOTES}))
def test_no_trace_is_too_odd(trace: dict[str, Any]) -> None:
    trajectory = trajectory_of(trace)
    json.dumps(trajectory, allow_nan=False)
    texts = [step[name] for step in trajectory["steps"] for name in ("id", "thought", "argument", "observation")]
    texts += [text for step in trajectory["plan"] or () for text in (step["id"], step["tool"], *step["depends_on"])]
    texts += [text for draft in trajectory["drafts"] for text in (draft["text"], *draft["faults"])]
    assert all(isinstance(text, str) for text in texts)


def test_a_tool_that_a_model_made_up_is_no_text_of_a_page_without_texts() -> None:
    made_up = "SecretPlan: call +49 151 1"
    trace = {"steps": [{"tool": made_up}, {"tool": "Search"}, {}], "plan": [{"tool": made_up}, {"tool": "Search"}]}
    bare = without_texts({**trajectory_of(trace), "rows": [0, 1, 2], "path": [], "calls": []}, {"Search"})
    assert [step["tool"] for step in bare["steps"]] == ["unknown tool", "Search", None]
    assert [step["tool"] for step in bare["plan"]] == ["unknown tool", "Search"]
    assert made_up not in json.dumps(bare)
