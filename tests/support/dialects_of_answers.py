"""Answers in the dialects of OpenAI and Anthropic: documents, events of streams, and usage in each dialect's own form.

answer = Answer("m", ["the ", "river "], Tokens(30, 2, cached=10))
document("/messages", answer)["usage"]      # {"input_tokens": 20, "cache_read_input_tokens": 10, …}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

CHAT, COMPLETIONS, RESPONSES = "/chat/completions", "/completions", "/responses"
EMBEDDINGS, MESSAGES, COUNT_TOKENS = "/embeddings", "/messages", "/messages/count_tokens"


@dataclass(frozen=True)
class Tokens:
    """A provider's count; `cached` is a part of `input`."""

    input: int
    output: int
    cached: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


@dataclass(frozen=True)
class Answer:
    """A model's answer; a stream has an event for each piece."""

    model: str
    pieces: list[str]
    tokens: Tokens

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Event(NamedTuple):
    """An event of a stream, and whether a piece of the answer is in it."""

    data: bytes
    has_piece: bool


_Draft = tuple[dict[str, Any], bool]  # an event's document, and the same


def document(path: str, answer: Answer) -> dict[str, Any]:
    """The whole answer."""
    if path == COUNT_TOKENS:
        return {"input_tokens": answer.tokens.input}
    if path == EMBEDDINGS:
        data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
        usage = {"prompt_tokens": answer.tokens.input, "total_tokens": answer.tokens.input}
        return {"object": "list", "data": data, "model": answer.model, "usage": usage}
    if path == MESSAGES:
        content = [{"type": "text", "text": answer.text}]
        return {**_message(answer), "content": content, "stop_reason": "end_turn", "usage": _of_anthropic(answer, None)}
    if path == RESPONSES:
        return _response(answer, "completed", [_item(answer.text)], _of_responses(answer.tokens))
    said = {"message": {"role": "assistant", "content": answer.text}} if path == CHAT else {"text": answer.text}
    return {**_chat(path, answer, [{"index": 0, **said, "finish_reason": "stop"}]), "usage": _of_chat(answer.tokens)}


def events(path: str, answer: Answer, *, includes_usage: bool) -> Iterator[Event]:
    """The events of a streamed answer. A chat has its usage at the end, where the client asked for it."""
    if path == MESSAGES:
        return _named(_events_of_messages(answer))
    if path == RESPONSES:
        return _named(_events_of_responses(answer))
    return (
        Event(_data(event) if event else b"data: [DONE]\n\n", is_piece)
        for event, is_piece in _events_of_chat(path, answer, includes_usage)
    )


def error_event(path: str) -> bytes:
    """A provider's error in the middle of a stream."""
    error = {"type": "overloaded_error", "message": "Overloaded"}
    if path == MESSAGES:
        return b"event: error\n" + _data({"type": "error", "error": error})
    if path == RESPONSES:
        return b"event: error\n" + _data({"type": "error", "code": "server_error", "message": "Overloaded"})
    return _data({"error": error})


def error_document(path: str, message: str) -> dict[str, Any]:
    """An error in the place of an answer."""
    if path in (MESSAGES, COUNT_TOKENS):
        return {"type": "error", "error": {"type": "api_error", "message": message}}
    return {"error": {"message": message, "type": "server_error", "param": None, "code": None}}


def _events_of_chat(path: str, answer: Answer, includes_usage: bool) -> Iterator[_Draft]:
    """The last one is empty: it stands for [DONE]."""
    made = {**_chat(path, answer, [], streamed=True), **({"usage": None} if includes_usage else {})}

    def choosing(said: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {**made, "choices": [{"index": 0, **said, "finish_reason": finish_reason}]}

    if path == CHAT:
        yield choosing({"delta": {"role": "assistant", "content": ""}}), False
    for piece in answer.pieces:
        yield choosing({"delta": {"content": piece}} if path == CHAT else {"text": piece}), True
    yield choosing({"delta": {}} if path == CHAT else {"text": ""}, "stop"), False
    if includes_usage:
        yield {**made, "usage": _of_chat(answer.tokens)}, False
    yield {}, False


def _events_of_messages(answer: Answer) -> Iterator[_Draft]:
    start = {**_message(answer), "content": [], "stop_reason": None, "usage": _of_anthropic(answer, 1)}
    yield {"type": "message_start", "message": start}, False
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, False
    yield {"type": "ping"}, False
    for piece in answer.pieces:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}, True
    yield {"type": "content_block_stop", "index": 0}, False
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer.tokens.output}}, False
    yield {"type": "message_stop"}, False


def _events_of_responses(answer: Answer) -> Iterator[_Draft]:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    begun = _response(answer, "in_progress", [], None)
    whole = _response(answer, "completed", [_item(answer.text)], _of_responses(answer.tokens))
    made: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**_item(""), "content": []}},
        {"type": "response.content_part.added", **place, "part": part},
        *({"type": "response.output_text.delta", **place, "delta": p, "logprobs": []} for p in answer.pieces),
        {"type": "response.output_text.done", **place, "text": answer.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": {**part, "text": answer.text}},
        {"type": "response.output_item.done", "output_index": 0, "item": _item(answer.text)},
        {"type": "response.completed", "response": whole},
    ]
    for number, event in enumerate(made):
        yield {**event, "sequence_number": number}, event["type"].endswith(".delta")


def _named(made: Iterator[_Draft]) -> Iterator[Event]:
    for event, has_piece in made:
        yield Event(f"event: {event['type']}\n".encode() + _data(event), has_piece)


def _data(event: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _chat(path: str, answer: Answer, choices: list[dict[str, Any]], *, streamed: bool = False) -> dict[str, Any]:
    kind = {(CHAT, False): "chat.completion", (CHAT, True): "chat.completion.chunk"}.get((path, streamed))
    made = {"id": "chat-1", "object": kind or "text_completion", "created": 1_700_000_000}
    return {**made, "model": answer.model, "choices": choices}


def _message(answer: Answer) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": answer.model, "stop_sequence": None}


def _item(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _response(
    answer: Answer, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None
) -> dict[str, Any]:
    made = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "status": status, "error": None}
    made |= {"incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True}
    made |= {"temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0}
    return {**made, "model": answer.model, "output": output, "usage": usage}


def _of_chat(tokens: Tokens) -> dict[str, Any]:
    details = {"cached_tokens": tokens.cached}
    counts = {"prompt_tokens": tokens.input, "completion_tokens": tokens.output, "total_tokens": tokens.total}
    return {**counts, "prompt_tokens_details": details, "completion_tokens_details": {"reasoning_tokens": 0}}


def _of_responses(tokens: Tokens) -> dict[str, Any]:
    counts = {"input_tokens": tokens.input, "output_tokens": tokens.output, "total_tokens": tokens.total}
    details = {"input_tokens_details": {"cached_tokens": tokens.cached}}
    return {**counts, **details, "output_tokens_details": {"reasoning_tokens": 0}}


def _of_anthropic(answer: Answer, output: int | None) -> dict[str, Any]:
    """Cached input stands beside `input_tokens`, which are the rest. `output` is what a stream says at its start."""
    tokens = answer.tokens
    return {
        "input_tokens": tokens.input - tokens.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output if output is None else output,
    }
