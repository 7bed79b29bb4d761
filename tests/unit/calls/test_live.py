"""Live calls: counts that aren't numbers, requests that are refused, and what is known of an endpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rewoo_bench.calls.live import (
    LiveCalls,
    LiveModel,
    RequestRefused,
    has_valid_counts,
    with_valid_cost,
    with_valid_counts,
)
from rewoo_bench.errors import ModelError
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import CallCost, Completion, Message, Request, Usage, WireRequest

REQUEST = Request([Message("user", "Which river?")], role="agent")
USED = Usage(input_tokens=10, output_tokens=2)
INVALID: list[Any] = [Usage(input_tokens=-1), Usage(output_tokens=10**9), Usage(input_tokens="10"), Usage(10, 0, 1.5)]  # type: ignore[arg-type]


@pytest.mark.parametrize("invalid", INVALID)
def test_an_invalid_count_is_estimated_and_a_valid_one_beside_it_kept(invalid: Usage) -> None:
    of_usage = with_valid_counts(Completion("Neva", invalid, call_cost=CallCost(billed=USED)), REQUEST)
    assert of_usage.call_cost.billed == USED
    assert 0 < of_usage.usage.input_tokens < 50
    assert 0 < of_usage.usage.output_tokens < 5
    of_bill = with_valid_counts(Completion("Neva", USED, call_cost=CallCost(billed=invalid)), REQUEST)
    assert of_bill.usage == USED
    assert of_bill.call_cost.billed == of_usage.usage
    assert {of_usage.call_cost.usage_source, of_bill.call_cost.usage_source} == {"estimated"}


def test_whole_numbers_of_other_types_are_kept_as_pythons() -> None:
    usage = Usage(input_tokens=np.int64(10), output_tokens=np.int64(2))  # type: ignore[arg-type]
    kept = with_valid_counts(Completion("Neva", usage, call_cost=CallCost(billed=usage)), REQUEST)
    assert kept.usage == kept.call_cost.billed == USED
    assert {type(kept.usage.input_tokens), type(kept.call_cost.billed.output_tokens)} == {int}
    assert kept.call_cost.usage_source == "provider"


@pytest.mark.parametrize(
    ("price", "kept"),
    [
        (0.5, 0.5),
        (0, 0.0),
        ("0.5", 0.5),
        (-0.1, None),
        (float("nan"), None),
        (float("inf"), None),
        (np.float64(0.5), 0.5),
        ("much", None),
        ([], None),
    ],
)
def test_a_price_that_is_none_is_unknown(price: Any, kept: float | None) -> None:
    cost = CallCost(billed=USED, cost_usd=price)
    assert with_valid_counts(Completion("Neva", USED, call_cost=cost), REQUEST).call_cost.cost_usd == kept
    assert with_valid_cost(cost, REQUEST).cost_usd == kept


@pytest.mark.parametrize(
    ("field", "value"),
    [("text", None), ("thoughts", None), ("usage", INVALID[0]), ("discarded_tokens", -1)],
)
def test_a_recorded_completion_has_texts_and_counts(field: str, value: Any) -> None:
    completion = Completion("Neva", USED, call_cost=CallCost(billed=USED))
    assert has_valid_counts(completion)
    assert not has_valid_counts(replace(completion, **{field: value}))
    assert not has_valid_counts(replace(completion, call_cost=CallCost(billed=INVALID[0])))
    assert not has_valid_counts(replace(completion, call_cost=CallCost(billed=USED, cost_usd=-1.0)))


async def refused(live: LiveCalls, error: ModelError, request: Request = REQUEST) -> ModelError:
    with pytest.raises(ModelError) as raised:
        await LiveModel(live, ScriptedModel([error])).complete(request)
    return raised.value


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "unreachable", "is_refusal"),
    [(401, False, True), (403, False, True), (404, False, True), (301, False, True), (None, True, True),
     (400, False, False), (422, False, False), (500, False, False), (None, False, False)],
)  # fmt: skip
async def test_a_provider_that_refuses_or_is_not_there_is_told_from_one_that_fails(
    status: int | None, unreachable: bool, is_refusal: bool
) -> None:
    error = await refused(LiveCalls(), ModelError("no", status=status, unreachable=unreachable))
    assert isinstance(error, RequestRefused) == is_refusal


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "known"),
    [(400, (True, True)), (413, (True, True)), (422, (True, True)), (401, (False, True)), (500, (False, True))],
)
async def test_an_error_about_the_request_shows_that_key_and_address_are_right(
    status: int, known: tuple[bool, bool]
) -> None:
    live = LiveCalls()
    await refused(live, ModelError("no", status=status))
    assert live.endpoint_states() == {"ScriptedModel": known}
    other = LiveCalls()
    other.learn(live.endpoint_states())
    assert other.endpoint_states() == live.endpoint_states()
    other.learn({"ScriptedModel": (False, False)})
    assert other.endpoint_states() == live.endpoint_states()


@pytest.mark.anyio
async def test_a_refused_key_ends_the_run_but_not_that_of_an_agents_own_account() -> None:
    own_account = WireRequest("/chat/completions", b"{}", (("OpenAI-Organization", "mine"),))
    known, unknown = LiveCalls(accepted_before=True), LiveCalls()
    for live, wire in ((known, None), (known, replace(own_account, headers=())), (unknown, own_account)):
        error = await refused(live, ModelError("no", status=401), replace(REQUEST, wire=wire))
        assert isinstance(error, RequestRefused)
        assert error.is_accepted == (live is known)
    error = await refused(known, ModelError("no", status=401), replace(REQUEST, wire=own_account))
    assert not isinstance(error, RequestRefused)
    assert (error.status, error.refuses_key) == (401, False)
