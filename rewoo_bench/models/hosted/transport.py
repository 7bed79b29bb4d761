"""Send a request: directly to an OpenAI-compatible endpoint, else through litellm; read a stream as it arrives; and
make a completion of the response.

transport = Transport("openai/tiny", timeout=120, connect_timeout=10)
answer = await transport.send(route, {"model": "tiny", "messages": […]})
answer.document["choices"][0]["message"]["content"]
await transport.aclose()

stream = ReplyStream(print)
stream.add(b'data: {"choices": [{"delta": {"content": "Par"}}]}\\n\\n')         # prints Par
stream.add(b'data: {"choices": [{"delta": {"content": "is"}, "finish_reason": "stop"}]}\\n\\n')
stream.document()   # {"choices": [{"message": {"content": "Paris", …}, "finish_reason": "stop"}]}
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted import providers
from rewoo_bench.models.hosted.dialects import AnswerFacts
from rewoo_bench.models.hosted.http_endpoint import BadAnswer, Endpoint, documents_of, is_done
from rewoo_bench.models.hosted.provider_errors import to_model_error, unreadable_answer
from rewoo_bench.models.hosted.responses import (
    ParsedResponse,
    answered_model,
    count_usage,
    cut_at_stop,
    error_in,
    read_content,
    read_response,
    read_thoughts,
)
from rewoo_bench.text import openai_format
from rewoo_bench.text.redaction import of_environment, sent_in
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import CallCost, Completion, Request, Usage, UsageSource

_ANTHROPIC = "https://api.anthropic.com/v1"
_LONGEST_SHOWN = 100_000  # characters; each piece shows the whole text again, so the time would grow with the square
# Arguments of litellm; everything else is passed on to the provider unchanged.
_ARGUMENTS = frozenset(
    {"messages", "temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "stop"}
    | {"reasoning_effort", "tools", "response_format", "stream", "stream_options"}
)


class ReplyStream:
    """What has arrived of one answer, in the form of the OpenAI API. `show` gets its text so far, thoughts between
    marks included. Tool calls aren't streamed: a request with tools is answered whole.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._size = 0
        self._is_chat = True
        self._has_choices = False
        self._facts = AnswerFacts()
        self._is_done = False

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def written(self) -> str:
        """Everything that the model wrote: thoughts and text."""
        return "\n".join(filter(None, ["".join(self._thoughts), self.text]))

    @property
    def usage(self) -> Usage | None:
        """The usage so far, that of the last event that has one: providers count cumulatively."""
        return self._facts.usage

    def add(self, event: bytes) -> None:
        """Adds one server-sent event. Raises `BadAnswer` for an error, or one in another form."""
        self._is_done |= is_done(event)
        for document in documents_of(event):
            self.add_document(document)

    def add_document(self, document: Mapping[str, Any]) -> None:
        """Adds the document of one event. Raises `BadAnswer`."""
        self._facts.read(document)
        if self._facts.error:
            raise BadAnswer(f"an error in the middle of a stream: {self._facts.error}")
        try:
            choice = next((each for each in document.get("choices") or () if not each.get("index")), None)
            if choice is None:
                return
            delta = choice.get("delta")
            self._has_choices, self._is_chat = True, delta is not None
            fields: Mapping[str, Any] = choice if delta is None else delta
            text, aside = read_content(fields.get("text" if delta is None else "content"))
            self._thoughts += [thought for thought in (*dict.fromkeys(read_thoughts(fields)), aside) if thought]
        except (AttributeError, LookupError, TypeError, ValueError):
            raise BadAnswer("an event that doesn't match the OpenAI schema") from None
        if text:
            self._texts.append(text)
            self._size += len(text)
            if self._size <= _LONGEST_SHOWN:
                self._show(self.text)

    def document(self) -> dict[str, Any]:
        """The whole answer. Raises `BadAnswer` where the stream broke off."""
        reason = self._facts.finish_reason
        if not (reason or self._is_done):
            raise BadAnswer("a stream that ended in the middle")
        fields = {"reasoning_content": "".join(self._thoughts) or None}
        reply = {"message": {"content": self.text, **fields}} if self._is_chat else {"text": self.text, **fields}
        choice = {"index": 0, "finish_reason": reason or None, **reply}
        choices = [choice] if self._has_choices else []
        return {"model": self._facts.model or None, "choices": choices, "usage": self._facts.counts or None}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response in the OpenAI form. `details` is litellm's usage object, if the call went through litellm."""

    document: Mapping[str, Any]
    details: Any = None


class Transport:
    """The connections of the model `name`, which belong to one event loop; `aclose` closes them.

    `timeout` (seconds) is for a whole call, `connect_timeout` for reaching the server.
    """

    def __init__(self, name: str, *, timeout: float, connect_timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self._connect_timeout = min(timeout, connect_timeout)
        self._endpoint: Endpoint | None = None
        self._sent: frozenset[str] | None = None

    async def send(self, route: providers.Route, body: Mapping[str, Any], stream: ReplyStream | None = None) -> Answer:
        """The response. Raises `TimeoutError`, or one of `provider_errors.expected()`.

        `stream` gets the answer as it arrives, where `body` asks for a stream and the server sends one.
        """
        async with asyncio.timeout(self.timeout):  # anyio's takes nearly three times as long
            if route.provider in providers.OPENAI_FORM:
                path = "/completions" if "prompt" in body else "/chat/completions"
                whole = await self.endpoint(route).ask(path, body, stream.add if stream else None)
                return Answer(stream.document() if stream and whole is None else whole or {})
            providers.use_shared_pool(self)
            # Copied, since litellm changes the schemas of tools for some providers.
            arguments = deepcopy({name: value for name, value in body.items() if name in _ARGUMENTS})
            turns = body.get("messages") or [{"role": "user", "content": body["prompt"]}]
            # litellm would replace an empty text next to tool calls by words of its own.
            arguments["messages"] = [{**turn, "content": turn["content"] or None} for turn in turns]
            others = {name: body[name] for name in body if name not in _ARGUMENTS and name not in ("model", "prompt")}
            with providers.exchange():
                response = await providers.call_litellm(
                    "acompletion", route, self.timeout, drop_params=True, extra_body=others or None, **arguments
                )
                if stream is None:
                    return Answer(response.model_dump(), getattr(response, "usage", None))
                details = None
                async for chunk in response:
                    details = getattr(chunk, "usage", None) or details
                    stream.add_document(chunk.model_dump())
            return Answer(stream.document(), details)

    def endpoint(self, route: providers.Route) -> Endpoint:
        """The connections to a provider that is called directly: in the OpenAI form, or Anthropic's.

        Anthropic's key has a header of its own, and its address gets the version of the API where that is missing.
        """
        if self._endpoint is None:
            base, key = route.api_base, route.api_key or "none"
            if route.provider == "anthropic":
                base, key = (base or _ANTHROPIC).rstrip("/").removesuffix("/messages"), ""
                base = base if base.endswith("/v1") else f"{base}/v1"
            self._endpoint = Endpoint(base, key=key, connect_timeout=self._connect_timeout)
        return self._endpoint

    def secrets(self, route: providers.Route) -> frozenset[str]:
        """The request's credentials in every form in which a server may send them back."""
        if self._sent is None:
            self._sent = sent_in(route.api_base, (route.api_key,)) | of_environment()
        return self._sent

    def failure(
        self, error: Exception, request: Request, route: providers.Route, usage: Usage | None, written: str
    ) -> ModelError:
        """The error of a failed call, with the least that it has cost.

        `usage` and `written` have arrived before. A response with status 200 that can't be read costs at least its
        prompt, and so does a request that wasn't answered in time: the server goes on with it.
        """
        failure = to_model_error(error, self.name, timeout=self.timeout, secrets=self.secrets(route))
        bad = unreadable_answer(error)
        if written or usage != Usage():
            failure.call_cost = cost_so_far(request, route, usage, written)
        elif bad is not None and bad.call_cost is not None:
            failure.call_cost = bad.call_cost
        elif failure.timed_out or (bad is not None and bad.text.strip()):
            failure.call_cost = cost_so_far(request, route)
        return failure

    async def aclose(self) -> None:
        """Closes the connections. The next call opens new ones."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            await endpoint.aclose()
        await providers.release_shared_pool(self)


# From an endpoint's response to a completion: its text cut at the stop strings, its tokens and its price.
#
# The cost of every response is counted, also of one without choices and of one that can't be read.


TRUNCATED = "reasoning_truncated"


def read_completion(
    answer: Answer, request: Request, body: Mapping[str, Any], route: providers.Route, *, begins_in_thought: bool
) -> tuple[Completion, ParsedResponse]:
    """The completion in the response to the request `body`, and its reply as it was read.

    Raises `BadAnswer` with the cost of the response.

    `begins_in_thought`: this endpoint's replies begin inside a thought. A reply that was cut before the closing
    mark is a thought then, although it has no mark.
    """
    document = answer.document
    counted = count_usage(document.get("usage"))
    usage = counted.usage if counted else None
    source: UsageSource = counted.source if counted else "estimated"
    choices = document.get("choices")
    try:
        if error := error_in(document):
            raise BadAnswer(f"an error in place of an answer: {error}")
        if not choices:
            raise BadAnswer("an answer without choices")
        try:
            reply = read_response(choices[0])
        except (AttributeError, LookupError, TypeError, ValueError):
            raise BadAnswer("a response that doesn't match the OpenAI schema") from None
    except BadAnswer as bad:
        bad.call_cost = cost_of(usage or Usage(), "provider", route, answer.details)
        raise
    if begins_in_thought and reply.finish_reason == "length" and not reply.thoughts and not reply.late_close:
        reply = replace(reply, text="", thoughts=reply.text, cut_thought=True)
    text, rest = cut_at_stop(reply.text, request.stop)
    # Every prompt has tokens, and so has every answer that isn't empty: a zero means a missing count.
    written = reply.thoughts or reply.text or reply.tool_calls
    if usage is None or not usage.input_tokens or (written and not usage.output_tokens):
        said, source = "\n".join(filter(None, (reply.thoughts, reply.text))), "estimated"
        if "prompt" in body:
            usage = openai_format.estimate_transcript(request.messages, said)
        else:
            usage = openai_format.estimate_chat(request.messages, request.tools, said, reply.tool_calls)
    elif counted and counted.is_reasoning_alone and (reply.text or reply.tool_calls):
        visible = openai_format.estimate_chat(request.messages, request.tools, reply.text, reply.tool_calls)
        usage, source = usage + Usage(output_tokens=visible.output_tokens), "estimated"
    finish_reason = reply.finish_reason
    if rest:
        finish_reason = "stop"
    elif finish_reason == "length" and not (text or reply.tool_calls) and (usage.output_tokens or reply.cut_thought):
        finish_reason = TRUNCATED
    completion = Completion(
        text,
        usage,
        finish_reason,
        reply.tool_calls,
        cost_of(usage, source, route, answer.details),
        reply.thoughts,
        count_tokens(rest) if rest else 0,
        reply.repairs,
        answered_model="" if route.is_ours else answered_model(document),
    )
    return completion, reply


def cost_so_far(request: Request, route: providers.Route, usage: Usage | None = None, written: str = "") -> CallCost:
    """The least cost of a request without a whole answer: the usage so far, at least the prompt and what was `written`.

    Our own server costs nothing before it answers.
    """
    estimate = openai_format.estimate_chat(request.messages, request.tools, written, ())
    if usage is not None and usage.input_tokens:
        if usage.output_tokens >= estimate.output_tokens:
            return cost_of(usage, "provider", route)
        estimate = replace(usage, output_tokens=estimate.output_tokens, reasoning_tokens=0)
    elif route.is_ours and not written:
        return CallCost()
    return cost_of(estimate, "estimated", route)


def cost_of(usage: Usage, source: UsageSource, route: providers.Route, details: Any = None) -> CallCost:
    """The cost of an answer with this usage. `details` is litellm's usage object, if the call went through litellm."""
    cost = providers.price(route, usage, details if source == "provider" else None) if usage != Usage() else None
    return CallCost(billed=usage, cost_usd=cost, usage_source=source)
