"""Between our data and the OpenAI form, which litellm gives every provider's answers: messages, tools, usage.

Message("user", "2 + 2?")   ->  {"role": "user", "content": "2 + 2?"}
answer["usage"]             ->  Usage(input_tokens=12, cached_input_tokens=0, output_tokens=1, …)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rewoo_bench.tokens import count_call, count_messages, count_tokens
from rewoo_bench.types import Message, Tool, ToolCall, Usage

# The one argument of a tool call whose arguments aren't a JSON object: their text as it came. No tool
# has an argument of that name, so its schema refuses the call and the model is shown what it wrote.
RAW_ARGUMENTS = "__raw__"


# A model that thinks aloud before its answer, behind a server that doesn't put that aside.
_THOUGHTS = re.compile(r"\A\s*<(think|thinking)>.*?</\1>\s*", re.DOTALL)


def to_chat(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in the OpenAI chat form, tool calls and their results included."""
    return [_to_chat(message) for message in messages]


def to_transcript(messages: Sequence[Message]) -> str:
    """Messages as one text for a model that goes on with it: contents with a blank line between them."""
    text = "\n\n".join(message.content for message in messages)
    return text if text.endswith("\n") else text + "\n"


def to_functions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Tools in the OpenAI function form, with the JSON Schema of their arguments."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.arguments.model_json_schema(),
            },
        }
        for tool in tools
    ]


def to_response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema in the OpenAI form. Its `title`, where it has one, is the name that providers want."""
    name = "".join(c for c in str(schema.get("title", "")) if c.isascii() and c.isalnum()) or "answer"
    return {"type": "json_schema", "json_schema": {"name": name, "schema": dict(schema)}}


def read_text(choice: Mapping[str, Any]) -> str:
    """The text of a choice, without what it thought aloud; half of a surrogate pair, which no file can hold, is `?`."""
    message = choice.get("message")
    content = choice.get("text") if message is None else message.get("content")
    if isinstance(content, list):  # of parts
        content = "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return _THOUGHTS.sub("", content or "").encode("utf-8", "replace").decode("utf-8")


def read_tool_calls(choice: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """The tool calls of a choice; arguments that are no JSON object stay text (`RAW_ARGUMENTS`)."""
    calls = (choice.get("message") or {}).get("tool_calls") or ()
    return tuple(
        ToolCall(call.get("id") or f"call_{i}", function.get("name") or "", _arguments(function.get("arguments")))
        for i, call in enumerate(calls)
        for function in [call["function"]]
    )


def read_usage(usage: Mapping[str, Any] | None) -> Usage:
    """A usage object of the OpenAI form; zeros where it says nothing."""
    usage = usage or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    counts = (usage.get("prompt_tokens"), cached, usage.get("completion_tokens"), reasoning)
    return Usage(*(int(count or 0) for count in counts))


def estimate_chat(messages: Sequence[Message], tools: Sequence[Tool], text: str, calls: Sequence[ToolCall]) -> Usage:
    """What a chat call took, counted with our own tokenizer."""
    prompt = count_messages(messages) + sum(count_tokens(json.dumps(tool)) for tool in to_functions(tools))
    answer = count_tokens(text) + sum(count_call(call.name, call.arguments) for call in calls)
    return Usage(input_tokens=prompt, output_tokens=answer)


def estimate_transcript(messages: Sequence[Message], text: str) -> Usage:
    """What a completion call took, counted with our own tokenizer."""
    return Usage(input_tokens=count_tokens(to_transcript(messages)), output_tokens=count_tokens(text))


def _to_chat(message: Message) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        sent["tool_calls"] = [_to_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _to_call(call: ToolCall) -> dict[str, Any]:
    raw = call.arguments.get(RAW_ARGUMENTS)
    arguments = raw if isinstance(raw, str) else json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _arguments(text: str | Mapping[str, Any] | None) -> dict[str, Any]:
    if isinstance(text, Mapping):  # as some servers have it
        return dict(text)
    try:
        arguments = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {RAW_ARGUMENTS: text or ""}
    return arguments if isinstance(arguments, dict) else {RAW_ARGUMENTS: text or ""}
