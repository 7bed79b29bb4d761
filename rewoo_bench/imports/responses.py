"""Records of OpenAI's Responses API -> the messages of its chat API.

    {"input": "2 + 2?", "output": [{"type": "message", "role": "assistant", "content": […]}], "usage": {…}}

A reply of the model is several items there: what it reasoned, what it said, and each function that it calls. Here they
are one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_CALLS = ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call")
_HOSTED = ("mcp_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")
"""Calls of tools that the provider runs: their results are in the same items."""
_OF_REPLIES = ("reasoning", *_CALLS, *_HOSTED)
_RESULTS = tuple(f"{each}_output" for each in _CALLS)
ITEMS = (*_OF_REPLIES, *_RESULTS, "message", "mcp_list_tools")


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
    return isinstance(value, Mapping) and (value.get("type") in ITEMS or isinstance(value.get("role"), str))


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
        elif kind in _RESULTS:
            found.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
            reply = None
        elif not isinstance(item, Mapping) or "role" in item:
            found.append(item)
            reply = None
    return found


def _add(reply: dict[str, Any], item: Mapping[str, Any]) -> None:
    """Adds an item to a reply."""
    content = item.get("content")
    if item.get("type") in (*_CALLS, *_HOSTED):
        call = _called(item)
        reply["tool_calls"].append(call)
        result = next((item[name] for name in ("error", "output", "outputs", "results") if item.get(name)), None)
        if item["type"] in _HOSTED and result is not None:
            part = {"type": "tool_result", "tool_use_id": call["id"], "content": result}
            reply["content"].append({**part, "is_error": bool(item.get("error"))})
    elif item.get("type") == "reasoning":
        parts = [part for each in (item.get("summary"), content) for part in (each if isinstance(each, list) else [])]
        texts = [str(part["text"]) for part in parts if isinstance(part, Mapping) and part.get("text")]
        reply["reasoning"] = "\n".join(filter(None, [reply["reasoning"], *texts]))
    else:
        reply["content"] += content if isinstance(content, list) else [content]


def _called(item: Mapping[str, Any]) -> dict[str, Any]:
    """The tool call of an item, in the flat form with name and arguments."""
    given = next((item[name] for name in ("arguments", "input", "action") if item.get(name) is not None), None)
    if given is None:
        given = {name: item[name] for name in ("code", "queries", "operation") if item.get(name) is not None}
    name = item.get("name") or str(item.get("type")).removesuffix("_call")
    return {"id": item.get("call_id") or item.get("id"), "name": name, "arguments": given}
