"""budgets.toml: what it may say, and rows held against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gate_runs import FAILED, row, rows, write_run

from rewoo_bench.analysis.summary import summaries_of
from rewoo_bench.errors import SpecError, UsageError
from rewoo_bench.gate.budgets import check_budgets, read_budgets
from rewoo_bench.gate.verdict import Check
from rewoo_bench.runs.folder import load_table
from rewoo_bench.runs.rows import Rows

HEAD = '[[budget]]\narchitecture = "rewoo"\ndataset = "sample"\nmodel = "oracle"\n'


def written(folder: Path, limits: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "budgets.toml"
    path.write_text(HEAD + limits)
    return path


def checked(folder: Path, limits: str, *lines: dict[str, Any]) -> list[Check]:
    """The checks of these limits on these rows."""
    found = Rows(load_table(write_run(folder / "run", lines)))
    return list(check_budgets(read_budgets(written(folder, limits)), found))


def test_each_limit_is_a_check_with_what_was_measured(tmp_path: Path) -> None:
    lines = [row(n, total_tokens=1000 + n) for n in range(101)]
    found = checked(tmp_path, "total_tokens = { max = 1100, mean = 1049, p95 = 1095 }\nllm_calls = { max = 1 }", *lines)
    assert [(check.name, check.status, check.measured, check.limit) for check in found] == [
        ("llm_calls max", "fail", 2.0, 1.0),
        ("total_tokens max", "pass", 1100.0, 1100.0),
        ("total_tokens mean", "fail", 1050.0, 1049.0),
        ("total_tokens p95", "pass", 1095.0, 1095.0),
    ]
    assert found[0].text == "llm_calls max: 2.00 is over the limit of at most 1.00"


def test_latency_warns_and_never_fails(tmp_path: Path) -> None:
    (check,) = checked(tmp_path, "latency_s = { p95 = 0.5 }", *rows(5))
    assert (check.status, check.kind) == ("warn", "latency")


def test_an_unknown_cost_fails_in_words_of_its_own(tmp_path: Path) -> None:
    (check,) = checked(tmp_path, "cost_usd = { mean = 5 }", row(0), row(1, cost_usd=None))
    assert (check.status, check.kind) == ("fail", "cost unknown")
    assert "the cost of 1 row isn't known, which is not 0" in check.text


def test_a_cache_that_reads_less_than_its_budget_fails(tmp_path: Path) -> None:
    limits = "cached_input_tokens = { mean_at_least = 400, share_at_least = 0.5 }"
    kept = checked(tmp_path / "a", limits, *rows(5, cached_input_tokens=500))
    assert [(check.kind, check.name, check.status) for check in kept] == [
        ("prefix cache", "cached_input_tokens mean", "pass"),
        ("prefix cache", "cached_input_tokens share", "pass"),
    ]
    mean, share = checked(tmp_path / "b", limits, *rows(5, cached_input_tokens=0))
    assert (mean.status, share.status) == ("fail", "fail")
    below = "cached_input_tokens mean: 0.0 is below the limit of at least 400.0"
    assert mean.text == f"{below}; no call read a token from a prefix cache"


@pytest.mark.parametrize(
    ("correct", "count", "model", "status", "said"),
    [
        (100, 200, "openai/gpt", "pass", "tokens_per_solved: 2,000.0 [1,7"),
        (99, 200, "openai/gpt", "fail", "is over the limit of at most 2,000.0"),
        (24, 50, "openai/gpt", "warn", "may be chance on 50 questions"),
        (15, 50, "openai/gpt", "fail", "] is over the limit of at most 2,000.0"),  # the whole interval is
        (5, 50, "openai/gpt", "warn", "by the estimate alone; may be chance on 50 questions, 200 are enough"),
        (5, 300, "openai/gpt", "fail", "[under 15 solved] is over the limit of at most 2,000.0, by the estimate alone"),
        (0, 50, "openai/gpt", "fail", "none solved is over"),
        (0, 50, "oracle", "warn", "an oracle's means nothing"),
    ],
)
def test_the_tokens_of_a_solved_question_have_a_budget(
    tmp_path: Path, correct: int, count: int, model: str, status: str, said: str
) -> None:
    lines = [row(n, model=model, exact_match=n < correct) for n in range(count)]
    limits = written(tmp_path, "tokens_per_solved = { at_most = 2000 }")
    limits.write_text(limits.read_text().replace("oracle", model))
    (check,) = check_budgets(read_budgets(limits), Rows(load_table(write_run(tmp_path / "run", lines))))
    assert (check.status, check.name) == (status, "tokens_per_solved")
    assert said in check.text


def test_a_budget_of_solved_questions_fails_where_some_were_not_scored(tmp_path: Path) -> None:
    lines = [row(n, exact_match=None if n == 3 else True) for n in range(5)]
    (check,) = checked(tmp_path, "tokens_per_solved = { at_most = 2000 }", *lines)
    assert (check.status, check.text) == ("fail", "tokens_per_solved: some rows have no score")


@pytest.mark.parametrize(
    ("correct", "count", "model", "status"),
    [
        (90, 300, "openai/gpt", "pass"),
        (84, 300, "openai/gpt", "pass"),  # 0.28: within the margin
        (83, 300, "openai/gpt", "fail"),
        (0, 199, "openai/gpt", "warn"),  # too few
        (0, 300, "oracle", "warn"),  # means nothing
    ],
)
def test_accuracy_fails_on_enough_questions_of_a_real_model(
    tmp_path: Path, correct: int, count: int, model: str, status: str
) -> None:
    lines = [row(n, model=model, exact_match=n < correct) for n in range(count)]
    found = Rows(load_table(write_run(tmp_path / "run", lines)))
    limits = written(tmp_path, "exact_match = { min = 0.30, margin = 0.02 }")
    limits.write_text(limits.read_text().replace("oracle", model))
    (check,) = check_budgets(read_budgets(limits), found)
    assert check.status == status


def test_failed_questions_are_in_no_mean(tmp_path: Path) -> None:
    lines = [row(0, total_tokens=400), *(row(number, **FAILED, total_tokens=0) for number in range(1, 10))]
    failures, check = checked(tmp_path, "total_tokens = { mean = 100 }", *lines)
    assert (check.status, check.measured, check.n) == ("fail", 400.0, 1)
    assert (failures.status, failures.n) == ("fail", 1)  # more failed than are measured
    assert failures.text == "9 of 10 rows failed in the infrastructure; the figures below are of the other 1"


UNEVEN = [
    *rows(1, total_tokens=400, f1=1.0),
    *rows(1, total_tokens=400, f1=1.0, trial=1),
    *rows(1, total_tokens=700, f1=0.4, trial=2, exact_match=False),
    row(1, total_tokens=2100, f1=0.2, exact_match=False, cached_input_tokens=0),
]
"""Two questions of a run that stopped in the middle of its trials: three rows of one, one of the other."""


def test_means_are_those_of_questions_as_every_table_has_them(tmp_path: Path) -> None:
    limits = """total_tokens = { mean = 1500, p95 = 3000 }
        cached_input_tokens = { mean_at_least = 1, share_at_least = 0.1 }
        tokens_per_solved = { at_most = 9000 }
        exact_match = { min = 0.1 }
        f1 = { min = 0.1 }
        """
    found = checked(tmp_path, limits.replace("        ", ""), *UNEVEN)
    measured = {check.name: check.measured for check in found}
    (summary,) = summaries_of(Rows(load_table(tmp_path / "run")))
    assert measured["total_tokens mean"] == summary.total_tokens == 1300
    assert measured["cached_input_tokens mean"] == summary.cached_input_tokens == 250
    assert measured["cached_input_tokens share"] == summary.cached_input_tokens / summary.input_tokens
    assert measured["exact_match min"] == summary.exact_match.estimate == pytest.approx(1 / 3)
    assert measured["f1 min"] == summary.f1.estimate == pytest.approx(0.5)
    assert measured["tokens_per_solved"] == summary.tokens_per_solved.estimate == pytest.approx(3900)
    assert measured["total_tokens p95"] == pytest.approx(1890)  # of rows


@pytest.mark.parametrize(("count", "status"), [(10, "warn"), (11, "fail")])
def test_more_than_a_tenth_failed_is_no_fair_sample(tmp_path: Path, count: int, status: str) -> None:
    lines = [*rows(100 - count), *(row(number, **FAILED) for number in range(100 - count, 100))]
    failures, check = checked(tmp_path, "total_tokens = { mean = 2000 }", *lines)
    assert (failures.kind, failures.status, check.status) == ("failed questions", status, "pass")


def test_a_run_in_which_nothing_is_answered_is_within_no_budget(tmp_path: Path) -> None:
    lines = rows(3, stop_reason="invalid_plan", exact_match=False, total_tokens=10)
    nothing, check = checked(tmp_path, "total_tokens = { mean = 2000 }", *lines)
    assert (nothing.status, nothing.text) == ("fail", "no question was answered, and what isn't answered is cheap")
    assert check.status == "pass"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("total_token = { mean = 1 }", r"unknown key 'budget\.0\.total_token', did you mean 'total_tokens'\?"),
        ("total_tokens = { p99 = 1 }", r"unknown key 'budget\.0\.total_tokens\.p99', did you mean 'p95'\?"),
        ("total_tokens = { mean = -1 }", "greater than or equal to 0, got -1"),
    ],
)
def test_a_file_that_can_not_be_meant_is_an_error(tmp_path: Path, limits: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read_budgets(written(tmp_path, limits))


def test_a_file_without_budgets_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "budgets.toml").write_text("budget = []")
    with pytest.raises(SpecError, match=r"budgets\.toml: budget: .* at least 1 item"):
        read_budgets(tmp_path / "budgets.toml")


def test_a_budget_that_matches_no_row_is_an_error_that_names_the_rows_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'rewoo, sample, oracle' matches no row; .*: react, sample, oracle"):
        checked(tmp_path, "llm_calls = { max = 1 }", *rows(2, architecture="react"))
