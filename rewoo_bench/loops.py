"""Where a trajectory begins to repeat itself: the one definition of a loop, for rows, guards and inferences.

A step is the model calls up to the tool calls that follow them, and those tool calls; after the last tool call every
model call is a step. Two steps are the same where they made the same tool calls with the same arguments and got the
same results, or made none and have the same reply. So a search for the next page is no repetition. A reply whose tool
calls were never made is the same as an earlier step with that reply.

A trajectory loops where it ends with the same step at least three times in a row, or with a cycle of two or three
steps at least twice in a row, whose last round may be cut off. Its first occurrence is no loop:

    >>> first_repetition(["a", "b", "b", "b"])  # the third step repeats the second
    2
    >>> first_repetition(["a", "b", "c", "b", "c", "b"])
    3
    >>> first_repetition(["a", "a", "b", "b"])
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

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
