"""How a comparison is shown: marks, golden outputs, and data that parses back."""

from __future__ import annotations

import csv
import io
import json
import math

import pandas as pd
import pytest
from comparison_rows import ENDINGS, GOLDEN, frame, small, system

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.comparison_render import ORACLE, Format, render


@pytest.mark.parametrize("model", ["oracle", "oracle?depth=2"])
@pytest.mark.parametrize("form", ["terminal", "markdown", "latex"])
def test_an_oracles_accuracy_carries_its_mark(model: str, form: Format) -> None:
    comparison = compare(frame(system(model=model), system("react", model=model)))
    shown = render(comparison, form)
    assert ORACLE in shown
    assert shown.count("]\\*" if form == "markdown" else "]*") == 2 * 2 + 2  # EM and F1 of either, and of the pair
    assert comparison.to_frame().query("measure == 'exact_match'")["meaningless"].tolist() == [True, True, True]
    assert ORACLE not in render(compare(frame(system(), system("react"))), form)


@pytest.mark.parametrize("form", ["terminal", "markdown", "latex"])
def test_it_is_printed_as_before(form: Format) -> None:
    assert render(small(), form) + "\n" == (GOLDEN / f"small.{ENDINGS[form]}").read_text(encoding="utf-8")


def test_csv_is_the_frame() -> None:
    text = render(small(), "csv")
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

    told = json.loads(render(small(), "json"), parse_constant=refuse)
    first = told["pairs"][0]["figures"][0]
    assert (first["measure"], first["discordant"]["only_a"]) == ("exact_match", 2)
    assert told["systems"][2]["cost_usd"] is None
    assert [system["oracle"] for system in told["systems"]] == [False, False, False, True]
    lonely = compare(frame(system(matches="1"), system("react", "1")))
    assert lonely.pairs[0]["total_tokens"].interval.high == math.inf
    assert json.loads(render(lonely, "json"))["pairs"][0]["figures"][2]["interval"]["high"] is None
