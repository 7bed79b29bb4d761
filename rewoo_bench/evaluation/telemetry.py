"""`--otel URL`: finished questions as OpenTelemetry spans, to a collector (OTLP over HTTP), export only.

    with exporting("http://localhost:4318", "20261124-…") as add:
        add(result)

A span for the run, and a trace for each question of each architecture: the question, below it the agent, below that
its model and tool calls, with attributes of the GenAI semantic conventions (semantic-conventions-genai). Cached and
reasoning tokens are parts of the input and the output there, as here. The conventions have no price: `cost_usd` and
everything else under `rewoo_bench.` is named here. No texts of prompts, answers or tools are exported. `trace_id` of
questions.parquet is that of the question's trace.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from rewoo_bench.calls.meter import Call
from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.folder import Result
from rewoo_bench.runs.columns import trace_id_of
from rewoo_bench.text.redaction import hide_credentials

_log = logging.getLogger(__name__)
_QUEUE = 1 << 16  # spans that wait for the collector


@contextmanager
def exporting(url: str, run_id: str) -> Iterator[Callable[[Result], None]]:
    """Exports each result that the function gets, and the run at the end. A failure is one warning, and ends no run.

    Raises `UsageError` for what is no address.
    """
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--otel: {url!r} is no address; write http://… or https://…")
    ids = _Ids()
    resource = Resource.create({"service.name": "rewoo_bench", "rewoo_bench.run.id": run_id})
    provider = TracerProvider(resource=resource, id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_Exporter(url), max_queue_size=_QUEUE))
    tracer = provider.get_tracer("rewoo_bench")
    run = tracer.start_span("run", attributes={"rewoo_bench.run.id": run_id})
    try:
        yield lambda result: _add(tracer, ids, run.get_span_context(), run_id, result)
    finally:
        run.end()
        provider.shutdown()


def _add(tracer: Tracer, ids: _Ids, run: SpanContext, run_id: str, result: Result) -> None:
    task, begun = result.task, _nanoseconds(result.started_at)
    end = begun + int(result.latency_s * 1e9)
    model_calls = [call for call in result.calls if call.kind == "model" and call.role != "judge"]
    ids.next_trace = int(trace_id_of(run_id, task.key), 16)
    question = tracer.start_span(
        "question",
        start_time=begun,
        links=[Link(run)],
        attributes={
            "rewoo_bench.run.id": run_id,
            "rewoo_bench.example.id": task.example.id,
            "rewoo_bench.trial": task.trial,
            "rewoo_bench.stop_reason": result.trajectory.stop_reason,
            **({} if result.score is None else {"rewoo_bench.exact_match": result.score.exact_match}),
        },
    )
    agent = tracer.start_span(
        f"invoke_agent {task.architecture.name}",
        context=set_span_in_context(question),
        start_time=begun,
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": task.architecture.name,
            **_usage(model_calls),
            **_cost(result.cost_usd),
        },
    )
    if result.error is not None:
        agent.set_status(Status(StatusCode.ERROR))
        agent.set_attribute("error.type", result.trajectory.stop_reason)
    for call in result.calls:
        start = _nanoseconds(call.started_at)
        name, attributes = _of_call(call)
        kind = SpanKind.CLIENT if call.kind == "model" else SpanKind.INTERNAL
        span = tracer.start_span(name, set_span_in_context(agent), kind, attributes, start_time=start)
        if call.status not in ("ok", "empty"):
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", call.status)
        span.end(start + int((call.end - call.start) * 1e9))
    agent.end(end)
    question.end(end)


def _of_call(call: Call) -> tuple[str, dict[str, Any]]:
    """The name and the attributes of a call's span."""
    place = {"rewoo_bench.place": call.place.name, "rewoo_bench.attempts": call.call_cost.attempts}
    if call.kind == "tool":
        return f"execute_tool {call.name}", {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            **place,
        }
    operation = "embeddings" if call.role == "embedding" else "chat"
    reasons = {"gen_ai.response.finish_reasons": [call.finish_reason]} if call.finish_reason else {}
    return f"{operation} {call.name}", {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": call.name,
        "rewoo_bench.role": call.role,
        **_usage([call]),
        **_cost(call.call_cost.cost_usd),
        **reasons,
        **place,
    }


def _usage(calls: Sequence[Call]) -> Mapping[str, int]:
    return {
        "gen_ai.usage.input_tokens": sum(call.usage.input_tokens for call in calls),
        "gen_ai.usage.output_tokens": sum(call.usage.output_tokens for call in calls),
        "gen_ai.usage.cache_read.input_tokens": sum(call.usage.cached_input_tokens for call in calls),
        "gen_ai.usage.cache_creation.input_tokens": sum(call.usage.cache_write_tokens for call in calls),
        "gen_ai.usage.reasoning.output_tokens": sum(call.usage.reasoning_tokens for call in calls),
    }


def _cost(cost_usd: float | None) -> Mapping[str, float]:
    return {} if cost_usd is None else {"rewoo_bench.cost_usd": cost_usd}


class _Exporter(OTLPSpanExporter):
    """Exports to a collector; its failures are one warning."""

    def __init__(self, url: str) -> None:
        is_whole = urlsplit(url).path.strip("/")
        super().__init__(url if is_whole else f"{url.rstrip('/')}/v1/traces", timeout=10)
        self._said = f"--otel: spans can't be exported to {hide_credentials(url)}; the run goes on"
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it would repeat every failure

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Exports spans; a failure is noted once."""
        result = super().export(spans)
        if result is not SpanExportResult.SUCCESS and self._said:
            _log.warning(self._said)
            self._said = ""
        return result


class _Ids(RandomIdGenerator):
    """Ids of spans: a question's trace has the id that its row has."""

    next_trace: int | None = None

    def generate_trace_id(self) -> int:
        wanted, self.next_trace = self.next_trace, None
        return super().generate_trace_id() if wanted is None else wanted


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000
