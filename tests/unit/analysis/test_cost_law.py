"""The paper's formulas beside what was measured: on the oracle, whose tokens the terms add up to."""

from __future__ import annotations

import pandas as pd
import pytest

from rewoo_bench.analysis.input_parts import cost_law
from rewoo_bench.evaluation.api import bench

SHOWN = "rewoo?solver_exemplars=1"
NAMES = ["rewoo", SHOWN, "rewoo-json", "react", "react-native", "plan-execute", "direct", "cot"]


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    run = bench(NAMES, out=tmp_path_factory.mktemp("law") / "run", dataset="chain?hops=1..4", questions=8)
    found = cost_law(pd.read_parquet(run.folder / "calls.parquet"))
    keys = ["architecture", "example_id", "trial"]
    return found.merge(run.rows[[*keys, "input_tokens", "llm_calls"]].astype({"architecture": str}), on=keys)


def test_the_formula_for_react_is_the_input_to_the_token(law: pd.DataFrame) -> None:
    react = law[law["law"] == "ReAct"]
    assert set(react["architecture"]) == {"react", "react-native"}
    assert react["formula"].tolist() == react["input_tokens"].tolist()
    assert react["k"].tolist() == react["llm_calls"].tolist()


def test_what_the_formula_for_rewoo_doesnt_know_is_the_solvers_exemplars_and_a_third_question(
    law: pd.DataFrame,
) -> None:
    rewoo = law[law["law"] == "ReWOO"]
    assert set(rewoo["architecture"]) == {"rewoo", SHOWN, "rewoo-json"}
    assert (rewoo["prompts"] + rewoo["tool_prompts"]).tolist() == rewoo["input_tokens"].tolist()
    assert ((rewoo["solver_exemplars"] > 0) == (rewoo["architecture"] == SHOWN)).all()
    shown = (rewoo["formula"] + rewoo["solver_exemplars"]) / rewoo["prompts"]
    assert shown.between(0.95, 1).all()


def test_react_grows_faster_than_rewoo(law: pd.DataFrame) -> None:
    """The second difference of a linear law is nothing, that of a quadratic one is more."""
    hops = law["example_id"].str.extract(r"chain-(\d)x")[0].astype(int)
    for name, quadratic in (("react", True), ("rewoo", False)):
        means = law[law["architecture"] == name].groupby(hops)["formula"].mean()
        bends = means.diff().diff().dropna()
        assert bool(bends.mean() > 50) is quadratic


def test_of_other_architectures_it_says_nothing(law: pd.DataFrame) -> None:
    assert not {"plan-execute", "direct", "cot"} & set(law["architecture"])
