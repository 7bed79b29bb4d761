"""The test server's answers as server-sent events: a token each, and the usage at the end if it is asked for.

    first, tokens, rest = to_events({"id": "test-1", "choices": [{"message": {"content": "In Paris"}, …}], "usage": …})
    tokens      # [b'1f\\r\\ndata: {… "content": "In " …}\\n\\n\\r\\n', …]

The bytes have the form of HTTP's chunked encoding. A token is a word with the white space behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_TOKEN = re.compile(r"\S+\s*|^\s+")


def to_events(document: Mapping[str, Any], *, usage: bool) -> tuple[bytes, list[bytes], bytes]:
    """The first event of an answer (its role, thoughts and tool calls), its tokens, and its end."""
    (choice,) = document["choices"]
    message = choice.get("message")
    fields = dict(choice if message is None else message)
    text = fields.pop("content" if message is not None else "text", "")
    calls = fields.pop("tool_calls", None)
    if isinstance(calls, list):  # anything else is sent as the test has it
        calls = [{"index": i, **call} if isinstance(call, dict) else call for i, call in enumerate(calls)]
    fields = {name: value for name, value in fields.items() if name not in ("index", "finish_reason")}
    parts = _TOKEN.findall(text) if isinstance(text, str) else [text]
    tokens = [_event(document, message is not None, part) for part in parts]
    first = {**fields, **({"tool_calls": calls} if calls else {})}
    end = {"index": 0, "finish_reason": choice["finish_reason"]}
    rest = event({**_plain(document), "choices": [{**end, **({"delta": {}} if message is not None else {"text": ""})}]})
    if usage and "usage" in document:
        rest += event({**_plain(document), "choices": [], "usage": document["usage"]})
    opening = {"index": 0, **({"delta": first} if message is not None else {"text": "", **first})}
    return event({**_plain(document), "choices": [opening]}), tokens, rest + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def event(document: Mapping[str, Any]) -> bytes:
    """One event as a chunk; text outside of ASCII is sent as it is, as many servers do."""
    return _chunk(f"data: {json.dumps(document, ensure_ascii=False)}\n\n".encode("utf-8", "surrogatepass"))


def _event(document: Mapping[str, Any], chat: bool, part: Any) -> bytes:
    choice = {"index": 0, "finish_reason": None, **({"delta": {"content": part}} if chat else {"text": part})}
    return event({**_plain(document), "choices": [choice]})


def _plain(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("choices", "usage")}


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
