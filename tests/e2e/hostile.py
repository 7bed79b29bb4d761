"""Replies that a hostile or broken endpoint might send, as hypothesis strategies."""

from __future__ import annotations

import gzip
import json
from typing import Any

from hypothesis import strategies as st

from rewoo_bench.testing.server import ServerFault, ServerReply
from rewoo_bench.types import Usage

FRAGMENTS = (
    "Plan: find\n#E1 = Search[Kyiv]", "#E2 = LLM[what? #E1]", "#E10 = Search[#E1 #E99]", "Thought: go", "Answer: Oslo",
    "Action: Search[Kyiv]", "Action: Finish[Oslo]", 'Action: Search["\ud800 x"]', "Action: Lookup[river]", "Action:",
    "1. find it\n2. read it", "[", "]", "{", "}", '"', "\\", "\x00", "\ud83d", "\u2028", "<think>", "</think>",
    "<thought>",     "<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "analysis", "assistantfinal",
    "\nObservation:",
    '{"name": "Search", "arguments": {"query": "x"}}',
    '{"steps": [{"id": "E1", "tool": "Search", "args": {"query": 7}}]}',
    '{"steps": [' * 50, "{{E1}}", "yes", "NaN", "1e999", "9" * 300, "é" * 40, "\t", "Question: q00", " " * 300,
)  # fmt: skip

texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=12), max_size=8).map("\n".join)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(FRAGMENTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
counts = st.integers(1, 5000)
sound_usages = st.builds(lambda i, o, c: Usage(i, min(c, i), o), counts, counts, st.integers(0, 5000))


def _deep(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@st.composite
def tool_calls(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(["Search", "Lookup", "LLM", "Nothing", "\ud800", ""]) | junk)
    arguments = draw(st.sampled_from(['{"query": "Kyiv"}', _deep(600), "[" * 5000, '{"query": "\\ud800"}', "{"]) | junk)
    call = draw(st.sampled_from([{"id": "c1", "function": {"name": name, "arguments": arguments}}]) | junk)
    return draw(st.sampled_from([[call], [call, call], call, []]) | junk)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of a message beside its content."""
    fields = {"tool_calls": tool_calls(), "reasoning_content": texts | junk, "reasoning": junk, "content": texts | junk}
    chosen = draw(st.sets(st.sampled_from(sorted(fields)), max_size=2))
    return {name: draw(fields[name]) for name in sorted(chosen)}


finish_reasons = st.sampled_from(["stop", "length", "tool_calls", "content_filter", "max_tokens"])


@st.composite
def sound_replies(draw: st.DrawFn) -> ServerReply:
    """Answers in form with true counts, whatever the model wrote."""
    fields = draw(st.sampled_from([{}, {"reasoning_content": draw(texts)}]))
    return ServerReply(draw(texts), draw(finish_reasons), usage=draw(sound_usages), message=fields)


@st.composite
def unsound_replies(draw: st.DrawFn) -> ServerReply:
    """Answers with counts, fields or reasons that can't be."""
    usage = draw(junk | st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens", "total_tokens"]), junk))
    return ServerReply(draw(texts), draw(finish_reasons), usage=Usage(), usage_object=usage, message=draw(messages()))


def _response(status: int, headers: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status} X\r\n{headers}".encode("latin-1", "replace") + b"\r\n" + body


@st.composite
def raw_responses(draw: st.DrawFn) -> ServerFault:
    """Whole HTTP responses: odd heads, chunks, streams, compressed bodies, and bodies of anything."""
    body = draw(
        st.binary(max_size=40)
        | st.sampled_from([b"", b"[" * 50_000, b"9" * 5000, b"Infinity", b'{"choices": []}', b"<html>", b"null", b"{}"])
        | junk.map(lambda value: json.dumps(value).encode())
        | st.builds(lambda choices: json.dumps({"choices": choices}).encode(), junk)
    )
    status = draw(st.sampled_from([200, 200, 204, 400, 403, 404, 408, 413, 418, 422, 429, 500, 503, 529]))
    length = f"Content-Length: {len(body)}\r\n"
    kind = draw(st.sampled_from(["plain", "chunked", "gzip", "stream", "short", "none", "retry"]))
    if kind == "chunked":
        chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        return ServerFault("raw", body=_response(status, "Transfer-Encoding: chunked\r\n", chunk))
    if kind == "gzip":
        packed = gzip.compress(body)
        return ServerFault(
            "raw", body=_response(status, f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n", packed)
        )
    if kind == "stream":
        event = b"data: " + body + b"\n\ndata: [DONE]\n\n"
        head = f"Content-Type: text/event-stream\r\nContent-Length: {len(event)}\r\n"
        return ServerFault("raw", body=_response(status, head, event))
    if kind == "short":
        return ServerFault("raw", body=_response(status, f"Content-Length: {len(body) + 9}\r\n", body))
    if kind == "none":
        return ServerFault("raw", body=body)
    if kind == "retry":
        wait = draw(st.sampled_from(["0", "-1", "Wed, 99 Foo 99999 99:99:99 GMT", "1e9", "", "soon"]))
        return ServerFault("raw", body=_response(status, f"Retry-After: {wait}\r\n{length}", body))
    return ServerFault("raw", body=_response(status, length, body))


refusals = st.builds(
    lambda name: ServerFault(
        status=400, message=f"Unsupported parameter: '{name}'", param=name, code="unsupported_parameter"
    ),
    st.sampled_from(["stop", "temperature", "max_tokens", "seed", "tools", "messages", "model", "response_format"]),
)
failures = st.sampled_from([ServerFault(status=429, retry_after=0), ServerFault(status=500), ServerFault("disconnect")])
