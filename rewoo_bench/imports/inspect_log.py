"""Logs of inspect_ai: `.eval` files and their JSON form -> trajectories (inspect_write.py has the other way).

    for place, record in samples_of(Path("logs/2026-….eval")):    # one sample at a time
        next(read_sample(record, place))

Files are read by inspect_ai itself, whose log holds messages once and refers to them. A sample of an epoch
is a trajectory. Model calls of scorers aren't the agent's, and are left out; `notes.scorer_calls` counts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from zipfile import BadZipFile, ZipFile

from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.imports.messages import text_of, tool_call
from rewoo_bench.imports.record import (
    ModelCall,
    RecordedTrajectory,
    Times,
    ToolUse,
    Turn,
    Unreadable,
    as_time,
    as_verdict,
    count,
    number,
    object_at,
    times_of,
)
from rewoo_bench.models.hosted.responses import read_usage
from rewoo_bench.types import Message, StopReason, Usage

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

_JSON_FORM = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
_LARGEST = 64 * 2**20  # bytes of a sample, and of each other file in a log
_UNREAD = frozenset({"store", "timelines"})  # fields of a sample that may be large
_LIMITS: Mapping[str, StopReason] = {
    "token": "token_limit", "context": "length_limit", "time": "time_limit", "working": "time_limit",
    "cost": "cost_limit", "message": "step_limit", "turn": "step_limit",
}  # fmt: skip
_FINISHED = {"max_tokens": "length"}  # inspect's words for what providers call otherwise
_VERDICTS = {"P": False, "N": False}
"""Of inspect's grades those for a partial answer and for none; `as_verdict` knows C and I."""
_ROLES = ("planner", "solver", "tool", "router")  # of our own logs; a judge's tokens would be in no sum
OURS = "rewoo_bench"
"""Key of metadata that holds what inspect has no field for."""


def is_inspect_log(path: Path, start: bytes) -> bool:
    """Whether a file is a log of inspect_ai, by its name and its first bytes."""
    return path.suffix.lower() == ".eval" or _JSON_FORM.match(start) is not None


def samples_of(path: Path) -> Iterator[tuple[str, Any]]:
    """The samples of a log as JSON, each with its place. Raises `DataError`, and `UsageError` without inspect_ai.

    Of a `.eval` file one sample at a time is in memory, and none that is larger than `_LARGEST`; inspect_ai reads the
    JSON form as a whole.
    """
    try:
        from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
    except ImportError:
        raise UsageError(f"{path}: logs of inspect_ai need it: pip install 'rewoo-bench[inspect]'") from None
    with ThreadPoolExecutor(1) as thread:  # inspect_ai runs an event loop of its own for each of these

        def done(place: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
            try:
                return thread.submit(function, *args, **options).result()
            except Exception as error:  # whatever a zip, JSON and a schema can be wrong in
                said = str(error).partition("\n")[0] or type(error).__name__
                raise DataError(f"{place}: inspect_ai can't read it: {said}") from None

        name = str(path)
        is_zip = path.suffix.lower() == ".eval"
        if is_zip and (member := next(_too_large(path), None)):
            raise DataError(f"{path.name}: {member} in it has more than {_LARGEST >> 20} MB")
        log = done(path.name, read_eval_log, name, header_only=is_zip, resolve_attachments=not is_zip)
        summaries = done(path.name, read_eval_log_sample_summaries, name) if is_zip else []
        header = _header(log)
        for sample in log.samples or ():
            yield f"{path.name}, sample {sample.id}, epoch {sample.epoch}", _record(header, sample)
        for summary in summaries:
            place = f"{path.name}, sample {summary.id}, epoch {summary.epoch}"
            found = done(
                place, read_eval_log_sample, name, summary.id, summary.epoch, resolve_attachments=True,
                exclude_fields=set(_UNREAD),
            )  # fmt: skip
            yield place, _record(header, found)


def _too_large(path: Path) -> Iterator[str]:
    """The files in a zip that are too large."""
    with suppress(BadZipFile, OSError), ZipFile(path) as file:
        yield from (each.filename for each in file.infolist() if each.file_size > _LARGEST)


def _header(log: EvalLog) -> dict[str, Any]:
    """What a log says of all its samples."""
    steps = [str(step.params.get("name") or step.solver) for step in log.plan.steps]
    agent = object_at(log.eval.metadata, OURS).get("agent")
    return {"agent": agent or "+".join(steps) or log.eval.solver or "", "model": log.eval.model, "task": log.eval.task}


def _record(header: Mapping[str, Any], sample: EvalSample) -> dict[str, Any]:
    return {**sample.model_dump(mode="json", exclude_none=True, exclude=set(_UNREAD)), "inspect": header}


def is_sample(record: Any) -> bool:
    """Whether a record is a sample that `samples_of` read."""
    return isinstance(record, Mapping) and isinstance(record.get("inspect"), Mapping) and "epoch" in record


def read_sample(record: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectory of a sample."""
    header, events = record["inspect"], record.get("events") or []
    if not events and record.get("messages"):
        raise Unreadable("the log has messages, but no events: it was written without them")
    inputs = _messages(record.get("input"))
    spans = _Spans(events)
    found: list[ModelCall | ToolUse | Turn] = []
    of_scorers = 0
    for event in events:
        kind, span = event.get("event"), event.get("span_id")
        if kind not in ("model", "tool") or event.get("pending"):
            continue
        if span in spans.scorers:
            of_scorers += kind == "model"
        elif kind == "model":
            found.append(_model_call(event, spans.agents.get(span, ""), span in spans.inside))
        else:
            found.append(_tool(event, spans.agents.get(spans.around.get(span, span), "")))
    ours = object_at(record.get("metadata"), OURS)
    scores = record.get("scores") or {}
    f1 = number(scores["f1"].get("value")) if ours and "f1" in scores else None
    error, stop_reason = _end(record, ours)
    target = record.get("target")
    told = [message.content for message in inputs if message.role == "system"]
    yield RecordedTrajectory(
        task=str(record["id"]),
        question=next((message.content for message in inputs if message.role == "user"), ""),
        events=found,
        agent=str(header.get("agent") or ""),
        trial=max(0, count(record["epoch"]) - 1),
        system=str(ours["system"]) if "system" in ours else "\n\n".join(told) or said_in(found),
        answer=_answer(record),
        answers=[text for each in (target if isinstance(target, list) else [target]) if (text := text_of(each))],
        solved=_verdict([each for name, each in scores.items() if name != "f1" or not ours]),
        error=error,
        stop_reason=stop_reason,
        cost_usd=number(ours.get("cost_usd")),
        is_without_texts=bool(ours.get("without_texts")),
        f1=f1 if f1 is not None and 0 <= f1 <= 1 else None,
        notes={"scorer_calls": of_scorers} if of_scorers else {},
    )


def said_in(events: Sequence[ModelCall | ToolUse | Turn]) -> str:
    """What the main agent's first prompt has of the system."""
    prompts = (event.messages for event in events if isinstance(event, ModelCall) and not event.agent)
    return "\n\n".join(message.content for message in next(prompts, None) or () if message.role == "system")


class _Spans:
    """The spans of a sample. `agents` has the sub-agent of each: the outermost agent is the main one, and inside a
    tool's call each agent is a sub-agent, or the tool itself where it asks a model without one.

    `inside` are the spans inside a tool's call and of it, `around` has the span around each of those, and `scorers` are
    those of scorers.
    """

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.agents: dict[str, str] = {}
        self.inside: set[str] = set()
        self.around: dict[str, str] = {}
        self.scorers: set[str] = set()
        in_agents: set[str] = set()
        for event in events:
            if event.get("event") != "span_begin":
                continue
            id_, parent, kind = str(event["id"]), str(event.get("parent_id")), event.get("type")
            is_sub = kind == "tool" or (kind == "agent" and (parent in in_agents or parent in self.inside))
            self.agents[id_] = str(event.get("name") or "") if is_sub else self.agents.get(parent, "")
            if kind == "agent" or parent in in_agents:
                in_agents.add(id_)
            if kind == "tool":
                self.around[id_] = parent
            if kind == "tool" or parent in self.inside:
                self.inside.add(id_)
            if kind in ("scorer", "scorers") or parent in self.scorers:
                self.scorers.add(id_)


def _verdict(scores: Sequence[Mapping[str, Any]]) -> bool | None:
    """That of the first scorer which gives one; of a scorer with several values, of the first value."""
    for score in scores:
        value = score.get("value")
        for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]:
            found = _VERDICTS.get(each) if isinstance(each, str) else None
            if (verdict := as_verdict(each) if found is None else found) is not None:
                return verdict
    return None


def _answer(record: Mapping[str, Any]) -> str | None:
    """What the first scorer took as the answer, else the last completion."""
    scores = record.get("scores") or {}
    taken = next((str(each["answer"]) for each in scores.values() if each.get("answer") is not None), None)
    return taken if taken is not None else (record.get("output") or {}).get("completion") or None


def _end(record: Mapping[str, Any], ours: Mapping[str, Any]) -> tuple[str | None, StopReason | None]:
    """What failed, and why the sample ended."""
    error, limit = record.get("error") or {}, record.get("limit") or {}
    said = next(iter(str(error.get("message") or "").splitlines()), "") or None
    if (reason := ours.get("stop_reason")) in get_args(StopReason):
        return said, reason
    if limit:
        return said or f"limit: {limit.get('type')} ({limit.get('limit'):g})", _LIMITS.get(str(limit.get("type")))
    return said, None


def _messages(messages: Any) -> list[Message]:
    """inspect's messages; a text is one of the user."""
    if not isinstance(messages, list):
        return [Message("user", text_of(messages))]
    found = []
    for each in messages:
        role = each.get("role")
        calls = tuple(
            tool_call(c.get("id"), c.get("function"), c.get("arguments")) for c in each.get("tool_calls") or ()
        )
        error = (each.get("error") or {}).get("message")
        text = str(error) if error else _said(each.get("content"))[0]
        found.append(Message(role, text, calls, each.get("tool_call_id")))
    return found


def _said(content: Any) -> tuple[str, str]:
    """The visible text of a message's content, and its reasoning."""
    if not isinstance(content, list):
        return text_of(content), ""
    is_thought = [isinstance(part, Mapping) and part.get("type") == "reasoning" for part in content]
    visible = text_of([part for part, thought in zip(content, is_thought, strict=True) if not thought])
    thoughts = [part.get("reasoning") or "" for part, thought in zip(content, is_thought, strict=True) if thought]
    return visible, "\n".join(filter(None, thoughts))


def _times(event: Mapping[str, Any]) -> Times | None:
    return times_of(as_time(event.get("timestamp")), as_time(event.get("completed")))


def _model_call(event: Mapping[str, Any], agent: str, is_in_tool: bool) -> ModelCall:
    output = event.get("output") or {}
    choice: Mapping[str, Any] = next(iter(output.get("choices") or ()), {})
    message = choice.get("message") or {}
    text, thoughts = _said(message.get("content"))
    replies = _messages([message]) if message else []
    usage = output.get("usage")
    ours = object_at(event.get("metadata"), OURS)
    error = event.get("error") or output.get("error")
    reason = ours.get("finish_reason") or choice.get("stop_reason")
    return ModelCall(
        None if ours.get("without_texts") else _messages(event.get("input") or []),
        text,
        replies[0].tool_calls if replies else (),
        _usage(event) if usage else Usage() if error else None,
        str(event.get("model") or ""),
        event.get("tools") or (),
        thoughts,
        None if reason == "unknown" else _FINISHED.get(str(reason), reason),
        number((usage or {}).get("total_cost")),
        _times(event),
        str(error) if error else None,
        str(ours.get("agent") or agent),
        bool(ours.get("is_estimated")),
        "input_tokens_cache_read" in (usage or {}) and not ours.get("without_cached"),
        "tool" if is_in_tool else str(ours["role"]) if ours.get("role") in _ROLES else "agent",
    )


def _usage(event: Mapping[str, Any]) -> Usage | None:
    """Tokens of a call, as the provider itself says them where its response was kept; None where nobody says them.

    inspect's input has no cached tokens in it, since 0.3.184 of any provider; its own total tells which an older log
    has (`count_usage`).
    """
    response = object_at(event.get("call"), "response")
    for usage in (response.get("usage"), response.get("usage_metadata"), object_at(event, "output").get("usage")):
        if isinstance(usage, Mapping) and usage and (found := read_usage(usage)) != Usage():
            return found
    return None


def _tool(event: Mapping[str, Any], agent: str) -> ToolUse:
    error, ours = event.get("error") or {}, object_at(event.get("metadata"), OURS)
    result = str(error.get("message") or "failed") if error else text_of(event.get("result"))
    return ToolUse(
        str(event.get("function") or "unknown"),
        None if ours.get("without_arguments") else event.get("arguments") or {},
        None if ours.get("without_result") else result,
        bool(error) or bool(event.get("failed")),
        _times(event),
        str(ours.get("agent") or agent),
        str(event.get("id") or ""),
    )
