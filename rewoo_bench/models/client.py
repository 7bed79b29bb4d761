"""One attempt at a hosted or local model, by its litellm name.

    model = LiteLLMModel("openai/gpt-4o-mini")
    completion = await model.complete([Message("user", "2 + 2?")], role="solver")
    completion.text     # "4"
    completion.usage    # Usage(input_tokens=12, cached_input_tokens=0, output_tokens=1, …)
    await model.aclose()

litellm knows the providers: where a name is served, what is taken there, at what price. An endpoint
in the OpenAI form is then asked directly (endpoint.py), every other one through litellm. This module
decides what is sent, reads what was counted, and turns whatever goes wrong into a `ModelError` that
says whether trying again makes sense. It never tries again itself, and neither do litellm and what
is below it: `RetryingModel` does, and records it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import anyio

from rewoo_bench.errors import ModelError
from rewoo_bench.models import failures, providers, wire
from rewoo_bench.models.endpoint import Endpoint
from rewoo_bench.types import Completion, Message, Receipt, Tool, ToolCall, Usage

Style = Literal["chat", "completion"]


@dataclass(frozen=True, slots=True)
class _Request:
    """A call on its way. `forms` is what the answer is held to, and the tools it may call."""

    route: providers.Route
    style: Style
    messages: Sequence[Message]
    settings: Mapping[str, Any]
    forms: Mapping[str, Any]


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

    `find_route` says where the name is served, in litellm's place.

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
        find_route: Callable[[Style], providers.Route] | None = None,
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
        self._find_route = find_route or (lambda style: providers.find_route(name, api_base, api_key, style))
        self._routes: dict[Style, providers.Route] = {}
        self._endpoint: Endpoint | None = None

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
        route = self._route(style)
        settings = {
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_output_tokens if max_tokens is None else max_tokens,
            "stop": list(stop) or None,
        }
        forms = self._constraint(route, style, schema, grammar)
        if tools:
            forms["tools"] = wire.to_functions(tools)
        request = _Request(route, style, messages, settings, forms)
        ask = self._ask_directly if route.provider in providers.OPENAI_FORM else self._ask_litellm
        try:
            with anyio.fail_after(self.timeout):
                answer, counted = await ask(request)
        except TimeoutError:
            raise failures.no_answer(self.name, self.timeout) from None
        except failures.expected() as error:
            # Not chained: what a provider says may repeat the key.
            raise failures.to_model_error(error, self.name, timeout=self.timeout, secrets=self._secrets()) from None
        return self._read(answer, counted, style, messages, tools or ())

    def check(self) -> None:
        """Whether a run can start, without the network. Raises `ModelNotFound` or `MissingKey`."""
        self._route(self.style)
        if self._api_key is None and self.api_base is None:
            providers.check_key(self.name)

    async def aclose(self) -> None:
        """Close the connections. The model can be used again, with new ones."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.aclose()
        if id(self) in self._sharing:
            self._sharing.discard(id(self))
            if not self._sharing:
                await providers.close_shared_pool()

    async def _ask_directly(self, request: _Request) -> tuple[Mapping[str, Any], Any]:
        """The answer of an endpoint in the OpenAI form, and None: its usage is all it counted."""
        route = request.route
        if self._endpoint is None:
            key = route.api_key or "none"
            self._endpoint = Endpoint(route.api_base, key=key, connect_timeout=min(self.timeout, self.connect_timeout))
        settings = providers.fitting(route, request.settings)
        body = {"model": route.bare, **settings, **request.forms, **self.extra_body}
        if request.style == "completion":
            body["prompt"] = wire.to_transcript(request.messages)
            return await self._endpoint.post("/completions", body), None
        body["messages"] = wire.to_chat(request.messages)
        return await self._endpoint.post("/chat/completions", body), None

    async def _ask_litellm(self, request: _Request) -> tuple[Mapping[str, Any], Any]:
        """litellm's answer in the OpenAI form, and its usage object, which it can price."""
        self._sharing.add(id(self))
        route, messages = request.route, request.messages
        if request.style == "completion":
            messages = [Message("user", wire.to_transcript(messages))]
        known = {name: request.forms[name] for name in ("tools", "response_format") if name in request.forms}
        body = {name: value for name, value in {**request.forms, **self.extra_body}.items() if name not in known}
        with providers.without_callbacks():
            response = await providers.load_litellm().acompletion(
                model=route.model,
                messages=wire.to_chat(messages),
                api_base=route.api_base,
                api_key=route.api_key,
                timeout=self.timeout,
                drop_params=True,
                num_retries=0,
                max_retries=0,
                extra_body=body or None,
                **request.settings,
                **known,
                **(providers.plain_tools() if "tools" in known else {}),
            )
        return response.model_dump(), getattr(response, "usage", None)

    def _route(self, style: Style) -> providers.Route:
        if style not in self._routes:
            self._routes[style] = self._find_route(style)
        return self._routes[style]

    def _constraint(
        self, route: providers.Route, style: Style, schema: Mapping[str, Any] | None, grammar: str | None
    ) -> dict[str, Any]:
        """What holds the decoding to a form; a grammar before a schema, since servers take only one."""
        by_grammar = self.constrain == "grammar"
        if grammar is not None and by_grammar:
            return {"grammar": grammar}
        if schema is not None and by_grammar and style == "completion":
            return {"json_schema": dict(schema)}  # llama.cpp's own field: this endpoint has no response_format
        if schema is not None and self.constrain != "none" and (route.takes_schema or by_grammar):
            return {"response_format": wire.to_response_format(schema)}
        return {}

    def _read(
        self, answer: Mapping[str, Any], counted: Any, style: Style, messages: Sequence[Message], tools: Sequence[Tool]
    ) -> Completion:
        """`counted` is litellm's usage object, where the answer came through it."""
        if not answer.get("choices"):
            raise ModelError(f"{self.name!r} sent an answer without choices", retryable=True)
        try:
            choice = answer["choices"][0]
            text, calls = wire.read_text(choice), wire.read_tool_calls(choice)
            usage = wire.read_usage(answer.get("usage"))
            finish_reason = str(choice.get("finish_reason") or "stop")
        except (AttributeError, LookupError, TypeError, ValueError):  # JSON, and not what it should be
            raise ModelError(f"{self.name!r} sent an answer in a form of its own", retryable=True) from None
        source: Literal["provider", "estimated"] = "provider"
        # Every prompt has tokens, and so has every answer that isn't empty: a zero is a missing count.
        if not usage.input_tokens or ((text or calls) and not usage.output_tokens):
            usage, source, counted = self._estimate(style, messages, tools, text, calls), "estimated", None
        cost = providers.price(self._route(style), usage, counted)
        receipt = Receipt(billed=usage, cost_usd=cost, usage_source=source)
        return Completion(text, usage, finish_reason, calls, receipt)

    def _estimate(
        self, style: Style, messages: Sequence[Message], tools: Sequence[Tool], text: str, calls: Sequence[ToolCall]
    ) -> Usage:
        if style == "completion":
            return wire.estimate_transcript(messages, text)
        return wire.estimate_chat(messages, tools, text, calls)

    def _secrets(self) -> list[str]:
        known = (self._api_key, self._route(self.style).api_key)
        return [secret for secret in known if secret]
