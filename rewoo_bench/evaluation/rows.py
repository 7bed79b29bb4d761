"""A result as rows of the tables (their columns are in schema.py), and as a line of traces.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewoo_bench.calls.call import Call
from rewoo_bench.crashes import crash_of, harness_fault
from rewoo_bench.evaluation.retrieval import gold_pages_found
from rewoo_bench.evaluation.tasks import Result
from rewoo_bench.evaluation.telemetry import trace_id_of
from rewoo_bench.journal.records import as_bytes, numbers
from rewoo_bench.loops import AT_LIMIT, loop_start
from rewoo_bench.runs.schema import CALLS, NO_LLM_ROLES, NO_STEP_ROLES, SHARED
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import Trajectory, Usage

# Null for a tool, which has none. `SHARED` are of the whole run, and known at its end.
_TOKENS = [name for name in CALLS.names if name.endswith("_tokens") and name not in SHARED]


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


def question_row(result: Result, run: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a result. `run` has the columns that are the same for the whole run, and a `trace_id` where questions
    are exported as traces."""
    example, trajectory = result.task.example, result.trajectory
    model_calls = [call for call in result.calls if call.kind == "model" and call.role != "judge"]
    counted = [call for call in model_calls if _was_counted(call)]
    usage = sum((call.usage for call in model_calls), Usage())
    measured = not any(call.call_cost.replayed or call.call_cost.measured_s is not None for call in result.calls)
    return {
        **run,
        "architecture": result.task.architecture.name,
        "example_id": example.id,
        "question_type": example.kind,
        "level": example.level or None,
        "hops": len(example.chain) or None,
        "trial": result.task.trial,
        "question": example.question,
        "answers": list(example.answers),
        "answers_sha256": result.answers_sha256,
        "prediction": trajectory.answer,
        "exact_match": result.score.exact_match if result.score else None,
        "f1": result.score.f1 if result.score else None,
        "judged_correct": result.judged_correct,
        "stop_reason": trajectory.stop_reason,
        "error": result.error,
        "llm_calls": sum(call.role not in NO_LLM_ROLES for call in model_calls),
        "tool_calls": sum(call.kind == "tool" for call in result.calls),
        "steps": len(trajectory.steps),
        "replans": trajectory.replans,
        "broken_plans": _broken_plans(trajectory.notes.get("drafts")),
        "routed_to": routed_to(result),
        **numbers(usage),
        "total_tokens": usage.total_tokens,
        "planner_tokens": _role_tokens(model_calls, "planner"),
        "solver_tokens": _role_tokens(model_calls, "solver"),
        "tool_llm_tokens": _role_tokens(model_calls, "tool"),
        "agent_tokens": _role_tokens(model_calls, "agent"),
        "router_tokens": _role_tokens(model_calls, "router") if result.task.architecture.parents else None,
        "evidence_tokens": sum(count_tokens(step.observation) for step in trajectory.steps),
        "gold_pages_found": gold_pages_found(example.chain, trajectory.steps),
        "billed_tokens": sum(call.call_cost.billed.total_tokens for call in model_calls),
        "cost_usd": None if model_calls and not counted else result.cost_usd,
        "usage_source": _usage_source(counted),
        "latency_s": result.latency_s if measured else None,
        "working_s": result.working_s if measured else None,
        "startup_s": result.startup_s if measured else None,
        "retries": sum(call.call_cost.attempts - 1 for call in model_calls),
        "flags": list(result.flags),
        **_loop(result.calls),
        "started_at": result.started_at,
        "trace_id": trace_id_of(run["run_id"], result.task.key) if run.get("trace_id") else None,
    }


def _broken_plans(drafts: object) -> int | None:
    """How many drafts of plans have faults; None where the notes have no drafts in the form of the bundled runners."""
    if not isinstance(drafts, list) or not all(isinstance(each, Mapping) for each in drafts):
        return None
    return sum(bool(each.get("faults")) for each in drafts)


def _loop(calls: Sequence[Call]) -> dict[str, int | None]:
    """The columns of the loop that a question ended in (loops.py). The call for an answer at the limit is no step."""
    own = [call for call in sorted(calls, key=lambda call: call.start) if not call.call_site.name.endswith(AT_LIMIT)]
    if not any(_is_turn(call) for call in own):
        return {"loop_step": None, "loop_tokens": None}
    done = [call for call in own if call.kind == "tool" or _is_turn(call)]
    did = [(call.name if call.kind == "tool" else "", call.content) for call in done]
    found = loop_start([(call.kind == "tool", each) for call, each in zip(done, did, strict=True)])
    if found is None:
        return {"loop_step": None, "loop_tokens": 0}
    step, place = found
    looped = [call for call in own if call.kind == "model" and call.role != "judge" and call.start >= done[place].start]
    return {"loop_step": step + 1, "loop_tokens": sum(call.usage.total_tokens for call in looped)}


def _is_turn(call: Call) -> bool:
    """Whether a call is a model's turn: it was answered, and by the architecture's own model."""
    return call.kind == "model" and call.status == "ok" and call.role not in NO_STEP_ROLES


def routed_to(result: Result) -> str | None:
    """The parent that a router chose, by the place of its calls: they tell it of a question that a limit ended, too."""
    names = [parent.name for parent in result.task.architecture.parents]
    for call in result.calls:
        if chosen := next((name for name in names if call.call_site.name.startswith(f"{name}/")), None):
            return chosen
    return None


def call_rows(result: Result, run_id: str) -> list[dict[str, Any]]:
    """The rows of a result's calls, in the order in which they began."""
    key = {
        "run_id": run_id,
        "architecture": result.task.architecture.name,
        "example_id": result.task.example.id,
        "trial": result.task.trial,
    }
    calls = sorted(result.calls, key=lambda call: call.start)
    return [{**key, "call_index": index, **_call_row(call)} for index, call in enumerate(calls)]


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


def _call_row(call: Call) -> dict[str, Any]:
    is_model = call.kind == "model"
    tokens = _call_tokens(call) if is_model else dict.fromkeys(_TOKENS)
    return {
        "kind": call.kind,
        "name": call.name,
        "role": call.role,
        "place": call.call_site.name,
        "level": call.call_site.level,
        "status": call.status,
        "attempts": call.call_cost.attempts,
        **tokens,
        "usage_source": call.call_cost.usage_source if is_model and _was_counted(call) else None,
        "finish_reason": call.finish_reason,
        "latency_s": _latency_s(call),
        "waiting_s": call.waiting_s,
        "replayed": call.call_cost.replayed,
        "started_at": call.started_at,
    }


def _call_tokens(call: Call) -> dict[str, int]:
    return {
        **numbers(call.usage),
        "discarded_tokens": call.discarded_tokens,
        "billed_tokens": call.call_cost.billed.total_tokens,
        "context_tokens": call.prompt_parts.context,
        "exemplar_tokens": call.prompt_parts.exemplars,
        "question_tokens": call.prompt_parts.question,
        "written_tokens": call.prompt_parts.written,
        "found_tokens": call.prompt_parts.found,
    }


def _latency_s(call: Call) -> float | None:
    if call.call_cost.replayed:
        return None
    return call.latency_s if call.call_cost.measured_s is None else call.call_cost.measured_s


def _role_tokens(calls: Sequence[Call], role: str) -> int:
    return sum(call.usage.total_tokens for call in calls if call.role == role)


def _usage_source(calls: Sequence[Call]) -> str | None:
    """`provider`, `estimated`, or `mixed`; None without a call that was answered or paid for."""
    sources = {call.call_cost.usage_source for call in calls}
    return "mixed" if len(sources) > 1 else next(iter(sources), None)


def _was_counted(call: Call) -> bool:
    """Whether a model call was answered or paid for."""
    return call.status == "ok" or call.call_cost.billed != Usage()
