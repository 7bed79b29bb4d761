"""Steps of several trajectories of a question, aligned: which are the same look-ups, and where trajectories part.

rows = align_steps([own["steps"] for own in trajectories])
first_divergence([lookups(own["steps"], at) for own, at in zip(trajectories, rows, strict=True)])
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rewoo_bench.text.words import counted

_NO_WORDS = re.compile(r"(?:[^\w+#-]|_|-(?!\d)|(?<=\w)-)+")  # but the signs of C++, C# and -5
_LETTER = re.compile(r"[^\W\d_]")
_LONGEST = 300  # characters of an argument; an LLM tool's has whole pages in it
_NAME = 60  # characters of a look-up in a sentence
_SHORTEST_EVIDENCE = 40  # characters of a paragraph; "No results." is no evidence


def align_steps(trajectories: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[int]]:
    """The row of every step on the same question, from 0, so that the same look-ups are in one row.

    Two steps are in one row where they call the same tool with the same normalised argument, or where the same tool
    showed them the same first paragraph ("Volga" and "Volga River" lead to one page). Rows are in the order of the
    first trajectory; the others' steps follow the step that they come after. A trajectory has at most one step in a
    row: the second same call is another row.
    """
    order = _Order()
    placed: list[list[Hashable]] = []
    first_of: dict[Hashable, Hashable] = {}  # of each argument and each paragraph the first step's key
    for number, steps in enumerate(trajectories):
        seen: Counter[Hashable] = Counter()
        keys: list[Hashable] = []
        for position, step in enumerate(steps):
            common: Hashable = (number, position)  # of a turn without a tool
            if tool := step["tool"]:
                same: list[Hashable] = [(tool, _normalised(tool, step["argument"][:_LONGEST]))]
                paragraph = step["observation"].partition("\n")[0].strip()
                if not step["failed"] and len(paragraph) >= _SHORTEST_EVIDENCE:
                    same.append((tool, "showed", paragraph))
                common = next((first_of[each] for each in same if each in first_of), same[0])
                for each in same:
                    first_of.setdefault(each, common)
            keys.append((common, seen[common]))
            seen[common] += 1
        order.add(keys)
        placed.append(keys)
    rows = {key: row for row, key in enumerate(order)}
    return [[rows[key] for key in keys] for keys in placed]


_START, _END = object(), object()


class _Order:
    """Keys of several lists in one order: a new key follows the one that stands before it in its own list."""

    def __init__(self) -> None:
        self._next: dict[Hashable, Hashable] = {_START: None}

    def add(self, keys: Iterable[Hashable]) -> None:
        after: Hashable = _START
        for key in keys:
            if key not in self._next:
                self._next[key] = self._next[after]
                self._next[after] = key
            after = key

    def __iter__(self) -> Iterator[Hashable]:
        key = self._next[_START]
        while key is not None:
            yield key
            key = self._next[key]


def _normalised(tool: str, argument: str) -> str:
    """An argument without case and marks; of a calculation only spaces are left out."""
    if tool == "Calculator" or not _LETTER.search(argument):
        return "".join(argument.casefold().split()).strip(".,;:?!'\"")
    return _NO_WORDS.sub(" ", argument.casefold()).strip()


_NO_LOOKUPS = (None, "LLM", "Finish")


def lookups(steps: Sequence[Mapping[str, Any]], rows: Sequence[int]) -> list[int]:
    """The rows (`align_steps`) of a trajectory's look-ups: its tool calls but those that only ask a model."""
    return [row for step, row in zip(steps, rows, strict=True) if step["tool"] not in _NO_LOOKUPS]


def first_divergence(paths: Sequence[Sequence[int]]) -> int | None:
    """Number of the look-up, from 1, at which trajectories part: in their order, not all have the same one there.

    `paths` are their `lookups`; an empty one, of a trajectory that looked nothing up, isn't compared. None where they
    never part.
    """
    paths = [path for path in paths if path]
    for number in range(max(map(len, paths), default=0)):
        if len({path[number] if number < len(path) else None for path in paths}) > 1:
            return number + 1
    return None


Cells = list[Mapping[str, Any] | None]


def beside(trajectories: Sequence[Mapping[str, Any]]) -> list[Cells]:
    """The rows of some trajectories of a question: a row has a step, a block (trajectories.py) or nothing of each."""
    order, rows = _Order(), dict[Hashable, Cells]()
    for number, own in enumerate(trajectories):
        order.add(own["rows"])
        for row, step in zip(own["rows"], own["steps"], strict=True):
            rows.setdefault(row, [None] * len(trajectories))[number] = step
    places = {row: place for place, row in enumerate([*order, _END])}
    above: dict[Hashable, list[Cells]] = {row: [] for row in places}  # of each row those of the blocks above it
    for number, own in enumerate(trajectories):
        for block in own["blocks"]:
            made = own["rows"][block["at"] : max(block["end"], block["at"] + 1)]
            blocks = above[min(made or [_END], key=places.__getitem__)]
            if not blocks or blocks[-1][number] is not None:
                blocks.append([None] * len(trajectories))
            blocks[-1][number] = block
    return [cells for row, blocks in above.items() for cells in (*blocks, *([rows[row]] if row in rows else ()))]


def parting(trajectories: Sequence[Mapping[str, Any]]) -> str:
    """A sentence on how many look-ups trajectories share before they part; empty where they never do."""
    at = first_divergence([own["path"] for own in trajectories])
    if at is None:
        return ""
    steps = [
        own["steps"][own["rows"].index(own["path"][at - 1])] if len(own["path"]) >= at else None
        for own in trajectories
        if own["path"]
    ]
    names = " | ".join(_shorter(step["argument"] or step["tool"]) if step else "no further look-up" for step in steps)
    when = f"after {counted(at - 1, 'shared look-up')}" if at > 1 else "at their first look-up"
    return f"they part {when}: {names}"


def _shorter(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _NAME else f"{line[:_NAME]} …"
