"""Messages in the many forms in which spans and exports have them -> forms that `read_conversation` takes.

    messages_in('{"messages": [{"role": "user", "parts": [{"type": "text", "content": "2 + 2?"}]}]}')
    reply_in({"choices": [{"message": {"role": "assistant", "content": "4"}}]})

Those are the messages of OpenAI's two interfaces, of the GenAI conventions, and of LangChain's serialisations, also as
JSON in a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rewoo_bench.imports.message_parts import ITEMS, messages_of_items, with_content
from rewoo_bench.imports.messages import text_of
from rewoo_bench.imports.record import object_at, objects_at, parsed
from rewoo_bench.text.model_output import objects_in


def messages_in(value: Any) -> list[Any] | None:
    """The messages of a prompt: a list, one in an object, or a text as a user's; None where there is nothing."""
    value = parsed(value)
    for name in ("messages", "contents", "input", "inputs", "prompt", "prompts") if isinstance(value, Mapping) else ():
        if value.get(name):
            found = messages_in(value[name])
            system = value.get("system") or value.get("instructions")
            return [{"role": "system", "content": system}, *found] if system and found else found
    if isinstance(value, str) and value:
        return [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value or not all(map(_is_message, value)):
        return None
    return [plain for each in value for plain in plain_messages(each)]


def reply_in(value: Any) -> Any:
    """The message that a model answered with; None where there is none."""
    value = parsed(value)
    if isinstance(value, str):
        return {"role": "assistant", "content": value} if value else None
    if choices := objects_at(value, "choices"):
        return {"finish_reason": choices[0].get("finish_reason"), **object_at(choices[0], "message")}
    messages = objects_in([value] if isinstance(value, Mapping) and _is_message(value) else value)
    return _joined([plain for each in messages for plain in plain_messages(each)])


def _joined(messages: list[Any]) -> Any:
    """One message of an answer's parts: the last text, and all tool calls."""
    said = [each for each in messages if each.get("role", each.get("type")) in ("assistant", "ai", "model", None)]
    if not said:
        return None
    return {**said[-1], "tool_calls": [call for each in said for call in each.get("tool_calls") or ()]}


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return _is_item(value) or isinstance(value.get("role"), str) or _unwrapped(value) != value


def _is_item(value: Any) -> bool:
    """Whether it is an item of OpenAI's Responses, and no message there."""
    return isinstance(value, Mapping) and value.get("type") in ITEMS and "role" not in value


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of LangChain's serialisations."""
    for name in ("kwargs", "data", "message"):
        if isinstance(value.get(name), Mapping) and (name != "kwargs" or "lc" in value):
            return {"type": value.get("type"), **value[name]}
    return value


def plain_messages(raw: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A message in a form that `read_conversation` takes; several where it holds results of several tools."""
    raw = _unwrapped(raw)
    kind = raw.get("type")
    if _is_item(raw):
        yield from messages_of_items([raw] if kind != "reasoning" else [])
    else:
        content = {"content": _content(raw.get("content"))} if "content" in raw else {}
        yield from with_content({**raw, **content})


def _content(content: Any) -> Any:
    """Parts that were written as a text become parts again."""
    found = parsed(content)
    is_parts = isinstance(found, list) and found and all(isinstance(each, Mapping) and "type" in each for each in found)
    return found if is_parts else content


def result_text(value: Any) -> str:
    """The text of a tool's result, also in a message of LangChain."""
    found = parsed(value)
    if isinstance(found, Mapping):
        inner = _unwrapped(found)
        if inner.get("type") == "tool" and "content" in inner:
            return text_of(inner["content"])
    return value if isinstance(value, str) else text_of(value)


def shown(value: Any) -> str:
    """A root's input or output as a text: the last message, the one value of an object, or all of it."""
    found = parsed(value)
    if isinstance(found, Mapping) and set(found) == {"args", "kwargs"}:
        values = [*found["args"], *found["kwargs"].values()] if isinstance(found["kwargs"], Mapping) else []
        return text_of(values[0]) if values else ""
    if isinstance(found, Mapping) and isinstance(found.get("messages"), list) and found["messages"]:
        found = found["messages"][-1]
    elif isinstance(found, list) and found and all(map(_is_message, found)):
        found = found[-1]
    if isinstance(found, Mapping):
        found = _unwrapped(found)
        for name in ("content", "text"):
            if name in found and isinstance(found[name], str | list | None):
                return text_of(found[name])
        if len(found) == 1:
            return text_of(next(iter(found.values())))
    return text_of(found)
