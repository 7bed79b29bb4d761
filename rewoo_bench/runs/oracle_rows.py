"""Which rows are an oracle's: it is given the answers, so their accuracy and their latency mean nothing.

    oracle_rows(rows)                # a mask over rows of questions.parquet
    answers_of_oracle("replay/r1")   # True where the run in r1 was answered by an oracle, or replays one that was

The column `oracle` says it. Older runs lack the column; there the model's name does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewoo_bench.errors import DataError
from rewoo_bench.model_names import REPLAY, is_oracle
from rewoo_bench.runs.folder import QUESTIONS_FILE
from rewoo_bench.runs.manifest import read_manifest

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

COLUMN = "oracle"


def oracle_rows(rows: pd.DataFrame | pa.Table) -> NDArray[np.bool_]:
    """A mask over rows of questions.parquet: True where an oracle answered, or a replay of one."""
    import numpy as np
    import pyarrow as pa

    from rewoo_bench.runs.table_columns import read_columns

    there = rows.column_names if isinstance(rows, pa.Table) else list(rows.columns)
    columns = read_columns(rows, ["model", *([COLUMN] if COLUMN in there else [])])
    models = columns["model"]
    named: NDArray[np.bool_] = np.array([*map(is_oracle, models.names), False])[models.values]  # -1: no name
    if COLUMN not in columns:
        return named
    written: NDArray[Any] = columns[COLUMN].values
    mask: NDArray[np.bool_] = np.where(np.isnan(written), named, written > 0)
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
    """The column of a recorded run; None in an older run, or one that was killed before its tables were written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if COLUMN not in file.schema_arrow.names:
                return None
            values = file.read(columns=[COLUMN])[COLUMN].drop_null().to_pylist()
    except (pa.ArrowException, OSError):
        return None
    return any(values) if values else None
