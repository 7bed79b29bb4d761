"""Conversations in the message forms of OpenAI, Anthropic and others (message_parts.py) -> events.

    read_conversation([{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}])

Each message of the assistant is a model call whose prompt is all messages before it. The results that follow it belong
to its tool calls, by their ids; where ids are missing or are used twice, in their order. A record is a conversation, or
a request with its response; requests of one conversation are joined before (conversations.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rewoo_bench.imports.message_parts import with_content
from rewoo_bench.imports.record import (
    ModelCall,
    RecordedTrajectory,
    Times,
    ToolUse,
    Turn,
    Unreadable,
    as_time,
    counted_usage,
    known,
    names_cached,
    number,
    object_at,
    objects_at,
    parsed,
    times_of,
)
from rewoo_bench.imports.replies import with_whole_replies
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.model_output import RAW_ARGUMENTS, check_call, objects_in
from rewoo_bench.text.prompts import Prompt
from rewoo_bench.text.results import says_error
from rewoo_bench.types import Message, ToolCall, Usage

_ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "gpt": "assistant", "tool": "tool", "function": "tool",
    "function_call": "assistant", "observation": "tool", "gemini": "assistant", "bot": "assistant",
    "tool_response": "tool", "tool_result": "tool", "function_response": "tool", "ipython": "tool",
    "environment": "tool",
}  # fmt: skip
_CONVERSATION = (
    "messages",
    "contents",
    "traj",
    "trajectory",
    "conversation",
    "conversations",
    "history",
    "turns",
    "dialogue",
)
_TASK = ("task_id", "example_id", "sample_id", "question_id", "instance_id", "problem_id", "custom_id")
_SESSION = ("session_id", "conversation_id", "thread_id")
_ID = ("id", "uuid", *_SESSION, "trace_id")
_TRIAL = ("trial", "trial_id", "epoch", "attempt", "run")
_SOLVED = ("reward", "success", "solved", "correct", "is_correct", "passed", "resolved", "score")
USAGE = ("usage", "token_usage", "usage_metadata", "usageMetadata")
_MOMENT = ("timestamp", "created_at", "createdAt")
_MOST_TRIALS = 1_000_000
_MOST_SECONDS = 1e11  # since 1970; more are milliseconds


def conversation_of(record: Any) -> list[Any] | None:
    """The messages of a record; None where it has none."""
    if isinstance(record, list):
        return record if _is_conversation(record) else None
    if not isinstance(record, Mapping):
        return None
    places = _places(record, "request", "body", "input", "data")
    for place in places:
        for name in _CONVERSATION:
            if _is_conversation(place.get(name)):
                return list(place[name])
    response = _response_of(record)
    return next((found for place in places if (found := input_of({**place, **response})) is not None), None)


def _places(record: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    """The record, and the objects in these fields of it."""
    return [record, *(record[name] for name in names if isinstance(record.get(name), Mapping))]


def _is_conversation(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, Mapping):
        return False
    is_said = "content" in first and role_of(first) is not None
    return "role" in first or "from" in first or isinstance(first.get("parts"), list) or is_said


@dataclass(slots=True)
class LoggedRequest:
    """What a record says of a conversation: `messages` with the system's first, and the reply that a log has beside."""

    facts: Mapping[str, Any]
    messages: list[Any]
    reply: Mapping[str, Any] | None
    model: str
    tools: Sequence[Any]
    record: Any
    """What all this was read from."""

    @property
    def whole(self) -> list[Any]:
        """The messages with the reply."""
        return self.messages if self.reply is None else [*self.messages, self.reply]


def request_of(record: Any) -> LoggedRequest:
    """The messages of a record and what it says of them. Raises `Unreadable`."""
    messages = conversation_of(record)
    if messages is None:
        raise Unreadable(f"no messages: expected a list of them under one of {', '.join(_CONVERSATION)}")
    facts: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    inner = next((facts[name] for name in ("request", "body") if isinstance(facts.get(name), Mapping)), facts)
    system = first_of(inner, _SYSTEM) or (inner.get("instructions") if "input" in inner else None)
    if system and not (isinstance(messages[0], Mapping) and role_of(messages[0]) == "system"):  # outside the messages
        is_content = isinstance(system, Mapping) and "parts" in system
        messages = [{**(system if is_content else {"content": system}), "role": "system"}, *messages]
    messages = with_whole_replies([plain for each in messages for plain in with_content(each)])
    tools = [tool for each in (inner.get("tools") or inner.get("functions") or ()) for tool in _declared(each)]
    return LoggedRequest(facts, messages, _reply_of(facts), str(inner.get("model") or ""), tools, record)


_SYSTEM = ("system", "systemInstruction", "system_instruction")


def _declared(tool: Any) -> list[Any]:
    """The functions of one of Gemini's tools; any other tool as it is."""
    found = objects_at(tool, "functionDeclarations") or objects_at(tool, "function_declarations")
    return found or [tool]


def identity_of(facts: Mapping[str, Any]) -> tuple[Any, ...]:
    """The task, session and trial that a record names; an id of its own may be a request's."""
    return first_of(facts, _TASK), first_of(facts, _SESSION), first_of(facts, _TRIAL)


def read_messages(record: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectory of a record with messages. Raises `Unreadable`."""
    yield trajectory_of(request_of(record), default_task)


def trajectory_of(
    request: LoggedRequest, default_task: str, start: int = 0, lacks_reply: bool = False
) -> RecordedTrajectory:
    """The trajectory of a conversation; the other arguments as for `read_conversation`. Raises `Unreadable`."""
    facts, tools = request.facts, request.tools
    failure = _failure_of(facts) if request.reply is None else None
    read = read_conversation(request.whole, tools, start=start, lacks_reply=lacks_reply or failure is not None)
    events = read.events
    if failure is not None and isinstance(events[-1], ModelCall):
        events[-1] = replace(events[-1], error=failure, usage=Usage(), times=_times_of_request(facts))
    calls = [event for event in events if isinstance(event, ModelCall)]
    has_usage = start or lacks_reply or any(call.usage for call in calls)
    recorded = None if has_usage else first_of(facts, USAGE)
    counted = counted_usage(recorded)
    usage = counted.usage if counted else None
    if len(calls) == 1 and counted is not None:
        events[events.index(calls[0])] = replace(calls[0], **_counts(recorded))
    found = RecordedTrajectory(
        task=default_task if (named := first_of(facts, (*_TASK, *_ID))) is None else str(named),
        question=read.question,
        events=events,
        agent=str(first_of(facts, ("agent", "agent_name", "agent_strategy")) or ""),
        trial=_trial(facts),
        system=read.system,
        answer=read.answer,
        solved=verdict_of(facts),
        error=failure,
        stop_reason="error" if failure is not None else "answered" if lacks_reply else None,
        notes={"unknown_roles": sorted(read.unknown_roles)} if read.unknown_roles else {},
        usage=usage if len(calls) > 1 else None,
        is_cached_known=names_cached(recorded),
    )
    return found.with_calls(lambda call: replace(call, model=call.model or request.model))


def _response_of(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The response beside a logged request; empty where there is none."""
    response = object_at(facts, "response")
    return response["body"] if isinstance(response.get("body"), Mapping) else response  # of a batch's output


def _reply_of(facts: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reply in a response: OpenAI's `choices` or `output`, Gemini's `candidates`, or Anthropic's message."""
    response = _response_of(facts) or facts
    choices, output = response.get("choices"), output_of(response)
    named = {"usage": first_of(response, USAGE), "model": first_of(response, ("model", "modelVersion"))}
    of_response = known({**named, "cost": facts.get("response_cost"), "times": _times_of_request(facts)})
    if isinstance(response.get("candidates"), list):
        candidate: Mapping[str, Any] = next(iter(objects_at(response, "candidates")), {})
        ended = known({"finish_reason": candidate.get("finishReason")})
        return next(with_content({"role": "model", **object_at(candidate, "content"), **ended, **of_response}), None)
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        if isinstance(message, Mapping):
            reason = choices[0].get("finish_reason")
            return {**({"finish_reason": reason} if reason else {}), **message, **of_response}
    if output is not None:
        said = [each for each in messages_of_items(output) if each.get("role") == "assistant"]
        return {**said[-1], **of_response} if said else None
    return response if response is not facts and response.get("role") == "assistant" else None


def _failure_of(facts: Mapping[str, Any]) -> str | None:
    """What a proxy's log says of a request that the provider refused (LiteLLM's `status` and `error_str`)."""
    if facts.get("status") != "failure":
        return None
    return str(first_of(facts, ("error_str", "exception")) or "the request failed")


def _times_of_request(facts: Mapping[str, Any]) -> Times | None:
    """When a proxy sent the request on and had its answer (LiteLLM's `startTime` and `endTime`)."""
    return times_of(as_moment(facts.get("startTime")), as_moment(facts.get("endTime")))


def ids_of(facts: Mapping[str, Any]) -> tuple[str, str]:
    """The id of a record's response in OpenAI's Responses API, and that of the one which it goes on; else empty."""
    response = _response_of(facts) or facts
    places = [response, *_places(facts, "request", "body")]
    before = next((place["previous_response_id"] for place in places if place.get("previous_response_id")), "")
    return str(response.get("id") or "") if output_of(response) is not None else "", str(before)


def first_of(facts: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of these fields that has a value."""
    return next((facts[name] for name in names if facts.get(name) is not None), None)


def _trial(facts: Mapping[str, Any]) -> int | None:
    found = number(first_of(facts, _TRIAL))
    return int(found) if found is not None and 0 <= found < _MOST_TRIALS and found == int(found) else None


def verdict_of(facts: Mapping[str, Any]) -> bool | None:
    """Whether the task was solved: of a field such as `reward`, also in `reward_info`."""
    for place in _places(facts, "reward_info", "result", "metrics", "info"):
        for name in _SOLVED:
            if (found := as_verdict(place.get(name))) is not None:
                return found
    return None


def as_verdict(value: Any) -> bool | None:
    """`True`, `1.0`, `"correct"` or `"C"` as solved; a score of 1 and more is solved, a lower one isn't."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (word := value.strip().casefold()) in _WORDS:
        return _WORDS[word]
    score = number(value)
    return None if score is None else score >= 1 - 1e-6


_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "success", "solved", "resolved", "c"), True),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "failure", "unsolved", "unresolved", "i"), False),
}


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
                        **_counts(first_of(raw, USAGE)),
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


def _counts(usage: Any) -> dict[str, Any]:
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
    return _ROLES.get(str(raw.get("role") or raw.get("from") or raw.get("type")).casefold())


def _parts(raw: Mapping[str, Any], role: str) -> tuple[str, list[ToolCall], list[tuple[str, str, str, bool]]]:
    """The text of a message, its tool calls, and the results in it: id, name, text, and whether the tool failed."""
    content = raw.get("content", raw.get("value"))
    if raw.get("from") == "function_call" and (calls := list(_flat_calls(content))):  # ShareGPT
        return "", calls, []
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


def _flat_calls(value: Any) -> Iterator[ToolCall]:
    """The tool calls in a text: an object with name and arguments, or a list of them."""
    found = parsed(value)
    for each in found if isinstance(found, list) else [found]:
        if isinstance(each, Mapping) and each.get("name"):
            yield tool_call(each.get("id"), each["name"], first_of(each, ("arguments", "parameters")))


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
    return "\n".join(str(part["thinking"]) for part in objects_at(raw, "content") if part.get("thinking"))


# Records of OpenAI's Responses API -> the messages of its chat API.
#
#     {"input": "2 + 2?", "output": [{"type": "message", "role": "assistant", "content": […]}], "usage": {…}}
#
# A reply of the model is several items there: what it reasoned, what it said, and each function that it calls. Here
# they are one message.


_CALLS = ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call")
_HOSTED = ("mcp_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")
"""Calls of tools that the provider runs: their results are in the same items."""
_OF_REPLIES = ("reasoning", *_CALLS, *_HOSTED)
_RESULTS = tuple(f"{each}_output" for each in _CALLS)
ITEMS = (*_OF_REPLIES, *_RESULTS, "message", "mcp_list_tools")


def input_of(record: Mapping[str, Any]) -> list[Any] | None:
    """The messages of a request's `input`; None for what is no request of this interface.

    A request alone needs a list of items and a model, since data sets have fields of the name `input`, too.
    """
    given = record.get("input")
    if isinstance(given, str) and given and output_of(record) is not None:
        return [{"role": "user", "content": given}]
    if not (isinstance(given, list) and given and _is_item(given[0])):
        return None
    return messages_of_items(given) if output_of(record) is not None or record.get("model") else None


def output_of(record: Mapping[str, Any]) -> list[Any] | None:
    """The items of a response; None where there are none."""
    found = record.get("output")
    return found if isinstance(found, list) and found and _is_item(found[0]) else None


def _is_item(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("type") in ITEMS or isinstance(value.get("role"), str))


def messages_of_items(items: Iterable[Any]) -> list[Any]:
    """Items as messages; those that follow each other in a reply as one."""
    found: list[Any] = []
    reply: dict[str, Any] | None = None
    for item in items:
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind in _OF_REPLIES or (isinstance(item, Mapping) and item.get("role") == "assistant"):
            if reply is None:
                reply = {"role": "assistant", "content": [], "tool_calls": [], "reasoning": ""}
                found.append(reply)
            _add(reply, item)
        elif kind in _RESULTS:
            found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
            reply = None
        elif not isinstance(item, Mapping) or "role" in item:
            found.append(item)
            reply = None
    return found


def _add(reply: dict[str, Any], item: Mapping[str, Any]) -> None:
    """Adds an item to a reply."""
    content = item.get("content")
    if item.get("type") in (*_CALLS, *_HOSTED):
        call = _called(item)
        reply["tool_calls"].append(call)
        result = next((item[name] for name in ("error", "output", "outputs", "results") if item.get(name)), None)
        if item["type"] in _HOSTED and result is not None:
            part = {"type": "tool_result", "tool_use_id": call["id"], "content": result}
            reply["content"].append({**part, "is_error": bool(item.get("error"))})
    elif item.get("type") == "reasoning":
        parts = [*objects_at(item, "summary"), *objects_in(content)]
        texts = [str(part["text"]) for part in parts if part.get("text")]
        reply["reasoning"] = "\n".join(filter(None, [reply["reasoning"], *texts]))
    else:
        reply["content"] += content if isinstance(content, list) else [content]


def _called(item: Mapping[str, Any]) -> dict[str, Any]:
    """The tool call of an item, in the flat form with name and arguments."""
    given = first_of(item, ("arguments", "input", "action"))
    if given is None:
        given = known({name: item.get(name) for name in ("code", "queries", "operation")})
    name = item.get("name") or str(item.get("type")).removesuffix("_call")
    return {"id": item.get("call_id") or item.get("id"), "name": name, "arguments": given}
