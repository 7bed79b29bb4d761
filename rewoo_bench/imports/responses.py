"""Records of OpenAI's Responses API -> the messages of its chat API.

    {"input": "2 + 2?", "output": [{"type": "message", "role": "assistant", "content": […]}], "usage": {…}}

A reply of the model is several items there: what it reasoned, what it said, and each function that it calls. Here they
are one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_OF_REPLIES = ("reasoning", "function_call")
_ITEMS = (*_OF_REPLIES, "function_call_output", "message")


def input_of(record: Mapping[str, Any]) -> list[Any] | None:
    """The messages of a request's `input`; None for what is no request of this interface.

    A request alone needs a list of items and a model, since data sets have fields of the name `input`, too.
    """
    given = record.get("input")
    if isinstance(given, str) and given and output_of(record) is not None:
        return [{"role": "user", "content": given}]
    if not (isinstance(given, list) and given and _is_item(given[0])):
        return None
    return messages_of_items(given) if output_of(record) is not None or record.get("model") else None


def output_of(record: Mapping[str, Any]) -> list[Any] | None:
    """The items of a response; None where there are none."""
    found = record.get("output")
    return found if isinstance(found, list) and found and _is_item(found[0]) else None


def _is_item(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("type") in _ITEMS or isinstance(value.get("role"), str))


def messages_of_items(items: Iterable[Any]) -> list[Any]:
    """Items as messages; those that follow each other in a reply as one."""
    found: list[Any] = []
    reply: dict[str, Any] | None = None
    for item in items:
        kind = item.get("type") if isinstance(item, Mapping) else None
        if kind in _OF_REPLIES or (isinstance(item, Mapping) and item.get("role") == "assistant"):
            if reply is None:
                reply = {"role": "assistant", "content": [], "tool_calls": [], "reasoning": ""}
                found.append(reply)
            _add(reply, item)
        elif kind == "function_call_output":
            found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
            reply = None
        elif not isinstance(item, Mapping) or "role" in item:
            found.append(item)
            reply = None
    return found


def _add(reply: dict[str, Any], item: Mapping[str, Any]) -> None:
    """Adds an item to a reply."""
    content = item.get("content")
    if item.get("type") == "function_call":
        call = {"id": item.get("call_id"), "name": item.get("name"), "arguments": item.get("arguments")}
        reply["tool_calls"].append(call)
    elif item.get("type") == "reasoning":
        parts = [part for each in (item.get("summary"), content) for part in (each if isinstance(each, list) else [])]
        texts = [str(part["text"]) for part in parts if isinstance(part, Mapping) and part.get("text")]
        reply["reasoning"] = "\n".join(filter(None, [reply["reasoning"], *texts]))
    else:
        reply["content"] += content if isinstance(content, list) else [content]
