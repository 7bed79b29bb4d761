"""Pass an external agent's request on to the provider, unchanged or translated, and read the cost of the answer.

    client = WireClient(transport)
    completion = await client.send(route, WireRequest("/chat/completions", body), request)
    completion.wire.body    # as the provider sent it

Only `stream_options.include_usage` is added, unless the endpoint refuses it, and the event that it causes is hidden
again. A provider that doesn't speak the dialect gets the request translated by litellm (`Translation`).

    passed_on({"Idempotency-Key": "7", "Authorization": "Bearer q-…", "Cookie": "…"}.items(), key="q-…")
    # (("Idempotency-Key", "7"),)

An agent chooses no address, key, account or model by its headers and its query: what isn't listed doesn't pass.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Mapping
from contextlib import aclosing, suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import anyio

from rewoo_bench.models.hosted import provider_errors, providers
from rewoo_bench.models.hosted.dialects import (
    CHAT,
    COMPLETIONS,
    COUNT_TOKENS,
    EMBEDDINGS,
    MESSAGES,
    OF_ANTHROPIC,
    RESPONSES,
    AnswerFacts,
    asks_for_usage,
    is_usage_only,
    with_usage,
)
from rewoo_bench.models.hosted.http_endpoint import (
    EVENT_STREAM,
    BadAnswer,
    HTTPFailure,
    documents_of,
    events_of,
    is_done,
    read_body,
    read_document,
)
from rewoo_bench.models.hosted.responses import CountedUsage
from rewoo_bench.models.hosted.transport import Transport, cost_of, cost_so_far
from rewoo_bench.system.crashes import harness_fault
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.redaction import redact, without
from rewoo_bench.text.tokens import count_messages, count_tokens
from rewoo_bench.types import (
    BAD_GATEWAY,
    CallCost,
    Completion,
    ErrorResponse,
    Request,
    Usage,
    UsageSource,
    WireRequest,
    WireResponse,
)

_PASSED_ON = frozenset({
    "openai-beta", "anthropic-beta", "anthropic-version",
    "idempotency-key", "x-idempotency-key", "x-client-request-id", "x-request-id", "x-title",
})  # fmt: skip
_PASSED_BACK = re.compile("(x-)?request-id|retry-after(-ms)?|(x|anthropic)-ratelimit-.+|openai-(processing-ms|version)")
_PASSED_QUERY = frozenset({"api-version", "beta"})
_MISSING = frozenset({404, 405, 501})  # of an endpoint that doesn't speak a dialect
_OF_REQUEST = re.compile("(?:model|response)_not_found")  # codes of a 404 for what a request names
_UNFIT = frozenset({400, 422})  # of one that doesn't know a parameter
_OWN_OPTION = re.compile("stream_options|include_usage")  # in an error: the endpoint doesn't know what we have added
_LONGEST_FIELD = 200  # characters of a field of a provider's error object


def passed_on(headers: Iterable[tuple[str, str]], *, key: str) -> tuple[tuple[str, str], ...]:
    """The headers of an agent's request that the provider gets. `key` is the question's."""
    return tuple(
        (name, value) for name, value in headers if name.lower() in _PASSED_ON and key not in value and _is_plain(value)
    )


def passed_back(headers: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """The headers of a provider's answer that the agent gets: request ids and rate limits, but no account's name."""
    return {
        name.lower(): without(value, secrets)
        for name, value in headers.items()
        if _PASSED_BACK.fullmatch(name.lower()) and _is_plain(value)
    }


def passed_query(query: str, *, key: str) -> str:
    """The query of an agent's request that the provider gets."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return urlencode([(name, value) for name, value in pairs if name.lower() in _PASSED_QUERY and key not in value])


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable()


class _Relay:
    """What has arrived of the answer to a request, and what the agent has got of it."""

    def __init__(self, request: WireRequest, secrets: frozenset[str]) -> None:
        self.facts = AnswerFacts()
        self.headers: Mapping[str, str] = {}
        """Those of the answer that the agent gets."""
        self.hides_usage = False
        """Whether the agent didn't ask for the event with the usage."""
        self.secrets = secrets
        """Credentials that the request was sent with: a server may repeat them in its answer."""
        self._request = request
        self._relayed: list[bytes] = []  # the events of a stream, as the agent gets them

    @property
    def text(self) -> str:
        """The events that were relayed."""
        return b"".join(self._relayed).decode("utf-8", "replace")

    @property
    def is_relayed(self) -> bool:
        """Whether the agent has got a part of it, so that no other attempt may be made."""
        return bool(self._relayed) and self._request.on_bytes is not None

    def check_no_error(self) -> None:
        """Raises `BadAnswer` for an error in a response with status 200."""
        if self.facts.error:
            raise BadAnswer(f"an error in place of an answer: {self.facts.error}")

    async def relay(self, pieces: AsyncIterable[bytes]) -> None:
        """Gives the agent each event of a stream as it arrives, without the credentials that the request was sent with.

        Raises `BadAnswer` for a stream that broke off.
        """
        async with aclosing(events_of(pieces)) as events:
            async for event in events:
                shown = without(event.decode("utf-8", "replace"), self.secrets).encode()
                documents = list(documents_of(shown))
                for document in documents:
                    self.facts.read(document)
                self.facts.is_complete |= is_done(event)
                if not self.is_relayed:
                    self.check_no_error()
                if self.hides_usage and documents and all(map(is_usage_only, documents)):
                    continue
                self._relayed.append(shown)
                if self._request.on_bytes is not None:
                    await self._request.on_bytes(shown)
        if self.facts.error:
            raise BadAnswer(f"an error in the middle of a stream: {self.facts.error}")
        if not self.facts.is_complete:
            raise BadAnswer("a stream that ended in the middle")


class WireClient:
    """A model's answers to the requests of external agents, over the connections of its `transport`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._spoken: set[str] = set()  # paths that the endpoint has answered at
        self._missing: set[str] = set()  # paths that the endpoint doesn't have
        self.adds_usage = True
        """Whether streams are asked for their usage; False where the endpoint refuses that."""

    async def send(self, route: providers.Route, wire: WireRequest, request: Request) -> Completion:
        """The provider's answer. Raises `ModelError`, with the cost of the call and with what the agent gets for it.

        The bill gets a request that the endpoint refused for what we had added, and what a cancelled one has cost.
        """
        relay, bill = _Relay(wire, self._transport.secrets(route)), request.bill
        facts, secrets = relay.facts, relay.secrets
        try:
            async with asyncio.timeout(self._transport.timeout):
                response = await self._answer(route, wire, relay, request)
        except provider_errors.expected() as error:
            if (fault := harness_fault(error, self._transport.name)) is not None:
                raise fault from None
            fields: dict[str, str | int] = {}
            if isinstance(error, HTTPFailure):
                relay.headers = passed_back(error.headers, secrets)
                for name in ("type", "param", "code"):
                    if isinstance(value := (error.body or {}).get(name), str):
                        fields[name] = redact(value, secrets)[:_LONGEST_FIELD]
                    elif type(value) is int:
                        fields[name] = value
            failure = self._transport.failure(error, request, route, facts.usage, facts.text)
            begun = relay.text if relay.is_relayed else ""
            failure.response = ErrorResponse(failure.status or BAD_GATEWAY, fields, begun, relay.headers)
            raise failure from None
        except anyio.get_cancelled_exc_class():
            bill.add(cost_so_far(request, route, facts.usage, facts.text))
            raise
        if wire.path == COUNT_TOKENS:
            return Completion("", call_cost=CallCost(cost_usd=0.0), wire=response)  # it is free
        text, counted = without(facts.text, secrets), facts.counted or CountedUsage(Usage())
        usage = counted.usage
        source: UsageSource = counted.source
        if not usage.input_tokens or (text and not usage.output_tokens and wire.path != EMBEDDINGS):
            usage = Usage(input_tokens=count_messages(request.messages), output_tokens=count_tokens(text))
            source = "estimated"
        elif counted.is_reasoning_alone and text:
            usage, source = usage + Usage(output_tokens=count_tokens(text)), "estimated"
        cost = cost_of(usage, source, route)
        model = "" if route.is_ours else facts.model
        reason = facts.finish_reason or "stop"
        return Completion(text, usage, reason, call_cost=cost, wire=response, answered_model=model)

    async def _answer(self, route: providers.Route, wire: WireRequest, relay: _Relay, request: Request) -> WireResponse:
        """The answer of the provider itself, asked again without what we add where that is refused; else of litellm."""
        is_native = route.provider in providers.OPENAI_FORM and wire.path not in self._missing
        if not (wire.path in OF_ANTHROPIC if route.provider == "anthropic" else is_native):
            return await self._translated(route, wire, relay)
        body, relay.hides_usage = with_usage(wire) if self.adds_usage else (wire.body, False)
        try:
            response = await self._exchange(route, wire, body, relay)
            self._spoken.add(wire.path)
            return response
        except HTTPFailure as error:
            if relay.hides_usage and error.status_code in _UNFIT and _OWN_OPTION.search(str(error)):
                pass  # asked again without it
            elif is_native and wire.path in (MESSAGES, RESPONSES) and self._is_missing(wire.path, error):
                self._missing.add(wire.path)  # litellm has these
            else:
                raise
        if wire.path in self._missing:
            return await self._translated(route, wire, relay)
        request.bill.add()
        relay.hides_usage = False
        response = await self._exchange(route, wire, wire.body, relay)
        self.adds_usage = False
        return response

    def _is_missing(self, path: str, error: HTTPFailure) -> bool:
        """Whether the endpoint doesn't have a path, rather than a model or an item that the request names."""
        said = error.body or {}
        is_of_request = bool(said.get("param")) or _OF_REQUEST.search(str(said.get("code"))) is not None
        return error.status_code in _MISSING and path not in self._spoken and not is_of_request

    async def _exchange(self, route: providers.Route, wire: WireRequest, body: bytes, relay: _Relay) -> WireResponse:
        """The provider's answer to a body, a stream given to the agent as it arrives."""
        headers = dict(wire.headers)
        if route.provider == "anthropic":
            headers["x-api-key"] = route.api_key or os.environ.get("ANTHROPIC_API_KEY", "none")
            headers.setdefault("anthropic-version", "2023-06-01")
        async with self._transport.endpoint(route).open(wire.path, body, headers, wire.query) as response:
            kind, relay.headers = response.content_type, passed_back(response.headers, relay.secrets)
            if wire.on_headers is not None:
                wire.on_headers(relay.headers)
            if kind == EVENT_STREAM:
                await relay.relay(response.content.iter_any())
                return WireResponse(kind, relay.text, headers=relay.headers)
            text = without((await read_body(response)).decode("utf-8-sig", "replace"), relay.secrets)
            relay.facts.read(read_document(text))
            relay.check_no_error()
            return WireResponse(kind, text, headers=relay.headers)

    async def _translated(self, route: providers.Route, wire: WireRequest, relay: _Relay) -> WireResponse:
        providers.use_shared_pool(self._transport)
        body = wire.document
        translation = Translation(route, wire.path, body, self._transport.timeout)
        if body.get("stream") and "stream" not in translation.dropped:
            relay.hides_usage = not asks_for_usage(body)
            async with aclosing(translation.events()) as events:
                await relay.relay(events)
            kind, text = EVENT_STREAM, relay.text
        else:
            kind, text = "application/json", without(json.dumps(await translation.answer()), relay.secrets)
            relay.facts.read(json.loads(text))
        sent, counted = translation.facts_of_answer(), relay.facts.counted  # a translation loses some of it
        relay.facts.error = relay.facts.error or sent.error
        if counted is not None and sent.usage is not None and not counted.usage.reasoning_tokens:
            reasoning = min(sent.usage.reasoning_tokens, counted.usage.output_tokens)
            relay.facts.counted = counted._replace(usage=replace(counted.usage, reasoning_tokens=reasoning))
        relay.check_no_error()
        return WireResponse(kind, text, translated=True, dropped=translation.dropped)


FIELDS: Mapping[str, frozenset[str]] = {
    path: frozenset(fields.split())
    for path, fields in {
        CHAT: """messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
            max_tokens modalities n parallel_tool_calls prediction presence_penalty prompt_cache_key
            prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store
            stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options""",
        COMPLETIONS: """prompt best_of echo frequency_penalty logit_bias logprobs max_tokens n presence_penalty seed
            stop stream stream_options suffix temperature top_p user""",
        RESPONSES: """input include instructions max_output_tokens max_tool_calls parallel_tool_calls
            prompt_cache_key prompt_cache_retention reasoning safety_identifier service_tier store stream
            stream_options temperature text tool_choice tools top_logprobs top_p truncation user""",
        MESSAGES: """messages max_tokens context_management output_config service_tier stop_sequences stream system
            temperature thinking tool_choice tools top_k top_p""",
        EMBEDDINGS: "input dimensions encoding_format user",
    }.items()
}
"""The fields of each dialect that reach litellm, beside `model`.

From the API references of OpenAI and Anthropic. Left out are those with a name or a meaning of litellm's own
(`metadata`, `fallbacks`, `prompt` of responses), and those that only the provider itself could follow (`conversation`,
`previous_response_id`, `background`, `container`, `mcp_servers`).
"""

_FUNCTIONS = {
    CHAT: "acompletion",
    COMPLETIONS: "atext_completion",
    RESPONSES: "aresponses",
    MESSAGES: "anthropic_messages",
    EMBEDDINGS: "aembedding",
}


class Translation:
    """A request in a dialect that the provider doesn't speak: litellm translates both ways. `timeout` is in seconds.

        document = await Translation(route, "/messages", {"messages": […], "max_tokens": 64}, timeout=60).answer()

    litellm takes a request as keyword arguments, among its own for the address, the key, the provider, mock answers and
    retries. So only `FIELDS` of a body reach it, and an agent can't say where the key goes. Some of their values name
    an address (a picture, a tool's server): the provider may fetch it, and this machine doesn't (providers.py).

    Its methods raise an error of litellm, `BadAnswer`, or `HTTPFailure` for a dialect that litellm doesn't have.
    """

    def __init__(self, route: providers.Route, path: str, body: Mapping[str, Any], timeout: float) -> None:
        self._route, self._path, self._timeout = route, path, timeout
        known = FIELDS.get(path, frozenset(body))
        self.dropped = tuple(sorted(body.keys() - known - {"model"}))
        """The fields of the request that aren't sent."""
        self._fields = {name: value for name, value in body.items() if name in known}
        self._exchange = providers.Exchange(keeps=path in (MESSAGES, RESPONSES))

    async def answer(self) -> Mapping[str, Any]:
        """The answer as JSON."""
        return _as_json(await self._call())

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The answer as server-sent events, each whole."""
        is_chat = self._path in (CHAT, COMPLETIONS)
        events = aiter(await self._call(**({"stream_options": {"include_usage": True}} if is_chat else {})))
        while True:
            try:
                with providers.exchange(self._exchange):  # some providers' requests are sent only for the first event
                    event = await anext(events, None)
            except MemoryError:  # this machine's fault, not the provider's
                raise
            except Exception as error:  # whatever litellm raises over an answer of another form
                if isinstance(error, provider_errors.expected()):
                    raise
                raise BadAnswer(f"a stream that can't be translated: {_said(error)}") from error
            if event is None:
                break
            if isinstance(event, bytes):  # Anthropic's events come as they are sent
                yield event
                continue
            document = _as_json(event)
            name = f"event: {document['type']}\n" if not is_chat and "type" in document else ""
            yield f"{name}data: {json.dumps(document)}\n\n".encode()
        if is_chat:
            yield b"data: [DONE]\n\n"

    def facts_of_answer(self) -> AnswerFacts:
        """The facts of what the provider sent: a dialect may have no place for its reasoning tokens or its failure."""
        facts = AnswerFacts()
        for answer in self._exchange.answers():
            for event in documents_of(answer):
                facts.read(event)
            with suppress(ValueError):
                if isinstance(document := load_json(answer), dict):
                    facts.read(document)
        return facts

    async def _call(self, **options: Any) -> Any:
        if self._path not in _FUNCTIONS:
            raise HTTPFailure(404, f"{self._route.provider} has no {self._path}", {})
        litellm = await providers.litellm_loaded()
        litellm.use_chat_completions_url_for_anthropic_messages = True  # else it asks for /responses, which is rarer
        fields = deepcopy({**self._fields, **options})
        if self._path == RESPONSES:
            fields["use_chat_completions_api"] = True
        with providers.exchange(self._exchange):
            try:
                return await providers.call_litellm(_FUNCTIONS[self._path], self._route, self._timeout, **fields)
            except MemoryError:
                raise
            except Exception as error:  # litellm checks few values, of a request or of an answer
                if not self._exchange.answered and provider_errors.is_untranslatable(error):
                    raise HTTPFailure(400, f"the request can't be translated: {_said(error)}", {}) from error
                if isinstance(error, provider_errors.expected()):
                    raise
                raise BadAnswer(f"an answer that can't be translated: {_said(error)}") from error


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _as_json(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Mapping):
        return dict(answer)
    document: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True)
    return document
