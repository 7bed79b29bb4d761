"""A run without the data set's texts: what can be published, whatever the data set's licence says.

    publish(Path("results/local/my-run"), Path("results/my-study/my-run"))

Questions, gold answers, errors, traces and the journal are left out, since they repeat what the data set or a
tool said. Every count, score, id and hash stays, so that `compare`, `plot` and `claims` read the copy as they
read the run; and so do the predictions, so that whoever has the data set can score them again:

    rows = rewoo_bench.load("results/my-study/my-run")
    gold = {example.id: example.answers for example in load_dataset_examples("hotpotqa", limit=50).examples}
    [score(prediction, gold[id], "hotpotqa").exact_match for id, prediction in zip(rows.example_id, rows.prediction)]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.folder import CALLS_FILE, QUESTIONS_FILE
from rewoo_bench.runs.manifest import MANIFEST, read_manifest, write_manifest

TEXTS = ("question", "answers", "error")


def publish(run: Path, out: Path, *, without: Sequence[str] = ()) -> int:
    """Writes the copy, less the architectures in `without`; returns its number of rows. Raises `UsageError`."""
    if (out / MANIFEST).exists():
        raise UsageError(f"--out: {str(out)!r} holds another run; choose a new folder")
    manifest = read_manifest(run)
    tables = {name: _read(run / name) for name in (QUESTIONS_FILE, CALLS_FILE)}
    _check(without, tables[QUESTIONS_FILE])
    for name in TEXTS:
        tables[QUESTIONS_FILE] = _emptied(tables[QUESTIONS_FILE], name)
    published = {"without": list(without), "left_out": list(TEXTS)}
    write_manifest(out, manifest.model_copy(update={"published": published}))
    left_out = pa.array(list(without), pa.string())
    for name, table in tables.items():
        tables[name] = table.filter(pc.invert(pc.is_in(table["architecture"], value_set=left_out)))
        pq.write_table(tables[name], out / name, compression="zstd")
    return len(tables[QUESTIONS_FILE])


def _read(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{str(path.parent)!r} is no finished run: it has no {path.name}") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a parquet file, or a damaged one: {str(error).splitlines()[0]}") from None


def _check(without: Sequence[str], rows: pa.Table) -> None:
    there = set(rows["architecture"].to_pylist())
    for name in without:
        if name not in there:
            raise UsageError(f"--without: {unknown('architecture', name, there)}")


def _emptied(table: pa.Table, name: str) -> pa.Table:
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.nulls(table.num_rows, field.type))
