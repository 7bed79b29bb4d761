"""One attempt at a hosted or local model, through litellm.

    model = LiteLLMModel("openai/gpt-4o-mini")
    completion = await model.complete([Message("user", "2 + 2?")], role="solver")
    completion.text     # "4"
    completion.usage    # Usage(input_tokens=12, cached_input_tokens=0, output_tokens=1, …)
    await model.aclose()

litellm knows the providers. This module decides what is sent, reads what was counted, and turns
whatever goes wrong into a `ModelError` that says whether trying again makes sense. It never tries
again itself, and neither do litellm and the SDK below it: `RetryingModel` does, and records it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import anyio

from rewoo_bench.errors import ModelError
from rewoo_bench.models import failures, providers, wire
from rewoo_bench.types import Completion, Message, Receipt, Tool, ToolCall, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Style = Literal["chat", "completion"]


class LiteLLMModel:
    """A model by its litellm name, as a `rewoo_bench.types.Model`.

    `style` "completion" sends the messages' contents, without roles, as one transcript that the
    model goes on with; a call with tools is sent as a chat even so, since only chats have them.
    `constrain` says what decoding may be held to: a "grammar" (and a schema),
    a "schema" where the provider has that, or "none". `timeout` (seconds) is for the whole call,
    `connect_timeout` for reaching the server.

    A key that isn't given comes from the provider's own environment variable, also with a custom
    `api_base`. What a model doesn't take (a seed, a temperature) is left out. litellm's callbacks
    are not called: the journal has every call.

    Connections belong to this object and to one event loop; `aclose` closes them.
    """

    _sharing: ClassVar[set[int]] = set()  # the open models that use litellm's own pool of connections

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        style: Style = "chat",
        constrain: Literal["grammar", "schema", "none"] = "schema",
        temperature: float | None = 0.0,
        max_output_tokens: int = 512,
        timeout: float = 120.0,
        connect_timeout: float = 10.0,
        seed: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.api_base = api_base
        self.style = style
        self.constrain = constrain
        self.temperature = temperature
        self.max_output_tokens = max_output_tokens
        self.timeout = timeout
        self.connect_timeout = connect_timeout
        self.seed = seed
        self.extra_body = dict(extra_body or {})
        self._api_key = api_key
        self._routes: dict[Style, providers.Route] = {}
        self._client: AsyncOpenAI | None = None

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        role: str,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        tools: Sequence[Tool] | None = None,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
    ) -> Completion:
        """One call, one attempt. Raises `ModelError`, with `retry_after` where the provider gave it."""
        style: Style = "chat" if tools else self.style
        litellm, route = providers.load_litellm(), self._route(style)
        from openai import OpenAIError  # the root of whatever litellm raises

        sent = messages if style == "chat" else [Message("user", wire.to_transcript(messages))]
        request = {
            **self._constraint(route, style, schema, grammar),
            "messages": wire.to_chat(sent),
            "stop": list(stop) or None,
            "max_tokens": self.max_output_tokens if max_tokens is None else max_tokens,
            **({"tools": wire.to_functions(tools), **providers.plain_tools()} if tools else {}),
        }
        try:
            with anyio.fail_after(self.timeout), providers.without_callbacks():
                response = await litellm.acompletion(**self._settings(route), **request)
        except TimeoutError:
            raise failures.no_answer(self.name, self.timeout) from None
        except OpenAIError as error:
            # Not chained: what a provider says may repeat the key.
            raise failures.to_model_error(error, self.name, timeout=self.timeout, secrets=self._secrets()) from None
        return self._read(response, style, messages, tools or ())

    def check(self) -> None:
        """Whether a run can start, without the network. Raises `ModelNotFound` or `MissingKey`."""
        self._route(self.style)
        if self._api_key is None and self.api_base is None:
            providers.check_key(self.name)

    async def aclose(self) -> None:
        """Close the connections. The model can be used again, with new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        if id(self) in self._sharing:
            self._sharing.discard(id(self))
            if not self._sharing:
                await providers.close_shared_pool()

    def _route(self, style: Style) -> providers.Route:
        if style not in self._routes:
            self._routes[style] = providers.find_route(self.name, self.api_base, self._api_key, style)
        return self._routes[style]

    def _settings(self, route: providers.Route) -> dict[str, Any]:
        """The arguments of litellm that are the same for every call."""
        settings = {
            "model": route.model,
            "api_base": route.api_base,
            "api_key": route.api_key,
            "temperature": self.temperature,
            "seed": self.seed,
            "timeout": self.timeout,
            "drop_params": True,
            "num_retries": 0,
            "max_retries": 0,
        }
        if route.provider not in providers.OPENAI_FORM:
            self._sharing.add(id(self))
            return settings
        if self._client is None:
            self._client = wire.connect(route.api_key or "none", route.api_base, self.timeout, self.connect_timeout)
        return {**settings, "api_key": route.api_key or "none", "client": self._client}

    def _constraint(
        self, route: providers.Route, style: Style, schema: Mapping[str, Any] | None, grammar: str | None
    ) -> dict[str, Any]:
        """What holds the decoding to a form; a grammar before a schema, since servers take only one."""
        body, by_grammar = dict(self.extra_body), self.constrain == "grammar"
        if grammar is not None and by_grammar:
            body["grammar"] = grammar
        elif schema is not None and by_grammar and style == "completion":
            body["json_schema"] = dict(schema)  # llama.cpp's own field: this endpoint has no response_format
        elif schema is not None and self.constrain != "none" and (route.takes_schema or by_grammar):
            return {"response_format": wire.to_response_format(schema), "extra_body": body or None}
        return {"extra_body": body or None}

    def _read(self, response: Any, style: Style, messages: Sequence[Message], tools: Sequence[Tool]) -> Completion:
        if not response.choices:
            raise ModelError(f"{self.name!r} sent an answer without choices", retryable=True)
        choice, counted = response.choices[0], getattr(response, "usage", None)
        text, calls = wire.read_text(choice.message), wire.read_tool_calls(choice.message)
        usage = wire.read_usage(counted)
        source: Literal["provider", "estimated"] = "provider"
        # Every prompt has tokens, and so has every answer that isn't empty: a zero is a missing count.
        if not usage.input_tokens or ((text or calls) and not usage.output_tokens):
            usage, source, counted = self._estimate(style, messages, tools, text, calls), "estimated", None
        cost = providers.price(self._route(style), usage, counted)
        receipt = Receipt(billed=usage, cost_usd=cost, usage_source=source)
        return Completion(text, usage, choice.finish_reason or "stop", calls, receipt)

    def _estimate(
        self, style: Style, messages: Sequence[Message], tools: Sequence[Tool], text: str, calls: Sequence[ToolCall]
    ) -> Usage:
        if style == "completion":
            return wire.estimate_transcript(messages, text)
        return wire.estimate_chat(messages, tools, text, calls)

    def _secrets(self) -> list[str]:
        known = (self._api_key, self._route(self.style).api_key)
        return [secret for secret in known if secret]
