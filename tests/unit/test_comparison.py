"""Systems side by side: what is compared with what, what is refused, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparison_rows import frame, small, system

import rewoo_bench
from rewoo_bench.cli import main
from rewoo_bench.comparison import Comparison, compare
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.results import manifests, write_manifest
from rewoo_bench.rows import QUESTIONS

REPLAY = Path(__file__).parents[1] / "golden" / "replay"
A, B = "20261122-093000-a-0001", "20261122-094000-b-0002"


def manifest(run: str, **changes: Any) -> dict[str, Any]:
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
    return made


def twice(**values: Any) -> pd.DataFrame:
    """One architecture in two runs."""
    return frame(system(), system(run_id=B, **values))


def write(folder: Path, run: str = A, **values: Any) -> Path:
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(system(run_id=run, **values), schema=QUESTIONS), folder / "questions.parquet")
    write_manifest(folder, manifest(run))
    return folder


def labels(comparison: Comparison) -> list[str]:
    return [each.label for each in comparison.systems]


def against(comparison: Comparison) -> list[tuple[str, str]]:
    return [(pair.b, pair.a) for pair in comparison.pairs]


def test_seconds_of_questions_that_share_a_local_model_are_told_to_be_a_queues() -> None:
    local = {"default": {"name": "local/a"}}
    told = {A: manifest(A, models=local, concurrency=8), B: manifest(B, models=local, concurrency=1)}
    said = [note for note in compare(twice(model="local/a"), manifests=told).notes if note.startswith("latency")]
    assert said == [
        "latency (0001): 8 questions at once shared a model on this machine, so seconds are those of a queue"
    ]


def test_a_judge_on_this_machine_is_no_queue() -> None:
    models = {"default": {"name": "openai/small_1"}, "judge": {"name": "local/judge"}}
    told = {A: manifest(A, models=models, concurrency=8)}
    assert not [note for note in compare(frame(system(), system("react")), manifests=told).notes if "queue" in note]


def test_a_pair_is_the_second_against_the_first() -> None:
    rows = frame(system(matches="110100"), system("react", "111100", 2000, cost_usd=0.002))
    (pair,) = rewoo_bench.compare(rows).pairs
    assert (pair.a, pair.b, pair.questions, pair.rows, pair.left_out) == ("rewoo", "react", 6, 6, 0)
    match = pair["exact_match"]
    assert match.interval.estimate == pytest.approx(1 / 6)
    assert match.discordant is not None
    assert (match.discordant.only_a, match.discordant.only_b, match.p) == (0, 1, 1.0)
    assert pair["total_tokens"].interval.estimate == pytest.approx((2050 + 550 / 6) / (1050 + 550 / 6))
    assert pair["f1"].interval.estimate == pytest.approx((1 - 0.2) / 6)
    assert [each.measure for each in pair.figures][2:] == ["total_tokens", "input_tokens", "cost_usd", "latency_s"]


def test_pairs_are_of_the_same_question_whatever_the_order_of_rows() -> None:
    rows = frame(system(), system("react", "101010", 2600))
    assert compare(rows.iloc[::-1], baseline="rewoo").pairs == compare(rows).pairs


def test_a_system_says_what_a_summary_says_and_tokens_by_role() -> None:
    first = small().systems[0]
    assert (first.summary.total, first.summary.answered, first.summary.failed) == (6, 6, 0)
    assert (first.means["planner_tokens"], first.means["agent_tokens"], first.means["steps"]) == (500, 0, 3)


def test_the_baseline_is_the_first_or_the_one_that_is_named() -> None:
    rows = frame(system(), system("react"), system("direct"))
    assert against(compare(rows)) == [("react", "rewoo"), ("direct", "rewoo")]
    assert against(compare(rows, baseline="react")) == [("rewoo", "react"), ("direct", "react")]
    assert against(compare(rows, all_pairs=True)) == [("react", "rewoo"), ("direct", "rewoo"), ("direct", "react")]
    with pytest.raises(UsageError, match="unknown baseline 'reakt', did you mean 'react'"):
        compare(rows, baseline="reakt")


def test_labels_say_what_differs() -> None:
    assert labels(compare(frame(system(), system("react", run_id=B)))) == ["rewoo", "react"]
    assert labels(compare(frame(system(), system(model="m2", run_id=B)))) == ["rewoo, openai/small_1", "rewoo, m2"]
    assert labels(compare(twice())) == ["rewoo, run 0001", "rewoo, run 0002"]
    assert labels(compare(frame(system(run_id="a-1"), system(run_id="b-1")))) == ["rewoo, run a-1", "rewoo, run b-1"]


def test_a_baseline_that_may_be_two_is_asked_about() -> None:
    assert against(compare(twice(), baseline="rewoo, run 0002")) == [("rewoo, run 0001", "rewoo, run 0002")]
    with pytest.raises(UsageError, match="baseline 'rewoo' may be any of 'rewoo, run 0001', 'rewoo, run 0002'"):
        compare(twice(), baseline="rewoo")


def test_one_system_has_no_pairs() -> None:
    comparison = compare(frame(system()))
    assert (labels(comparison), comparison.pairs, comparison.tests) == (["rewoo"], (), 0)
    assert "Holm" not in str(comparison)


def test_what_the_infrastructure_failed_leaves_the_pairs_of_accuracy_and_no_others() -> None:
    (pair,) = compare(frame(system(matches="11-100"), system("react", "1-0100"))).pairs
    assert (pair.questions, pair.left_out) == (6, 2)
    assert (pair["exact_match"].interval.n, pair["f1"].interval.n, pair["total_tokens"].interval.n) == (4, 4, 6)


def test_where_all_failed_costs_are_compared_and_accuracy_is_not() -> None:
    (pair,) = compare(frame(system(matches="---"), system("react", "---"))).pairs
    assert [figure.kind for figure in pair.figures] == ["ratio"] * 4
    assert "nan" not in str(compare(frame(system(matches="---"), system("react", "---"))))


def test_an_unknown_price_is_not_compared() -> None:
    half = [{**row, "cost_usd": row["cost_usd"] if i else None} for i, row in enumerate(system("react"))]
    (pair,) = compare(frame(system(), half)).pairs
    with pytest.raises(KeyError, match="cost_usd"):
        pair["cost_usd"]


def test_a_latency_that_was_not_measured_leaves_the_pairs_of_latency() -> None:
    resumed = [{**row, "latency_s": None} if i == 0 else row for i, row in enumerate(system("react"))]
    (pair,) = compare(frame(system(), resumed)).pairs
    assert (pair["latency_s"].interval.n, pair["total_tokens"].interval.n) == (5, 6)


def test_trials_of_a_question_are_one_observation() -> None:
    trials = [row for trial in range(3) for row in system(trial=trial)]
    other = [row for trial in range(3) for row in system("react", "111100", 2000, trial=trial)]
    (pair,), (single,) = (
        compare(frame(trials, other)).pairs,
        compare(frame(system(), system("react", "111100", 2000))).pairs,
    )
    assert (pair.questions, pair.rows) == (6, 18)
    ratio, one = pair["total_tokens"].interval, single["total_tokens"].interval
    assert (ratio.low, ratio.high, ratio.n) == (pytest.approx(one.low), pytest.approx(one.high), 6)
    assert pair["exact_match"].p == 1.0
    assert pair["total_tokens"].p == single["total_tokens"].p


def test_holms_family_is_every_test_of_the_comparison() -> None:
    comparison = small()
    found = [figure.p for pair in comparison.pairs for figure in pair.figures]
    least = min(range(len(found)), key=found.__getitem__)
    adjusted = [figure.p_holm for pair in comparison.pairs for figure in pair.figures]
    assert comparison.tests == len(found) == 17
    assert adjusted[least] == pytest.approx(17 * found[least])


def test_other_questions_are_refused_or_compared_where_shared() -> None:
    rows = frame(
        system(matches="110100"), system("react", "0101", ids=range(2, 6)), system("direct", "11", ids=range(2))
    )
    with pytest.raises(UsageError, match=r"'react' lacks 2 of the 6 rows of 'rewoo' and has 0 others; .*they share no"):
        compare(rows)
    with pytest.raises(UsageError, match="they share no question"):
        compare(rows, intersect=True)
    two = rows[rows["architecture"] != "direct"]
    with pytest.raises(UsageError, match=r"not comparable: .*; --intersect compares on the questions that they share$"):
        compare(two)
    shared = compare(two, intersect=True)
    assert [each.questions for each in shared.systems] == [4, 4]
    assert shared.pairs[0]["exact_match"].interval.estimate == pytest.approx(0.25)
    (warning,) = shared.warnings
    assert "NOT THE SAME RUN OF QUESTIONS" in warning
    assert "all below is of the 4 questions that all share" in warning
    assert str(shared).startswith("WARNING: NOT THE SAME")


def test_intersecting_the_same_questions_changes_nothing_and_says_nothing() -> None:
    rows = frame(system(), system("react"))
    assert compare(rows, intersect=True) == compare(rows)


def test_a_run_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match=rf"'rewoo' has question 'q0', trial 0 more than once in the run '{A}'"):
        compare(frame(system(), system()))


def test_data_sets_are_compared_each_for_itself() -> None:
    both = [
        system(name, dataset=data, run_id=run)
        for run, data in ((A, "sample"), (B, "hotpotqa"))
        for name in ("rewoo", "react")
    ]
    comparison = compare(frame(*both))
    assert [(pair.dataset, pair.b.split(",")[0]) for pair in comparison.pairs] == [
        ("sample", "react"),
        ("hotpotqa", "react"),
    ]
    with pytest.raises(UsageError, match="only 'rewoo' ran on the data set 'sample', the others on 'hotpotqa'"):
        compare(frame(system(), system("react", dataset="hotpotqa", run_id=B)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dataset__seed": 3}, r"the seed of the questions: 0 \(0001\), 3 \(0002\)"),
        ({"dataset__format": "triviaqa"}, "the scoring: hotpotqa"),
        ({"dataset__source": {"sha256": "77"}}, r"the data's file \(sha256\): 5a"),
        ({"dataset__split": "train"}, "the split: file"),
        ({"options__judge_model": "openai/judge"}, "the judge: none"),
    ],
)
def test_runs_on_other_terms_are_refused_or_said_loudly(changes: dict[str, Any], reason: str) -> None:
    known = {A: manifest(A), B: manifest(B, **changes)}
    with pytest.raises(UsageError, match=f"not comparable: {reason}"):
        compare(twice(), manifests=known)
    (warning,) = compare(twice(), manifests=known, intersect=True).warnings
    assert "all below is of the 6 questions" in warning


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"options__temperature": 0.7}, "temperature: 0.0 (0001), 0.7 (0002)"),
        ({"models__default__constrain": "none"}, "openai/small_1: constrain: schema (0001), none (0002)"),
        ({"corpus": {"content_hash": "c0"}}, "the corpus: the questions' own documents (0001), c0 (0002)"),
        ({"status": "incomplete"}, "status: done (0001), incomplete (0002)"),
        (
            {"architectures": [{"name": "rewoo", "settings": {"max_steps": 8}, "prompts_sha256": "0" * 64}]},
            "rewoo: prompts_sha256: ec (0001), 000000000000… (0002)",
        ),
    ],
)
def test_other_prompts_models_and_settings_are_told(changes: dict[str, Any], note: str) -> None:
    comparison = compare(twice(), manifests={A: manifest(A), B: manifest(B, **changes)})
    told = [each for each in comparison.notes if not each.startswith("run ")]
    assert told == [note]
    assert note in str(comparison)


def test_runs_on_the_same_terms_need_no_note() -> None:
    comparison = compare(twice(), manifests={A: manifest(A), B: manifest(B), "another": manifest("another", corpus=1)})
    assert comparison.notes == (f"run 0001: {A}", f"run 0002: {B}")


def test_what_are_no_rows_is_refused() -> None:
    with pytest.raises(DataError, match="the column 'trial' is missing"):
        compare(frame(system()).drop(columns="trial"))
    with pytest.raises(DataError, match="no rows to compare"):
        compare(frame())


def test_a_column_that_an_older_run_lacks_is_unknown() -> None:
    (only,) = compare(frame(system()).drop(columns="agent_tokens")).systems
    assert only.means["agent_tokens"] is None


def test_the_command_compares_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs = [str(write(tmp_path / "a")), str(write(tmp_path / "b", B, architecture="react", tokens=2600))]
    with pytest.raises(SystemExit) as done:
        main(["compare", *runs, "--format", "json"])
    out, err = capfd.readouterr()
    assert (done.value.code, err) == (0, "")
    assert json.loads(out)["pairs"][0]["b"] == "react"
    assert list(manifests(runs[0], tmp_path / "b" / "questions.parquet")) == [A, B]


def test_the_command_says_why_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs = [str(write(tmp_path / "a")), str(write(tmp_path / "b", B, matches="11"))]
    with pytest.raises(SystemExit) as done:
        main(["compare", *runs])
    assert done.value.code == 2
    assert capfd.readouterr().err.startswith("rewoo-bench: not comparable: 'rewoo, run 0002' lacks 4 of the 6 rows")
    with pytest.raises(SystemExit) as done:
        main(["compare", *runs, "--intersect", "--format", "csv"])
    out, err = capfd.readouterr()
    assert done.value.code == 0
    assert err.startswith("WARNING: NOT THE SAME RUN OF QUESTIONS")
    assert out.startswith("dataset,system,against")


def test_a_recorded_run_is_compared() -> None:
    comparison = compare(rewoo_bench.load(REPLAY))
    assert [pair.questions for pair in comparison.pairs] == [5] * (len(comparison.systems) - 1)
