"""Where in an architecture a call stands: `planner`, `E3`, `turn 2`.

A runner says it, the meter and the journal read it. It travels with the task (a context
variable), so that the model and tool protocols stay those of any other framework.

    with at("E3", level=1):
        await tool(arguments)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A name that is unique and the same in every run of a question, and the depth in a plan."""

    name: str = ""
    level: int = 0


_current: ContextVar[Place] = ContextVar("place", default=Place())  # noqa: B039 - frozen


def current_place() -> Place:
    """Where the calling task stands."""
    return _current.get()


@contextmanager
def at(name: str, level: int = 0) -> Iterator[None]:
    """Calls made inside stand at `name`; places nest as `E3/summary`."""
    outer = _current.get()
    token = _current.set(Place(f"{outer.name}/{name}" if outer.name else name, level))
    try:
        yield
    finally:
        _current.reset(token)
