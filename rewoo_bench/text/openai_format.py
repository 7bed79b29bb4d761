"""The parts of a request in the OpenAI form, which litellm accepts for every provider: messages, tools, schemas.

    to_chat([Message("user", "2 + 2?")])    # [{"role": "user", "content": "2 + 2?"}]

Responses are read in models/hosted/responses.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewoo_bench.text.model_output import RAW_ARGUMENTS
from rewoo_bench.text.tokens import count_call, count_messages, count_tokens
from rewoo_bench.types import Message, Tool, ToolCall, Usage, input_schema

_EPHEMERAL = {"type": "ephemeral"}  # Anthropic's mark at the end of a prefix that should be cached


def to_chat(messages: Sequence[Message], *, prompt_cache: bool = False, thoughts: bool = False) -> list[dict[str, Any]]:
    """Messages in the OpenAI chat form, tool calls and their results included.

    With `prompt_cache`, `cache_control` marks the ends of prefixes that a later request repeats: the part that is
    the same for every question, and a trace that has begun to grow. With `thoughts`, plain reasoning is sent back
    with its tool calls; signed reasoning always is.
    """
    sent: list[dict[str, Any]] = []
    for message in messages:
        turn: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.tool_calls:
            turn |= message.tool_calls[0].echo.get("message", {})
            if not thoughts:
                turn.pop("reasoning_content", None)
            turn["tool_calls"] = []
            for call in message.tool_calls:
                raw = call.arguments.get(RAW_ARGUMENTS)
                arguments = raw if isinstance(raw, str) else json.dumps(dict(call.arguments), ensure_ascii=False)
                function = {"name": call.name, "arguments": arguments}
                turn["tool_calls"].append(
                    {"id": call.id, "type": "function", "function": function, **call.echo.get("call", {})}
                )
        if message.tool_call_id is not None:
            turn["tool_call_id"] = message.tool_call_id
        sent.append(turn)
    for index in prefix_ends(messages) if prompt_cache else ():
        sent[index]["content"] = [{"type": "text", "text": sent[index]["content"], "cache_control": _EPHEMERAL}]
    return sent


def prefix_ends(messages: Sequence[Message]) -> Iterator[int]:
    """Positions of the messages that get the mark `cache_control`."""
    ends = [index for index, message in enumerate(messages) if message.ends_prefix and message.content]
    yield from ends[-1:]
    trace = messages[ends[-1] + 1 :] if ends else messages
    if any(message.role == "assistant" for message in trace) and messages[-1].content:
        yield len(messages) - 1


def to_transcript(messages: Sequence[Message]) -> str:
    """Messages as one text that a model continues: contents with a blank line between them."""
    text = "\n\n".join(message.content for message in messages)
    return text if text.endswith("\n") else text + "\n"


def to_functions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Tools in the OpenAI function form, with the JSON Schema of their arguments."""
    functions = (
        {"name": tool.name, "description": tool.description, "parameters": input_schema(tool.arguments)}
        for tool in tools
    )
    return [{"type": "function", "function": function} for function in functions]


def to_response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema in the OpenAI form. Its `title`, if any, is the name that providers require."""
    name = "".join(c for c in str(schema.get("title", "")) if c.isascii() and c.isalnum()) or "answer"
    return {"type": "json_schema", "json_schema": {"name": name, "schema": dict(schema)}}


def estimate_chat(messages: Sequence[Message], tools: Sequence[Tool], text: str, calls: Sequence[ToolCall]) -> Usage:
    """The usage of a chat call, counted with our own tokenizer."""
    prompt = count_messages(messages) + sum(count_tokens(json.dumps(tool)) for tool in to_functions(tools))
    answer = count_tokens(text) + sum(count_call(call.name, call.arguments) for call in calls)
    return Usage(input_tokens=prompt, output_tokens=answer)


def estimate_transcript(messages: Sequence[Message], text: str) -> Usage:
    """The usage of a completion call, counted with our own tokenizer."""
    return Usage(input_tokens=count_tokens(to_transcript(messages)), output_tokens=count_tokens(text))
