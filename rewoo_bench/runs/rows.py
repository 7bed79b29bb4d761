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

from rewoo_bench.config.names import REPLAY, is_oracle
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.folder import QUESTIONS_FILE, TRACES_FILE
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.runs.option_types import SUBSET_COLUMNS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray


UNMETERED = "unmetered"
INFERRED = "inferred_loop"
FLAGS = {
    UNMETERED: "answered without a metered model call: what it used isn't known, and these rows are in no mean",
    "other_question": "sent a prompt that holds the text of another question of the run",
    "no_call": "answered a later trial without a call",
    "dropped_fields": "sent fields that were not passed on to the model",
    INFERRED: "ended in a loop, as far as the sizes of its calls tell: the run is older than the column",
}
"""What each flag of a row says of its question, the worst first."""
_FLAGS_COLUMN = "flags"
_MOST_ADDRESSES = 3


def flagged(rows: pd.DataFrame | pa.Table, flag: str) -> NDArray[np.bool_]:
    """A mask over rows: True where the row has the flag."""
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
    for flags in _values(rows, _FLAGS_COLUMN):
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


# Rows that are in no mean: they show nothing about what an architecture costs.
#
# Of a question that the infrastructure failed there is no exact match (null), and its tokens, calls and cost are of
# incomplete work. A question that an external agent answered without one metered model call (the flag `unmetered`)
# looks free, and what answered it isn't known. Means, intervals, tests, claims, gates and figures leave both out and
# give their number. A comparison of two architectures leaves out both rows of the pair. A question that reached a
# limit (steps, tokens, time, cost) hasn't failed: without an answer it counts as wrong, at the cost in its row.
#
#     left_out(rows)                    # a mask: True for a row that is in no mean
#     pairs_left_out(rows_a, rows_b)    # of aligned rows: True where either of the two is


def failed(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where the infrastructure failed the question."""
    import numpy as np

    from rewoo_bench.runs.table_columns import read_columns

    mask: NDArray[np.bool_] = np.isnan(read_columns(rows, ["exact_match"])["exact_match"].values)
    return mask


def left_out(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where the question failed, or was answered without a metered call."""
    return failed(rows) | flagged(rows, UNMETERED)


def pairs_left_out(a: pd.DataFrame, b: pd.DataFrame) -> NDArray[np.bool_]:
    """The same for two tables whose rows are of the same questions and trials, in the same order."""
    return left_out(a) | left_out(b)


# Which rows are an oracle's: it is given the answers, so their accuracy and their latency mean nothing.
#
#     oracle_rows(rows)                # a mask over rows of questions.parquet
#     answers_of_oracle("replay/r1")   # True where the run in r1 was answered by an oracle, or replays one that was
#
# The model's name says it, or the column `oracle`, which is null where a replayed recording doesn't say.


ORACLE_COLUMN = "oracle"


def oracle_rows(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where an oracle answered, or a replay of one."""
    import numpy as np

    from rewoo_bench.runs.table_columns import read_columns, there

    columns = read_columns(rows, ["model", *there(rows, [ORACLE_COLUMN])])
    models = columns["model"]
    mask: NDArray[np.bool_] = np.array([*map(is_oracle, models.names), False])[models.values]  # -1: no name
    if ORACLE_COLUMN in columns:
        mask = mask | (columns[ORACLE_COLUMN].values > 0)
    return mask


def answers_of_oracle(model: str) -> bool | None:
    """Whether a model's answers are an oracle's; of a replay, those of its recorded run. None where nothing says it."""
    seen: set[str] = set()
    while model.startswith(REPLAY) and model not in seen:
        seen.add(model)
        folder = Path(model.removeprefix(REPLAY))
        written = _written(folder / QUESTIONS_FILE)
        if written is not None:
            return written
        try:
            options = read_manifest(folder).options
        except DataError:  # a journal is enough to replay
            return None
        model = str(options.get("model", ""))
    return is_oracle(model)


def _written(path: Path) -> bool | None:
    """The column of a recorded run; None in one that was killed before its tables were written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            values = file.read(columns=[ORACLE_COLUMN])[ORACLE_COLUMN].drop_null().to_pylist()
    except (pa.ArrowException, OSError):
        return None
    return any(values) if values else None


# Rows of questions.parquet, split by the kind of question.
#
# for part in subsets(rows, "question_type"):    # part["dataset"] is "hotpotqa, bridge"
#     ...


def subsets(rows: pd.DataFrame, by: str) -> list[pd.DataFrame]:
    """The rows of each value of such a column, with the value in the data set's name; in order of the values.

    Raises `UsageError` for another column, and where no row has a value.
    """
    if by not in SUBSET_COLUMNS:
        raise UsageError(unknown("column to compare by", by, SUBSET_COLUMNS))
    there = [name for name in SUBSET_COLUMNS if name in rows.columns and rows[name].notna().any()]
    if by not in there:
        others = ", ".join(there) or "none of these columns"
        raise UsageError(f"these runs can't be compared by {by}: no row has one; they have {others}")
    values = rows[by].astype(object).where(rows[by].notna(), None)
    parts = [rows[values == value] for value in sorted(values.dropna().unique())]
    named = [_named(part, f"{by} {part[by].iloc[0]}") for part in parts]
    without = rows[values.isna()]
    return [*named, _named(without, f"no {by}")] if len(without) else named


def _named(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    return rows.assign(dataset=rows["dataset"].astype(str) + f", {part}")
