"""Pass an external agent's request on to the provider, unchanged, and read the cost of the answer.

    client = WireClient("openai/gpt-4o-mini", timeout=120, connect_timeout=10)
    completion = await client.send(route, WireRequest("/chat/completions", body), request)
    completion.wire.body    # as the provider sent it

Only `stream_options.include_usage` is added, unless the endpoint refuses it, and the event that it causes is hidden
again. A provider that doesn't speak the dialect gets the request translated by litellm (translation.py).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

import anyio

from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted import provider_errors, providers, translation
from rewoo_bench.models.hosted.completions import cost_of
from rewoo_bench.models.hosted.dialects import (
    COUNTING,
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
    HEADERS_OF_USER,
    LONGEST_BODY,
    BadAnswer,
    Endpoint,
    EventStream,
    HTTPFailure,
    documents_of,
    is_done,
    load_json,
    read_body,
)
from rewoo_bench.models.hosted.providers import Route
from rewoo_bench.models.hosted.responses import salvage_usage
from rewoo_bench.models.hosted.transport import Answer
from rewoo_bench.system.crashes import harness_fault
from rewoo_bench.text.redaction import ends_within, is_credential_name, of_environment, redact, sent_in, without
from rewoo_bench.text.tokens import count_messages, count_tokens
from rewoo_bench.types import (
    BAD_GATEWAY,
    NO_FIELDS,
    OF_THE_ACCOUNT,
    Bill,
    CallCost,
    Completion,
    ErrorResponse,
    Message,
    Request,
    Usage,
    WireRequest,
    WireResponse,
)

if TYPE_CHECKING:
    import aiohttp


# The tokens and the cost of an external agent's call, from what the provider has sent of its answer.


def completion_of(
    route: Route, path: str, messages: Sequence[Message], facts: AnswerFacts, text: str, response: WireResponse
) -> Completion:
    """A whole answer; its usage is estimated where the provider sent none. `text` is its text without credentials."""
    if path in COUNTING:
        return Completion("", call_cost=CallCost(cost_usd=0.0), wire=response)  # it is free
    usage, call_cost = facts.usage, None
    if usage is None or not usage.input_tokens or (text and not usage.output_tokens and path != EMBEDDINGS):
        usage = Usage(input_tokens=count_messages(messages), output_tokens=count_tokens(text))
        call_cost = cost_of(usage, "estimated", route, Answer({}))
    call_cost = call_cost or cost_of(usage, "provider", route, Answer({}))
    return Completion(text, usage, facts.finish_reason or "stop", call_cost=call_cost, wire=response)


def least_cost(route: Route, messages: Sequence[Message], facts: AnswerFacts) -> CallCost:
    """The cost of a call that broke off: the usage so far, at least the prompt and the text that arrived."""
    written = count_tokens(facts.text)
    if route.is_ours and not facts.has_begun:
        return CallCost()
    if facts.usage and facts.usage.input_tokens:
        usage = facts.usage
        if usage.output_tokens >= written:
            return cost_of(usage, "provider", route, Answer({}))
        usage = Usage(usage.input_tokens, usage.cached_input_tokens, written, 0, usage.cache_write_tokens)
        return cost_of(usage, "estimated", route, Answer({}))
    return cost_of(Usage(input_tokens=count_messages(messages), output_tokens=written), "estimated", route, Answer({}))


def salvaged_cost(error: BadAnswer, route: Route) -> CallCost | None:
    """The cost of an answer that can't be read, from the usage in its text."""
    usage = salvage_usage(error.text)
    return None if usage is None else cost_of(usage, "provider", route, Answer({}))


# Which headers and query parameters pass between an external agent and the provider.
#
#     passed_on({"Idempotency-Key": "7", "Authorization": "Bearer q-…", "Cookie": "…"}.items(), key="q-…")
#     # (("Idempotency-Key", "7"),)
#
# An agent chooses no address, no key and no model by them. `OpenAI-Organization` and `OpenAI-Project` are the agent's
# own choice under the user's key, unless the user's environment has one. A header that isn't listed doesn't pass.


_PASSED = re.compile(r"(openai|anthropic|x)-.+|(x-)?idempotency-key|request-id|retry-after(-ms)?")
# Names that hold credentials, name hops, or choose where a request goes.
_WITHHELD = re.compile(
    r"""x-(amz|goog|litellm|portkey|envoy|original)(-.*)? | (.*[-_.])?(
        auth\w* | api-?key | key | token | secret | signature | jwt | csrf
        | passw(or)?d | credentials? | cookie | connection | forward(ed)? | host(name)? | ip | origin | referr?er
        | proxy | url | uri | target | upstream | backend | endpoint | gateway | override | rewrite | rout(e|er|ing)
        | provider | model | deployment | base | api-?base | tenant | account
    )([-_.].*)?""",
    re.VERBOSE,
)
_MAY_PASS = frozenset({"idempotency-key", "x-idempotency-key"})
_OURS = "x-should-retry"  # the gateway says it: it has tried again already


def passed_on(headers: Iterable[tuple[str, str]], *, key: str) -> tuple[tuple[str, str], ...]:
    """The headers of an agent's request that the provider gets. `key` is the question's."""
    given = list(headers)
    hops = {each.strip().lower() for name, value in given if name.lower() == "connection" for each in value.split(",")}
    return tuple(
        (name, value)
        for name, value in given
        if _passes(name.lower()) and name.lower() not in hops and key not in value and _is_plain(value)
    )


def passed_back(headers: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """The headers of a provider's answer that the agent gets: request ids and rate limits, but no account's name."""
    return {
        name.lower(): without(value, secrets)
        for name, value in headers.items()
        if _passes(name.lower()) and name.lower() not in OF_THE_ACCOUNT and _is_plain(value)
    }


def passed_query(query: str, *, key: str) -> str:
    """The query of an agent's request that the provider gets."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return urlencode([(name, value) for name, value in pairs if not _is_withheld(name.lower()) and key not in value])


@lru_cache(maxsize=1024)  # every request of an SDK has the same names
def _passes(name: str) -> bool:
    return name in _MAY_PASS or (_PASSED.fullmatch(name) is not None and not _is_withheld(name) and name != _OURS)


def _is_withheld(name: str) -> bool:
    return _WITHHELD.fullmatch(name) is not None or is_credential_name(re.sub(r"\W", "_", name))


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable()


ANTHROPIC = "https://api.anthropic.com/v1"
_MISSING = frozenset({404, 405, 501})  # of an endpoint that doesn't speak a dialect
_UNFIT = frozenset({400, 422})  # of one that doesn't know a parameter
_JSON, _EVENTS = "application/json", "text/event-stream"
_OWN_OPTION = re.compile("stream_options|include_usage")  # in an error: the endpoint doesn't know what we have added
_ERROR_FIELDS = ("type", "param", "code")  # of a provider's error object, beside its message
_LONGEST_FIELD = 200  # characters


@dataclass(slots=True)
class _Progress:
    """What has arrived of an answer."""

    facts: AnswerFacts
    secrets: frozenset[str]
    """Credentials that the request was sent with: a server may repeat them in its answer."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those of the answer that the agent gets."""
    hides_usage: bool = False
    """Whether the agent didn't ask for the event with the usage."""
    relayed: list[bytes] = field(default_factory=list)
    """The events of a stream, as the agent gets them."""
    is_relayed: bool = False
    """Whether the agent has got a part of it, so that no other attempt may be made."""
    held: list[bytes] = field(default_factory=list)
    """Events whose text may end within a credential: they wait for the next one."""
    last_text: str = ""
    """The end of the text so far."""

    @property
    def text(self) -> str:
        """The events that were relayed."""
        return b"".join(self.relayed).decode("utf-8", "replace")

    def may_go_on(self, text: str) -> bool:
        """Whether the stream may be relayed so far, with one more text. Raises `BadAnswer` for a credential in pieces.

        One that stands in a single event is replaced there.
        """
        joined = self.last_text + without(text, self.secrets)
        if without(joined, self.secrets) != joined:
            raise BadAnswer("a stream that repeats in pieces the key that it was asked with")
        self.last_text = joined[-max(map(len, self.secrets), default=1) :]
        return not ends_within(joined, self.secrets)


class WireClient:
    """The connections of one model for requests of external agents. `timeout` (seconds) is for a whole call."""

    def __init__(self, name: str, *, timeout: float, connect_timeout: float, api_key: str | None = None) -> None:
        self.name = name
        self._timeout = timeout
        self._connect_timeout = min(timeout, connect_timeout)
        self._api_key = api_key
        self._endpoint: Endpoint | None = None
        self._sent: frozenset[str] | None = None
        self._missing: set[str] = set()  # paths that the endpoint doesn't have
        self.adds_usage = True
        """Whether streams are asked for their usage; False where the endpoint refuses that."""

    async def send(self, route: providers.Route, wire: WireRequest, request: Request) -> Completion:
        """The provider's answer. Raises `ModelError`.

        The bill gets a request that the endpoint refused for what we had added, and what a cancelled one has cost.
        """
        progress, bill = _Progress(AnswerFacts(), self._secrets(route)), request.bill
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._answer(route, wire, progress, bill)
        except TimeoutError:
            failure = provider_errors.no_answer(self.name, self._timeout)
            raise _broken(failure, route, request, progress, None) from None
        except provider_errors.expected() as error:
            if (fault := harness_fault(error, self.name)) is not None:
                raise fault from None
            if isinstance(error, BadAnswer):
                failure = provider_errors.bad_answer(self.name, error, progress.secrets)
                raise _broken(failure, route, request, progress, salvaged_cost(error, route)) from None
            if isinstance(error, HTTPFailure):
                progress.headers = passed_back(error.headers, progress.secrets)
            failure = provider_errors.to_model_error(error, self.name, timeout=self._timeout, secrets=progress.secrets)
            raise _broken(failure, route, request, progress, None, _fields_of(error, progress.secrets)) from None
        except anyio.get_cancelled_exc_class():
            bill.add(least_cost(route, request.messages, progress.facts))
            raise
        text = without(progress.facts.text, progress.secrets)
        return completion_of(route, wire.path, request.messages, progress.facts, text, response)

    async def aclose(self) -> None:
        """Closes the connections; the next call opens new ones."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.aclose()
        await providers.release_shared_pool(self)

    async def _answer(
        self, route: providers.Route, request: WireRequest, progress: _Progress, bill: Bill
    ) -> WireResponse:
        if self._is_native(route, request.path):
            try:
                return await self._native(route, request, progress, bill)
            except HTTPFailure as error:
                if error.status_code not in _MISSING or not _may_be_missing(request.path):
                    raise
                self._missing.add(request.path)
        return await self._translated(route, request, progress)

    def _is_native(self, route: providers.Route, path: str) -> bool:
        if route.provider == "anthropic":
            return path in OF_ANTHROPIC
        return route.provider in providers.OPENAI_FORM and path not in self._missing

    async def _native(
        self, route: providers.Route, request: WireRequest, progress: _Progress, bill: Bill
    ) -> WireResponse:
        body, progress.hides_usage = with_usage(request) if self.adds_usage else (request.body, False)
        try:
            return await self._exchange(route, request, body, progress)
        except HTTPFailure as error:
            if not progress.hides_usage or error.status_code not in _UNFIT or not _OWN_OPTION.search(str(error)):
                raise
        self.adds_usage, progress.hides_usage = False, False
        bill.add()
        return await self._exchange(route, request, request.body, progress)

    async def _exchange(
        self, route: providers.Route, request: WireRequest, body: bytes, progress: _Progress
    ) -> WireResponse:
        """The answer to a body, a stream given to the agent as it arrives."""
        headers = _headers(route, request)
        async with self._open(route).open(request.path, body, headers, request.query) as response:
            kind, progress.headers = response.content_type, passed_back(response.headers, progress.secrets)
            if request.on_headers is not None:
                request.on_headers(progress.headers)
            if kind != _EVENTS:
                text = (await read_body(response)).decode("utf-8-sig", "replace")
                progress.facts.read(_document(text))
                _check_no_error(progress.facts)
                return WireResponse(kind, without(text, progress.secrets), headers=progress.headers)
            await self._relay_all(response, request, progress)
            return WireResponse(kind, progress.text, headers=progress.headers)

    async def _relay_all(self, response: aiohttp.ClientResponse, request: WireRequest, progress: _Progress) -> None:
        """Gives the agent each event of a stream as it arrives."""
        stream, size = EventStream(), 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > LONGEST_BODY:
                raise BadAnswer(f"a stream of more than {LONGEST_BODY >> 20} MB")
            for event in stream.add(piece):
                await self._relay(event, request, progress)
        if rest := stream.rest:
            await self._relay(rest, request, progress)
        await self._release(request, progress)
        _check_whole(progress.facts)

    async def _relay(self, event: bytes, request: WireRequest, progress: _Progress) -> None:
        documents = list(documents_of(event))
        text = "".join(map(progress.facts.read, documents))
        progress.facts.is_complete |= is_done(event)
        if not progress.is_relayed:
            _check_no_error(progress.facts)
        if progress.hides_usage and documents and all(map(is_usage_only, documents)):
            return
        progress.held.append(without(event.decode("utf-8", "replace"), progress.secrets).encode())
        if progress.may_go_on(text):
            await self._release(request, progress)

    async def _release(self, request: WireRequest, progress: _Progress) -> None:
        while progress.held:
            event = progress.held.pop(0)
            progress.relayed.append(event)
            if request.on_bytes is not None:
                progress.is_relayed = True
                await request.on_bytes(event)

    async def _translated(self, route: providers.Route, request: WireRequest, progress: _Progress) -> WireResponse:
        providers.use_shared_pool(self)
        body = json.loads(request.body)
        dropped = tuple(translation.untranslated(request.path, body))
        exchange = providers.Exchange(keeps=request.path == MESSAGES)
        if not body.get("stream") or "stream" in dropped:
            document = await translation.send(route, request.path, body, timeout=self._timeout, exchange=exchange)
            progress.facts.read(document)
            _add_reasoning(progress.facts, exchange)
            _check_no_error(progress.facts)
            text = without(json.dumps(document), progress.secrets)
            return WireResponse(_JSON, text, translated=True, dropped=dropped)
        events, progress.hides_usage = EventStream(), not asks_for_usage(body)
        stream = translation.stream(route, request.path, body, timeout=self._timeout, exchange=exchange)
        async with aclosing(stream) as blocks:
            async for block in blocks:
                for event in events.add(block):
                    await self._relay(event, request, progress)
        if events.rest:
            await self._relay(events.rest, request, progress)
        await self._release(request, progress)
        _add_reasoning(progress.facts, exchange)
        _check_whole(progress.facts)
        return WireResponse(_EVENTS, progress.text, translated=True, dropped=dropped)

    def _open(self, route: providers.Route) -> Endpoint:
        if self._endpoint is None:
            is_anthropic = route.provider == "anthropic"  # its key has a header of its own
            base = _anthropic_base(route.api_base) if is_anthropic else route.api_base
            key = None if is_anthropic else route.api_key or "none"
            self._endpoint = Endpoint(base, key=key, connect_timeout=self._connect_timeout)
        return self._endpoint

    def _secrets(self, route: providers.Route) -> frozenset[str]:
        if self._sent is None:
            self._sent = sent_in(route.api_base, (self._api_key, route.api_key)) | of_environment()
        return self._sent


def _broken(
    error: ModelError,
    route: providers.Route,
    request: Request,
    progress: _Progress,
    cost: CallCost | None,
    fields: Mapping[str, str | int] = NO_FIELDS,
) -> ModelError:
    """The error of a call, with its cost and with what the agent gets for it."""
    error.call_cost = least_cost(route, request.messages, progress.facts) if progress.facts.has_begun else cost
    begun = progress.text if progress.is_relayed else ""
    error.response = ErrorResponse(error.status or BAD_GATEWAY, fields, begun, progress.headers)
    return error


def _add_reasoning(facts: AnswerFacts, exchange: providers.Exchange) -> None:
    """Books the reasoning tokens that a translation has lost."""
    if facts.usage is not None and not facts.usage.reasoning_tokens:
        reasoning = min(translation.reasoning_tokens(exchange), facts.usage.output_tokens)
        facts.usage = replace(facts.usage, reasoning_tokens=reasoning)


def _may_be_missing(path: str) -> bool:
    """Whether litellm can answer in this dialect in the provider's place."""
    return path in (MESSAGES, RESPONSES)


def _anthropic_base(api_base: str | None) -> str:
    """The address with the version of the API, which litellm adds where it is missing."""
    base = (api_base or ANTHROPIC).rstrip("/").removesuffix(MESSAGES)
    return base if base.endswith("/v1") else f"{base}/v1"


def _fields_of(error: Exception, secrets: frozenset[str]) -> dict[str, str | int]:
    """`type`, `param` and `code` of a provider's error object."""
    body = error.body if isinstance(error, HTTPFailure) else None
    given = {name: (body or {}).get(name) for name in _ERROR_FIELDS}
    texts = {name: redact(value, secrets)[:_LONGEST_FIELD] for name, value in given.items() if isinstance(value, str)}
    return {name: value for name, value in given.items() if type(value) is int} | texts


def _headers(route: providers.Route, request: WireRequest) -> dict[str, str]:
    of_user = {header.lower() for name, header in HEADERS_OF_USER.items() if os.environ.get(name)}
    headers = {name: value for name, value in request.headers if name.lower() not in of_user}
    if route.provider == "anthropic":
        headers["x-api-key"] = route.api_key or os.environ.get("ANTHROPIC_API_KEY", "none")
        headers.setdefault("anthropic-version", "2023-06-01")
    return headers


def _document(text: str) -> Mapping[str, Any]:
    """The JSON object of an answer. Raises `BadAnswer`."""
    try:
        document = load_json(text)
    except ValueError as error:
        raise BadAnswer(f"an answer that isn't JSON: {error}", text) from None
    if not isinstance(document, dict):
        raise BadAnswer(f"an answer that is not a JSON object but {type(document).__name__}", text)
    return document


def _check_no_error(facts: AnswerFacts) -> None:
    """Raises `BadAnswer` for an error in a response with status 200."""
    if facts.error:
        raise BadAnswer(f"an error in place of an answer: {facts.error}")


def _check_whole(facts: AnswerFacts) -> None:
    """Raises `BadAnswer` for a stream that broke off: with an error, or without the event that ends it."""
    if facts.error:
        raise BadAnswer(f"an error in the middle of a stream: {facts.error}")
    if not facts.is_complete:
        raise BadAnswer("a stream that ended in the middle")
