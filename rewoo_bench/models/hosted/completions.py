"""From an endpoint's response to a completion: its text cut at the stop strings, its tokens and its price.

The cost of every response is counted, also of one without choices and of one that can't be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rewoo_bench.models.hosted import providers
from rewoo_bench.models.hosted.http_endpoint import BadAnswer
from rewoo_bench.models.hosted.responses import cut_at_stop, read_response, read_usage, salvage_usage
from rewoo_bench.models.hosted.transport import Answer
from rewoo_bench.text import openai_format
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import CallCost, Completion, Request, Usage

TRUNCATED = "reasoning_truncated"


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
    given = usage or Usage()
    choices = document.get("choices")
    if not choices:
        error = document.get("error")
        reason = error.get("message") if isinstance(error, Mapping) else error
        message = f"an error in place of an answer: {reason}" if reason else "an answer without choices"
        raise Unreadable(message, cost_of(given, "provider", route, answer.details))
    try:
        reply = read_response(choices[0])
    except (AttributeError, LookupError, TypeError, ValueError):
        message = "a response that doesn't match the OpenAI schema"
        raise Unreadable(message, cost_of(given, "provider", route, answer.details)) from None
    if begins_in_thought and reply.finish_reason == "length" and not reply.thoughts and not reply.late_close:
        reply = replace(reply, text="", thoughts=reply.text, cut_thought=True)
    text, rest = cut_at_stop(reply.text, request.stop)
    source: Literal["provider", "estimated"] = "provider"
    # Every prompt has tokens, and so has every answer that isn't empty: a zero means a missing count.
    written = reply.thoughts or reply.text or reply.tool_calls
    if usage is None or not usage.input_tokens or (written and not usage.output_tokens):
        said, source = "\n".join(filter(None, (reply.thoughts, reply.text))), "estimated"
        if "prompt" in body:
            usage = openai_format.estimate_transcript(request.messages, said)
        else:
            usage = openai_format.estimate_chat(request.messages, request.tools, said, reply.tool_calls)
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
    )
    stopped = reply.cut_thought and not text and reply.finish_reason != "length" and "stop" in body
    return CompletionResult(completion, reply.late_close, stopped, reply.cut_thought and not text)


def unreadable(error: BadAnswer, request: Request, route: providers.Route) -> CallCost | None:
    """The cost of a response that can't be read: from the usage in its text, else estimated."""
    if isinstance(error, Unreadable):
        return error.call_cost
    if not error.text.strip():
        return None
    usage = salvage_usage(error.text)
    return cost_so_far(request, route) if usage is None else cost_of(usage, "provider", route)


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


def cost_of(
    usage: Usage, source: Literal["provider", "estimated"], route: providers.Route, details: Any = None
) -> CallCost:
    """The cost of an answer with this usage. `details` is litellm's usage object, if the call went through litellm."""
    cost = providers.price(route, usage, details if source == "provider" else None) if usage != Usage() else None
    return CallCost(billed=usage, cost_usd=cost, usage_source=source)
