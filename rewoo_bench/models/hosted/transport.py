"""Send a request: directly to an OpenAI-compatible endpoint, else through litellm.

transport = Transport(timeout=120, connect_timeout=10)
answer = await transport.send(route, {"model": "tiny", "messages": […]})
answer.document["choices"][0]["message"]["content"]
await transport.aclose()
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewoo_bench.models.hosted import providers
from rewoo_bench.models.hosted.http_endpoint import Endpoint
from rewoo_bench.models.hosted.reply_stream import ReplyStream

# Arguments of litellm; everything else is passed on to the provider unchanged.
_ARGUMENTS = frozenset(
    {"messages", "temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "stop"}
    | {"reasoning_effort", "tools", "response_format", "stream", "stream_options"}
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response in the OpenAI form. `details` is litellm's usage object, if the call went through litellm."""

    document: Mapping[str, Any]
    details: Any = None


class Transport:
    """The connections of one model, which belong to one event loop; `aclose` closes them.

    `timeout` (seconds) is for a whole call, `connect_timeout` for reaching the server.
    """

    def __init__(self, *, timeout: float, connect_timeout: float) -> None:
        self.timeout = timeout
        self.connect_timeout = connect_timeout
        self._endpoint: Endpoint | None = None

    async def send(self, route: providers.Route, body: Mapping[str, Any], stream: ReplyStream | None = None) -> Answer:
        """The response. Raises `TimeoutError`, or one of `provider_errors.expected()`.

        `stream` gets the answer as it arrives, where `body` asks for a stream and the server sends one.
        """
        async with asyncio.timeout(self.timeout):  # anyio's takes nearly three times as long
            if route.provider not in providers.OPENAI_FORM:
                return await self._send_through_litellm(route, body, stream)
            path = "/completions" if "prompt" in body else "/chat/completions"
            endpoint = self._endpoint_of(route)
            if stream is None:
                return Answer(await endpoint.post(path, body))
            whole = await endpoint.stream(path, body, stream.add)
            return Answer(stream.document() if whole is None else whole)

    async def aclose(self) -> None:
        """Closes the connections. The next call opens new ones."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.aclose()
        await providers.release_shared_pool(self)

    def _endpoint_of(self, route: providers.Route) -> Endpoint:
        if self._endpoint is None:
            connect_timeout = min(self.timeout, self.connect_timeout)
            self._endpoint = Endpoint(route.api_base, key=route.api_key or "none", connect_timeout=connect_timeout)
        return self._endpoint

    async def _send_through_litellm(
        self, route: providers.Route, body: Mapping[str, Any], stream: ReplyStream | None
    ) -> Answer:
        providers.use_shared_pool(self)
        arguments = {name: value for name, value in body.items() if name in _ARGUMENTS}
        turns = body.get("messages") or [{"role": "user", "content": body["prompt"]}]
        # litellm would replace an empty text next to tool calls by words of its own.
        arguments["messages"] = [{**turn, "content": turn["content"] or None} for turn in turns]
        others = {name: body[name] for name in body if name not in _ARGUMENTS and name not in ("model", "prompt")}
        with providers.exchange():
            response = await providers.load_litellm().acompletion(
                model=route.model,
                api_base=route.api_base,
                api_key=route.api_key,
                timeout=self.timeout,
                drop_params=True,
                num_retries=0,
                max_retries=0,
                extra_body=others or None,
                **arguments,
                **(providers.plain_tools() if "tools" in arguments else {}),
            )
            if stream is None:
                return Answer(response.model_dump(), getattr(response, "usage", None))
            details = None
            async for chunk in response:
                details = getattr(chunk, "usage", None) or details
                stream.add_document(chunk.model_dump())
        return Answer(stream.document(), details)
