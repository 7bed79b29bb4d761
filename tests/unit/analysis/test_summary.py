"""The table of a run: intervals, failures and unknown prices in plain sight."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from comparison_rows import frame as systems
from comparison_rows import system
from parts import MOMENT

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.summary import Summary, summaries_of
from rewoo_bench.analysis.summary_tables import summary_table
from rewoo_bench.runs.columns import QUESTIONS


def row(**values: Any) -> dict[str, Any]:
    filled = {
        "run_id": "r", "architecture": "rewoo", "dataset": "sample", "model": "m", "planner_model": "m",
        "solver_model": "m", "example_id": "q0", "question_type": "bridge", "trial": 0, "question": "?",
        "answers": ["a"], "prediction": "a", "exact_match": True, "f1": 1.0, "judged_correct": None,
        "stop_reason": "answered", "error": None, "llm_calls": 2, "tool_calls": 3, "steps": 3, "replans": 0,
        "input_tokens": 100, "cached_input_tokens": 20, "output_tokens": 10, "reasoning_tokens": 0,
        "total_tokens": 110, "planner_tokens": 60, "solver_tokens": 50, "tool_llm_tokens": 0, "billed_tokens": 110,
        "cost_usd": 0.002, "usage_source": "provider", "latency_s": 1.0, "working_s": 1.0, "retries": 0,
        "started_at": MOMENT,
    }  # fmt: skip
    return {**filled, **values}


LOOP = {"loop_step": 2, "loop_tokens": 55, "stop_reason": "step_limit"}
FAILED = {"prediction": None, "exact_match": None, "f1": None, "stop_reason": "error", "error": "down"}


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    made: pd.DataFrame = pa.Table.from_pylist(list(rows), schema=QUESTIONS).to_pandas(types_mapper=pd.ArrowDtype)
    return made


def scored(*matches: bool | None) -> pd.DataFrame:
    return frame(*(row(example_id=f"q{i}", exact_match=match, f1=match and 1.0) for i, match in enumerate(matches)))


def one(rows: pd.DataFrame) -> Summary:
    (summary,) = summaries_of(rows)
    return summary


def test_a_run_and_compare_say_the_same_whatever_the_order_of_rows() -> None:
    """2.7 / 8 is 0.3375; summed in some orders it is 0.33749999999999997, which reads 0.337."""
    f1 = [0.6, 0.8, 0.2, 0.2, 0.1, 0.4, 0.3, 0.1]
    for order in ([0, 1, 2, 3, 4, 5, 6, 7], [1, 7, 0, 4, 6, 5, 2, 3]):
        rows = frame(*(row(example_id=f"q{i}", f1=f1[i], architecture=name) for i in order for name in "ab"))
        shown = [summary.f1.estimate for summary in summaries_of(rows)]
        assert shown == [system.summary.f1.estimate for system in compare(rows).systems] == [0.3375, 0.3375]


def test_a_quantile_is_there_where_it_has_an_interval() -> None:
    def latencies(n: int) -> Summary:
        return one(frame(*(row(example_id=f"q{i}", latency_s=float(i)) for i in range(n))))

    few, some, many = latencies(5), latencies(71), latencies(72)
    assert (few.latency_p50_s, some.latency_p95_s) == (None, None)
    assert some.latency_p50_s is not None
    assert some.latency_p50_s.estimate == 35.0
    assert many.latency_p95_s is not None
    assert (many.latency_p95_s.low, many.latency_p95_s.high) == (63.0, 71.0)
    assert "35.50 [27.00, 44.00]" in summary_table([many])
    assert re.search(r"35.00 \[.*\] .* too few\n", summary_table([some]))
    assert "not timed" in summary_table([one(frame(row(latency_s=None)))])
    assert "simulated" in summary_table([one(frame(row(model="oracle")))])


@pytest.mark.parametrize("matches", [(None,), ()])
def test_nothing_scored_is_no_estimate(matches: tuple[None, ...]) -> None:
    assert [each.exact_match.n for each in summaries_of(scored(*matches))] == [0] * len(matches)


def test_failed_questions_are_in_no_mean() -> None:
    rows = frame(row(), row(example_id="q1", **FAILED, input_tokens=300, latency_s=9.0), row(example_id="q2"))
    summary = one(rows)
    assert (summary.total, summary.answered, summary.failed) == (3, 2, 1)
    assert (summary.exact_match.estimate, summary.exact_match.n) == (1.0, 2)
    assert summary.input_tokens == 100.0


def test_failures_are_shown() -> None:
    shown = summary_table(summaries_of(frame(row(), row(example_id="q1", **FAILED)))).split("\n\n")
    ended = shown[shown.index("sample, m: how the questions ended") + 1]
    assert [line.split() for line in ended.splitlines()] == [["architecture", "rows", "failed"], ["rewoo", "2", "1"]]
    assert shown[1].splitlines()[1].split()[:2] == ["rewoo", "1"]  # n leaves it out


def test_an_unknown_price_is_unknown_and_never_nothing() -> None:
    rows = frame(row(), row(example_id="q1", cost_usd=None))
    assert one(rows).cost_usd is None
    assert "no price" in summary_table(summaries_of(rows))
    assert "2.000" in summary_table(summaries_of(frame(row())))


def test_estimated_tokens_are_marked() -> None:
    mixed = frame(row(), row(example_id="q1", usage_source="estimated"))
    assert one(mixed).usage_source == "mixed"
    assert "tokens are estimated" in summary_table(summaries_of(mixed))
    assert "tokens are estimated" not in summary_table(summaries_of(frame(row())))


def test_a_question_with_more_trials_weighs_no_more() -> None:
    tokens = {"q0": [100, 200, 300, 400], "q1": [500]}
    rows = [row(example_id=q, trial=trial, total_tokens=n) for q, ns in tokens.items() for trial, n in enumerate(ns)]
    (summary,) = summaries_of(frame(*rows))
    assert summary.total_tokens == 375.0
    mean = summary.intervals["total_tokens"]
    assert mean.low < 375.0 < mean.high


def test_with_trials_the_rows_are_counted_too() -> None:
    trials = frame(*(row(example_id=f"q{i}", trial=trial) for i in range(5) for trial in range(2)))
    shown = summary_table(summaries_of(trials))
    assert re.search(r"architecture +n .* answered  rows .*\nrewoo +5 .* 10    10 .*\n", shown)
    assert "rows" not in summary_table(summaries_of(frame(row())))


def test_a_mean_has_an_interval_of_two_questions_and_more() -> None:
    several = one(frame(*(row(example_id=f"q{i}", total_tokens=100 + i, cost_usd=0.001) for i in range(4))))
    tokens = several.intervals["total_tokens"]
    assert 0 < tokens.low < several.total_tokens == 101.5 < tokens.high
    assert f"102 [{tokens.low:,.0f}, {tokens.high:,.0f}]?" in summary_table([several])
    dollars = several.intervals["cost_usd"]
    assert f"1.000 [{1000 * dollars.low:.3f}, {1000 * dollars.high:.3f}]?" in summary_table([several])
    assert one(frame(row(total_tokens=100))).intervals == {}
    unpriced = one(frame(row(), row(example_id="q1", cost_usd=None)))
    assert "cost_usd" not in unpriced.intervals


def test_a_mean_of_few_questions_has_the_mark_of_a_rare_event_and_its_explanation() -> None:
    def table(questions: int) -> str:
        rows = [
            row(example_id=f"q{i}", total_tokens=100 + i % 7, cost_usd=1 + i % 3, f1=i % 2, exact_match=i % 2 == 1)
            for i in range(questions)
        ]
        return summary_table(summaries_of(frame(*rows)))

    assert table(19).count("]?") > 2
    assert table(19).splitlines()[-1] == "? rests on a few questions: a rare event may be missing"
    assert "?" not in table(40)


def test_the_share_of_a_tasks_questions_is_shown_where_tasks_have_several() -> None:
    joined = frame(*(row(example_id=f"q{i}", objectives_right=i / 4) for i in range(5)))
    assert one(joined).objectives_right.estimate == 0.5
    shown = summary_table([one(joined)])
    assert ("questions of a task right" in shown, "0.500 [" in shown) == (True, True)
    alone = frame(row(), row(architecture="react"))
    assert "of a task" not in summary_table(summaries_of(alone)) + str(compare(alone))
    both = pd.concat([joined, joined.assign(architecture="react")])
    assert "questions of a task right" in str(compare(both))
    figures = compare(both).to_frame().query("measure == 'objectives_right'")
    assert (figures["low"] < 0.5).all()
    assert (figures["estimate"] == 0.5).all()


def test_what_a_solved_question_costs_has_an_interval_and_stands_in_80_columns() -> None:
    rows = frame(*(row(example_id=f"q{i}", exact_match=i < 15, total_tokens=150) for i in range(20)))
    found = one(rows).tokens_per_solved
    assert (found.estimate, found.n) == (200.0, 20)
    assert found.low < 200 < found.high
    *_, title, block = summary_table([one(rows)]).split("\n\n")[:-1]  # the last is a note
    assert title == "sample, m: per solved question (exact match) [95% interval]"
    assert f"200 [{found.low:,.0f}, {found.high:,.0f}]" in block
    assert max(map(len, block.splitlines())) <= 80


def test_of_few_solved_questions_what_one_costs_has_no_interval() -> None:
    rows = frame(*(row(example_id=f"q{i}", exact_match=i < 14, total_tokens=140) for i in range(20)))
    found = one(rows).tokens_per_solved
    assert (found.estimate, found.low != found.low) == (200.0, True)
    assert "200 [under 15 solved]" in summary_table([one(rows)])


def test_none_solved_is_said_without_a_bound() -> None:
    found = one(scored(*[False] * 20)).tokens_per_solved
    assert (found.estimate, found.high, found.n) == (math.inf, math.inf, 20)
    assert "none solved" in (shown := summary_table([one(scored(*[False] * 20))]))
    assert f"{found.low:,.0f}" not in shown


def test_an_oracle_solves_nothing_by_itself() -> None:
    assert "per solved" not in summary_table(summaries_of(frame(row(model="oracle"))))


def test_a_median_of_some_questions_says_of_how_many() -> None:
    timed = [row for each in range(60) for row in system(ids=range(each, each + 1), matches="1", latency_s=1.0 + each)]
    recalled = system(ids=range(60, 100), matches="1" * 40, latency_s=None)
    (summary,) = summaries_of(systems(timed, recalled))
    assert summary.latency_n == 60
    assert "(n = 60)" in summary_table([summary])
    assert "(n = " not in summary_table(summaries_of(systems(timed)))
    (trials,) = summaries_of(systems(timed, [{**each, "trial": 1} for each in timed], recalled))
    assert trials.latency_n == 60
    assert "(n = 60)" in summary_table([trials])


def test_the_heading_names_a_planner_and_solver_with_models_of_their_own() -> None:
    assert summary_table(summaries_of(frame(row(planner_model="big")))).startswith(
        "sample, m (planner big): means per question"
    )
    both = summary_table(summaries_of(frame(row(planner_model="big", solver_model="tiny"), row(architecture="react"))))
    assert "sample, m (planner big, solver tiny): means" in both
    assert "sample, m: means" in both


def test_the_table_has_the_share_of_questions_in_loops() -> None:
    straight = [row(example_id=f"q{i}", loop_tokens=0) for i in range(1, 4)]
    summary = one(frame(row(**LOOP), *straight, row(example_id="q4", **FAILED)))
    assert (summary.loop_share, summary.loop_token_share) == (0.25, 0.125)
    shown = summary_table([summary])
    assert re.search(r"architecture .*  in loops\nrewoo .*     25.0%\n", shown)
    assert "in loops: questions that ended in steps that repeat themselves" in shown.splitlines()
    assert "loops" not in summary_table([one(frame(*straight))])
