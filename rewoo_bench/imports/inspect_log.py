"""Logs of inspect_ai: `.eval` files and their JSON form -> trajectories, and trajectories -> `.eval` files.

    for place, record in samples_of(Path("logs/2026-….eval")):    # one sample at a time
        next(read_sample(record, place))

Files are read and written by inspect_ai itself, whose log holds messages once and refers to them. A sample of an epoch
is a trajectory. Model calls of scorers aren't the agent's, and are left out; `notes.scorer_calls` counts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from zipfile import BadZipFile, ZipFile

from rewoo_bench.errors import UsageError
from rewoo_bench.imports.messages import as_verdict, text_of, tool_call
from rewoo_bench.imports.record import (
    ModelCall,
    RecordedTrajectory,
    Times,
    ToolUse,
    Turn,
    Unreadable,
    as_time,
    count,
    number,
    role_of,
    times_of,
)
from rewoo_bench.types import Message, StopReason, ToolCall, Usage

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ChatMessage

_JSON_FORM = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
_LARGEST = 64 * 2**20  # bytes of a sample, and of each other file in a log
_UNREAD = frozenset({"store", "timelines"})  # fields of a sample that may be large
_LIMITS: Mapping[str, StopReason] = {
    "token": "token_limit", "context": "length_limit", "time": "time_limit", "working": "time_limit",
    "cost": "cost_limit", "message": "step_limit", "turn": "step_limit",
}  # fmt: skip
_FINISHED = {"max_tokens": "length"}  # inspect's words for what providers call otherwise
_VERDICTS = {"P": (False, 0.5), "N": (False, 0.0)}
"""Of inspect's grades those for a partial answer and for none; `as_verdict` knows C and I."""
_OURS = "rewoo_bench"
"""Key of metadata that holds what inspect has no field for."""


def is_inspect_log(path: Path, start: bytes) -> bool:
    """Whether a file is a log of inspect_ai, by its name and its first bytes."""
    return path.suffix.lower() == ".eval" or _JSON_FORM.match(start) is not None


def samples_of(path: Path) -> Iterator[tuple[str, Any]]:
    """The samples of a log as JSON, each with its place, or `Unreadable`. Raises `UsageError` without inspect_ai.

    Of a `.eval` file one sample at a time is in memory, and none that is larger than `_LARGEST`; inspect_ai reads the
    JSON form as a whole.
    """
    try:
        from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
    except ImportError:
        raise UsageError(f"{path}: logs of inspect_ai need it: pip install 'rewoo-bench[inspect]'") from None
    with ThreadPoolExecutor(1) as thread:  # inspect_ai runs an event loop of its own for each of these

        def done(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
            try:
                return thread.submit(function, *args, **options).result()
            except Exception as error:  # whatever a zip, JSON and a schema can be wrong in
                return Unreadable(
                    f"inspect_ai can't read it: {str(error).partition(chr(10))[0] or type(error).__name__}"
                )

        name = str(path)
        is_zip = path.suffix.lower() == ".eval"
        large = set(_large_members(path)) if is_zip else set()
        if of_log := sorted(each for each in large if not each.startswith("samples/")):
            yield path.name, Unreadable(f"{of_log[0]} in it has more than {_LARGEST >> 20} MB")
            return
        log = done(read_eval_log, name, header_only=is_zip, resolve_attachments=not is_zip)
        summaries = done(read_eval_log_sample_summaries, name) if is_zip and not isinstance(log, Unreadable) else []
        for failed in (log, summaries):
            if isinstance(failed, Unreadable):
                yield path.name, failed
                return
        header = _header(log)
        for sample in log.samples or ():
            yield f"{path.name}, sample {sample.id}, epoch {sample.epoch}", _record(header, sample)
        for summary in summaries:
            place = f"{path.name}, sample {summary.id}, epoch {summary.epoch}"
            if f"samples/{summary.id}_epoch_{summary.epoch}.json" in large:
                yield place, Unreadable(f"a sample of more than {_LARGEST >> 20} MB")
                continue
            found = done(
                read_eval_log_sample, name, summary.id, summary.epoch, resolve_attachments=True,
                exclude_fields=set(_UNREAD),
            )  # fmt: skip
            yield place, found if isinstance(found, Unreadable) else _record(header, found)


def _large_members(path: Path) -> Iterator[str]:
    """The files in a zip that unpack to more than `_LARGEST`; none of a file that is no zip."""
    with suppress(BadZipFile, OSError, ValueError, NotImplementedError), ZipFile(path) as file:
        yield from (each.filename for each in file.infolist() if each.file_size > _LARGEST)


def _header(log: EvalLog) -> dict[str, Any]:
    """What a log says of all its samples."""
    steps = [str(step.params.get("name") or step.solver) for step in log.plan.steps]
    ours = (log.eval.metadata or {}).get(_OURS)
    agent = (ours or {}).get("agent") if isinstance(ours, Mapping) else None
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
    ours = _ours(record.get("metadata"))
    of_models = [_ours(event.get("metadata")) for event in events if event.get("event") == "model"]
    is_marked = any(each.get("without_texts") for each in of_models) and not record.get("input")
    solved, score = _verdict(record.get("scores"))
    error, stop_reason = _end(record, ours)
    notes = {
        "scorer_calls": of_scorers,
        "error_retries": len(record.get("error_retries") or ()),
        "from_cache": sum(event.get("cache") == "read" for event in events),
        "scores": {name: each.get("value") for name, each in (record.get("scores") or {}).items()},
    }
    target = record.get("target")
    told = [message.content for message in inputs if message.role == "system"]
    yield RecordedTrajectory(
        task=str(record["id"]),
        question=next((message.content for message in inputs if message.role == "user"), ""),
        events=found,
        agent=str(header.get("agent") or ""),
        trial=max(0, count(record["epoch"]) - 1),
        system=str(ours["system"]) if "system" in ours else "\n\n".join(told) or _told(found),
        answer=_answer(record),
        answers=[text for each in (target if isinstance(target, list) else [target]) if (text := text_of(each))],
        solved=solved,
        score=score,
        error=error,
        stop_reason=stop_reason,
        cost_usd=number(ours.get("cost_usd")),
        is_without_texts=bool(ours.get("without_texts")) or is_marked,
        notes={name: value for name, value in notes.items() if value},
    )


def _told(events: Sequence[ModelCall | ToolUse | Turn]) -> str:
    """What the main agent's first prompt has of the system."""
    prompts = (event.messages for event in events if isinstance(event, ModelCall) and not event.agent)
    return "\n\n".join(message.content for message in next(prompts, None) or () if message.role == "system")


def _ours(metadata: Any) -> Mapping[str, Any]:
    found = metadata.get(_OURS) if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


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


def _verdict(scores: Any) -> tuple[bool | None, float | None]:
    """That of the first scorer which gives one; of a scorer with several values, of the first value."""
    for score in scores.values() if isinstance(scores, Mapping) else ():
        value = score.get("value")
        for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]:
            found = _VERDICTS.get(each) if isinstance(each, str) else None
            if (verdict := found or as_verdict(each)) != (None, None):
                return verdict
    return None, None


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
    ours = _ours(event.get("metadata"))
    error = event.get("error") or output.get("error")
    reason = ours.get("finish_reason") or choice.get("stop_reason")
    return ModelCall(
        None if ours.get("without_texts") else _messages(event.get("input") or []),
        text,
        replies[0].tool_calls if replies else (),
        _usage(usage) if usage else Usage() if error else None,
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
        "tool" if is_in_tool else role_of(ours),
    )


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Tokens of a call: inspect's `input_tokens` are those beside the cache."""
    read, written = count(usage.get("input_tokens_cache_read")), count(usage.get("input_tokens_cache_write"))
    output = count(usage.get("output_tokens"))
    given = count(usage.get("input_tokens")) + read + written
    return Usage(given, read, output, min(output, count(usage.get("reasoning_tokens"))), written)


def _tool(event: Mapping[str, Any], agent: str) -> ToolUse:
    error, ours = event.get("error") or {}, _ours(event.get("metadata"))
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


# The other way: a run's trajectories as a log that `inspect view` opens.


def write_log(path: Path, facts: Mapping[str, Any], trajectories: Sequence[RecordedTrajectory]) -> None:
    """Writes the trajectories of one agent. `facts`: run_id, dataset, agent, model, started_at and finished_at.

    Raises `UsageError` without inspect_ai. A log is written as a whole, so all of the agent's trajectories are in
    memory.
    """
    try:
        from inspect_ai.log import (
            EvalConfig,
            EvalDataset,
            EvalLog,
            EvalMetric,
            EvalPlan,
            EvalPlanStep,
            EvalResults,
            EvalScore,
            EvalSpec,
            EvalStats,
            write_eval_log,
        )
    except ImportError:
        raise UsageError("--format: logs of inspect_ai need it: pip install 'rewoo-bench[inspect]'") from None
    samples = [_sample(each, facts) for each in trajectories]
    usages: dict[str, Any] = {}
    for sample in samples:
        for name, usage in sample.model_usage.items():
            usages[name] = usages[name] + usage if name in usages else usage
    ids = list(dict.fromkeys(each.task for each in trajectories))
    judged = [each for each in trajectories if each.solved is not None]
    accuracy = sum(bool(each.solved) for each in judged) / len(judged) if judged else 0.0
    score = EvalScore(
        name="exact_match", scorer="exact_match", scored_samples=len(judged),
        metrics={"accuracy": EvalMetric(name="accuracy", value=accuracy)},
    )  # fmt: skip
    spec = EvalSpec(
        run_id=facts["run_id"], solver=facts["agent"], tags=[facts["agent"]],
        created=facts["started_at"], task=facts["dataset"], model=facts["model"],
        dataset=EvalDataset(name=facts["dataset"], samples=len(ids), sample_ids=list(ids)),
        config=EvalConfig(epochs=1 + max((each.trial or 0 for each in trajectories), default=0)),
        metadata={_OURS: {"agent": facts["agent"], "run_id": facts["run_id"]}},
    )  # fmt: skip
    log = EvalLog(
        status="success",
        eval=spec,
        plan=EvalPlan(steps=[EvalPlanStep(solver=facts["agent"])]),
        results=EvalResults(
            total_samples=len(samples), completed_samples=len(samples), scores=[score] if judged else []
        ),
        stats=EvalStats(
            started_at=facts["started_at"],
            completed_at=facts["finished_at"] or facts["started_at"],
            model_usage=usages,
        ),
        samples=samples,
    )
    with ThreadPoolExecutor(1) as thread:
        thread.submit(write_eval_log, log, str(path)).result()


def _sample(trajectory: RecordedTrajectory, facts: Mapping[str, Any]) -> EvalSample:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score

    begun = datetime.fromisoformat(facts["started_at"])
    events = [_event(each, begun) for each in trajectory.events if not isinstance(each, Turn)]
    starts = [each.times for each in trajectory.events if not isinstance(each, Turn) and each.times]
    scores: dict[str, Score] = {}
    if trajectory.solved is not None:
        scores["exact_match"] = Score(value="C" if trajectory.solved else "I", answer=trajectory.answer)
    if trajectory.score is not None:
        scores["f1"] = Score(value=trajectory.score, answer=trajectory.answer)
    ours: dict[str, Any] = {"stop_reason": trajectory.stop_reason, "cost_usd": trajectory.cost_usd}
    ours |= {"without_texts": True} if trajectory.is_without_texts else {}
    ours |= {"system": trajectory.system} if trajectory.system != _told(trajectory.events) else {}
    failed = trajectory.error or (trajectory.stop_reason if trajectory.stop_reason in ("error", "agent_failed") else "")
    usages: dict[str, Any] = {}
    for call in trajectory.calls:
        usage = _model_usage(call)
        usages[call.model] = usages[call.model] + usage if call.model in usages else usage
    return EvalSample(
        id=trajectory.task,
        epoch=(trajectory.trial or 0) + 1,
        input=trajectory.question,
        target=list(trajectory.answers),
        messages=_conversation(trajectory),
        output=ModelOutput.from_content(facts["model"], trajectory.answer or ""),
        scores=scores or None,
        metadata={_OURS: {name: value for name, value in ours.items() if value is not None}},
        events=events,
        model_usage=usages,
        started_at=_moment(min(each.start for each in starts)).isoformat() if starts else None,
        completed_at=_moment(max(each.end for each in starts)).isoformat() if starts else None,
        total_time=max(each.end for each in starts) - min(each.start for each in starts) if starts else None,
        error=EvalError(message=failed, traceback="", traceback_ansi="") if failed else None,
    )


def _conversation(trajectory: RecordedTrajectory) -> list[ChatMessage]:
    """The last prompt and its reply, which the viewer shows as the sample's messages."""
    last = next((call for call in reversed(list(trajectory.calls)) if call.messages is not None), None)
    if last is None or last.messages is None:
        return []
    return _chat([*last.messages, Message("assistant", last.reply, tuple(last.tool_calls))])


def _chat(messages: Sequence[Message]) -> list[ChatMessage]:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser

    found: list[ChatMessage] = []
    for each in messages:
        if each.role == "assistant":
            found.append(ChatMessageAssistant(content=each.content, tool_calls=_tool_calls(each.tool_calls) or None))
        elif each.role == "tool":
            found.append(ChatMessageTool(content=each.content, tool_call_id=each.tool_call_id))
        else:
            found.append((ChatMessageSystem if each.role == "system" else ChatMessageUser)(content=each.content))
    return found


def _tool_calls(calls: Sequence[ToolCall]) -> list[Any]:
    from inspect_ai.tool import ToolCall as InspectCall

    return [InspectCall(id=each.id, function=each.name, arguments=dict(each.arguments)) for each in calls]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _model_usage(call: ModelCall) -> Any:
    from inspect_ai.model import ModelUsage

    usage = call.usage or Usage()
    return ModelUsage(
        input_tokens=usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_cache_read=usage.cached_input_tokens,
        input_tokens_cache_write=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        total_cost=call.cost_usd,
    )


def _event(event: ModelCall | ToolUse, begun: datetime) -> Any:
    """The event of a call, at the beginning of the run where its time isn't known."""
    from inspect_ai.event import ModelEvent, ToolEvent
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        GenerateConfig,
        ModelOutput,
    )
    from inspect_ai.tool import ToolCallError

    start, end = (_moment(event.times.start), _moment(event.times.end)) if event.times else (begun, None)
    working = {"working_start": 0.0, "working_time": event.times.end - event.times.start if event.times else None}
    ours: dict[str, Any] = {"agent": event.agent} if event.agent else {}
    if isinstance(event, ToolUse):
        if event.result is None:
            ours["without_result"] = True
        if event.arguments is None:
            ours["without_arguments"] = True
        return ToolEvent(
            id=event.call_id or f"call_{start.timestamp()}", function=event.name,
            arguments=dict(event.arguments or {}),
            result=event.result or "", timestamp=start, completed=end, **working,
            error=ToolCallError("unknown", event.result or "failed") if event.failed else None,
            metadata={_OURS: ours} if ours else None,
        )  # fmt: skip
    ours |= {"without_texts": True} if event.messages is None else {}
    ours |= {"is_estimated": True} if event.is_estimated else {}
    ours |= {} if event.is_cached_known else {"without_cached": True}
    ours |= {} if event.role == "agent" else {"role": event.role}
    reason = {"length": "max_tokens"}.get(event.finish_reason or "", event.finish_reason)
    known: Any = reason if reason in ("stop", "max_tokens", "tool_calls", "content_filter") else "unknown"
    ours |= {"finish_reason": event.finish_reason} if known == "unknown" and reason else {}
    content: Any = event.reply
    if event.thoughts:
        content = [
            ContentReasoning(reasoning=event.thoughts),
            *([ContentText(text=event.reply)] if event.reply else []),
        ]
    message = ChatMessageAssistant(content=content, tool_calls=_tool_calls(event.tool_calls) or None)
    return ModelEvent(
        model=event.model, input=_chat(event.messages or ()), tools=list(_tools(event)), tool_choice="auto",
        config=GenerateConfig(),
        output=ModelOutput(
            model=event.model,
            choices=[] if event.error else [ChatCompletionChoice(message=message, stop_reason=known)],
            usage=_model_usage(event), time=working["working_time"],
        ),
        error=event.error, timestamp=start, completed=end, **working, metadata={_OURS: ours} if ours else None,
    )  # fmt: skip


def _tools(event: ModelCall) -> Iterator[Any]:
    """The tools that were offered, with their schemas where inspect's own form can hold these."""
    from inspect_ai.tool import ToolInfo, ToolParams

    for tool in event.tools:
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not function.get("name"):
            continue
        about = str(function.get("description") or function.get("about") or "")
        found = (function.get(name) for name in ("parameters", "input_schema", "inputSchema", "args"))
        schema = next((each for each in found if isinstance(each, Mapping)), {})
        fields = {name: schema[name] for name in ("properties", "required") if name in schema}
        try:
            yield ToolInfo(name=str(function["name"]), description=about, parameters=ToolParams.model_validate(fields))
        except ValueError:
            yield ToolInfo(name=str(function["name"]), description=about)
