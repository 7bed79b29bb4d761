"""A run against its baseline: what fails, for which reason, in which words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from gate_runs import ARCHITECTURE, FAILED, architecture, changed, manifest, row, rows, write_run

from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.gate.check import ComparisonTerms, check_run, open_baseline
from rewoo_bench.gate.verdict import Check, Verdict


def judged(
    folder: Path,
    now: Iterable[Mapping[str, Any]],
    facts: Mapping[str, Any] | None = None,
    before: Iterable[Mapping[str, Any]] | None = None,
    allow_incomplete: bool = False,
    **terms: Any,
) -> Verdict:
    """The verdict on `now`, held against 20 questions as they are written by default."""
    baseline = write_run(folder / "before", before or rows())
    run = write_run(folder / "now", now, facts)
    return check_run(run, baseline=baseline, terms=ComparisonTerms(**terms), allow_incomplete=allow_incomplete)


def failure(verdict: Verdict) -> Check:
    """The one check that failed."""
    (check,) = verdict.failures
    return check


def with_planner(tokens: int) -> dict[str, int]:
    """The columns of a question whose planner read so many tokens more."""
    return {"planner_tokens": 600 + tokens, "input_tokens": 950 + tokens, "total_tokens": 1000 + tokens}


def test_the_same_counts_pass(tmp_path: Path) -> None:
    verdict = judged(tmp_path, rows())
    assert (verdict.code, verdict.failures, verdict.warnings) == (0, (), ())
    assert {check.name for check in verdict.checks if check.kind == "growth"} == {
        "total_tokens", "input_tokens", "output_tokens", "llm_calls", "tool_calls", "replans",
    }  # fmt: skip


def test_growth_up_to_the_margin_passes_and_beyond_it_fails(tmp_path: Path) -> None:
    assert judged(tmp_path / "a", rows(total_tokens=1020, input_tokens=969, output_tokens=51)).code == 0
    check = judged(tmp_path / "b", rows(total_tokens=1021)).failures[0]
    assert (check.kind, check.name, check.measured, check.before) == ("growth", "total_tokens", 1021.0, 1000.0)
    assert "total_tokens +21.0 a question, 1,000.0 -> 1,021.0 (+2.1%), 2% is allowed" in check.text
    assert (
        judged(tmp_path / "c", rows(total_tokens=1021, input_tokens=970, output_tokens=51), max_increase=0.03).code == 0
    )


def test_growth_names_the_role_the_size_and_the_questions(tmp_path: Path) -> None:
    lines = [row(n, **with_planner(100 if n == 7 else 30)) for n in range(20)]
    verdict = judged(tmp_path, lines)
    total, inputs = verdict.failures
    assert total.group.architecture == "rewoo"
    assert "the planner's tokens grew most, by 33.5 a question: longer prompts (+33.5 input tokens)" in total.text
    assert str(total.grown[0]) == "q007 +100 (planner, 1,000 -> 1,100)"
    assert [question.example_id for question in total.grown[1:]] == ["q000", "q001", "q002", "q003"]
    assert (inputs.name, "planner" in inputs.text) == ("input_tokens", False)  # the cause is told once


def test_cost_moved_to_one_question_fails_though_the_mean_is_the_same(tmp_path: Path) -> None:
    inputs = [18_050 if n == 7 else 50 for n in range(20)]  # their sum is 20 * 950, as before
    moved = [row(n, input_tokens=tokens, total_tokens=tokens + 50) for n, tokens in enumerate(inputs)]
    check = failure(judged(tmp_path, moved))
    assert (check.kind, check.name) == ("growth", "total_tokens of each question")
    assert check.text.startswith("total_tokens of 1 of 20 rows grew by more than 2%, and the mean hides it: ")
    assert "1,000.0 -> 1,000.0 (+0.0%)" in check.text
    assert [question.example_id for question in check.grown] == ["q007"]


def test_a_prefix_cache_that_reads_nothing_any_more_fails(tmp_path: Path) -> None:
    check = failure(judged(tmp_path, rows(cached_input_tokens=0)))
    assert (check.kind, check.name, check.before, check.measured) == ("prefix cache", "cached_input_tokens", 500.0, 0.0)
    assert check.text == (
        "cached_input_tokens -500.0 a question, 500.0 -> 0.0 (-100.0%), and 950.0 input tokens a question aren't "
        "cached instead of 450.0; no call read a token from a prefix cache"
    )


@pytest.mark.parametrize(("cached", "status"), [(300, "warn"), (100, "fail"), (0, "fail")])
def test_a_live_models_cache_fails_where_it_reads_less_than_half(tmp_path: Path, cached: int, status: str) -> None:
    verdict = judged(tmp_path, rows(cached_input_tokens=cached), mode="live")
    (check,) = (check for check in verdict.checks if check.kind == "prefix cache")
    assert check.status == status


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"replans": 1, "llm_calls": 3, "planner_tokens": 900, "input_tokens": 1250, "total_tokens": 1300},
            "the planner's tokens grew most, by 300.0 a question: more replans (+1.00 a question), more model calls",
        ),
        (
            {"evidence_tokens": 290, "solver_tokens": 490, "input_tokens": 1040, "total_tokens": 1090},
            "the solver's tokens grew most, by 90.0 a question: more evidence (+90.0 tokens a question)",
        ),
    ],
)
def test_what_grew_is_named(tmp_path: Path, values: dict[str, int], said: str) -> None:
    assert said in judged(tmp_path, rows(**values)).failures[0].text


def test_a_longer_prompt_is_named_with_what_it_costs(tmp_path: Path) -> None:
    facts = architecture(texts_sha256={**ARCHITECTURE["texts_sha256"], "prompt 'planner'": "p2"})  # type: ignore[dict-item]
    check = failure(judged(tmp_path, rows(**with_planner(12)), facts))
    assert (check.kind, check.group.architecture) == ("changed", "rewoo")
    assert check.text.startswith("prompt 'planner' changed; total_tokens +12.0 a question, 1,000.0 -> 1,012.0 (+1.2%)")
    assert "the planner's tokens grew most, by 12.0" in check.text
    assert "--accept-prompts" in check.text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"settings": {"max_steps": 4, "slot_tokens": 200}}, "settings.max_steps was 8 and is 4 now"),
        ({"tools": {"Search": {}}}, "tools.Search.max_concurrency was 8 and is None now"),
        ({"runner": "mine:ReWOO"}, "runner was 'rewoo' and is 'mine:ReWOO' now"),
        ({"tool_prompts_sha256": {"LLM": "t2"}}, "prompt of the tool 'LLM' changed"),
        ({"prompts_sha256": "bbbb", "texts_sha256": None}, "its prompts changed"),
    ],
)
def test_what_was_changed_about_an_architecture_is_named(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    check = failure(judged(tmp_path, rows(), architecture(**values)))
    assert (check.kind, check.text.partition(";")[0]) == ("changed", said)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (changed("dataset", name="other"), "dataset.name was 'sample' and is 'other' now"),
        (changed("corpus", content_hash="c2"), "corpus.content_hash was 'c1' and is 'c2' now"),
        (changed("models", default={"name": "oracle?extra_steps=2"}), "models.default.name"),
        (changed("options", temperature=0.7), "options.temperature was 0.0 and is 0.7 now"),
        (manifest(tokenizer="o200k_base"), "tokenizer was 'cl100k_base'"),
        (changed("prices", oracle={"input": 1.0}), "prices.oracle was None"),
    ],
)
def test_what_can_not_be_compared_fails_without_a_comparison(tmp_path: Path, facts: dict[str, Any], said: str) -> None:
    verdict = judged(tmp_path, rows(total_tokens=9000), facts)
    check = failure(verdict)
    assert (verdict.code, verdict.checks, check.kind) == (1, (check,), "not comparable")
    assert check.text.startswith("not comparable: ")
    assert said in check.text


def test_another_id_is_named(tmp_path: Path) -> None:
    check = failure(judged(tmp_path, [*rows(19), row(19, example_id="new")]))
    assert check.text == "not comparable: 1 question gone ('q019'), 1 new ('new')"


@pytest.mark.parametrize("new", [True, False])
def test_an_architecture_on_one_side_only_is_not_comparable(tmp_path: Path, new: bool) -> None:
    both, one = [*rows(), *rows(architecture="react")], rows()
    check = failure(judged(tmp_path, both if new else one, before=one if new else both))
    assert check.group.architecture == "react"
    assert ("update it" if new else "the run has no rows of it") in check.text


def test_a_run_with_failed_questions_is_not_judged(tmp_path: Path) -> None:
    verdict = judged(tmp_path, [*rows(19), row(19, **FAILED, total_tokens=0)], mode="live")
    assert verdict.code == 3
    assert str(verdict.incomplete).startswith("1 of 20 rows failed; --resume tries them again")


def test_a_question_that_failed_is_no_cheap_question(tmp_path: Path) -> None:
    cheap = {**FAILED, "total_tokens": 0}
    check = failure(judged(tmp_path, [*rows(19), row(19, **cheap)], allow_incomplete=True))
    assert (check.kind, check.n) == ("failed questions", 19)
    live = judged(tmp_path / "live", [*rows(19), row(19, **cheap)], mode="live", allow_incomplete=True)
    assert live.code == 0


@pytest.mark.parametrize(("count", "code"), [(2, 0), (3, 1)])
def test_more_than_a_tenth_failed_fails_a_live_run(tmp_path: Path, count: int, code: int) -> None:
    lines = [*rows(20 - count), *(row(number, **FAILED) for number in range(20 - count, 20))]
    assert judged(tmp_path, lines, mode="live", allow_incomplete=True).code == code


def test_a_comparison_has_the_means_of_questions(tmp_path: Path) -> None:
    before = [*rows(2, trial=0), *rows(2, trial=1, total_tokens=2000), *rows(2, trial=2, total_tokens=2000)]
    now = [each if (each["example_id"], each["trial"]) in {("q000", 0), ("q001", 0), ("q001", 1), ("q001", 2)}
           else {**each, **FAILED} for each in before]  # fmt: skip
    verdict = judged(tmp_path, now, before=before, mode="live", allow_incomplete=True)
    (tokens,) = (check for check in verdict.checks if check.name == "total_tokens")
    assert tokens.measured == tokens.before == pytest.approx((1000 + 5000 / 3) / 2)
    means = open_baseline(tmp_path / "before").architectures["rewoo"].means
    assert means["total_tokens"] == round(5000 / 3, 4)
    (score,) = (check for check in verdict.checks if check.name == "exact_match")
    assert score.measured == 1


@pytest.mark.parametrize("mode", ["exact", "live"])
def test_where_no_question_was_answered_on_either_side_the_gate_fails(tmp_path: Path, mode: str) -> None:
    cut = rows(stop_reason="step_limit", exact_match=False)
    check = failure(judged(tmp_path, cut, before=cut, mode=mode))
    assert (check.kind, check.name, check.text) == ("accuracy", "answered", "no question was answered")


def test_a_baseline_without_tokens_is_no_baseline(tmp_path: Path) -> None:
    nothing = rows(total_tokens=0, input_tokens=0, output_tokens=0, llm_calls=0)
    for mode in ("exact", "live"):
        with pytest.raises(DataError, match=r"before.* no baseline: no tokens were counted for 'rewoo'"):
            judged(tmp_path / mode, rows(), before=nothing, mode=mode)


@pytest.mark.parametrize("mode", ["exact", "live"])
def test_a_run_without_tokens_is_not_cheap(tmp_path: Path, mode: str) -> None:
    check = failure(judged(tmp_path, rows(total_tokens=0, input_tokens=0, output_tokens=0), mode=mode))
    assert check.text == "no tokens were counted, so there is nothing to compare"


def test_rows_that_are_missing_make_a_run_incomplete(tmp_path: Path) -> None:
    whole = manifest()
    facts = {**whole, "dataset": {**whole["dataset"], "examples": 20}, "options": {**whole["options"], "trials": 1}}
    verdict = judged(tmp_path, rows(19), facts)
    assert (verdict.code, verdict.incomplete) == (3, "it has 19 of 20 rows")


def test_an_oracle_that_is_no_longer_right_fails(tmp_path: Path) -> None:
    fallen = [row(number, exact_match=number % 4 == 0) for number in range(20)]
    check = failure(judged(tmp_path, fallen))
    assert (check.kind, check.name, check.before, check.measured) == ("accuracy", "exact_match", 1.0, 0.25)


def test_questions_that_are_no_longer_answered_fail(tmp_path: Path) -> None:
    verdict = judged(tmp_path, [*rows(19), row(19, stop_reason="step_limit")])
    assert [check.name for check in verdict.failures] == ["answered"]


def test_an_incomplete_run_is_not_judged(tmp_path: Path) -> None:
    run = write_run(tmp_path / "now", rows(total_tokens=9000), manifest(status="incomplete", reason="interrupted"))
    baseline = write_run(tmp_path / "before", rows())
    verdict = check_run(run, baseline=baseline)
    assert (verdict.code, verdict.incomplete, verdict.checks) == (3, "interrupted", ())
    assert check_run(run, baseline=baseline, allow_incomplete=True).code == 1
    with pytest.raises(UsageError, match="is no baseline, it is incomplete: interrupted"):
        check_run(baseline, baseline=run)


def test_a_run_that_goes_on_or_is_empty_is_incomplete(tmp_path: Path) -> None:
    baseline = write_run(tmp_path / "before", rows())
    running = write_run(tmp_path / "running", rows(), {**manifest(status="running"), "reason": None})
    (running / "questions.parquet").unlink()
    verdict = check_run(running, baseline=baseline, allow_incomplete=True)
    assert (verdict.code, verdict.incomplete) == (3, "the run isn't finished")
    assert check_run(write_run(tmp_path / "empty", []), baseline=baseline).incomplete == "it has no rows"


@pytest.mark.parametrize(("there", "code"), [(107, 1), (108, 0)])
def test_an_incomplete_run_needs_nine_tenths_of_its_rows(tmp_path: Path, there: int, code: int) -> None:
    (tmp_path / "budgets.toml").write_text(
        '[[budget]]\narchitecture = "rewoo"\ndataset = "sample"\nmodel = "oracle"\ntotal_tokens = { mean = 1600 }\n'
    )
    facts = manifest(status="incomplete", reason="interrupted", dataset={**manifest()["dataset"], "examples": 120})
    run = write_run(tmp_path / "now", rows(there), facts)
    assert check_run(run, budgets=tmp_path / "budgets.toml").code == 3
    verdict = check_run(run, budgets=tmp_path / "budgets.toml", allow_incomplete=True)
    assert verdict.code == code
    if code:
        assert failure(verdict).text.startswith(f"not enough rows: {there} of 120; ")
