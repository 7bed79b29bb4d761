"""The estimate of a dry run: calls as in the exemplars, prompts of their real length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from parts import architecture

from rewoo_bench.analysis.prices import expected_dollars, pricing_of
from rewoo_bench.cli.main import main
from rewoo_bench.errors import RunStopped
from rewoo_bench.evaluation.dry_run import MOST_QUESTIONS, RunEstimate, estimate_run
from rewoo_bench.evaluation.run import dry_run
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.runs.folder import load, manifests
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.types import Example, Model, Tool, Trajectory


def estimated(*names: str, **options: object) -> dict[str, RunEstimate]:
    asked = RunOptions(architectures=names, **options)  # type: ignore[arg-type]
    return {estimate.architecture: estimate for estimate in anyio.run(dry_run, asked)}


def test_calls_are_those_that_the_exemplars_would_take() -> None:
    found = estimated("direct", "cot", "react", "rewoo", questions=30)
    assert (found["direct"].llm_calls, found["cot"].llm_calls) == (30, 30)
    assert 3 * 30 <= found["react"].llm_calls <= 4 * 30  # three turns, or four
    assert 2 * 30 <= found["rewoo"].llm_calls <= 4 * 30  # planner and solver, and up to two LLM steps


def test_questions_with_a_gold_chain_take_the_calls_of_the_chain() -> None:
    found = estimated("rewoo-json", "react-native", dataset="chain?hops=4", questions=3)
    assert (found["react-native"].llm_calls, found["rewoo-json"].llm_calls) == (3 * 5, 3 * 5)


def test_more_questions_and_trials_are_reckoned_from_a_few() -> None:
    once, thrice = (estimated("direct", trials=trials, questions=100)["direct"] for trials in (1, 3))
    assert MOST_QUESTIONS < once.questions == 100
    assert (thrice.questions, thrice.llm_calls) == (300, 300)
    assert thrice.input_tokens == pytest.approx(3 * once.input_tokens, abs=3)


def test_each_role_is_priced_by_its_own_model() -> None:
    cheap = estimated("rewoo", questions=5, model="openai/gpt-4o-mini")["rewoo"]
    dear = estimated("rewoo", questions=5, model="openai/gpt-4o-mini", planner_model="openai/gpt-4o")["rewoo"]
    assert cheap.cost_usd is not None
    assert dear.cost_usd is not None
    assert 2 * cheap.cost_usd < dear.cost_usd
    assert estimated("rewoo", questions=5, model="openai/my-own")["rewoo"].cost_usd is None
    assert estimated("rewoo", questions=5)["rewoo"].cost_usd is None


@pytest.mark.parametrize("dataset", ["sample", "sample?objectives=2"])
def test_a_judge_is_asked_once_for_each_answer_at_its_own_price(dataset: str) -> None:
    asked = {"dataset": dataset, "questions": 5, "trials": 2, "model": "openai/gpt-4o-mini"}
    names = ("direct", "rewoo")
    alone, judged = (estimated(*names, **asked, **more) for more in ({}, {"judge_model": "openai/gpt-4o"}))
    for name in names:
        assert judged[name].llm_calls == alone[name].llm_calls + 10
        without, with_judge = (each[name].cost_usd or 0.0 for each in (alone, judged))
        assert 0 < 1.5 * without < with_judge


def test_nothing_is_asked_fetched_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(SystemExit) as ended:
        main(["run", "--arch", "rewoo,react-native", "-n", "3", "--model", "openai/gpt-4o-mini", "--dry-run", "--json"])
    assert ended.value.code == 0
    told = json.loads(capfd.readouterr().out)["estimate"]
    assert [estimate["architecture"] for estimate in told] == ["rewoo", "react-native"]
    assert list(tmp_path.iterdir()) == []


def test_the_table_has_the_price_of_the_table_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "--arch", "direct", "--model", "oracle", "-n", "3"]
    for more in (["--dry-run"], ["--out", "here", "--no-progress"]):
        with pytest.raises(SystemExit):
            main([*command, *more])
        assert "\nDollars are at gpt-5-mini's prices " in capfd.readouterr().out
    rows = load("here")
    tokens = float(rows["input_tokens"].sum()), float(rows["output_tokens"].sum())
    usd, names = expected_dollars({"": tokens}, {"": "oracle"})
    pricing = pricing_of(["here"], rows, manifests("here"), ["none"])
    assert names == [pricing.name]
    assert pricing.cost_usd is not None
    assert usd == pytest.approx(float(pricing.cost_usd.sum()))


@pytest.mark.anyio
async def test_an_architecture_that_crashes_has_no_estimate() -> None:
    class Broken:
        async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
            raise KeyError("plan")

    with pytest.raises(RunStopped, match="the dry run of 'own' failed: KeyError in Broken: 'plan'"):
        await estimate_run(
            [Example("q", "?", ("a",))],
            [architecture("own", Broken())],
            Toolbox(),
            "hotpotqa",
            trials=1,
            models={"": "local/x"},
        )


def test_for_a_task_of_several_questions_an_agent_takes_the_turns_of_as_many_exemplars(tmp_path: Path) -> None:
    rows = [{"question": f"Which {n}?", "answers": [str(n)], "context": f"Page {n}"} for n in range(12)]
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    corpus = tmp_path / "pages.jsonl"
    corpus.write_text(json.dumps({"title": "Oslo", "text": "Oslo is a city."}))
    one, three = (
        estimated("react", dataset=f"{path}{behind}", corpus=corpus, questions=4, max_steps=30)["react"]
        for behind in ("", "?objectives=3")
    )
    assert one.questions == three.questions == 4
    assert three.llm_calls > 2 * one.llm_calls - 4
