"""What results/study has is what its runs give, and the oracle's runs give the same on this machine."""

from __future__ import annotations

import os
import re
from functools import partial
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
    assert len(re.sub(r"^\|.*$", "", text, flags=re.MULTILINE).split()) < 900  # and some 500 in tables
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (FOLDER / link).exists(), link
