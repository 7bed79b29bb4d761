"""Events inside a question as they happen: for a live view, a log or a test.

    with listening(print):
        await runner.run(question, model=model, tools=tools)

    Event(kind="planner_started", at_s=0.0, step=None, data={})
    Event(kind="plan_created", at_s=1.2, step=None, data={"plan": [...]})
    Event(kind="step_started", at_s=1.2, step="E1", data={"tool": "Search", "argument": "Oslo"})

A runner reports an event with `emit`, which costs nothing without a listener. The listener is a context variable,
so each task has its own, as it has its call site. Nothing is counted from events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

EventKind = Literal[
    "planner_started",
    "plan_created",
    "plan_rejected",
    "step_started",
    "step_finished",
    "step_discarded",
    "solver_started",
    "replan_asked",
    "fallback_started",
    "routed",
    "answered",
]


@dataclass(frozen=True, slots=True)
class Event:
    """An event. `at_s` is seconds since the question began; `data` is JSON-ready."""

    kind: EventKind
    at_s: float
    step: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


_emit: ContextVar[Callable[[EventKind, str | None, Mapping[str, Any]], None] | None]
_emit = ContextVar("events", default=None)


def emit(kind: EventKind, step: str | None = None, **data: Any) -> None:
    """Reports an event to the listener, if there is one. An exception of the listener is raised here."""
    report = _emit.get()
    if report is not None:
        report(kind, step, data)


@contextmanager
def listening(on_event: Callable[[Event], None]) -> Iterator[None]:
    """Sends the events of the body to `on_event`, at once and in order; the clock of `at_s` starts now."""
    start = time.monotonic()

    def report(kind: EventKind, step: str | None, data: Mapping[str, Any]) -> None:
        on_event(Event(kind, time.monotonic() - start, step, data))

    token = _emit.set(report)
    try:
        yield
    finally:
        _emit.reset(token)
