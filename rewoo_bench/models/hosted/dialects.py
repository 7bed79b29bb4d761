"""The HTTP dialects of model providers: what a request asks, and what an answer cost.

    read_request("/chat/completions", {"messages": [{"role": "user", "content": "2 + 2?"}], "max_tokens": 8})
    # WireFacts(messages=[Message("user", "2 + 2?")], max_tokens=8, streamed=False)

A request goes to the provider as it is; these facts are for limits, estimates, the parts of prompts and the journal.
Sources: the API references of OpenAI (chat completions, completions, responses, embeddings) and Anthropic (messages).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from rewoo_bench.models.hosted.http_endpoint import documents_of, is_done
from rewoo_bench.models.hosted.responses import (
    CountedUsage,
    answered_model,
    count_usage,
    error_in,
    later_counts,
    usages_in,
)
from rewoo_bench.text.model_output import objects_in
from rewoo_bench.text.prompts import Prompts, of_each
from rewoo_bench.text.redaction import without
from rewoo_bench.types import NO_FIELDS, Message, Usage, WireRequest

CHAT, COMPLETIONS, RESPONSES = "/chat/completions", "/completions", "/responses"
EMBEDDINGS, MESSAGES, COUNT_TOKENS = "/embeddings", "/messages", "/messages/count_tokens"
OF_ANTHROPIC = frozenset({MESSAGES, COUNT_TOKENS})
PATHS = frozenset({CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS}) | OF_ANTHROPIC

Role = Literal["system", "user", "assistant", "tool"]
_ROLES: Mapping[str, Role] = {
    **{role: role for role in get_args(Role)},
    "developer": "system",
    "function": "tool",
}
LAST_EVENTS = ("message_stop", "response.completed", "response.incomplete", "response.failed")
_LONGEST_ANSWER = 1 << 31  # tokens; the number in a request may have any length
_MAX_TOKENS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True)
class WireFacts:
    """The parts of a request that the meter reads. `messages` are its texts, tools included."""

    messages: list[Message]
    max_tokens: int | None
    streamed: bool


_NOTHING = CountedUsage(Usage())


@dataclass(slots=True)
class AnswerFacts:
    """The tokens, text and end of an answer, read from its document or from the events of its stream.

    `counted` is of the last event that has a usage: providers count cumulatively. None where a count is impossible.
    """

    counted: CountedUsage | None = _NOTHING
    finish_reason: str = ""
    error: str = ""
    model: str = ""
    is_complete: bool = False
    """Whether a stream has come to its end, and not only broken off."""
    counts: dict[str, Any] = field(default_factory=dict)
    """The usage object so far, as the provider has it."""
    _texts: list[str] = field(default_factory=list)

    @property
    def usage(self) -> Usage | None:
        return self.counted.usage if self.counted else None

    @property
    def text(self) -> str:
        """The visible text, and the arguments of tool calls."""
        return "".join(self._texts)

    def read(self, document: Mapping[str, Any]) -> str:
        """Adds a whole answer, or one event of a stream. Returns the text in it."""
        kind, delta = document.get("type"), document.get("delta")
        inner = part if isinstance(part := document.get("response"), Mapping) else {}
        for usage in usages_in(document):
            self.counts = later_counts(self.counts, usage)
            self.counted = count_usage(self.counts)
        texts: list[str] = []
        if isinstance(kind, str) and kind.endswith(".delta") and isinstance(delta, str):
            texts = [delta]
        elif not inner:
            texts = list(_texts_of(document))
        self._texts += texts
        reasons = [choice.get("finish_reason") for choice in objects_in(document.get("choices"))]
        reasons += [part.get("stop_reason") for part in (document, delta) if isinstance(part, Mapping)]
        reasons += [part.get("status") for part in (document, inner)]
        reason = next((reason for reason in reasons if isinstance(reason, str)), "")
        self.finish_reason = reason or self.finish_reason
        self.model = answered_model(document) or self.model
        self.error = error_in(document) or self.error
        self.is_complete |= kind in LAST_EVENTS or (bool(reason) and "choices" in document)
        return "".join(texts)


def read_request(
    path: str,
    body: Mapping[str, Any],
    conversations: Prompts[Any] | None = None,
    secrets: Collection[str] = (),
) -> WireFacts:
    """The facts of a request, without the `secrets`. A part in an unknown form is read as JSON.

    `conversations` are those of the question: what an earlier request has sent isn't read again.
    """

    def message_of(turn: Any) -> Message:
        message = _message_of(turn)
        return replace(message, content=without(message.content, secrets))

    limits = (body.get(name) for name in _MAX_TOKENS)
    limit = next((min(value, _LONGEST_ANSWER) for value in limits if isinstance(value, int) and value > 0), None)
    parts = [body[name] for name in ("system", "instructions", "tools") if body.get(name)]
    messages = [replace(message_of(part), role="system") for part in parts]
    given: Any = body.get("messages") if path in (CHAT, *OF_ANTHROPIC) else body.get("prompt", body.get("input"))
    is_list = isinstance(given, list) and {*map(type, given)} == {dict}
    turns = (conversations or Prompts()).of(given) if is_list else [given]
    messages += of_each(turns, "message", message_of)
    if "cache_control" in body:
        messages[-1] = replace(messages[-1], ends_prefix=True)
    return WireFacts(messages, limit, body.get("stream") is True)


def _message_of(turn: Any) -> Message:
    role, content = "user", turn
    if isinstance(turn, dict):
        role = turn.get("role", "tool" if "output" in turn else "user")
        others = [turn.get(name) for name in ("arguments", "output") if turn.get(name)]
        calls = objects_in(turn.get("tool_calls")) or others
        content = turn.get("content")
        content = [content, *calls] if calls and content else calls or content
    known = _ROLES.get(role, "user") if isinstance(role, str) else "user"
    return Message(known, text_in(content), ends_prefix=_is_marked(turn))


def with_usage(request: WireRequest) -> tuple[bytes, bool]:
    """The body of a request that makes a stream say its usage, and whether the agent didn't ask for that."""
    if request.path not in (CHAT, COMPLETIONS):
        return request.body, False
    body = request.document
    if not body.get("stream") or asks_for_usage(body):
        return request.body, False
    options = body["stream_options"] if isinstance(body.get("stream_options"), dict) else {}
    changed = {**body, "stream_options": {**options, "include_usage": True}}
    return json.dumps(changed, separators=(",", ":")).encode(), True  # half of a surrogate pair stays escaped


def asks_for_usage(body: Mapping[str, Any]) -> bool:
    """Whether a request for a stream asks for an event with its usage."""
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def is_usage_only(document: Mapping[str, Any]) -> bool:
    """Whether an event of a chat stream is the one that `stream_options.include_usage` adds."""
    return isinstance(document.get("usage"), Mapping) and document.get("choices") == []


def ends_stream(event: bytes) -> bool:
    """Whether an event is the last one of a stream, after which nothing is left to read."""
    return is_done(event) or (
        any(name.encode() in event for name in LAST_EVENTS)
        and any(document.get("type") in LAST_EVENTS for document in documents_of(event))
    )


def dialect_error(path: str, status: int, message: str, fields: Mapping[str, str | int] = NO_FIELDS) -> dict[str, Any]:
    """An error in the form of the dialect; `fields` are a provider's own `type`, `param` and `code`."""
    kind = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}.get(
        status, "invalid_request_error" if status < 500 else "api_error"
    )
    if path in OF_ANTHROPIC:
        return {"type": "error", "error": {"type": fields.get("type") or kind, "message": message}}
    return {"error": {"message": message, "type": kind, "param": None, "code": None, **fields}}


def _is_marked(part: Any) -> bool:
    """Whether an agent marked this part of its request, or one in it, as the end of a cacheable prefix."""
    outer = objects_in(part if isinstance(part, list) else [part])
    inner = [each for whole in outer for each in objects_in(whole.get("content"))]
    return any(each.get("cache_control") for each in (*outer, *inner))


def text_in(value: Any) -> str:
    """The texts in contents of any form."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str | dict) for part in value):
        return "\n".join(text_in(part["text"] if isinstance(part, dict) and "text" in part else part) for part in value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _texts_of(document: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an answer, or of one event of its stream."""
    for choice in objects_in(document.get("choices")):
        said = choice.get("message") or choice.get("delta") or choice
        yield from _strings(said, "content", "text", "reasoning_content")
        for call in objects_in(said.get("tool_calls") if isinstance(said, Mapping) else None):
            yield from _strings(call.get("function"), "name", "arguments")
    for part in [*objects_in(document.get("content")), document.get("delta")]:
        yield from _strings(part, "text", "thinking", "partial_json")
        if isinstance(part, Mapping) and isinstance(part.get("input"), Mapping):
            yield json.dumps(part["input"])
    for item in objects_in(document.get("output")):
        yield from _strings(item, "arguments")
        for part in objects_in(item.get("content")):
            yield from _strings(part, "text")


def _strings(part: Any, *names: str) -> Iterator[str]:
    for name in names if isinstance(part, Mapping) else ():
        if isinstance(part.get(name), str):
            yield part[name]
