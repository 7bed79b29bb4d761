"""The study in results/oracle: the cost of each architecture without mistakes.

    python scripts/study_oracle.py --hotpotqa dev_distractor_sample.json

Runs the oracle over the given HotpotQA questions and over the generated chains, and writes the tables
(CSV, and all of them as Markdown) and figures into results/oracle. No model is asked; it takes some minutes, and
gives the same files on every machine.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pandas as pd

from rewoo_bench import load
from rewoo_bench.analysis.cost_formulas import cost_law
from rewoo_bench.analysis.dollars import SHOWN, priced_rows
from rewoo_bench.analysis.scaling import predict
from rewoo_bench.analysis.verdict import bounds
from rewoo_bench.evaluation.run import run
from rewoo_bench.paths import bundled_names
from rewoo_bench.plots.draw import draw, read, save, write_captions
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.stats.paired import ratio_of_means

RESULTS = Path(__file__).parents[1] / "results" / "oracle"
AGENTS = ("rewoo", "rewoo-json", "llmcompiler", "react", "react-native", "rewoo-react", "plan-execute")


class Study:
    """The runs of the study, each made once, and their figures."""

    def __init__(self, hotpotqa: Path, questions: int | None, work: Path, out: Path) -> None:
        self.hotpotqa = str(hotpotqa)
        self.questions = questions
        self.out = out
        self.captions: dict[str, str] = {}
        self._work = work
        self._count = 0

    def run(self, *architectures: str, dataset: str | None = None, **options: Any) -> Path:
        """The folder of a run with the oracle."""
        self._count += 1
        folder = self._work / f"run{self._count}"
        wanted = {"model": "oracle", "limit": self.questions, "progress": False, **options}
        anyio.run(run, RunOptions(architectures, dataset=dataset or self.hotpotqa, out=folder, **wanted))
        return folder

    def draw(self, runs: Sequence[Path], **figures: str) -> None:
        """Saves figures of runs under these names: `draw(runs, parts="hotpotqa-parts")`."""
        for (_, picture), name in zip(draw(read(runs), only=list(figures)), figures.values(), strict=True):
            save(name, picture, self.out, ["png"])
            self.captions[name] = picture.markdown


def totals(rows: pd.DataFrame) -> pd.DataFrame:
    """Means per question of each architecture, in the order of the run."""
    columns = ["llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens", "total_tokens"]
    means = rows.groupby("architecture", sort=False, observed=True)[columns].mean().astype(float).round(1)
    means.insert(0, "questions", rows.groupby("architecture", sort=False, observed=True).size())
    return means.reset_index()


def ratio(rows: pd.DataFrame, dear: str, cheap: str, column: str = "total_tokens") -> str:
    """The ratio of two architectures, of tokens or of another column, with its 95% interval."""
    wide = rows.pivot_table(index=["example_id", "trial"], columns="architecture", values=column, observed=True)
    pairs = wide[[cheap, dear]].astype(float)
    return bounds(ratio_of_means(pairs[cheap], pairs[dear]), 1.0)


def with_dollars(folder: Path) -> pd.DataFrame:
    """The rows of a run, with a column of dollars for each price of `SHOWN`."""
    rows = load(folder)
    prices = zip(SHOWN, priced_rows([folder], rows, [[name] for name in SHOWN]), strict=True)
    return rows.assign(**{name: each.usd for name, each in prices})


def main_table(study: Study) -> Iterator[tuple[str, pd.DataFrame]]:
    """The architectures on HotpotQA, and the paper's formulas on the same prompts."""
    folder = study.run(*bundled_names("architectures", "architecture.toml"))
    study.draw([folder], parts="hotpotqa-parts", ratio="hotpotqa-ratio")
    rows = load(folder)
    table = totals(rows).sort_values("total_tokens", ignore_index=True)
    table["times rewoo"] = ["1" if name == "rewoo" else ratio(rows, name, "rewoo") for name in table["architecture"]]
    yield "hotpotqa", table
    law = cost_law(pd.read_parquet(folder / "calls.parquet")).groupby(["architecture", "law"], sort=False)
    means = law[["formula", "solver_exemplars", "rest", "prompts", "tool_prompts"]].mean().round(1).reset_index()
    means.insert(2, "questions", law.size().to_numpy())
    means["formula / prompts"] = (means["formula"] / means["prompts"]).round(3)
    with_exemplars = means["formula"] + means["solver_exemplars"]
    means["with the solver's exemplars"] = (with_exemplars / means["prompts"]).round(3)
    yield "formulas", means


def chain_tables(study: Study) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tokens by number of look-ups, and questions with look-ups that no plan can foresee."""
    folder = study.run(*AGENTS, dataset="chain?hops=1..12", limit=120, max_steps=32)
    study.draw([study.run("rewoo", "react", "react-native", dataset="chain?hops=1..12", limit=120, max_steps=32)],
               steps="chain-steps")  # fmt: skip
    rows = load(folder)
    rows["hops"] = rows["question_type"].astype(str).str.extract(r"chain-(\d+)x")[0].astype(int)
    tokens = rows.pivot_table(index="hops", columns="architecture", values="total_tokens", observed=True)
    yield "hops", _tokens_by(tokens.astype(float))
    yield "prediction", _predictions(rows)
    rows = load(study.run(*AGENTS, dataset="chain?hops=2&width=1..8", limit=80, max_steps=64))
    rows["width"] = rows["question_type"].astype(str).str.extract(r"x(\d+)")[0].astype(int)
    tokens = rows.pivot_table(index="width", columns="architecture", values="total_tokens", observed=True)
    yield "width", _tokens_by(tokens.astype(float))
    rows = load(study.run(*AGENTS, dataset="chain?hops=5&branching=4", limit=100, max_steps=32))
    table = totals(rows)
    right = rows.groupby("architecture", sort=False, observed=True)["exact_match"].sum()
    table.insert(2, "reached the answer", [int(right[name]) for name in table["architecture"]])
    yield "branching", table


def _predictions(rows: pd.DataFrame) -> pd.DataFrame:
    """The laws of scaling.py, fitted on questions of up to 4 look-ups, with their errors on longer ones."""
    found = {name: predict(rows[rows["architecture"] == name]) for name in AGENTS}
    return pd.DataFrame(
        {
            "architecture": name,
            "law": its.law.name,
            "fixed": round(its.law.fixed, 1),
            "step": round(its.law.step, 1),
            "fitted on": its.fitted,
            "held out": its.held_out,
            "mean error": f"{its.error:.1%}",
            "largest": f"{its.largest:.1%}",
        }
        for name, its in found.items()
        if its
    )


def _tokens_by(tokens: pd.DataFrame) -> pd.DataFrame:
    table = tokens[list(AGENTS)].round(0).astype(int)
    table["react / rewoo"] = (tokens["react"] / tokens["rewoo"]).round(2)
    table["react-native / rewoo"] = (tokens["react-native"] / tokens["rewoo"]).round(2)
    return table.reset_index()


def failure_table(study: Study) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tool calls with empty results, for several shares of all calls."""
    parts, folders = [], []
    for rate in (0.0, 0.25, 0.5, 1.0):
        folders.append(study.run("rewoo", "react", "react-native", "rewoo-react", tool_failure_rate=rate))
        rows = load(folders[-1])
        table = totals(rows)[["architecture", "llm_calls", "tool_calls", "total_tokens"]]
        table.insert(0, "failure rate", rate)
        parts.append(table)
    study.draw(folders, failure="hotpotqa-failure")
    yield "failure", pd.concat(parts, ignore_index=True)


def ablation_table(study: Study) -> Iterator[tuple[str, pd.DataFrame]]:
    """The token ratio of ReAct to ReWOO with one change at a time."""
    variants = [
        (f"{shots} exemplars", f"rewoo?max_exemplars={shots}", f"react?max_exemplars={shots}") for shots in (0, 1, 2, 6)
    ]
    variants += [
        (f"{budget} tokens of each observation", f"rewoo?slot_tokens={budget}", f"react?observation_tokens={budget}")
        for budget in (25, 50, 100, 400)
    ]
    every = with_dollars(study.run(*(name for _, *names in variants for name in names), "rewoo", "react-native"))
    variants.append(("native calls, side by side", "rewoo", "react-native"))
    rows = [_ablated(name, every, agent, rewoo) for name, rewoo, agent in variants]
    alone = with_dollars(study.run("rewoo", "react-native", model="oracle?parallel=0"))
    rows.append(_ablated("native calls, one a turn", alone, "react-native", "rewoo"))
    yield "ablation", pd.DataFrame(rows)


def _ablated(name: str, rows: pd.DataFrame, agent: str, rewoo: str) -> dict[str, Any]:
    tokens = rows.groupby("architecture", observed=True)["total_tokens"].mean().astype(float)
    return {
        "variant": name,
        "against": agent.partition("?")[0],
        "tokens": round(tokens[agent], 1),
        "rewoo": round(tokens[rewoo], 1),
        "ratio [95% CI]": ratio(rows, agent, rewoo),
        **{f"dollars, {title}": ratio(rows, agent, rewoo, name) for name, title in SHOWN.items()},
    }


def markdown(table: pd.DataFrame) -> str:
    lines = [list(map(str, table.columns)), ["---", *["---:"] * (table.shape[1] - 1)]]
    lines += [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotpotqa", type=Path, required=True, help="HotpotQA questions in the official form")
    parser.add_argument("--questions", type=int, help="number of questions; all by default")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    shown = []
    with tempfile.TemporaryDirectory() as work:
        study = Study(options.hotpotqa, options.questions, Path(work), options.out)
        for part in (main_table, chain_tables, failure_table, ablation_table):
            for name, table in part(study):
                table.to_csv(options.out / f"{name}.csv", index=False)
                shown.append(f"## {name}\n\n{markdown(table)}\n")
                print(f"{name}\n{table.to_string(index=False)}\n", flush=True)
    write_captions(options.out, study.captions)
    (options.out / "tables.md").write_text("\n".join(shown), encoding="utf-8")


if __name__ == "__main__":
    main()
