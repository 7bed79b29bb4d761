"""Systems and runs to compare, a small fixed comparison, and its golden outputs.

python tests/support/comparison_rows.py     # writes tests/golden/compare anew
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import Comparison, ComparisonFormat, render_comparison
from rewoo_bench.runs.columns import QUESTIONS
from rewoo_bench.runs.manifest import Manifest, manifest_of, write_manifest

GOLDEN = Path(__file__).parents[1] / "golden" / "compare"
ENDINGS: dict[ComparisonFormat, str] = {"terminal": "txt", "markdown": "md", "latex": "tex"}
A, B = "20261122-093000-a-0001", "20261122-094000-b-0002"  # two runs
FAILED = {"exact_match": None, "f1": None, "stop_reason": "error", "error": "down", "prediction": None}


def system(
    architecture: str = "rewoo",
    matches: str = "110100",
    tokens: int = 1000,
    *,
    ids: range | None = None,
    trial: int = 0,
    **values: Any,
) -> list[dict[str, Any]]:
    """Rows of one system: a question for each of `matches`, right (1), wrong (0) or failed (-)."""
    rows = []
    for i, match in zip(ids or range(len(matches)), matches, strict=True):
        own = {
            "run_id": A, "architecture": architecture, "dataset": "sample",
            "model": "openai/small_1", "example_id": f"q{i}", "trial": trial, "answers": ["a"], "question": "?",
            "exact_match": match == "1", "f1": 1.0 if match == "1" else 0.1 * (i % 3), "stop_reason": "answered",
            "llm_calls": 2, "tool_calls": 3, "steps": 3, "input_tokens": tokens + 10 * i * i,
            "cached_input_tokens": 20, "output_tokens": 50, "total_tokens": tokens + 50 + 10 * i * i,
            "planner_tokens": tokens // 2, "solver_tokens": tokens // 2, "tool_llm_tokens": 0, "agent_tokens": 0,
            "billed_tokens": tokens + 50 + 10 * i * i, "cost_usd": (tokens + i) * 1e-6, "usage_source": "provider",
            "latency_s": tokens / 500 + i % 2, "working_s": 1.0,
        }  # fmt: skip
        rows.append({**own, **(FAILED if match == "-" else {}), **values})
    return rows


def frame(*systems: list[dict[str, Any]]) -> pd.DataFrame:
    rows = [row for rows in systems for row in rows]
    made: pd.DataFrame = pa.Table.from_pylist(rows, schema=QUESTIONS).to_pandas(types_mapper=pd.ArrowDtype)
    return made


def twice(**values: Any) -> pd.DataFrame:
    """One architecture in two runs."""
    return frame(system(), system(run_id=B, **values))


def manifest(run: str, **changes: Any) -> Manifest:
    """A run's manifest; `dataset__seed=3` changes what lies deeper."""
    made: dict[str, Any] = {
        "run_id": run,
        "status": "done",
        "options": {"temperature": 0.0, "judge_model": None},
        "dataset": {"name": "sample", "format": "hotpotqa", "split": "file", "seed": 0, "source": {"sha256": "5a"}},
        "architectures": [{"name": "rewoo", "settings": {"max_steps": 8}, "prompts_sha256": "ec"}],
        "models": {"default": {"name": "openai/small_1", "constrain": "schema"}},
        "corpus": None,
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = made
        for parent in parents:
            place = place[parent]
        place[last] = value
    return manifest_of(made)


def write(folder: Path, run: str = A, **values: Any) -> Path:
    """A run folder of one system."""
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(system(run_id=run, **values), schema=QUESTIONS), folder / "questions.parquet")
    write_manifest(folder, manifest(run))
    return folder


def small() -> Comparison:
    """Three architectures on six questions: one failed once, one has no prices, one is an oracle's."""
    return compare(
        frame(
            system(),
            system("react", "1000-0", 2600),
            system("direct", "010000", 150, cost_usd=None, usage_source="estimated"),
            system("rewoo", "111111", 900, model="oracle?depth=2", run_id=B),
        )
    )


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for form, ending in ENDINGS.items():
        (GOLDEN / f"small.{ending}").write_text(render_comparison(small(), form) + "\n", encoding="utf-8")
