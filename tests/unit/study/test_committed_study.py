"""What results/study has is what its runs give, and the oracle's runs give the same on this machine."""

from __future__ import annotations

import os
import re
from functools import partial
from itertools import product
from pathlib import Path

import anyio
import pandas as pd
import pytest

from rewoo_bench.imports.write import ImportChoices, import_run
from rewoo_bench.study.declaration import read_study
from rewoo_bench.study.outcomes import StudyResults, read_results
from rewoo_bench.study.publish import figures_table, outcomes_table, page_of
from rewoo_bench.study.rounds import SessionChoices, run_study
from rewoo_bench.text.escaping import csv_text

FOLDER = Path(__file__).parents[3] / "results" / "study"
TRACES = Path(os.environ.get("REWOO_BENCH_DATA", "nowhere"), "traces", "tau_bench_gpt4o_airline_100.json")


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    """The study's results from the published runs, and from the recorded loops, which aren't published."""
    if not TRACES.is_file():
        pytest.skip(f"{TRACES.name} isn't here: set REWOO_BENCH_DATA")
    imported = tmp_path_factory.mktemp("traces") / "tau-bench"
    anyio.run(partial(import_run, [TRACES], imported, ImportChoices(model="gpt-4o")))
    study = read_study(FOLDER / "study.toml", [f"traces.tau-bench={imported}"])
    return read_results(study, FOLDER / "runs")


def test_the_committed_page_and_tables_are_what_the_committed_runs_give(committed: StudyResults) -> None:
    assert page_of(committed, FOLDER / "runs") == (FOLDER / "README.md").read_text(encoding="utf-8")
    assert csv_text(figures_table(committed)) == (FOLDER / "figures.csv").read_text(encoding="utf-8")
    assert csv_text(outcomes_table(committed)) == (FOLDER / "outcomes.csv").read_text(encoding="utf-8")


def test_the_main_runs_were_begun_as_declared(committed: StudyResults) -> None:
    assert {each.exploratory for each in committed.outcomes} == {None}


def test_the_oracles_runs_give_the_same_figures_here(tmp_path: Path) -> None:
    study = read_study(FOLDER / "study.toml")
    chosen = [each for each in study.cells if each.options.model == "oracle" and each.conditions.get("hops") == 2]
    end = anyio.run(partial(run_study, study, chosen, tmp_path, SessionChoices(say=lambda line: None)))
    assert not end.unfinished
    published = pd.read_csv(FOLDER / "figures.csv").set_index("figure")
    found = figures_table(read_results(study, tmp_path)).set_index("figure")
    assert len(found) > 500
    pd.testing.assert_frame_equal(found, published.loc[found.index])


def test_the_page_is_short_and_its_links_lead_somewhere() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert len(re.sub(r"^\|.*$", "", text, flags=re.MULTILINE).split()) < 1000  # and as many in tables
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (FOLDER / link).exists(), link


def test_results_are_small() -> None:
    """6,000 words without the study's templates, whose text is in what is made of them; 8 MB of runs."""
    pages = [path for path in FOLDER.parent.rglob("*.md") if path.name not in ("page.md", "first-screen.md")]
    assert sum(len(path.read_text("utf-8").replace("|", " ").split()) for path in pages) <= 6000
    runs = (path for path in FOLDER.parent.rglob("*") if path.suffix in (".parquet", ".json", ".html", ".jsonl"))
    assert sum(path.stat().st_size for path in runs if "local" not in path.parts) <= 8_000_000


def test_what_the_page_says_without_a_figure_holds(committed: StudyResults) -> None:
    """Its template has no place for these: they are true of this study's runs, or the sentence must change."""
    figures = {name: each.estimate for name, each in committed.figures.items()}
    before: dict[int, list[float]] = {512: [], 1024: []}
    for rule, hops in product(("openai", "anthropic-5m"), (1, 2, 4, 6, 8)):
        one, *more = (f"map-chain-oracle-hops={hops}-objectives={k}/react / rewoo/{rule}" for k in (1, 3, 5))
        assert figures[one] < 1 < min(figures[name] for name in more)
        before[512].append(figures[f"{one}, 512 tokens before"])
        before[1024] += [figures[f"{one}, {size:,} tokens before"] for size in (1024, 2048, 4096)]
    ends = [f"({min(each):.2f} to {max(each):.2f})" for each in before.values()]
    assert f"favour ReAct {ends[0]}, 1,024 and more ReWOO {ends[1]}" in (FOLDER / "page.md").read_text("utf-8")
    for data in ("hotpotqa", "triviaqa"):
        cell = f"main-{data}-qwen"
        assert figures[f"{cell}/direct/total_tokens"] < 0.1 * figures[f"{cell}/rewoo/total_tokens"]
        calls = pd.read_parquet(FOLDER / "runs" / cell / "calls.parquet")
        prompts = calls[calls["kind"] == "model"].groupby("architecture", observed=True)["input_tokens"]
        is_long = prompts.apply(lambda tokens: (tokens >= 1024).mean())
        assert is_long["rewoo"] == 0
        assert is_long["react"] == 1 if data == "hotpotqa" else is_long["react"] < 0.2
