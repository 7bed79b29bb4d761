"""Which model call asked for each tool call, and what of a trajectory is a step of its agent.

    turns_of([ModelCall(…, tool_calls=[ask, search]), use_of_ask, ModelCall(…, agent="helper"), use_of_search])
    # [1, 1, 2, 1]

Tools may run at once, and a tool may ask an agent, so a tool's call needn't belong to the model call before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from rewoo_bench.imports.record import ModelCall, ToolUse, Turn
from rewoo_bench.types import ToolCall

_NEAR = 1_000  # tool calls that were asked for and not carried out yet, among which one is looked for


def turns_of(events: Sequence[ModelCall | ToolUse | Turn]) -> list[int]:
    """The number of the model call that each event is, or that asked for it; from 1, and 0 where there is none.

    That is the last reply with this call, by its id, else by name and arguments, else by name; without such a reply,
    the last call of the same agent.
    """
    asked: list[tuple[int, str, ToolCall]] = []  # and not carried out yet: turn, agent, call
    last: dict[str, int] = {}
    found: list[int] = []
    turn = 0
    for event in events:
        if isinstance(event, ModelCall):
            turn += 1
            last[event.agent] = turn
            asked += [(turn, event.agent, call) for call in event.tool_calls]
            found.append(turn)
        elif isinstance(event, Turn):
            found.append(0)
        elif (entry := _asked(event, asked)) is not None:
            asked.remove(entry)
            found.append(entry[0])
        else:
            found.append(last.get(event.agent, turn))
    return found


def _asked(use: ToolUse, asked: Sequence[tuple[int, str, ToolCall]]) -> tuple[int, str, ToolCall] | None:
    """The entry of a tool's call."""
    named = [each for each in islice(reversed(asked), _NEAR) if each[2].name == use.name]
    own = [each for each in named if each[1] == use.agent]
    same_id = [each for each in own if use.call_id and each[2].id == use.call_id]
    same = [each for each in own or named if dict(each[2].arguments) == dict(use.arguments or {})]
    return next(iter(same_id or same or own), None)


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
