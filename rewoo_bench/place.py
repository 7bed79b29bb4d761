"""Which architecture makes a call, and where in it the call stands: `planner`, `E3`, `turn 2`.

A runner says it, the meter and the journal read it. It travels with the task (a context
variable), so that the model and tool protocols stay those of any other framework.

    with at("E3", level=1):
        await tool(arguments)

The evaluator names the architecture in the same way, for a local model that keeps a prefix cache for each:

    with in_architecture("rewoo"):
        await runner.run(question, model=model, tools=tools)
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

_architecture: ContextVar[str] = ContextVar("architecture", default="")


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


def current_architecture() -> str:
    """Name of the architecture that the calling task works for; empty outside an evaluation."""
    return _architecture.get()


@contextmanager
def in_architecture(name: str) -> Iterator[None]:
    """Calls made inside belong to the architecture of that name."""
    token = _architecture.set(name)
    try:
        yield
    finally:
        _architecture.reset(token)
