"""Dialects that the gateway translates to OpenAI's and back, whatever the provider speaks: Gemini's and Ollama's.

form = GeminiChat({"contents": [{"role": "user", "parts": [{"text": "2 + 2?"}]}]}, "gemini-x", …)
form.body       # {"model": "gemini-x", "messages": [{"role": "user", "content": "2 + 2?"}]}
Translated(form).whole(answer)      # "application/json", '{"candidates": [{"content": …}], …}'
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rewoo_bench.models.hosted.event_stream import documents_of, load_json
from rewoo_bench.models.hosted.usage import read_usage
from rewoo_bench.types import Usage, WireResponse


@dataclass(slots=True)
class ChatCall:
    """A tool call; a stream gives its `arguments`, which are JSON, in parts."""

    id: str
    name: str = ""
    text: str = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as an object; text that isn't one stands under `raw`."""
        try:
            arguments = load_json(self.text or "{}")
        except ValueError:
            return {"raw": self.text}
        return arguments if isinstance(arguments, dict) else {"raw": self.text}


@dataclass(slots=True)
class ChatAnswer:
    """The first choice of a chat's answer, or of the part of its stream that was read."""

    text: str = ""
    thoughts: str = ""
    calls: dict[int, ChatCall] = field(default_factory=dict)
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Adds a whole answer or an event; the text and the thoughts in it. What can't be read is left out."""
        if isinstance(document.get("usage"), Mapping):
            self.usage = read_usage(document["usage"]) or self.usage
        choices = document.get("choices")
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        if choice.get("index") or not choice:
            return "", ""
        self.finish_reason = _string(choice.get("finish_reason")) or self.finish_reason
        said = _object(choice.get("message") or choice.get("delta"))
        calls = said.get("tool_calls")
        for place, call in enumerate(map(_object, calls if isinstance(calls, list) else ())):
            index, function = call.get("index"), _object(call.get("function"))
            number = index if isinstance(index, int) else place
            known = self.calls.setdefault(number, ChatCall(_string(call.get("id")) or f"call_{number}"))
            known.name += _string(function.get("name"))
            known.text += _string(function.get("arguments"))
        text = _string(said.get("content"))
        thoughts = _string(said.get("reasoning_content")) or _string(said.get("reasoning"))
        self.text += text
        self.thoughts += thoughts
        return text, thoughts


class Form(Protocol):
    """A request in another dialect. `path` and `body` are OpenAI's, `dropped` the fields that have no place there."""

    path: str
    body: dict[str, Any]

    @property
    def dropped(self) -> Sequence[str]: ...

    def whole(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer in OpenAI's dialect, in this one."""


class ChatForm(Form, Protocol):
    """A form that may be streamed, as `stream_type`."""

    stream_type: str

    def piece(self, text: str, thoughts: str) -> bytes:
        """A part of a streamed answer; empty where it has nothing to show."""

    def last(self, answer: ChatAnswer) -> bytes:
        """The end of a streamed answer."""


class Translated:
    """The answer to a request in another dialect."""

    def __init__(self, form: Form) -> None:
        self.form: Any = form
        self._answer = ChatAnswer()

    def add(self, events: bytes) -> bytes:
        """Whole events of a chat's stream, translated."""
        return b"".join(self.form.piece(*self._answer.read(document)) for document in documents_of(events))

    def end(self) -> bytes:
        """What is left to send when the stream has ended."""
        last: bytes = self.form.last(self._answer)
        return last

    def whole(self, wire: WireResponse) -> tuple[str, str]:
        """Content type and text of a whole answer, which is a stream where the client asked for one."""
        if self.form.body.get("stream") is not True:
            return "application/json", json.dumps(self.form.whole(json.loads(wire.body)))
        if wire.content_type == "text/event-stream":
            pieces = self.add(wire.body.encode())
        else:
            pieces = self.form.piece(*self._answer.read(json.loads(wire.body)))
        return self.form.stream_type, (pieces + self.end()).decode()


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def schema_format(schema: Any) -> dict[str, Any]:
    """The `response_format` for JSON, of this schema if there is one."""
    if not isinstance(schema, Mapping):
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


class CallIds:
    """Ids for the tool calls of dialects that have none: a result belongs to the first open call of its name."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []
        self._count = 0

    def of_call(self, name: str, given: Any = None) -> str:
        self._count += 1
        known = str(given or f"call_{self._count}")
        self._open.append((name, known))
        return known

    def of_result(self, name: str | None, given: Any = None) -> str:
        fits = [call for call in self._open if (call[1] == given if given else call[0] == name)] or self._open
        if not fits:
            return str(given or f"call_{self._count}")
        self._open.remove(fits[0])
        return fits[0][1]


def function_call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """A tool call of an assistant's message."""
    function = {"name": name, "arguments": json.dumps(arguments if isinstance(arguments, Mapping) else {})}
    return {"id": call_id, "type": "function", "function": function}
