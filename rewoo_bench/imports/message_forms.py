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
from rewoo_bench.imports.record import first_of, parsed


def messages_in(value: Any) -> list[Any] | None:
    """The messages of a prompt: a list, one in an object, or a text as a user's; None where there is nothing."""
    value = parsed(value)
    if isinstance(value, Mapping):
        for name in ("messages", "contents", "input", "inputs", "prompt", "prompts"):
            if value.get(name):
                found = messages_in(value[name])
                system = value.get("system") or value.get("instructions")
                return [{"role": "system", "content": system}, *found] if system and found else found
        value = [value] if _is_message(value) else None
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain's lists of prompts
    if isinstance(value, str) and value:
        return [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(each, str) for each in value):
        return [{"role": "user", "content": "\n".join(value)}]
    return [plain for each in value for plain in plain_messages(each)] if all(map(_is_message, value)) else None


def reply_in(value: Any) -> Any:
    """The message that a model answered with; None where there is none."""
    value = parsed(value)
    if isinstance(value, str):
        return {"role": "assistant", "content": value} if value else None
    if isinstance(value, list) and any(map(_is_item, value)):
        return _joined(messages_of_items(value))
    if isinstance(value, list):
        return _joined([plain for each in value if isinstance(each, Mapping) for plain in plain_messages(each)])
    if not isinstance(value, Mapping):
        return None
    for name in ("choices", "generations", "candidates"):
        chosen = value.get(name)
        while isinstance(chosen, list) and chosen:
            chosen = chosen[0]
        if isinstance(chosen, Mapping):
            inner = first_of(chosen, ("message", "content", "text"))
            found = reply_in(inner if inner is not None else chosen)
            reason = first_of(chosen, ("finish_reason", "finishReason"))
            return {"finish_reason": reason, **found} if reason and isinstance(found, Mapping) else found
    if _is_message(value):
        return _joined(list(plain_messages(value)))
    for name in ("messages", "output", "outputs", "content", "text", "completion", "result", "response"):
        if value.get(name):
            return reply_in(value[name])
    return None


def _joined(messages: list[Any]) -> Any:
    """One message of an answer's parts: the last text, and all tool calls."""
    said = [each for each in messages if each.get("role", each.get("type")) in ("assistant", "ai", "model", None)]
    if not said:
        return None
    return {**said[-1], "tool_calls": [call for each in said for call in each.get("tool_calls") or ()]}


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return (
        _is_item(value)
        or any(isinstance(value.get(name), str) for name in ("role", "from"))
        or _unwrapped(value) != value
    )


def _is_item(value: Any) -> bool:
    """Whether it is an item of OpenAI's Responses, and no message there."""
    return isinstance(value, Mapping) and value.get("type") in ITEMS and "role" not in value


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of LangChain's serialisations."""
    for name in ("kwargs", "data", "message"):
        if isinstance(value.get(name), Mapping) and (name != "kwargs" or "lc" in value):
            return {"type": value.get("type"), **value[name]}
    if value.get("type") in ("human", "ai", "system", "tool") and "content" in value:
        return {**value, "role": value["type"]}
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
        if set(found) in ({"output"}, {"result"}):
            return result_text(next(iter(found.values())))
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
