"""Exports of Langfuse from real runs: their calls equal the ledger of the model's server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_telemetry import conversations, file_of, imported_calls, ledger_calls, ledger_of, read

from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.record import RecordedTrajectory, ToolUse
from rewoo_bench.types import Usage

EXPORT = "langfuse-api"


def test_calls_prompts_and_tools_are_those_of_the_ledger() -> None:
    assert {found.format for found in read_files([file_of(EXPORT)])} == {"langfuse"}
    assert conversations(read(EXPORT)) == ledger_of(EXPORT)


def test_the_rows_of_the_run_are_those_of_the_ledger(tmp_path: Path) -> None:
    assert imported_calls(EXPORT, tmp_path) == ledger_calls(EXPORT)


def trajectories(folder: Path, document: Any) -> list[RecordedTrajectory]:
    file = folder / "export.json"
    file.write_text(json.dumps(document))
    found = list(read_files([file]))
    assert [each.fault for each in found if each.fault] == []
    return [each.trajectory for each in found if each.trajectory is not None]


def generation(**fields: Any) -> dict[str, Any]:
    times = {"startTime": "2026-11-26T09:00:00Z", "endTime": "2026-11-26T09:00:01.5Z"}
    return {"id": "g", "type": "GENERATION", "traceId": "t", **times, "input": "2 + 2?", "output": "4", **fields}


def test_a_trace_of_langfuse_has_its_verdict_its_cost_and_its_times(tmp_path: Path) -> None:
    scores = [{"name": "tone", "value": 0.2}, {"name": "correctness", "value": 1}]
    observation = generation(costDetails={"total": 0.25}, usageDetails={"input": 8, "output": 2, "total": 10})
    (found,) = trajectories(tmp_path, {"id": "t", "observations": [observation], "scores": scores})
    (call,) = found.calls
    assert (found.task, found.question, found.answer, found.solved) == ("t", "2 + 2?", "4", True)
    assert (call.cost_usd, call.usage, call.times and call.times.end - call.times.start) == (0.25, Usage(8, 0, 2), 1.5)


@pytest.mark.parametrize(
    ("details", "usage"),
    [
        ({"input": 40, "input_cached_tokens": 60, "output": 7, "total": 107}, Usage(100, 60, 7)),
        ({"input": 100, "input_cached_tokens": 60, "output": 7, "total": 107}, Usage(100, 60, 7)),
        ({"promptTokens": 3, "completionTokens": 4}, Usage(3, 0, 4)),
        ({}, None),
    ],
)
def test_the_total_tells_whether_cached_tokens_are_a_part_of_the_input(
    details: dict[str, int], usage: Usage | None, tmp_path: Path
) -> None:
    (found,) = trajectories(tmp_path, [generation(usageDetails=details)])
    assert [call.usage for call in found.calls] == [usage]


def test_what_a_tool_found_keeps_all_its_fields(tmp_path: Path) -> None:
    found = [{"text": "Ada Lovelace", "doc_id": "doc_991x"}]
    tool = generation(id="s", type="TOOL", name="search", input={"q": "Ada"}, output=found)
    (trajectory,) = trajectories(tmp_path, [tool])
    (use,) = (event for event in trajectory.events if isinstance(event, ToolUse))
    assert json.loads(use.result or "") == found


def test_a_trace_whose_observations_are_ids_alone_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    file.write_text(json.dumps({"id": "t", "timestamp": "2026-11-26T09:00:00Z", "observations": ["g"]}))
    assert [each.fault for each in read_files([file])] == [
        "export.json: not readable as langfuse: its observations are ids alone: export the trace with them"
    ]
