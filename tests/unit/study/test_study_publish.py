"""What is published of a study: its figures against pandas, its outcomes by their rules, its page by its places."""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from rewoo_bench.analysis.stats.paired import Interval, difference_of_proportions
from rewoo_bench.analysis.stats.tests import holm, p_of_margin
from rewoo_bench.analysis.verdict import two_digits
from rewoo_bench.errors import DataError, SpecError, UsageError
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.study.declaration import Cell, Outcome, Study, read_study
from rewoo_bench.study.outcomes import Decided, StudyResults, read_results
from rewoo_bench.study.publish import filled, page_of, publish_study
from rewoo_bench.study.rounds import SessionChoices, run_study
from rewoo_bench.study.tables import outcomes_table

DECLARED = """
[study]
title = "A study"
question = "Which is cheaper?"

[models]
oracle.model = "oracle"

[datasets]
sample.dataset = "sample"
chain.dataset = "chain?hops={hops}&objectives={objectives}"
pages.dataset = "chain?hops={hops}&words={words}"

[[cells]]
name = "main"
models = ["oracle"]
datasets = ["sample"]
architectures = ["rewoo", "react"]
n = 12

[[cells]]
name = "map"
models = ["oracle"]
datasets = ["chain"]
architectures = ["rewoo", "react"]
n = 3
conditions = { hops = [1, 2], objectives = [1] }

[[cells]]
name = "pages"
models = ["oracle"]
datasets = ["pages"]
architectures = ["rewoo?slot_tokens=900&map_tokens=9000", "react?observation_tokens=900"]
n = 2
conditions = { hops = [1, 2], words = [0, 300] }

[[cells]]
name = "short"
models = ["oracle"]
datasets = ["sample"]
architectures = ["rewoo?max_exemplars=0", "react?max_exemplars=0"]
n = 5
exploratory = true

[[cells]]
name = "twice"
models = ["oracle"]
datasets = ["sample"]
architectures = ["direct", "cot"]
n = 4
settings.trials = 2
exploratory = true
report = true

[[outcomes]]
name = "tokens"
cells = "main"
architectures = ["react", "rewoo"]
measure = "total_tokens"
statistic = "ratio"

[[outcomes]]
name = "dollars"
cells = "main"
architectures = ["react", "rewoo"]
measure = "cost_usd"
prices = "openai"
statistic = "ratio"

[[outcomes]]
name = "accuracy"
cells = "main"
architectures = ["rewoo", "react"]
measure = "exact_match"
statistic = "non-inferiority"
margin = 0.05
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(DECLARED)
    study = read_study(folder / "study.toml")
    end = anyio.run(partial(run_study, study, study.cells, folder / "runs"))
    assert not end.unfinished
    return study, folder / "runs"


@pytest.fixture(scope="module")
def results(made: tuple[Study, Path]) -> StudyResults:
    return read_results(*made)


@pytest.fixture(scope="module")
def published(made: tuple[Study, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the study; a test that might change it takes a copy."""
    folder = tmp_path_factory.mktemp("published") / "page"
    publish_study(*made, folder)
    return folder


def test_a_figure_of_few_questions_has_the_mark_of_a_rare_event(results: StudyResults) -> None:
    """That figures are those of the rows, test_recompute_study.py holds against an independent script."""
    figures = results.figures
    few = [figures[f"main-sample-oracle/{of}/total_tokens"] for of in ("rewoo", "react / rewoo")]
    assert [each.text[-1] for each in few] == ["?", "?"]  # of 12 questions a rare event may be missing
    assert not figures["main-sample-oracle/rewoo/exact_match"].text.endswith("?")  # Wilson's holds for few, too
    assert figures["twice-sample-oracle/direct/pass^2"].estimate == 1.0
    assert figures["twice-sample-oracle/direct/flips"].n == 4


def test_outcomes_of_a_family_are_adjusted_together(made: tuple[Study, Path], results: StudyResults) -> None:
    _, folder = made
    outcomes = results.outcomes
    assert [each.outcome.name for each in outcomes] == ["tokens", "dollars", "accuracy"]
    *ratios, accuracy = outcomes
    assert [each.p_holm for each in ratios] == holm([each.p for each in ratios])
    assert accuracy.verdict_shown == "exploratory: an oracle's accuracy means nothing"
    assert math.isnan(accuracy.p_holm)
    table = outcomes_table(results).set_index("outcome")
    assert table.loc["tokens", "verdict"] == "undecided"  # twelve questions are too few to rule out a rare event
    assert table.loc["accuracy", "margin"] == 0.05
    page = page_of(results, folder)
    assert "Asked: `oracle` (an oracle's accuracy means nothing)." in page
    assert re.search(r"^\| sample \| react \| 12 \| - \| [\d,]+ \[", page, flags=re.MULTILINE)


def decided(statistic: str, interval: Interval, p_holm: float) -> str:
    outcome = Outcome.model_validate(
        {"name": "x", "cells": "main", "architectures": ["react", "rewoo"], "measure": "total_tokens",
         "statistic": statistic, "margin": 0.05}
    )  # fmt: skip
    cell = Cell("main-d-m", "main", "m", "d", {}, 1, False, RunOptions(("react", "rewoo")))
    return Decided(outcome, cell, interval, 0.01, None, p_holm=p_holm).verdict


def test_a_verdict_needs_the_interval_the_adjusted_p_and_no_rare_event() -> None:
    above, below = Interval(2.0, 1.5, 2.5, 100), Interval(0.5, 0.4, 0.8, 100)
    assert decided("ratio", above, 0.01) == "react takes more"
    assert decided("ratio", below, 0.01) == "rewoo takes more"
    assert decided("ratio", above, 0.06) == "undecided"
    assert decided("ratio", replace(above, rare=True), 0.01) == "undecided"
    assert decided("difference", Interval(0.2, 0.1, 0.3, 100), 0.01) == "react is higher"
    assert decided("difference", Interval(-0.2, -0.3, -0.1, 100), 0.01) == "rewoo is higher"
    better, worse = Interval(0.01, -0.03, 0.05, 100), Interval(-0.2, -0.3, -0.1, 100)
    assert decided("non-inferiority", better, 0.01) == "react is at most 0.05 worse"
    assert decided("non-inferiority", better, 0.2) == "undecided"
    assert decided("non-inferiority", worse, 0.01) == "react is worse by more than 0.05"
    assert decided("ratio", Interval(math.nan, 0, math.inf, 0), math.nan) == "no data"
    assert decided("difference", Interval(-0.1, -0.2, 0.001, 100), 0.01) == "undecided"  # as trials can have it


def test_p_is_below_005_exactly_where_the_interval_leaves_the_null_out() -> None:
    random = np.random.default_rng(2)
    seen = set()
    for _ in range(60):
        a, b = (random.integers(0, 2, 150).astype(float) for _ in range(2))
        b = np.where(random.uniform(size=150) < 0.7, a, b)
        interval = difference_of_proportions(a, b)
        is_out = not interval.low <= -0.05 <= interval.high
        assert (p_of_margin(a, b, 0.05) < 0.05) == is_out
        seen.add(is_out)
    assert seen == {True, False}


def test_a_page_has_its_places_filled_in(made: tuple[Study, Path], results: StudyResults) -> None:
    folder, figures = made[1], results.figures
    place, name = partial(filled, results, folder, path=Path("page.md")), "tokens/sample/oracle"
    numbers = place(f"{{{{title}}}}: {{{{{name}}}}} (about {{{{about {name}}}}}, n = {{{{n {name}}}}})")
    assert numbers == f"A study: {figures[name].text} (about {two_digits(figures[name].estimate)}, n = 12)"
    assert place("{{reached tokens/sample/oracle}}").startswith("12 of ")
    assert place("{{table outcomes}}").startswith("| outcome |")
    assert "| sample | cot | 4 |" in place("{{table means twice}}")
    run = r"map-chain-oracle-hops=\d-objectives=1/react / rewoo"
    for price in ("openai", "none"):
        ends = [each.estimate for name, each in figures.items() if re.fullmatch(rf"{run}/{price}(, .* before)?", name)]
        assert len(ends) == 10  # 2 runs with 0, 512, 1,024, 2,048 and 4,096 tokens before
        assert place(f"{{{{range map {price}}}}}") == f"{min(ends):.2f} to {max(ends):.2f}"
    assert place("{{range map none react / rewoo}}") == place("{{range map,map none}}")
    rows = load(folder / "main-sample-oracle")
    calls, tokens = (50 * rows[name].sum() / 12 for name in ("llm_calls", "total_tokens"))
    asking = place("{{asking 50 main}}")
    assert asking.startswith(f"{calls:,.0f} model calls, {tokens / 1e6:.2f} million tokens and $")
    with pytest.raises(SpecError, match=r"page.md: .*: unknown figure; did you mean 'tokens/sample/oracle'"):
        place("{{tokens/sample/orakel}}")
    for wrong in ("{{table means twise}}", "{{range map deepsick}}"):
        with pytest.raises(SpecError, match="unknown figure"):
            place(wrong)


def test_a_place_of_runs_that_arent_there_says_so(made: tuple[Study, Path], tmp_path: Path) -> None:
    study, folder = made
    shutil.copytree(folder / "short-sample-oracle", tmp_path / "short-sample-oracle")
    text = "{{verdict tokens/sample/oracle}} {{range pages openai}} {{asking 50 main}} {{model oracle}}"
    found = filled(read_results(study, tmp_path), tmp_path, text, Path("page.md"))
    assert found == "(not known) (not known) (not known) oracle"


@pytest.mark.slow
def test_the_same_runs_give_the_same_files(made: tuple[Study, Path], published: Path, tmp_path: Path) -> None:
    study, folder = made
    for name in ("a", "b"):
        shutil.copytree(published, tmp_path / name)
    publish_study(study, folder, tmp_path / "b")  # into a folder that has an earlier publication
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert {path.name for path in files} >= {"README.md", "figures.csv", "map.png", "prices.png"}
    assert "accuracy.png" not in {path.name for path in files}  # an oracle's means nothing
    pages = [str(path) for path in files if path.suffix == ".html"]
    assert pages == ["index.html", "runs/twice-sample-oracle/report.html"]
    html = (tmp_path / "a/index.html").read_text()
    runs = [path.parent for path in files if path.name == "run.json"]
    assert html.count("<details") == len(runs)
    assert all(f'href="{run.as_posix()}/run.json"' in html for run in runs)
    assert '<a href="runs/twice-sample-oracle/report.html">' in html
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes(), path
    again = read_results(study, tmp_path / "a/runs")  # from the published copies
    first = read_results(study, folder)
    assert {name: figure.text for name, figure in again.figures.items()} == {
        name: figure.text for name, figure in first.figures.items()
    }
    table = pd.read_csv(tmp_path / "a/figures.csv")
    assert list(table["figure"]) == list(first.figures)
    assert list(table["rare"]) == [each.text.endswith("?") for each in first.figures.values()]
    assert all((tmp_path / "a" / name).read_text().endswith("\n") for name in ("figures.csv", "outcomes.csv"))


def test_nothing_but_an_earlier_publication_is_replaced(
    made: tuple[Study, Path], published: Path, tmp_path: Path
) -> None:
    study, folder = made
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/README.md").write_text("# Mine")
    with pytest.raises(UsageError, match="isn't the page of a study"):
        publish_study(study, folder, tmp_path / "mine")
    assert (tmp_path / "mine/README.md").read_text() == "# Mine"
    with pytest.raises(UsageError, match="no published copy"):
        publish_study(study, folder, folder.parent)  # whose folder `runs` has the runs themselves
    assert len(load(folder / "main-sample-oracle")) == 24
    assert not (folder.parent / "README.md").exists()

    shutil.copytree(published, tmp_path / "page")
    before = {path: path.read_bytes() for path in (tmp_path / "page").rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=r"is a run that is read: .* --without-runs"):
        publish_study(study, tmp_path / "page/runs", tmp_path / "page")
    assert {path: path.read_bytes() for path in (tmp_path / "page").rglob("*") if path.is_file()} == before


def test_a_publication_of_more_questions_is_not_replaced(
    made: tuple[Study, Path], published: Path, tmp_path: Path
) -> None:
    study, _ = made
    shutil.copytree(published, tmp_path / "page")
    before = {path: path.read_bytes() for path in (tmp_path / "page").rglob("*") if path.is_file()}
    anyio.run(partial(run_study, study, study.cells[:1], tmp_path / "runs", SessionChoices(n=2)))
    for with_runs in (True, False):
        with pytest.raises(UsageError, match=r"page' has 12 questions of main-sample-oracle, and '.*runs' has 2: give"):
            publish_study(study, tmp_path / "runs", tmp_path / "page", with_runs=with_runs)
    assert {path: path.read_bytes() for path in (tmp_path / "page").rglob("*") if path.is_file()} == before


def test_fewer_questions_in_the_file_dont_make_a_first_look_the_last_one(tmp_path: Path) -> None:
    study = conditions_study(tmp_path, DECLARED)
    anyio.run(partial(run_study, study, study.cells[:1], tmp_path / "runs", SessionChoices(n=3)))
    fewer = conditions_study(tmp_path, DECLARED.replace("n = 12", "n = 3"))
    outcome = read_results(fewer, tmp_path / "runs").outcomes[0]
    assert (outcome.verdict_shown, outcome.declared_n) == ("so far: undecided", 12)


def test_a_question_that_one_architecture_lacks_is_in_no_figure(made: tuple[Study, Path], tmp_path: Path) -> None:
    study, folder = made
    shutil.copytree(folder / "main-sample-oracle", tmp_path / "main-sample-oracle")
    file = tmp_path / "main-sample-oracle" / "questions.parquet"
    table = pq.read_table(file)
    pq.write_table(table.slice(0, len(table) - 1), file)
    assert read_results(study, tmp_path).figures["tokens/sample/oracle"].n == 11


def test_a_run_keeps_the_names_of_its_architectures_when_the_file_has_them_in_another_order(
    made: tuple[Study, Path], tmp_path: Path
) -> None:
    study, folder = made
    before = read_results(study, folder).figures["main-sample-oracle/react / rewoo/total_tokens"]
    turned = conditions_study(
        tmp_path, DECLARED.replace('["rewoo", "react"]\nn = 12', '["react", "rewoo", "cot"]\nn = 12')
    )
    results = read_results(turned, folder)
    assert results.figures["main-sample-oracle/react / rewoo/total_tokens"] == before
    assert {each.exploratory for each in results.outcomes} == {"begun before the study was changed"}
    assert not [name for name in results.figures if "/cot/" in name and name.startswith("main")]


def test_the_words_of_a_page_are_not_said_of_another_model(tmp_path: Path) -> None:
    study = conditions_study(tmp_path, DECLARED)
    study.file.with_name("page.md").write_text("It is never wrong.")
    changed = read_study(study.file, ["models.oracle.model=oracle?extra_steps=1"])
    anyio.run(partial(run_study, changed, changed.cells[:1], tmp_path / "runs", SessionChoices(n=2)))
    for each in (study, changed):
        publish_study(each, tmp_path / "runs", tmp_path / "page")
        page = (tmp_path / "page" / "README.md").read_text("utf-8")
        assert "never wrong" not in page
        assert "Asked: `oracle`, which is `oracle?extra_steps=1` (an oracle's accuracy means nothing)." in page
        assert "| sample | react | 2 |" in page
        assert "![prices](prices.png)" in page
        assert "![map]" not in page
        assert "| main-sample-oracle | 2 | 12 | as declared |" in page
        assert page.endswith("its words are of the models that the file has for oracle.\n")
        assert (tmp_path / "page/prices.png").is_file()


def test_of_a_whole_data_set_a_verdict_is_so_far_until_it_has_all(tmp_path: Path) -> None:
    study = conditions_study(tmp_path, DECLARED.replace("n = 12", ""))
    shown = []
    for n in (3, None):
        anyio.run(partial(run_study, study, study.cells[:1], tmp_path / str(n), SessionChoices(n=n)))
        outcome = read_results(study, tmp_path / str(n)).outcomes[0]
        shown.append((outcome.verdict_shown, outcome.declared_n))
    assert shown == [("so far: undecided", None), ("react takes more", 100)]


def test_a_study_without_runs_says_how_to_begin(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(DECLARED)
    with pytest.raises(DataError, match="begin with rewoo-bench study run"):
        read_results(read_study(tmp_path / "study.toml"), tmp_path)


CONDITIONS = """
[study]
question = "Which is cheaper, when tools fail?"

[models]
oracle.model = "oracle"

[datasets]
sample.dataset = "sample"

[[cells]]
name = "faults"
models = ["oracle"]
datasets = ["sample"]
architectures = ["rewoo", "react"]
n = 12
conditions.tool_failure_rate = [0.0, 0.5]

[[outcomes]]
name = "dollars"
cells = "faults"
architectures = ["react", "rewoo"]
measure = "cost_usd"
prices = "google"
statistic = "ratio"
"""


def conditions_study(folder: Path, text: str = CONDITIONS) -> Study:
    (folder / "study.toml").write_text(text)
    return read_study(folder / "study.toml")


@pytest.mark.anyio
async def test_an_outcome_is_decided_under_each_condition(tmp_path: Path) -> None:
    study = conditions_study(tmp_path)
    await run_study(study, study.cells, tmp_path / "runs", SessionChoices(n=8))
    results = read_results(study, tmp_path / "runs")
    assert [each.name for each in results.outcomes] == [
        "dollars/sample/oracle/tool_failure_rate=0.0",
        "dollars/sample/oracle/tool_failure_rate=0.5",
    ]
    for each in results.outcomes:
        assert results.figures[each.name].n == 8
        assert each.interval.estimate > 1
        assert each.is_partial
    text = page_of(results, tmp_path / "runs")
    assert "| sample, tool_failure_rate=0.5 | 8 of 12 |" in text
    assert "so far: undecided" in text


@pytest.mark.anyio
async def test_a_run_begun_before_the_day_of_declaration_decides_nothing(tmp_path: Path) -> None:
    study = conditions_study(tmp_path, CONDITIONS.replace("[models]", "declared = 2999-01-01\n\n[models]"))
    await run_study(study, study.cells[:1], tmp_path / "runs")
    (outcome,) = read_results(study, tmp_path / "runs").outcomes
    assert outcome.exploratory == "begun before the study was declared"
    assert math.isnan(outcome.p_holm)
