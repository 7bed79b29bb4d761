"""Live model calls: those that no journal, cache or recorded run answers.

    async with LiveCall(live, RetryingModel(…), request) as call:   # waits while the caps leave no room
        completion = await call.ask()
        ...                                                         # still in flight: time to record it

The caps of a run are enforced here, no call begins here once the run ends, and the state of each endpoint is
known here: whether it has ever accepted a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from rewoo_bench.calls.caps import CallEstimate, Reservation
from rewoo_bench.calls.cost_checks import check_completion, sensible, sensible_call_cost
from rewoo_bench.calls.shutdown import GracefulShutdown
from rewoo_bench.errors import ModelError
from rewoo_bench.journal.store import Spent
from rewoo_bench.types import CallCost, Completion, Model, Request, Usage

UNAUTHORISED = 401
_FAULT_OF_REQUEST = 400
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
        return _rebuilt, (str(self), self.model, self.__dict__)


def _rebuilt(message: str, model: str, state: dict[str, Any]) -> RequestRefused:
    error = RequestRefused(ModelError(message), model)
    error.__dict__.update(state)
    return error


class CallCaps(Protocol):
    """The caps of a run: `caps.Caps`, or those that another process keeps."""

    async def admit(self, estimate: CallEstimate) -> Reservation: ...

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


class LiveCall:
    """One call. Inside its `async with` it counts as in flight; before, it waits while the caps leave no room."""

    def __init__(self, live: LiveCalls, model: Model, request: Request) -> None:
        self._live = live
        self._model = model
        self._request = request
        self._reservation: Reservation | None = None
        self.cost: CallCost | None = None
        """The cost of the whole call, once it has ended and something was sent."""

    async def __aenter__(self) -> LiveCall:
        await self._live.shutdown.admit()
        if self._live.caps is not None:
            self._reservation = await self._live.caps.admit(CallEstimate.of(self._model, self._request))
        self._live.shutdown.__enter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.cost is not None and self._live.spent is not None:
            self._live.spent.add(self.cost.billed.total_tokens, self.cost.cost_usd)
        if self._live.caps is not None and self._reservation is not None:
            self._live.caps.release(self._reservation, self.cost)
        self._live.shutdown.__exit__()

    async def ask(self) -> Completion:
        """The completion with checked counts. Raises `ModelError`; `RequestRefused` if the provider refused it."""
        request, bill = self._request, self._request.bill
        name = name_of(self._model)
        endpoint = self._live.endpoint(name)
        is_first = not (endpoint.answered or endpoint.accepted)
        endpoint.first_calls += is_first
        try:
            completion = sensible(check_completion(await self._model.complete(request), name), request)
            self.cost = bill.with_outcome(completion.call_cost)
        except ModelError as error:
            if error.status == UNAUTHORISED and endpoint.accepted and request.wire and request.wire.chooses_account:
                error.status = _FAULT_OF_REQUEST  # of this agent: its own account is refused, the key is good
            endpoint.failed(error)
            error.call_cost = sensible_call_cost(error.call_cost, request)
            self.cost = bill.with_outcome(error.call_cost)
            if error.unreachable or error.status in _REFUSED:
                refused = RequestRefused(error, name)
                refused.is_accepted = endpoint.accepted
                raise refused from error
            raise
        except anyio.get_cancelled_exc_class():
            bill.total = sensible_call_cost(bill.total, request)
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
