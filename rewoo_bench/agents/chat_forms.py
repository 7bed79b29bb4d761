"""Dialects that the gateway translates to OpenAI's and back: Ollama's, and what it shares with Gemini's (gemini.py).

form = OllamaChat({"model": "llama3", "messages": [{"role": "user", "content": "2 + 2?"}], "stream": False})
form.body       # {"model": "llama3", "messages": [{"role": "user", "content": "2 + 2?"}]}
form.translated(answer)     # "application/json", '{"model": "llama3", "message": {"content": "4"}, …}'
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rewoo_bench.models.hosted.dialects import CHAT, EMBEDDINGS
from rewoo_bench.models.hosted.http_endpoint import documents_of
from rewoo_bench.models.hosted.responses import read_usage, usages_in
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.model_output import as_object, objects_in
from rewoo_bench.types import Usage, WireResponse


@dataclass(slots=True)
class ToolUse:
    """A call that a model asks for; a stream gives its `arguments`, which are JSON or any text, in parts."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The arguments as an object; text that isn't one stands under `raw`."""
        try:
            fields = load_json(self.arguments or "{}")
        except ValueError:
            return {"raw": self.arguments}
        return fields if isinstance(fields, dict) else {"raw": self.arguments}


@dataclass(slots=True)
class ChatAnswer:
    """The calls, end and usage of a chat's first choice, or of the part of its stream that was read."""

    calls: dict[int, ToolUse] = field(default_factory=dict)
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Adds a whole answer or an event; the text and the thoughts in it. What can't be read is left out."""
        for usage in usages_in(document):
            self.usage = read_usage(usage) or self.usage
        choices = document.get("choices")
        choice = as_object(choices[0]) if isinstance(choices, list) and choices else {}
        if choice.get("index") or not choice:
            return "", ""
        self.finish_reason = text_or_empty(choice.get("finish_reason")) or self.finish_reason
        said = as_object(choice.get("message") or choice.get("delta"))
        earlier = {known.id: number for number, known in self.calls.items()}
        for place, call in enumerate(objects_in(said.get("tool_calls"))):
            number, id_, function = call.get("index"), text_or_empty(call.get("id")), as_object(call.get("function"))
            if not isinstance(number, int):  # some servers send whole calls without it, one in each event
                number = earlier.get(id_, len(self.calls)) if id_ else place
            known = self.calls.setdefault(number, ToolUse())
            known.id = known.id or id_
            known.name += text_or_empty(function.get("name"))
            known.arguments += text_or_empty(function.get("arguments"))
        text = text_or_empty(said.get("content"))
        return text, text_or_empty(said.get("reasoning_content")) or text_or_empty(said.get("reasoning"))


class TranslatedRequest:
    """A request in another dialect. `path` and `body` are OpenAI's, `dropped` the fields that have no place there."""

    path: str
    body: dict[str, Any]
    dropped: Sequence[str] = ()

    def whole(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer in OpenAI's dialect, in this one."""
        raise NotImplementedError

    def translated(self, wire: WireResponse) -> tuple[str, str]:
        """Content type and text of a whole answer."""
        return "application/json", json.dumps(self.whole(json.loads(wire.body)))


class TranslatedChat(TranslatedRequest):
    """A chat's request, whose answer may be streamed, as `stream_type`."""

    path = CHAT
    stream_type: str

    def __init__(self) -> None:
        self.answer = ChatAnswer()
        """What was read so far."""

    def piece(self, text: str, thoughts: str) -> bytes:
        """A part of a streamed answer; empty where it has nothing to show."""
        raise NotImplementedError

    def end(self) -> bytes:
        """What is left to send when the stream has ended."""
        raise NotImplementedError

    def add(self, events: bytes) -> bytes:
        """Whole events of a chat's stream, translated."""
        return b"".join(self.piece(*self.answer.read(document)) for document in documents_of(events))

    def translated(self, wire: WireResponse) -> tuple[str, str]:
        """As of every form; a stream where the client asked for one."""
        self.answer = ChatAnswer()  # a stream with nothing to show but its end was read as it came
        if self.body.get("stream") is not True:
            return super().translated(wire)
        if wire.content_type == "text/event-stream":
            pieces = self.add(wire.body.encode())
        else:
            pieces = self.piece(*self.answer.read(json.loads(wire.body)))
        return self.stream_type, (pieces + self.end()).decode()


def text_or_empty(value: Any) -> str:
    """A JSON value that may be a text; anything else is none."""
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


# Ollama's dialect (docs.ollama.com/api): chat and generate, streamed unless the client says no, and embeddings.

ROOT = "/api/"
_VERSION = "0.12.0"  # the first that all clients of 2026 take
_SETTINGS = ("temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty")
_READ_FIELDS = {"model", "messages", "prompt", "system", "images", "tools", "format", "options", "stream", "think"}
_IMAGES = {"/9j/": "jpeg", "iVBOR": "png", "UklGR": "webp", "R0lGOD": "gif"}  # by their first bytes in Base64


def ollama_facts(path: str, model: str) -> dict[str, Any] | None:
    """The answer to a request that asks no model; None for an unknown one."""
    details = {"format": "gguf", "family": "", "families": [], "parameter_size": "", "quantization_level": ""}
    entry = {"name": model, "model": model, "modified_at": _now(), "size": 0, "digest": "", "details": details}
    answers: dict[str, dict[str, Any]] = {
        "/api/version": {"version": _VERSION},
        "/api/tags": {"models": [entry]},
        "/api/ps": {"models": [entry]},
        "/api/show": {"details": details, "model_info": {}, "capabilities": ["completion", "tools"]},
    }
    return answers.get(path)


class OllamaChat(TranslatedChat):
    """A request for a chat's next message.

    OllamaChat({"model": "llama3", "messages": […], "options": {"num_predict": 9}, "stream": False}).body
    # {"model": "llama3", "messages": […], "max_completion_tokens": 9}
    """

    stream_type = "application/x-ndjson"

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__()
        options = body.get("options") or {}
        self.model = str(body.get("model"))
        self._start = time.monotonic_ns()
        self._shows_thoughts = body.get("think") is not False
        self.dropped: list[str] = [
            *sorted(body.keys() - _READ_FIELDS),
            *(f"options.{name}" for name in options if name not in (*_SETTINGS, "num_predict")),
        ]
        self.body: dict[str, Any] = {"model": self.model, "messages": list(self._messages(body))}
        self.body |= {name: options[name] for name in _SETTINGS if options.get(name) is not None}
        if (longest := options.get("num_predict") or 0) > 0:  # below, there is no limit
            self.body["max_completion_tokens"] = longest
        if body.get("format"):
            self.body["response_format"] = schema_format(body["format"])
        if body.get("tools"):
            self.body["tools"] = body["tools"]
        if isinstance(think := body.get("think"), str):
            self.body["reasoning_effort"] = think
        elif think is not None:
            self.dropped.append("think")
        if body.get("stream", True) is not False:
            self.body |= {"stream": True, "stream_options": {"include_usage": True}}

    def whole(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._ended(self._said(*self.answer.read(document), self.answer.calls.values()))

    def piece(self, text: str, thoughts: str) -> bytes:
        return self._line(self._said(text, thoughts)) if text or (thoughts and self._shows_thoughts) else b""

    def end(self) -> bytes:
        calls = self._line(self._said("", "", self.answer.calls.values())) if self.answer.calls else b""
        return calls + json.dumps(self._ended(self._said("", ""))).encode() + b"\n"

    def _line(self, said: Mapping[str, Any]) -> bytes:
        return json.dumps({"model": self.model, "created_at": _now(), **said, "done": False}).encode() + b"\n"

    def _ended(self, said: Mapping[str, Any]) -> dict[str, Any]:
        took = max(1, time.monotonic_ns() - self._start)
        usage = self.answer.usage
        counts = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
        durations = {"total_duration": took, "load_duration": 0, "prompt_eval_duration": 1, "eval_duration": took}
        ended = {"done": True, "done_reason": "length" if self.answer.finish_reason == "length" else "stop"}
        return {"model": self.model, "created_at": _now(), **said, **ended, **durations, **counts}

    def _said(self, text: str, thoughts: str, calls: Collection[ToolUse] = ()) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if thoughts and self._shows_thoughts:
            message["thinking"] = thoughts
        if calls:
            message["tool_calls"] = [{"function": {"name": each.name, "arguments": each.fields}} for each in calls]
        return {"message": message}

    def _messages(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        ids = CallIds()
        for turn in body.get("messages") or []:
            said = {"role": turn.get("role"), "content": _content(turn.get("content"), turn.get("images"))}
            if turn.get("role") == "tool":
                said["tool_call_id"] = ids.of_result(turn.get("tool_name"), turn.get("tool_call_id"))
            if functions := [call["function"] for call in turn.get("tool_calls") or []]:
                said["tool_calls"] = [
                    function_call(ids.of_call(f["name"]), f["name"], f["arguments"]) for f in functions
                ]
            yield said


class OllamaGenerate(OllamaChat):
    """A request for the text behind a prompt, asked as a chat."""

    def _said(self, text: str, thoughts: str, calls: Collection[ToolUse] = ()) -> dict[str, Any]:
        return {"response": text, **({"thinking": thoughts} if thoughts and self._shows_thoughts else {})}

    def _messages(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if body.get("system"):
            yield {"role": "system", "content": body["system"]}
        yield {"role": "user", "content": _content(body.get("prompt"), body.get("images"))}


class OllamaEmbedding(TranslatedRequest):
    """A request for embeddings; an older client asks for one, by its `prompt`."""

    path = EMBEDDINGS

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._asks_for_one = "prompt" in body
        self.body: dict[str, Any] = {"model": str(body.get("model")), "input": body.get("prompt", body.get("input"))}

    def whole(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        vectors = [each["embedding"] for each in document["data"]]
        if self._asks_for_one:
            return {"embedding": vectors[0]}
        counted = (document.get("usage") or {}).get("prompt_tokens", 0)
        return {"model": self.body["model"], "embeddings": vectors, "prompt_eval_count": counted}


OLLAMA_FORMS: Mapping[str, Callable[[Mapping[str, Any]], TranslatedRequest]] = {
    "/api/chat": OllamaChat,
    "/api/generate": OllamaGenerate,
    "/api/embed": OllamaEmbedding,
    "/api/embeddings": OllamaEmbedding,
}


def _content(text: Any, images: Any) -> Any:
    if not images:
        return text or ""
    content: list[dict[str, Any]] = [{"type": "text", "text": text or ""}]
    for image in images:
        kind = next((kind for start, kind in _IMAGES.items() if image.startswith(start)), "png")
        content.append({"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{image}"}})
    return content


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
