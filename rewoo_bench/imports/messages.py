"""Conversations in the message forms of OpenAI and Anthropic -> events.

    read_conversation([{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}])

Each message of the assistant is a model call whose prompt is all messages before it. The results that follow it belong
to its tool calls, by their ids; where ids are missing or are used twice, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse, Turn, Unreadable, count, number
from rewoo_bench.text.model_output import RAW_ARGUMENTS, check_call
from rewoo_bench.types import Message, ToolCall, Usage

_ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "gpt": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
_CONVERSATION = ("messages", "traj", "trajectory", "conversation", "conversations", "history", "turns", "dialogue")
_TASK = ("task_id", "example_id", "sample_id", "question_id", "instance_id", "problem_id", "custom_id")
_ID = ("id", "uuid", "session_id", "conversation_id", "thread_id")
_TRIAL = ("trial", "trial_id", "epoch", "attempt", "run")
_SOLVED = ("reward", "success", "solved", "correct", "is_correct", "passed", "resolved", "score")
_MOST_TRIALS = 1_000_000
_LOOKS_FAILED = ("error", "traceback", "exception")


def conversation_of(record: Any) -> list[Any] | None:
    """The messages of a record; None where it has none."""
    if isinstance(record, list):
        return record if _is_conversation(record) else None
    if not isinstance(record, Mapping):
        return None
    places = [
        record,
        *(each for name in ("request", "body", "input", "data") if isinstance(each := record.get(name), Mapping)),
    ]
    for place in places:
        for name in _CONVERSATION:
            if _is_conversation(place.get(name)):
                return list(place[name])
    return None


def _is_conversation(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, Mapping) and ("role" in first or "from" in first)


def read_messages(record: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectory of a record with messages. Raises `Unreadable`."""
    messages = conversation_of(record)
    if messages is None:
        raise Unreadable(f"no messages: expected a list of them under one of {', '.join(_CONVERSATION)}")
    facts: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    inner = next((facts[name] for name in ("request", "body") if isinstance(facts.get(name), Mapping)), facts)
    system = inner.get("system")
    if system and not (isinstance(messages[0], Mapping) and _role(messages[0]) == "system"):  # Anthropic's requests
        messages = [{"role": "system", "content": system}, *messages]
    if (reply := _reply_of(facts)) is not None:
        messages = [*messages, reply]
    read = read_conversation(messages, tools=inner.get("tools") or inner.get("functions") or ())
    solved, score = verdict_of(facts)
    model = str(inner.get("model") or "")
    yield RecordedTrajectory(
        task=default_task if (named := first_of(facts, (*_TASK, *_ID))) is None else str(named),
        question=read.question,
        events=[
            replace(event, model=event.model or model) if isinstance(event, ModelCall) else event
            for event in read.events
        ],
        agent=str(first_of(facts, ("agent", "agent_name", "agent_strategy")) or ""),
        trial=_trial(facts),
        system=read.system,
        answer=read.answer,
        solved=solved,
        score=score,
    )


def _reply_of(facts: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reply beside a logged request: OpenAI's `choices`, or Anthropic's message."""
    response = facts.get("response")
    if isinstance(response, Mapping) and isinstance(response.get("body"), Mapping):  # a batch's output
        response = response["body"]
    if not isinstance(response, Mapping):
        return None
    choices = response.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        if isinstance(message, Mapping):
            return {**message, "usage": response.get("usage"), "model": response.get("model")}
    return response if response.get("role") == "assistant" else None


def first_of(facts: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of these fields that has a value."""
    return next((facts[name] for name in names if facts.get(name) is not None), None)


def _trial(facts: Mapping[str, Any]) -> int | None:
    found = number(first_of(facts, _TRIAL))
    return int(found) if found is not None and 0 <= found < _MOST_TRIALS and found == int(found) else None


def verdict_of(facts: Mapping[str, Any]) -> tuple[bool | None, float | None]:
    """Whether the task was solved, and its score: of a field such as `reward`, also in `reward_info`."""
    places = [
        facts,
        *(facts[name] for name in ("reward_info", "result", "metrics", "info") if isinstance(facts.get(name), Mapping)),
    ]
    for place in places:
        for name in _SOLVED:
            if (found := as_verdict(place.get(name))) != (None, None):
                return found
    return None, None


def as_verdict(value: Any) -> tuple[bool | None, float | None]:
    """`True`, `1.0`, `"correct"` or `"C"` as solved; a score of 1 and more is solved, a lower one isn't."""
    if isinstance(value, bool):
        return value, float(value)
    if isinstance(value, str) and (word := value.strip().casefold()) in _WORDS:
        return _WORDS[word], float(_WORDS[word])
    score = number(value)
    return (None, None) if score is None else (score >= 1 - 1e-6, min(1.0, max(0.0, score)))


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


def read_conversation(messages: Sequence[Any], tools: Sequence[Any] = ()) -> Conversation:
    """The events of a conversation. Raises `Unreadable`."""
    found = Conversation()
    prompt: list[Message] = []
    waiting: list[ToolCall] = []  # of the last reply, without a result yet
    for position, raw in enumerate(messages):
        if not isinstance(raw, Mapping):
            raise Unreadable(f"message {position} is {type(raw).__name__}, expected an object with a role")
        role = _role(raw)
        if role is None or raw.get("requestor") == "user":
            continue  # a role that nobody knows, and results of the user's own tools in tau2-bench
        text, calls, results = _parts(raw)
        for id_, name, result, failed in results:
            call = _taken(waiting, id_, name)
            found.events.append(ToolUse(call.name, call.arguments, result, failed))
            prompt.append(Message("tool", result, tool_call_id=id_ or call.id))
        if role == "tool" or (results and not text) or (role == "user" and not text and raw.get("tool_calls")):
            continue
        if role == "assistant":
            _unanswered(found, waiting)
            found.events.append(
                ModelCall(
                    tuple(prompt), text, tuple(calls), usage_of(raw.get("usage")), str(raw.get("model") or ""),
                    tuple(tools), _thoughts(raw), first_of(raw, ("stop_reason", "finish_reason")),
                    number(raw.get("cost")),
                )
            )  # fmt: skip
            prompt.append(Message("assistant", text, tuple(calls)))
            waiting = list(calls)
            found.answer = text or found.answer
            continue
        if role == "system":
            found.system += ("\n\n" if found.system else "") + text
        elif not found.question:
            found.question = text
        else:
            found.events.append(Turn(text))
        prompt.append(Message(role, text))
    _unanswered(found, waiting)
    return found


def _unanswered(found: Conversation, waiting: list[ToolCall]) -> None:
    """Tool calls without a result were asked for all the same."""
    for call in waiting:
        found.events.append(ToolUse(call.name, call.arguments, None))
    waiting.clear()


def _role(raw: Mapping[str, Any]) -> Any:
    return _ROLES.get(str(raw.get("role") or raw.get("from") or raw.get("type")).casefold())


def _parts(raw: Mapping[str, Any]) -> tuple[str, list[ToolCall], list[tuple[str, str, str, bool]]]:
    """The text of a message, its tool calls, and the results in it: id, name, text, and whether the tool failed."""
    content = raw.get("content", raw.get("value"))
    texts: list[str] = []
    calls = list(_calls(raw))
    results: list[tuple[str, str, str, bool]] = []
    if _role(raw) == "tool":
        id_, name = str(raw.get("tool_call_id") or raw.get("id") or ""), str(raw.get("name") or "")
        failed = bool(raw.get("error") or raw.get("is_error") or raw.get("status") == "error")
        return "", [], [(id_, name, text_of(content), failed or looks_failed(text_of(content)))]
    for part in content if isinstance(content, list) else [content]:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "tool_use":
            calls.append(tool_call(part.get("id"), part.get("name"), part.get("input")))
        elif kind == "tool_result":
            failed = bool(part.get("is_error"))
            text = text_of(part.get("content"))
            results.append((str(part.get("tool_use_id") or ""), "", text, failed or looks_failed(text)))
        elif kind not in ("thinking", "reasoning", "redacted_thinking"):
            texts.append(text_of(part))
    return "\n".join(filter(None, texts)), calls, results


def _calls(raw: Mapping[str, Any]) -> Iterator[ToolCall]:
    """Tool calls in OpenAI's form, its old form with one function, and a flat form with name and arguments."""
    listed = raw.get("tool_calls")
    for call in listed if isinstance(listed, list) else ():
        if isinstance(call, Mapping):
            function = call["function"] if isinstance(call.get("function"), Mapping) else call
            arguments = first_of(function, ("arguments", "args", "input", "kwargs"))
            yield tool_call(first_of(call, ("id", "tool_call_id")), function.get("name"), arguments)
    if isinstance(old := raw.get("function_call"), Mapping):
        yield tool_call(None, old.get("name"), old.get("arguments"))


def tool_call(id_: Any, name: Any, arguments: Any) -> ToolCall:
    """A sound tool call; arguments that are no JSON object stay text (`RAW_ARGUMENTS`)."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            arguments = {RAW_ARGUMENTS: arguments}
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        arguments = {RAW_ARGUMENTS: json.dumps(arguments, default=str)}
    return check_call(ToolCall(str(id_ or ""), str(name or ""), arguments))


def _taken(waiting: list[ToolCall], id_: str, name: str) -> ToolCall:
    """The tool call of a result; one of its own where none waits."""
    by_id = [call for call in waiting if id_ and call.id == id_]
    by_name = [call for call in waiting if name and call.name == name]
    call = next(iter(by_id or by_name or waiting), None)
    if call is None:
        return ToolCall(id_, name or "unknown", {})
    waiting.remove(call)
    return call


def text_of(content: Any) -> str:
    """The text of a message's content: a text, a list of parts, or anything else as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping | str) for part in content):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, Mapping):
        for name in ("text", "content", "output_text", "input_text"):
            if isinstance(content.get(name), str | list):
                return text_of(content[name])
        if str(content.get("type", "")).startswith(("image", "audio", "file", "document", "video")):
            return f"[{content['type']}]"
    return json.dumps(content, ensure_ascii=False, default=str)


def _thoughts(raw: Mapping[str, Any]) -> str:
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(raw.get(name), str):
            return str(raw[name])
    content = raw.get("content")
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(part["thinking"]) for part in parts if isinstance(part, Mapping) and part.get("thinking"))


def looks_failed(text: str) -> bool:
    """Whether a tool's result says that it failed: it begins with the word error, or is an object with an error."""
    start = text.lstrip()[:200].casefold()
    if start.startswith(_LOOKS_FAILED):
        return True
    if not start.startswith("{"):
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, Mapping) and bool(found.get("error") or found.get("isError") or found.get("is_error"))


def usage_of(usage: Any) -> Usage | None:
    """Tokens in the words of OpenAI's two interfaces, of Anthropic's, and of libraries above them.

    Anthropic counts what its cache holds apart from `input_tokens`; here it is a part of it.
    """
    if not isinstance(usage, Mapping):
        return None
    given = first_of(
        usage, ("prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "input", "prompt_token_count")
    )
    written = first_of(
        usage,
        ("completion_tokens", "output_tokens", "completionTokens", "outputTokens", "output", "candidates_token_count"),
    )
    if number(given) is None and number(written) is None:
        return None
    details = [each for each in usage.values() if isinstance(each, Mapping)]
    cached = next(
        (count(each[name]) for each in (usage, *details) for name in _CACHED if each.get(name) is not None), 0
    )
    stored = next(
        (count(each[name]) for each in (usage, *details) for name in _STORED if each.get(name) is not None), 0
    )
    reasoned = next(
        (count(each[name]) for each in (usage, *details) for name in _REASONED if each.get(name) is not None), 0
    )
    total = count(given)
    anthropic = ("cache_read_input_tokens", "cache_creation_input_tokens")
    if "prompt_tokens" not in usage and any(usage.get(name) is not None for name in anthropic):
        total += cached + stored
    return Usage(total, min(cached, total), count(written), min(reasoned, count(written)), min(stored, total))


_CACHED = (
    "cached_tokens",
    "cache_read_input_tokens",
    "cache_read",
    "cached_content_token_count",
    "input_cached_tokens",
)
_STORED = ("cache_creation_input_tokens", "cache_write_tokens", "cache_creation", "cache_write_input_tokens")
_REASONED = ("reasoning_tokens", "reasoning", "thoughts_token_count", "output_reasoning_tokens")
