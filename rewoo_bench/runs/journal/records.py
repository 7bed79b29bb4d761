"""A call as a record of the journal: its key, its stored form, and the completion read back from it.

texts = texts_of(request)
key = CallKey("E2", "model", request.role, request_hash(texts, request))
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quoted
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic_core import PydanticSerializationError, from_json, to_json

from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.model_output import check_call
from rewoo_bench.types import CallCost, Completion, Request, ToolCall, Usage, WireResponse, input_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

SECOND_ATTEMPT = "second_attempt"
"""In a record that is no call: an agent's client asked once more, and got the answer of its first attempt."""


class TaskKey(NamedTuple):
    """A question for an architecture, by names that are the same in every session of a run."""

    architecture: str
    example_id: str
    trial: int

    def __str__(self) -> str:
        return f"[{quoted(self.architecture)}, {quoted(self.example_id)}, {self.trial}]"


class CallKey(NamedTuple):
    """The place of a call in its question, and the hash of its request."""

    place: str
    kind: Literal["model", "tool"]
    name: str
    request: bytes
    nth: int = 0


class CallRecord(NamedTuple):
    """A finished call. `prompt` holds the texts of its request, `answer` is JSON-ready.

    A record read from the journal has the ids of the texts instead (`text_ids`), for `Journal.texts`.
    """

    task: TaskKey
    key: CallKey
    status: Literal["ok", "error"]
    prompt: tuple[str, ...]
    answer: Mapping[str, Any]
    billed_tokens: int = 0
    cost_usd: float | None = None
    text_ids: bytes = b""


def packed(ids: Sequence[int]) -> bytes:
    """The ids of a prompt's texts, as they are recorded."""
    return pack(f"{len(ids)}q", *ids)


def unpacked(ids: bytes) -> list[int]:
    """The recorded ids of a prompt's texts, the last one that of its form."""
    return list(unpack(f"{len(ids) // 8}q", ids))


@lru_cache(maxsize=1024)
def digest_of(text: str) -> bytes:
    """sha256 of a text; prompts repeat their texts in every call."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def texts_of(request: Request) -> tuple[str, ...]:
    """The whole request as texts: contents first, then roles, tools, and constraints on the answer."""
    messages, tools, schema = request.messages, request.tools, request.schema
    form = _form(tuple([message.role for message in messages]), request.grammar)
    if tools or schema or any(message.tool_calls or message.tool_call_id for message in messages):
        calls = [[[call_fields(call) for call in message.tool_calls], message.tool_call_id] for message in messages]
        offered = _tools_form(tuple([(tool.name, tool.description, tool.arguments) for tool in tools]))
        more = f'"tools": {offered}, "schema": {json.dumps(schema, default=str)}'
        form += f'{{"calls": {json.dumps(calls, default=str)}, {more}}}'
    if request.wire is not None:
        form += json.dumps(request.wire.identity)
    return (*[message.content for message in messages], form)


def call_fields(call: ToolCall) -> dict[str, Any]:
    """A tool call as JSON; `echo` only where there is one, so that requests without it hash as they always did.

    Checked, so that it can be read back: arguments nested 200 deep couldn't.
    """
    checked = check_call(call)
    fields = {"id": checked.id, "name": checked.name, "arguments": dict(checked.arguments)}
    return {**fields, "echo": dict(call.echo)} if call.echo else fields


@lru_cache(maxsize=1024)
def _form(roles: tuple[str, ...], grammar: str | None) -> str:
    return json.dumps({"roles": " ".join(roles), "grammar": grammar})


@lru_cache(maxsize=64)
def _tools_form(tools: tuple[tuple[str, str, type[BaseModel]], ...]) -> str:
    """Names, descriptions and arguments of tools as JSON; every call of an architecture offers the same ones."""
    shown = [{"name": name, "about": about, "args": input_schema(arguments)} for name, about, arguments in tools]
    return json.dumps(shown, default=str)


def as_bytes(value: Any) -> bytes:
    """A value as JSON in one line of UTF-8, some five times as fast as `json.dumps`.

    Half of a surrogate pair, which a cut-off reply may have and no file can hold, becomes U+FFFD. Raises
    TypeError, ValueError or RecursionError for a value that JSON can't hold, such as one that contains itself.
    """
    try:
        return to_json(value, fallback=_plain)
    except PydanticSerializationError:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, default=_plain)).encode()


def _plain(value: Any) -> Any:
    """A number of numpy or torch as one of Python, and anything else as text."""
    return value.item() if getattr(value, "ndim", None) == 0 else str(value)


def recorded_answer(text: str) -> dict[str, Any]:
    """A recorded answer; empty where it can't be read. pydantic's reader has a lower limit of nesting."""
    with suppress(ValueError, RecursionError):
        try:
            answer = from_json(text)
        except ValueError:
            answer = json.loads(text)
        if isinstance(answer, dict):
            return answer
    return {}


def numbers(usage: Usage) -> dict[str, int]:
    """Like `dataclasses.asdict`, which takes twenty times as long; what is rare is there where it isn't zero."""
    counts = {
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    if usage.cache_write_1h_tokens:
        counts["cache_write_1h_tokens"] = usage.cache_write_1h_tokens
    return counts


def request_hash(prompt: Sequence[str], request: Request) -> bytes:
    """The hash of a request: its texts, role, stop strings and output limit."""
    limits = _limits(request.role, tuple(request.stop), request.max_tokens)
    return sha256(limits + b"".join(map(digest_of, prompt))).digest()


@lru_cache(maxsize=1024)
def _limits(role: str, stop: tuple[str, ...], max_tokens: int | None) -> bytes:
    return json.dumps([role, stop, max_tokens]).encode()


def as_completion(answer: Mapping[str, Any], replayed: bool) -> Completion:
    recorded = answer["receipt"]
    call_cost = CallCost(
        attempts=1 if replayed else recorded["attempts"],
        billed=Usage() if replayed else Usage(**recorded["billed"]),
        cost_usd=recorded["cost_usd"],
        usage_source=recorded["usage_source"],
        replayed=replayed,
        measured_s=None if replayed else recorded["latency_s"],
    )
    calls = tuple(ToolCall(**call) for call in answer["tool_calls"])
    return Completion(
        answer["text"],
        Usage(**answer["usage"]),
        answer["finish_reason"],
        calls,
        call_cost,
        answer.get("thoughts", ""),
        answer.get("discarded_tokens", 0),
        tuple(answer.get("repairs", ())),
        WireResponse(**answer["wire"]) if "wire" in answer else None,
        answer.get("answered_model", ""),
    )
