"""Run folders to draw: real ones of the oracle, and rows of a made-up model with the manifest that goes with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from comparison_rows import frame, system

from rewoo_bench.evaluation.run import run
from rewoo_bench.runs.columns import QUESTIONS
from rewoo_bench.runs.manifest import FORMAT_VERSION
from rewoo_bench.runs.options import RunOptions

RIGHT = {"rewoo": "110110", "react": "101010", "direct": "010000", "cot": "011000"}
TOKENS = {"rewoo": 1500, "react": 4000, "direct": 200, "cot": 400}


def oracle_run(folder: Path, *architectures: str, **options: Any) -> Path:
    """The folder of a run with the oracle."""
    wanted = {"model": "oracle", "dataset": "sample", "progress": False, "out": folder, **options}
    anyio.run(run, RunOptions(architectures, **wanted))
    return folder


def model_run(folder: Path, form: str = "hotpotqa", **values: Any) -> Path:
    """A run folder without calls: four architectures on six questions, with a manifest of the data's format."""
    values = {"run_id": folder.name, "dataset": form, "model": "openai/small_1", "cost_usd": None, **values}
    values = {"planner_model": values["model"], "solver_model": values["model"], **values}
    rows = frame(*(system(name, RIGHT[name], TOKENS[name], **values) for name in RIGHT))
    rows["started_at"] = pd.Timestamp("2026-03-04", tz="UTC")
    folder.mkdir()
    write_questions(folder, rows)
    manifest: dict[str, Any] = {"run_id": folder.name, "dataset": {"format": form}, "concurrency": 4, "options": {}}
    (folder / "run.json").write_text(json.dumps({"format_version": FORMAT_VERSION, **manifest}), encoding="utf-8")
    return folder


def write_questions(folder: Path, rows: pd.DataFrame) -> None:
    """questions.parquet as a run writes it, without what pandas would add."""
    table = pa.Table.from_pandas(rows, schema=QUESTIONS, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table, folder / "questions.parquet")
