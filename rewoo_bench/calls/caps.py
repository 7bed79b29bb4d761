"""What ends a run: a signal, its caps (--run-tokens, --run-cost) and its failed answers (--fail-on-error).

    reached = RunLimits(run_tokens=250).exceeded(totals)    # "used 260 of 250 tokens (--run-tokens)"

    estimate = CallEstimate.of(model, request)
    reservation = await caps.reserve(estimate)                # waits while the calls in flight may use up the rest
    ...                                                     # the call
    caps.release(reservation, call_cost)

A cap is exceeded by at most one call, since each reserves its estimate. A call begins if the spent and reserved amounts
are below the cap, or if none is in flight and the cap isn't reached: so there is always a running call, or a reason to
stop. The first call of a session is made alone, since its cost shows how far estimates are from the bill: thoughts,
retries, a doubled budget.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from rewoo_bench.errors import CapReached, RewooBenchError, RunStopped
from rewoo_bench.runs.journal.store import Spent
from rewoo_bench.text.tokens import count_prompt
from rewoo_bench.text.words import counted
from rewoo_bench.types import CallCost, Model, Request

# Ctrl-C, the end of a job in CI or a scheduler, and a closed terminal, for which Windows has no signal.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS: tuple[signal.Signals, ...] = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
INCOMPLETE = 3  # exit code


class GracefulShutdown:
    """Ends a run without losing calls: once shutdown is requested, admits no new ones and waits for those in flight.

    await shutdown.admit()      # before a call
    with shutdown:              # a call in flight
        ...

    `reason` is that of the first request; None for an interruption.
    """

    def __init__(self) -> None:
        self.requested = anyio.Event()
        self.reason: RewooBenchError | None = None
        self._idle = anyio.Event()
        self._in_flight = 0

    async def admit(self) -> None:
        """Returns at once; after `request`, never (until it is cancelled)."""
        if self.requested.is_set():
            await anyio.sleep_forever()

    def __enter__(self) -> None:
        self._in_flight += 1

    def __exit__(self, *_: object) -> None:
        self._in_flight -= 1
        if not self._in_flight and self.requested.is_set():
            self._idle.set()

    def request(self, reason: RewooBenchError | None = None) -> None:
        """Requests the end of the run. Only the first reason counts."""
        if not self.requested.is_set():
            self.reason = reason
        self.requested.set()
        if not self._in_flight:
            self._idle.set()

    async def wait_idle(self, grace_s: float) -> None:
        """Returns when no call is in flight any more, or after `grace_s` seconds."""
        with anyio.move_on_after(grace_s):
            await self._idle.wait()


def signals_heard() -> list[signal.Signals]:
    """The signals that end a run; not a hangup if `nohup` ignores it."""
    return [each for each in SIGNALS if each != _HANGUP or signal.getsignal(each) is not signal.SIG_IGN]


async def shutdown_on_signal(shutdown: GracefulShutdown, grace_s: float, command: str) -> None:
    """Requests the shutdown at the first signal and ends the process at the second; finished calls are kept.

    `command` is the command that resumes the run.
    """
    interrupted = False  # a shutdown may have been requested for another reason
    try:
        with anyio.open_signal_receiver(*signals_heard()) as signals:
            async for each in signals:
                if each == _HANGUP:
                    leave_closed_terminal()
                if interrupted:
                    print("rewoo-bench: stopped at once; what was finished is in the journal", file=sys.stderr)
                    print(command, file=sys.stderr, flush=True)
                    os._exit(INCOMPLETE)
                notice = f"waiting up to {grace_s:g} s for the calls in flight; once more to stop at once"
                print(f"rewoo-bench: interrupted; {notice}", file=sys.stderr)
                interrupted = True
                shutdown.request()
    except NotImplementedError:  # Windows: Ctrl-C is a KeyboardInterrupt there
        await anyio.sleep_forever()


def leave_closed_terminal() -> None:
    """Redirects output of a closed terminal to the null device: each write would be an error."""
    for output in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(output).st_mode) and not os.isatty(output):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, output)
                os.close(nowhere)


_LONG_ANSWER = 1024  # tokens reserved for an answer of unlimited length


@dataclass
class Totals:
    """Progress and cost of a run, including failed attempts and earlier sessions."""

    tasks: int = 0
    done: int = 0
    errors: int = 0
    spent: Spent = field(default_factory=Spent)
    last_error: str | None = None
    failed_before: int = 0
    """Answers that failed in earlier sessions and aren't asked again: they end no session early."""

    def add(self, error: str | None) -> None:
        """One more question is done; `error` is the failure of the infrastructure, if any."""
        self.done += 1
        if error is not None:
            self.errors += 1
            self.last_error = error


@dataclass(frozen=True)
class RunLimits:
    """Limits of a whole run. `max_errors` is the number of tolerated failed answers, or a fraction (below 1) of
    all; None tolerates none, but doesn't end the run early."""

    run_tokens: int | None = None
    run_cost: float | None = None
    max_errors: float | None = None

    def exceeded(self, totals: Totals) -> RunStopped | None:
        """The reason to stop the run now, or None. Caps don't stop a run after its last question."""
        if self.max_errors is not None and totals.errors > self._tolerated(totals):
            failed = f"{counted(totals.errors, 'answer')} failed (--fail-on-error {self.max_errors:g})"
            return RunStopped(f"{failed}; last: {totals.last_error}")
        if totals.done == totals.tasks:
            return None
        if self.run_tokens is not None and totals.spent.tokens >= self.run_tokens:
            return CapReached("--run-tokens", totals.spent.tokens, self.run_tokens)
        if self.run_cost is not None and totals.spent.unpriced:
            return CapReached("--run-cost", None, self.run_cost)
        if self.run_cost is not None and totals.spent.cost_usd >= self.run_cost:
            return CapReached("--run-cost", totals.spent.cost_usd, self.run_cost)
        return None

    def unfinished(self, totals: Totals) -> str | None:
        """The reason why a run is incomplete after its last question: too many of them failed."""
        failed = totals.errors + totals.failed_before
        if failed <= self._tolerated(totals):
            return None
        if totals.errors == totals.tasks:
            return f"every question failed; last: {totals.last_error}"
        return f"{failed:,} of {counted(totals.tasks, 'answer')} failed"

    def _tolerated(self, totals: Totals) -> float:
        if self.max_errors is None:
            return 0
        return self.max_errors if self.max_errors >= 1 else self.max_errors * totals.tasks


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Tokens of a call before it is made: its prompt and its longest answer; and dollars per million tokens."""

    prompt: int
    answer: int
    prices: Mapping[str, float] | None

    @classmethod
    def of(cls, model: Model, request: Request) -> CallEstimate:
        prompt = count_prompt(request.messages, request.tools)
        answer = request.max_tokens or getattr(model, "max_output_tokens", None) or _LONG_ANSWER
        return cls(prompt, answer, getattr(model, "prices", None))


@dataclass(frozen=True, slots=True)
class Reservation:
    """The amounts reserved for a call. `cost_usd` is None where no estimate is possible."""

    tokens: int
    cost_usd: float | None
    estimate: int
    """The counted tokens, before any correction."""


class Caps:
    """Admits calls while the caps of a run leave room for them; when a cap is reached, requests the shutdown."""

    def __init__(self, limits: RunLimits, totals: Totals, shutdown: GracefulShutdown) -> None:
        self._limits = limits
        self._totals = totals
        self._shutdown = shutdown
        self._in_flight = 0
        self._tokens = 0
        self._cost_usd = 0.0
        self._correction = 1.0  # the largest ratio of a call's tokens to its estimate
        self._calls, self._paid_usd = 0, 0.0
        self._next = anyio.Lock(fast_acquire=True)  # of the calls that wait for room one looks for it, the first
        self._freed = anyio.Event()

    async def reserve(self, estimate: CallEstimate) -> Reservation:
        """Waits until there is room for a call, and reserves it. Doesn't return once a cap is reached."""
        async with self._next:
            while True:
                if reason := self._limits.exceeded(self._totals):
                    self._shutdown.request(reason)
                await self._shutdown.admit()
                reservation = self._reservation(estimate)
                if not self._in_flight or (self._calls and self._has_space(reservation)):
                    self._in_flight += 1
                    self._tokens += reservation.tokens
                    self._cost_usd += reservation.cost_usd or 0.0
                    return reservation
                self._freed = anyio.Event()
                await self._freed.wait()

    def release(self, reservation: Reservation, call_cost: CallCost | None) -> None:
        """Frees the reservation of a call that has ended and whose cost is recorded."""
        self._in_flight -= 1
        self._tokens -= reservation.tokens
        self._cost_usd = self._cost_usd - (reservation.cost_usd or 0.0) if self._in_flight else 0.0
        if call_cost is not None:
            self._correction = max(self._correction, call_cost.billed.total_tokens / max(1, reservation.estimate))
            self._calls += 1
            self._paid_usd += call_cost.cost_usd or 0.0
        self._freed.set()

    def _has_space(self, reservation: Reservation) -> bool:
        limits, spent = self._limits, self._totals.spent
        if limits.run_tokens is not None and spent.tokens + self._tokens >= limits.run_tokens:
            return False
        if limits.run_cost is None:
            return True
        return reservation.cost_usd is not None and spent.cost_usd + self._cost_usd < limits.run_cost

    def _reservation(self, call: CallEstimate) -> Reservation:
        """The prompt and the longest answer, at the model's prices; without prices the mean cost of a call so far."""
        cost_usd = self._paid_usd / self._calls if self._paid_usd else None
        if call.prices:
            paid = call.prompt * call.prices["input"] + call.answer * call.prices["output"]
            cost_usd = paid * self._correction / 1e6
        tokens = call.prompt + call.answer
        return Reservation(int(tokens * self._correction), cost_usd, tokens)
