"""What the reading commands say of an imported run: its dollars, what nobody scored, and what to do next."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result
from langfuse_traces import langfuse_trace, observation

from rewoo_bench.analysis.prices import pricing_of
from rewoo_bench.cli.main import group
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.gate.check import check_run, open_baseline
from rewoo_bench.gate.verdict import verdict_text
from rewoo_bench.imports.write import ImportChoices, import_run
from rewoo_bench.report.reading import compare
from rewoo_bench.report.write import read_page
from rewoo_bench.runs.folder import load, manifests

MODEL = "gpt-4o"


def conversation(task: str, said: str = "Done.", **more: Any) -> dict[str, Any]:
    call = {"id": "a", "type": "function", "function": {"name": "find", "arguments": json.dumps({"id": task})}}
    messages = [
        {"role": "system", "content": "Book flights. " * 400},
        {"role": "user", "content": f"I am {task}."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": f"card of {task}"},
        {"role": "assistant", "content": said},
    ]
    return {"task_id": task, "messages": messages, **more}


def imported(folder: Path, records: list[Any], **choices: Any) -> Path:
    folder.mkdir()
    file = folder / "traces.json"
    file.write_text(json.dumps(records))
    made = ImportChoices(**{"agent": "bot", "dataset": "shop", **choices})
    return anyio.run(partial(import_run, [file], folder / "run", made)).folder


def solved(count: int) -> list[dict[str, Any]]:
    """In the form of tau-bench, which says what was solved."""
    return [
        {"task_id": number, "trial": 0, "reward": float(number % 2), "traj": conversation(f"user_{number}")["messages"]}
        for number in range(count)
    ]


def unscored(count: int, said: str = "Done.") -> list[dict[str, Any]]:
    return [conversation(f"user_{number}", said) for number in range(count)]


def invoke(*words: str) -> Result:
    return CliRunner().invoke(group, words, standalone_mode=False)


def test_a_gate_counts_dollars_at_the_listed_prices_of_the_model_and_names_them(tmp_path: Path) -> None:
    run = imported(tmp_path / "a", solved(6), model=MODEL)
    budgets = tmp_path / "budgets.toml"
    limits = "cost_usd = { mean = 1.0 }\nusd_per_solved = { at_most = 9.0 }"
    budgets.write_text(f'[[budget]]\narchitecture = "bot"\ndataset = "shop"\nmodel = "{MODEL}"\n{limits}\n')
    verdict = check_run(run, budgets=budgets)
    assert verdict.code == 0
    usd = compare(run).systems[0].summary.cost_usd
    assert usd is not None
    assert {check.name: check.measured for check in verdict.checks} == {
        "cost_usd mean": pytest.approx(usd),
        "usd_per_solved": pytest.approx(2 * usd),
    }
    assert "gpt-4o's prices of" in verdict_text(verdict)

    unlisted = imported(tmp_path / "b", solved(3), model="nobody/x")
    budgets.write_text(budgets.read_text().replace(MODEL, "nobody/x"))
    assert {check.kind for check in check_run(unlisted, budgets=budgets).failures} == {"cost unknown"}


def test_a_comparison_and_a_report_have_the_dollars_of_the_models_sheet(tmp_path: Path) -> None:
    run = imported(tmp_path / "a", solved(6), model=MODEL)
    found = compare(run)
    assert found.systems[0].summary.usd_per_solved.estimate == pytest.approx(2 * found.systems[0].summary.cost_usd)  # type: ignore[operator]  # it is known
    assert "prices of 2026-11-24 under OpenAI's rule\n" in str(found)
    page, table = read_page([run], [run])
    cells = dict(zip(page["table"]["head"], page["table"]["rows"][0], strict=True))
    assert cells["$ / 1000"].startswith(f"{1000 * found.systems[0].summary.cost_usd:,.3f} [")  # type: ignore[operator]
    assert any("gpt-4o's prices of" in line for line in page["threats"])
    assert None not in table.columns["systems"][0]["cost"]


def test_each_run_has_the_prices_of_its_own_model_where_all_are_listed(tmp_path: Path) -> None:
    models = {"a": "gpt-4o-mini", "b": "openai/gpt-4o-mini", "c": "gpt-4o", "d": "nobody/x"}
    runs = {name: imported(tmp_path / name, solved(3), model=model) for name, model in models.items()}

    def priced(*names: str) -> tuple[str, str, list[float]]:
        chosen = [runs[name] for name in names]
        pricing = pricing_of(chosen, load(*chosen), manifests(*chosen))
        assert pricing.cost_usd is not None
        return pricing.under, pricing.note, pricing.cost_usd.tolist()

    under, note, alike = priced("a", "b")
    assert (under.count("gpt-4o-mini's prices"), note) == (1, "")
    assert alike == priced("a")[2] * 2
    under, note, both = priced("a", "c")
    assert "gpt-4o-mini's prices" in under
    assert "gpt-4o's prices" in under
    assert note == "each model is at its own prices"
    assert both == [*priced("a")[2], *priced("c")[2]]
    assert "an example, since no price of nobody/x is known: " in priced("a", "d")[1]


def test_each_call_has_the_price_of_its_own_model(tmp_path: Path) -> None:
    """A router's trace: the first call of a trajectory is a small model's."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    record = conversation("user_1")
    for message, model in zip(record["messages"][2::2], ("gpt-4o-mini", "gpt-4o"), strict=True):
        message |= {"model": model, "usage": usage}
    run = imported(tmp_path / "routed", [record])
    pricing = pricing_of([run], load(run), manifests(run))
    prices = [named_tariff(f"openai:{model}") for model in ("gpt-4o-mini", "gpt-4o")]
    assert pricing.cost_usd == pytest.approx(sum(1000 * each.input + 100 * each.output for each in prices))


def test_a_baseline_of_what_nobody_scored_has_costs_alone(tmp_path: Path) -> None:
    run = imported(tmp_path / "a", unscored(30), model=MODEL)
    file = tmp_path / "baseline.json"
    made = invoke("gate", str(run), "--baseline", str(file), "--update")
    assert "of costs alone, since no answer of bot was scored" in made.output
    assert {line.exact_match for line in open_baseline(file).questions["bot"]} == {None}
    verdict = check_run(run, baseline=file)
    assert verdict.code == 0
    assert "exact_match" not in {check.name for check in verdict.checks}
    assert "accuracy of bot isn't compared: no answer was scored" in verdict_text(verdict)
    longer = imported(tmp_path / "b", unscored(30, "Done, and thank you. " * 200), model=MODEL)
    assert {check.metric for check in check_run(longer, baseline=file).failures} == {"total_tokens"}


def test_what_lacks_prompts_has_a_price_without_a_cache_alone(tmp_path: Path) -> None:
    usage = {"input": 2_000, "output": 20}
    answered = observation("GENERATION", None, output="Done.", model=MODEL, usageDetails=usage)
    run = imported(tmp_path / "a", [langfuse_trace("a", [answered])])
    rows, read = load(run), manifests(run)
    assert "they weren't recorded" in pricing_of([run], rows, read).note
    assert pricing_of([run], rows, read, ["none"]).cost_usd is not None
    with pytest.raises(DataError, match="they weren't recorded"):
        pricing_of([run], rows, read, ["openai"])
