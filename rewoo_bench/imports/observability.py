"""Exports of Langfuse, LangSmith and MLflow -> trajectories; all of them are trees of calls, as spans are (tree.py).

{"type": "GENERATION", "traceId": …, "usageDetails": …}           an observation of Langfuse, or a trace with them
{"run_type": "llm", "trace_id": …, "inputs": …, "outputs": …}     a run of LangSmith
{"info": …, "data": {"spans": […]}}                               a trace of MLflow
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewoo_bench.imports.message_forms import messages_in, reply_in, shown
from rewoo_bench.imports.messages import as_verdict, first_of, text_of
from rewoo_bench.imports.record import (
    RecordedTrajectory,
    Unreadable,
    as_time,
    names_cached,
    number,
    parsed,
    times_of,
    usage_of,
)
from rewoo_bench.imports.tree import Node, details_usage, kind_of, trajectories_of
from rewoo_bench.text.model_output import objects_in
from rewoo_bench.types import Usage

_Facts = Mapping[str, Any]


def _in(value: Any) -> _Facts:
    found = parsed(value)
    return found if isinstance(found, Mapping) else {}


def _filled(node: Node, given: Any, returned: Any, tools: Any = None) -> Node:
    """The node with what went in and came out, as its kind reads it."""
    node.text_in, node.text_out = shown(given), shown(returned)
    if node.kind == "model":
        node.messages, node.reply = messages_in(given), reply_in(returned)
        offered = first_of(_in(given), ("tools", "functions")) if tools is None else tools
        node.tools = objects_in(parsed(offered))
    elif node.kind == "tool":
        node.arguments, node.result = given, returned
    return node


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
    scores = [(score.get("name"), score.get("value")) for score in objects_in(trace.get("scores"))]
    if trace:
        nodes["trace"] = Node("trace", "", "", text_in=shown(trace.get("input")), text_out=shown(trace.get("output")))
    yield from trajectories_of(list(nodes.values()), default_task, _verdict(scores))


_VERDICTS = ("correct", "correctness", "solved", "success", "reward", "accuracy", "exact_match", "passed")


def _verdict(scores: Sequence[tuple[Any, Any]]) -> dict[str, bool]:
    """`solved` as the last score says it whose name is one for that; nothing where none does."""
    found: dict[str, bool] = {}
    for name, value in scores:
        solved = as_verdict(value)
        if str(name).casefold() in _VERDICTS and solved is not None:
            found["solved"] = solved
    return found


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
    )  # fmt: skip
    if node.kind == "model":
        details = _in(value("usageDetails", "usage_details")) or _in(each.get("usage"))
        flat = {"prompt_tokens": each.get("promptTokens"), "completion_tokens": each.get("completionTokens")}
        node.usage = details_usage(details) or usage_of(flat)
        node.is_cached_known = any("cache" in str(name).casefold() for name in details)
        costs = (_in(value("costDetails", "cost_details")).get("total"), each.get("calculatedTotalCost"))
        totals = (each.get("totalCost"), each.get("total_cost"))
        node.cost_usd = next((cost for cost in map(number, (*costs, *totals)) if cost), None)
    return _filled(node, given, returned)


def is_langsmith(record: Any) -> bool:
    """Whether it is a run."""
    return isinstance(record, Mapping) and "run_type" in record and ("id" in record or "trace_id" in record)


def langsmith_parts(record: Any) -> Iterator[tuple[str, Any]]:
    """A run and those inside it, by trace. Raises `Unreadable`."""
    key = str(first_of(record, ("trace_id", "id")) or "")
    if not key:
        raise Unreadable("a run without an id")
    waiting: list[_Facts] = [record]
    while waiting:
        run = waiting.pop(0)
        children = [{"parent_run_id": run.get("id"), **each} for each in objects_in(run.get("child_runs"))]
        waiting += children
        yield key, {name: value for name, value in run.items() if name != "child_runs"}


def read_langsmith(parts: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectories of a trace's runs. A run's later record adds to its earlier one."""
    runs: dict[str, dict[str, Any]] = {}
    for run in parts:
        runs.setdefault(str(run.get("id")), {}).update({k: v for k, v in run.items() if v is not None})
    task = next((run["reference_example_id"] for run in runs.values() if run.get("reference_example_id")), default_task)
    nodes = [_of_langsmith(run) for run in runs.values()]
    stats = [stat for run in runs.values() for stat in _in(run.get("feedback_stats")).items()]
    yield from trajectories_of(nodes, str(task), _verdict([(name, _in(found).get("avg")) for name, found in stats]))


def _of_langsmith(run: _Facts) -> Node:
    given, returned = _in(run.get("inputs")), _in(run.get("outputs"))
    extra = _in(run.get("extra"))
    metadata, invocation = _in(extra.get("metadata")), _in(extra.get("invocation_params"))
    node = Node(
        str(run.get("id") or ""), str(run.get("parent_run_id") or ""), kind_of(run.get("run_type")),
        str(run.get("name") or ""), times=times_of(as_time(run.get("start_time")), as_time(run.get("end_time"))),
        model=str(metadata.get("ls_model_name") or first_of({**given, **invocation}, ("model", "model_name")) or ""),
        error=text_of(run["error"]) if run.get("error") else None,
    )  # fmt: skip
    _filled(node, given, returned, first_of(invocation, ("tools", "functions")))
    if node.kind == "model":
        node.usage, node.is_cached_known = _usage_in(_langsmith_usages(run, returned, metadata))
        node.cost_usd = number(run.get("total_cost")) or None
    if node.kind == "tool":
        node.result = returned if returned or not node.error else None
        node.call_id = str(_in(returned.get("output")).get("tool_call_id") or "")
        bare = given.get("input")
        node.arguments = bare if isinstance(bare, str | Mapping) and len(given) == 1 and parsed(bare) != bare else given
    return node


def _usage_in(places: Sequence[Any]) -> tuple[Usage | None, bool]:
    """The first usage, and whether it names cached tokens."""
    found = next(((usage, names_cached(each)) for each in places if (usage := usage_of(each)) is not None), None)
    return found or (None, False)


def _langsmith_usages(run: _Facts, returned: _Facts, metadata: _Facts) -> list[Any]:
    """Usage of the answer, of LangChain's message or of its result, or the run's own sums."""
    generations = returned.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    message = _in(_in(generations).get("message"))
    return [
        returned.get("usage_metadata"), _in(message.get("kwargs")).get("usage_metadata"),
        metadata.get("usage_metadata"), returned.get("usage"), _in(returned.get("llm_output")).get("token_usage"),
        run if number(run.get("total_tokens")) else None,
    ]  # fmt: skip


def is_mlflow(record: Any) -> bool:
    """Whether it is a trace."""
    if not isinstance(record, Mapping):
        return False
    data = parsed(record.get("data")) if "info" in record else record
    spans = data.get("spans") if isinstance(data, Mapping) else None
    return isinstance(spans, list) and ("info" in record or "trace_id" in record or "request_id" in record)


def read_mlflow(record: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectories of a trace."""
    info = _in(record.get("info"))
    data = _in(record.get("data")) if "info" in record else record
    nodes = [_of_mlflow(each) for each in objects_in(data.get("spans"))]
    key = first_of({**record, **info}, ("trace_id", "request_id"))
    scores = []
    for assessment in objects_in(info.get("assessments")):
        said = _in(first_of(assessment, ("feedback", "expectation")))
        scores.append((first_of(assessment, ("assessment_name", "name")), said.get("value")))
    yield from trajectories_of(nodes, str(key or default_task), _verdict(scores))


def _of_mlflow(span: _Facts) -> Node:
    context, status = _in(span.get("context")), span.get("status")
    found = {name: _unquoted(value) for name, value in _in(span.get("attributes")).items()}
    code = str(_in(status).get("code") if isinstance(status, Mapping) else first_of(span, ("status_code", "status")))
    message = first_of(_in(status), ("message",)) or span.get("status_message")
    names: Sequence[Sequence[str]] = (("start_time_unix_nano", "start_time"), ("end_time_unix_nano", "end_time"))
    start, end = (as_time(first_of(span, each), "ns") for each in names)
    node = Node(
        str(first_of(span, ("span_id",)) or context.get("span_id") or ""),
        str(first_of(span, ("parent_span_id", "parent_id")) or ""), kind_of(found.get("mlflow.spanType")),
        str(span.get("name") or ""), times=times_of(start, end),
        model=str(first_of(found, ("mlflow.llm.model", "model")) or ""),
        error=text_of(message) or "error" if "ERROR" in code.upper() else None,
    )  # fmt: skip
    given = first_of(found, ("mlflow.spanInputs",))
    _filled(node, given, found.get("mlflow.spanOutputs"), found.get("mlflow.chat.tools"))
    if node.kind == "model":
        answer = _in(found.get("mlflow.spanOutputs"))
        # the provider's own count has reasoning tokens, which MLflow's lacks
        node.usage, node.is_cached_known = _usage_in([answer.get("usage"), _in(found.get("mlflow.chat.tokenUsage"))])
        node.model = node.model or str(first_of(answer, ("model",)) or _in(given).get("model") or "")
        node.cost_usd = number(_in(found.get("mlflow.llm.cost")).get("total_cost"))
    return node


def _unquoted(value: Any) -> Any:
    """Attributes are JSON texts, also those that are texts themselves."""
    found = parsed(value)
    if isinstance(found, str) and len(found) > 1 and found[0] == found[-1] == '"':
        return parsed(f"[{found}]")[0] if isinstance(parsed(f"[{found}]"), list) else found
    return found
