"""Flags of rows of questions.parquet: reasons to doubt a row.

flagged(rows, "unmetered")      # a mask
list(flag_lines(rows))          # ["mine: 20 of 20 rows were answered without a metered model call …"]
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewoo_bench.runs.folder import TRACES_FILE
from rewoo_bench.runs.inferred_loops import INFERRED

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

UNMETERED = "unmetered"
FLAGS = {
    UNMETERED: "answered without a metered model call: what it used isn't known, and these rows are in no mean",
    "other_question": "sent a prompt that holds the text of another question of the run",
    "no_call": "answered a later trial without a call",
    "dropped_fields": "sent fields that were not passed on to the model",
    INFERRED: "ended in a loop, as far as the sizes of its calls tell: the run is older than the column",
}
"""What each flag of a row says of its question, the worst first."""
_COLUMN = "flags"
_MOST_ADDRESSES = 3


def flagged(rows: pd.DataFrame | pa.Table, flag: str) -> NDArray[np.bool_]:
    """A mask over rows: True where the row has the flag. Rows of an older version have none."""
    import numpy as np

    return np.fromiter((flag in flags for flags in _flags(rows)), dtype=bool, count=len(rows))


def flag_lines(rows: pd.DataFrame | pa.Table, folders: Sequence[Path] = ()) -> Iterator[str]:
    """A line for each flag and architecture, and where agents connected to beside the gateway, as traces have it."""
    connected = _connections(folders)
    architectures = [str(name) for name in _values(rows, "architecture")]
    counts = Counter((flag, name) for flags, name in zip(_flags(rows), architectures, strict=True) for flag in flags)
    for flag, name in sorted(counts, key=lambda key: [*FLAGS, key[0]].index(key[0])):
        asked = architectures.count(name)
        line = f"{name} {FLAGS.get(flag, 'is flagged')} ({flag}): {counts[flag, name]:,} of {asked:,} rows"
        found = connected.pop(name, None) if flag == UNMETERED else None
        yield f"{line}; its processes connected to {_listed(found)}" if found else line
    for name, found in connected.items():
        if name in architectures:
            yield f"{name}: its processes connected to {_listed(found)} beside the gateway, as tools of its own may do"


def _flags(rows: pd.DataFrame | pa.Table) -> Iterator[Iterable[str]]:
    for flags in _values(rows, _COLUMN):
        yield flags if isinstance(flags, Iterable) else ()


def _values(rows: pd.DataFrame | pa.Table, name: str) -> Iterable[Any]:
    names: Iterable[str] = getattr(rows, "column_names", None) or list(rows.columns)
    if name not in names:
        return [None] * len(rows)
    column: Any = rows[name]
    values: Iterable[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column
    return values


def _connections(folders: Sequence[Path]) -> dict[str, Counter[str]]:
    """Architecture -> addresses that its processes were seen to connect to."""
    found: dict[str, Counter[str]] = {}
    for folder in folders:
        with suppress(OSError, ValueError), (folder / TRACES_FILE).open(encoding="utf-8") as lines:
            for line in lines:
                if '"connections"' in line and (
                    seen := ((trace := json.loads(line)).get("notes") or {}).get("connections")
                ):
                    found.setdefault(str(trace["architecture"]), Counter()).update(map(str, seen))
    return found


def _listed(found: Counter[str]) -> str:
    most = [address for address, _ in found.most_common(_MOST_ADDRESSES)]
    more = f" and {len(found) - len(most)} more" if len(found) > len(most) else ""
    return f"{', '.join(most)}{more}"
