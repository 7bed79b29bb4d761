"""Which runs are compared, what is said about failures and costs, and the command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from advice_rows import folder_of, mixed, right
from claim_runs import run_folder
from comparison_rows import system

from rewoo_bench import advise, bench, load
from rewoo_bench.analysis.advice.advise import advice_sentences, advice_table
from rewoo_bench.cli.main import main
from rewoo_bench.errors import UsageError
from rewoo_bench.runs.manifest import read_manifest, write_manifest
from rewoo_bench.testing.server import ModelServer

MODELS = Path(__file__).parents[2] / "golden" / "models"
PUBLISHED = sorted(path.parent for path in MODELS.glob("*/run.json"))
assert PUBLISHED


def command(*arguments: str | Path) -> int | str | None:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code


def two_runs(folder: Path, **changes: Any) -> tuple[Path, Path]:
    """ReWOO in one run, ReAct in another one with these changes."""
    return folder_of(folder / "a", {"rewoo": right(80, 100)}), folder_of(
        folder / "b", {"react": right(50, 100)}, **changes
    )


def test_architectures_of_two_runs_of_the_same_conditions_are_compared(tmp_path: Path) -> None:
    advice = advise(*two_runs(tmp_path))
    (part,) = advice.parts
    assert part.decision.recommended == "rewoo"
    assert [piece.name for piece in part.runs.pieces] == ["a", "b"]
    assert advice.not_compared == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"temperature": 1.0}, "--temperature: 0.0 (a), 1.0 (b)"),
        ({"tool_failure_rate": 0.5}, "--tool-failure-rate: None (a), 0.5 (b)"),
        ({"mcp": ["maps"]}, "--mcp: None (a), ['maps'] (b)"),
        ({"max_steps": 3}, "--max-steps: None (a), 3 (b)"),
        ({"judge_model": "openai/big"}, "the judge: none (a), openai/big (b)"),
        ({"data": "triviaqa"}, "the dataset: hotpotqa (a), triviaqa (b)"),
    ],
)
def test_runs_of_other_conditions_are_refused_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    runs = two_runs(tmp_path, **changes)
    with pytest.raises(UsageError) as error:
        advise(*runs)
    assert str(error.value).startswith("nothing to compare: ")
    if "data" not in changes:  # two data sets are no comparison that anybody expects
        assert said in str(error.value)


def test_another_model_and_other_settings_of_it_are_refused(tmp_path: Path) -> None:
    rewoo = folder_of(tmp_path / "a", {"rewoo": "1100"})
    other = run_folder(tmp_path / "b", system("react", "1100", model="openai/big"))
    with pytest.raises(UsageError, match=r"the model: openai/small_1 \(a\), openai/big \(b\)"):
        advise(rewoo, other)
    same = folder_of(tmp_path / "c", {"react": "1100"})
    manifest = read_manifest(same)
    models = {"default": {**manifest.models["default"], "constrain": "grammar"}}
    write_manifest(same, manifest.model_copy(update={"models": models}))
    with pytest.raises(UsageError, match=r"the setting models\.default\.constrain"):
        advise(rewoo, same)


def test_runs_of_other_questions_are_compared_only_on_request(tmp_path: Path) -> None:
    rewoo = folder_of(tmp_path / "a", {"rewoo": right(80, 100)})
    react = folder_of(tmp_path / "b", {"react": right(30, 60)})
    with pytest.raises(UsageError, match=r"a has 100 rows of each architecture, b 60, and 60 are of the same question"):
        advise(rewoo, react)
    (part,) = advise(rewoo, react, intersect=True).parts
    assert part.questions == 60
    assert "not all answered the same questions" in "\n".join(advice_sentences(part))


def test_the_same_architecture_in_two_runs_is_not_compared_with_itself(tmp_path: Path) -> None:
    systems = {"rewoo": right(80, 100), "react": right(50, 100)}
    runs = [folder_of(tmp_path / name, systems) for name in ("a", "b")]
    advice = advise(*runs)
    assert [part.decision.recommended for part in advice.parts] == ["rewoo", "rewoo"]
    (reason,) = advice.not_compared
    assert "b isn't compared with a: both have the architecture 'rewoo'" in reason
    assert "Not compared: b isn't" in str(advice)
    assert len(advise(runs[0], runs[0]).parts) == 1


def test_one_architecture_alone_is_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to compare: a has one architecture, 'rewoo'"):
        advise(folder_of(tmp_path / "a", {"rewoo": "1100"}))


def test_failures_are_named_and_errors_are_left_out(tmp_path: Path) -> None:
    react = system("react", "11-0" * 25, 4000)
    ended = [{**row, **({"stop_reason": "step_limit", "exact_match": False} if i < 8 and i % 4 != 2 else {})}
             for i, row in enumerate(react)]  # fmt: skip
    (part,) = advise(run_folder(tmp_path / "a", system(matches="1100" * 25), ended)).parts
    shown = "\n".join(advice_sentences(part))
    assert "Ended otherwise than by an answer, and wrong: 6 of react (step limit), of 100 questions each." in shown
    assert "Left out, failed or unmetered: 25 of react, of 100 questions each; no comparison includes" in shown
    contrast = part.contrasts["rewoo", "react"]
    assert (contrast.rows, contrast.left_out) == (75, 25)


def test_an_architecture_that_failed_throughout_is_never_recommended(tmp_path: Path) -> None:
    systems = [system(matches="1" * 50 + "0" * 50), system("react", "-" * 100, 10)]
    (part,) = advise(run_folder(tmp_path / "a", *systems)).parts
    assert part.decision.recommended != "react"
    assert json.loads(advise(tmp_path / "a").as_json())["parts"][0]["architectures"][1]["accuracy"]["estimate"] is None


def test_where_a_price_is_unknown_tokens_are_compared_and_a_limit_of_cost_is_refused(tmp_path: Path) -> None:
    rewoo, react = mixed(600, 240, 20, 22)
    run = run_folder(
        tmp_path / "a", system("react", react, 4000, cost_usd=None), system("rewoo", rewoo, 1000, cost_usd=None)
    )
    (part,) = advise(run).parts
    assert part.decision.recommended == "rewoo"
    assert "Cost is in tokens: the price of openai/small_1 isn't known." in advice_sentences(part)
    with pytest.raises(UsageError, match=r"--max-cost 1: the dollars of 'react', 'rewoo' aren't known"):
        advise(run, max_cost=1)


def test_the_model_whose_price_is_unknown_is_named(tmp_path: Path) -> None:
    systems = [system(name, "1100", model="openai/gpt-4o", cost_usd=None) for name in ("rewoo", "react")]
    rows = load(run_folder(tmp_path / "a", *systems))
    for planner, said in (
        ("openai/my-planner", "the price of openai/my-planner isn't known"),
        ("openai/gpt-4o", "dollars weren't recorded"),
    ):
        (part,) = advise(rows.assign(planner_model=planner)).parts
        assert f"Cost is in tokens: {said}." in advice_sentences(part)


def test_dollars_are_said_to_be_at_the_runs_own_prices(tmp_path: Path) -> None:
    run = run_folder(
        tmp_path / "a", system("react", "1" * 50, cost_usd=0.001), system("rewoo", "1" * 50, cost_usd=0.002)
    )
    (part,) = advise(run).parts
    at = "Dollars are at prices that run.json doesn't name, cached input as the endpoint counted it."
    assert at in advice_sentences(part)
    prices = {"openai/small_1": {"input": 1.0}}
    write_manifest(run, read_manifest(run).model_copy(update={"prices": prices}))
    (part,) = advise(run).parts
    assert "Dollars are at openai/small_1's prices, cached input as the endpoint counted it" in "".join(
        advice_sentences(part)
    )


def test_an_oracle_recommends_nothing(tmp_path: Path) -> None:
    bench("rewoo,react", out=tmp_path / "run", questions=8, model="oracle")
    (part,) = advise(tmp_path / "run").parts
    assert part.decision.kind == "oracle"
    assert advice_sentences(part)[0].startswith("No recommendation: an oracle answered.")
    with pytest.raises(UsageError, match="nothing to compare"):
        advise(bench("rewoo", out=tmp_path / "one", questions=4, model="oracle"))


@pytest.mark.by_day(4)
@pytest.mark.parametrize("run", PUBLISHED, ids=lambda run: str(run.name))
def test_published_runs_have_short_advice_with_intervals(run: Path) -> None:
    advice = advise(run)
    for part in advice.parts:
        lines = advice_sentences(part)
        assert 5 <= len(lines) <= 13  # one of them may be a command
        assert "[" in lines[1]
        assert "n = " in lines[1]
    assert str(advise(run)) == str(advice)


def test_the_command_prints_sentences_or_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewoo, react = two_runs(tmp_path)
    assert command("advise", rewoo, react, "--margin", "3%", "--max-latency", "60") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("hotpotqa, openai/small_1: rewoo and react on 100 questions\n\nUse rewoo: ")
    assert "architecture    n           EM [95% CI]" in printed
    assert command("advise", rewoo, react, "--json") == 0
    (part,) = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))["parts"]
    assert (part["recommended"], part["terms"]["margin"]) == ("rewoo", 0.05)
    assert part["pairs"][0]["accuracy"]["n"] == 100


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "'nowhere' is no run: no such file or folder"),
        (["{a}"], "nothing to compare: a has one architecture, 'rewoo'"),
        (["{a}", "{b}", "--margin", "5"], "'5' is neither a percentage (2%) nor a fraction below 1 (0.02)"),
        (["{a}", "{b}", "--margin", "0%"], "--margin 0.0: expected a share between 0 and 1"),
        (["{a}", "{b}", "--max-cost", "-1"], "--max-cost -1.0: expected dollars per question, a number above 0"),
        (["{a}", "{b}", "--max-latency", "inf"], "--max-latency inf: expected seconds, a number above 0"),
        (["{a}", "{b}", "--max-latency", "soon"], "'soon' is not a valid float"),
    ],
)
def test_what_is_wrong_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    a, b = two_runs(tmp_path)
    assert command("advise", *(each.format(a=a, b=b) for each in arguments)) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_the_command_that_is_told_can_be_run(tmp_path: Path) -> None:
    """Of a run of a model over HTTP, which answers as wrongly in either architecture."""
    with ModelServer(lambda request: "Answer: nowhere") as server:
        run = bench("direct,cot", out=tmp_path / "run", questions=8, model="openai/small", api_base=server.api_base)
        (part,) = advise(run).parts
        assert part.decision.kind == "undecided"
        assert part.more is not None
        assert part.more.command is not None
        words = shlex.split(part.more.command.replace("DATASET", "sample"))
        assert words[:4] == ["rewoo-bench", "run", "--from", str(tmp_path / "run" / "run.json")]
        assert words[-2:] == ["-n", str(part.more.questions)]
        assert command(*words[1:-1], "12", "--out", tmp_path / "again", "--no-progress") == 0
    rows = load(tmp_path / "again")
    assert sorted(rows["architecture"].unique()) == ["cot", "direct"]
    assert set(load(tmp_path / "run")["example_id"]) < set(rows["example_id"])


def test_a_frame_has_no_folder_and_no_conditions(tmp_path: Path) -> None:
    rewoo, react = mixed(40, 12, 6, 5)
    run = folder_of(tmp_path / "a", {"rewoo": rewoo, "react": react})
    (part,) = advise(load(run)).parts
    assert part.more is not None
    assert part.more.command is None
    shown = "\n".join(advice_sentences(part))
    assert "Run the same with that many questions." in shown
    assert "Note: a has no run.json, so the conditions of the runs aren't checked." in shown


@pytest.mark.parametrize("terms", [{}, {"max_cost": 1.0}, {"max_latency": 100.0}])
def test_an_architecture_without_a_measured_row_is_named_and_not_compared(
    tmp_path: Path, terms: dict[str, Any]
) -> None:
    systems = [system("rewoo", right(80, 100)), system("react", right(50, 100)), system("mine", right(99, 100))]
    for row in systems[2]:
        row["flags"] = ["unmetered"]
    (part,) = advise(run_folder(tmp_path / "run", *systems), **terms).parts
    assert part.decision.recommended == "rewoo"
    shown = "\n".join([*advice_sentences(part), *advice_table(part)])
    assert "mine has no row that counts, and isn't compared: every row failed, or was answered without" in shown
    assert "nan" not in shown


def test_one_architecture_with_measured_rows_is_no_comparison(tmp_path: Path) -> None:
    systems = [system("rewoo", right(80, 100)), system("mine", right(99, 100), flags=["unmetered"])]
    (part,) = advise(run_folder(tmp_path / "run", *systems)).parts
    assert (
        advice_sentences(part)[0]
        == "No recommendation: it takes two architectures with rows that count and model calls."
    )


def test_an_agent_that_made_no_call_is_to_be_mended_and_not_compared(tmp_path: Path) -> None:
    crash = system("crash", right(0, 100), llm_calls=0, total_tokens=0, cost_usd=0.0, stop_reason="agent_failed")
    systems = [system("rewoo", right(80, 100)), system("react", right(50, 100)), crash]
    (part,) = advise(run_folder(tmp_path / "run", *systems), max_cost=1.0).parts
    assert part.decision.recommended == "rewoo"
    assert "crash made no model call in any question, and isn't compared: mend it first" in str(advice_sentences(part))
    (alone,) = advise(run_folder(tmp_path / "alone", systems[0], crash)).parts
    assert advice_sentences(alone)[0].startswith("No recommendation: it takes two architectures with rows that count")
    assert "times" not in "\n".join(advice_sentences(alone))
