"""The tokens and the cost of an external agent's call, from what the provider has sent of its answer."""

from __future__ import annotations

from collections.abc import Sequence

from rewoo_bench.models.hosted.completions import cost_of
from rewoo_bench.models.hosted.dialects import COUNTING, EMBEDDINGS, AnswerFacts
from rewoo_bench.models.hosted.http_endpoint import BadAnswer
from rewoo_bench.models.hosted.providers import Route
from rewoo_bench.models.hosted.transport import Answer
from rewoo_bench.models.hosted.usage import salvage_usage
from rewoo_bench.text.tokens import count_messages, count_tokens
from rewoo_bench.types import CallCost, Completion, Message, Usage, WireResponse


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
