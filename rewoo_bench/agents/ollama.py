"""Ollama's dialect: chat and generate, which are streamed as lines of JSON unless the client says no, and embeddings.

    OllamaChat({"model": "llama3", "messages": […], "options": {"num_predict": 9}, "stream": False}).body
    # {"model": "llama3", "messages": […], "max_completion_tokens": 9}

Source: docs.ollama.com/api.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rewoo_bench.agents.chat_forms import CallIds, ChatAnswer, Form, function_call, schema_format
from rewoo_bench.models.hosted.dialects import CHAT, EMBEDDINGS

ROOT = "/api/"
VERSION = "0.12.0"  # the first that all clients of 2026 take
_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_READ_FIELDS = {"model", "messages", "prompt", "system", "images", "tools", "format", "options", "stream"}
_IMAGES = {"/9j/": "jpeg", "iVBOR": "png", "UklGR": "webp", "R0lGOD": "gif"}  # by their first bytes in Base64


def find_form(path: str) -> Callable[[Mapping[str, Any]], Form] | None:
    """What reads a request for this path, if it is one of Ollama's."""
    forms: dict[str, Callable[[Mapping[str, Any]], Form]] = {
        "/api/chat": OllamaChat,
        "/api/generate": OllamaGenerate,
        "/api/embed": OllamaEmbedding,
        "/api/embeddings": OllamaEmbedding,
    }
    return forms.get(path)


def facts(path: str, model: str) -> dict[str, Any] | None:
    """The answer to a request that asks no model; None for an unknown one."""
    details = {"format": "gguf", "family": "", "families": [], "parameter_size": "", "quantization_level": ""}
    entry = {"name": model, "model": model, "modified_at": _now(), "size": 0, "digest": "", "details": details}
    answers: dict[str, dict[str, Any]] = {
        "/api/version": {"version": VERSION},
        "/api/tags": {"models": [entry]},
        "/api/ps": {"models": [entry]},
        "/api/show": {"details": details, "model_info": {}, "capabilities": ["completion", "tools"]},
    }
    return answers.get(path)


class OllamaChat:
    """A request for a chat's next message."""

    path = CHAT
    stream_type = "application/x-ndjson"

    def __init__(self, body: Mapping[str, Any]) -> None:
        options = body.get("options") or {}
        self.model = str(body.get("model"))
        self._start = time.monotonic_ns()
        self._shows_thoughts = body.get("think") is not False
        self.dropped = sorted(body.keys() - _READ_FIELDS - {"think"})
        self.dropped += [f"options.{name}" for name in options if name not in (*_SETTINGS, "num_predict")]
        self.body: dict[str, Any] = {"model": self.model, "messages": list(self._messages(body))}
        self.body |= {ours: options[name] for name, ours in _SETTINGS.items() if options.get(name) is not None}
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
        answer = ChatAnswer()
        answer.read(document)
        return self._end(answer, self._said(answer.text, answer.thoughts, answer))

    def piece(self, text: str, thoughts: str) -> bytes:
        return self._line(self._said(text, thoughts)) if text or (thoughts and self._shows_thoughts) else b""

    def last(self, answer: ChatAnswer) -> bytes:
        calls = self._line(self._said("", "", answer)) if answer.calls else b""
        return calls + json.dumps(self._end(answer, self._said("", ""))).encode() + b"\n"

    def _line(self, said: Mapping[str, Any]) -> bytes:
        return json.dumps({"model": self.model, "created_at": _now(), **said, "done": False}).encode() + b"\n"

    def _end(self, answer: ChatAnswer, said: Mapping[str, Any]) -> dict[str, Any]:
        took = max(1, time.monotonic_ns() - self._start)
        counts = {"prompt_eval_count": answer.usage.input_tokens, "eval_count": answer.usage.output_tokens}
        durations = {"total_duration": took, "load_duration": 0, "prompt_eval_duration": 1, "eval_duration": took}
        ended = {"done": True, "done_reason": "length" if answer.finish_reason == "length" else "stop"}
        return {"model": self.model, "created_at": _now(), **said, **ended, **durations, **counts}

    def _said(self, text: str, thoughts: str, answer: ChatAnswer | None = None) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if thoughts and self._shows_thoughts:
            message["thinking"] = thoughts
        if answer is not None and answer.calls:
            calls = answer.calls.values()
            message["tool_calls"] = [{"function": {"name": each.name, "arguments": each.arguments}} for each in calls]
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

    def _said(self, text: str, thoughts: str, answer: ChatAnswer | None = None) -> dict[str, Any]:
        return {"response": text, **({"thinking": thoughts} if thoughts and self._shows_thoughts else {})}

    def _messages(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if body.get("system"):
            yield {"role": "system", "content": body["system"]}
        yield {"role": "user", "content": _content(body.get("prompt"), body.get("images"))}


class OllamaEmbedding:
    """A request for embeddings; an older client asks for one, by its `prompt`."""

    path = EMBEDDINGS
    dropped = ()

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._asks_for_one = "prompt" in body
        self.body: dict[str, Any] = {"model": str(body.get("model")), "input": body.get("prompt", body.get("input"))}

    def whole(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        vectors = [each["embedding"] for each in document["data"]]
        if self._asks_for_one:
            return {"embedding": vectors[0]}
        counted = (document.get("usage") or {}).get("prompt_tokens", 0)
        return {"model": self.body["model"], "embeddings": vectors, "prompt_eval_count": counted}


def _content(text: Any, images: Any) -> Any:
    if not images:
        return text or ""
    urls = [f"data:image/{_kind_of(image)};base64,{image}" for image in images]
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"type": "text", "text": text or ""}, *pictures]


def _kind_of(image: str) -> str:
    return next((kind for start, kind in _IMAGES.items() if image.startswith(start)), "png")


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
