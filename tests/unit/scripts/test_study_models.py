"""The study's tables are what the committed numbers say, and a series of runs has a table of its own."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from rewoo_bench import Message, ScriptedModel, evaluate, load
from rewoo_bench.analysis.prices import priced_rows
from rewoo_bench.api import bench
from rewoo_bench.runs.publish import publish

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results" / "models"
ENDED = [
    *("hotpotqa-qwen-1.5b-100", "triviaqa-qwen-1.5b-100", "sample-qwen-1.5b-eight", "sample-smollm2-135m"),
    *("hotpotqa-smollm2-135m-300", "triviaqa-smollm2-135m-300", "hotpotqa-gemma-3-270m", "triviaqa-gemma-3-270m"),
]
FAILING = [f"failure-smollm2-135m/{rate}" for rate in ("0", "0.25", "0.5", "1")]


@pytest.fixture(scope="module")
def main() -> Callable[[list[str]], None]:
    entry: Callable[[list[str]], None] = runpy.run_path(str(ROOT / "scripts" / "study_models.py"))["main"]
    return entry


def test_the_committed_tables_and_verdicts_are_what_the_numbers_make(
    main: Callable[[list[str]], None], tmp_path: Path
) -> None:
    copy = tmp_path / "models"
    shutil.copytree(RESULTS, copy)
    shutil.copytree(RESULTS.with_name("oracle"), tmp_path / "oracle")
    for name in ("tables.md", "claims.md"):
        (copy / name).unlink()
    main(["--results", str(copy), "--no-figures"])
    for name in ("tables.md", "claims.md"):
        assert (copy / name).read_text(encoding="utf-8") == (RESULTS / name).read_text(encoding="utf-8")


def test_a_series_has_a_row_for_each_run_and_architecture(main: Callable[[list[str]], None], tmp_path: Path) -> None:
    series = tmp_path / "models" / "series"
    for name in ("a", "b"):
        shutil.copytree(RESULTS / "hotpotqa-smollm2-135m", series / name)
    main(["--results", str(tmp_path / "models"), "--no-figures"])
    table = (tmp_path / "models" / "tables.md").read_text(encoding="utf-8").splitlines()
    assert table[0] == "## series"
    rows = [line.split(" | ") for line in table if line.startswith(("| a |", "| b |"))]
    committed = pd.read_parquet(RESULTS / "hotpotqa-smollm2-135m" / "questions.parquet")
    assert len(rows) == 2 * committed["architecture"].nunique()
    react = next(row for row in rows if row[1] == "react")
    assert react[2] == "50"
    means = committed.groupby("architecture")["total_tokens"].mean()
    assert react[7] == f"{means['react']:,.0f}"
    assert react[8].startswith(f"{means['react'] / means['rewoo']:.2f} [")


def test_a_run_with_other_tools_is_compared_and_drawn(main: Callable[[list[str]], None], tmp_path: Path) -> None:
    names = ["rewoo", "rewoo?tools=Search", "rewoo?tools=Search+LLM+Lookup"]
    publish(bench(names, out=tmp_path / "run", questions=6).folder, tmp_path / "models" / "tools")
    main(["--results", str(tmp_path / "models")])
    table = (tmp_path / "models" / "tables.md").read_text(encoding="utf-8")
    assert all(f"| {name} | 6 |" in table for name in names)
    assert [file.name for file in (tmp_path / "models").glob("*.png")] == ["tools-tools.png"]
    caption = (tmp_path / "models" / "captions.md").read_text(encoding="utf-8")
    assert "Accuracy and cost with more tools" in caption


def test_an_ablation_has_a_row_for_each_pair(main: Callable[[list[str]], None], tmp_path: Path) -> None:
    pairs = [f"{name}?max_exemplars={n}" for n in (0, 2) for name in ("rewoo", "react")]
    run = bench(pairs, out=tmp_path / "run", questions=12)
    publish(run.folder, tmp_path / "models" / "ablation")
    main(["--results", str(tmp_path / "models"), "--no-figures"])
    table = (tmp_path / "models" / "tables.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in table if line.startswith("| rewoo?")]
    assert all(f"dollars x ReWOO's, {rule}" in table[2] for rule in ("no cache", "OpenAI's rule", "Anthropic's rule"))
    assert [row[:3] for row in rows] == [[*pairs[:2], "12"], [*pairs[2:], "12"]]
    tokens = run.rows.groupby("architecture", observed=True)["total_tokens"].mean()
    assert [row[6:8] for row in rows] == [[f"{tokens[name]:,.0f}" for name in pairs[i : i + 2]] for i in (0, 2)]
    for prices, names in zip([[row[8], *row[11:]] for row in rows], (pairs[:2], pairs[2:]), strict=True):
        tokens_and_dollars = [
            run.rows["total_tokens"].to_numpy(),
            *(each.usd for each in priced_rows([run.folder], run.rows, [["none"], ["openai"], ["anthropic-5m"]])),
        ]
        for cell, amounts in zip(prices, tokens_and_dollars, strict=True):
            rewoo, react = (amounts[run.rows["architecture"] == name].mean() for name in names)
            assert float(cell.split()[0]) == pytest.approx(react / rewoo, abs=0.006)


@pytest.mark.anyio
async def test_a_run_with_guards_against_loops_has_a_row_for_each(
    main: Callable[[list[str]], None], tmp_path: Path
) -> None:
    """Of a model that repeats its turn, and of which a nudge makes no more than an answer."""

    def again(messages: Sequence[Message], role: str) -> str:
        return "Action: Finish[Kyiv]" if "repeat themselves" in messages[-1].content else "Action: Search[Kyiv]"

    names = ["react", "react?repeat_guard=nudge", "react?repeat_guard=stop"]
    run = tmp_path / "run"
    await evaluate("sample", names, out=run, questions=4, model=ScriptedModel(again))
    publish(run, tmp_path / "models" / "guard-qwen-1.5b")
    main(["--results", str(tmp_path / "models"), "--no-figures"])
    _, table = (tmp_path / "models" / "tables.md").read_text(encoding="utf-8").split("## guard-qwen-1.5b\n\n")
    heads, _, *rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    none, nudge, stop = (dict(zip(heads, row, strict=False)) for row in rows)
    assert [row["`repeat_guard`"] for row in (none, nudge, stop)] == ["none", "nudge", "stop"]
    assert [row["questions in loops"] for row in (none, nudge, stop)] == ["100.0%", "0.0%", "100.0%"]
    tokens = load(run).groupby("architecture", observed=True)["total_tokens"].mean()
    assert stop["x tokens of none"].startswith(f"{tokens[names[2]] / tokens['react']:.2f} [")
    assert "x tokens of none" not in none


def test_tables_have_the_ratio_where_both_answered_and_loops(main: Callable[[list[str]], None], tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "hotpotqa-qwen-1.5b-100", tmp_path / "models" / "hotpotqa-qwen-1.5b-100")
    main(["--results", str(tmp_path / "models"), "--no-figures"])
    heads, _, row, *_ = (tmp_path / "models" / "tables.md").read_text(encoding="utf-8").splitlines()[2:]
    cells = dict(zip(*(line.strip("| ").split(" | ") for line in (heads, row)), strict=True))
    assert cells["where both answered (n)"] == "2.34 [2.18, 2.53] (85)"
    assert cells["the other in loops (of tokens)"] == "15.0% (19.4%)"


def test_the_committed_findings_are_what_the_runs_say_how_they_were_made_and_name_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "study_findings.py"))
    found: str = script["findings"]()
    monkeypatch.setitem(script["main"].__globals__, "findings", lambda: found)  # it takes seconds
    assert script["main"](["--check"]) == 0
    rows = load(RESULTS / "hotpotqa-qwen-1.5b-100").query("architecture == 'react'")
    at_limit = rows[rows["stop_reason"] == "step_limit"]
    share = at_limit["total_tokens"].sum() / rows["total_tokens"].sum()
    assert f"{len(at_limit)} of {len(at_limit)} do so; the {len(at_limit)} hold {share:.0%} of ReAct's tokens" in found
    assert "exemplars of ReWOO's solver is 1," in found
    for folders, right, text in (
        (ENDED, 3, "of 174 have a right one in these runs"),
        (FAILING, 5, "of 47 in the runs with failing tools"),
    ):
        ends = pd.concat([pd.read_parquet(RESULTS / folder / "questions.parquet") for folder in folders])
        ends = ends[(ends["architecture"] == "react") & (ends["stop_reason"] == "step_limit")]
        assert ends["exact_match"].sum() == right
        assert f"{right} {text}" in found
        assert f"of {len(ends)} " in text
    made = pd.read_parquet(RESULTS / "chain-smollm2-135m" / "questions.parquet").query("architecture == 'react'")
    assert f"makes {made['tool_calls'].sum() / len(made)} in ReAct" in found  # a third decimal, so nothing is rounded
    assert "0.000" not in found
    assert "growing trace" not in found
