"""Checks of token counts and prices: those of a user's own model may be anything.

    sensible(Completion("Neva", Usage(10**30, 0, -1)), request)
        ->  the same text with an estimated usage

A count has to be a whole number between 0 and a billion: SQLite can't hold a larger one, and with a
negative one a cap would never be reached.
"""

from __future__ import annotations

import math
import operator
from dataclasses import astuple, replace
from typing import TypeVar

from rewoo_bench.text.prompt_parts import count_prompt
from rewoo_bench.text.tokens import count_call, count_tokens
from rewoo_bench.types import CallCost, Completion, Request, Usage

_TOO_MANY = 10**9  # tokens of one call
_NOTHING = Usage()
_ONLY_INT = {int}


def check_completion(value: object, model: str) -> Completion:
    """What a model returned. Raises `TypeError` for no completion, since a user's own model may return anything."""
    if not isinstance(value, Completion):
        raise TypeError(f"the model {model!r} returned {type(value).__name__}, expected a Completion")
    return value


def sensible(completion: Completion, request: Request) -> Completion:
    """The completion, with an estimate for an invalid usage and without an invalid price."""
    usage, call_cost, discarded = completion.usage, completion.call_cost, completion.discarded_tokens
    are_counts = _is_plain(usage) and (call_cost.billed is usage or _is_plain(call_cost.billed))
    if are_counts and call_cost.cost_usd is None and _is_count(discarded):
        return completion
    counted, billed = _counted(usage), _counted(call_cost.billed)
    source = call_cost.usage_source
    if counted is None or billed is None:
        estimate = _estimate(completion, request)
        counted, billed, source = counted or estimate, billed or estimate, "estimated"
    checked = replace(call_cost, billed=billed, cost_usd=_price(call_cost.cost_usd), usage_source=source)
    return replace(
        completion, usage=counted, call_cost=checked, discarded_tokens=discarded if _is_count(discarded) else 0
    )


_Cost = TypeVar("_Cost", CallCost, CallCost | None)


def sensible_call_cost(call_cost: _Cost, request: Request) -> _Cost:
    """The same for the cost of an attempt that failed or was cancelled."""
    if call_cost is None or (_is_plain(call_cost.billed) and call_cost.cost_usd is None):
        return call_cost
    billed = _counted(call_cost.billed)
    if billed is None:
        estimate = Usage(input_tokens=count_prompt(request.messages, request.tools))
        call_cost = replace(call_cost, billed=estimate, usage_source="estimated")
    else:
        call_cost = replace(call_cost, billed=billed)
    return replace(call_cost, cost_usd=_price(call_cost.cost_usd))


def is_sensible(completion: Completion) -> bool:
    """Whether a recorded completion has a text and valid counts."""
    return (
        isinstance(completion.text, str)
        and isinstance(completion.thoughts, str)
        and _is_plain(completion.usage)
        and _is_plain(completion.call_cost.billed)
        and _is_count(completion.discarded_tokens)
    )


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _TOO_MANY


def _is_plain(usage: Usage) -> bool:
    """Whether all counts are Python integers in range. Quick, since every call is checked. numpy's aren't plain."""
    if usage is _NOTHING:
        return True
    counts = (
        usage.input_tokens,
        usage.cached_input_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
        usage.cache_write_tokens,
    )
    return {*map(type, counts)} == _ONLY_INT and min(counts) >= 0 and max(counts) < _TOO_MANY


def _counted(usage: Usage) -> Usage | None:
    """The usage in Python's own numbers; None where it is invalid."""
    try:
        counted = Usage(*map(operator.index, astuple(usage)))
    except TypeError:
        return None
    return counted if _is_plain(counted) else None


def _price(cost_usd: float | None) -> float | None:
    try:
        price = None if cost_usd is None else float(cost_usd)
    except (TypeError, ValueError):
        return None
    return price if price is not None and math.isfinite(price) and price >= 0 else None


def _estimate(completion: Completion, request: Request) -> Usage:
    written = count_tokens(completion.text) + sum(count_call(c.name, c.arguments) for c in completion.tool_calls)
    return Usage(input_tokens=count_prompt(request.messages, request.tools), output_tokens=written)
