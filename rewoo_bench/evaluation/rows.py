"""A result as rows of the tables (runs/columns.py), and as a line of traces.jsonl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rewoo_bench.calls.call import Call
from rewoo_bench.crashes import crash_of, harness_fault
from rewoo_bench.evaluation.tasks import Result
from rewoo_bench.journal.records import as_bytes
from rewoo_bench.runs.columns import call_rows, question_row
from rewoo_bench.types import Trajectory


def rows_of(result: Result, run: Mapping[str, Any]) -> bytes:
    """The rows of a result, as JSON. `run` has the columns that are the same for the whole run."""
    return as_bytes({"question": question_row(result, run), "calls": call_rows(result, run["run_id"])})


def lines_of(result: Result, run: Mapping[str, Any]) -> tuple[Result, bytes, bytes]:
    """A result with its rows and its trace as JSON, whatever a model wrote or a runner returned.

    A result whose rows can't be written becomes an error; so does a trace that can't be written.
    """
    try:
        rows = rows_of(result, run)
    except Exception as error:  # a runner's answer may hold anything; the calls are ours
        message = f"the result can't be kept: {_message(error)}"
        result = replace(result, trajectory=Trajectory(None, "error"), score=None, judged_correct=None, error=message)
        rows = rows_of(result, run)
    traced = trace(result, run["run_id"])
    try:
        return result, rows, as_bytes(traced)
    except Exception as error:  # the same
        message = f"the trace can't be kept: {_message(error)}"
        whole = {name: traced[name] for name in ("run_id", "architecture", "example_id", "trial", "question")}
        return result, rows, as_bytes({**whole, "stop_reason": result.trajectory.stop_reason, "error": message})


def _message(error: Exception) -> str:
    """An exception's message in one line. Raises `HarnessFault` where this machine lacks a resource."""
    if fault := harness_fault(error, "keeping a result"):
        raise fault from error
    return crash_of(error, "its rows").error


def trace(result: Result, run_id: str) -> dict[str, Any]:
    """Plan, evidence, steps and answer: a line of traces.jsonl."""
    trajectory = result.trajectory
    return {
        "run_id": run_id,
        "architecture": result.task.architecture.name,
        "example_id": result.task.example.id,
        "trial": result.task.trial,
        "question": result.task.example.question,
        "answer": trajectory.answer,
        "stop_reason": trajectory.stop_reason,
        "error": result.error,
        "plan": trajectory.plan,
        "evidence": trajectory.evidence,
        "steps": [
            {
                "id": step.id,
                "thought": step.thought,
                "tool": step.tool,
                "argument": step.argument,
                "observation": step.observation,
                "failed": step.failed,
            }
            for step in trajectory.steps
        ],
        "notes": trajectory.notes,
        "replies": [_of_reply(call) for call in result.calls if call.thoughts or call.repairs],
        **({"traceback": result.traceback} if result.traceback else {}),
        **({"judge_error": result.judge_error} if result.judge_error else {}),
    }


def _of_reply(call: Call) -> dict[str, Any]:
    """The parts of a model's reply that aren't its visible text."""
    return {"place": call.call_site.name, "role": call.role, "thoughts": call.thoughts, "repairs": list(call.repairs)}
