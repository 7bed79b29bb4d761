"""Whoever has pandas and scipy can compute the figures of a published study from its rows."""

from __future__ import annotations

import ast
import runpy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copytree

import anyio
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewoo_bench.config.price_sheets import SHORT_PRICES
from rewoo_bench.study.declaration import Study, read_study
from rewoo_bench.study.publish import publish_study
from rewoo_bench.study.rounds import run_study

SCRIPT = Path(__file__).parents[3] / "scripts" / "recompute_study.py"
Main = Callable[[list[str]], int]

DECLARED = """
[study]
question = "Which is cheaper?"

[models]
oracle.model = "oracle?wrong_title=0.3"

[datasets]
chain.dataset = "chain?hops=2"
longer.dataset = "chain?hops={hops}"

[[cells]]
name = "main"
models = ["oracle"]
datasets = ["chain"]
architectures = ["rewoo", "react", "react?repeat_guard=stop"]
n = 24

[[cells]]
name = "lengths"
models = ["oracle"]
datasets = ["longer"]
architectures = ["rewoo", "react"]
n = 3
conditions.hops = [1, 3]

[[cells]]
name = "short"
models = ["oracle"]
datasets = ["chain"]
architectures = ["rewoo?max_exemplars=0", "react?max_exemplars=0"]
n = 5
exploratory = true

[[cells]]
name = "thrice"
models = ["oracle"]
datasets = ["chain"]
architectures = ["rewoo", "react"]
n = 20
settings.trials = 3
exploratory = true

[[cells]]
name = "judged"
models = ["oracle"]
datasets = ["chain"]
architectures = ["rewoo", "react"]
n = 6
settings = { judge_model = "every_third:Judge", trials = 2 }
exploratory = true

""" + "".join(
    f"""
[[outcomes]]
name = "{name}"
cells = "{cells}"
architectures = ["react", "rewoo"]
measure = "{measure}"
statistic = "{statistic}"
{more}
"""
    for name, cells, measure, statistic, more in (
        ("tokens", "main", "total_tokens", "ratio", ""),
        ("dollars", "main", "cost_usd", "ratio", 'prices = "openai"'),
        ("what is written", "main", "cost_usd", "ratio", 'prices = "openai:gpt-5.6-sol"\nfamily = "others"'),
        ("accuracy", "main", "exact_match", "non-inferiority", "margin = 0.05"),
        ("seconds", "main", "latency_s", "ratio", 'family = "others"'),
        ("scores", "lengths", "f1", "difference", 'family = "others"'),
        ("trials", "thrice", "exact_match", "difference", 'family = "others"'),
    )
)


JUDGE = """
from itertools import count
from rewoo_bench import Completion, Usage

class Judge:
    def __init__(self):
        self.calls = count()

    async def complete(self, request):
        return Completion(("yes", "no", "I can't say.")[next(self.calls) % 3], Usage(7, 0, 2))
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(DECLARED)
    (folder / "every_third.py").write_text(JUDGE)
    study = read_study(folder / "study.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        assert not anyio.run(partial(run_study, study, study.cells, folder / "runs")).unfinished
    publish_study(study, folder / "runs", folder / "page")
    (folder / "page/study.toml").write_text(DECLARED)  # it has the families of outcomes
    return study


@pytest.fixture
def published(study: Study, tmp_path: Path) -> Path:
    """A copy to change."""
    return copytree(study.file.parent / "page", tmp_path / "published")


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Main:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))  # as when it is run
    entry: Main = runpy.run_path(str(SCRIPT))["main"]
    return entry


def change(file: Path, name: str, column: str, value: object) -> None:
    """Another value in the row of a CSV file that begins with a name."""
    table = pd.read_csv(file, dtype=str)
    table.loc[table.iloc[:, 0] == name, column] = str(value)
    table.to_csv(file, index=False)


def test_the_published_figures_are_those_of_the_rows(
    main: Main, published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(published)]) == 0
    *lines, total = capsys.readouterr().out.splitlines()
    figures, outcomes = (len(pd.read_csv(published / f"{name}.csv")) for name in ("figures", "outcomes"))
    kinds = dict(line.rsplit(": ", 1) for line in lines if line.endswith("agree"))
    assert {kind for kind in kinds if "outcomes.csv" not in kind} == {
        *(
            "means: exact match",
            "means: judged correct",
            "means: tokens and calls",
            "means: dollars per 1,000 questions",
            "shares in loops",
        ),
        *("ratios: tokens", "ratios: dollars", "ratios: dollars, with tokens before", "differences of exact match"),
        *("pass^k and flips", "main, these questions", "outcomes", "shares without an answer"),
    }
    assert all(
        counted.split(" of ")[0] == counted.split(" of ")[1].removesuffix(" agree") for counted in kinds.values()
    )
    checked = figures + 5 * outcomes
    assert total == f"{checked} of {checked} agree, 0 differ, 0 have an unknown name"


def test_a_figure_that_differs_is_named(main: Main, published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = pd.read_csv(published / "figures.csv", index_col="figure")
    names = {
        "estimate": "main-chain-oracle/react?repeat_guard=stop/llm_calls",
        "low": "main-chain-oracle/react / rewoo/anthropic-1h",
        "high": "lengths-longer-oracle-hops=3/react / rewoo/openai, 1,024 tokens before",
        "n": "thrice-chain-oracle/react/pass^2",
    }
    for column, name in names.items():
        more = 1 if column == "n" else 2e-6
        change(published / "figures.csv", name, column, float(before[column][name]) + more)
    assert main([str(published)]) == 1
    said = capsys.readouterr().out
    different = [line.rpartition("; ")[0].rpartition(": ")[0] for line in said.splitlines() if "; published:" in line]
    assert sorted(different) == sorted(f"DIFFERS  {name}" for name in names.values())
    assert ", 4 differ, " in said


def test_an_outcome_that_differs_is_named(main: Main, published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for column, value in (("p", 0.5), ("p_holm", 0.5), ("verdict", "rewoo takes more"), ("high", 9)):
        change(published / "outcomes.csv", "dollars", column, value)
    change(published / "outcomes.csv", "accuracy", "detectable", 0.1)
    assert main([str(published)]) == 1
    said = [line.rpartition("; ")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("DIFFERS")]
    assert [line.split(": ")[1] for line in said] == [
        "estimate, low, high and n",
        "p",
        "p by Holm",
        "verdict",
        "detectable",
    ]


def changed(table: pa.Table, name: str, values: Callable[[np.ndarray], np.ndarray]) -> pa.Table:
    """A column with other values, null where they are NaN."""
    place = table.schema.get_field_index(name)
    numbers = values(table[name].to_pandas().to_numpy(dtype=float))
    column = pa.array(numbers, from_pandas=True).cast(table.schema.field(place).type)
    return table.set_column(place, table.schema.field(place), column)


def test_rows_of_any_kind_give_the_same_figures(
    main: Main, study: Study, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Right at random, prefixes that have left the cache, failed attempts, and dollars that aren't known."""
    random = np.random.default_rng(1)
    for run in sorted((published / "runs").iterdir()):
        rows = pq.read_table(run / "questions.parquet")
        rows = changed(rows, "exact_match", lambda values: random.uniform(size=len(values)) < 0.6)
        rows = changed(rows, "f1", lambda values: random.uniform(size=len(values)))
        rows = changed(rows, "loop_tokens", lambda values: random.integers(0, 100, len(values)))
        pq.write_table(rows, run / "questions.parquet")
        calls = pq.read_table(run / "calls.parquet")
        for of in ("question", "run"):
            calls = changed(
                calls, f"shared_{of}_age_s", lambda values: values * 0 + random.choice([9, 400, 9000], len(values))
            )
        some = random.uniform(size=len(calls)) < 0.1
        for name, more in (("billed_tokens", 900), ("billed_output_tokens", 300)):
            calls = changed(calls, name, partial(np.add, more * some))
        if run.name.startswith("lengths"):
            calls = changed(
                calls, "shared_run_tokens", lambda values: np.where(np.arange(len(values)) == 0, np.nan, values)
            )
        pq.write_table(calls, run / "calls.parquet")
    publish_study(study, published / "runs", tmp_path / "again")
    (tmp_path / "again/study.toml").write_text(DECLARED)
    assert main([str(tmp_path / "again")]) == 0, capsys.readouterr().out


def test_its_prices_are_all_that_have_a_short_name() -> None:
    text = SCRIPT.read_text(encoding="utf-8").partition("SHORT = ")[2].partition("\n}\n")[0]
    assert ast.literal_eval(f"{text}}}") == SHORT_PRICES


def test_it_imports_nothing_of_the_project() -> None:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    others = {name.partition(".")[0] for name in imported} - set(sys.stdlib_module_names)
    assert others == {"numpy", "pandas", "scipy"}
