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
from itertools import pairwise
from typing import Any

from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.model_output import (
    RAW_ARGUMENTS,
    check_argument,
    check_fields,
    check_text,
    check_value,
    excerpt,
    note,
    noting_repairs,
)
from rewoo_bench.types import ToolCall, Usage

# Opening and closing marks, by the models that write them.
_MARKS = (
    ("<think>", "</think>"),  # DeepSeek R1, Qwen, and most others
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),  # Gemini behind some gateways
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),  # Kimi
    ("<|channel>thought", "<channel|>"),  # Gemma
    ("<antThinking>", "</antThinking>"),
    ("<scratchpad>", "</scratchpad>"),
)
_CLOSING = {opening.casefold(): closing.casefold() for opening, closing in _MARKS}
_ANY_MARK = re.compile("|".join(re.escape(mark) for marks in _MARKS for mark in marks), re.IGNORECASE)

_SIGN = re.compile("<|THINK]|◁|analysis")  # a text without any of them has no thoughts in it
_ANSWER_TAGS = re.compile(r"</?answer>", re.IGNORECASE)  # around the visible text, as R1's own prompt asks
_HARMONY = re.compile(r"<\|(start|end|message|channel|constrain|return|call)\|>")
# Harmony without its special tokens, which some servers drop.
_BARE_HARMONY = re.compile(r"\A\s*+analysis(.*?)assistant\s?final", re.DOTALL)
_BARE_CUT = re.compile(r"\A\s*+analysis[A-Z]")
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

# No call has more tokens: a thousand times the longest context of 2026.
_MOST_TOKENS = 10**9
_MOST_UNLISTED = 10**6  # tokens of a total that are neither input nor output: a model's thoughts
_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")
# Tokens read from a cache, by the names of OpenAI, DeepSeek, Moonshot and Anthropic.
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_CACHE_WRITE = ("cache_creation_input_tokens", "cache_creation_tokens", "cache_write_tokens")


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


def split(text: str, *, cut: bool = False) -> ParsedResponse:
    """The visible text, the reasoning and the calls in the text of a reply. Takes time linear in its length.

        split("<think>It is in France.</think>Answer: Paris")
        # ParsedResponse(text="Answer: Paris", thoughts="It is in France.", …)

    Some servers send the reasoning in a field of its own (`read_thoughts`). Others leave it in the text: between tags,
    before a closing tag alone (if the prompt's template has opened it), after an opening tag that is never closed (the
    reply was cut), or in the channels of the Harmony format (https://cookbook.openai.com/articles/openai-harmony).

    `cut`: the reply was cut for its length. Without it, an opening mark in the middle of a line that is never
    closed is plain text. The arguments of a call are its text (`RAW_ARGUMENTS`).
    """
    if not _SIGN.search(text):
        return ParsedResponse(text)
    if _HARMONY.search(text):
        return _split_harmony(text)
    if match := _BARE_HARMONY.match(text):
        return ParsedResponse(text[match.end() :].strip(), match[1].strip())
    if _BARE_CUT.match(text):
        return ParsedResponse("", text.strip().removeprefix("analysis"), cut_thought=True)
    if _ANY_MARK.search(text):
        return _split_tags(text, cut)
    return ParsedResponse(text)


def _split_tags(text: str, cut: bool) -> ParsedResponse:
    """A closing mark without an opening one closes a thought that began before the text."""
    visible: list[str] = []
    thoughts: list[str] = []
    position, visible_from, opened, closing, late_close = 0, 0, 0, "", False
    for match in _ANY_MARK.finditer(text):
        mark = match[0].casefold()
        if closing and mark != closing:
            continue  # another mark inside a thought
        piece = text[position : match.start()]
        if closing:
            thoughts.append(piece)
            closing = ""
        elif mark in _CLOSING:
            visible.append(piece)
            closing, opened, visible_from = _CLOSING[mark], match.start(), position
        else:
            thoughts += [*visible, piece]
            visible, late_close = [], True
        position = match.end()
    if closing and not cut and text[:opened].rpartition("\n")[2].strip(" \t*>") and _joined(visible):
        visible[-1], closing = text[visible_from:], ""
    else:
        (thoughts if closing else visible).append(text[position:])
    answer = _ANSWER_TAGS.sub("", _joined(visible))
    return ParsedResponse(answer, _joined(thoughts), cut_thought=bool(closing), late_close=late_close)


def _split_harmony(text: str) -> ParsedResponse:
    """Messages such as `<|channel|>analysis<|message|>…<|end|>`; the channel `final` is the answer."""
    visible: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    marks = list(_HARMONY.finditer(text))
    before = text[: marks[0].start()].strip()
    if before and not before.startswith("assistant"):
        thoughts.append(before)  # the rest of a message that began in the prompt
    header, in_message, closed = "", False, True
    for mark, following in pairwise([*marks, None]):
        assert mark is not None
        piece = text[mark.end() : following.start() if following else len(text)]
        if mark[1] in ("channel", "start", "constrain"):
            header = f"{header} {piece}" if mark[1] != "start" else piece
        elif mark[1] == "message":
            in_message = True
            recipient = re.search(r"to=(?:functions\.)?([\w.-]+)", header)
            closed = following is not None and following[1] in ("end", "return", "call", "start")
            if recipient:
                calls.append(ToolCall(f"call_{len(calls)}", recipient[1], {RAW_ARGUMENTS: piece.strip()}))
            else:
                (visible if "final" in header.split() else thoughts).append(piece)
        else:
            header = ""
    if not in_message:  # cut in the middle of a header
        return ParsedResponse("", _joined([*thoughts, text[marks[-1].end() :]]), cut_thought=True)
    is_cut = not closed and not visible and not calls
    return ParsedResponse(_joined(visible), _joined(thoughts), tuple(calls), cut_thought=is_cut)


def _joined(pieces: list[str]) -> str:
    return "\n".join(piece.strip() for piece in pieces if piece.strip())


def read_response(choice: Mapping[str, Any]) -> ParsedResponse:
    """One choice of a response: chat or completion, content as text or as a list of parts.

    Raises `AttributeError`, `LookupError`, `TypeError` or `ValueError` where it doesn't match the schema.
    """
    message = choice.get("message")
    fields: Mapping[str, Any] = choice if message is None else message
    with noting_repairs() as notes:
        written, aside = read_content(fields.get("text" if message is None else "content"))
        reason = _short(choice.get("finish_reason") or "stop")
        reason = _FINISH_REASONS.get(reason.casefold(), reason)
        parts = split(check_text(written), cut=reason == "length")
        thoughts = [check_text(thought) for thought in (*read_thoughts(fields), aside, parts.thoughts) if thought]
        calls = [call for call in fields.get("tool_calls") or () if isinstance(call, Mapping)]
        tool_calls = [_tool_call(f"call_{i}", call, {} if i else fields) for i, call in enumerate(calls)] or [
            ToolCall(call.id, _short(call.name), _arguments(call.arguments[RAW_ARGUMENTS])) for call in parts.tool_calls
        ]
    return replace(
        parts,
        thoughts="\n".join(dict.fromkeys(thoughts)),
        tool_calls=tuple(tool_calls),
        finish_reason=reason,
        repairs=tuple(dict.fromkeys(each["repair"] for each in notes)),
    )


def cut_at_stop(text: str, stop: Sequence[str]) -> tuple[str, str]:
    """The text before the first stop string, as a provider would cut it, and the rest."""
    end = min((at for mark in stop if mark and (at := text.find(mark)) >= 0), default=len(text))
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
            (thoughts if is_thought else texts).append(_all_text(value))
    return "".join(texts), "".join(thoughts)


def read_thoughts(fields: Mapping[str, Any]) -> Iterator[str]:
    """The thoughts in separate fields; their names depend on the server."""
    for name in ("reasoning_content", "reasoning", "thinking", "reasoning_details"):
        if value := fields.get(name):
            yield _all_text(value)


def _all_text(value: Any) -> str:
    return "".join(read_content([value] if isinstance(value, Mapping) else value))


def _tool_call(default_id: str, call: Mapping[str, Any], message: Mapping[str, Any]) -> ToolCall:
    """A tool call, with the fields of it and of its message that a provider wants back.

    Arguments that aren't a JSON object stay text (`RAW_ARGUMENTS`).
    """
    function = call.get("function") or {}
    echo = {"message": _echoed(message, _ECHOED), "call": _echoed(call, _ECHOED_OF_CALL)}
    return ToolCall(
        _short(call.get("id") or default_id),
        _short(function.get("name") or ""),
        _arguments(function.get("arguments")),
        {part: fields for part, fields in echo.items() if fields},
    )


def _echoed(fields: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The fields of these names, in full length since they may be signed; empty where they aren't valid."""
    echo: dict[str, Any] = {name: fields[name] for name in names if fields.get(name)}
    try:
        with noting_repairs():  # the repairs are dropped: this only checks
            check_value(echo)
    except ValueError:
        return {}
    if echo:
        echo = json.loads(replace_surrogates(json.dumps(echo, ensure_ascii=False)))
    return echo


def _short(name: Any) -> str:
    return check_text(str(name))[:_LONGEST_NAME]


def _arguments(given: Any) -> dict[str, Any]:
    """Arguments as an object. Other text, or JSON nested too deeply, stays text under `RAW_ARGUMENTS`."""
    try:
        arguments = given if isinstance(given, Mapping) else json.loads(given or "{}")
        if isinstance(arguments, Mapping):
            return check_fields(arguments)
    except (ValueError, TypeError, RecursionError) as error:
        note(f"the arguments of a tool call were read as text: {excerpt(str(error))}")
    return {RAW_ARGUMENTS: check_argument(given if isinstance(given, str) else excerpt(given))}


def read_usage(usage: Any) -> Usage | None:
    """The counts of a usage object, in each form in which providers send it; zeros for missing counts.

        read_usage({"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 62,
                    "completion_tokens_details": {"reasoning_tokens": 20}})
        # Usage(input_tokens=12, output_tokens=50, reasoning_tokens=20): the completion doesn't include it here

    None where a count is impossible (negative, absurdly large, not a number): the caller counts with its own tokenizer.
    Reasoning that the completion doesn't include (xAI; Gemini's total_tokens) is added to the output.
    Cached input that the input doesn't include (Anthropic's own form) is added to the input.
    """
    if usage is None:
        return Usage()
    if not isinstance(usage, dict):
        return None
    try:
        input_tokens, output_tokens = _count(usage, _INPUT), _count(usage, _OUTPUT)
        cached = _count(usage, _CACHED, _INPUT_DETAILS)
        cache_write = _count(usage, _CACHE_WRITE, _INPUT_DETAILS)
        reasoning = _count(usage, ("reasoning_tokens",), _OUTPUT_DETAILS)
        total = _count(usage, ("total_tokens",))
    except ValueError:
        return None
    if "prompt_tokens" not in usage and ("cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage):
        input_tokens += cached + cache_write  # Anthropic's own form
    unlisted = total - input_tokens - output_tokens
    if unlisted > 0 and input_tokens and "completion_tokens" in usage:  # the total is what is paid
        reasoning = reasoning or unlisted
        output_tokens += unlisted
    elif reasoning > output_tokens:
        output_tokens += reasoning
    if unlisted > _MOST_UNLISTED or cached > input_tokens or cache_write > input_tokens:
        return None
    return Usage(input_tokens, cached, output_tokens, reasoning, cache_write)


def later_counts(before: Mapping[str, Any], usage: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a stream so far, with those of another event: they are cumulative.

    Some proxies repeat the input's counts at the end of a stream as zeros.
    """
    new = {name: count for name, count in usage.items() if count or (count is not None and name not in before)}
    return {**before, **new}


def salvage_usage(text: str) -> Usage | None:
    """The usage in a response that isn't valid JSON, such as one that was cut; None where there is none."""
    start = text.rfind('"usage"')
    brace = text.find("{", start)
    if start < 0 or brace < 0:
        return None
    try:
        counts, _ = json.JSONDecoder().raw_decode(text, brace)
    except (ValueError, RecursionError):
        return None
    usage = read_usage(counts)
    return usage if usage != Usage() else None


def _count(usage: dict[str, Any], names: Sequence[str], details: Sequence[str] = ()) -> int:
    """A count in the details or outside them, the first that isn't zero. Raises `ValueError` for an impossible one."""
    for detail in details:
        if isinstance(part := usage.get(detail), dict) and (count := _count(part, names)):
            return count
    for name in names:
        value: Any = usage.get(name)
        if value is not None:
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if type(value) is not int or not 0 <= value <= _MOST_TOKENS:
                raise ValueError("no number of tokens")
            return value
    return 0
