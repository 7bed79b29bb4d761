"""Gemini's dialect: generateContent and streamGenerateContent.

    read_gemini("/v1beta/models/gemini-x:generateContent", {}, {"contents": [{"parts": [{"text": "2 + 2?"}]}]}).body
    # {"model": "gemini-x", "messages": [{"role": "user", "content": "2 + 2?"}]}

Names may be in camel case or with underscores; the SDKs send both. Source: ai.google.dev/api.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rewoo_bench.agents.wire_calls import ChatAnswer
from rewoo_bench.models.hosted.dialects import CHAT
from rewoo_bench.models.hosted.http_endpoint import documents_of
from rewoo_bench.types import WireResponse

PATH = re.compile(r"/v1(?:(?:alpha|beta)\d*)?/(?:.*/)?models/(?P<model>[^/]+):(?P<verb>\w+)")
_STATUSES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
_FINISH_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
_SETTINGS = {
    "temperature": "temperature",
    "topP": "top_p",
    "maxOutputTokens": "max_completion_tokens",
    "stopSequences": "stop",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
_READ_SETTINGS = {"responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig"}
_READ_FIELDS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model"}
_CHOICES = {"AUTO": "auto", "ANY": "required", "VALIDATED": "auto", "NONE": "none"}


def read_gemini(path: str, query: Mapping[str, str], body: Mapping[str, Any]) -> GeminiChat | None:
    """A request in Gemini's dialect; None for a path that isn't answered. Raises as Python does for strange fields."""
    found = PATH.fullmatch(path)
    if found is None or found["verb"] not in ("generateContent", "streamGenerateContent"):
        return None
    streamed = found["verb"].startswith("stream")
    return GeminiChat(body, model=found["model"], streamed=streamed, is_sse=query.get("alt") == "sse")


def gemini_error(status: int, message: str) -> dict[str, Any]:
    """An error in Gemini's form."""
    name = _STATUSES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    return {"error": {"code": status, "message": message, "status": name}}


class GeminiChat:
    """A request for content. `path` and `body` are OpenAI's, `dropped` the fields that have no place there.

    Its answer may be streamed, as `stream_type`.
    """

    path = CHAT

    def __init__(self, body: Mapping[str, Any], *, model: str, streamed: bool, is_sse: bool) -> None:
        self.answer = ChatAnswer()
        """What was read so far."""
        given = _camel(body)
        settings = _camel(given.get("generationConfig") or {})
        thinking = _camel(settings.get("thinkingConfig") or {})
        self.model = model
        self.stream_type = "text/event-stream" if is_sse else "application/json"
        unread = settings.keys() - _SETTINGS.keys() - _READ_SETTINGS
        self.dropped: list[str] = [*sorted(given.keys() - _READ_FIELDS), *(f"generationConfig.{n}" for n in unread)]
        self._is_sse, self._has_begun = is_sse, False
        self._shows_thoughts = bool(thinking.get("includeThoughts"))
        self.body: dict[str, Any] = {"model": model, "messages": list(self._messages(given))}
        self.body |= {ours: settings[name] for name, ours in _SETTINGS.items() if settings.get(name) is not None}
        if isinstance(level := thinking.get("thinkingLevel"), str):
            self.body["reasoning_effort"] = level.lower()
        if thinking.keys() - {"includeThoughts", "thinkingLevel"}:
            self.dropped.append("generationConfig.thinkingConfig.thinkingBudget")
        if settings.get("responseMimeType") == "application/json":
            schema = settings.get("responseJsonSchema") or _schema(settings.get("responseSchema"))
            self.body["response_format"] = _schema_format(schema)
        if tools := list(self._tools(given.get("tools") or [])):
            self.body["tools"] = tools
            calling = _camel(_camel(given.get("toolConfig") or {}).get("functionCallingConfig") or {})
            allowed, choice = calling.get("allowedFunctionNames") or [], _CHOICES.get(str(calling.get("mode")))
            if choice == "required" and len(allowed) == 1:
                self.body["tool_choice"] = {"type": "function", "function": {"name": allowed[0]}}
            elif choice:
                self.body["tool_choice"] = choice
        if streamed:
            self.body |= {"stream": True, "stream_options": {"include_usage": True}}

    def translated(self, wire: WireResponse) -> tuple[str, str]:
        """Content type and text of a whole answer; a stream where the client asked for one."""
        self.answer = ChatAnswer()  # a stream with nothing to show but its end was read as it came
        if self.body.get("stream") is not True:
            parts = [*self._parts(*self.answer.read(json.loads(wire.body))), *_calls(self.answer)]
            return "application/json", json.dumps(self._document(parts, self.answer))
        if wire.content_type == "text/event-stream":
            pieces = self.add(wire.body.encode())
        else:
            pieces = self._piece(*self.answer.read(json.loads(wire.body)))
        return self.stream_type, (pieces + self.end()).decode()

    def add(self, events: bytes) -> bytes:
        """Whole events of a chat's stream, translated; empty where they have nothing to show."""
        return b"".join(self._piece(*self.answer.read(document)) for document in documents_of(events))

    def _piece(self, text: str, thoughts: str) -> bytes:
        parts = self._parts(text, thoughts)
        return self._framed(self._document(parts)) if parts else b""

    def end(self) -> bytes:
        """What is left to send when the stream has ended."""
        return self._framed(self._document(_calls(self.answer), self.answer)) + (b"" if self._is_sse else b"]")

    def _framed(self, document: Mapping[str, Any]) -> bytes:
        before, self._has_begun = b",\r\n" if self._has_begun else b"[", True
        text = json.dumps(document).encode()
        return b"data: " + text + b"\r\n\r\n" if self._is_sse else before + text

    def _document(self, parts: list[dict[str, Any]], answer: ChatAnswer | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if answer is None:
            return {"candidates": [candidate], "modelVersion": self.model}
        candidate["finishReason"] = _FINISH_REASONS.get(answer.finish_reason, "STOP")
        # Thoughts stand beside the candidates' tokens, and cached input is a part of the prompt's.
        counts, reasoning = answer.usage, answer.usage.reasoning_tokens
        usage = {"promptTokenCount": counts.input_tokens, "candidatesTokenCount": counts.output_tokens - reasoning}
        usage["totalTokenCount"] = counts.total_tokens
        usage |= {"cachedContentTokenCount": counts.cached_input_tokens} if counts.cached_input_tokens else {}
        usage |= {"thoughtsTokenCount": reasoning} if reasoning else {}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model}

    def _parts(self, text: str, thoughts: str) -> list[dict[str, Any]]:
        thought = [{"text": thoughts, "thought": True}] if thoughts and self._shows_thoughts else []
        return [*thought, *([{"text": text}] if text else [])]

    def _messages(self, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if system := _text(given.get("systemInstruction")):
            yield {"role": "system", "content": system}
        ids = _CallIds()
        for turn in given.get("contents") or []:
            parts = [_camel(part) for part in turn.get("parts") or []]
            if turn.get("role") == "model":
                calls = [_camel(part["functionCall"]) for part in parts if part.get("functionCall")]
                made = [_function_call(ids.of_call(c["name"], c.get("id")), c["name"], c.get("args")) for c in calls]
                yield {"role": "assistant", "content": _text(turn), **({"tool_calls": made} if made else {})}
                continue
            results = [_camel(part["functionResponse"]) for part in parts if part.get("functionResponse")]
            for result in results:
                call_id = ids.of_result(result.get("name"), result.get("id"))
                yield {"role": "tool", "tool_call_id": call_id, "content": _result(result.get("response"))}
            # What a questioner of texts doesn't send, such as pictures, has no place here.
            self.dropped += [f"parts.{name}" for part in parts for name in part.keys() - {"text", "functionResponse"}]
            if (text := _text(turn)) or not results:
                yield {"role": "user", "content": text}

    def _tools(self, given: Any) -> Iterator[dict[str, Any]]:
        for tool in map(_camel, given):
            self.dropped += [f"tools.{name}" for name in tool if name != "functionDeclarations"]
            for each in map(_camel, tool.get("functionDeclarations") or []):
                schema = each.get("parametersJsonSchema") or _schema(each.get("parameters"))
                function = {"name": each["name"], "description": each.get("description") or ""}
                parameters = schema or {"type": "object", "properties": {}}
                yield {"type": "function", "function": {**function, "parameters": parameters}}


def _schema_format(schema: Any) -> dict[str, Any]:
    """The `response_format` for JSON, of this schema if there is one."""
    if not isinstance(schema, Mapping):
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


class _CallIds:
    """Ids for the tool calls, which may have none: a result belongs to the first open call of its name."""

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
        call = fits[0]
        self._open.remove(call)
        return call[1]


def _function_call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """A tool call of an assistant's message."""
    function = {"name": name, "arguments": json.dumps(arguments if isinstance(arguments, Mapping) else {})}
    return {"id": call_id, "type": "function", "function": function}


def _camel(given: Any) -> dict[str, Any]:
    """An object with its names in camel case."""
    return {_camel_name(name): value for name, value in given.items()}


def _camel_name(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _text(content: Any) -> str:
    """The text of a content, without thoughts."""
    parts = (content or {}).get("parts") or []
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought"))


def _result(response: Any) -> str:
    """A tool's result as text."""
    named = [response.get(name) for name in ("result", "output", "error")] if isinstance(response, Mapping) else []
    if len(response or ()) == 1 and (text := next((each for each in named if isinstance(each, str)), None)) is not None:
        return text
    return response if isinstance(response, str) else json.dumps(response)


def _schema(given: Any) -> Any:
    """A schema of OpenAPI, as Gemini writes it, as JSON Schema."""
    if not isinstance(given, Mapping):
        return given
    schema = {name: value for name, value in _camel(given).items() if name not in ("nullable", "propertyOrdering")}
    if isinstance(schema.get("type"), str):
        schema["type"] = schema["type"].lower()
    if given.get("nullable") and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if isinstance(schema.get("properties"), Mapping):
        schema["properties"] = {name: _schema(each) for name, each in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = _schema(schema["items"])
    if isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [_schema(each) for each in schema["anyOf"]]
    return schema


def _calls(answer: ChatAnswer) -> list[dict[str, Any]]:
    return [
        {"functionCall": {"id": call.id or f"call_{number}", "name": call.name, "args": call.fields}}
        for number, call in answer.calls.items()
    ]
