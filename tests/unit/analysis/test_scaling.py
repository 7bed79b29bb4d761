"""The laws of growth as predictions: near on questions that they weren't fitted on, and far off on other numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rewoo_bench
from rewoo_bench.analysis.cost_laws import (
    FittedLine,
    fit_line,
    law_of,
    look_ups,
    predict,
    scaled_parts,
)
from rewoo_bench.evaluation.api import bench
from rewoo_bench.runs.columns import PARTS

KEY = ["architecture", "example_id", "trial"]
LAWS = {"rewoo": "ReWOO", "rewoo-json": "ReWOO", "rewoo-react": "ReWOO", "react": "ReAct", "react-native": "ReAct"}


SHOWN = "rewoo?solver_exemplars=1"


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scaling") / "run"
    names = [*LAWS, SHOWN, "plan-execute", "direct", "cot"]
    return bench(names, out=folder, dataset="chain?hops=1..12", questions=60, max_steps=23).folder


@pytest.fixture
def rows(chains: Path) -> pd.DataFrame:
    return rewoo_bench.load(chains)


def of(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    return rows[rows["architecture"] == name].reset_index(drop=True)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", LAWS)
def test_fitted_on_up_to_four_look_ups_a_law_tells_the_tokens_of_five_to_twelve(rows: pd.DataFrame, name: str) -> None:
    found = predict(of(rows, name))
    assert found is not None
    assert (found.law.name, found.fitted, found.held_out) == (LAWS[name], 20, 40)
    assert found.error < 0.05
    assert found.error < found.largest < 0.15


@pytest.mark.parametrize("name", LAWS)
def test_of_numbers_that_are_not_the_measured_ones_it_is_far_off(rows: pd.DataFrame, name: str) -> None:
    """An identity would hold for these too."""
    own, random = of(rows, name), np.random.default_rng(0)
    for other in (random.permutation(own["input_tokens"]), random.integers(500, 20_000, len(own))):
        found = predict(own.assign(input_tokens=other))
        assert found is not None
        assert found.error > 0.25


def test_an_agent_that_takes_detours_takes_more_than_the_law_says(rows: pd.DataFrame, tmp_path: Path) -> None:
    """The misses that scaling.py's docstring names."""
    law = predict(of(rows, "react"))
    assert law is not None
    detours = bench(["react"], model="oracle?extra_steps=2", out=tmp_path / "run", dataset="chain?hops=1..8",
                    questions=96, max_steps=25)  # fmt: skip
    own = rewoo_bench.load(detours.folder)
    errors = law.law.input_tokens(look_ups(own)) / own["input_tokens"].to_numpy(float) - 1
    assert errors.mean() == pytest.approx(-0.34, abs=0.01)
    small = rewoo_bench.load(Path(__file__).parents[2] / "golden" / "models" / "chain-smollm2-135m")
    found = predict(of(small, "react"))
    assert found is not None
    assert found.held_out == 39
    assert found.error == pytest.approx(2.89, abs=0.005)


def test_a_law_is_found_again_in_numbers_made_by_it() -> None:
    hops = np.arange(1, 5)
    assert FittedLine("ReAct", 100.0, 10.0).input_tokens([1, 2, 3]).tolist() == [210, 330, 460]
    assert FittedLine("ReWOO", 100.0, 10.0).input_tokens([1, 2, 3]).tolist() == [110, 120, 130]
    for law in (FittedLine("ReAct", 100.0, 10.0), FittedLine("ReWOO", 100.0, 10.0)):
        found = fit_line(law.name, hops, law.input_tokens(hops))
        assert (found.fixed, found.step) == pytest.approx((100, 10))


def test_no_law_is_about_other_architectures(rows: pd.DataFrame) -> None:
    assert [name for name in rows["architecture"].unique() if law_of(of(rows, str(name)))] == [*LAWS, SHOWN]
    assert predict(of(rows, "plan-execute")) is None


def test_questions_that_failed_or_were_cut_off_are_in_no_fit(rows: pd.DataFrame) -> None:
    own = of(rows, "react")
    spoilt = own.astype({"stop_reason": str})
    spoilt.loc[0, ["exact_match", "input_tokens", "stop_reason"]] = [None, 1, "error"]
    spoilt.loc[[1, 2], "input_tokens"] = 90_000
    spoilt.loc[[1, 2], "stop_reason"] = ["step_limit", "invalid_plan"]
    assert predict(spoilt) == predict(own.iloc[3:])


def test_with_nothing_held_out_there_is_no_error_and_with_one_length_no_law(rows: pd.DataFrame) -> None:
    own = of(rows, "rewoo")
    short = predict(own[own["hops"] <= 4])
    assert short is not None
    assert short.held_out == 0
    assert np.isnan(short.error)
    assert predict(own[own["hops"] == 2]) is None
    assert predict(own[own["hops"] > 4]) is None


def test_look_ups_of_a_run_without_the_column_are_in_the_question_type(rows: pd.DataFrame) -> None:
    older = rows.drop(columns="hops")
    assert look_ups(older).tolist() == look_ups(rows).tolist()
    assert look_ups(older.assign(question_type="chain-2x3+1")).unique().tolist() == [6]
    assert look_ups(older.assign(question_type="bridge")).isna().all()


def test_parts_add_up_to_the_input_as_the_tables_count_it(chains: Path) -> None:
    calls = pd.read_parquet(chains / "calls.parquet")
    asked = calls[calls["kind"] == "model"].assign(input_tokens=lambda of: of["input_tokens"] * 3)
    found = scaled_parts(asked)
    assert found is not None
    assert found.sum(axis=1).tolist() == pytest.approx(asked["input_tokens"].tolist())
    assert found["exemplar_tokens"].tolist() == pytest.approx((3 * asked["exemplar_tokens"]).tolist())
    assert scaled_parts(asked.assign(**{PARTS[0]: None})) is None
