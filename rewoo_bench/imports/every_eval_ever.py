"""A run in the form of Every Eval Ever (github.com/evaleval/every_eval_ever, schema 0.3): written, not read.

    data/DATASET/DEVELOPER/MODEL/UUID.json              scores of an agent with that model
    data/DATASET/DEVELOPER/MODEL/UUID_samples.jsonl     a line for each sample and score

The form has scores and tokens of samples, and no tokens of single calls: nothing that an import could count again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse, Turn
from rewoo_bench.types import ToolCall, Usage

SCHEMA_VERSION = "0.3.0"
_SOURCE = {"source_type": "evaluation_run", "source_organization_name": "unknown", "evaluator_relationship": "other"}
_DETAILS = {"deployment_type": "unknown", "model_availability": "unknown"}


def write_every_eval_ever(out: Path, facts: Mapping[str, Any], trajectories: Sequence[RecordedTrajectory]) -> None:
    """Writes the two files of an agent. `facts` as for `imports.inspect_log.write_log`."""
    developer, _, model = facts["model"].rpartition("/")
    model_id = f"{developer or 'unknown'}/{model}"
    places = [re.sub(r"[^\w.-]+", "-", each).strip(".") or "unknown" for each in (facts["dataset"], developer, model)]
    name = str(uuid4())
    folder = out.joinpath("data", *places)
    folder.mkdir(parents=True, exist_ok=True)
    moment = str(int(datetime.fromisoformat(facts["finished_at"] or facts["started_at"]).timestamp()))
    evaluation_id = f"{facts['dataset']}/{model_id}/{facts['agent']}/{moment}"
    scores = {
        "exact_match": [(each, float(each.solved)) for each in trajectories if each.solved is not None],
        "f1": [(each, each.score) for each in trajectories if each.score is not None],
    }
    results = [_result(metric, [score for _, score in of], facts, evaluation_id) for metric, of in scores.items() if of]
    lines = [
        json.dumps(_sample(each, metric, score, model_id, facts, evaluation_id), ensure_ascii=False, default=str)
        for metric, of in scores.items()
        for each, score in of
    ]
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    (folder / f"{name}_samples.jsonl").write_bytes(text)
    document = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "evaluation_timestamp": facts["started_at"],
        "retrieved_timestamp": moment,
        "source_metadata": {"source_name": facts["run_id"], **_SOURCE},
        "eval_library": {"name": "rewoo-bench", "version": facts["version"]},
        "model_info": {"name": facts["model"], "id": model_id, "additional_details": _DETAILS},
        "evaluation_results": results,
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"data/{'/'.join(places)}/{name}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": sha256(text).hexdigest(),
            "total_rows": len(lines),
        },
    }
    (folder / f"{name}.json").write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")


def _result(metric: str, scores: Sequence[float], facts: Mapping[str, Any], evaluation_id: str) -> dict[str, Any]:
    mean = sum(scores) / len(scores)
    config: dict[str, Any] = {"metric_id": metric, "metric_kind": metric, "lower_is_better": False}
    config |= {"score_type": "continuous", "min_score": 0, "max_score": 1, "metric_unit": "proportion"}
    score: dict[str, Any] = {"score": mean, "details": {"samples": str(len(scores))}}
    if len(scores) > 1:
        deviation = math.sqrt(sum((each - mean) ** 2 for each in scores) / (len(scores) - 1))
        error = {"value": deviation / math.sqrt(len(scores)), "method": "analytic, samples taken as independent"}
        score["uncertainty"] = {"standard_error": error, "num_samples": len(scores)}
    return {
        "evaluation_result_id": f"{evaluation_id}/{metric}",
        "evaluation_name": f"{facts['dataset']} {metric}",
        "source_data": {"dataset_name": facts["dataset"], "source_type": "other"},
        "metric_config": config,
        "score_details": score,
        "generation_config": {"additional_details": {"agent": facts["agent"]}},
    }


def _sample(
    trajectory: RecordedTrajectory, metric: str, score: float, model_id: str, facts: Mapping[str, Any],
    evaluation_id: str,
) -> dict[str, Any]:  # fmt: skip
    calls = list(trajectory.calls)
    tool_calls = sum(isinstance(event, ToolUse) for event in trajectory.events)
    usage = sum((call.usage or Usage() for call in calls), Usage())
    messages = list(_messages(trajectory))
    is_single = len(calls) <= 1 and not tool_calls
    reply, raw, reference = trajectory.answer or "", trajectory.question, list(trajectory.answers)
    hashed = json.dumps({"raw": raw, "reference": reference}, sort_keys=True, separators=(",", ":"))
    attribution = {
        "turn_idx": 0 if is_single else len(messages) - 1,
        "source": "output.raw" if is_single else "messages[turn_idx].content",
        "extracted_value": reply, "extraction_method": metric, "is_terminal": True,
    }  # fmt: skip
    times = [event.times for event in trajectory.events if not isinstance(event, Turn) and event.times]
    seconds = max(each.end for each in times) - min(each.start for each in times) if times else None
    details = {
        "agent": facts["agent"], "trial": trajectory.trial, "stop_reason": trajectory.stop_reason,
        "llm_calls": len(calls), "cost_usd": trajectory.cost_usd,
        "tokens_counted_by": "tokenizer" if any(call.is_estimated for call in calls) else "provider",
    }  # fmt: skip
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "model_id": model_id,
        "evaluation_name": f"{facts['dataset']} {metric}",
        "evaluation_result_id": f"{evaluation_id}/{metric}",
        "sample_id": trajectory.task,
        "sample_hash": sha256(hashed.encode("utf-8", "replace")).hexdigest() if raw else None,
        "interaction_type": "single_turn" if is_single else "agentic" if tool_calls else "multi_turn",
        "input": {"raw": raw, "reference": reference},
        "output": {"raw": [reply]} if is_single else None,
        "messages": None if is_single else messages,
        "answer_attribution": [attribution],
        "evaluation": {
            "score": score, "is_correct": bool(trajectory.solved), "num_turns": max(1, len(calls)),
            "tool_calls_count": tool_calls,
        },
        "token_usage": {
            "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens, "input_tokens_cache_write": usage.cache_write_tokens,
            "input_tokens_cache_read": usage.cached_input_tokens, "reasoning_tokens": usage.reasoning_tokens,
        },
        "performance": None if seconds is None else {"latency_ms": seconds * 1e3},
        "error": trajectory.error,
        "metadata": {name: str(value) for name, value in details.items() if value is not None},
    }  # fmt: skip


def _messages(trajectory: RecordedTrajectory) -> Iterator[dict[str, Any]]:
    """The conversation; the answer stands at its end, once more where a program took it out of the last reply."""
    uses: list[tuple[str, str | None, list[ToolCall]]] = (
        [("system", trajectory.system, [])] if trajectory.system else []
    )
    uses.append(("user", trajectory.question, []))
    for place, event in enumerate(trajectory.events):
        if isinstance(event, ModelCall):
            uses.append(("assistant", event.reply or None, list(event.tool_calls)))
        elif isinstance(event, Turn):
            uses.append(("user", event.text, []))
        else:
            asked = uses[-1][2] if uses[-1][0] == "assistant" else []
            if not any(call.name == event.name for call in asked):  # no native call
                uses.append(("assistant", None, [ToolCall(f"call_{place}", event.name, event.arguments)]))
            uses.append(("tool", event.result, []))
    if uses[-1] != ("assistant", trajectory.answer, []):
        uses.append(("assistant", trajectory.answer, []))
    for turn, (role, text, calls) in enumerate(uses):
        arguments = [{name: value if isinstance(value, str) else json.dumps(value, default=str)
                      for name, value in call.arguments.items()} for call in calls]  # fmt: skip
        shown = [
            {"id": call.id or f"call_{turn}_{n}", "name": call.name, "arguments": given}
            for n, (call, given) in enumerate(zip(calls, arguments, strict=True))
        ]
        yield {"turn_idx": turn, "role": role, "content": text, **({"tool_calls": shown} if shown else {})}
