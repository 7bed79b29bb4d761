"""A trajectory as another program recorded it: the one form that all formats are read into.

    file -> record (JSON) -> RecordedTrajectory -> rows, calls, trace, prompts

What a format lacks is None. Times are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from rewoo_bench.types import Message, StopReason, ToolCall, Usage


class Unreadable(ValueError):
    """A record that can't be read; the message says what was expected and found."""


class Times(NamedTuple):
    """When a call began and ended."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model. `messages` is its whole prompt, None where it wasn't recorded.

    `tools` are the schemas that were offered, as JSON. `usage` is None where the tokens have to be counted.
    """

    messages: Sequence[Message] | None
    reply: str = ""
    tool_calls: Sequence[ToolCall] = ()
    usage: Usage | None = None
    model: str = ""
    tools: Sequence[Any] = ()
    thoughts: str = ""
    finish_reason: str | None = None
    cost_usd: float | None = None
    times: Times | None = None
    error: str | None = None
    agent: str = ""
    """Name of the sub-agent that made it."""
    is_estimated: bool = False
    """Whether whoever recorded `usage` had counted it with a tokenizer."""
    is_cached_known: bool = True
    """Whether whoever recorded `usage` has a field for the cached tokens; without one they aren't known."""
    role: str = "agent"
    """Its part in the architecture, of a run of rewoo_bench: `planner`, `solver`; `tool` inside a tool's call."""


_ROLES = ("planner", "solver", "tool", "router")  # a judge's tokens would be in no sum


def role_of(ours: Mapping[str, Any]) -> str:
    """The role of a call that rewoo_bench wrote; that of an agent for what isn't one."""
    return str(ours.get("role")) if ours.get("role") in _ROLES else "agent"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool and its result; `arguments` and `result` are None where they weren't recorded."""

    name: str
    arguments: Mapping[str, Any] | None
    result: str | None
    failed: bool = False
    times: Times | None = None
    agent: str = ""
    call_id: str = ""
    """Id of the call in the reply that asked for it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a user said to the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class RecordedTrajectory:
    """An agent's work on one task. `events` are in their order; a user's later turns are among them.

    `solved` and `score` (0 to 1) are None where nobody judged the answer. `system` is what the agent was told before
    the task. `trial` is None where the format doesn't say; trials of a task are then numbered as they come.
    `cost_usd` is that of the whole trajectory, where it is known of more than its calls; `usage` and `latency_s` are,
    where they aren't known of its calls. `f1` (0 to 1) is None where no F1 of the answer was recorded, `stop_reason`
    where it follows from the answer and the error. `is_without_texts`: its texts and its tools' arguments were left out
    when it was written (publish.py).
    """

    task: str
    question: str
    events: Sequence[ModelCall | ToolUse | Turn]
    agent: str = ""
    trial: int | None = None
    system: str = ""
    answer: str | None = None
    answers: Sequence[str] = ()
    solved: bool | None = None
    score: float | None = None
    error: str | None = None
    stop_reason: StopReason | None = None
    cost_usd: float | None = None
    is_without_texts: bool = False
    usage: Usage | None = None
    latency_s: float | None = None
    f1: float | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> Iterator[ModelCall]:
        return (event for event in self.events if isinstance(event, ModelCall))


MISSING: Mapping[str, str] = {
    "texts": "written without texts: arguments of tools aren't known, so `plannable` can't judge these traces",
    "arguments": "arguments of tools weren't recorded: `plannable` can't judge such traces",
    "said": "what the user said wasn't recorded: `plannable` can't judge such traces",
    "usage": "no tokens were recorded: they are counted with a tokenizer, and marked as estimated",
    "calls": "of some tasks only requests were recorded, without replies: their model calls aren't counted",
    "replies": "some replies weren't recorded: the tokens of their texts aren't counted",
    "shares": "tokens are known of each trajectory: its calls have estimated shares of them, by a tokenizer",
    "call_usage": "tokens are known of each trajectory, not of its single calls: those are null",
    "prompts": "prompts weren't recorded: what a cache would have held of them isn't known, so no cache is priced",
    "tools": "the tools' schemas weren't recorded: each prompt had more tokens than are counted here",
    "times": "times weren't recorded: there is no latency, and every prefix counts as still in the cache",
    "times of unknown prompts": "times weren't recorded: there is no latency",
    "tool times": "when tools ran wasn't recorded: their calls have no latency, those of models do",
    "call_times": "the time of each trajectory is known, not when its single calls were made",
    "solved": "nobody says whether tasks were solved: there is no accuracy",
    "results": "results of tools weren't recorded",
}
"""What a format may lack, and what follows from that."""


def number(value: Any) -> float | None:
    """A number, or the number that a text holds; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if abs(found) < 1e300 else None  # neither infinite nor NaN


_MOST_TOKENS = 2**31 - 1
_YEAR_10000 = 253_402_300_800  # in seconds since 1970


def count(value: Any) -> int:
    """A number of tokens; 0 where there is none. Raises `Unreadable` for one that no call can have."""
    found = number(value)
    if found and found > _MOST_TOKENS:
        raise Unreadable(f"a call of {found:g} tokens")
    return int(found) if found and found > 0 else 0


def as_time(value: Any, unit: Literal["s", "ms", "ns"] = "s") -> float | None:
    """Seconds since 1970 of a number in that unit, or of a text in ISO 8601; UTC where it names no zone."""
    found = number(value)
    if found is not None:
        found /= {"s": 1, "ms": 1e3, "ns": 1e9}[unit]
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (OverflowError, ValueError):
            return None
    return found if found is not None and 0 <= found < _YEAR_10000 else None


def times_of(start: float | None, end: float | None) -> Times | None:
    """Both, where both are known and in their order."""
    return Times(start, end) if start is not None and end is not None and start <= end else None
