"""Gemini's requests: every one is read, or has a field that is named."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from rewoo_bench.agents.gemini import GeminiChat, GeminiEmbedding, answer_count, misfit_in

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
EMBEDDING = {"requests": [{"content": {"parts": [{"text": "Neva"}]}, "outputDimensionality": 8}]}
ODD: list[Any] = [None, 7, 1.5, True, "x", [], [7], [None], [[]], ["x"], {}, {"x": 7}]


def changed(value: Any) -> Iterator[Any]:
    """The value with any one of its parts replaced by something odd, or itself."""
    yield from ODD
    for place in range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ():
        for other in changed(value[place]):
            whole = deepcopy(value)
            whole[place] = other
            yield whole


@pytest.mark.parametrize("asked", [CHAT, EMBEDDING, {"generateContentRequest": CHAT}], ids=["chat", "batch", "count"])
def test_a_request_is_read_or_its_misfit_is_named(asked: dict[str, Any]) -> None:
    assert misfit_in(asked) is None
    for body in filter(lambda each: isinstance(each, dict), changed(asked)):
        if misfit_in(body) is None:
            assert GeminiChat(body, model="x", streamed=False, is_sse=False).model == "x"
            assert GeminiEmbedding(body, model="x").body["model"] == "x"
            assert answer_count(body)["totalTokens"] >= 0
