"""What a question's row says beside its calls: the time it waited for something to start, and its flags.

    with starting():            # a process, a server, the import of a library: anything that a question waits for
        await server.ready()
    flag("dropped_fields")

Code that starts or notices something reports it here, and the meter of the question keeps it. The notes are a context
variable of the task, so no protocol needs an argument for them; outside a question nothing is noted. A task that isn't
begun by the question's, such as one of the gateway's server, needs the notes handed to it: `current_notes()`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from rewoo_bench.types import Trajectory

Interval = tuple[float, float]
"""Start and end, in seconds of the monotonic clock."""


@dataclass(slots=True)
class RowNotes:
    """Notes of a question, or of one of its calls: then `outer` is the question's, or those of the call around it."""

    startups: list[Interval] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    """`unmetered`, `other_question`, `no_call`, `dropped_fields` (results/columns.md)."""
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


class noting:  # a class, since a generator's context manager takes three times as long
    """What is reported inside is noted in `notes`."""

    __slots__ = ("_notes", "_token")

    def __init__(self, notes: RowNotes) -> None:
        self._notes = notes

    def __enter__(self) -> None:
        self._token = _notes_of_task.set(self._notes)

    def __exit__(self, *error: object) -> None:
        _notes_of_task.reset(self._token)


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


def union_s(intervals: Iterable[Interval]) -> float:
    """Seconds that lie in at least one of the intervals."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
