"""Every Eval Ever (github.com/evaleval/every_eval_ever, schema 0.3), written and read.

    data/DATASET/DEVELOPER/MODEL/UUID.json              scores of an agent with that model
    data/DATASET/DEVELOPER/MODEL/UUID_samples.jsonl     a line for each sample and score

The form has tokens and time of samples, and none of single calls; it has a transcript, and no prompts. Lines of one
sample and trial are one trajectory. What the form has no field for stands in the `metadata` of a line: agent, trial,
why the agent stopped, its models where there are several, which turns of the transcript are failures of tools, and
which are model calls (others hold calls of tools that no reply asked for in the provider's form, or the answer once
more).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

from rewoo_bench.imports.messages import tool_call
from rewoo_bench.imports.record import (
    ModelCall,
    RecordedTrajectory,
    ToolUse,
    Turn,
    Unreadable,
    count,
    number,
    object_at,
    objects_at,
    parsed,
    share,
    usage_of,
)
from rewoo_bench.text.results import says_error
from rewoo_bench.types import Message, StopReason, ToolCall, Usage

SCHEMA_VERSION = "0.3.0"
_FILE = "rewoo_bench_file"
"""Key of a line that is read, with the path of its file."""
_SOURCE = {"source_type": "evaluation_run", "source_organization_name": "unknown", "evaluator_relationship": "other"}
_DETAILS = {"deployment_type": "unknown", "model_availability": "unknown"}


def write_every_eval_ever(out: Path, facts: Mapping[str, Any], trajectories: Sequence[RecordedTrajectory]) -> None:
    """Writes the two files of an agent, where one of its trajectories is scored.

    `facts` as for `imports.inspect_write.write_log`.
    """
    scores = {
        "exact_match": [(each, float(each.solved)) for each in trajectories if each.solved is not None],
        "f1": [(each, each.f1) for each in trajectories if each.f1 is not None],
    }
    if not any(scores.values()):
        return
    developer, _, model = facts["model"].rpartition("/")
    model_id = f"{developer or 'unknown'}/{model}"
    places = [re.sub(r"[^\w.-]+", "-", each).strip(".") or "unknown" for each in (facts["dataset"], developer, model)]
    name = str(uuid4())
    folder = out.joinpath("data", *places)
    folder.mkdir(parents=True, exist_ok=True)
    moment = str(int(datetime.fromisoformat(facts["finished_at"] or facts["started_at"]).timestamp()))
    evaluation_id = f"{facts['dataset']}/{model_id}/{facts['agent']}/{moment}"
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
    uses = [event for event in trajectory.events if isinstance(event, ToolUse)]
    usage = trajectory.usage or sum((call.usage or Usage() for call in calls), Usage())
    is_cached_known = all(call.is_cached_known for call in calls)
    messages, turns, failed = _transcript(trajectory)
    models = [call.model for call in calls]
    is_single = len(calls) <= 1 and not uses
    reply, raw, reference = trajectory.answer or "", trajectory.question, list(trajectory.answers)
    hashed = json.dumps({"raw": raw, "reference": reference}, sort_keys=True, separators=(",", ":"))
    attribution = {
        "turn_idx": 0 if is_single else len(messages) - 1,
        "source": "output.raw" if is_single else "messages[turn_idx].content",
        "extracted_value": reply, "extraction_method": metric, "is_terminal": True,
    }  # fmt: skip
    seconds, times = trajectory.latency_s, trajectory.times
    if seconds is None and times is not None:
        seconds = times.end - times.start
    details = {
        "agent": facts["agent"], "trial": trajectory.trial, "stop_reason": trajectory.stop_reason,
        "llm_calls": len(calls), "cost_usd": trajectory.cost_usd,
        "llm_call_turns": None if is_single else " ".join(map(str, turns)),
        "without_arguments": any(each.arguments is None for each in uses) or None,
        "failed_tool_turns": " ".join(map(str, failed)) or None,
        "models": json.dumps(models) if len(set(models)) > 1 else None,
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
        "interaction_type": "single_turn" if is_single else "agentic" if uses else "multi_turn",
        "input": {"raw": raw, "reference": reference},
        "output": {"raw": [reply]} if is_single else None,
        "messages": None if is_single else messages,
        "answer_attribution": [] if trajectory.answer is None else [attribution],
        "evaluation": {
            "score": score, "is_correct": bool(trajectory.solved), "num_turns": max(1, len(calls)),
            "tool_calls_count": len(uses),
        },
        "token_usage": {
            "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens, "input_tokens_cache_write": usage.cache_write_tokens,
            "input_tokens_cache_read": usage.cached_input_tokens if is_cached_known else None,
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "performance": None if seconds is None else {"latency_ms": seconds * 1e3},
        "error": trajectory.error,
        "metadata": {name: str(value) for name, value in details.items() if value is not None},
    }  # fmt: skip


def _transcript(trajectory: RecordedTrajectory) -> tuple[list[dict[str, Any]], list[int], list[int]]:
    """The conversation, which of its turns are model calls, and which are results of tools that failed.

    The answer stands at its end, once more where a program took it out of the last reply.
    """
    found: list[dict[str, Any]] = []
    turns: list[int] = []
    failed: list[int] = []
    ids: set[str] = set()
    waiting: list[dict[str, Any]] = []  # calls of the last reply without a result

    def add(role: str, text: str | None, **more: Any) -> None:
        found.append({"turn_idx": len(found), "role": role, "content": text, **more})

    def shown(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        listed = []
        for n, call in enumerate(calls):
            id_ = call.id if call.id and call.id not in ids else f"call_{len(found)}_{n}"
            ids.add(id_)
            listed.append({"id": id_, "name": call.name, "arguments": _as_texts(call.arguments)})
        return listed

    if trajectory.system:
        add("system", trajectory.system)
    add("user", trajectory.question)
    for event in trajectory.events:
        if isinstance(event, ModelCall):
            turns.append(len(found))
            calls = shown(event.tool_calls)
            thoughts = {"reasoning_trace": event.thoughts} if event.thoughts else {}
            add("assistant", event.reply or None, **({"tool_calls": calls} if calls else {}), **thoughts)
            waiting = list(calls) or waiting  # a tool may ask a model
        elif isinstance(event, Turn):
            add("user", event.text)
        else:
            named = [call for call in waiting if call["name"] == event.name]
            arguments = event.arguments or {}
            same = [call for call in named if call["arguments"] == _as_texts(arguments)]
            call = next(iter(same or named), None)
            if call is not None:
                waiting.remove(call)
            else:  # no native call
                (call,) = shown([ToolCall("", event.name, arguments)])
                add("assistant", None, tool_calls=[call])
            failed += [len(found)] if event.failed else []
            add("tool", event.result, tool_call_id=[call["id"]])
    last = found[-1]
    if (last["role"], last["content"], "tool_calls" in last) != ("assistant", trajectory.answer, False):
        add("assistant", trajectory.answer)
    return found, turns, failed


def _as_texts(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value, default=str) for name, value in arguments.items()
    }


def is_every_eval_ever(record: Any) -> bool:
    """Whether it is a line of a sample, or the scores of a whole evaluation."""
    if not isinstance(record, Mapping) or "schema_version" not in record or "evaluation_id" not in record:
        return False
    return _is_whole(record) or ("sample_id" in record and isinstance(record.get("evaluation"), Mapping))


def _is_whole(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("evaluation_results"), list)


def with_samples(record: Any, path: Path, _: Path) -> Any:
    """The line of a sample; None for scores whose samples are in a file beside. Raises `Unreadable`."""
    if not _is_whole(record):
        return {**record, _FILE: str(path)}
    name = Path(str(object_at(record, "detailed_evaluation_results").get("file_path") or "")).name
    if name and (path.parent / name).is_file():
        return None
    raise Unreadable(f"it has scores alone: its samples, {name or 'a file that it names'}, aren't beside it")


def sample_parts(record: Any) -> Iterator[tuple[str, Any]]:
    """The line with the file, evaluation, sample and trial that it belongs to."""
    metadata = object_at(record, "metadata")
    asked = object_at(record, "input").get("raw")  # an id may be another sample's in another part of an evaluation
    named = (
        record.get(_FILE),
        record["evaluation_id"],
        metadata.get("agent"),
        record["sample_id"],
        asked,
        metadata.get("trial"),
    )
    yield json.dumps(named, default=str), record


def read_samples(parts: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectory of lines that are scores of one sample; where one score is there several times, a trial each."""
    trials: list[dict[str, Mapping[str, Any]]] = []
    for line in parts:
        score = str(line.get("evaluation_result_id") or line.get("evaluation_name"))
        trial = next((each for each in trials if score not in each), None)
        if trial is None:
            trials.append(trial := {})
        trial[score] = line
    for trial in trials:
        yield _trajectory(list(trial.values()))


def _trajectory(lines: Sequence[Mapping[str, Any]]) -> RecordedTrajectory:
    metadata = object_at(lines[0], "metadata")
    f1 = next((line for line in lines if str(line.get("evaluation_name")).split()[-1:] == ["f1"]), None)
    line = next((each for each in lines if each is not f1), lines[0])
    solved = object_at(line, "evaluation").get("is_correct")
    tokens, seconds = object_at(line, "token_usage"), number(object_at(line, "performance").get("latency_ms"))
    usage = usage_of(tokens)
    if usage is not None:
        cached, stored = (count(tokens.get(f"input_tokens_cache_{name}")) for name in ("read", "write"))
        most = usage.input_tokens
        usage = replace(usage, cached_input_tokens=min(cached, most), cache_write_tokens=min(stored, most))
    read = _Transcript(line, usage)
    trial, reason = number(metadata.get("trial")), metadata.get("stop_reason")
    given = object_at(line, "input")
    question = str(given.get("raw") or read.question or "")
    taken = [each.get("extracted_value") for each in reversed(objects_at(line, "answer_attribution"))]
    return RecordedTrajectory(
        task=str(line["sample_id"]),
        question=question,
        events=read.events,
        agent=str(metadata.get("agent") or ""),
        trial=int(trial) if trial is not None and 0 <= trial < _MOST_TRIALS else None,
        system=read.system,
        answer=next((str(each) for each in taken if each is not None), None),
        answers=[str(each) for each in given["reference"]] if isinstance(given.get("reference"), list) else (),
        solved=solved if isinstance(solved, bool) else None,
        error=str(line["error"]) if line.get("error") else None,
        stop_reason=reason if reason in get_args(StopReason) else None,
        cost_usd=number(metadata.get("cost_usd")),
        usage=usage if any(isinstance(event, ModelCall) for event in read.events) else None,
        is_cached_known=tokens.get("input_tokens_cache_read") is not None,
        latency_s=seconds / 1e3 if seconds is not None and seconds >= 0 else None,
        f1=None if f1 is None else share(object_at(f1, "evaluation").get("score")),
        is_without_texts=not question and not any(event.reply for event in read.events if isinstance(event, ModelCall)),
    )


_MOST_TRIALS = 1_000_000


class _Transcript:
    """What a line says of a conversation: `events`, and what the system and the user said first."""

    def __init__(self, line: Mapping[str, Any], usage: Usage | None) -> None:
        self.events: list[ModelCall | ToolUse | Turn] = []
        self.system = ""
        self.question: str | None = None
        metadata = object_at(line, "metadata")
        self._facts: dict[str, Any] = {
            "usage": None if usage is None else Usage(),  # known of the whole alone
            "model": str(line.get("model_id") or "").removeprefix("unknown/"),
            "is_estimated": metadata.get("tokens_counted_by") == "tokenizer",
        }
        self._lacks_arguments = "without_arguments" in metadata
        self._failed = set(str(metadata.get("failed_tool_turns") or "").split())
        models = parsed(metadata.get("models"))
        self._models = [str(each) for each in models] if isinstance(models, list) else []
        turns = metadata.get("llm_call_turns")
        self._own = None if turns is None else set(str(turns).split())
        # Of a program that says nothing of its calls and tokens, the transcript is taken as what it sent.
        self._is_sent = turns is None and usage is None
        self._prompt: list[Message] = []
        self._asked: dict[str, ToolCall] = {}
        if isinstance(line.get("messages"), list):
            for place, raw in enumerate(objects_at(line, "messages")):
                self._add(raw, str(raw.get("turn_idx", place)))
            self._add_unanswered(number(object_at(line, "evaluation").get("tool_calls_count")))
        elif metadata.get("llm_calls") != "0":
            self._prompt = [Message("user", str(object_at(line, "input").get("raw") or ""))]
            said = object_at(line, "output").get("raw")
            self._add_call(str(said[0]) if isinstance(said, list) and said else "", (), "")

    def _add(self, raw: Mapping[str, Any], turn: str) -> None:
        role, text = str(raw.get("role")), str(raw.get("content") or "")
        if role == "assistant":
            asked = objects_at(raw, "tool_calls")
            calls = [tool_call(each.get("id"), each.get("name"), each.get("arguments")) for each in asked]
            if self._own is None or turn in self._own:
                self._add_call(text, calls, str(raw.get("reasoning_trace") or ""))
            self._asked |= {call.id: call for call in calls}
            self._prompt.append(Message("assistant", text, tuple(calls)))
        elif role == "tool":
            ids = raw["tool_call_id"] if isinstance(raw.get("tool_call_id"), list) else []
            id_ = next((str(each) for each in ids if str(each) in self._asked), next(iter(self._asked), ""))
            is_known = id_ in self._asked and not self._lacks_arguments
            call = self._asked.pop(id_, ToolCall(id_, "unknown", {}))
            arguments = call.arguments if is_known or call.arguments else None
            result = None if raw.get("content") is None else text
            self.events.append(ToolUse(call.name, arguments, result, turn in self._failed or says_error(text)))
            self._prompt.append(Message("tool", text, tool_call_id=id_))
        elif role in ("system", "developer"):
            self.system += ("\n\n" if self.system else "") + text
            self._prompt.append(Message("system", text))
        elif role == "user":
            if self.question is None:
                self.question = text
            else:
                self.events.append(Turn(text))
            self._prompt.append(Message("user", text))

    def _add_call(self, text: str, calls: Sequence[ToolCall], thoughts: str) -> None:
        sent = tuple(self._prompt) if self._is_sent else None
        facts = self._facts | ({"model": self._models.pop(0)} if self._models else {})
        self.events.append(ModelCall(sent, text, calls, thoughts=thoughts, **facts))

    def _add_unanswered(self, known: float | None) -> None:
        """Calls without a result, where they are among the calls that were counted."""
        done = sum(isinstance(event, ToolUse) for event in self.events)
        missing = len(self._asked) if known is None else max(0, int(known) - done)
        self.events += [ToolUse(call.name, call.arguments, None) for call in list(self._asked.values())[:missing]]
