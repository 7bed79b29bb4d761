"""Between our data and the OpenAI form that litellm speaks: messages, tools, usage, connections.

Message("user", "2 + 2?")   ->  {"role": "user", "content": "2 + 2?"}
response.usage              ->  Usage(input_tokens=12, cached_input_tokens=0, output_tokens=1, …)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewoo_bench.tokens import count_call, count_messages, count_tokens
from rewoo_bench.types import Message, Tool, ToolCall, Usage

if TYPE_CHECKING:
    import httpx
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

# The one argument of a tool call whose arguments aren't a JSON object: their text as it came. No tool
# has an argument of that name, so its schema refuses the call and the model is shown what it wrote.
RAW_ARGUMENTS = "__raw__"


class BadAnswer(Exception):
    """A provider said 200 and sent something that is no answer."""


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


def read_text(message: Any) -> str:
    """The text of litellm's message; half of a surrogate pair, which no file can hold, becomes `?`."""
    return (message.content or "").encode("utf-8", "replace").decode("utf-8")


def read_tool_calls(message: Any) -> tuple[ToolCall, ...]:
    """The tool calls of litellm's message; arguments that are no JSON object stay text (`RAW_ARGUMENTS`)."""
    return tuple(
        ToolCall(call.id or f"call_{i}", call.function.name or "", _arguments(call.function.arguments or ""))
        for i, call in enumerate(message.tool_calls or ())
    )


def read_usage(usage: Any) -> Usage:
    """litellm's usage object, which has every provider's counts in the OpenAI form; zeros where it has none."""
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    reasoning = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    return Usage(
        getattr(usage, "prompt_tokens", None) or 0,
        cached or 0,
        getattr(usage, "completion_tokens", None) or 0,
        reasoning or 0,
    )


def estimate_chat(messages: Sequence[Message], tools: Sequence[Tool], text: str, calls: Sequence[ToolCall]) -> Usage:
    """What a chat call took, counted with our own tokenizer."""
    prompt = count_messages(messages) + sum(count_tokens(json.dumps(tool)) for tool in to_functions(tools))
    answer = count_tokens(text) + sum(count_call(call.name, call.arguments) for call in calls)
    return Usage(input_tokens=prompt, output_tokens=answer)


def estimate_transcript(messages: Sequence[Message], text: str) -> Usage:
    """What a completion call took, counted with our own tokenizer."""
    return Usage(input_tokens=count_tokens(to_transcript(messages)), output_tokens=count_tokens(text))


def connect(api_key: str, api_base: str | None, timeout: float, connect_timeout: float) -> AsyncOpenAI:
    """A client for an endpoint in the OpenAI form, with one pool of connections, to be closed by the caller.

    The pool is litellm's (over aiohttp): httpx's own looks at every idle connection for every
    request. Bodies go out as litellm made them: the SDK would walk through each message to put
    aside what it doesn't know and build typed objects from each answer, of which litellm makes
    dicts again. Together that is more than a third of a call's CPU time.
    """
    import httpx
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
    from openai import AsyncOpenAI

    patience = httpx.Timeout(timeout, connect=min(timeout, connect_timeout))
    handler = AsyncHTTPHandler(timeout=patience)
    sdk = AsyncOpenAI(api_key=api_key, base_url=api_base, http_client=handler.client, timeout=patience, max_retries=0)
    chat = _Endpoint(sdk, "/chat/completions")
    # Instance attributes, over the properties of the same name that litellm calls.
    # The handler, too: it would close its client when it is collected.
    sdk.__dict__.update(chat=_Completions(chat), completions=_Endpoint(sdk, "/completions"), _handler=handler)
    return sdk


class _Completions:
    """`client.chat`, of which litellm uses `client.chat.completions`."""

    def __init__(self, completions: _Endpoint) -> None:
        self.completions = completions


class _Endpoint:
    """One path of an API: the part of the SDK's resource that litellm uses."""

    def __init__(self, sdk: AsyncOpenAI, path: str) -> None:
        self._sdk = sdk
        self._path = path

    @property
    def with_raw_response(self) -> _Endpoint:
        return self

    async def create(
        self,
        *,
        timeout: float | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        **body: Any,
    ) -> _Answer:
        import httpx

        sent = {**body, **(extra_body or {})}
        options: RequestOptions = {"headers": extra_headers} if extra_headers else {}
        return _Answer(await self._sdk.post(self._path, cast_to=httpx.Response, body=sent, options=options))


class _Answer:
    """A response of the SDK in its raw form: headers, and a document on demand."""

    def __init__(self, response: httpx.Response) -> None:
        self.headers = response.headers
        self._response = response

    def parse(self) -> _Document:
        document = self._response.json()
        if not isinstance(document, dict) or not document.get("choices"):
            error = document.get("error") if isinstance(document, dict) else None
            said = error.get("message") if isinstance(error, dict) else error
            raise BadAnswer(f"an error in place of an answer: {said}" if said else "an answer without choices")
        return _Document(document)


class _Document(dict[str, Any]):
    """A JSON object that can be asked for as the SDK's typed objects are."""

    def model_dump(self) -> dict[str, Any]:
        return dict(self)


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


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {RAW_ARGUMENTS: text}
    return arguments if isinstance(arguments, dict) else {RAW_ARGUMENTS: text}
