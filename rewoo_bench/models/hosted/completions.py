"""From an endpoint's response to a completion: its text cut at the stop strings, its tokens and its price.

The cost of every response is counted, also of one without choices and of one that can't be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rewoo_bench.models.hosted import providers
from rewoo_bench.models.hosted.http_endpoint import BadAnswer
from rewoo_bench.models.hosted.responses import ParsedResponse, cut_at_stop, read_response, read_usage, salvage_usage
from rewoo_bench.models.hosted.transport import Answer, ReplyStream
from rewoo_bench.text import openai_format
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import CallCost, Completion, Request, Usage


@dataclass(frozen=True, slots=True)
class CompletionResult:
    """A completion, and facts of the reply that later requests depend on.

    `late_close`: the reply began inside a thought. `stopped_in_thought`: a stop string ended it inside one.
    """

    completion: Completion
    late_close: bool = False
    stopped_in_thought: bool = False
    ends_in_thought: bool = False


class Unreadable(BadAnswer):
    """A response that is JSON but doesn't match the schema. `call_cost` is its cost, as far as it is given."""

    def __init__(self, message: str, call_cost: CallCost) -> None:
        super().__init__(message)
        self.call_cost = call_cost


def read_answer(
    answer: Answer, request: Request, body: Mapping[str, Any], route: providers.Route, *, begins_in_thought: bool
) -> CompletionResult:
    """The completion in the response to the request `body`. Raises `Unreadable`.

    `begins_in_thought`: this endpoint's replies begin inside a thought. A reply that was cut before the closing
    mark is a thought then, although it has no mark.
    """
    document = answer.document
    usage = read_usage(document.get("usage"))
    choices = document.get("choices")
    if not choices:
        error = document.get("error")
        reason = error.get("message") if isinstance(error, Mapping) else error
        message = f"an error in place of an answer: {reason}" if reason else "an answer without choices"
        raise Unreadable(message, cost_of(usage or Usage(), "provider", route, answer))
    try:
        reply = read_response(choices[0])
    except (AttributeError, LookupError, TypeError, ValueError):
        message = "a response that doesn't match the OpenAI schema"
        raise Unreadable(message, cost_of(usage or Usage(), "provider", route, answer)) from None
    if begins_in_thought and reply.finish_reason == "length" and not reply.thoughts and not reply.late_close:
        reply = replace(reply, text="", thoughts=reply.text, cut_thought=True)
    text, rest = cut_at_stop(reply.text, request.stop)
    source: Literal["provider", "estimated"] = "provider"
    # Every prompt has tokens, and so has every answer that isn't empty: a zero means a missing count.
    written = reply.thoughts or reply.text or reply.tool_calls
    if usage is None or not usage.input_tokens or (written and not usage.output_tokens):
        usage, source = _estimate(request, body, reply), "estimated"
    completion = Completion(
        text,
        usage,
        _finish_reason(reply, text, rest, usage),
        reply.tool_calls,
        cost_of(usage, source, route, answer),
        reply.thoughts,
        count_tokens(rest) if rest else 0,
        reply.repairs,
    )
    stopped = reply.cut_thought and not text and reply.finish_reason != "length" and "stop" in body
    return CompletionResult(completion, reply.late_close, stopped, reply.cut_thought and not text)


def unreadable(error: BadAnswer, request: Request, route: providers.Route) -> CallCost | None:
    """The cost of a response that can't be read: from the usage in its text, else estimated."""
    if isinstance(error, Unreadable):
        return error.call_cost
    if not error.text.strip():
        return None
    if (usage := salvage_usage(error.text)) is not None:
        return cost_of(usage, "provider", route, Answer({}))
    return estimated_prompt(request, route)


def estimated_prompt(request: Request, route: providers.Route) -> CallCost:
    """The least cost of a request that was never answered: its prompt, counted with our own tokenizer.

    Our own server costs nothing.
    """
    if route.is_ours:
        return CallCost()
    usage = openai_format.estimate_chat(request.messages, request.tools, "", ())
    return cost_of(usage, "estimated", route, Answer({}))


def broken_off(stream: ReplyStream | None, request: Request, route: providers.Route) -> CallCost | None:
    """The cost of an answer that broke off in the middle of its stream; None where none had begun.

    It is the usage so far if it counts at least the text that arrived, else an estimate.
    """
    if stream is None or not stream.has_begun:
        return None
    usage, least = read_usage(stream.counts), count_tokens(stream.written)
    if usage is not None and usage.input_tokens and usage.output_tokens >= least:
        return cost_of(usage, "provider", route, Answer({}))
    estimate = openai_format.estimate_chat(request.messages, (), stream.written, ())
    return cost_of(estimate, "estimated", route, Answer({}))


def _finish_reason(reply: ParsedResponse, text: str, rest: str, usage: Usage) -> str:
    if rest:
        return "stop"
    nothing = not text and not reply.tool_calls
    if nothing and reply.finish_reason == "length" and (reply.thoughts or reply.cut_thought or usage.output_tokens):
        return "reasoning_truncated"
    return reply.finish_reason


def cost_of(usage: Usage, source: Literal["provider", "estimated"], route: providers.Route, answer: Answer) -> CallCost:
    """The cost of an answer with this usage."""
    details = answer.details if source == "provider" else None
    cost = providers.price(route, usage, details) if usage != Usage() else None
    return CallCost(billed=usage, cost_usd=cost, usage_source=source)


def _estimate(request: Request, body: Mapping[str, Any], reply: ParsedResponse) -> Usage:
    written = f"{reply.thoughts}\n{reply.text}" if reply.thoughts else reply.text
    if "prompt" in body:
        return openai_format.estimate_transcript(request.messages, written)
    return openai_format.estimate_chat(request.messages, request.tools, written, reply.tool_calls)
