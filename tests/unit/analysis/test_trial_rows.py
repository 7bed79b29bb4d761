"""Each trial by itself, with the mean and the spread of the trials: by hand, and in compare."""

from __future__ import annotations

import math
from typing import Any

import pytest
from comparison_rows import B, frame, system

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.trials import TrialRow, trial_rows, trial_table
from rewoo_bench.runs.rows import Rows

HEAD = ["system", "right", "EM", "tokens", "model calls", "$ / 1000", "seconds"]


def of_trial(trial: int, matches: str, **values: Any) -> list[dict[str, Any]]:
    """Questions that all took 1,000 tokens more 300 a trial, 2 calls more one, 1 / 1000 dollar more one, 2 s more 2."""
    took = {"total_tokens": 1000 + 300 * trial, "llm_calls": 2 + trial, "cost_usd": 0.001 * (1 + trial)}
    return system("rewoo", matches, trial=trial, **{**took, "latency_s": 2.0 * (1 + trial), **values})


def three(**values: Any) -> list[dict[str, Any]]:
    """3 of 4, 1 of 3 and 2 of 4 right; what the failed question took is in no figure."""
    failed = system("rewoo", "-", ids=range(3, 4), trial=1, total_tokens=90_000, llm_calls=90, latency_s=90.0)
    return [*of_trial(0, "1101", **values), *of_trial(1, "100", **values), *failed, *of_trial(2, "0110", **values)]


def rows_of(rows: list[dict[str, Any]]) -> list[TrialRow]:
    return trial_rows(Rows(frame(rows)))


def cells_of(rows: list[dict[str, Any]]) -> list[list[str]]:
    return trial_table("system", [(row.architecture, row) for row in rows_of(rows)])


def test_by_hand() -> None:
    *trials, mean, spread = rows_of(three())
    assert [(each.kind, each.trial) for each in trials] == [("trial", 0), ("trial", 1), ("trial", 2)]
    assert [(each.right, each.scored, each.questions, each.timed) for each in trials] == [
        (3, 4, 4, 4), (1, 3, 3, 3), (2, 4, 4, 4)
    ]  # fmt: skip
    assert [each.exact_match for each in trials] == pytest.approx([3 / 4, 1 / 3, 2 / 4])
    assert [each.total_tokens for each in trials] == [1000, 1300, 1600]
    assert [each.llm_calls for each in trials] == [2, 3, 4]
    assert [each.cost_usd for each in trials] == pytest.approx([0.001, 0.002, 0.003])
    assert [each.latency_s for each in trials] == [2, 4, 6]
    # 27/36, 12/36 and 18/36 are 8, -7 and -1 parts from 19/36: (64 + 49 + 1) / 2 = 57
    assert [mean.exact_match, spread.exact_match] == pytest.approx([19 / 36, math.sqrt(57) / 36])
    assert [(each.kind, each.trial) for each in (mean, spread)] == [("mean", None), ("spread", None)]
    assert (mean.total_tokens, mean.llm_calls, mean.latency_s) == (1300, 3, 4)
    assert (spread.total_tokens, spread.llm_calls, spread.latency_s) == (300, 1, 2)
    assert [mean.cost_usd, spread.cost_usd] == pytest.approx([0.002, 0.001])


def test_the_table_has_a_row_for_each() -> None:
    assert cells_of(three()) == [
        HEAD,
        ["rewoo, trial 0", "3 of 4", "0.750", "1,000", "2.00", "1.000", "2.00"],
        ["rewoo, trial 1", "1 of 3", "0.333", "1,300", "3.00", "2.000", "4.00"],
        ["rewoo, trial 2", "2 of 4", "0.500", "1,600", "4.00", "3.000", "6.00"],
        ["rewoo, mean", "3 trials", "0.528", "1,300", "3.00", "2.000", "4.00"],
        ["rewoo, spread", "3 trials", "0.210", "300", "1.00", "1.000", "2.00"],
    ]


def test_one_trial_has_none() -> None:
    rows = system("rewoo", "1101")
    assert rows_of(rows) == []
    assert cells_of(rows) == []
    comparison = compare(frame(rows, system("react", "1111")))
    assert "trial" not in str(comparison)
    assert "trials" not in comparison.as_dict()


def test_dollars_that_are_not_known_of_all_questions_are_none() -> None:
    rows = three()
    rows[0]["cost_usd"] = None
    assert {each.cost_usd for each in rows_of(rows)} == {None}
    assert cells_of(rows)[0] == [name for name in HEAD if name != "$ / 1000"]


def test_seconds_are_of_the_questions_that_were_timed() -> None:
    rows = three()
    rows[0]["latency_s"], rows[1]["latency_s"] = None, 8.0  # 8, 2 and 2 s are left
    assert [cells[-1] for cells in cells_of(rows)[1:]] == ["4.00 (n = 3)", "4.00", "6.00", "4.67", "1.15"]
    assert cells_of(three(latency_s=None))[0] == HEAD[:-1]  # a replay


def test_an_oracle_has_no_seconds_and_its_accuracy_a_mark() -> None:
    head, *cells = cells_of(three(oracle=True))
    assert head == HEAD[:-1]
    assert [each[2] for each in cells] == ["0.750*", "0.333*", "0.500*", "0.528*", "0.210*"]


def test_a_trial_that_failed_is_in_no_mean() -> None:
    rows = [*of_trial(0, "1101"), *of_trial(1, "----"), *of_trial(2, "0110")]
    _, _, failed, _, mean, spread = cells_of(rows)
    unknown = [*["not scored"] * 2, *["not counted"] * 2, "no price", "not timed"]
    assert failed == ["rewoo, trial 1", *unknown]
    assert mean[1:4] == ["3 trials", "0.625", "1,300"]  # of 1,000 and 1,600
    assert spread[1:4] == ["3 trials", "0.177", "424"]  # 1/8 and 300, each times the root of 2


def test_one_trial_that_counts_has_no_spread() -> None:
    assert cells_of([*of_trial(0, "1101"), *of_trial(1, "----")])[-1] == [
        "rewoo, spread", "2 trials", *["one trial"] * 5
    ]  # fmt: skip


def test_compare_has_all_trials_of_each_run_whatever_the_others_have() -> None:
    other = [row for trial in range(2) for row in system("react", "11111", run_id=B, trial=trial, latency_s=1.0)]
    comparison = compare(frame(three(), other), intersect=True)
    rewoo, react = comparison.systems
    assert rewoo.trials == tuple(rows_of(three()))
    assert [(row.trial, row.right, row.scored) for row in react.trials[:-2]] == [(0, 4, 4), (1, 4, 4)]  # 4 are shared
    (warning,) = comparison.warnings
    assert warning.endswith("of 14 rows, 'rewoo' and 'react' share 8; all below is of the 8 rows that all share")
    shown = comparison.as_dict()["trials"]
    assert [row["system"] for row in shown] == ["rewoo"] * 5 + ["react"] * 4
    assert (shown[1]["right"], shown[1]["total_tokens"], shown[4]["total_tokens"]) == (1, 1300, 300)
    assert "rewoo, trial 2    2 of 4  0.500   1,600" in str(comparison)
