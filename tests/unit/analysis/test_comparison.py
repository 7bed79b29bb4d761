"""Systems side by side: what is compared with what, and the command."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from comparison_rows import A, B, frame, small, system, twice, write

import rewoo_bench
from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import Comparison
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.folder import load, manifests


def labels(comparison: Comparison) -> list[str]:
    return [each.label for each in comparison.systems]


def against(comparison: Comparison) -> list[tuple[str, str]]:
    return [(pair.b, pair.a) for pair in comparison.pairs]


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
    amounts, solved = ["total_tokens", "input_tokens", "cost_usd", "latency_s"], ["tokens_per_solved", "usd_per_solved"]
    assert [each.measure for each in pair.figures][2:] == amounts + solved


def test_what_a_solved_question_costs_is_compared_in_pairs() -> None:
    rows = frame(system(matches="110100" * 5), system("react", "111100" * 5, 2000, cost_usd=0.002))
    (pair,) = rewoo_bench.compare(rows).pairs
    found, tokens = pair["tokens_per_solved"].interval, pair["total_tokens"].interval
    assert found.estimate == pytest.approx(tokens.estimate * 3 / 4)  # exact matches
    assert found.low < found.estimate < found.high
    table = str(rewoo_bench.compare(rows)).split("ratios per solved question, paired by question\n\n")[1]
    assert f"{found.estimate:.3f} [{found.low:.3f}, {found.high:.3f}]" in table
    few = frame(system(matches="110100"), system("react", "111100", 2000))
    assert ", fewer than 15 solved by one: no interval" in str(rewoo_bench.compare(few))
    none = frame(system(matches="000000"), system("react", "111100", 2000))
    assert "none solved by one" in str(rewoo_bench.compare(none))


def test_pairs_are_of_the_same_question_whatever_the_order_of_rows() -> None:
    rows = frame(system(), system("react", "101010", 2600))
    assert compare(rows.iloc[::-1], baseline="rewoo").pairs == compare(rows).pairs


def test_the_baseline_is_the_first_or_the_one_that_is_named() -> None:
    rows = frame(system(), system("react"), system("direct"))
    assert against(compare(rows)) == [("react", "rewoo"), ("direct", "rewoo")]
    assert against(compare(rows, baseline="react")) == [("react", "rewoo"), ("react", "direct")]
    assert against(compare(rows, all_pairs=True)) == [("react", "rewoo"), ("direct", "rewoo"), ("react", "direct")]
    with pytest.raises(UsageError, match="unknown baseline 'reakt', did you mean 'react'"):
        compare(rows, baseline="reakt")


def test_labels_say_what_differs() -> None:
    assert labels(compare(frame(system(), system("react", run_id=B)))) == ["rewoo", "react"]
    assert labels(compare(frame(system(), system(model="m2", run_id=B)))) == ["rewoo, openai/small_1", "rewoo, m2"]
    assert labels(compare(twice())) == ["rewoo, run 0001", "rewoo, run 0002"]
    assert labels(compare(frame(system(run_id="a-1"), system(run_id="b-1")))) == ["rewoo, run a-1", "rewoo, run b-1"]


def test_two_runs_of_the_same_architectures_are_compared_before_and_after() -> None:
    runs = frame(*(system(name, run_id=run) for run in (A, B) for name in ("rewoo", "react")))
    twins = [("rewoo, run 0002", "rewoo, run 0001"), ("react, run 0002", "react, run 0001")]
    assert against(compare(runs)) == twins
    assert len(against(compare(runs, all_pairs=True))) == 6
    first = "rewoo, run 0001"
    assert [a for _, a in against(compare(runs, baseline=first))] == [first] * 3
    other = frame(
        *(system(name, run_id=run) for run, name in ((A, "rewoo"), (A, "react"), (B, "rewoo"), (B, "direct")))
    )
    assert [a for _, a in against(compare(other))] == [first] * 3  # not the same architectures


def test_runs_are_called_by_their_folders(tmp_path: Path) -> None:
    before, after = write(tmp_path / "before"), write(tmp_path / "after", B)
    comparison = compare(load(before, after), manifests=manifests(before, after))
    assert labels(comparison) == ["rewoo, run before", "rewoo, run after"]
    assert f"run before: {A}" in comparison.notes
    assert labels(compare(pd.concat([load(before), load(after)]))) == labels(comparison)
    (tmp_path / "more").mkdir()
    namesake = write(tmp_path / "more" / "before", B)
    assert list(load(before, namesake)["run_folder"].unique()) == [str(before), str(namesake)]


def test_runs_of_other_questions_are_refused_with_what_they_share() -> None:
    with pytest.raises(UsageError, match=r"of 6 questions, 'rewoo' and 'react' share 3; --intersect compares on"):
        compare(frame(system(matches="110"), system("react", "110100", run_id=B)))


def test_a_baseline_that_may_be_two_is_asked_about() -> None:
    assert against(compare(twice(), baseline="rewoo, run 0002")) == [("rewoo, run 0001", "rewoo, run 0002")]
    with pytest.raises(UsageError, match="baseline 'rewoo' may be any of 'rewoo, run 0001', 'rewoo, run 0002'"):
        compare(twice(), baseline="rewoo")


def test_what_the_infrastructure_failed_leaves_the_pairs_of_every_figure() -> None:
    (pair,) = compare(frame(system(matches="11-100"), system("react", "1-0100"))).pairs
    assert (pair.questions, pair.left_out) == (6, 2)
    assert (pair["exact_match"].interval.n, pair["f1"].interval.n, pair["total_tokens"].interval.n) == (4, 4, 4)


def test_where_all_failed_nothing_is_compared() -> None:
    (pair,) = compare(frame(system(matches="---"), system("react", "---"))).pairs
    assert pair.figures == ()
    assert "nan" not in str(compare(frame(system(matches="---"), system("react", "---"))))


def test_an_unknown_price_is_not_compared() -> None:
    half = [{**row, "cost_usd": row["cost_usd"] if i else None} for i, row in enumerate(system("react"))]
    (pair,) = compare(frame(system(), half)).pairs
    with pytest.raises(KeyError, match="cost_usd"):
        pair["cost_usd"]


def test_trials_of_a_question_are_one_observation() -> None:
    trials = [row for trial in range(3) for row in system(trial=trial)]
    other = [row for trial in range(3) for row in system("react", "111100", 2000, trial=trial)]
    (pair,), (single,) = (
        compare(frame(trials, other)).pairs,
        compare(frame(system(), system("react", "111100", 2000))).pairs,
    )
    assert (pair.questions, pair.rows) == (6, 18)
    ratio, one = pair["total_tokens"].interval, single["total_tokens"].interval
    assert (ratio.low, ratio.high) == pytest.approx((one.low, one.high))
    assert ratio.n == 6
    assert pair["exact_match"].p == 1.0
    assert pair["total_tokens"].p == single["total_tokens"].p


def test_holms_family_is_accuracy_total_tokens_and_cost() -> None:
    comparison = small()
    figures = [(pair, figure) for pair in comparison.pairs for figure in pair.figures]
    family = [figure for pair, figure in figures if not pair.is_exploratory(figure)]
    assert {figure.measure for figure in family} == {"exact_match", "total_tokens", "cost_usd"}
    least = min(family, key=lambda figure: figure.p)
    assert len(family) == 7
    assert least.p_holm == pytest.approx(7 * least.p)
    assert all(math.isnan(figure.p_holm) for pair, figure in figures if pair.is_exploratory(figure))
    frame = comparison.to_frame().query("p == p")
    assert (frame["exploratory"] == frame["p_holm"].isna()).all()


def test_an_oracles_latency_and_accuracy_are_not_tested() -> None:
    oracle = [pair for pair in small().pairs if pair.oracle]
    assert oracle
    for pair in oracle:
        assert "latency_s" not in [figure.measure for figure in pair.figures]
        assert pair.is_exploratory(pair["exact_match"])


def test_data_sets_are_compared_each_for_itself() -> None:
    both = [
        system(name, dataset=data, run_id=run)
        for run, data in ((A, "sample"), (B, "hotpotqa"))
        for name in ("rewoo", "react")
    ]
    for intersect in (False, True):
        comparison = compare(frame(*both), intersect=intersect)
        assert [(pair.dataset, pair.b.split(",")[0]) for pair in comparison.pairs] == [
            ("sample", "react"),
            ("hotpotqa", "react"),
        ]
    (alone,) = compare(frame(*both[:2])).pairs
    for pair in comparison.pairs:  # a family of tests for each data set
        assert (pair.tests, pair.figures) == (alone.tests, alone.figures)
    assert f"p: adjusted for {alone.tests} tests (Holm)" in str(comparison)
    with pytest.raises(UsageError, match="only 'rewoo' ran on the data set 'sample', the others on 'hotpotqa'"):
        compare(frame(system(), system("react", dataset="hotpotqa", run_id=B)))


def test_a_pair_across_forms_says_what_one_side_carries() -> None:
    rows = frame(
        system(matches="110100", exemplar_tokens=0.0, tool_calls=2, llm_calls=3),
        system("react", "111100", 2000, exemplar_tokens=3174.0, tool_calls=2, llm_calls=3),
        system("direct", "111100", 200, exemplar_tokens=0.0, tool_calls=0, llm_calls=1),
    )
    told = [each for each in rewoo_bench.compare(rows).warnings if "exemplars" in each]
    assert told == [
        "react carries 1,058 tokens of exemplars a call and rewoo none: a part of what they differ by is their form"
    ]
