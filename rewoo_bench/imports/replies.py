"""One reply of a model that a program wrote as several messages -> one message.

    {"id": "msg_1", "role": "assistant", "content": [{"type": "text", …}], "usage": {…}}
    {"id": "msg_1", "role": "assistant", "content": [{"type": "tool_use", …}], "usage": {…}}

Claude Code and its SDK write each part of a reply as soon as it is there, so a tool's result may stand between two
parts. Each has the id and the usage of the whole reply, whose output may have grown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewoo_bench.imports.record import known, number, object_at, objects_at

_OUTPUT = ("output_tokens", "completion_tokens", "outputTokens")


def with_whole_replies(messages: Sequence[Any]) -> list[Any]:
    """The messages, those of one response as one, where its first one stood."""
    found: list[Any] = []
    at: int | None = None  # where the last reply stands
    for raw in messages:
        if at is not None and _is_of(found[at], raw, is_next=at == len(found) - 1):
            found[at] = _joined(found[at], raw)
            continue
        if _id(raw):
            at = len(found)
        elif not _are_results(raw):
            at = None
        found.append(raw)
    return found


def _id(raw: Any) -> Any:
    """The id of the response that a message is of."""
    is_reply = isinstance(raw, Mapping) and raw.get("role") == "assistant"
    return (raw.get("response_id") or raw.get("id")) if is_reply else None


def _are_results(raw: Any) -> bool:
    if not isinstance(raw, Mapping):
        return False
    return raw.get("role") == "tool" or any(part.get("type") == "tool_result" for part in objects_at(raw, "content"))


def _is_of(reply: Mapping[str, Any], raw: Any, *, is_next: bool) -> bool:
    """Whether a message goes on with a reply: its id is the same, and so are the tokens of its prompt.

    After a tool's result the id alone isn't enough: some programs give all replies that of the conversation.
    """
    if _id(raw) is None or _id(raw) != _id(reply):
        return False
    one, other = (_of_prompt(each) for each in (reply, raw))
    return one == other and (is_next or bool(one))


def _of_prompt(raw: Mapping[str, Any]) -> dict[str, float]:
    """The tokens of a reply's prompt."""
    usage = object_at(raw, "usage")
    names = ("input_tokens", "prompt_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return {name: count for name in names if (count := number(usage.get(name))) is not None}


def _joined(reply: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """A reply with a further message of it. `asked_at` has when each tool's call was there."""
    content = _content(reply)
    content += [part for part in _content(raw) if part not in content]
    calls = [*objects_at(reply, "tool_calls")]
    calls += [call for call in objects_at(raw, "tool_calls") if call not in calls]
    usages = [object_at(each, "usage") for each in (raw, reply)]
    asked_at = {**_asked_at(raw), **(reply.get("asked_at") or _asked_at(reply))}
    return {
        **reply, **known(raw), "content": content, **({"tool_calls": calls} if calls else {}),
        "usage": max(usages, key=_output) or None, "asked_at": asked_at,
    }  # fmt: skip


def _content(raw: Mapping[str, Any]) -> list[Any]:
    content = raw.get("content")
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}] if content else []


def _output(usage: Mapping[str, Any]) -> float:
    return next((found for name in _OUTPUT if (found := number(usage.get(name))) is not None), -1)


def _asked_at(raw: Mapping[str, Any]) -> dict[str, Any]:
    calls = [part for part in objects_at(raw, "content") if part.get("type") == "tool_use"]
    return {str(part["id"]): raw.get("timestamp") for part in calls if part.get("id")}
