"""Claims can come out right: when what was claimed is so, and on the runs that `claims` itself asks for."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claim_runs import found, one_claim, run_folder
from comparison_rows import system

from rewoo_bench.analysis.claims import Claim, check, gather, read_claims
from rewoo_bench.analysis.claims.check import needed, render_claims
from rewoo_bench.analysis.claims.run_groups import SCORES
from rewoo_bench.analysis.stats.paired import (
    Interval,
    difference_of_means,
    difference_of_proportions,
    proportion,
    ratio_of_means,
)
from rewoo_bench.cli.main import main

MODELS = Path(__file__).parents[2] / "golden" / "models"
BY_ID = {claim.id: claim for claim in read_claims()}
BANDS = [claim for claim in BY_ID.values() if claim.rule.needs_number]


def drawn(claim: Claim, n: int, draw: np.random.Generator) -> Interval:
    """An interval of n questions of a world in which the claimed number is exactly right."""
    assert claim.number is not None
    measure, number = claim.measure, claim.number
    if measure.name == "ratio":
        below = draw.lognormal(0, 0.4, n)
        return ratio_of_means(below, number * below * draw.lognormal(-0.02, 0.2, n))
    if measure.name == "difference":
        changed = draw.random(n)  # a quarter of the answers differ, for better or worse
        a = np.where(changed < 0.25, changed < 0.125 - number / 2, draw.random(n) < 0.3).astype(float)
        b = np.where(changed < 0.25, changed >= 0.125 - number / 2, a).astype(float)
        return difference_of_proportions(a, b)
    assert measure.name == "mean"
    if measure.column in SCORES and number in (0.0, 1.0):
        return proportion([1] * round(number * n) + [0] * (n - round(number * n)))
    return difference_of_means(np.zeros(n), number + draw.normal(0, 0.1, n))


@pytest.mark.parametrize("claim", [claim for claim in BANDS if claim.id != "rewoo-linear"], ids=lambda claim: claim.id)
def test_a_band_that_is_exactly_right_is_reproduced_with_enough_questions(claim: Claim) -> None:
    draw = np.random.default_rng(0)
    verdicts = [claim.rule.judge(drawn(claim, 4_000, draw), claim.number, str)[0] for _ in range(40)]
    assert verdicts.count("reproduced") >= 36
    few = [claim.rule.judge(drawn(claim, 60, draw), claim.number, str)[0] for _ in range(40)]
    assert few.count("contradicted") <= 2


@pytest.mark.parametrize("tool_calls", [2, 0])
def test_what_our_design_decides_is_by_construction_also_where_the_claim_fails(tmp_path: Path, tool_calls: int) -> None:
    calls = [{**row, "llm_calls": 3, "tool_calls": tool_calls} for row in system("react", "1" * 8)]
    (finding,) = check([BY_ID["n-plus-one-calls"]], gather(run_folder(tmp_path / "0001", calls)))
    assert finding.decided is not None
    assert finding.verdict == "by construction"
    assert (finding.reason == "the whole interval is from 0.90 to 1.10") == bool(tool_calls)


def test_a_question_that_a_limit_ended_lacks_the_call_that_answers(tmp_path: Path) -> None:
    rows = [{**row, "llm_calls": 3, "tool_calls": 2} for row in system("react", "1" * 8)]
    rows[0] |= {"stop_reason": "step_limit", "tool_calls": 3}
    (finding,) = check([BY_ID["n-plus-one-calls"]], gather(run_folder(tmp_path / "0001", rows)))
    assert finding.interval is not None
    assert (finding.interval.estimate, finding.interval.n) == (1.0, 7)


def test_the_formula_of_rewoo_is_off_by_what_our_own_prompts_have() -> None:
    (finding,) = check([BY_ID["rewoo-formula"]], gather(MODELS / "hotpotqa-qwen-1.5b-100"))
    assert finding.interval is not None
    assert (finding.verdict, finding.interval.high < 0.9) == ("by construction", True)


SHORT = ("--no-progress", "--no-report")


def command(*arguments: str | Path) -> int | str | None:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code


CHAINS = ["react-quadratic", "rewoo-linear", "gap-widens", "many-steps"]
ANY_DATA = ["two-calls", "n-plus-one-calls", "react-formula", "rewoo-formula"]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", [*CHAINS, *ANY_DATA])
def test_a_suggested_command_decides_its_claim(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = BY_ID[name]
    arguments = shlex.split(needed(claim).partition(";")[0])
    out = tmp_path / "run"
    assert command(*arguments, "--model", "oracle", "--out", out, *SHORT) == 0
    capsys.readouterr()
    (finding,) = check([claim], gather(out))
    assert finding.verdict not in ("no data", "undecided")
    assert finding.decided is not None
    assert finding.decided.left_out == 0
    assert finding.decided.interval.n >= 12


def cut_off(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last two questions of a system, ended by a refused plan after next to nothing."""
    ended = {"stop_reason": "invalid_plan", "exact_match": False, "f1": 0.0, "input_tokens": 10, "total_tokens": 11}
    return [{**row, "question_type": "chain-5x1", **(ended if i >= 6 else {})} for i, row in enumerate(rows)]


def test_questions_of_a_chain_that_were_cut_off_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [cut_off(system(matches="1" * 8)), cut_off(system("react", "1" * 8, 2600))[:6]]
    whole = [{**row, "question_type": "chain-5x1"} for row in system("react", "1" * 8, 2600)]
    run = run_folder(tmp_path / "0001", rows[0], whole, data="chain?hops=5", generator="chain")
    (finding,) = check([BY_ID["many-steps"]], gather(run))
    assert finding.decided is not None
    assert (finding.decided.interval.n, finding.decided.left_out) == (6, 2)
    assert 2 < finding.decided.interval.estimate < 3  # with the two cut off it would be 3.4


def test_a_run_that_was_stopped_is_called_unfinished() -> None:
    """The committed run was stopped when 50 of its 100 questions were done."""
    (finding,) = check([BY_ID["hotpotqa-tokens-react-rewoo"]], gather(MODELS / "hotpotqa-qwen-1.5b"))
    assert finding.decided is not None
    assert (finding.decided.interval.n, finding.decided.left_out) == (50, 0)
    assert "hotpotqa-qwen-1.5b (unfinished)" in render_claims([finding], "markdown")


def test_runs_whose_questions_another_run_has_count_once() -> None:
    """The three runs of the 1.5B model asked 50, 73 and the whole 100 of the same questions."""
    runs = [MODELS / f"hotpotqa-qwen-1.5b{name}" for name in ("", "-eight", "-100")]
    (finding,) = check([BY_ID["hotpotqa-steps-react"]], gather(*runs))
    assert finding.decided is not None
    assert (finding.decided.runs, finding.also) == (("hotpotqa-qwen-1.5b-100",), ())


def test_a_figure_names_the_run_whose_rows_it_has(tmp_path: Path) -> None:
    """Two runs of the same questions and model, one with variants of the architectures alone."""
    for folder, variant in (("variants", "?max_exemplars=1"), ("plain", "")):
        run_folder(
            tmp_path / folder,
            *(system(f"{name}{variant}", "1" * 8, model="tiny-135m") for name in ("rewoo", "react")),
        )
    runs = gather(tmp_path / "variants", tmp_path / "plain")
    assert [group.runs() for group in runs] == [("variants", "plain")]
    (finding,) = check([BY_ID["hotpotqa-tokens-react-rewoo"]], runs)
    assert [figure.runs for figure in finding.also] == [("plain",)]


def test_what_a_small_model_ran_is_not_tested_at_this_scale_unless_it_is_chosen() -> None:
    claims, groups = [BY_ID["gap-widens"]], gather(MODELS / "chain-smollm2-135m")
    (finding,) = check(claims, groups)
    assert (finding.verdict, finding.interval) == ("not tested at this scale", None)
    assert [figure.verdict for figure in finding.also] == ["not tested at this scale"]
    (chosen,) = check(claims, groups, model="135m")
    assert chosen.verdict == "contradicted"


def test_direct_prompting_with_exemplars_is_not_the_papers(tmp_path: Path) -> None:
    systems = [system(matches="1" * 8), system("direct", "1" * 8)]
    for folder, exemplars, verdict in (("6", {"answer": 6}, "no data"), ("0", {}, "undecided")):
        run = run_folder(tmp_path / folder, *systems, exemplars=exemplars)
        (finding,) = check([BY_ID["hotpotqa-em-rewoo-direct"]], gather(run))
        assert finding.verdict == verdict


def test_a_claim_about_prompts_with_exemplars_takes_the_option_that_has_them(tmp_path: Path) -> None:
    names = ("react", "direct?max_exemplars=6")
    run = run_folder(tmp_path / "6", *(system(name, "1" * 8) for name in names), exemplars={"answer": 6})
    claim = next(each for each in read_claims() if each.on.exemplars == {"react": 6, "direct": 6})
    (finding,) = check([claim], gather(run))
    assert finding.verdict != "no data"


@pytest.mark.parametrize("data", ["hotpotqa", "hotpotqa?objectives=3"])
def test_tasks_of_several_questions_decide_no_claim_about_single_ones_nor_these_about_those(
    data: str, tmp_path: Path
) -> None:
    names = ("rewoo", "react", "rewoo-lazy", "react-json")
    run = run_folder(tmp_path / "run", *(system(name, "1" * 8) for name in names), data=data)
    decided = {each.claim.id: each.claim.on.joined for each in check(list(BY_ID.values()), gather(run)) if each.decided}
    assert set(decided.values()) == {"objectives" in data}
    assert {"otani-tokens", "otani-joined"} & set(decided) == {"otani-joined" if "?" in data else "otani-tokens"}


def pair(folder: Path, tokens: int, react_stops: str = "answered", **facts: Any) -> Path:
    """Twenty questions: of ReAct ten take so many tokens, ten ten times as many and end as `react_stops`."""
    react = system("react", "1" * 20, tokens)
    for row in react[10:]:
        row["stop_reason"] = react_stops
        row["total_tokens"] *= 10
    return run_folder(folder, system(matches="1" * 20, tokens=10_000), react, **facts)


def test_loops_that_give_a_ratio_of_tokens_another_verdict_leave_it_undecided(tmp_path: Path) -> None:
    verdicts = []
    for stops in ("answered", "step_limit"):
        (finding,) = found(one_claim("above = 2, below = 3"), tmp_path, pair(tmp_path / stops, 25_000, stops))
        verdicts.append(finding.verdict)
    assert verdicts == ["contradicted", "undecided"]
    assert "where both answered (n = 10): loops and limits decide" in finding.reason
    assert finding.reason in render_claims([finding], "markdown").replace("\\", "")


def test_a_claimed_ratio_is_undecided_where_the_architectures_are_not_as_in_their_papers(tmp_path: Path) -> None:
    claim, runs = BY_ID["hotpotqa-tokens-react-rewoo"], {}
    for name, exemplars in (("now", {"planner": 6}), ("older", {"planner": 6, "solver": 1})):
        (runs[name],) = check([claim], gather(pair(tmp_path / name, 1_000, exemplars=exemplars)))
    assert {name: finding.verdict for name, finding in runs.items()} == {"now": "contradicted", "older": "undecided"}
    assert "ReWOO's solver has an exemplar" in runs["older"].reason
