"""A trajectory as another program recorded it: the one form that all formats are read into; and how numbers, times and
tokens in a record are read.

    file -> record (JSON) -> RecordedTrajectory -> rows, calls, trace, prompts

What a format lacks is None. Times are seconds since 1970.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rewoo_bench.models.hosted.responses import CountedUsage, count_usage
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.model_output import as_object, objects_in
from rewoo_bench.types import Example, GoldAction, Injection, Message, StopReason, ToolCall, Usage


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
    is_inconsistent: bool = False
    """Whether the total that whoever recorded `usage` gives isn't the sum of its parts."""

    @property
    def is_counted(self) -> bool:
        """Whether its tokens are a tokenizer's count, ours or theirs."""
        return self.usage is None or self.is_estimated


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


class Attack(NamedTuple):
    """What an attacker put into a trajectory's results; `gold` are the calls that the task itself needs.

    `exposed`: whether a prompt showed it. `succeeded` is None where nobody judged that. `is_known`: whether whoever
    wrote the attack says which calls it asks for.
    """

    gold: tuple[GoldAction, ...]
    injection: Injection
    exposed: bool
    succeeded: bool | None
    is_known: bool


@dataclass(frozen=True, slots=True)
class RecordedTrajectory:
    """An agent's work on one task. `events` are in their order; a user's later turns are among them.

    `solved` is None where nobody judged the answer. `system` is what the agent was told before the task. `trial` is
    None where the format doesn't say; trials of a task are then numbered as they come. `cost_usd` is that of the whole
    trajectory, where it is known of more than its calls; `usage` is, where it isn't known of its calls, and
    `is_cached_known` says whether that `usage` has cached tokens. `f1` (0 to 1) is None where no F1 of the answer was
    recorded, `stop_reason` where it follows from the answer and the error. `is_without_texts`: its texts and
    its tools' arguments were left out when it was written (publish.py).
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
    error: str | None = None
    stop_reason: StopReason | None = None
    cost_usd: float | None = None
    is_without_texts: bool = False
    usage: Usage | None = None
    is_cached_known: bool = True
    f1: float | None = None
    kind: str = ""
    """Kind of the task, such as its suite."""
    attack: Attack | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def example(self) -> Example:
        """The task; its gold calls are known where it was attacked."""
        gold, injection = self.attack[:2] if self.attack else ((), None)
        answers = tuple(self.answers)
        return Example(self.task, self.question, answers, kind=self.kind, actions=gold, injection=injection)

    @property
    def calls(self) -> Iterator[ModelCall]:
        return (event for event in self.events if isinstance(event, ModelCall))

    @property
    def times(self) -> Times | None:
        """From when its first call began to when its last one ended; None where no call has times."""
        known = [event.times for event in self.events if not isinstance(event, Turn) and event.times]
        return Times(min(each.start for each in known), max(each.end for each in known)) if known else None

    def with_calls(self, change: Callable[[ModelCall], ModelCall]) -> RecordedTrajectory:
        """The trajectory with each model call as `change` makes it."""
        events = [change(event) if isinstance(event, ModelCall) else event for event in self.events]
        return replace(self, events=events)


# Which model call asked for each tool call, and what of a trajectory is a step of its agent.
#
#     turns_of([ModelCall(…, tool_calls=[ask, search]), use_of_ask, ModelCall(…, agent="helper"), use_of_search])
#     # [1, 1, 2, 1]
#
# Tools may run at once, and a tool may ask an agent, so a tool's call needn't belong to the model call before it.


_NEAR = 1_000  # tool calls that were asked for and not carried out yet, among which one is looked for


class Asked(NamedTuple):
    """A tool call in a reply: the reply's number from 1, its agent, and the call."""

    turn: int
    agent: str
    call: ToolCall


def asked_for(events: Sequence[ModelCall | ToolUse | Turn]) -> list[Asked | None]:
    """Of each tool's call the one that a reply before had asked for; None where there is none, and for other events.

    That is the last one of the same agent with this id, else with its name and arguments, else with its name; else one
    of another agent with this id, or with its name and arguments.
    """
    waiting: list[Asked] = []
    found: list[Asked | None] = []
    turn = 0
    for event in events:
        entry = None
        if isinstance(event, ModelCall):
            turn += 1
            waiting += [Asked(turn, event.agent, call) for call in event.tool_calls]
        elif isinstance(event, ToolUse):
            near = [*islice(reversed(waiting), _NEAR)]
            same_id = [each for each in near if event.call_id and each.call.id == event.call_id]
            named = [each for each in near if each.call.name == event.name]
            same = [each for each in named if dict(each.call.arguments) == dict(event.arguments or {})]
            own = [each for each in (*same_id, *same, *named) if each.agent == event.agent]
            entry = next(chain(own, same_id, same), None)
            if entry is not None:
                waiting.remove(entry)
        found.append(entry)
    return found


def turns_of(events: Sequence[ModelCall | ToolUse | Turn]) -> list[int]:
    """The number of the model call that each event is, or that asked for it; from 1, and 0 where there is none.

    Of a tool's call that no reply asked for, it is the last call of the same agent.
    """
    last: dict[str, int] = {}
    found: list[int] = []
    turn = 0
    for event, entry in zip(events, asked_for(events), strict=True):
        if isinstance(event, ModelCall):
            turn += 1
            last[event.agent] = turn
            found.append(turn)
        elif isinstance(event, Turn):
            found.append(0)
        else:
            found.append(entry.turn if entry else last.get(event.agent, turn))
    return found


def are_steps(events: Sequence[ModelCall | ToolUse | Turn]) -> list[bool]:
    """Whether each event is a step: a tool's call with the reply that asked for it, or a reply that asked for none.

    What happens inside a tool's call is no step: the calls of an agent that a tool asks.
    """
    calls = [event for event in events if isinstance(event, ModelCall)]
    agents = {call.agent for call in calls if call.role != "tool"} or {call.agent for call in calls}
    turns = turns_of(events)
    with_tools = {turn for event, turn in zip(events, turns, strict=True) if isinstance(event, ToolUse)}
    return [
        isinstance(event, ToolUse) and (not agents or event.agent in agents)
        if not isinstance(event, ModelCall)
        else not event.tool_calls and turn not in with_tools and event.agent in agents and event.role != "tool"
        for event, turn in zip(events, turns, strict=True)
    ]


# Objects, numbers and times of a record, whoever wrote it.


def parsed(value: Any) -> Any:
    """The value of a text that holds a JSON object or list; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return load_json(value)
        except ValueError:
            return value
    return value


def object_at(record: Any, name: str) -> Mapping[str, Any]:
    """The object in a field; an empty one where there is none."""
    return as_object(as_object(record).get(name))


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def objects_at(record: Any, name: str) -> list[Any]:
    """The objects of the list in a field; none where there is no list."""
    return objects_in(as_object(record).get(name))


def first_of(facts: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of these fields that has a value."""
    return next((facts[name] for name in names if facts.get(name) is not None), None)


def number(value: Any) -> float | None:
    """A number, or the number that a text holds; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) < 1e300 else None  # neither infinite nor NaN


def as_verdict(value: Any) -> bool | None:
    """`True`, `1.0`, `"correct"` or `"C"` as solved; a score of 1 and more is solved, a lower one isn't."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (word := value.strip().casefold()) in _WORDS:
        return _WORDS[word]
    score = number(value)
    return None if score is None else score >= 1 - 1e-6


_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "pass", "passed", "success", "solved", "resolved", "c"), True),
    **dict.fromkeys(("false", "no", "incorrect", "fail", "failed", "failure", "unsolved", "unresolved", "i"), False),
}


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


# Tokens of a call.


def counted_usage(usage: Any) -> CountedUsage | None:
    """The tokens of a usage object in the words of any provider, and whether its own total agrees.

    None where it has none, or impossible ones.
    """
    counted = count_usage(_with_numbers(usage)) if isinstance(usage, Mapping) else None
    return counted if counted and counted.usage != Usage() else None


def _with_numbers(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The object with the numbers that some exports write as texts."""
    return {
        name: _with_numbers(value)
        if isinstance(value, Mapping)
        else int(value)
        if isinstance(value, str) and value.isdecimal() and len(value) < 20
        else value
        for name, value in usage.items()
    }


def names_cached(usage: Any) -> bool:
    """Whether a usage object says how many tokens came from a cache."""
    if not isinstance(usage, Mapping):
        return False
    details = [usage, *(each for each in usage.values() if isinstance(each, Mapping))]
    return any(_is_read(name) and number(value) is not None for each in details for name, value in each.items())


def _is_read(name: Any) -> bool:
    """Whether a count's name says that a cache had these tokens, and not that they were written to one."""
    word = str(name).casefold()
    return "cache" in word and not any(other in word for other in ("creation", "write", "miss"))


class Parts:
    """Parts of trajectories on disk, until all are there."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        self._database.executescript(
            "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; CREATE TABLE parts(trajectory TEXT, part TEXT);"
        )

    def close(self) -> None:
        self._database.close()

    def add(self, format_: str, key: str, file: Path, where: str, part: Any) -> None:
        values = json.dumps([format_, key]), json.dumps([str(file), where, part], default=str)
        self._database.execute("INSERT INTO parts VALUES (?, ?)", values)

    def whole(self) -> Iterator[tuple[str, str, Path, str, Sequence[Any]]]:
        """Of each trajectory, in the order of their first parts: format, id, file and place of that part, all parts."""
        self._database.execute("CREATE INDEX of_parts ON parts(trajectory)")
        keys = self._database.execute("SELECT trajectory FROM parts GROUP BY trajectory ORDER BY min(rowid)")
        for (key,) in keys.fetchall():
            rows = self._database.execute("SELECT part FROM parts WHERE trajectory = ? ORDER BY rowid", (key,))
            parts = [json.loads(row) for (row,) in rows]
            format_, id_ = json.loads(key)
            file, where, _ = parts[0]
            yield format_, id_, Path(file), where, [part for *_, part in parts]
