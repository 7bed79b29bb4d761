"""Broken documents for the readers of recorded traces, and what must hold for whatever a reader finds in them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from rewoo_bench.errors import DataError
from rewoo_bench.imports.formats import Found, read_files

PIECES: tuple[Any, ...] = (
    *(None, [], {}, "x", -1, 1e999, True, [[]], {"role": 3}, {"agent": 3}, "\ud800", 2**70, [None], ["user"]),
)


def mutated(value: Any, random_: random.Random) -> Any:
    """The same JSON with about one value in thirty replaced, dropped or doubled."""
    if random_.random() < 0.03:
        return random_.choice(PIECES)
    if isinstance(value, dict):
        return {name: mutated(each, random_) for name, each in value.items() if random_.random() > 0.02}
    if isinstance(value, list):
        return [mutated(each, random_) for each in value for _ in range(2 if random_.random() < 0.02 else 1)]
    return value


def trajectories_or_faults(path: Path) -> list[Found]:
    """What is found in a file; each has either a trajectory or a fault of one line, and so has a damaged file."""
    try:
        found = [*read_files([path])]
    except DataError as error:
        found = [Found(None, fault=str(error))]
    for each in found:
        assert (each.trajectory is None) == bool(each.fault)
        assert "\n" not in each.fault
    return found
