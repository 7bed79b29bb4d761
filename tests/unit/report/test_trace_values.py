"""Traces of people's own runners, whose steps, plans and notes may be anything: what can be shown is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewoo_bench.report.alignment import beside, parting
from rewoo_bench.report.trajectories import trajectory_of, without_texts

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
STEP = st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "tool", "args", "depends_on", "failed"), ANYTHING))
NOTES = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("drafts", "citations", "fallback", "dropped_steps", "repaired", "turns", "program"), ANYTHING
    ),
)


@pytest.mark.parametrize(
    ("trace", "name", "shown"),
    [
        ({"notes": {"drafts": 3}}, "replans", 0),
        (
            {"notes": {"drafts": [{"faults": "no tool"}]}},
            "blocks",
            [{"at": 0, "end": 0, "title": "an unusable plan", "text": "", "output": "", "faults": ["no tool"]}],
        ),
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
    texts += [text for each in trajectory["blocks"] for text in (each["text"], each["output"], *each["faults"])]
    assert all(isinstance(text, str) for text in texts)


def test_a_tool_that_a_model_made_up_is_no_text_of_a_page_without_texts() -> None:
    made_up = "SecretPlan: call +49 151 1"
    trace = {"steps": [{"tool": made_up}, {"tool": "Search"}, {}], "plan": [{"tool": made_up}, {"tool": "Search"}]}
    bare = without_texts({**trajectory_of(trace), "rows": [0, 1, 2], "path": [], "calls": []}, {"Search"})
    assert [step["tool"] for step in bare["steps"]] == ["unknown tool", "Search", None]
    assert [step["tool"] for step in bare["plan"]] == ["unknown tool", "Search"]
    assert made_up not in json.dumps(bare)


@pytest.mark.parametrize(
    "plans",
    [
        (
            "Plan: a\n#E1 = Search[Kyiv]\nPlan: b\n#E2 = Search[lost]\nPlan: c\n#E3 = LLM[#E2]",
            "Plan: d\n#E3 = Search[#E1]",
            "#E3 = LLM[#E2]",
        ),
        (
            '{"steps": [{"id": "E1", "tool": "Search"}, {"id": "E2", "tool": "Search"}, {"id": "E3", "tool": "LLM"}]}',
            '{"steps": [{"id": "E3", "tool": "Search"}]}',
            '"id": "E3", "tool": "LLM"}]}',
        ),
    ],
)
def test_a_new_plan_begins_where_the_one_before_failed(plans: tuple[str, str, str]) -> None:
    first, second, left = plans
    drafts = [{"text": first}, {"text": "?", "faults": ["no plan"]}, {"text": second}]
    shown = trajectory_of(
        {"steps": [{"id": f"E{i}", "tool": "Search"} for i in (1, 2, 3)], "notes": {"drafts": drafts}}
    )
    unusable, new = shown["blocks"]
    assert (unusable["at"], unusable["text"], unusable["faults"]) == (2, "?", ["no plan"])
    assert (new["at"], new["title"], new["text"]) == (
        2,
        "a new plan begins; these steps of the one before weren't run:",
        left,
    )


def test_a_row_has_the_same_look_up_and_what_parts_is_below() -> None:
    def own(rows: list[int], path: list[int], *blocks: int) -> dict[str, Any]:
        steps = [{"id": f"E{row}", "tool": "Search", "argument": str(row)} for row in rows]
        return {
            "rows": rows,
            "path": path,
            "steps": steps,
            "blocks": [{"at": i, "end": i, "title": "t"} for i in blocks],
        }

    left, right = own([0, 1, 2, 3], [0, 2, 3]), own([0, 3, 4], [0, 3, 4], 0, 1)
    shared, said = parting([left, right])
    assert (shared, said) == (1, "they part after 1 shared look-up: 2 | 3")
    above, below = beside([left, right], shared)

    def ids(rows: list[Any]) -> list[list[str | None]]:
        return [[cell and cell.get("id", "block") for cell in cells] for cells in rows]

    assert ids(above) == [[None, "block"], ["E0", "E0"]]
    assert ids(below) == [["E1", None], ["E2", None], [None, "block"], ["E3", "E3"], [None, "E4"]]
    assert parting([left]) == (None, "")
    none = own([], [], 0)
    assert parting([left, none, left]) == (None, "")
    assert parting([left, none, right]) == (1, "they part after 1 shared look-up: 2 | 3")
    assert [ids(rows) for rows in beside([none], 1)] == [[], [["block"]]]


def test_a_users_later_turns_stand_between_the_steps() -> None:
    turns = [
        {"before_step": 1, "text": "Go on"},
        {"before_step": "x", "text": 3},
        {"before_step": 99, "text": "Bye"},
        7,
    ]
    shown = trajectory_of({"steps": [{"tool": "Search"}, {"tool": "Search"}], "turns": turns})["blocks"]
    assert [(each["at"], each["title"], each["text"]) for each in shown] == [
        (1, "the user", "Go on"), (0, "the user", "3"), (2, "the user", "Bye"), (0, "the user", ""),
    ]  # fmt: skip
