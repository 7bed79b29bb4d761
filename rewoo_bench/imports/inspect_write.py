"""A run's trajectories as a log of inspect_ai, which `inspect view` opens. It is imported where inspect_ai is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai.event import ModelEvent, ToolEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolCallError, ToolInfo, ToolParams

from rewoo_bench.imports.inspect_log import OURS, said_in
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse, Turn
from rewoo_bench.runs.rows import mean_over_questions
from rewoo_bench.types import Message, ToolCall, Usage


def write_log(path: Path, facts: Mapping[str, Any], trajectories: Sequence[RecordedTrajectory]) -> None:
    """Writes the trajectories of one agent. `facts`: run_id, dataset, agent, model, started_at and finished_at.

    A log is written as a whole, so all of the agent's trajectories are in memory.
    """
    samples = [_sample(each, facts) for each in trajectories]
    usages: dict[str, Any] = {}
    for sample in samples:
        for name, usage in sample.model_usage.items():
            usages[name] = usages[name] + usage if name in usages else usage
    ids = list(dict.fromkeys(each.task for each in trajectories))
    judged = [each for each in trajectories if each.solved is not None]
    solved, tasks = np.array([float(bool(each.solved)) for each in judged]), np.array([each.task for each in judged])
    accuracy = mean_over_questions(solved, tasks) if judged else 0.0
    score = EvalScore(
        name="exact_match", scorer="exact_match", scored_samples=len(judged),
        metrics={"accuracy": EvalMetric(name="accuracy", value=accuracy)},
    )  # fmt: skip
    spec = EvalSpec(
        run_id=facts["run_id"], solver=facts["agent"], tags=[facts["agent"]],
        created=facts["started_at"], task=facts["dataset"], model=facts["model"],
        dataset=EvalDataset(name=facts["dataset"], samples=len(ids), sample_ids=list(ids)),
        config=EvalConfig(epochs=1 + max((each.trial or 0 for each in trajectories), default=0)),
        metadata={OURS: {"agent": facts["agent"], "run_id": facts["run_id"]}},
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
    begun = datetime.fromisoformat(facts["started_at"])
    events = [_event(each, begun) for each in trajectory.events if not isinstance(each, Turn)]
    times = trajectory.times
    scores: dict[str, Score] = {}
    if trajectory.solved is not None:
        scores["exact_match"] = Score(value="C" if trajectory.solved else "I", answer=trajectory.answer)
    if trajectory.f1 is not None:
        scores["f1"] = Score(value=trajectory.f1, answer=trajectory.answer)
    ours: dict[str, Any] = {"stop_reason": trajectory.stop_reason, "cost_usd": trajectory.cost_usd}
    ours |= {"without_texts": True} if trajectory.is_without_texts else {}
    ours |= {"system": trajectory.system} if trajectory.system != said_in(trajectory.events) else {}
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
        metadata={OURS: {name: value for name, value in ours.items() if value is not None}},
        events=events,
        model_usage=usages,
        started_at=_moment(times.start).isoformat() if times else None,
        completed_at=_moment(times.end).isoformat() if times else None,
        total_time=times.end - times.start if times else None,
        error=EvalError(message=failed, traceback="", traceback_ansi="") if failed else None,
    )


def _conversation(trajectory: RecordedTrajectory) -> list[ChatMessage]:
    """The last prompt and its reply, which the viewer shows as the sample's messages."""
    last = next((call for call in reversed(list(trajectory.calls)) if call.messages is not None), None)
    if last is None or last.messages is None:
        return []
    return _chat([*last.messages, Message("assistant", last.reply, tuple(last.tool_calls))])


def _chat(messages: Sequence[Message]) -> list[ChatMessage]:
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
    return [InspectCall(id=each.id, function=each.name, arguments=dict(each.arguments)) for each in calls]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _model_usage(call: ModelCall) -> Any:
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
            metadata={OURS: ours} if ours else None,
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
        error=event.error, timestamp=start, completed=end, **working, metadata={OURS: ours} if ours else None,
    )  # fmt: skip


def _tools(event: ModelCall) -> Iterator[Any]:
    """The tools that were offered, with their schemas where inspect's own form can hold these."""
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
