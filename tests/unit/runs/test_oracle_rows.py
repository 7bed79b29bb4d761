"""A replay of an oracle is an oracle, wherever accuracy or latency would be taken for a model's."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

import rewoo_bench
from rewoo_bench.analysis.summary import summaries_of
from rewoo_bench.analysis.summary_tables import summary_table
from rewoo_bench.evaluation.api import BenchRun, bench
from rewoo_bench.runs.rows import answers_of_oracle

GOLDEN = Path(__file__).parents[2] / "golden" / "replay"
BUDGET = '[[budget]]\narchitecture = "rewoo"\ndataset = "sample"\nmodel = "{}"\nexact_match = {{ min = 1.0 }}\n'


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> BenchRun:
    folder = tmp_path_factory.mktemp("oracle") / "recorded"
    return bench("rewoo,react", model="oracle?wrong_title=0.5", out=folder, questions=12)


@pytest.fixture(scope="module")
def replayed(recorded: BenchRun) -> BenchRun:
    folder = recorded.folder.with_name("replayed")
    return bench("rewoo,react", model=f"replay/{recorded.folder}", out=folder, questions=12)


def test_the_rows_of_a_run_say_whether_an_oracle_answered(recorded: BenchRun, replayed: BenchRun) -> None:
    assert recorded.rows["oracle"].all()
    assert replayed.rows["oracle"].all()
    journal = recorded.folder.with_name("journal")
    journal.mkdir()
    shutil.copy(GOLDEN / "journal.sqlite", journal)
    plain = bench("direct", model=f"replay/{journal}", out=recorded.folder.with_name("plain"), questions=1)
    assert plain.rows["oracle"].isna().all()  # the recording is a journal without run.json, which says nothing


def test_a_replay_of_a_replay_is_followed_to_the_oracle(recorded: BenchRun, replayed: BenchRun) -> None:
    assert answers_of_oracle(f"replay/{replayed.folder}")
    for run in (recorded, replayed):
        (run.folder / "questions.parquet").rename(run.folder / "put away")  # as in a run that was killed
    assert answers_of_oracle(f"replay/{replayed.folder}")
    for run in (recorded, replayed):
        (run.folder / "put away").rename(run.folder / "questions.parquet")
    assert answers_of_oracle("local/smollm2-135m") is False
    assert answers_of_oracle("replay/nowhere") is None


def test_an_oracle_has_no_latency_in_the_tables(recorded: BenchRun) -> None:
    assert recorded.rows["latency_s"].notna().all()
    for summary in summaries_of(recorded.rows):
        assert (summary.latency_p50_s, summary.latency_p95_s) == (None, None)
    lines = summary_table(summaries_of(recorded.rows)).splitlines()
    (cells,) = (line for line in lines if line.startswith("rewoo") and "simulated" in line)
    assert cells.split()[1:] == ["no", "price", "simulated", "simulated"]


def test_a_comparison_marks_the_accuracy_of_a_replayed_oracle(replayed: BenchRun) -> None:
    comparison = rewoo_bench.compare(replayed.rows)
    (pair,) = comparison.pairs
    assert pair.oracle
    assert math.isnan(pair["exact_match"].p_holm)
    assert "* an oracle is told the answers: its accuracy means nothing" in str(comparison)
