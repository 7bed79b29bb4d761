"""Answer a request in a dialect that the provider doesn't speak: litellm translates both ways.

    document = await Translation(route, "/messages", {"messages": […], "max_tokens": 64}, timeout=60).answer()

litellm takes a request as keyword arguments, among its own for the address, the key, the provider, mock answers and
retries. So only `FIELDS` of a body reach it, and an agent can't say where the key goes. Some of their values name an
address (a picture, a tool's server): the provider may fetch it, and this machine doesn't (providers.py).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import suppress
from typing import Any

from rewoo_bench.models.hosted import provider_errors, providers
from rewoo_bench.models.hosted.dialects import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    LAST_EVENTS,
    MESSAGES,
    RESPONSES,
    AnswerFacts,
)
from rewoo_bench.models.hosted.http_endpoint import BadAnswer, EventStream, HTTPFailure, documents_of
from rewoo_bench.text.escaping import replace_surrogates

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
            previous_response_id prompt_cache_key prompt_cache_retention reasoning safety_identifier service_tier store
            stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user""",
        MESSAGES: """messages max_tokens context_management output_config service_tier stop_sequences stream system
            temperature thinking tool_choice tools top_k top_p""",
        EMBEDDINGS: "input dimensions encoding_format user",
    }.items()
}
"""The fields of each dialect that reach litellm, beside `model`.

From the API references of OpenAI and Anthropic. Left out are those with a name or a meaning of litellm's own
(`metadata`, `fallbacks`, `prompt` of responses), and those that only the provider itself could follow (`conversation`,
`background`, `container`, `mcp_servers`).
"""

_FUNCTIONS = {
    CHAT: "acompletion",
    COMPLETIONS: "atext_completion",
    RESPONSES: "aresponses",
    MESSAGES: "anthropic_messages",
    EMBEDDINGS: "aembedding",
}


class Translation:
    """A request in the dialect `path`, which litellm asks of the provider. `timeout` is in seconds.

    Its methods raise an error of litellm, `BadAnswer`, or `HTTPFailure` for a dialect that litellm doesn't have.
    """

    def __init__(self, route: providers.Route, path: str, body: Mapping[str, Any], timeout: float) -> None:
        self._route, self._path, self._timeout = route, path, timeout
        known = FIELDS.get(path, frozenset(body))
        self.dropped = tuple(sorted(body.keys() - known - {"model"}))
        """The fields of the request that aren't sent."""
        self._fields = {name: value for name, value in body.items() if name in known}
        self._exchange = providers.Exchange(keeps=path == MESSAGES)

    async def answer(self) -> Mapping[str, Any]:
        """The answer as JSON."""
        return _as_json(await self._call())

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The answer as server-sent events, each whole."""
        is_chat = self._path in (CHAT, COMPLETIONS)
        events = aiter(await self._call(**({"stream_options": {"include_usage": True}} if is_chat else {})))
        items = _Items()
        while True:
            try:
                with providers.exchange(self._exchange):  # some providers' requests are sent only for the first event
                    event = await anext(events, None)
            except MemoryError:
                raise
            except Exception as error:
                if isinstance(error, provider_errors.expected()):
                    raise
                raise BadAnswer(f"a stream that can't be translated: {_said(error)}") from error
            if event is None:
                break
            if isinstance(event, bytes):  # Anthropic's events come as they are sent
                yield event
                continue
            document = _as_json(event)
            for each in items.in_order(document) if self._path == RESPONSES else (document,):
                name = f"event: {each['type']}\n" if self._path in (RESPONSES, MESSAGES) and "type" in each else ""
                yield f"{name}data: {json.dumps(each)}\n\n".encode()
        if is_chat:
            yield b"data: [DONE]\n\n"

    def reasoning_tokens(self) -> int:
        """The reasoning tokens that the provider counted: Anthropic's dialect has no place for them."""
        facts = AnswerFacts()
        for answer in self._exchange.answers():
            events = EventStream()
            for event in (*events.add(answer), events.rest):
                for document in documents_of(event):
                    facts.read(document)
            with suppress(ValueError, RecursionError):
                if isinstance(document := json.loads(answer), dict):
                    facts.read(document)
        return facts.usage.reasoning_tokens if facts.usage else 0

    async def _call(self, **options: Any) -> Any:
        if self._path not in _FUNCTIONS:
            raise HTTPFailure(404, f"{self._route.provider} has no {self._path}", {})
        litellm = await providers.litellm_loaded()
        litellm.use_chat_completions_url_for_anthropic_messages = True  # else it asks for /responses, which is rarer
        # It can't send half of a surrogate pair.
        fields = json.loads(replace_surrogates(json.dumps({**self._fields, **options}, ensure_ascii=False)))
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


class _Items:
    """The events of a response's stream, one item of its output after the other, as OpenAI sends them.

    litellm mixes the events of items, and ends a message behind the calls that follow it. A client that keeps one open
    item would lose the others.
    """

    def __init__(self) -> None:
        self._open: int | None = None
        self._waiting: dict[int, list[dict[str, Any]]] = {}  # events of later items, by their place in the output
        self._count = 0

    def in_order(self, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The events that may be sent now that this one has come."""
        item = document.get("output_index")
        if item is not None and self._open not in (None, item):
            self._waiting.setdefault(item, []).append(document)
            return
        if item is None and document.get("type") in LAST_EVENTS:
            self._open = None
            yield from self._released()
        yield self._numbered(document)
        if item is not None:
            self._open = None if document.get("type") == "response.output_item.done" else item
            yield from self._released()

    def _released(self) -> Iterator[dict[str, Any]]:
        while self._waiting and self._open is None:
            item = min(self._waiting)
            events = self._waiting.pop(item)
            self._open = None if events[-1].get("type") == "response.output_item.done" else item
            yield from map(self._numbered, events)

    def _numbered(self, document: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        return {**document, "sequence_number": self._count - 1}


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _as_json(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Mapping):
        return dict(answer)
    document: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True)
    return document
