"""What packages recorded (tests/golden/telemetry), as trajectories and as the ledger of the model's server has it."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pyarrow.parquet as pq

from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse
from rewoo_bench.imports.write import import_run

FOLDER = Path(__file__).parents[1] / "golden/telemetry"
COUNTS = ("input", "cached", "output", "reasoning")


def file_of(name: str) -> Path:
    return next(file for file in FOLDER.glob(f"{name}.json*") if "ledger" not in file.name)


def read(name: str) -> list[RecordedTrajectory]:
    found = list(read_files([file_of(name)]))
    assert [each.fault for each in found if each.fault] == []
    return [each.trajectory for each in found if each.trajectory is not None]


def ledger_of(name: str, unrecorded: Collection[str] = ()) -> list[dict[str, Any]]:
    """What the server served and the tools did, by question; 0 for what a package doesn't record."""
    ledger: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.ledger.json").read_text())
    for question in ledger:
        for call in question["calls"]:
            call.update(dict.fromkeys(unrecorded, 0))
    return ledger


def conversations(found: list[RecordedTrajectory]) -> list[dict[str, Any]]:
    """Trajectories in the form of the ledger."""
    return [
        {
            "question": each.question,
            "calls": [_call(call) for call in each.calls],
            "tools": [
                {"name": use.name, "arguments": dict(use.arguments or {}), "result": use.result}
                for use in each.events
                if isinstance(use, ToolUse)
            ],
            "answer": each.answer,
        }
        for each in found
    ]


def _call(call: ModelCall) -> dict[str, Any]:
    assert call.usage is not None
    assert call.messages is not None
    usage = call.usage
    return {
        "input": usage.input_tokens,
        "cached": usage.cached_input_tokens,
        "output": usage.output_tokens,
        "reasoning": usage.reasoning_tokens,
        "text": call.reply,
        "tool_calls": [{"name": each.name, "arguments": dict(each.arguments)} for each in call.tool_calls],
        "roles": [message.role for message in call.messages],
    }


def ledger_calls(name: str, unrecorded: Collection[str] = ()) -> list[Any]:
    """The rows of calls that a run of this ledger has, in their order."""
    rows: list[Any] = []
    for question in ledger_of(name, unrecorded):
        tools = iter(question["tools"])
        for call in question["calls"]:
            counts = (None if count == "cached" in unrecorded else call[count] for count in COUNTS)
            rows.append(("model", "test-model", *counts))
            rows += [("tool", next(tools)["name"], *[None] * 4) for _ in call["tool_calls"]]
    return rows


def imported_calls(name: str, folder: Path) -> list[Any]:
    """The rows of calls of the imported run."""
    done = anyio.run(partial(import_run, [file_of(name)], folder / "run"))
    assert (done.rows, done.unreadable) == (3, 0)
    columns = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")
    rows = pq.read_table(done.folder / "calls.parquet").to_pylist()
    return [(row["kind"], row["name"], *(row[column] for column in columns)) for row in rows]
