"""A hosted or local model, by its litellm name.

    model = HostedModel("openai/gpt-4o-mini")
    completion = await model.complete([Message("user", "2 + 2?")], role="solver")
    completion.text     # "4"
    completion.usage    # Usage(input_tokens=12, cached_input_tokens=0, output_tokens=1, …)
    await model.aclose()

The providers and prices are litellm's. An endpoint in the OpenAI form is called directly, every other one through
litellm (transport.py). This module sends a request (request.py) in the form that the endpoint accepts
(adaptation.py, refusals.py), reads the response (responses.py, usage.py), and turns every failure into a
`ModelError` that says whether to try again. Neither this module nor litellm retries a failed call: `RetryingModel`
does, and records it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from rewoo_bench.crashes import harness_fault
from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted import provider_errors, providers
from rewoo_bench.models.hosted.adaptation import Adaptation, RequestChange
from rewoo_bench.models.hosted.answer_redaction import without_credentials
from rewoo_bench.models.hosted.attempts import AttemptCosts
from rewoo_bench.models.hosted.completions import (
    CompletionResult,
    broken_off,
    estimated_prompt,
    read_answer,
    unreadable,
)
from rewoo_bench.models.hosted.refusals import find_change
from rewoo_bench.models.hosted.reply_stream import ReplyStream
from rewoo_bench.models.hosted.request import Constrain, ModelRequest, RequestSettings, Style, to_body
from rewoo_bench.models.hosted.responses import visible_so_far
from rewoo_bench.models.hosted.transport import Transport
from rewoo_bench.models.hosted.wire import WireClient
from rewoo_bench.redaction import of_environment, sent_in, without
from rewoo_bench.types import Completion, Message, OnText, Tool
from rewoo_bench.wire_request import WireMessages

__all__ = ["HostedModel", "Style"]

TRUNCATED = "reasoning_truncated"
STREAM_OPTIONS = "stream_options"
_MOST_CHANGES = 16  # of one request, before it is given up
_log = logging.getLogger(__name__)


class HostedModel:
    """A model by its litellm name, as a `rewoo_bench.types.Model`.

    `style` "completion" sends the messages' contents, without roles, as one transcript that the model
    continues; a call with tools is still sent as a chat, since only chats have tools. `constrain` is the most that
    decoding is constrained by: a "grammar" (or a schema), a "schema" where the provider supports one, or "none".
    `timeout` (seconds) is for the whole call, `connect_timeout` for reaching the server.

    Parameters that the endpoint refuses are learnt from its errors: the request is sent again without them, and so
    are all later ones (`adaptation`). `drop_params` names parameters that are never sent; `extra_body` is sent with
    every request. `prompt_cache` marks the prefixes of prompts that Anthropic can cache.

    `max_output_tokens` is for the visible text. A reply that was cut while the model was thinking is requested
    once more with twice the budget, up to the model's own limit; if that was enough, later calls start with it.

    Without `api_key` the key comes from the provider's environment variable, also with a custom `api_base`.
    litellm's callbacks are not called: the journal has every call. `find_route` replaces litellm's choice of the
    endpoint. Connections belong to this object and to one event loop; `aclose` closes them.
    """

    streams = True

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        style: Style = "chat",
        constrain: Constrain = "schema",
        temperature: float | None = 0.0,
        max_output_tokens: int = 512,
        timeout: float = 120.0,
        connect_timeout: float = 10.0,
        seed: int | None = None,
        reasoning_effort: str | None = None,
        prompt_cache: bool = False,
        drop_params: Sequence[str] = (),
        extra_body: Mapping[str, Any] | None = None,
        find_route: Callable[[Style], providers.Route] | None = None,
    ) -> None:
        self.name = name
        self.api_base = api_base
        self.style = style
        self.max_output_tokens = max_output_tokens
        self.adaptation = Adaptation.without(drop_params)
        self.thinking_tokens = 0
        """Output tokens for thoughts, in addition to the visible text: the most that was needed so far."""
        self._settings = RequestSettings(
            temperature, seed, reasoning_effort, constrain, prompt_cache, dict(extra_body or {})
        )
        self._api_key = api_key
        self._find_route = find_route or (lambda style: providers.find_route(name, api_base, api_key, style))
        self._routes: dict[Style, providers.Route] = {}
        self._transport = Transport(timeout=timeout, connect_timeout=connect_timeout)
        self._wire = WireClient(name, timeout=timeout, connect_timeout=connect_timeout, api_key=api_key)
        self._wire.adds_usage = STREAM_OPTIONS not in drop_params
        self._sent: frozenset[str] | None = None
        self._begins_in_thought = False  # whether a reply was seen that closed a thought it hadn't opened

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
        on_text: OnText | None = None,
    ) -> Completion:
        """The model's answer. Raises `ModelError`, with the provider's `retry_after` if any, and `HarnessFault`
        where this machine has no file or memory left for the call.

        `call_cost` covers every request: also those that the endpoint refused for a parameter, and a reply that was
        cut while the model was thinking. The cost of a cancelled call, estimated, is on the exception that cancels it.
        For `WireMessages` the provider gets the agent's request, and nothing else of the arguments counts.
        """
        if isinstance(messages, WireMessages):
            return await self._pass_on(messages)
        visible = self.max_output_tokens if max_tokens is None else max_tokens
        budget = visible + self.thinking_tokens
        call = ModelRequest(messages, tuple(stop), tools or (), schema, grammar, budget, on_text)
        costs = AttemptCosts()
        completion = await self._complete(call, costs)
        if completion.finish_reason == TRUNCATED and (larger := self._larger_budget(call)) > call.budget:
            completion = await self._complete(replace(call, budget=larger), costs)
            if completion.finish_reason != TRUNCATED:
                self.thinking_tokens = max(self.thinking_tokens, larger - visible)
        return completion if costs.attempts == 1 else replace(completion, call_cost=costs.call_cost())

    def check(self) -> None:
        """Whether a run can start, without the network. Raises `ModelNotFound` or `MissingKey`."""
        self._route(self.style)
        if self._api_key is None and self.api_base is None:
            providers.check_key(self.name)

    @property
    def wire_name(self) -> str:
        """The provider's own name of the model."""
        return self._route("chat").bare

    def sent(self) -> dict[str, Any]:
        """For the manifest: how requests differ from the settings; empty where they don't."""
        thinking = {"output_tokens_for_thoughts": self.thinking_tokens} if self.thinking_tokens else {}
        return {**self.adaptation.as_manifest(), **thinking}

    def recall(self, sent: Mapping[str, Any]) -> None:
        """Restores what an earlier session of the run had learnt, as `sent` returned it."""
        self.adaptation = Adaptation.from_manifest(sent)
        self._wire.adds_usage = STREAM_OPTIONS not in self.adaptation.dropped
        self.thinking_tokens = int(sent.get("output_tokens_for_thoughts", 0))

    async def aclose(self) -> None:
        """Closes the connections. The model can be used again, with new ones."""
        await self._transport.aclose()
        await self._wire.aclose()

    async def _pass_on(self, messages: WireMessages) -> Completion:
        """The provider's answer to an agent's request."""
        try:
            return await self._wire.send(self._route("chat"), messages.request, messages)
        finally:
            if not self._wire.adds_usage:
                self._remember([RequestChange("drop", STREAM_OPTIONS)])

    async def _complete(self, call: ModelRequest, costs: AttemptCosts) -> Completion:
        """The answer to the request in a form that the endpoint accepts. Each request sent is added to `costs`."""
        changes: list[RequestChange] = []
        without_stop = RequestChange("drop", "stop")
        while True:
            result = await self._send(call, costs, changes)
            if result is None:
                continue
            costs.add(result.completion.call_cost)
            self._begins_in_thought |= result.late_close
            stopped_early = result.stopped_in_thought and without_stop not in changes
            if not stopped_early:
                if result.ends_in_thought:  # also without a stop string
                    changes = [change for change in changes if change is not without_stop]
                self._remember(changes)
                return result.completion
            changes.append(without_stop)  # the stop string may have been inside thoughts: the text is cut here

    async def _send(
        self, call: ModelRequest, costs: AttemptCosts, changes: list[RequestChange]
    ) -> CompletionResult | None:
        """One request. None where the endpoint refused it and a change that may help was added to `changes`."""
        adaptation = self.adaptation
        for change in changes:
            adaptation = adaptation.with_change(change)
        style: Style = "chat" if call.tools or adaptation.as_chat else self.style
        route = self._route(style)
        settings = replace(self._settings, thoughts=True) if adaptation.sends_thoughts else self._settings
        body = adaptation.apply(to_body(call, settings, route, style))
        stream = ReplyStream(partial(self._show, call)) if body.get("stream") else None
        try:
            answer = await self._transport.send(route, body, stream)
            result = read_answer(answer, call, body, route, begins_in_thought=self._begins_in_thought)
            return replace(result, completion=without_credentials(result.completion, self._secrets()))
        except TimeoutError:
            failure = provider_errors.no_answer(self.name, self._transport.timeout)
            failure.call_cost = broken_off(stream, call, route)
            raise self._failed(failure, costs) from None
        except provider_errors.expected() as error:
            if (fault := harness_fault(error, self.name)) is not None:
                raise fault from None
            if (bad := provider_errors.unreadable_answer(error)) is not None:
                paid = broken_off(stream, call, route) or unreadable(bad, call, route)
                failure = provider_errors.bad_answer(self.name, bad, self._secrets(), paid)
                raise self._failed(failure, costs) from None
            next_change = find_change(*provider_errors.refusal(error), body)
            if next_change is not None and next_change not in changes and len(changes) < _MOST_CHANGES:
                self._remember(changes)  # the endpoint names something else now, so it accepts these
                costs.add(None)
                changes.append(next_change)
                return None
            # Not chained: a provider's message may repeat the key.
            failure = provider_errors.to_model_error(
                error, self.name, timeout=self._transport.timeout, secrets=self._secrets()
            )
            failure.call_cost = broken_off(stream, call, route)
            raise self._failed(failure, costs) from None
        except anyio.get_cancelled_exc_class() as cancelled:
            costs.add(broken_off(stream, call, route) or estimated_prompt(call, route))
            cancelled.call_cost = costs.call_cost()  # type: ignore[attr-defined]  # read by the meter
            raise

    def _show(self, call: ModelRequest, text: str) -> None:
        """Shows the caller the visible text of a reply so far."""
        if call.on_text is not None:
            visible = visible_so_far(text, call.stop, begins_in_thought=self._begins_in_thought)
            call.on_text(without(visible, self._secrets()))

    def _failed(self, error: ModelError, costs: AttemptCosts) -> ModelError:
        """The error, with the cost of all requests of its call."""
        costs.add(error.call_cost)
        error.call_cost = costs.call_cost()
        return error

    def _remember(self, changes: Sequence[RequestChange]) -> None:
        """Applies changes that led to an answer to all later requests, with a warning for each."""
        for change in changes:
            if change.kind == "limit" and not change.name:
                continue  # it belongs to one prompt
            adaptation = self.adaptation.with_change(change)
            if adaptation != self.adaptation:
                _log.warning("%s refused a part of the request; from now on %s", self.name, change)
            self.adaptation = adaptation

    def _larger_budget(self, call: ModelRequest) -> int:
        """Twice the budget, and at least twice the default one, as far as the model's own limit allows."""
        wanted = 2 * max(call.budget, self.max_output_tokens)
        limits = (providers.max_output_tokens(self._route(self.style)), self.adaptation.most_tokens)
        return min([wanted, *(limit for limit in limits if limit)])

    def _route(self, style: Style) -> providers.Route:
        if style not in self._routes:
            self._routes[style] = self._find_route(style)
        return self._routes[style]

    def _secrets(self) -> frozenset[str]:
        """The request's credentials in every form in which a server may send them back."""
        if self._sent is None:
            route = self._route(self.style)
            self._sent = sent_in(route.api_base, (self._api_key, route.api_key)) | of_environment()
        return self._sent
