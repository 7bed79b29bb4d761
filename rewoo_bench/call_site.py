"""Where in an architecture a call happens: `planner`, `E3`, `turn 2`.

A runner sets it, the meter and the journal read it. It is a context variable of the task, so that the
model and tool protocols need no argument for it.

    with call_site("E3", level=1):
        await tool(arguments)

The evaluator sets the architecture in the same way; local models keep a prefix cache for each:

    with in_architecture("rewoo"):
        await runner.run(question, model=model, tools=tools)
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

AGENT = "agent"
"""The call site of all requests of an external agent."""


@dataclass(frozen=True, slots=True)
class CallSite:
    """A name that is unique and the same in every run of a question, and the depth in a plan."""

    name: str = ""
    level: int = 0


_call_site: ContextVar[CallSite] = ContextVar("place", default=CallSite())  # noqa: B039 - frozen

_architecture: ContextVar[str] = ContextVar("architecture", default="")


class _Set(Generic[T]):
    """Sets a context variable inside its `with`. A generator would cost three times as much, at every call."""

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


def current_call_site() -> CallSite:
    """The call site of the calling task."""
    return _call_site.get()


def call_site(name: str, level: int = 0) -> _Set[CallSite]:
    """Calls made inside are made at `name`; call sites nest as `E3/summary`."""
    outer = _call_site.get().name
    return _Set(_call_site, CallSite(f"{outer}/{name}" if outer else name, level))


def current_architecture() -> str:
    """Name of the architecture that the calling task works for; empty outside an evaluation."""
    return _architecture.get()


def in_architecture(name: str) -> _Set[str]:
    """Calls made inside belong to the architecture of that name."""
    return _Set(_architecture, name)
