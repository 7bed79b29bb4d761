"""How a comparison is shown: marks, golden outputs, and data that parses back."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from comparison_rows import ENDINGS, GOLDEN, A, frame, manifest, small, system

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_tables import ComparisonFormat, render_comparison, tables
from rewoo_bench.analysis.prices import Pricing
from rewoo_bench.analysis.summary_tables import legend
from rewoo_bench.config.names import ORACLE_ACCURACY

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("model", ["oracle", "oracle?depth=2"])
@pytest.mark.parametrize("form", ["terminal", "markdown", "latex"])
def test_an_oracles_accuracy_carries_its_mark(model: str, form: ComparisonFormat) -> None:
    comparison = compare(frame(system(model=model), system("react", model=model)))
    shown = render_comparison(comparison, form)
    assert ORACLE_ACCURACY in shown
    assert shown.count("]\\*" if form == "markdown" else "]*") == 2 * 2 + 2  # EM and F1 of either, and of the pair
    assert comparison.to_frame().query("measure == 'exact_match'")["meaningless"].tolist() == [True, True, True]
    assert ORACLE_ACCURACY not in render_comparison(compare(frame(system(), system("react"))), form)


def test_dollars_and_cached_tokens_are_those_of_the_one_price() -> None:
    pricing = Pricing("m's rule; m's prices", cost_usd=np.repeat([0.002, 0.001], 6), cached=np.repeat([5.0, 7.0], 6))
    for paid in (None, 0.5):
        compared = compare(frame(system(cost_usd=paid), system("react", cost_usd=paid)), pricing=pricing)
        _, tokens, dollars, *_ = (each.cells for each in tables(compared))
        for (header, *rows), name, shown in ((dollars, "$ / 1000", ["2.000", "1.000"]), (tokens, "cached", ["5", "7"])):
            assert [row[header.index(name)].partition(" [")[0] for row in rows] == shown
        assert render_comparison(compared, "terminal").count("m's rule; m's prices") == 1


@pytest.mark.parametrize("form", ["terminal", "markdown", "latex"])
def test_it_is_printed_as_before(form: ComparisonFormat) -> None:
    assert render_comparison(small(), form) + "\n" == (GOLDEN / f"small.{ENDINGS[form]}").read_text(encoding="utf-8")


def test_csv_is_the_frame() -> None:
    text = render_comparison(small(), "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    (ratio,) = [
        row
        for row in rows
        if (row["system"], row["measure"], row["kind"]) == ("react, openai/small_1", "total_tokens", "ratio")
    ]
    assert (ratio["against"], ratio["n"]) == ("rewoo, openai/small_1", "5")
    assert float(ratio["estimate"]) == small().pairs[0]["total_tokens"].interval.estimate
    read = pd.read_csv(io.StringIO(text))
    pd.testing.assert_frame_equal(read, small().to_frame(), check_dtype=False, check_exact=True)


def test_json_parses_back_and_has_no_nan() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    told = json.loads(render_comparison(small(), "json"), parse_constant=refuse)
    first = told["pairs"][0]["figures"][0]
    assert (first["measure"], first["discordant"]["only_a"]) == ("exact_match", 2)
    assert told["systems"][2]["cost_usd"] is None
    assert [system["oracle"] for system in told["systems"]] == [False, False, False, True]
    lonely = compare(frame(system(matches="1"), system("react", "1")))
    assert lonely.pairs[0]["total_tokens"].interval.high == math.inf
    assert json.loads(render_comparison(lonely, "json"))["pairs"][0]["figures"][2]["interval"]["high"] is None


def cells(text: str, title: str) -> dict[str, list[str]]:
    """Cells of a Markdown table by the first of its row."""
    table = text.partition(f"{title}")[2].split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows}


def test_the_n_is_that_of_the_interval_in_its_row() -> None:
    trials = [*system(matches="1-0-10"), *system(matches="1-0010", trial=1)]
    other = [*system("react", "110000"), *system("react", "110000", trial=1)]
    comparison = compare(frame(trials, other))
    shown = render_comparison(comparison, "markdown")
    assert [cells(shown, "means per question")[name][0] for name in ("rewoo", "react")] == ["5", "6"]
    assert cells(shown, "differences of accuracy")["react - rewoo"][::6] == ["5", "3 of 12"]
    assert comparison.pairs[0]["exact_match"].interval.n == 5
    means = comparison.to_frame().query("kind == 'mean' and measure == 'total_tokens'")
    assert means["n"].tolist() == [5, 6]


def test_of_one_pair_the_column_names_who_was_right_alone() -> None:
    shown = render_comparison(compare(frame(system(matches="110100"), system("react", "101100", 2000))), "markdown")
    table = cells(shown, "differences of accuracy")
    assert table["difference"][3] == "only react / only rewoo"
    assert table["react - rewoo"][3] == "1 / 1"
    both = render_comparison(
        compare(frame(system(matches="110000"), system("react", "101100"), system("direct"))), "markdown"
    )
    table = cells(both, "differences of accuracy")
    assert (table["difference"][3], table["react - rewoo"][3]) == ("only 1st / only 2nd", "2 / 1")


def test_the_last_lines_are_a_table_to_paste_of_at_most_eight_lines() -> None:
    shown = str(compare(frame(system(matches="110100"), system("react", "101100", 2000, model="oracle"))))
    _, _, pasted = shown.partition("to paste:\n\n")
    header, _, rewoo, react = pasted.splitlines()
    assert header == "| architecture | n | right | tokens | calls | $ per 1000 |"
    assert rewoo.startswith("| rewoo, openai/small_1 | 6 | 50% | 1,142 |")
    assert "| an oracle's |" in react
    markdown = render_comparison(compare(frame(system(), system("react"))), "markdown")
    assert next(line for line in markdown.splitlines() if line.startswith("|")) == header  # its first table
    many = compare(frame(*(system(f"r{n}") for n in range(7))))
    assert str(many).endswith("to paste: --format markdown")
    assert header not in render_comparison(many, "markdown")


def test_a_file_of_ones_own_is_named_in_headings() -> None:
    facts = manifest(A, dataset__name="sample", dataset__source={"file": "sample.csv"})
    bundled = str(compare(frame(system(), system("react")), manifests={A: facts}))
    assert "sample: means per question" in bundled
    rows = [system(dataset="mine"), system("react", dataset="mine")]
    facts = manifest(A, dataset__name="mine", dataset__source={"file": "mine.csv"})
    assert "your file mine.csv: means per question" in str(compare(frame(*rows), manifests={A: facts}))


def test_the_time_of_a_run_is_from_its_start_to_its_end() -> None:
    times = {"started_at": "2026-11-30T00:00:00+00:00", "finished_at": "2026-11-30T00:05:00+00:00"}
    rows = frame(system(), system("react"))
    shown = str(compare(rows, manifests={A: manifest(A, **times)}))
    assert re.search(r"^run +time\n0001 +5 min$", shown, re.MULTILINE)
    resumed = manifest(A, **times, sessions=[{}])
    assert resumed.took == "resumed"
    assert "time from the start" not in str(compare(rows, manifests={A: resumed}))


def test_a_provider_whose_totals_do_not_add_up_is_said() -> None:
    doubtful = str(compare(frame(system(usage_source="inconsistent"), system("react"))))
    assert "tokens are in doubt" in doubtful
    assert "tokens are in doubt" not in str(compare(frame(system(), system("react"))))


def test_the_tables_name_a_planner_with_a_model_of_its_own() -> None:
    shown = str(compare(frame(system(planner_model="big"), system("react", planner_model="big"))))
    assert "sample, openai/small_1 (planner big): tokens per question" in shown
    shown = str(compare(frame(system(planner_model="big"), system("react"))))
    assert "sample, rewoo: openai/small_1 (planner big): tokens per question" in shown


def test_a_mark_is_explained_where_one_figure_alone_has_it() -> None:
    rare = legend(["0.9 [0.6, 1.0]*?"], [False])
    assert [line[:1] for line in rare] == ["*", "?"]
    assert legend(["0.9 [0.6, 1.0]*", "a?"], [False]) == rare[:1]
