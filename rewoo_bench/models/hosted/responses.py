"""Read a response in the OpenAI form: its visible text, its thoughts, its tool calls, and its finish reason.

    read_response({"message": {"content": "<think>France.</think>Paris"}, "finish_reason": "stop"})
    # ParsedResponse(text="Paris", thoughts="France.", …)

Whatever the response holds, the result can be written to any file: text without half surrogate pairs,
short names, arguments that are JSON of a sensible depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, Literal, NamedTuple

from rewoo_bench.text.model_output import (
    RAW_ARGUMENTS,
    decode,
    excerpt,
    note,
    noting_repairs,
    objects_in,
)
from rewoo_bench.types import ToolCall, Usage

# Opening and closing marks, by the models that write them.
_MARKS = (
    ("<think>", "</think>"),  # DeepSeek R1, Qwen, and most others
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),  # Gemini behind some gateways
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("◁think▷", "◁/think▷"),  # Kimi
    ("<|channel>thought", "<channel|>"),  # Gemma
)
_CLOSING = {opening.casefold(): closing.casefold() for opening, closing in _MARKS}
_ANY_MARK = re.compile("|".join(re.escape(mark) for marks in _MARKS for mark in marks), re.IGNORECASE)

_SIGN = re.compile("<|THINK]|◁")  # a text without any of them has no thoughts in it
_ANSWER_TAGS = re.compile(r"</?answer>", re.IGNORECASE)  # around the visible text, as R1's own prompt asks
_FINAL = re.compile(
    r"(?:<\|start\|>[^<]*)?<\|channel\|>final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"((?:(?!<\|(?:start|channel|end|message|return|call)\|>).)*)",
    re.DOTALL,
)
_HARMONY = re.compile(r"<\|(?:start|channel|constrain)\|>[^<]*|<\|(?:end|message|return|call)\|>")
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
_MOST_UNLISTED = 1 << 16
"""The longest reply of the models that count their thoughts in the total alone: those of Gemini."""
_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count", "input")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "eval_count", "output")
_TOTAL = ("total_tokens", "total_token_count", "total")
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details", "output_token_details")
# Cached tokens whose names say that the input doesn't have them: Anthropic's, Bedrock's and inspect_ai's.
_READ_BESIDE = ("cache_read_input_tokens", "input_tokens_cache_read")
_WRITTEN_BESIDE = ("cache_creation_input_tokens", "cache_write_input_tokens", "input_tokens_cache_write")
# Tokens read from a cache, also by the names of OpenAI, DeepSeek, Moonshot, Gemini, the AI SDK and LangChain.
_CACHED = (
    *("cached_tokens", "prompt_cache_hit_tokens", *_READ_BESIDE, "cached_content_token_count", "cached_input_tokens"),
    *("cache_read_tokens", "cache_read", "input_cached_tokens"),
)
_CACHE_WRITE = (*_WRITTEN_BESIDE, "cache_creation_tokens", "cache_write_tokens", "cache_creation")
_SPLIT = ("cache_creation", "cache_creation_token_details")  # what was written to a cache, by how long it is kept
_THOUGHTS = "thoughts_token_count"  # Gemini's, which its candidates don't have
_REASONING = ("reasoning_tokens", _THOUGHTS, "reasoning", "output_reasoning_tokens")
_TOOL_USE = ("tool_use_prompt_token_count",)  # Gemini's, which its prompt doesn't have


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
    """The visible text and the reasoning in the text of a reply. Takes time linear in its length.

        split("<think>It is in France.</think>Answer: Paris")
        # ParsedResponse(text="Answer: Paris", thoughts="It is in France.", …)

    Some servers send the reasoning in a field of its own (`read_thoughts`). Others leave it in the text: between tags,
    before a closing tag alone (if the prompt's template has opened it), after an opening tag that is never closed (the
    reply was cut), or in the channels of the Harmony format (https://cookbook.openai.com/articles/openai-harmony).

    `cut`: the reply was cut for its length. Without it, an opening mark in the middle of a line that is never
    closed is plain text.
    """
    if not _SIGN.search(text):
        return ParsedResponse(text)
    if "<|channel|>" in text or "<|message|>" in text:
        return _split_harmony(text)
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
    """Messages such as `<|channel|>analysis<|message|>…<|end|>`; those of the channel `final` are visible."""
    answer = _joined([match[1] for match in _FINAL.finditer(text)])
    thoughts = _HARMONY.sub("", _FINAL.sub("", text)).strip()
    return ParsedResponse(answer, thoughts, cut_thought=_FINAL.search(text) is None)


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
        parts = split(written, cut=reason == "length")
        thoughts = [thought for thought in (*read_thoughts(fields), aside, parts.thoughts) if thought]
        calls = objects_in(fields.get("tool_calls"))
        tool_calls = [_tool_call(f"call_{i}", call, {} if i else fields) for i, call in enumerate(calls)]
    return replace(
        parts,
        thoughts="\n".join(dict.fromkeys(thoughts)),
        tool_calls=tuple(tool_calls),
        finish_reason=reason,
        repairs=tuple(dict.fromkeys(each["repair"] for each in notes)),
    )


def answered_model(answer: Mapping[str, Any]) -> str:
    """The model that has answered, as an answer or an event of its stream says; empty where it doesn't."""
    for place in (answer, answer.get("response"), answer.get("message")):
        if isinstance(place, Mapping) and isinstance(name := place.get("model"), str):
            return _short(name)
    return ""


def error_in(answer: Mapping[str, Any]) -> str:
    """What failed, in an answer or an event that came with status 200; empty where nothing did.

    A provider's error may stand in place of an answer, beside its text, or in its choice; Mistral and OpenRouter may
    say it with the finish reason `error` alone, which litellm makes a `stop` and keeps aside.
    """
    for place in (answer, answer.get("response"), *objects_in(answer.get("choices"))):
        if not isinstance(place, Mapping):
            continue
        error = place if place.get("type") == "error" and "error" not in place else place.get("error")
        if error:
            return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)
        aside = place.get("provider_specific_fields")
        reasons = [
            place.get("finish_reason"),
            aside.get("native_finish_reason") if isinstance(aside, Mapping) else None,
        ]
        if "error" in reasons or place.get("status") == "failed":
            return "it says that it failed, and not why"
    return ""


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
    return {name: fields[name] for name in names if fields.get(name)}


def _short(name: Any) -> str:
    return str(name)[:_LONGEST_NAME]


def _arguments(given: Any) -> dict[str, Any]:
    """Arguments as an object. Other text, or JSON nested too deeply, stays text under `RAW_ARGUMENTS`."""
    if not isinstance(given, str) or not given:
        return dict(given) if isinstance(given, Mapping) else {RAW_ARGUMENTS: excerpt(given)} if given else {}
    try:
        arguments, end = decode(text := given.strip())  # NaN, which `load_json` reads as null, is no argument
        if end < len(text):
            raise ValueError("it goes on behind its end")
        if isinstance(arguments, dict):
            return arguments
    except ValueError as error:
        note(f"the arguments of a tool call were read as text: {excerpt(str(error))}")
    return {RAW_ARGUMENTS: given}


class CountedUsage(NamedTuple):
    """The tokens of a usage object. `inconsistent`: no convention makes its parts add up to its total."""

    usage: Usage
    source: Literal["provider", "inconsistent"] = "provider"
    is_reasoning_alone: bool = False
    """Whether the output has the reasoning and, as far as it says, no visible reply."""


def read_usage(usage: Any) -> Usage | None:
    """The tokens of a usage object (`count_usage`); None where a count is impossible."""
    counted = count_usage(usage)
    return counted.usage if counted else None


def count_usage(usage: Any) -> CountedUsage | None:
    """The tokens of a usage object, in each form in which providers and traces have it; zeros for missing counts.

        count_usage({"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 62,
                     "completion_tokens_details": {"reasoning_tokens": 20}})
        # Usage(input_tokens=12, output_tokens=50, reasoning_tokens=20): the completion doesn't include it here

    None where a count is impossible (negative, absurdly large, not a number): the caller counts with its own tokenizer.

    Our input has cached and tool-use tokens in it, and our output the reasoning. Whether theirs do depends on who
    counts:

    1. Without a total, names decide. Beside the input stand Anthropic's, Bedrock's and inspect_ai's cached tokens and
       Gemini's tool-use tokens; beside the output stand Gemini's thoughts, and reasoning that is more than the output.
    2. A total that these don't add up to decides, if they do with some of them moved: the fewest.
    3. A chat's total may be more by thoughts that no field lists, as at Gemini's endpoint: at most `_MOST_UNLISTED`.
    4. A total that nothing explains isn't believed. The parts of rule 1 count, and the source is `inconsistent`.

    Where Anthropic compacts a conversation, `iterations` has the tokens of each request, whose sum is billed. An
    attempt that was declined, so that another model took over, isn't.
    """
    if usage is None:
        return CountedUsage(Usage())
    if not isinstance(usage, Mapping):
        return None
    fields = {_snake_case(name): value for name, value in usage.items()}
    if requests := _billed_requests(fields.get("iterations")):
        counted = [count_usage(each) for each in requests]
        whole = [each for each in counted if each]
        if len(whole) < len(counted):
            return None
        is_consistent = all(each.source == "provider" for each in whole)
        total = sum((each.usage for each in whole), Usage())
        return CountedUsage(total, "provider" if is_consistent else "inconsistent")
    try:
        found = _counted(fields)
        is_reasoning_alone = bool(found.usage.reasoning_tokens and not _count(fields, _OUTPUT))
        return found._replace(is_reasoning_alone=is_reasoning_alone)
    except ValueError:
        return None


def _counted(fields: Mapping[str, Any]) -> CountedUsage:
    """The tokens of one request. Raises `ValueError` for an impossible count."""
    given, written, total = (_count(fields, names) for names in (_INPUT, _OUTPUT, _TOTAL))
    hour, minutes = (_kept_for(fields, time) for time in ("1h", "5m"))
    cached = _count(fields, _CACHED, _INPUT_DETAILS)
    stored = _count(fields, _CACHE_WRITE, _INPUT_DETAILS) or hour + minutes
    reasoning, of_tools = _count(fields, _REASONING, _OUTPUT_DETAILS), _count(fields, _TOOL_USE)

    held = cached + stored
    is_named = any(fields.get(name) is not None for name in (*_READ_BESIDE, *_WRITTEN_BESIDE))
    is_held_beside = "prompt_tokens" not in fields and (is_named or held > given)
    by_name = (is_held_beside, True, fields.get(_THOUGHTS) is not None or reasoning > written)
    for moved in sorted(product((False, True), repeat=3), key=sum):
        beside = [name != move for name, move in zip(by_name, moved, strict=True)]
        read, wrote = given + beside[0] * held + beside[1] * of_tools, written + beside[2] * reasoning
        adds_up = total == read + wrote or (not total and not any(moved))
        if adds_up and held <= read and reasoning <= wrote:
            return CountedUsage(Usage(read, cached, wrote, reasoning, stored, min(hour, stored)))
    read, wrote = given + by_name[0] * held + of_tools, written + by_name[2] * reasoning
    unlisted = total - read - wrote
    if "completion_tokens" in fields and given and held <= read and not reasoning and 0 < unlisted <= _MOST_UNLISTED:
        return CountedUsage(Usage(read, cached, wrote + unlisted, unlisted, stored, min(hour, stored)))
    cached = min(cached, read)
    stored = min(stored, read - cached)
    return CountedUsage(Usage(read, cached, wrote, reasoning, stored, min(hour, stored)), "inconsistent")


def _billed_requests(iterations: Any) -> list[Mapping[str, Any]]:
    """The requests inside one answer of Anthropic's that are paid for; empty where the usage has no such list."""
    requests = [each for each in iterations if isinstance(each, Mapping)] if isinstance(iterations, list) else []
    served = next((each.get("model") for each in requests if each.get("type") == "fallback_message"), None)
    return [each for each in requests if served is None or each.get("type") != "message" or each.get("model") == served]


def _kept_for(fields: Mapping[str, Any], time: str) -> int:
    """Tokens written to a cache that keeps them for `5m` or `1h`, as Anthropic splits them."""
    places = (fields, *(fields.get(name) for name in _INPUT_DETAILS))
    splits = (place.get(name) for place in places if isinstance(place, Mapping) for name in _SPLIT)
    split = next((each for each in splits if isinstance(each, Mapping)), {})
    return _count(split, (f"ephemeral_{time}_input_tokens",))


@lru_cache(maxsize=1024)
def _snake_case(name: str) -> str:
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def usages_in(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The usage objects of an answer or of an event of its stream.

    In a stream OpenAI's responses have it in `response`, Anthropic in `message`, Moonshot in the choice, and Groq in
    `x_groq`.
    """
    places = (answer.get(name) for name in ("response", "message", "x_groq"))
    for place in (answer, *places, *objects_in(answer.get("choices"))):
        if isinstance(place, Mapping) and isinstance(usage := place.get("usage"), Mapping):
            yield usage


def later_counts(before: Mapping[str, Any], usage: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a stream so far, with those of another event: they are cumulative.

    Some proxies repeat the input's counts at the end of a stream as zeros.
    """
    new = {name: count for name, count in usage.items() if count or (count is not None and name not in before)}
    return {**before, **new}


def _count(usage: Mapping[str, Any], names: Sequence[str], details: Sequence[str] = ()) -> int:
    """A count in the details or outside them, the first that isn't zero. Raises `ValueError` for an impossible one."""
    for detail in details:
        if isinstance(part := usage.get(detail), Mapping) and (
            count := _count({_snake_case(name): value for name, value in part.items()}, names)
        ):
            return count
    for name in names:
        value: Any = usage.get(name)
        if value is None or (name in _SPLIT and isinstance(value, Mapping)):
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not 0 <= value <= _MOST_TOKENS:
            raise ValueError("no number of tokens")
        if value:
            return value
    return 0
