"""The tables of a run from its journal: at the run's end, and for a page of a run that goes on.

    export(Path("results/local/mine"), journal, tasks, columns)    # questions.parquet, calls.parquet, traces.jsonl

The journal has the rows as JSON, and the prompts, so this needs nothing that runs a benchmark.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from rewoo_bench.runs.columns import CALLS, QUESTIONS
from rewoo_bench.runs.folder import CALLS_FILE, QUESTIONS_FILE, TRACES_FILE
from rewoo_bench.runs.journal.prefixes import Shared, shared_prefixes
from rewoo_bench.runs.journal.records import TaskKey
from rewoo_bench.runs.journal.store import JournalReader
from rewoo_bench.runs.rows import arrow_numbers
from rewoo_bench.system.files import new_file, removed_unless_written

_QUESTIONS_A_GROUP = 1000


_ROWS = pa.schema([("question", pa.struct(list(QUESTIONS))), ("calls", pa.list_(pa.struct(list(CALLS))))])
_BYTES_AT_ONCE = 1 << 18  # read by each of the processor's cores


def tables_of(rows: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The tables of questions and calls from a journal's rows, without Python objects for their values."""
    lines = [row.encode() for row in rows]
    read = pyarrow.json.read_json(
        pa.BufferReader(b"\n".join(lines)),
        read_options=pyarrow.json.ReadOptions(block_size=max(_BYTES_AT_ONCE, *map(len, lines)) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=_ROWS, unexpected_field_behavior="error"),
    ).combine_chunks()
    calls = read["calls"].combine_chunks().values  # all of it: `flatten` minds slices, and imports far more
    return pa.Table.from_struct_array(read["question"]), pa.Table.from_struct_array(calls)


def export(
    folder: Path,
    journal: JournalReader,
    tasks: Iterable[TaskKey],
    columns: Mapping[str, Any],
    prompts: JournalReader | None = None,
) -> int:
    """Writes the finished questions of a journal as files, in the order of `tasks`; returns their number.

    `columns` are those of questions.parquet that all rows share; without the run's model, as for a page of a run that
    goes on, what calls share with earlier ones (`Shared`) is left out. A replay's prompts are those of another
    journal, `prompts`. The files get their names when all three are complete: on a full disk the earlier ones stay.
    """
    written = 0
    shared = None
    if "model" in columns:
        of_roles = {role: str(columns.get(f"{role}_model") or "") for role in ("planner", "solver")}
        shared = shared_prefixes((prompts or journal).database, {"": str(columns["model"]), **of_roles})
    rest = iter(tasks)
    parts = [folder / f"{name}.part" for name in (CALLS_FILE, QUESTIONS_FILE, TRACES_FILE)]
    to_calls, to_questions, to_traces = parts
    with (
        removed_unless_written(*parts),
        _new_table(to_calls, CALLS) as calls,
        _new_table(to_questions, QUESTIONS) as questions,
        io.TextIOWrapper(new_file(to_traces), encoding="utf-8", newline="\n") as lines,
    ):
        while group := list(islice(rest, _QUESTIONS_A_GROUP)):
            if finished := journal.questions(group):
                of_questions, of_calls = tables_of([rows for rows, _ in finished])
                questions.write_table(of_questions)
                for name, values in zip(Shared._fields, () if shared is None else shared.of(of_calls).T, strict=False):
                    place = of_calls.schema.get_field_index(name)
                    field = of_calls.schema.field(place)
                    of_calls = of_calls.set_column(place, field, arrow_numbers(values, field.type))
                calls.write_table(of_calls)
                lines.writelines(f"{line}\n" for _, line in finished)
                written += len(finished)
    for part in parts:
        part.replace(part.with_suffix(""))
    return written


@contextmanager
def _new_table(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """A parquet file to write. Raises `OSError`, also at the end of the block: its rest is written there."""
    with new_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        yield writer
