"""A hosted or local model, by its litellm name.

    model = HostedModel("openai/gpt-4o-mini")
    completion = await model.complete(Request([Message("user", "2 + 2?")], role="solver"))
    completion.text     # "4"
    completion.usage    # Usage(input_tokens=12, cached_input_tokens=0, output_tokens=1, …)
    await model.aclose()

The providers and prices are litellm's. An endpoint in the OpenAI form is called directly, every other one through
litellm (transport.py). This module sends a request in the form that the endpoint accepts (adaptation.py), has the
response read (transport.py, responses.py), and turns every failure into a `ModelError` that says whether to try
again (provider_errors.py). Neither this module nor litellm retries a failed call: `RetryingModel` does, and records it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import anyio

from rewoo_bench.models.hosted import provider_errors, providers
from rewoo_bench.models.hosted.adaptation import Adaptation, RequestChange, find_change
from rewoo_bench.models.hosted.providers import PromptForm
from rewoo_bench.models.hosted.responses import ParsedResponse, visible_so_far
from rewoo_bench.models.hosted.transport import TRUNCATED, ReplyStream, Transport, cost_so_far, read_completion
from rewoo_bench.models.hosted.wire import WireClient
from rewoo_bench.system.crashes import harness_fault
from rewoo_bench.text import openai_format
from rewoo_bench.text.redaction import without, without_in
from rewoo_bench.types import Completion, Request, ToolCall, trial_seed

STREAM_OPTIONS = "stream_options"
_WITHOUT_STOP = RequestChange("drop", "stop")
_MOST_CHANGES = 16  # of one request, before it is given up
_MOST_TIMES = 64  # of the reply's limit, for a reply with its thoughts
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of a model's requests, and of the server of a local model.

    "auto" means the catalogue's value for a model of the catalogue, and a value by size for a user's file; a hosted
    model gets turns ("chat") and a JSON schema where its provider supports one. `reply_tokens` is for the visible text,
    `timeout` (seconds) for a whole call. `drop_params` are never sent, `extra_body` always. `provider_cache` marks the
    prefixes of prompts that Anthropic can cache. `constrain` is the most that decoding is constrained by. `prices` are
    dollars per million tokens (`input`, `cached_input`, `cache_write`, `output`), in the place of litellm's.

    For local models: `n_parallel` requests are decoded in one batch. Only with 1 are answers the same every time; more
    was no faster on two cores with the embedded server, and up to twice as fast with one built for the CPU.
    `llama_server` is the command of a user's llama-server. `n_caches` is the number of architectures: each gets a
    prefix cache of its own, in a server of its own, so that none finds the prompts of another. They share one cache
    with `n_parallel` above 1, and in a user's llama-server, since its memory may be a GPU's.
    """

    api_base: str | None = None
    temperature: float = 0.0
    reply_tokens: int = 512
    reasoning_effort: str | None = None
    provider_cache: bool = False
    drop_params: tuple[str, ...] = ()
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 600.0
    seed: int | None = None
    prompt_form: Literal["auto", "chat", "completion"] = "auto"
    constrain: Literal["auto", "grammar", "schema", "none"] = "auto"
    n_parallel: int = 1
    n_caches: int = 1
    llama_server: str | None = None
    prices: Mapping[str, float] | None = None


DEFAULT_SETTINGS = ModelSettings()


class HostedModel:
    """A model by its litellm name, as a `rewoo_bench.types.Model`.

    The prompt form "completion" sends the messages' contents, without roles, as one transcript that the model
    continues; a call with tools is still sent as a chat, since only chats have tools.

    Parameters that the endpoint refuses are learnt from its errors: the request is sent again without them, and so
    are all later ones (`adaptation`). A reply that was cut while the model was thinking is requested once more with
    twice the budget, up to the model's own limit; if that was enough, later calls start with it.

    Without `api_key` the key comes from the provider's environment variable, also with a custom `api_base`.
    `connect_timeout` (seconds) is for reaching the server. litellm's callbacks are not called: the journal has every
    call. `find_route` replaces litellm's choice of the endpoint. Connections belong to this object and to one event
    loop; `aclose` closes them.
    """

    def __init__(
        self,
        name: str,
        settings: ModelSettings = DEFAULT_SETTINGS,
        *,
        api_key: str | None = None,
        connect_timeout: float = 10.0,
        find_route: Callable[[PromptForm], providers.Route] | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.prompt_form: PromptForm = "chat" if settings.prompt_form == "auto" else settings.prompt_form
        self.constrain = "schema" if settings.constrain == "auto" else settings.constrain
        self.max_output_tokens = settings.reply_tokens
        self.adaptation = Adaptation(left_out=settings.drop_params)
        self.thinking_tokens = 0
        """Output tokens for thoughts, in addition to the visible text: the most that was needed so far."""
        self._api_key = api_key
        self._find_route = find_route or partial(providers.find_route, name, settings.api_base, api_key)
        self._routes: dict[PromptForm, providers.Route] = {}
        self._transport = Transport(name, timeout=settings.timeout, connect_timeout=connect_timeout)
        self._wire = WireClient(self._transport)
        self._wire.adds_usage = STREAM_OPTIONS not in settings.drop_params
        self._begins_in_thought = False  # whether a reply was seen that closed a thought it hadn't opened

    async def complete(self, request: Request) -> Completion:
        """The model's answer. Raises `ModelError`, with the provider's `retry_after` if any, and `HarnessFault`
        where this machine has no file or memory left for the call.

        The bill gets every other attempt that was sent: one that the endpoint refused for a parameter, a reply that was
        cut while the model was thinking, a cancelled one, whose cost is estimated.
        """
        if request.wire is not None:  # of an external agent
            try:
                return await self._wire.send(self.route("chat"), request.wire, request)
            finally:
                if not self._wire.adds_usage:
                    self._remember([RequestChange("drop", STREAM_OPTIONS)])
        visible = self.max_output_tokens if request.max_tokens is None else request.max_tokens
        first = replace(request, max_tokens=visible + self.thinking_tokens)
        sent, changes = first, list[RequestChange]()
        while True:
            result = await self._send(sent, changes)
            if result is None:
                continue
            completion, reply = result
            self._begins_in_thought |= reply.late_close
            if reply.cut_thought and not completion.text:
                stops = sent.stop and "stop" not in self.adaptation.left_out and _WITHOUT_STOP not in changes
                if stops and reply.finish_reason != "length":
                    changes.append(_WITHOUT_STOP)  # the stop string may have been inside thoughts: the text is cut here
                    request.bill.add(completion.call_cost)
                    continue
                changes = [change for change in changes if change is not _WITHOUT_STOP]  # it didn't help
            self._remember(changes)
            if completion.finish_reason != TRUNCATED:
                self.thinking_tokens = max(self.thinking_tokens, (sent.max_tokens or 0) - visible)
                return completion
            # Twice the budget, and at least twice the default one, as far as the model's own limit allows.
            entry = self.route(self.prompt_form).entry
            limits = (
                entry.max_output_tokens if entry else None,
                self.adaptation.max_tokens_at_most,
                _MOST_TIMES * self.max_output_tokens,  # each doubling that helped is where the next one begins
            )
            wanted = 2 * max(first.max_tokens or 0, self.max_output_tokens)
            larger = min([wanted, *(limit for limit in limits if limit)])
            if sent is not first or larger <= (first.max_tokens or 0):
                return completion
            sent, changes = replace(first, max_tokens=larger), []
            request.bill.add(completion.call_cost)

    def check(self) -> None:
        """Whether a run can start, without the network. Raises `ModelNotFound` or `MissingKey`."""
        self.route(self.prompt_form)
        if self._api_key is None and self.settings.api_base is None:
            providers.check_key(self.name)

    @property
    def wire_name(self) -> str:
        """The provider's own name of the model."""
        return self.route("chat").bare

    def route(self, form: PromptForm) -> providers.Route:
        """The endpoint for requests of this form, with the user's prices. Raises `ModelNotFound`."""
        if form not in self._routes:
            self._routes[form] = providers.with_prices(self._find_route(form), self.settings.prices)
        return self._routes[form]

    def manifest(self) -> dict[str, Any]:
        """The settings, JSON-ready."""
        settings = self.settings
        chosen = {
            "reasoning_effort": settings.reasoning_effort,
            "prompt_cache": settings.provider_cache,
            "drop_params": list(settings.drop_params),
            "extra_body": dict(settings.extra_body),
        }
        return {
            "name": self.name,
            "style": self.prompt_form,
            "constrain": self.constrain,
            "temperature": settings.temperature,
            "max_output_tokens": settings.reply_tokens,
            "seed": settings.seed,
            **{fact: value for fact, value in chosen.items() if value},
        }

    def sent(self) -> dict[str, Any]:
        """For the manifest: how requests differ from the settings; empty where they don't."""
        thinking = {"output_tokens_for_thoughts": self.thinking_tokens} if self.thinking_tokens else {}
        return {**self.adaptation.as_manifest(), **thinking}

    def recall(self, sent: Mapping[str, Any]) -> None:
        """Restores what an earlier session of the run had learnt, as `sent` returned it."""
        self.adaptation = Adaptation.from_manifest(sent)
        self._wire.adds_usage = STREAM_OPTIONS not in self.adaptation.left_out
        self.thinking_tokens = int(sent.get("output_tokens_for_thoughts", 0))

    async def aclose(self) -> None:
        """Closes the connections, after a cancellation too. The model can be used again, with new ones."""
        with anyio.CancelScope(shield=True):
            await self._transport.aclose()

    async def _send(self, request: Request, changes: list[RequestChange]) -> tuple[Completion, ParsedResponse] | None:
        """One request. None where the endpoint refused it and a change that may help was added to `changes`."""
        adaptation, bill = self.adaptation, request.bill
        for change in changes:
            adaptation = adaptation.with_change(change)
        form: PromptForm = "chat" if request.tools or adaptation.style == "chat" else self.prompt_form
        route = self.route(form)
        body = adaptation.apply(self._body(request, route, form, thoughts=adaptation.sends_thoughts))
        secrets = self._transport.secrets(route)

        def show(text: str) -> None:
            if request.on_text is not None:
                visible = visible_so_far(text, request.stop, begins_in_thought=self._begins_in_thought)
                request.on_text(without(visible, secrets))

        stream = ReplyStream(show)
        try:
            answer = await self._transport.send(route, body, stream if body.get("stream") else None)
            begins_in_thought = self._begins_in_thought
            completion, reply = read_completion(answer, request, body, route, begins_in_thought=begins_in_thought)
            return _without_credentials(completion, secrets), reply
        except provider_errors.expected() as error:
            if (fault := harness_fault(error, self.name)) is not None:
                raise fault from None
            if provider_errors.unreadable_answer(error) is None:
                next_change = find_change(*provider_errors.refusal(error), body)
                if next_change is not None and next_change not in changes and len(changes) < _MOST_CHANGES:
                    self._remember(changes)  # the endpoint names something else now, so it accepts these
                    bill.add()
                    changes.append(next_change)
                    return None
            raise self._transport.failure(error, request, route, stream.usage, stream.written) from None
        except anyio.get_cancelled_exc_class():
            bill.add(cost_so_far(request, route, stream.usage, stream.written))
            raise

    def _body(self, request: Request, route: providers.Route, form: PromptForm, *, thoughts: bool) -> dict[str, Any]:
        """The request in the OpenAI form of a chat or a completion, without what isn't set.

        With `thoughts`, reasoning is sent back with its tool calls. Of the constraints on decoding a grammar comes
        before a schema, since servers accept only one.
        """
        settings = self.settings
        body: dict[str, Any] = {
            "model": route.bare,
            "temperature": settings.temperature,
            "seed": None if settings.seed is None else trial_seed(settings.seed, request.trial),
            "reasoning_effort": settings.reasoning_effort,
            "max_tokens": request.max_tokens,
            "stop": list(request.stop) or None,
            "tools": openai_format.to_functions(request.tools) or None,
            "parallel_tool_calls": False if request.tools and not request.parallel else None,
        }
        by_grammar = self.constrain == "grammar"
        if request.grammar is not None and by_grammar:
            body["grammar"] = request.grammar
        elif request.schema is not None and by_grammar and form == "completion":
            body["json_schema"] = dict(request.schema)  # llama.cpp's own field: this endpoint has no response_format
        elif request.schema is not None and self.constrain != "none" and (route.takes_schema or by_grammar):
            body["response_format"] = openai_format.to_response_format(request.schema)
        if request.on_text is not None and not request.tools:  # tool calls are read whole
            body |= {"stream": True, STREAM_OPTIONS: {"include_usage": True}}
        body |= settings.extra_body
        if form == "completion":
            body["prompt"] = openai_format.to_transcript(request.messages)
        else:
            body["messages"] = openai_format.to_chat(
                request.messages, prompt_cache=settings.provider_cache, thoughts=thoughts
            )
        return {name: value for name, value in body.items() if value is not None}

    def _remember(self, changes: Sequence[RequestChange]) -> None:
        """Applies changes that led to an answer to all later requests, with a warning for each."""
        for change in changes:
            if change.kind == "limit" and not change.name:
                continue  # it belongs to one prompt
            adaptation = self.adaptation.with_change(change)
            if adaptation != self.adaptation:
                _log.warning("%s refused a part of the request; from now on %s", self.name, change)
            self.adaptation = adaptation


def _without_credentials(completion: Completion, secrets: frozenset[str]) -> Completion:
    """The completion without the credentials of its request, which a server may repeat.

    Removed here, they reach no journal, trace, prediction, later prompt, tool or other provider. Only what was
    really sent is removed: an answer is evidence, so nothing in it is guessed to be a key.
    """
    calls = tuple(ToolCall(**without_in(asdict(call), secrets)) for call in completion.tool_calls)
    fields = ("text", "thoughts", "answered_model", "finish_reason")
    texts: dict[str, Any] = {name: without(getattr(completion, name), secrets) for name in fields}
    return replace(completion, tool_calls=calls, **texts)
