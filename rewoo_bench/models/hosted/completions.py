"""From an endpoint's response to a completion: its text cut at the stop strings, its tokens and its price.

The cost of every response is counted, also of one without choices and of one that can't be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from rewoo_bench.errors import ModelError
from rewoo_bench.models.hosted import providers
from rewoo_bench.models.hosted.http_endpoint import BadAnswer
from rewoo_bench.models.hosted.provider_errors import to_model_error, unreadable_answer
from rewoo_bench.models.hosted.responses import ParsedResponse, cut_at_stop, read_response, read_usage, salvage_usage
from rewoo_bench.models.hosted.transport import Answer, Transport
from rewoo_bench.text import openai_format
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.types import CallCost, Completion, Request, Usage

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
    usage = read_usage(document.get("usage"))
    choices = document.get("choices")
    try:
        if not choices:
            error = document.get("error")
            reason = error.get("message") if isinstance(error, Mapping) else error
            raise BadAnswer(f"an error in place of an answer: {reason}" if reason else "an answer without choices")
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
    return completion, reply


def to_failure(
    error: Exception,
    request: Request,
    route: providers.Route,
    transport: Transport,
    name: str,
    usage: Usage | None,
    written: str,
) -> ModelError:
    """The error of a failed call of the model `name`, with the least that it has cost.

    `usage` and `written` have arrived before. A response that can't be read costs what the usage in its text says.
    """
    failure = to_model_error(error, name, timeout=transport.timeout, secrets=transport.secrets(route))
    bad = unreadable_answer(error)
    if written or usage != Usage():
        failure.call_cost = cost_so_far(request, route, usage, written)
    elif bad is not None and bad.call_cost is not None:
        failure.call_cost = bad.call_cost
    elif bad is not None and bad.text.strip():
        salvaged = salvage_usage(bad.text)
        failure.call_cost = cost_of(salvaged, "provider", route) if salvaged else cost_so_far(request, route)
    return failure


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
