"""A call as a record of the journal: its key, its stored form, and the completion read back from it.

key = CallKey("E2", "model", request.role, request_hash(request))
prompt = recorded_prompt(request)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quoted
from struct import pack
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from pydantic_core import PydanticSerializationError, to_json

from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.prompts import folded, of_each
from rewoo_bench.types import CallCost, Completion, Message, Request, Tool, ToolCall, Usage, WireResponse, input_schema

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
    """A finished call. `answer` is JSON-ready.

    A record read from the journal has the ids of the prompt's last message and of its form instead of the prompt
    (`text_ids`), for `Journal.texts`.
    """

    task: TaskKey
    key: CallKey
    status: Literal["ok", "error"]
    prompt: RecordedPrompt | None
    answer: Mapping[str, Any]
    billed_tokens: int = 0
    cost_usd: float | None = None
    text_ids: bytes = b""


def packed(last: int, form: int) -> bytes:
    """The ids of a prompt's last message (0 where it has none) and of the text of its form, as they are recorded."""
    return b"".join(each.to_bytes(8, "big", signed=True) for each in (last, form))


def unpacked(ids: bytes) -> tuple[int, int]:
    """The recorded ids of a prompt's last message, and of the text of its form."""
    return _number(ids[:8]), _number(ids[8:])


@lru_cache(maxsize=1024)
def digest_of(text: str) -> bytes:
    """sha256 of a text; prompts repeat their texts in every call."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


class PromptPart:
    """A message as the journal keeps it, after those before it: so a conversation's next prompt is one part more."""

    __slots__ = ("before", "form", "id", "text", "text_id")

    def __init__(self, before: PromptPart | None, text: str, form: str) -> None:
        self.before = before
        self.text = text
        self.form = form
        """Its role, or as JSON its role and its calls (`form_of`); empty where it isn't known."""
        self.text_id = text_id(text)
        known = pack("qq", before.id if before else 0, self.text_id) + form.encode("utf-8", "surrogatepass")
        self.id: int = _number(sha256(known).digest())


def text_id(text: str) -> int:
    """64 bits of a text's hash: of a million texts, two share them with a chance of 3 in 100 million."""
    return _number(digest_of(text))


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big", signed=True)


class RecordedPrompt:
    """The texts of a request as the journal keeps them: its messages, the last one first, and what goes with all.

    `form` has the tools and the constraints on the answer, as JSON; of a tool's call it is the whole request.
    """

    def __init__(self, last: PromptPart | None, form: str) -> None:
        self.last = last
        self.form = form

    @cached_property
    def parts(self) -> Sequence[PromptPart]:
        found, part = list[PromptPart](), self.last
        while part is not None:
            found.append(part)
            part = part.before
        return found[::-1]

    @property
    def texts(self) -> list[str]:
        """The contents of the messages, and the form of the whole request."""
        return [*(part.text for part in self.parts), whole_form([part.form for part in self.parts], self.form)]

    def __reduce__(self) -> tuple[Any, ...]:  # part by part: pickle would go as deep as the conversation is long
        return prompt_with, ([(part.text, part.form) for part in self.parts], self.form)


def prompt_with(messages: Iterable[tuple[str, str]], form: str) -> RecordedPrompt:
    """The prompt with messages of these texts and forms."""
    last: PromptPart | None = None
    for message in messages:
        last = PromptPart(last, *message)
    return RecordedPrompt(last, form)


def recorded_prompt(request: Request) -> RecordedPrompt:
    """The request as the journal keeps it."""

    def with_message(before: PromptPart | None, message: Message) -> PromptPart:
        form, calls = str(message.role), _fields_of_calls(message)
        if calls != _NO_CALLS:
            form = _as_json({"role": form, "calls": calls})
        return PromptPart(before, message.content, form)

    last = folded(request.messages, "recorded", with_message, cast("PromptPart | None", None))
    facts = {"grammar": request.grammar, "schema": request.schema}
    form = json.dumps({name: value for name, value in facts.items() if value}, default=str)
    if request.tools:
        form += f'{{"tools": {_offered(request.tools)}}}'
    return RecordedPrompt(last, form + _ONE_CALL * (not request.parallel))


_NO_CALLS: list[Any] = [[], None]
_ONE_CALL = '{"parallel": false}'


def _fields_of_calls(message: Message) -> list[Any]:
    return [[call_fields(call) for call in message.tool_calls], message.tool_call_id]


def _offered(tools: Sequence[Tool]) -> str:
    return _tools_form(tuple([(tool.name, tool.description, tool.arguments) for tool in tools]))


def whole_form(forms: Sequence[str], form: str) -> str:
    """The form of a whole request: that of each message, and what goes with all of them."""
    if not all(forms) or not forms:
        return form
    read = [*map(form_of, forms)]
    facts: dict[str, Any] = {"roles": " ".join(role for role, _ in read)}
    calls = [of_message for _, of_message in read]
    return json.dumps(facts | ({"calls": calls} if any(each != _NO_CALLS for each in calls) else {})) + form


def form_of(form: str) -> tuple[str, list[Any]]:
    """The role of a recorded message, and a list of its tool calls and the id of the call that it answers."""
    if not form.startswith("{"):
        return form, _NO_CALLS
    facts = json.loads(form)
    return facts["role"], facts["calls"]


def _whole_form(request: Request) -> str:
    """The form of a request, as it is hashed."""
    messages, tools, schema = request.messages, request.tools, request.schema
    form = _form(tuple([message.role for message in messages]), request.grammar)
    if tools or schema or any(message.tool_calls or message.tool_call_id for message in messages):
        calls = ", ".join(of_each(messages, "calls", lambda message: _as_json(_fields_of_calls(message))))
        form += f'{{"calls": [{calls}], "tools": {_offered(tools)}, "schema": {_as_json(schema)}}}'
    if request.wire is not None:
        form += json.dumps(request.wire.identity)
    return form + _ONE_CALL * (not request.parallel)


def _as_json(value: Any) -> str:
    return json.dumps(value, default=str)


def call_fields(call: ToolCall) -> dict[str, Any]:
    """A tool call as JSON; `echo` only where there is one, so that requests without it hash as they always did."""
    fields = {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}
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
    TypeError or ValueError for a value that JSON can't hold, such as one that contains itself.
    """
    try:
        return to_json(value, fallback=_plain)
    except PydanticSerializationError:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, default=_plain)).encode()


def _plain(value: Any) -> Any:
    """A number of numpy or torch as one of Python, and anything else as text."""
    return value.item() if getattr(value, "ndim", None) == 0 else str(value)


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


def request_hash(request: Request) -> bytes:
    """The hash of a request: its texts, role, stop strings and output limit."""
    limits = _limits(request.role, tuple(request.stop), request.max_tokens)

    def with_text(before: Any, message: Message) -> Any:
        after = before.copy()
        after.update(digest_of(message.content))
        return after

    whole = folded(request.messages, ("hash", limits), with_text, sha256(limits)).copy()
    whole.update(digest_of(_whole_form(request)))
    return bytes(whole.digest())


@lru_cache(maxsize=1024)
def _limits(role: str, stop: tuple[str, ...], max_tokens: int | None) -> bytes:
    return json.dumps([role, stop, max_tokens]).encode()


def as_completion(answer: Mapping[str, Any], replayed: bool) -> Completion:
    """The recorded completion. One that is `replayed` costs what its reply did, without the attempts before it."""
    recorded = answer["receipt"]
    call_cost = CallCost(
        attempts=1 if replayed else recorded["attempts"],
        billed=Usage() if replayed else Usage(**recorded["billed"]),
        cost_usd=answer.get("cost_usd", recorded["cost_usd"]) if replayed else recorded["cost_usd"],
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
