"""Which rows say nothing about an architecture."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
from claim_runs import run_folder
from comparison_rows import frame, system

from rewoo_bench.analysis.summary import summaries_of
from rewoo_bench.runs.past_runs import past_run
from rewoo_bench.runs.rows import Rows


def test_a_row_without_an_exact_match_was_failed_by_the_infrastructure() -> None:
    for missing in (None, pd.NA, float("nan")):
        rows = pd.DataFrame({"exact_match": [True, missing, False], "stop_reason": ["answered", "error", "step_limit"]})
        assert Rows(rows).failed.tolist() == [False, True, False]


def test_an_answer_without_a_metered_call_is_in_no_mean() -> None:
    flags = [[], ["unmetered"], ["no_call"], None]
    values = {"exact_match": [True] * 4, "stop_reason": ["answered"] * 4}
    arrow = pa.table({**values, "flags": pa.array(flags, pa.list_(pa.string()))})
    for each in (arrow, pd.DataFrame({**values, "flags": flags}), arrow.to_pandas(types_mapper=pd.ArrowDtype)):
        assert Rows(each).left_out.tolist() == [False, True, False, False]


def test_the_list_of_runs_leaves_the_same_rows_out(tmp_path: Path) -> None:
    rows = system("agent", "110-", 1000)
    rows[0] |= {"flags": ["unmetered"], "total_tokens": 0}
    listed = past_run(run_folder(tmp_path / "run", rows))
    assert listed.exact_match == {"agent": 0.5}
    assert listed.tokens == {"agent": (rows[1]["total_tokens"] + rows[2]["total_tokens"]) / 2}


def test_the_list_of_runs_has_the_means_of_questions(tmp_path: Path) -> None:
    rows = [*system("agent", "11", 1000), *system("agent", "1", 1000, trial=1), *system("agent", "0", 4000, trial=2)]
    listed = past_run(run_folder(tmp_path / "run", rows))
    (summary,) = summaries_of(frame(rows))
    assert listed.tokens == {"agent": summary.total_tokens} == {"agent": (2050 + 1060) / 2}
    assert listed.exact_match == {"agent": summary.exact_match.estimate} == {"agent": (2 / 3 + 1) / 2}
