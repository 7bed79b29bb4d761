"""Gemini's requests: every one is read, or refused in a line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

from rewoo_bench.agents.gemini import read_gemini

SCHEMA = {"type": "OBJECT", "nullable": True, "properties": {"km": {"anyOf": [{"type": "STRING"}]}}, "items": {}}
TURNS = [
    "Which river?",
    {"role": "user", "parts": [{"text": "Here:"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
    {"role": "user", "parts": [{"file_data": {"mimeType": "audio/mp3", "fileUri": "x"}}]},
    {"role": "model", "parts": [{"functionCall": {"name": "search", "id": "1", "args": {"query": "Neva"}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "search", "id": "1", "response": {"result": "74"}}}]},
]
CHAT = {
    "contents": TURNS,
    "system_instruction": {"parts": [{"text": "Be short."}]},
    "tools": [{"functionDeclarations": [{"name": "search", "description": "Searches", "parameters": SCHEMA}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["search"]}},
    "generationConfig": {
        "temperature": 0.5,
        "maxOutputTokens": 9,
        "stopSequences": ["."],
        "responseMimeType": "application/json",
        "responseSchema": SCHEMA,
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
    },
}
ODD: list[Any] = [None, 7, 1.5, True, "x", [], [7], [None], [[]], ["x"], {}, {"x": 7}]


def changed(value: Any) -> Iterator[Any]:
    """The value with any one of its parts replaced by something odd, or itself."""
    yield from ODD
    for place in range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ():
        for other in changed(value[place]):
            whole = deepcopy(value)
            whole[place] = other
            yield whole


def test_a_request_is_read_or_refused() -> None:
    path = "/v1beta/models/x:generateContent"
    read = read_gemini(path, {}, CHAT)
    assert read is not None
    for body in filter(lambda each: isinstance(each, dict), changed(CHAT)):
        with suppress(ValueError):
            read = read_gemini(path, {}, body)
            assert read is not None
            assert read.body["model"] == "x"
