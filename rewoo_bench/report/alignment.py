"""Steps of several trajectories on the same question, aligned by what they looked up.

    align_steps([rewoo_steps, react_steps])  ->  [[0, 1, 2], [0, 2, 3]]     # a row for every step

Two steps are in one row where they call the same tool with the same normalised argument, or where the same tool showed
them the same first paragraph ("Volga" and "Volga River" lead to one page). So a page that ReWOO looks up first and
ReAct third is in one row of the table, and what only one of them did has a row of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

_NO_WORDS = re.compile(r"[\W_]+")
_LONGEST = 300  # characters of an argument; an LLM tool's has whole pages in it

_SHORTEST_EVIDENCE = 40  # characters of a paragraph; "No results." is no evidence

StepKey = tuple[Hashable, ...]


def step_key(step: Mapping[str, Any]) -> StepKey | None:
    """What two steps have in common to be in one row; None for a turn without a tool, which is in no other's row."""
    if not step.get("tool"):
        return None
    argument = str(step.get("argument", ""))[:_LONGEST]
    return (step["tool"], _NO_WORDS.sub(" ", argument.casefold()).strip())


def _evidence_key(step: Mapping[str, Any]) -> StepKey | None:
    """The tool, and the first paragraph that it showed; None where there is none."""
    paragraph = str(step.get("observation") or "").partition("\n")[0].strip()
    if not step.get("tool") or step.get("failed") or len(paragraph) < _SHORTEST_EVIDENCE:
        return None
    return (step["tool"], "showed", paragraph)


class _Keys:
    """Gives steps that belong in one row the same key."""

    def __init__(self) -> None:
        self._first: dict[StepKey, StepKey] = {}

    def of(self, step: Mapping[str, Any]) -> StepKey | None:
        """The key of the first step with this argument or this evidence."""
        if (key := step_key(step)) is None:
            return None
        evidence = _evidence_key(step)
        first = self._first.get(key) or (evidence and self._first.get(evidence)) or key
        self._first.setdefault(key, first)
        if evidence:
            self._first.setdefault(evidence, first)
        return first


def align_steps(trajectories: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[int]]:
    """The row of every step, from 0. Rows are in the order of the first trajectory; the others' steps follow
    the step that they come after. A trajectory has at most one step in a row."""
    order: list[StepKey] = []
    placed: list[list[StepKey]] = []
    same = _Keys()
    for number, steps in enumerate(trajectories):
        keys = _numbered(steps, number, same)
        after = -1
        for key in keys:
            if key in order:
                after = order.index(key)
            else:
                after += 1
                order.insert(after, key)
        placed.append(keys)
    rows = {key: row for row, key in enumerate(order)}
    return [[rows[key] for key in keys] for keys in placed]


def _numbered(steps: Sequence[Mapping[str, Any]], trajectory: int, same: _Keys) -> list[StepKey]:
    """Keys that are unique within a trajectory: the second same call is another row."""
    seen: Counter[StepKey] = Counter()
    keys: list[StepKey] = []
    for position, step in enumerate(steps):
        key = same.of(step) or ("", trajectory, position)
        keys.append((*key, seen[key]))
        seen[key] += 1
    return keys
