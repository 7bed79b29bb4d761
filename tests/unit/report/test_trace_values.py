"""Traces as the page and the terminal show them: plans and programs between the steps, the same look-ups in one row."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rewoo_bench.report.alignment import beside, parting
from rewoo_bench.report.trajectories import _with_starts, trajectory_of, without_texts


def test_a_note_of_ones_own_by_the_name_of_another_runners_is_not_shown() -> None:
    notes = {"turns": 3, "drafts": "none", "citations": ["a"], "stderr": 5, "dropped_steps": 2}
    shown = trajectory_of({"notes": notes, "plan": [{"id": "1", "args": {"query": "Neva"}}]})
    assert (shown["blocks"], shown["replans"], shown["notes"]) == ([], 0, {"dropped_steps": 2})
    assert shown["plan"] == [{"id": "1", "tool": "", "args": '{"query": "Neva"}', "depends_on": []}]


def test_the_first_call_of_a_question_starts_at_zero() -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    calls = [{"started_at": moment, "role": ""}, {"started_at": moment + timedelta(seconds=2), "name": ""}]
    assert _with_starts(calls) == [{"start_s": 0.0}, {"start_s": 2.0}]


def test_a_tool_that_a_model_made_up_is_no_text_of_a_page_without_texts() -> None:
    made_up = "SecretPlan: call +49 151 1"
    steps = [{"id": "", "failed": False, "tool": tool} for tool in (made_up, "Search", None)]
    trace = {"steps": steps, "plan": [{"tool": made_up}, {"tool": "Search"}]}
    bare = without_texts({**trajectory_of(trace), "rows": [0, 1, 2], "path": [], "calls": []}, {"Search"})
    assert [step["tool"] for step in bare["steps"]] == ["unknown tool", "Search", None]
    assert [step["tool"] for step in bare["plan"]] == ["unknown tool", "Search"]
    assert made_up not in json.dumps(bare)


def test_a_step_changes_state_where_its_tool_does_and_it_has_not_failed() -> None:
    steps = [{"tool": "add"}, {"tool": "add", "failed": True}, {"tool": "count"}, {"tool": None}]
    calls: list[dict[str, Any]] = [
        {"kind": "tool", "name": "add", "changes_state": True},
        {"kind": "tool", "name": "count", "changes_state": False},
        {"kind": "model", "name": "oracle", "changes_state": None},
    ]
    marked = [step["changes_state"] for step in trajectory_of({"steps": steps}, calls)["steps"]]
    assert marked == [True, False, False, False]


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


def test_a_row_has_the_same_look_up() -> None:
    def own(rows: list[int], path: list[int], *blocks: int) -> dict[str, Any]:
        steps = [{"id": f"E{row}", "tool": "Search", "argument": str(row)} for row in rows]
        return {
            "rows": rows,
            "path": path,
            "steps": steps,
            "blocks": [{"at": i, "end": i, "title": "t"} for i in blocks],
        }

    left, right = own([0, 1, 2, 3], [0, 2, 3]), own([0, 3, 4], [0, 3, 4], 0, 1)
    assert parting([left, right]) == "they part after 1 shared look-up: 2 | 3"

    def ids(rows: list[Any]) -> list[list[str | None]]:
        return [[cell and cell.get("id", "block") for cell in cells] for cells in rows]

    shared = [[None, "block"], ["E0", "E0"]]
    assert ids(beside([left, right])) == [
        *shared, ["E1", None], ["E2", None], [None, "block"], ["E3", "E3"], [None, "E4"]
    ]  # fmt: skip
    none = own([], [], 0)
    assert parting([left, none, left]) == ""
    assert parting([left, none, right]) == "they part after 1 shared look-up: 2 | 3"
    assert ids(beside([none])) == [["block"]]


def test_a_users_later_turns_stand_between_the_steps() -> None:
    turns = [{"before_step": 1, "text": "Go on"}, {"before_step": 99, "text": "Bye"}]
    steps = [{"id": "1", "tool": "Search"}, {"id": "2", "tool": "Search"}]
    shown = trajectory_of({"steps": steps, "turns": turns})["blocks"]
    assert [(each["at"], each["title"], each["text"]) for each in shown] == [
        (1, "the user", "Go on"), (2, "the user", "Bye")
    ]  # fmt: skip
