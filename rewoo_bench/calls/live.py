"""Live model calls: those that no journal, cache or recorded run answers.

    async with LiveCall(live, RetryingModel(…), request) as call:   # waits while the caps leave no room
        completion = await call.ask()
        ...                                                         # still in flight: time to record it

The caps of a run are enforced here, no call begins here once the run ends, and the state of each endpoint is
known here: whether it has ever accepted a request.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Protocol, TypeVar

import anyio

from rewoo_bench.calls.caps import CallEstimate, GracefulShutdown, Reservation
from rewoo_bench.errors import UNAUTHORISED, ModelError
from rewoo_bench.runs.journal.store import Spent
from rewoo_bench.text.openai_format import estimate_chat
from rewoo_bench.types import CallCost, Completion, Model, Request, Usage

# A count has to be a whole number between 0 and a billion: SQLite can't hold a larger one, and with a negative one
# a cap would never be reached. A user's own model may return anything.
_TOO_MANY = 10**9  # tokens of one call
_ONLY_INT = {int}

SHORTEST_WAIT_S = 0.001
"""What is free, or on the same machine, takes microseconds, too; a shorter wait isn't recorded."""


def check_completion(value: object, model: str) -> Completion:
    """What a model returned. Raises `TypeError` for no completion, since a user's own model may return anything."""
    if not isinstance(value, Completion):
        raise TypeError(f"the model {model!r} returned {type(value).__name__}, expected a Completion")
    return value


def with_valid_counts(completion: Completion, request: Request) -> Completion:
    """The completion, with an estimate for an invalid usage and without an invalid price."""
    usage, call_cost, discarded = completion.usage, completion.call_cost, completion.discarded_tokens
    are_counts = _is_plain(usage) and (call_cost.billed is usage or _is_plain(call_cost.billed))
    if are_counts and call_cost.cost_usd is None and _is_count(discarded):
        return completion
    counted, billed = _counted(usage), _counted(call_cost.billed)
    source = call_cost.usage_source
    if counted is None or billed is None:
        estimate = estimate_chat(request.messages, request.tools, completion.text, completion.tool_calls)
        counted, billed, source = counted or estimate, billed or estimate, "estimated"
    checked = replace(call_cost, billed=billed, cost_usd=valid_price(call_cost.cost_usd), usage_source=source)
    return replace(
        completion, usage=counted, call_cost=checked, discarded_tokens=discarded if _is_count(discarded) else 0
    )


_Cost = TypeVar("_Cost", CallCost, CallCost | None)


def with_valid_cost(call_cost: _Cost, request: Request) -> _Cost:
    """The same for the cost of an attempt that failed or was cancelled."""
    if call_cost is None or (_is_plain(call_cost.billed) and call_cost.cost_usd is None):
        return call_cost
    billed = _counted(call_cost.billed)
    if billed is None:
        estimate = estimate_chat(request.messages, request.tools, "", ())
        call_cost = replace(call_cost, billed=estimate, usage_source="estimated")
    else:
        call_cost = replace(call_cost, billed=billed)
    return replace(call_cost, cost_usd=valid_price(call_cost.cost_usd))


def has_valid_counts(completion: Completion) -> bool:
    """Whether a recorded completion has a text and valid counts."""
    return (
        isinstance(completion.text, str)
        and isinstance(completion.thoughts, str)
        and _is_plain(completion.usage)
        and _is_plain(completion.call_cost.billed)
        and _is_count(completion.discarded_tokens)
        and valid_price(completion.call_cost.cost_usd) == completion.call_cost.cost_usd
    )


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _TOO_MANY


def _is_plain(usage: Usage) -> bool:
    """Whether all counts are Python integers in range. Quick, since every call is checked. numpy's aren't plain."""
    counts = (
        usage.input_tokens,
        usage.cached_input_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
        usage.cache_write_tokens,
        usage.cache_write_1h_tokens,
    )
    return {*map(type, counts)} == _ONLY_INT and min(counts) >= 0 and max(counts) < _TOO_MANY


def _counted(usage: Usage) -> Usage | None:
    """The usage in Python's own numbers; None where it is invalid."""
    try:
        counted = Usage(*map(operator.index, astuple(usage)))
    except TypeError:
        return None
    return counted if _is_plain(counted) else None


def valid_price(cost_usd: float | None) -> float | None:
    """The dollars of a call; None where they are no number, endless or negative."""
    try:
        price = None if cost_usd is None else float(cost_usd)
    except (TypeError, ValueError):
        return None
    return price if price is not None and math.isfinite(price) and price >= 0 else None


_REFUSED = frozenset({UNAUTHORISED, 403, 404, *range(300, 400)})
_UNDERSTOOD = frozenset({400, 413, 422})  # the key, the address and the model's name are right


class RequestRefused(ModelError):
    """A request that the provider refused (401, 403, 404) or sent elsewhere (3xx), or that never reached it.

    `model` is the model's name; `is_accepted`: the provider had accepted another request for it before.
    """

    def __init__(self, error: ModelError, model: str) -> None:
        super().__init__(
            str(error), status=error.status, call_cost=error.call_cost, unreachable=error.unreachable, retryable=False
        )
        self.model = model
        self.is_accepted = False
        self.response = error.response

    def __reduce__(self) -> tuple[Any, ...]:
        return RequestRefused, (ModelError(str(self)), self.model), self.__dict__


class CallCaps(Protocol):
    """The caps of a run: `caps.Caps`, or those that another process keeps."""

    async def reserve(self, estimate: CallEstimate) -> Reservation: ...

    def release(self, reservation: Reservation, call_cost: CallCost | None) -> None: ...


@dataclass(slots=True)
class EndpointState:
    """The state of one model's provider. `accepted`: it has accepted a request of this run. `answered`: it has
    answered anything in this session."""

    accepted: bool = False
    answered: bool = False
    first_calls: int = 0
    """Calls in flight that began before anything was known."""

    def is_undecided(self, *, unreachable: bool) -> bool:
        """Whether the provider may refuse all requests, and not only a single prompt."""
        return not self.answered if unreachable else not self.accepted

    def failed(self, error: ModelError) -> None:
        self.answered |= not error.unreachable
        self.accepted |= error.status in _UNDERSTOOD


@dataclass
class LiveCalls:
    """The shared state of all live calls of a run.

    `accepted_before`: earlier sessions of the run got answers. `spent` sums up the calls of a run without a
    journal.
    """

    shutdown: GracefulShutdown = field(default_factory=GracefulShutdown)
    caps: CallCaps | None = None
    accepted_before: bool = False
    spent: Spent | None = None
    _endpoints: dict[str, EndpointState] = field(default_factory=dict)

    def endpoint(self, model: str) -> EndpointState:
        if model not in self._endpoints:
            self._endpoints[model] = EndpointState(accepted=self.accepted_before)
        return self._endpoints[model]

    def endpoint_states(self) -> dict[str, tuple[bool, bool]]:
        """Model -> whether its provider accepted a request, and whether it answered anything."""
        return {model: (state.accepted, state.answered) for model, state in self._endpoints.items()}

    def learn(self, states: Mapping[str, tuple[bool, bool]]) -> None:
        """Adds what another process knows of the endpoints."""
        for model, (accepted, answered) in states.items():
            state = self.endpoint(model)
            state.accepted |= accepted
            state.answered |= answered


@dataclass(eq=False)
class LiveCall:
    """One call. Inside its `async with` it counts as in flight; before, it waits while the caps leave no room."""

    live: LiveCalls
    model: Model
    request: Request
    cost: CallCost | None = None
    """The cost of the whole call, once it has ended and something was sent."""
    _reservation: Reservation | None = None

    async def __aenter__(self) -> LiveCall:
        await self.live.shutdown.admit()
        if self.live.caps is not None:
            start = time.monotonic()
            self._reservation = await self.live.caps.reserve(CallEstimate.of(self.model, self.request))
            if (end := time.monotonic()) - start > SHORTEST_WAIT_S:
                self.request.bill.add_waiting(start, end)
        self.live.shutdown.__enter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.cost is not None and self.live.spent is not None:
            self.live.spent.add(self.cost.billed.total_tokens, self.cost.cost_usd)
        if self.live.caps is not None and self._reservation is not None:
            self.live.caps.release(self._reservation, self.cost)
        self.live.shutdown.__exit__()

    async def ask(self) -> Completion:
        """The completion with checked counts. Raises `ModelError`; `RequestRefused` if the provider refused it."""
        request, bill = self.request, self.request.bill
        name = name_of(self.model)
        endpoint = self.live.endpoint(name)
        is_first = not (endpoint.answered or endpoint.accepted)
        endpoint.first_calls += is_first
        try:
            completion = with_valid_counts(check_completion(await self.model.complete(request), name), request)
            self.cost = bill.with_outcome(completion.call_cost)
        except ModelError as error:
            error.is_of_agents_account = (  # the key is good, since the provider has accepted it
                error.refuses_key and endpoint.accepted and bool(request.wire and request.wire.chooses_account)
            )
            endpoint.failed(error)
            error.call_cost = with_valid_cost(error.call_cost, request)
            self.cost = bill.with_outcome(error.call_cost)
            if error.unreachable or (error.status in _REFUSED and not error.is_of_agents_account):
                refused = RequestRefused(error, name)
                refused.is_accepted = endpoint.accepted
                raise refused from error
            raise
        except anyio.get_cancelled_exc_class():
            bill.total = with_valid_cost(bill.total, request)
            self.cost = bill.total if bill.total.billed != Usage() else None
            raise
        finally:
            endpoint.first_calls -= is_first
        endpoint.answered = endpoint.accepted = True
        return completion


class LiveModel:
    """A model without recording: every call is live."""

    def __init__(self, live: LiveCalls, model: Model) -> None:
        self.name = name_of(model)
        self._live = live
        self._model = model

    async def complete(self, request: Request) -> Completion:
        """The model's completion. Raises `ModelError`."""
        async with LiveCall(self._live, self._model, request) as call:
            return await call.ask()


def name_of(model: Model) -> str:
    return str(getattr(model, "name", type(model).__name__))
