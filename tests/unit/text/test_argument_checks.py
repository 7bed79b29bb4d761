"""Arguments of a wrong type from Python: one line that names the argument, before anything is read or written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pandas as pd
import pytest

import rewoo_bench
from rewoo_bench import Example, UsageError

Run = str
EXAMPLES = [Example("q", "Which river?", ("Neva",))]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    rewoo_bench.bench("rewoo,react", out=folder, questions=2)
    return str(folder)


def gate(run: Run, **arguments: Any) -> object:
    return rewoo_bench.check_gate(**{"run": run, "baseline": run, **arguments})


def evaluated(**arguments: Any) -> object:
    given = {"dataset": "sample", "architectures": "direct", "model": "oracle", "questions": 1, **arguments}
    return anyio.run(lambda: rewoo_bench.evaluate(**given))


def plotted(run: Run, **arguments: Any) -> object:
    return rewoo_bench.plot(arguments.pop("rows", run), **{"out": f"{run}-plots", **arguments})


WRONG: dict[str, Callable[[Run], object]] = {
    "mode: expected 'exact', 'live' or None, got 'foo'": lambda run: gate(run, mode="foo"),
    "run: expected the folder of a run, got 6": lambda run: rewoo_bench.publish(6, "out"),  # type: ignore[arg-type]
    "the column 'architecture' is missing": lambda run: rewoo_bench.summarise(pd.DataFrame()),
    "run: expected the path of a run's folder or of its parquet file, got None": lambda run: rewoo_bench.load(None),  # type: ignore[arg-type]
    "exemplars: expected a style of exemplars such as 'multihop', got 5": lambda run: evaluated(
        dataset=EXAMPLES, exemplars=5
    ),
    "manifests: expected what rewoo_bench.manifests returns, or None, got 5": lambda run: rewoo_bench.compare(
        rewoo_bench.load(run),
        manifests=5,  # type: ignore[arg-type]
    ),
    "only: expected a list of names, got 'ratio'": lambda run: plotted(run, only="ratio"),
    "pair: expected two architectures, got ('rewoo',)": lambda run: plotted(run, pair=("rewoo",)),
    "answers: expected the gold answers, got 5": lambda run: rewoo_bench.score("a", 5),  # type: ignore[arg-type]
    "limit: expected a whole number or None, got 'a'": lambda run: rewoo_bench.load_dataset("sample", limit="a"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_argument_is_named(message: str, run: Run) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        WRONG[message](run)


def test_a_text_is_a_path_for_publish(run: Run, tmp_path: Path) -> None:
    assert rewoo_bench.publish(run, str(tmp_path / "copy")) == 4
    assert len(rewoo_bench.load(tmp_path / "copy")) == 4


def test_figures_are_named_in_any_collection(run: Run, tmp_path: Path) -> None:
    assert rewoo_bench.plot(run, out=tmp_path, only={"ratio": 1}.keys(), formats=("svg",))  # type: ignore[arg-type]
