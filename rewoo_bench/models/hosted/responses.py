"""Read a response in the OpenAI form: its visible text, its thoughts, its tool calls, and its finish reason.

    read_response({"message": {"content": "<think>France.</think>Paris"}, "finish_reason": "stop"})
    # ParsedResponse(text="Paris", thoughts="France.", …)

Whatever the response holds, the result can be written to any file: text without half surrogate pairs,
short names, arguments that are JSON of a sensible depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewoo_bench.escaping import replace_surrogates
from rewoo_bench.models.hosted.reasoning import split
from rewoo_bench.text.model_output import (
    RAW_ARGUMENTS,
    check_argument,
    check_fields,
    check_text,
    check_value,
    note,
    noting_repairs,
    shown,
)
from rewoo_bench.types import ToolCall

_LONGEST_NAME = 200

_THOUGHT_TYPE = re.compile("think|thought|reason|summary", re.IGNORECASE)
_TEXTS_OF_PARTS = ("text", "thinking", "reasoning", "reasoning_content", "summary", "content")
# Fields of a message, and of a call, that a provider wants back in the next request, in its own form.
_ECHOED = ("thinking_blocks", "reasoning_content", "reasoning_details", "extra_content", "provider_specific_fields")
_ECHOED_OF_CALL = ("extra_content", "provider_specific_fields")
_FINISH_REASONS = {
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
}


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """The parts of a reply. `text` is the visible text alone.

    `cut_thought`: the reply ends inside a thought. `late_close`: it began inside one.
    `repairs` names the changes that were needed to record it.
    """

    text: str
    thoughts: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    cut_thought: bool = False
    late_close: bool = False
    repairs: tuple[str, ...] = ()


def read_response(choice: Mapping[str, Any]) -> ParsedResponse:
    """One choice of a response: chat or completion, content as text or as a list of parts.

    Raises `AttributeError`, `LookupError`, `TypeError` or `ValueError` where it doesn't match the schema.
    """
    with noting_repairs() as notes:
        reply = _read_choice(choice)
    return replace(reply, repairs=tuple(dict.fromkeys(each["repair"] for each in notes))) if notes else reply


def _read_choice(choice: Mapping[str, Any]) -> ParsedResponse:
    message = choice.get("message")
    fields: Mapping[str, Any] = choice if message is None else message
    written, aside = read_content(fields.get("text") if message is None else fields.get("content"))
    finish_reason = _finish_reason(choice.get("finish_reason"))
    parts = split(check_text(written), cut=finish_reason == "length")
    thoughts = [check_text(thought) for thought in (*read_thoughts(fields), aside, parts.thoughts) if thought]
    return ParsedResponse(
        parts.text,
        "\n".join(dict.fromkeys(thoughts)) if thoughts else "",
        _tool_calls(fields) or (_harmony_calls(parts.calls) if parts.calls else ()),
        finish_reason,
        parts.unclosed,
        parts.late_close,
    )


def cut_at_stop(text: str, stop: Sequence[str]) -> tuple[str, str]:
    """The text before the first stop string, as a provider would cut it, and the rest."""
    if not stop:
        return text, ""
    ends = [position for position in (text.find(mark) for mark in stop if mark) if position >= 0]
    end = min(ends, default=len(text))
    return text[:end], text[end:]


def visible_so_far(text: str, stop: Sequence[str], *, begins_in_thought: bool) -> str:
    """The visible text of a reply that is still being written; it may end with a part of a stop string.

    `begins_in_thought`: this endpoint's replies begin inside a thought, without an opening mark.
    """
    parts = split(text, cut=True)
    if begins_in_thought and not parts.late_close:
        return ""
    return cut_at_stop(parts.text, stop)[0]


def read_content(content: Any) -> tuple[str, str]:
    """The written text and the thoughts of a content: text, or a list of parts of several types."""
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, list):
        raise TypeError(f"content is {type(content).__name__}")
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            is_thought = part.get("thought") is True or bool(_THOUGHT_TYPE.search(str(part.get("type"))))
            value = next((part[name] for name in _TEXTS_OF_PARTS if part.get(name)), "")
            (thoughts if is_thought else texts).append("".join(read_content([value] if _is_part(value) else value)))
    return "".join(texts), "".join(thoughts)


def _is_part(value: Any) -> bool:
    return isinstance(value, Mapping)


def read_thoughts(fields: Mapping[str, Any]) -> Iterator[str]:
    """The thoughts in separate fields; their names depend on the server."""
    for name in ("reasoning_content", "reasoning", "thinking", "reasoning_details"):
        if value := fields.get(name):
            yield "".join(read_content([value] if _is_part(value) else value))


def _tool_calls(fields: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of a message; arguments that aren't a JSON object stay text (`RAW_ARGUMENTS`)."""
    if not (given := fields.get("tool_calls")):
        return ()
    calls = [call for call in given if isinstance(call, Mapping)]
    echo = {name: fields[name] for name in _ECHOED if fields.get(name)}
    parsed = []
    for i, call in enumerate(calls):
        function = call.get("function") or {}
        name, id_ = _short(function.get("name") or ""), _short(call.get("id") or f"call_{i}")
        own = {name: call[name] for name in _ECHOED_OF_CALL if call.get(name)}
        returned = {"message": {} if i else echo, "call": own}
        returned = {part: kept for part, echoed in returned.items() if (kept := _kept(echoed))}
        parsed.append(ToolCall(id_, name, _arguments(function.get("arguments")), returned))
    return tuple(parsed)


def _kept(echoed: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a provider wants back, in full length since they may be signed; empty where they aren't valid."""
    try:
        with noting_repairs():  # the repairs are dropped: this only checks
            check_value(echoed)
    except ValueError:
        return {}
    kept: dict[str, Any] = json.loads(replace_surrogates(json.dumps(echoed, ensure_ascii=False)))
    return kept


def _harmony_calls(calls: Sequence[tuple[str, str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(f"call_{i}", _short(name), _arguments(text)) for i, (name, text) in enumerate(calls))


def _short(name: Any) -> str:
    return check_text(str(name))[:_LONGEST_NAME]


def _finish_reason(reason: Any) -> str:
    if reason in ("stop", "length"):
        return str(reason)
    name = check_text(str(reason or "stop"))[:_LONGEST_NAME]
    return _FINISH_REASONS.get(name.casefold(), name)


def _arguments(given: Any) -> dict[str, Any]:
    """Arguments as an object. Other text, or JSON nested too deeply, stays text under `RAW_ARGUMENTS`."""
    try:
        arguments = given if isinstance(given, Mapping) else json.loads(given or "{}")
        return check_fields(arguments) if isinstance(arguments, Mapping) else _raw(given)
    except (ValueError, TypeError, RecursionError) as error:
        note(f"the arguments of a tool call were read as text: {shown(str(error))}")
        return _raw(given)


def _raw(given: Any) -> dict[str, Any]:
    return {RAW_ARGUMENTS: check_argument(given if isinstance(given, str) else shown(given))}
