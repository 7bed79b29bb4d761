"""Live model calls: those that no journal, cache or recorded run answers.

    async with LiveCall(live, RetryingModel(…), request) as call:   # waits while the caps leave no room
        completion = await call.ask()
        ...                                                         # still in flight: time to record it

The caps of a run are enforced here, no call begins here once the run ends, and the state of each endpoint is
known here: whether it has ever accepted a request.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from rewoo_bench.calls.caps import CallEstimate, GracefulShutdown, Reservation
from rewoo_bench.errors import UNAUTHORISED, ModelError
from rewoo_bench.runs.journal.store import Spent
from rewoo_bench.types import CallCost, Completion, Model, Request, Usage

SHORTEST_WAIT_S = 0.001
"""What is free, or on the same machine, takes microseconds, too; a shorter wait isn't recorded."""


def check_completion(value: object, model: str) -> Completion:
    """What a model returned. Raises `TypeError` for no completion, since a user's own model may return anything."""
    if not isinstance(value, Completion):
        raise TypeError(f"the model {model!r} returned {type(value).__name__}, expected a Completion")
    return value


_REFUSED = frozenset({UNAUTHORISED, 403, 404, *range(300, 400)})
_UNDERSTOOD = frozenset({400, 413, 422})  # the key, the address and the model's name are right


class CallCaps(Protocol):
    """The caps of a run: `caps.Caps`, or those that another process keeps."""

    async def reserve(self, estimate: CallEstimate) -> Reservation: ...

    def release(self, reservation: Reservation, call_cost: CallCost | None) -> None: ...


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
    accepted: set[str] = field(default_factory=set)
    """Models whose provider has accepted a request of this run."""
    answered: set[str] = field(default_factory=set)
    """Models whose provider has answered anything in this session."""

    def has_accepted(self, model: str) -> bool:
        return self.accepted_before or model in self.accepted

    def may_refuse_all(self, model: str, *, unreachable: bool) -> bool:
        """Whether the provider may refuse all requests, and not only a single prompt."""
        return model not in self.answered if unreachable else not self.has_accepted(model)

    def endpoint_states(self) -> dict[str, tuple[bool, bool]]:
        """Model -> whether its provider accepted a request, and whether it answered anything."""
        return {name: (self.has_accepted(name), name in self.answered) for name in self.accepted | self.answered}

    def learn(self, states: Mapping[str, tuple[bool, bool]]) -> None:
        """Adds what another process knows of the endpoints."""
        self.accepted |= {model for model, (accepted, _) in states.items() if accepted}
        self.answered |= {model for model, (_, answered) in states.items() if answered}


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
        """The completion. Raises `ModelError`, which says `refused_by` if the provider refused the request."""
        request, bill = self.request, self.request.bill
        name = name_of(self.model)
        try:
            completion = check_completion(await self.model.complete(request), name)
        except ModelError as error:
            if not error.unreachable:
                self.live.answered.add(name)
            if error.status in _UNDERSTOOD:
                self.live.accepted.add(name)
            self.cost = bill.with_outcome(error.call_cost)
            if error.unreachable or error.status in _REFUSED:
                error.refused_by, error.accepts_others = name, self.live.has_accepted(name)
            raise
        except anyio.get_cancelled_exc_class():
            self.cost = bill.total if bill.total.billed != Usage() else None
            raise
        self.cost = bill.with_outcome(completion.call_cost)
        self.live.answered.add(name)
        self.live.accepted.add(name)
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
