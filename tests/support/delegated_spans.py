"""Spans of an agent that calls a tool and asks another agent at once; that one calls a tool, too."""

from __future__ import annotations

import json
from typing import Any

_BEGUN = 1_700_000_000 * 10**9


def delegated(trace: int = 1) -> dict[str, Any]:
    """A trace in OTLP: two calls of `main` around two of `helper`; `search` of `main` starts while `helper` works.

    The last prompt of `main` has lost what `main` said, and has a message of the system at its end, and another tool.
    """
    user, asked = (
        _said("user", "Ask about Ada, and search for Bob."),
        _asks(("a", "ask", "Ada"), ("b", "search", "Bob")),
    )
    who, looks = _said("user", "Who is Ada?"), _asks(("c", "look", "Ada"))
    found = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "a mathematician"}]}
    late = _said("system", "Be brief.")
    spans = [
        _span(1, 0, 0, 20, "invoke_agent", **{"gen_ai.agent.name": "main"}),
        _chat(2, 1, 0, [user], asked, ["ask"]),
        _tool(3, 1, 1, 9, "ask", "Ada", "a mathematician", "a"),
        _span(4, 3, 1, 9, "invoke_agent", **{"gen_ai.agent.name": "helper"}),
        _chat(5, 4, 2, [who], looks, []),
        _tool(6, 4, 3, 4, "look", "Ada", "a mathematician", "c"),
        _chat(7, 4, 6, [who, looks, found], _said("assistant", "A mathematician."), []),
        _tool(8, 1, 4, 8, "search", "Bob", "a builder", "b"),
        _chat(9, 1, 10, [user, late], _said("assistant", "Ada: a mathematician. Bob: a builder."), ["ask", "search"]),
    ]
    for span in spans:
        span |= {"traceId": f"{trace:032x}"}
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _asks(*calls: tuple[str, str, str]) -> dict[str, Any]:
    parts = [{"type": "tool_call", "id": id_, "name": name, "arguments": {"q": of}} for id_, name, of in calls]
    return {"role": "assistant", "parts": parts}


def _span(number: int, parent: int, start: int, end: int, operation: str, **more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": operation, **more}
    return {
        "spanId": f"{number:016x}", "parentSpanId": f"{parent:016x}" if parent else "", "name": operation,
        "startTimeUnixNano": str(_BEGUN + start * 10**9), "endTimeUnixNano": str(_BEGUN + end * 10**9),
        "attributes": [
            {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for name, value in attributes.items()
        ],
    }  # fmt: skip


def _chat(number: int, parent: int, start: int, prompt: list[Any], reply: Any, tools: list[str]) -> dict[str, Any]:
    texts = {"gen_ai.input.messages": prompt, "gen_ai.output.messages": [reply], "gen_ai.tool.definitions": [
        {"type": "function", "function": {"name": name, "description": "It finds. " * 40}} for name in tools
    ]}  # fmt: skip
    counts = {"gen_ai.usage.input_tokens": 100 * (1 + len(prompt)), "gen_ai.usage.output_tokens": 9}
    more = {name: json.dumps(value) for name, value in texts.items()}
    return _span(number, parent, start, start + 1, "chat", **{"gen_ai.request.model": "gpt-4o"}, **counts, **more)


def _tool(number: int, parent: int, start: int, end: int, name: str, of: str, result: str, id_: str) -> dict[str, Any]:
    about = {"name": name, "call.id": id_, "call.arguments": json.dumps({"q": of}), "call.result": result}
    more = {f"gen_ai.tool.{key}": value for key, value in about.items()}
    return _span(number, parent, start, end, "execute_tool", **more)
