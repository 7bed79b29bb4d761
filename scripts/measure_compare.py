"""How long it takes to load a million rows, and to compare two runs of 100,000 questions.

    python scripts/measure_compare.py

The rows are made here, with every column and texts of ordinary length.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rewoo_bench
from rewoo_bench.runs.columns import QUESTIONS

_ROWS_A_GROUP = 50_000
TOKENS = {"rewoo": (7.2, 0.2), "react": (8.1, 0.6)}  # mean and deviation of the logarithm


def write_run(path: Path, architecture: str, questions: int) -> None:
    """A questions.parquet of one architecture."""
    with pq.ParquetWriter(path, QUESTIONS, compression="zstd") as writer:
        for start in range(0, questions, _ROWS_A_GROUP):
            writer.write_table(_rows(architecture, start, min(_ROWS_A_GROUP, questions - start)))


def _rows(architecture: str, start: int, count: int) -> pa.Table:
    draw = np.random.default_rng([start, *architecture.encode()])
    names = {"run_id": f"20261122-093000-{architecture}", "architecture": architecture, "dataset": "made", "model": "m"}
    fixed: dict[str, Any] = {**names, "stop_reason": "answered", "usage_source": "provider", "question_type": "bridge"}
    fixed |= {"planner_model": "m", "solver_model": "m", "trial": 0, "started_at": datetime(2026, 11, 22, tzinfo=UTC)}
    texts = {
        "example_id": [f"5ab{start + i:021x}" for i in range(count)],
        "question": [f"Which of {'the many things ' * 5}number {start + i} came first?" for i in range(count)],
        "answers": [[f"thing {start + i}"] for i in range(count)],
        "prediction": [f"thing {i % 97}" for i in range(count)],
    }
    tokens = np.exp(draw.normal(*TOKENS[architecture], count)).astype(np.int64)
    numbers = {
        "exact_match": draw.random(count) < 0.4,
        "f1": draw.random(count),
        "input_tokens": tokens,
        "total_tokens": tokens + 60,
        "cost_usd": tokens * 1e-6,
        "latency_s": tokens / 500,
    }
    columns = []
    for field in QUESTIONS:
        if field.name in fixed:
            columns.append(pa.array([fixed[field.name]] * count, field.type))
        elif field.name in texts or field.name in numbers:
            columns.append(pa.array({**texts, **numbers}[field.name], field.type))
        elif pa.types.is_integer(field.type):
            columns.append(pa.array(draw.integers(0, 500, count), field.type))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.table(columns, schema=QUESTIONS)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints the seconds of the clock and of the processor."""
    started, busy = time.perf_counter(), time.process_time()
    yield
    print(f"{what}: {time.perf_counter() - started:.2f} s, of the processor {time.process_time() - busy:.2f} s")


def main() -> None:
    """Prints seconds; imports are not in them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100_000, help="of each of the two runs that are compared")
    parser.add_argument("--rows", type=int, default=1_000_000, help="that are loaded")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / f"{name}.parquet" for name in TOKENS]
        for path in runs:
            write_run(path, path.stem, flags.questions)
        write_run(Path(folder) / "many.parquet", "rewoo", flags.rows)
        rewoo_bench.compare(rewoo_bench.load(*runs).groupby("architecture", observed=True).head(100))  # the imports
        with timed(f"load, {flags.rows:,} rows"):
            rewoo_bench.load(Path(folder) / "many.parquet")
        with timed(f"load and compare, two runs of {flags.questions:,} questions"):
            comparison = rewoo_bench.compare(rewoo_bench.load(*runs))
        print(f"\n{comparison}")


if __name__ == "__main__":
    main()
