"""Messages of OpenAI, Anthropic and others (message_parts.py) -> a conversation's events.

    read_conversation([{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}])

Each message of the assistant is a model call whose prompt is all messages before it. The results that follow it belong
to its tool calls, by their ids; where ids are missing or are used twice, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewoo_bench.imports.record import (
    ModelCall,
    Times,
    ToolUse,
    Turn,
    Unreadable,
    as_time,
    counted_usage,
    first_of,
    names_cached,
    number,
    object_at,
    objects_at,
    times_of,
)
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.model_output import RAW_ARGUMENTS, check_call
from rewoo_bench.text.prompts import Prompt
from rewoo_bench.text.results import says_error
from rewoo_bench.types import Message, ToolCall

_ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "gemini": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
USAGE = ("usage", "token_usage", "usage_metadata", "usageMetadata")
_MOMENT = ("timestamp", "created_at", "createdAt")
_MOST_SECONDS = 1e11  # since 1970; more are milliseconds


@dataclass
class Conversation:
    """What a conversation consists of."""

    events: list[ModelCall | ToolUse | Turn] = field(default_factory=list)
    system: str = ""
    question: str = ""
    answer: str | None = None
    unknown_roles: set[str] = field(default_factory=set)


def read_conversation(
    messages: Sequence[Any], tools: Sequence[Any] = (), *, start: int = 0, lacks_reply: bool = False
) -> Conversation:
    """The events of a conversation. Raises `Unreadable`.

    Where messages have times, a call takes from the one before it to its reply, and a tool from there to its result.
    Messages before `start` are only context: their calls were made in another conversation. With `lacks_reply` the last
    message was answered, and the answer isn't there. A reply that a log has with its request may have its `tools`.
    What has a role that nobody knows is a tool's result where one is waited for, else said by the user.
    """
    found = Conversation()
    prompt, tools = Prompt[Message](), tuple(tools)
    waiting: list[ToolCall] = []  # of the last reply, without a result yet
    asked_at = start  # where the last reply stands
    moment: float | None = None  # of the message before
    replied: float | None = None  # when the last reply was there
    asked_at_each: Mapping[str, Any] = {}  # when each of its tools' calls was there, if they came one by one
    for position, raw in enumerate(messages):
        _check(position, raw)
        role = role_of(raw)
        before, moment = moment, _moment(raw)
        if role is None and isinstance(raw.get("role"), str):
            found.unknown_roles.add(raw["role"])
            role = "tool" if waiting else "user"
        if role is None or raw.get("requestor") == "user":
            continue  # no message, and results of the user's own tools in tau2-bench
        text, calls, results = _parts(raw, role)
        if role == "assistant":
            _unanswered(found, waiting if asked_at >= start else [])
            offered = raw["tools"] if isinstance(raw.get("tools"), list | tuple) else tools
            if position >= start:
                found.events.append(
                    ModelCall(
                        prompt, text, tuple(calls), model=str(raw.get("model") or ""),
                        tools=tuple(offered), thoughts=_thoughts(raw),
                        finish_reason=first_of(raw, ("stop_reason", "finish_reason")),
                        cost_usd=number(raw.get("cost")), times=_times_in(raw) or times_of(before, moment),
                        **counts_of(first_of(raw, USAGE)),
                    )
                )  # fmt: skip
                found.answer = text or found.answer
            prompt = prompt.with_message(Message("assistant", text, tuple(calls)))
            waiting, asked_at, replied = list(calls), position, moment
            asked_at_each = object_at(raw, "asked_at")
        for id_, name, result, failed in results:  # in a reply those of tools that the provider ran
            call = _taken(waiting, id_, name)
            id_ = id_ or (call.id if call else "")
            if asked_at >= start:
                asked = as_moment(asked_at_each.get(id_)) or replied
                called, arguments = (call.name, call.arguments) if call else (name or "unknown", None)
                found.events.append(ToolUse(called, arguments, result, failed, times_of(asked, moment), call_id=id_))
            prompt = prompt.with_message(Message("tool", result, tool_call_id=id_))
        if role in ("assistant", "tool") or (not text and (results or raw.get("tool_calls"))):
            continue
        if role == "system":
            found.system += ("\n\n" if found.system else "") + text
        elif raw.get("is_meta"):
            pass  # part of the prompt, and nothing that the user said
        elif not found.question:
            found.question = text
        elif position >= start:
            found.events.append(Turn(text))
        prompt = prompt.with_message(Message(role, text))
    _unanswered(found, waiting if asked_at >= start else [])
    if lacks_reply:
        found.events.append(ModelCall(prompt, tools=tools))
        found.answer = None
    return found


def counts_of(usage: Any) -> dict[str, Any]:
    """What a usage object says, as fields of a `ModelCall`."""
    counted = counted_usage(usage)
    return {
        "usage": counted.usage if counted else None,
        "is_inconsistent": counted is not None and counted.source == "inconsistent",
        "is_cached_known": names_cached(usage),
    }


def _times_in(raw: Mapping[str, Any]) -> Times | None:
    """Those that `_reply_of` has put into a reply."""
    times = raw.get("times")
    return times_of(*map(number, times)) if isinstance(times, list | tuple) and len(times) == 2 else None


def _moment(raw: Mapping[str, Any]) -> float | None:
    """When a message was complete, where it says it: in ISO 8601, seconds or milliseconds."""
    return as_moment(first_of(raw, _MOMENT))


def as_moment(value: Any) -> float | None:
    """A time in ISO 8601, seconds or milliseconds."""
    return as_time(value, "ms" if (number(value) or 0) > _MOST_SECONDS else "s")


def _unanswered(found: Conversation, waiting: Sequence[ToolCall]) -> None:
    """Tool calls without a result were asked for all the same."""
    found.events += [ToolUse(call.name, call.arguments, None, call_id=call.id) for call in waiting]


def _check(position: int, raw: Any) -> None:
    if not isinstance(raw, Mapping):
        raise Unreadable(f"message {position} is {type(raw).__name__}, expected an object with a role")


def compared(position: int, raw: Any) -> str:
    """A message as a text that is the same for a reply in a response and in the next request. Raises `Unreadable`."""
    _check(position, raw)
    if (role := role_of(raw)) is None:
        return json.dumps(raw, sort_keys=True, default=str)
    text, calls, results = _parts(raw, role)
    if role == "assistant":
        text = text.rpartition("</think>")[2]  # agents send back what a model said without what it thought
    asked = [(call.id, call.name, dict(call.arguments)) for call in calls]
    return json.dumps([role, text.strip(), asked, results], sort_keys=True, default=str)


def role_of(raw: Mapping[str, Any]) -> Any:
    """One of `system`, `user`, `assistant` and `tool`; None for any other."""
    return _ROLES.get(str(raw.get("role") or raw.get("type")).casefold())


def _parts(raw: Mapping[str, Any], role: str) -> tuple[str, list[ToolCall], list[tuple[str, str, str, bool]]]:
    """The text of a message, its tool calls, and the results in it: id, name, text, and whether the tool failed."""
    content: Any = raw.get("content")
    texts: list[str] = []
    calls = list(_calls(raw))
    results: list[tuple[str, str, str, bool]] = []
    if role == "tool":
        id_, of_call = str(raw.get("tool_call_id") or raw.get("id") or ""), object_at(raw, "tool_call")
        name = first_of(raw, ("name", "function", "tool_name")) or of_call.get("function") or ""
        failed = bool(raw.get("error") or raw.get("is_error") or raw.get("status") == "error")
        text = text_of(content) or text_of(raw.get("error") or "")
        return "", [], [(id_, name if isinstance(name, str) else "", text, failed or says_error(text))]
    for part in content if isinstance(content, list) else [content]:
        kind = _kind(part)
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            calls.append(tool_call(part.get("id"), part.get("name"), part.get("input")))
        elif kind == "tool_result" or str(kind).endswith("_tool_result"):
            failed = bool(part.get("is_error")) or "error" in str(_kind(part.get("content")))
            text = text_of(part.get("content"))
            id_, name = str(part.get("tool_use_id") or ""), str(part.get("name") or "")
            results.append((id_, name, text, failed or says_error(text)))
        elif kind not in ("thinking", "reasoning", "redacted_thinking"):
            texts.append(text_of(part))
    text = "\n".join(filter(None, texts))
    return text or (text_of(raw.get("refusal")) if role == "assistant" else ""), calls, results


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _calls(raw: Mapping[str, Any]) -> Iterator[ToolCall]:
    """Tool calls in OpenAI's form, its old form with one function, and flat forms, whose `function` may be the name."""
    for call in objects_at(raw, "tool_calls"):
        function = next((call[name] for name in ("function", "custom") if isinstance(call.get(name), Mapping)), call)
        arguments = first_of(function, ("arguments", "args", "input", "kwargs", "parameters"))
        name = first_of(function, ("name", "function", "tool_name"))
        yield tool_call(first_of(call, ("id", "tool_call_id")), name, arguments)
    if isinstance(old := raw.get("function_call"), Mapping):
        yield tool_call(None, old.get("name"), old.get("arguments"))


def tool_call(id_: Any, name: Any, arguments: Any) -> ToolCall:
    """A sound tool call; arguments that are no JSON object stay text (`RAW_ARGUMENTS`)."""
    if isinstance(arguments, str):
        try:
            arguments = load_json(arguments) if arguments.strip() else {}
        except ValueError:
            arguments = {RAW_ARGUMENTS: arguments}
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        arguments = {RAW_ARGUMENTS: json.dumps(arguments, default=str)}
    return check_call(ToolCall(str(id_ or ""), str(name or ""), arguments))


def _taken(waiting: list[ToolCall], id_: str, name: str) -> ToolCall | None:
    """The tool call of a result; None where none waits."""
    by_id = [call for call in waiting if id_ and call.id == id_]
    by_name = [call for call in waiting if name and call.name == name]
    call = next(iter(by_id or by_name or waiting), None)
    if call is not None:
        waiting.remove(call)
    return call


_TEXTS = ("text", "content", "output_text", "input_text", "refusal")
_TEXT_TYPES = {"text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "tool_result"}
_OF_TEXTS = {"text", "content", "annotations", "cache_control", "citations", "logprobs", "thoughtSignature"}
_OF_RESULTS = {"content", "structuredContent", "isError", "_meta"}  # of the Model Context Protocol
_MEDIA = ("image", "audio", "video", "document", "file", "input_")
_OF_MEDIA = {
    *("type", "source", "data", "file", "audio", "image", "video", "document", "format", "detail", "input_audio"),
    *("image_url", "audio_url", "video_url", "file_url", "file_id", "file_data", "filename", "title", "context"),
    *("mime_type", "mimeType", "media_type", "mediaType", "citations", "cache_control", "annotations", "_meta"),
}


def text_of(content: Any) -> str:
    """The text of a message's content: a text, a list of parts, or anything else as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and _are_parts(content):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, Mapping) and _is_part(content):
        if _is_media(content):
            return f"[{content['type']}]"
        return text_of(next(content[name] for name in _TEXTS if isinstance(content.get(name), str | list)))
    return json.dumps(content, ensure_ascii=False, default=str)


def _are_parts(content: Sequence[Any]) -> bool:
    """Whether a list is a message's content, and not what a tool found, whose objects have fields of their own."""
    is_part = [isinstance(each, str) or (isinstance(each, Mapping) and _is_part(each)) for each in content]
    return all(is_part) or any(
        found and isinstance(each, Mapping) and "type" in each for found, each in zip(is_part, content, strict=True)
    )


def _is_part(value: Mapping[str, Any]) -> bool:
    """Whether an object is a part of a message: its type is one of the protocols', or all its fields are."""
    if "type" in value and value["type"] not in _TEXT_TYPES:
        return _is_media(value)
    if not any(isinstance(value.get(name), str | list) for name in _TEXTS):
        return False
    is_result = value.keys() <= _OF_RESULTS and not value.get("isError")
    return "type" in value or value.keys() <= _OF_TEXTS or is_result


def _is_media(value: Mapping[str, Any]) -> bool:
    return str(value.get("type")).startswith(_MEDIA) and value.keys() <= _OF_MEDIA


def _thoughts(raw: Mapping[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(raw.get(name), str):
            return str(raw[name])
    parts = (
        part.get("thinking") or (_kind(part) == "thinking" and part.get("content"))
        for part in objects_at(raw, "content")
    )
    return "\n".join(str(part) for part in parts if part)
