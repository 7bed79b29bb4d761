"""Events inside a question as they happen: for a live view, a log or a test.

    with listening(print):
        await runner.run(question, model=model, tools=tools)

    Event(kind="planner_started", at_s=0.0, step=None, data={})
    Event(kind="plan_created", at_s=1.2, step=None, data={"plan": [...]})
    Event(kind="step_started", at_s=1.2, step="E1", data={"tool": "Search", "argument": "Oslo"})

A runner reports an event with `emit`, which costs nothing without a listener. The listener is a context variable,
so each task has its own, as it has its place. Nothing is counted from events.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from rewoo_bench.types import Trajectory

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


# Where in an architecture a call happens (`planner`, `E3`, `turn 2`), and the architecture, for which local models keep
# a prefix cache. Both are context variables of the task, so the protocols of models and tools need no argument.

Value = TypeVar("Value")

AGENT_PLACE = "agent"
"""The place of all requests of an external agent."""


@dataclass(frozen=True, slots=True)
class Place:
    """A name that is unique and the same in every run of a question, and the depth in a plan."""

    name: str = ""
    level: int = 0


_place: ContextVar[Place] = ContextVar("place", default=Place())  # noqa: B039 - frozen

_architecture: ContextVar[str] = ContextVar("architecture", default="")


class _Set(Generic[Value]):
    """Sets a context variable inside its `with`. A generator would cost three times as much, at every call."""

    def __init__(self, variable: ContextVar[Value], value: Value) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


def current_place() -> Place:
    """The place of the calling task."""
    return _place.get()


def at_place(name: str, level: int = 0) -> _Set[Place]:
    """Calls made inside are made at `name`; places nest as `E3/summary`."""
    outer = _place.get().name
    return _Set(_place, Place(f"{outer}/{name}" if outer else name, level))


def current_architecture() -> str:
    """Name of the architecture that the calling task works for; empty outside an evaluation."""
    return _architecture.get()


def in_architecture(name: str) -> _Set[str]:
    """Calls made inside belong to the architecture of that name."""
    return _Set(_architecture, name)


# What a question's row says beside its calls. The notes are a context variable of the task; a task that isn't begun by
# the question's, such as one of the gateway's server, needs them handed to it: `current_notes()`.

TimeSpan = tuple[float, float]
"""Start and end, in seconds of the monotonic clock."""


@dataclass(slots=True)
class RowNotes:
    """Notes of a question, or of one of its calls: then `outer` is the question's, or those of the call around it."""

    startups: list[TimeSpan] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    """`unmetered`, `no_call`, `dropped_fields` (docs/columns.md)."""
    outer: RowNotes | None = None
    so_far: Trajectory | None = None
    """Steps and notes of a runner that may end with an error or at a limit."""

    def of_call(self) -> RowNotes:
        """The notes of a call of this question, which may be made inside another call."""
        around = _notes_of_task.get()
        return RowNotes(flags=self.flags, outer=around if around and around.flags is self.flags else self)

    def add_startup(self, start: float, end: float) -> None:
        """Adds the time from `start` to `end`, in seconds of the monotonic clock."""
        self.startups.append((start, end))
        if self.outer is not None:
            self.outer.add_startup(start, end)


_notes_of_task: ContextVar[RowNotes | None] = ContextVar("row_notes", default=None)


def current_notes() -> RowNotes | None:
    """The notes of the calling task's question, or of its call; None outside a question."""
    return _notes_of_task.get()


def noting(notes: RowNotes) -> _Set[RowNotes | None]:
    """What is reported inside is noted in `notes`."""
    return _Set(_notes_of_task, notes)


@contextmanager
def starting() -> Iterator[None]:
    """The body waits for something to start: its seconds are `startup_s`, and no latency."""
    notes, start = _notes_of_task.get(), time.monotonic()
    try:
        yield
    finally:
        if notes is not None:
            notes.add_startup(start, time.monotonic())


def flag(name: str) -> None:
    """Flags the row of the question."""
    if (notes := _notes_of_task.get()) is not None:
        notes.flags.add(name)


def union_s(intervals: Iterable[TimeSpan]) -> float:
    """Seconds that lie in at least one of the intervals."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
