"""OpenTelemetry spans -> the nodes of a tree (tree.py).

    {"resourceSpans": […]}                        OTLP in JSON, as a collector writes it; resourceLogs for their events
    {"name": …, "context": {"trace_id": …}, …}    a span as the console exporter writes it

A span is a model's call, a tool's, an agent's, or none of these, in the names of the GenAI conventions (1.27 to 1.37
and later), of OpenInference, of Traceloop, of Langfuse's SDK, of the Vercel AI SDK (up to 6) or of Google's ADK.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewoo_bench.imports.message_forms import messages_in, plain_messages, reply_in, shown
from rewoo_bench.imports.messages import text_of
from rewoo_bench.imports.record import (
    RecordedTrajectory,
    Unreadable,
    as_time,
    counted_usage,
    first_of,
    known,
    number,
    object_at,
    objects_at,
    parsed,
    times_of,
)
from rewoo_bench.imports.tree import Kind, Node, details_usage, kind_of, trajectories_of
from rewoo_bench.models.hosted.responses import CountedUsage
from rewoo_bench.text.model_output import as_object, objects_in


def is_spans(record: Any) -> bool:
    """Whether it is OTLP JSON of spans or logs, one span of it, or a span of the console exporter."""
    if not isinstance(record, Mapping):
        return False
    if any(isinstance(record.get(name), list) for name in _LISTS[:4]):
        return True
    if "traceId" in record and "spanId" in record and ("startTimeUnixNano" in record or "endTimeUnixNano" in record):
        return True
    context = record.get("context")
    return isinstance(context, Mapping) and "trace_id" in context and "attributes" in record and "start_time" in record


_LISTS = ("resourceSpans", "resourceLogs", "scopeSpans", "scopeLogs", "spans", "logRecords")


def span_parts(record: Any) -> Iterator[tuple[str, Any]]:
    """Each span or log record with the id of its trace. Raises `Unreadable` at the end where one can't be read."""
    fault: Unreadable | None = None
    for number_, (scope, span) in enumerate(_raw_spans(record, ""), 1):
        try:
            key, part = _part(scope, span)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            fault = fault or Unreadable(f"span {number_}: {error}")
        else:
            if key:
                yield key, part
    if fault:
        raise fault


def _raw_spans(record: Mapping[str, Any], scope: str) -> Iterator[tuple[str, Any]]:
    """The spans and log records in a document, each with the name of the package that recorded it."""
    listed = [name for name in _LISTS if isinstance(record.get(name), list)]
    if not listed:
        yield scope, record
    for each in (each for name in listed for each in record[name]):
        if isinstance(each, Mapping):
            yield from _raw_spans(each, str(object_at(record, "scope").get("name") or scope))
        else:
            yield scope, each


def _part(scope: str, span: Any) -> tuple[str, dict[str, Any]]:
    """What is kept of a span or a log record: ids, name, times, attributes, events."""
    if not isinstance(span, Mapping):
        raise Unreadable(f"it is {type(span).__name__}, expected an object")
    context = span["context"] if isinstance(span.get("context"), Mapping) else span
    trace, id_ = (_id(first_of(context, names)) for names in (("traceId", "trace_id"), ("spanId", "span_id")))
    attributes = _attributes(span.get("attributes"))
    if "body" in span or "eventName" in span or "timeUnixNano" in span:
        event = {"name": span.get("eventName") or attributes.get("event.name"), "attributes": attributes}
        return trace, {"log": id_, **event, "body": _value(span.get("body"))}
    if not trace or not id_:
        raise Unreadable("no trace id or no span id")
    status = object_at(span, "status")
    code = str(first_of(status, ("code", "status_code")))
    is_error = code.upper() in ("2", "ERROR", "STATUS_CODE_ERROR")
    return trace, {
        "id": id_,
        "parent": _id(first_of(span, ("parentSpanId", "parent_id"))),
        "name": str(span.get("name") or ""),
        "scope": scope,
        "start": as_time(first_of(span, ("startTimeUnixNano", "start_time")), "ns"),
        "end": as_time(first_of(span, ("endTimeUnixNano", "end_time")), "ns"),
        "attributes": attributes,
        "events": [
            {"name": each.get("name"), "attributes": _attributes(each.get("attributes"))}
            for each in objects_at(span, "events")
        ],
        "error": str(first_of(status, ("message", "description")) or "error") if is_error else None,
    }


def _id(value: Any) -> str:
    found = str(value or "").lower().removeprefix("0x")
    return "" if not found.strip("0") else found


def _attributes(raw: Any) -> dict[str, Any]:
    """Attributes of OTLP (key and typed value) or plain ones."""
    if isinstance(raw, Mapping):
        return {str(name): value for name, value in raw.items()}
    return {str(each["key"]): _value(each.get("value")) for each in objects_in(raw) if "key" in each}


def _value(raw: Any) -> Any:
    """The value of OTLP's typed form."""
    if not isinstance(raw, Mapping) or len(raw) != 1:
        return raw
    ((kind, value),) = raw.items()
    if kind == "arrayValue":
        return [_value(each) for each in value.get("values", ())]
    if kind == "kvlistValue":
        return _attributes(value.get("values"))
    if kind == "intValue":
        return int(value)
    return value if kind.endswith("Value") else raw


def read_spans(parts: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectories of a trace's spans."""
    spans = {part["id"]: part for part in parts if "id" in part}
    for log in (part for part in parts if "log" in part):
        if log["log"] in spans:
            spans[log["log"]]["events"].append(log)
    nodes = [_node(span) for span in spans.values()]
    yield from trajectories_of(nodes, default_task)


_OPERATIONS: Mapping[str, Kind] = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "completion", "responses"), "model"),
    **{"execute_tool": "tool", "invoke_agent": "agent"},
}


def _kind(found: Mapping[str, Any]) -> Kind:
    if found.get("gen_ai.tool.name") == _ADK_MERGED:
        return ""
    of_ai_sdk = str(found.get("ai.operationId") or "")
    if of_ai_sdk:
        return "tool" if of_ai_sdk == "ai.toolCall" else "model" if of_ai_sdk.endswith(_AI_SDK_CALLS) else ""
    operation = found.get("gen_ai.operation.name")
    if operation is not None:
        return _OPERATIONS.get(str(operation).casefold(), "")
    word = first_of(found, ("openinference.span.kind", "langfuse.observation.type", "traceloop.span.kind"))
    if word is not None:
        is_nameless = (
            str(word).casefold() == "agent" and "openinference.span.kind" in found and "agent.name" not in found
        )
        return "" if is_nameless else kind_of(word)  # LangGraph's nodes
    if found.get("llm.request.type") in ("chat", "completion"):
        return "model"
    has_request = bool(parsed(found.get(_ADK_REQUEST)))
    return "model" if has_request or ("gen_ai.request.model" in found and _usage(found)) else ""


_AI_SDK_CALLS = (".doGenerate", ".doStream")  # below `ai.generateText` and others, whose tokens are their sums
_ADK_REQUEST, _ADK_RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
_ADK_MERGED = "(merged tools)"  # in a span that repeats what those of tools that ran at once say


def _node(span: Mapping[str, Any]) -> Node:
    found = dict(span["attributes"])
    for event in span["events"]:
        if event.get("name") == "gen_ai.client.inference.operation.details":
            found |= event["attributes"]
    kind = _kind(found)
    names = {
        "tool": ("gen_ai.tool.name", "ai.toolCall.name", "tool.name", "traceloop.entity.name"),
        "agent": ("gen_ai.agent.name", "agent.name", "traceloop.entity.name"),
    }
    given = first_of(found, ("langfuse.observation.input", "input.value", "traceloop.entity.input", "ai.prompt"))
    returned = first_of(
        found,
        ("langfuse.observation.output", "output.value", "traceloop.entity.output", "ai.response.text"),
    )
    exception = next(
        (e["attributes"].get("exception.message") for e in span["events"] if e["name"] == "exception"), None
    )
    scope = span["scope"] or span["name"].partition(" ")[0]  # `chat gpt-4o`, `anthropic.chat`
    node = Node(
        span["id"], span["parent"], kind, str(first_of(found, names.get(kind, ())) or span["name"]), scope,
        times_of(span["start"], span["end"]), error=text_of(exception) or span["error"] if span["error"] else None,
        text_in=shown(given), text_out=shown(first_of(found, ("final_result",)) or returned),
    )  # fmt: skip
    if kind == "tool":
        node.name = node.name.removeprefix("execute_tool ")
        node.call_id = str(first_of(found, ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.id")) or "")
        arguments = first_of(found, _ARGUMENTS)
        node.arguments = given if given is not None and "tool.parameters" in found else arguments or given
        node.result = first_of(found, _RESULTS)
        node.result = returned if node.result is None else node.result
    elif kind == "model":
        _add_model(node, found, span["events"], given, returned)
    return node


_ARGUMENTS = (
    *("gen_ai.tool.call.arguments", "ai.toolCall.args", "gcp.vertex.agent.tool_call_args"),
    *("tool_arguments", "tool.parameters"),
)
_RESULTS = ("gen_ai.tool.call.result", "ai.toolCall.result", "gcp.vertex.agent.tool_response", "tool_response")


def _of_adk(found: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Google's request as messages with a system text and with tools, its response's content, and its own usage."""
    request, response = parsed(found.get(_ADK_REQUEST)), parsed(found.get(_ADK_RESPONSE))
    config = object_at(request, "config")
    system = config.get("system_instruction")
    declared = [each for tool in objects_at(config, "tools") for each in objects_at(tool, "function_declarations")]
    texts = [text_of(part.get("text")) for part in objects_at(system, "parts")]
    given = {"messages": object_at({"": request}, "").get("contents"), "system": "\n".join(texts) or system}
    answer = object_at({"": response}, "")
    return {**given, "tools": declared}, answer.get("content"), answer.get("usage_metadata")


def _of_ai_sdk(found: Mapping[str, Any]) -> Any:
    """The reply of a call of the AI SDK; None where it has none."""
    text, thoughts = first_of(found, ("ai.response.text", "ai.response.object")), found.get("ai.response.reasoning")
    asked = parsed(found.get("ai.response.toolCalls"))
    calls = [
        {"id": each.get("toolCallId"), "name": each.get("toolName"), "arguments": first_of(each, ("input", "args"))}
        for each in objects_in(asked)
    ]
    if text is None and thoughts is None and not calls:
        return None
    return {"role": "assistant", "content": text or "", "tool_calls": calls, **known({"reasoning": thoughts})}


def _add_model(node: Node, found: Mapping[str, Any], events: Sequence[Any], given: Any, returned: Any) -> None:
    of_adk, adk_usage = None, None
    if _ADK_REQUEST in found:
        given, of_adk, adk_usage = _of_adk(found)
    node.model = str(first_of(found, _MODELS) or "")
    node.call_id = str(found.get("gen_ai.response.id") or "")
    node.counted = counted_usage(adk_usage) if adk_usage else _usage(found)
    node.is_cached_known = bool(adk_usage) or any(
        name in found for name in ("langfuse.observation.usage_details", *_TOKENS[2])
    )
    node.cost_usd = number(
        first_of(found, ("gen_ai.usage.cost", "llm.cost.total", "operation.cost", "rewoo_bench.cost_usd"))
    )
    costs = parsed(found.get("langfuse.observation.cost_details"))
    node.cost_usd = number(costs.get("total")) if isinstance(costs, Mapping) else node.cost_usd
    reasons = parsed(found.get("gen_ai.response.finish_reasons"))
    reason = reasons[0] if isinstance(reasons, list) and reasons else first_of(found, _REASONS)
    node.finish_reason = str(reason) if reason is not None else None
    node.messages, node.reply = _of_events(events)
    indexed = _indexed(found, "gen_ai.prompt") or _indexed(found, "llm.input_messages")
    written = first_of(found, ("gen_ai.input.messages", "ai.prompt.messages"))
    node.messages = node.messages or messages_in(written) or indexed or messages_in(given)
    system = parsed(found.get("gen_ai.system_instructions"))
    if node.messages and system and not any(each.get("role") == "system" for each in node.messages):
        node.messages = [{"role": "system", "content": text_of(system)}, *node.messages]
    answers = _indexed(found, "gen_ai.completion") or _indexed(found, "llm.output_messages") or [None]
    node.reply = node.reply or reply_in(found.get("gen_ai.output.messages")) or answers[0] or _of_ai_sdk(found)
    node.reply = node.reply or reply_in(of_adk) or reply_in(returned)
    node.tools = _tools(found, given)


_MODELS = (
    *("gen_ai.response.model", "gen_ai.request.model", "llm.response.model_name", "llm.model_name"),
    *("langfuse.observation.model.name", "llm.request.model", "ai.response.model", "ai.model.id"),
)
_REASONS = ("llm.finish_reason", "ai.response.finishReason")


def _tools(found: Mapping[str, Any], given: Any) -> list[Any]:
    """The schemas of tools that were offered."""
    for value in (found.get("gen_ai.tool.definitions"), found.get("ai.prompt.tools"), found.get("llm.tools"), given):
        value = parsed(value)
        value = value.get("tools") if isinstance(value, Mapping) else value
        value = [*map(parsed, value)] if isinstance(value, list) else value
        if isinstance(value, list) and value and all("role" not in as_object(each) for each in value):
            return objects_in(value)
    listed = _numbered(found, "llm.tools.") or _numbered(found, "llm.request.functions.")
    schemas = [parsed(each.get("tool", {}).get("json_schema")) if "tool" in each else each for each in listed]
    return [
        {**each, "parameters": parsed(each["parameters"])} if "parameters" in each else each
        for each in schemas
        if isinstance(each, Mapping)
    ]


def _usage(found: Mapping[str, Any]) -> CountedUsage | None:
    """Tokens in any of the conventions' words, counted as a provider's are (`count_usage`)."""
    details = parsed(found.get("langfuse.observation.usage_details"))
    if isinstance(details, Mapping):
        return details_usage(details)
    given, written, cached, stored, reasoned, total = (first_of(found, names) for names in _TOKENS)
    if number(given) is None and number(written) is None:
        return None
    return counted_usage(
        {
            "input_tokens": given,
            "output_tokens": written,
            "total_tokens": total,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": stored},
            "output_tokens_details": {"reasoning_tokens": reasoned},
        }
    )


_G, _O, _A = "gen_ai.usage.", "llm.token_count.", "ai.usage."
_TOKENS = (
    (
        *(f"{_G}input_tokens", f"{_G}prompt_tokens", f"{_O}prompt", "llm.usage.prompt_tokens"),
        *(f"{_A}inputTokens", f"{_A}promptTokens"),
    ),
    (
        *(f"{_G}output_tokens", f"{_G}completion_tokens", f"{_O}completion", "llm.usage.completion_tokens"),
        *(f"{_A}outputTokens", f"{_A}completionTokens"),
    ),
    (
        *(f"{_G}cache_read.input_tokens", f"{_G}cache_read_input_tokens", f"{_G}details.cache_read_tokens"),
        *(f"{_G}input_tokens.cached", f"{_G}cached_tokens", f"{_O}prompt_details.cache_read"),
        *(f"{_A}cachedInputTokens", f"{_A}inputTokenDetails.cacheReadTokens"),
    ),
    (
        *(f"{_G}cache_creation.input_tokens", f"{_G}cache_creation_input_tokens", f"{_G}details.cache_write_tokens"),
        *(f"{_O}prompt_details.cache_write", f"{_A}inputTokenDetails.cacheWriteTokens"),
    ),
    (
        *(f"{_G}reasoning.output_tokens", f"{_G}reasoning_tokens", f"{_G}details.reasoning_tokens"),
        *(f"{_G}output_tokens.reasoning", f"{_O}completion_details.reasoning"),
        *(f"{_A}reasoningTokens", f"{_A}outputTokenDetails.reasoningTokens", f"{_G}experimental.reasoning_tokens"),
    ),
    (f"{_G}total_tokens", f"{_O}total", "llm.usage.total_tokens", f"{_A}totalTokens"),
)


def _of_events(events: Sequence[Mapping[str, Any]]) -> tuple[list[Any] | None, Any]:
    """Prompt and reply of events such as `gen_ai.user.message` and `gen_ai.choice`."""
    messages: list[Any] = []
    reply = None
    for event in events:
        name = str(event.get("name") or "")
        body = event.get("body") or event["attributes"]
        body = parsed(body.get("gen_ai.event.content", body)) if isinstance(body, Mapping) else body
        body = body if isinstance(body, Mapping) else {"content": body}
        calls = parsed(body.get("tool_calls"))
        if name == "gen_ai.choice":
            message = parsed(body.get("message"))
            message = message if isinstance(message, Mapping) else {**body, "content": message or body.get("content")}
            message = {**message, "tool_calls": parsed(first_of(message, ("tool_calls",))) or calls or []}
            reply = reply or {"finish_reason": body.get("finish_reason"), **message}
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            role = name.removeprefix("gen_ai.").removesuffix(".message")
            messages.append({**body, "role": role, "tool_calls": calls or [], "tool_call_id": body.get("id")})
    return messages or None, reply


def _indexed(found: Mapping[str, Any], prefix: str) -> list[Any] | None:
    """Messages whose fields are attributes with their number: `gen_ai.prompt.0.content`."""
    messages: list[Any] = []
    for each in _numbered(found, f"{prefix}."):
        message = as_object(each.get("message", each))
        listed = message.get("tool_calls")
        calls = [call.get("tool_call", call) for call in listed if isinstance(call, Mapping)] if listed else []
        parts = objects_at(message, "contents")
        texts = [text_of(part.get("message_content", {}).get("text")) for part in parts]
        content = message.get("content") or "\n".join(filter(None, texts))
        messages += plain_messages({**message, "content": content, "tool_calls": calls})
    return messages or None


def _numbered(found: Mapping[str, Any], prefix: str) -> list[Any]:
    """The list of objects under a prefix, in the order of their numbers."""
    tree: dict[str, Any] = {}
    for name, value in found.items():
        if name.startswith(prefix):
            *path, last = name.removeprefix(prefix).split(".")
            place = tree
            for step in path:
                place = place.setdefault(step, {})
            place[last] = value
    return objects_in(_as_lists(tree))


def _as_lists(tree: Any) -> Any:
    """Objects whose names are all numbers become lists."""
    if not isinstance(tree, dict) or not tree:
        return tree
    if all(name.isdecimal() and len(name) < 9 for name in tree):
        return [_as_lists(tree[name]) for name in sorted(tree, key=int)]
    return {name: _as_lists(value) for name, value in tree.items()}
