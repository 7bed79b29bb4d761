"""Answer a request in a dialect that the provider doesn't speak: litellm translates both ways.

document = await translation.send(route, "/messages", {"model": …, "messages": […], "max_tokens": 64}, timeout=60)
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from rewoo_bench.escaping import replace_surrogates
from rewoo_bench.models.hosted import providers
from rewoo_bench.models.hosted.dialects import CHAT, COMPLETIONS, COUNT_TOKENS, EMBEDDINGS, MESSAGES, RESPONSES
from rewoo_bench.models.hosted.http_endpoint import HTTPFailure

_FUNCTIONS = {
    CHAT: "acompletion",
    COMPLETIONS: "atext_completion",
    RESPONSES: "aresponses",
    MESSAGES: "anthropic_messages",
    EMBEDDINGS: "aembedding",
}


async def send(route: providers.Route, path: str, body: Mapping[str, Any], *, timeout: float) -> Mapping[str, Any]:
    """The answer as JSON. Raises an error of litellm, or `HTTPFailure` for a dialect that it doesn't have."""
    return _as_json(await _call(route, path, body, timeout))


async def stream(
    route: providers.Route, path: str, body: Mapping[str, Any], *, timeout: float
) -> AsyncGenerator[bytes, None]:
    """The answer as server-sent events, each whole."""
    options = {"stream_options": {"include_usage": True}} if path in (CHAT, COMPLETIONS) else {}
    events = await _call(route, path, {**body, **options}, timeout)
    async for event in events:
        if isinstance(event, bytes):  # Anthropic's events come as they are sent
            yield event
        else:
            document = _as_json(event)
            name = f"event: {document['type']}\n" if path in (RESPONSES, MESSAGES) and "type" in document else ""
            yield f"{name}data: {json.dumps(document)}\n\n".encode()
    if path in (CHAT, COMPLETIONS):
        yield b"data: [DONE]\n\n"


def _placeholder(route: providers.Route) -> str | None:
    """A key for servers in the OpenAI form, which may want none; every other provider's key is litellm's to find."""
    return "none" if route.provider in ("openai", "text-completion-openai") else None


async def _call(route: providers.Route, path: str, body: Mapping[str, Any], timeout: float) -> Any:
    if path == COUNT_TOKENS or path not in _FUNCTIONS:
        raise HTTPFailure(404, f"{route.provider} has no {path}", {})
    litellm = await providers.litellm_loaded()
    litellm.use_chat_completions_url_for_anthropic_messages = True  # else it asks for /responses, which is rarer
    function = getattr(litellm, _FUNCTIONS[path])
    body = json.loads(replace_surrogates(json.dumps(body, ensure_ascii=False)))  # litellm can't send half of a pair
    with providers.without_callbacks():
        return await function(
            **{name: value for name, value in body.items() if name != "model"},
            model=route.model,
            api_base=route.api_base,
            api_key=route.api_key or _placeholder(route),
            timeout=timeout,
            num_retries=0,
            max_retries=0,
            **({"use_chat_completions_api": True} if path == RESPONSES else {}),
            **(providers.plain_tools() if path == CHAT and "tools" in body else {}),
        )


def _as_json(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Mapping):
        return dict(answer)
    document: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True)
    return document
