"""Exports of Langfuse -> trajectories; they are trees of calls, as spans are (tree.py).

{"type": "GENERATION", "traceId": …, "usageDetails": …}           an observation, or a trace with them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewoo_bench.imports.message_forms import messages_in, reply_in, shown
from rewoo_bench.imports.messages import text_of
from rewoo_bench.imports.record import (
    RecordedTrajectory,
    Unreadable,
    as_time,
    as_verdict,
    counted_usage,
    first_of,
    number,
    parsed,
    times_of,
)
from rewoo_bench.imports.tree import Node, details_usage, kind_of, trajectories_of
from rewoo_bench.text.model_output import objects_in

_Facts = Mapping[str, Any]


def _in(value: Any) -> _Facts:
    found = parsed(value)
    return found if isinstance(found, Mapping) else {}


def is_langfuse(record: Any) -> bool:
    """Whether it is an observation, or a trace with its observations."""
    if not isinstance(record, Mapping):
        return False
    is_observation = ("traceId" in record or "trace_id" in record) and "type" in record
    is_observation = is_observation and ("startTime" in record or "start_time" in record) and "id" in record
    listed = record.get("observations")
    if is_observation or not isinstance(listed, list) or not listed:
        return is_observation
    first = listed[0]
    is_full = isinstance(first, Mapping) and "type" in first and ("startTime" in first or "start_time" in first)
    return is_full or (isinstance(first, str) and "timestamp" in record and "id" in record)


def langfuse_parts(record: Any) -> Iterator[tuple[str, Any]]:
    """The observations by trace, and the trace itself where it is there. Raises `Unreadable`."""
    if "observations" not in record:
        key = str(first_of(record, ("traceId", "trace_id")) or "")
        if not key:
            raise Unreadable("an observation without a trace's id")
        yield key, record
        return
    observations = objects_in(record["observations"])
    if record["observations"] and not observations:
        raise Unreadable("its observations are ids alone: export the trace with them")
    key = str(record.get("id") or "trace")
    yield key, {"trace": {name: value for name, value in record.items() if name != "observations"}}
    for each in observations:
        yield key, each


def read_langfuse(parts: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectories of a trace's observations."""
    trace: _Facts = next((part["trace"] for part in parts if "trace" in part), {})
    nodes = {str(each.get("id")): _of_langfuse(each) for each in parts if "trace" not in each}
    verdicts = [
        solved
        for score in objects_in(trace.get("scores"))
        if str(score.get("name")).casefold() in _VERDICTS and (solved := as_verdict(score.get("value"))) is not None
    ]
    if trace:
        nodes["trace"] = Node("trace", "", "", text_in=shown(trace.get("input")), text_out=shown(trace.get("output")))
    yield from trajectories_of(list(nodes.values()), default_task, {"solved": verdicts[-1]} if verdicts else {})


_VERDICTS = ("correct", "correctness", "solved", "success", "reward", "accuracy", "exact_match", "passed")
"""Names of scores that say whether a task was solved; the last one counts."""


def _of_langfuse(each: _Facts) -> Node:
    def value(camel: str, snake: str) -> Any:
        return first_of(each, (camel, snake))

    given, returned = parsed(each.get("input")), parsed(each.get("output"))
    is_error = str(each.get("level")).upper() == "ERROR"
    node = Node(
        str(each.get("id") or ""), str(value("parentObservationId", "parent_observation_id") or ""),
        kind_of(each.get("type")), str(each.get("name") or ""),
        times=times_of(as_time(value("startTime", "start_time")), as_time(value("endTime", "end_time"))),
        model=str(first_of(each, ("model", "providedModelName", "provided_model_name")) or ""),
        error=text_of(value("statusMessage", "status_message")) or "error" if is_error else None,
        text_in=shown(given), text_out=shown(returned),
    )  # fmt: skip
    if node.kind == "model":
        details = _in(value("usageDetails", "usage_details")) or _in(each.get("usage"))
        flat = {"prompt_tokens": each.get("promptTokens"), "completion_tokens": each.get("completionTokens")}
        node.counted = details_usage(details) or counted_usage(flat)
        node.is_cached_known = any("cache" in str(name).casefold() for name in details)
        costs = (_in(value("costDetails", "cost_details")).get("total"), each.get("calculatedTotalCost"))
        totals = (each.get("totalCost"), each.get("total_cost"))
        node.cost_usd = next((cost for cost in map(number, (*costs, *totals)) if cost), None)
        node.messages, node.reply = messages_in(given), reply_in(returned)
        node.tools = objects_in(parsed(first_of(_in(given), ("tools", "functions"))))
    elif node.kind == "tool":
        node.arguments, node.result = given, returned
    return node
