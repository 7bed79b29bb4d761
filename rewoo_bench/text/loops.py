"""Where a trajectory begins to repeat itself: the one definition of a loop, for rows and guards.

A step is the model calls up to the tool calls that follow them, and those tool calls; after the last tool call every
model call is a step. Two steps are the same where they made the same tool calls with the same arguments and got the
same results, or made none and have the same reply. So a search for the next page is no repetition. A reply whose tool
calls were never made is the same as an earlier step with that reply.

A trajectory loops where it ends with the same step at least three times in a row, or with a cycle of two or three
steps at least twice in a row, whose last round may be cut off. Its first occurrence is no loop. An agent that asks the
same until a limit ends it, to poll, or whose model gives the same vote three times, is in a loop by this definition:

    >>> first_repetition(["a", "b", "b", "b"])  # the third step repeats the second
    2
    >>> first_repetition(["a", "b", "c", "b", "c", "b"])
    3
    >>> first_repetition(["a", "a", "b", "b"])
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

AT_LIMIT = "partial answer"
"""The place of the call that asks for an answer at the step limit; it is no step."""
_CYCLES = ((1, 3), (2, 4), (3, 6))  # steps of a cycle, steps that it takes at the end


def first_repetition(steps: Sequence[Hashable]) -> int | None:
    """The position of the first repetition in the loop that the steps end with; None where they don't end with one."""
    for length, least in _CYCLES:
        start = len(steps) - length
        while start > 0 and steps[start - 1] == steps[start - 1 + length]:
            start -= 1
        if start >= 0 and len(steps) - start >= least:
            return start + length
    return None


def loop_start(calls: Sequence[tuple[bool, tuple[Any, ...]]]) -> tuple[int, int] | None:
    """The step that is the first repetition, counted from 0, and the position of its first call; None without a loop.

    Each call, in order, is whether it is a tool's, and what it did: equal where two calls are the same.
    """
    steps: list[tuple[int, tuple[Any, ...]]] = []  # where each begins, and what it did
    replies: list[int] = []  # since the last tool call
    asked: dict[tuple[Any, ...], int] = {}  # a reply -> the last step with its tool calls
    for place, (is_tool, did) in enumerate(calls):
        if not is_tool:
            replies.append(place)
            continue
        if replies or not steps:
            steps.append((replies[0] if replies else place, ()))
            asked |= {calls[reply][1]: len(steps) - 1 for reply in replies[-1:]}
            replies = []
        begin, done = steps[-1]
        steps[-1] = (begin, tuple(sorted((*done, did))))
    for place in replies:  # whose tool calls weren't made, or that ask for none
        reply = calls[place][1]
        steps.append((place, steps[asked[reply]][1] if reply in asked else (reply,)))
    first = first_repetition([done for _, done in steps])
    return None if first is None else (first, steps[first][0])
