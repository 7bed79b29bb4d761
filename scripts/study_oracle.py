"""The study in results/oracle: the cost of each architecture without mistakes.

    python scripts/study_oracle.py --hotpotqa dev_distractor_sample.json
    python scripts/study_oracle.py              # README.md and tables.md again, from the CSV files
    python scripts/study_oracle.py --check      # exit code 1 where they differ from the CSV files

Runs the oracle over the given HotpotQA questions and over the generated chains, and writes the tables
(CSV, and all of them as Markdown), the figures and the README's results into results/oracle. No model is asked; it
takes some minutes, and gives the same files on every machine.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from rewoo_bench import load
from rewoo_bench.analysis.cost_laws import cost_law, predict
from rewoo_bench.analysis.pairs import bounds
from rewoo_bench.analysis.prices import SHOWN, priced_rows
from rewoo_bench.analysis.stats.paired import ratio_of_means
from rewoo_bench.config.price_sheets import PRICE_UNITS, RULES, Tariff, named_tariff, tariffs
from rewoo_bench.evaluation.run import run
from rewoo_bench.report.plots.cache import EQUAL, map_table, tariff_title
from rewoo_bench.report.plots.draw import draw, read, save_figures
from rewoo_bench.report.plots.style import Picture, series_styles, styled
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.system.files import bundled_names

RESULTS = Path(__file__).parents[1] / "results" / "oracle"
MAP_HEADS = {at: f"{at:,} to {at + 127:,}" for at in (0, 512, 1024, 2048, 3968)}
"""Tokens of context that tables.md shows, the first of a cell: its column; map-cells.csv has all."""
CHEAPER, DEARER = "cells with a ratio over 1.05", "cells with a ratio under 0.95"
WITHIN = "cells from 0.95 to 1.05"
LIMITED = "ended at the step limit"
_PLACE = re.compile(r"(<!-- results: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)
DEPTHS, BREADTHS = tuple(range(1, 9)), tuple(range(1, 6))
PLANNERS = ("rewoo", "rewoo-json", "rewoo-lazy", "rewoo-code", "llmcompiler")
HORIZON = (*PLANNERS, "react", "react-json", "react-native", "react-code")
IN_SEQUENCE = "calls in sequence"
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")
AGENTS = ("rewoo", "rewoo-json", "llmcompiler", "react", "react-native", "rewoo-react", "plan-execute")


class Study:
    """The runs of the study, each made once, and their figures."""

    def __init__(self, hotpotqa: Path, questions: int | None, work: Path, out: Path) -> None:
        self.hotpotqa = str(hotpotqa)
        self.questions = questions
        self.out = out
        self._work = work
        self._count = 0

    def run(self, *architectures: str, dataset: str | None = None, **options: Any) -> Path:
        """The folder of a run with the oracle."""
        self._count += 1
        folder = self._work / f"run{self._count}"
        wanted = {"model": "oracle", "questions": self.questions, "progress": False, **options}
        anyio.run(run, RunOptions(architectures, dataset=dataset or self.hotpotqa, out=folder, **wanted))
        return folder

    def draw(self, runs: Sequence[Path], figures: Mapping[str, str], against: str = "react") -> None:
        """Saves figures of runs under these names: `draw(runs, {"parts": "hotpotqa-parts"})`."""
        pictures = draw(read(runs), only=list(figures), pair=(against, "rewoo"))
        named = ((name, picture) for (_, picture), name in zip(pictures, figures.values(), strict=True))
        list(save_figures(named, self.out, ["png"]))


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
    study.draw([folder], {"parts": "hotpotqa-parts", "ratio": "hotpotqa-ratio"})
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
    folder = study.run(*AGENTS, dataset="chain?hops=1..12", questions=120, max_steps=32)
    some = study.run("rewoo", "react", "react-native", dataset="chain?hops=1..12", questions=120, max_steps=32)
    study.draw([some], {"steps": "chain-steps", "cache": "chain-cache", "cache-map": "chain-map"})
    study.draw([some], {"cache-map": "chain-map-native"}, "react-native")
    cells = {agent: map_table(read([some]), (agent, "rewoo")) for agent in ("react", "react-native")}
    ratios = {f"{agent} / rewoo": its["ratio"].round(3) for agent, its in cells.items()}
    map_cells = cells["react"].drop(columns="ratio").assign(**ratios)
    map_cells.to_csv(study.out / "map-cells.csv", index=False)
    yield "map", _map_digest(map_cells)
    rows = load(folder)
    rows["hops"] = rows["question_type"].astype(str).str.extract(r"chain-(\d+)x")[0].astype(int)
    tokens = rows.pivot_table(index="hops", columns="architecture", values="total_tokens", observed=True)
    yield "hops", _tokens_by(tokens.astype(float))
    yield "prediction", _predictions(rows)
    rows = load(study.run(*AGENTS, dataset="chain?hops=2&width=1..8", questions=80, max_steps=64))
    rows["width"] = rows["question_type"].astype(str).str.extract(r"x(\d+)")[0].astype(int)
    tokens = rows.pivot_table(index="width", columns="architecture", values="total_tokens", observed=True)
    yield "width", _tokens_by(tokens.astype(float))
    rows = load(study.run(*AGENTS, dataset="chain?hops=5&branching=4", questions=100, max_steps=32))
    table = totals(rows)
    right = rows.groupby("architecture", sort=False, observed=True)["exact_match"].sum()
    table.insert(2, "reached the answer", [int(right[name]) for name in table["architecture"]])
    cut = rows[(rows["stop_reason"] == "step_limit").to_numpy(bool)]["architecture"].tolist()
    table.insert(3, LIMITED, [cut.count(name) for name in table["architecture"]])
    yield "branching", table


def _map_digest(cells: pd.DataFrame) -> pd.DataFrame:
    """The least and the largest ratio over all numbers of look-ups, for some lengths of the context."""
    rows = []
    for ratio in ("react / rewoo", "react-native / rewoo"):
        for price in RULES:
            own = cells[cells["price"] == price]
            shown = {head: own.loc[own["context"] == at, ratio] for at, head in MAP_HEADS.items()}
            ranges = {head: f"{its.min():.2f} to {its.max():.2f}" for head, its in shown.items()}
            shares = {side: f"{cells.mean():.0%}" for side, cells in _sides(own[ratio]).items()}
            rows.append({"dollars": ratio, "price": price, **ranges, **shares})
    return pd.DataFrame(rows)


def _sides(ratios: pd.Series) -> dict[str, pd.Series]:
    """Which cells of the map are on which side."""
    cheaper, dearer = ratios > 1 + EQUAL, ratios < 1 - EQUAL
    return {CHEAPER: cheaper, DEARER: dearer, WITHIN: ~(cheaper | dearer)}


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
    study.draw(folders, {"failure": "hotpotqa-failure"})
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


def horizon_tables(study: Study) -> Iterator[tuple[str, pd.DataFrame]]:
    """Depth and breadth: chains of 1 to 8 look-ups, 1 to 5 of them in a task, and as many questions of HotpotQA."""
    cells = [*product(DEPTHS, BREADTHS), *((None, breadth) for breadth in BREADTHS)]
    table = pd.concat([horizon_cell(study, *cell) for cell in cells], ignore_index=True)
    list(save_figures([("horizon", horizon_figure(table))], study.out, ["png"]))
    yield "horizon-cells", table
    yield "horizon", _growth(table)


def horizon_cell(study: Study, depth: int | None, breadth: int) -> pd.DataFrame:
    """The architectures on tasks of as many questions as `breadth`; without a depth, on those of HotpotQA."""
    chain = depth and f"chain?hops={depth}&objectives={breadth}"
    folder = study.run(
        *(f"{name}?map_tokens=20000" if name in PLANNERS else name for name in HORIZON),
        dataset=chain or f"{study.hotpotqa}?objectives={breadth}",
        questions=5 if depth else 40,
        max_steps=100,
    )
    rows = load(folder)
    keys = ["architecture", "example_id"]
    rows = rows.merge(in_sequence(pd.read_parquet(folder / "calls.parquet")), on=keys, how="left")
    for name, priced in zip(RULES, priced_rows([folder], rows, [[name] for name in RULES]), strict=True):
        rows[f"usd / 1000: {name}"] = 1000 * priced.usd
    rows["architecture"] = rows["architecture"].astype(str).str.partition("?")[0]
    amounts = ["llm_calls", IN_SEQUENCE, *_TOKENS, *(f"usd / 1000: {name}" for name in RULES)]
    means = rows.groupby("architecture", sort=False)[["exact_match", *amounts]].mean().astype(float).round(3)
    means.insert(0, "objectives", breadth)
    means.insert(0, "depth", depth or "hotpotqa")
    means.insert(2, "questions", rows.groupby("architecture", sort=False).size())
    return means.reset_index()[["depth", "objectives", "architecture", *means.columns[2:]]]


def in_sequence(calls: pd.DataFrame) -> pd.DataFrame:
    """Model calls of each question that wait for each other: its latency, counted in calls.

    Planner, solver and turns are one after the other, and so are the steps of rewoo-lazy. Of other plans and of programs,
    the steps that ask a model at one depth of the plan count once; of a turn those at the same depth.
    """
    own = calls[(calls["kind"] == "model").to_numpy(bool) & (calls["status"] == "ok").to_numpy(bool)]
    turn = own["place"].str.extract(r"^(turn \d+|call \d+)", expand=False).fillna("")
    is_alone = (own["role"] != "tool").to_numpy(bool) | own["architecture"].astype(str).str.startswith("rewoo-lazy")
    place = own["place"].where(is_alone, turn + " " + own["plan_depth"].astype(str))
    own = own.assign(moment=place)
    counted = own.groupby(["architecture", "example_id"], observed=True)["moment"].nunique()
    return counted.rename(IN_SEQUENCE).reset_index()


def _growth(cells: pd.DataFrame) -> pd.DataFrame:
    """Least squares over the cells of the chains: amount = a + b depth + c objectives + d depth x objectives."""
    own = cells[cells["depth"] != "hotpotqa"]
    rows = []
    for amount in ("total_tokens", IN_SEQUENCE, *(f"usd / 1000: {name}" for name in RULES)):
        for name, each in own.groupby("architecture", sort=False):
            depth, breadth = each["depth"].to_numpy(float), each["objectives"].to_numpy(float)
            x = np.column_stack([np.ones(len(each)), depth, breadth, depth * breadth])
            y = each[amount].to_numpy(float)
            found, *_ = np.linalg.lstsq(x, y, rcond=None)
            left, all_ = y - x @ found, y - y.mean()
            explained = 1 - float(left @ left) / float(all_ @ all_)
            terms = dict(zip(("constant", "depth", "objectives", "depth x objectives"), found.round(3), strict=True))
            rows.append(
                {"amount": amount, "architecture": name, **terms, "R2": round(explained, 4), "cells": len(each)}
            )
    return pd.DataFrame(rows)


def horizon_figure(cells: pd.DataFrame) -> Picture:
    """Which architecture takes least in each cell, a panel for each amount."""
    own = cells[(cells["depth"] != "hotpotqa") & (cells["exact_match"] == 1)]
    looks = series_styles(HORIZON)
    amounts = {"total_tokens": "tokens", IN_SEQUENCE: "model calls in sequence"}
    amounts |= {f"usd / 1000: {name}": f"dollars, {tariff_title(named_tariff(name))}" for name in RULES}
    with styled():
        figure, axes = plt.subplots(
            -(-len(amounts) // 3), 3, figsize=(11, 10), sharex=True, sharey=True, layout="tight"
        )
        won = set[str]()
        for axis, (amount, title) in zip(axes.flat, amounts.items(), strict=False):
            for depth, breadth in product(DEPTHS, BREADTHS):
                cell = own[(own["depth"] == depth) & (own["objectives"] == breadth)]
                name, second = (
                    cell.sort_values([amount, "total_tokens"])[["architecture", amount]].head(2).to_numpy().tolist()
                )
                won.add(str(name[0]))
                axis.add_patch(
                    Rectangle((depth - 0.5, breadth - 0.5), 1, 1, color=looks[name[0]].colour, alpha=0.75, lw=0)
                )
                axis.text(depth, breadth, f"{second[1] / name[1]:.2f}", ha="center", va="center", fontsize=7)
            axis.set(title=title, xlim=(0.5, 8.5), ylim=(0.5, 5.5), xticks=DEPTHS, yticks=BREADTHS)
            axis.title.set_fontsize(8)
            axis.grid(False)
        for axis in axes.flat[len(amounts) :]:
            axis.axis("off")
        figure.supxlabel("look-ups in a row (depth)", fontsize=9)
        figure.supylabel("objectives (breadth)", fontsize=9)
        shown = [name for name in HORIZON if name in won]
        handles = [Rectangle((0, 0), 1, 1, color=looks[name].colour, alpha=0.75) for name in shown]
        figure.legend(handles, [looks[name].name for name in shown], loc="lower right", fontsize=9, ncols=2)
    caption = (
        "Generated chains with the oracle: the architecture that takes least in each cell, of those that answer all "
        "questions, and how many times as much the next one takes (1.00 is a tie, or nearly; a tie "
        "goes to the one with fewer tokens). 5 tasks a cell; an oracle makes no mistake, and no call of it fails."
    )
    return Picture(figure, "Which architecture takes least, by depth and breadth", caption)


def markdown(table: pd.DataFrame) -> str:
    lines = [list(map(str, table.columns)), ["---", *["---:"] * (table.shape[1] - 1)]]
    lines += [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


class Tables:
    """The tables in a folder of results, as its CSV files have them."""

    NAMES = (
        "map",
        "horizon",
        "hotpotqa",
        "formulas",
        "hops",
        "prediction",
        "width",
        "branching",
        "failure",
        "ablation",
    )

    def __init__(self, folder: Path) -> None:
        self.all = {name: pd.read_csv(folder / f"{name}.csv", keep_default_na=False) for name in self.NAMES}
        self.cells = pd.read_csv(folder / "map-cells.csv")
        self.horizon = pd.read_csv(folder / "horizon-cells.csv")

    def __str__(self) -> str:
        return "\n".join(f"## {name}\n\n{markdown(table)}\n" for name, table in self.all.items())

    def cell(self, table: str, column: str, **where: Any) -> str:
        """The cell of the only row with these values: `cell("hops", "react / rewoo", hops=12)`."""
        rows = self.all[table]
        for name, value in where.items():
            rows = rows[rows[name.replace("_", " ")] == value]
        ((value,),) = rows[[column]].to_numpy().tolist()
        return _cell(value)


def _price_line(tariff: Tariff) -> str:
    """A rule with its prices in dollars for a million tokens."""
    written = tariff.input if tariff.cache_write is None else tariff.cache_write
    prices = (tariff.input, tariff.cache_read, written, tariff.output)
    shown = [f"{each / PRICE_UNITS['USD per million tokens']:g}" for each in prices]
    if tariff.rule is None:
        shown[1:3] = "--"
    model = "none, nominal prices" if tariff.prices_are else tariff.model
    return f"| {tariff_title(tariff)} | {model} | {' | '.join(shown)} | {tariff.as_of} |"


def results(tables: Tables) -> str:
    """The README's results, every figure of which is in a table."""
    cell = tables.cell

    def map_of(agent: str) -> str:
        lines = [["dollars under", *MAP_HEADS.values()], ["---", *["---:"] * len(MAP_HEADS)]]
        for price in RULES:
            shown = (cell("map", head, dollars=f"{agent} / rewoo", price=price) for head in MAP_HEADS.values())
            lines.append([tariff_title(named_tariff(price)), *shown])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def shares(agent: str, price: str) -> str:
        """`32% / 37% / 31%`: the cells of the map with a ratio over 1.05, between, and under 0.95."""
        own = {"dollars": f"{agent} / rewoo", "price": price}
        return " / ".join(cell("map", side, **own) for side in (CHEAPER, WITHIN, DEARER))

    def parts(price: str) -> str:
        """`0% / 2% / 98% below 1,024 tokens of context, 25% / 75% / 0% from there on`, 1,024 being the rule's least."""
        rule, own = named_tariff(price).rule, tables.cells[tables.cells["price"] == price]
        least = (rule and rule.minimum_prefix_tokens) or 0
        found = [_sides(own.loc[some, "react / rewoo"]) for some in (own["context"] < least, own["context"] >= least)]
        below, above = (" / ".join(f"{its[side].mean():.0%}" for side in (CHEAPER, WITHIN, DEARER)) for its in found)
        return f"{below} below {least:,} tokens of context, {above} from there on"

    def hotpotqa(architecture: str, column: str = "times rewoo") -> str:
        return cell("hotpotqa", column, architecture=architecture)

    def ablation(name: str, variant: str) -> str:
        heads = ["ratio [95% CI]", *(f"dollars, {title}" for title in SHOWN.values())]
        return f"| {name} | {' | '.join(cell('ablation', head, variant=variant) for head in heads)} |"

    def formula(column: str) -> str:
        return cell("formulas", column, architecture="rewoo", law="ReWOO")

    def rule(price: str) -> str:
        return named_tariff(price).cache_rule.replace(": ", " (") + ")"

    prices = "\n".join(
        [
            "| rule | model | input | cached | written | output | prices of |",
            "| --- | --- | ---: | ---: | ---: | ---: | --- |",
            *(_price_line(named_tariff(price)) for price in RULES),
        ]
    )

    def longest(sheet: str) -> str:
        rules = (tariff.rule for tariff in tariffs([sheet]))
        return f"{max(rule.minimum_prefix_tokens or 0 for rule in rules if rule):,}"

    def horizon(one: str, other: str, column: str, data: str = "hotpotqa") -> str:
        """The least and the largest ratio of two architectures over the cells that both answer."""
        own = tables.horizon[(tables.horizon["depth"] == "hotpotqa") == (data == "hotpotqa")]
        wide = own[own["exact_match"] > 0].pivot(index=["depth", "objectives"], columns="architecture", values=column)
        ratios = (wide[one] / wide[other]).dropna()
        return f"{ratios.min():.2f} to {ratios.max():.2f}"

    def horizons(one: str, other: str, data: str = "hotpotqa") -> str:
        """A line of the table of horizons."""
        shown = [
            "total_tokens",
            IN_SEQUENCE,
            *(f"usd / 1000: {name}" for name in ("none", "openai", "anthropic-5m", "vllm")),
        ]
        return f"| {' | '.join([f'{one} / {other}', *(horizon(one, other, column, data) for column in shown)])} |"

    def cells_won(name: str) -> str:
        """In how many cells of horizon.png, by tokens and dollars, an architecture takes least."""
        own = tables.horizon[(tables.horizon["depth"] != "hotpotqa") & (tables.horizon["exact_match"] == 1)]
        amounts = ["total_tokens", *(f"usd / 1000: {rule}" for rule in RULES)]
        least = own.groupby(["depth", "objectives"])[amounts].transform("min")
        won = (own[amounts] == least)[own["architecture"] == name]
        return f"{won.to_numpy().sum() or 'none'} of {won.size}"

    def exact_match_of_tasks() -> str:
        """The exact match of the tasks of several questions of HotpotQA, where it isn't 1."""
        own = tables.horizon[(tables.horizon["depth"] == "hotpotqa") & (tables.horizon["exact_match"] < 1)]
        return f"{own['exact_match'].min():.3f} at {own['objectives'].min()} to {own['objectives'].max()} objectives"

    def branching(architecture: str, column: str = "reached the answer") -> str:
        return cell("branching", column, architecture=architecture)

    return f"""The questions: {hotpotqa("rewoo", "questions")} of HotpotQA's dev set in the distractor setting (Yang et al. 2018, ids by the order of their sha256), each with its own ten paragraphs, and generated ones of the data set [chain](../../datasets/chain/README.md). All tables: [tables.md](tables.md), and each as CSV; captions: [captions.md](captions.md). Intervals are 95%, paired by question: they cover other questions of the same kind, not other models. The architectures have their default form, that of the papers but for the deviations listed in [architectures/](../../architectures/README.md#as-in-the-papers).

**The rule of the cache and the length of the prompts decide whether planning ahead is cheaper.** The map: chains of 1 to 12 dependent look-ups, 0 to 4,095 tokens of context at the beginning of every prompt, the prices and the rule of each provider. In how much of it ReAct with six exemplars costs over 1.05 times / 0.95 to 1.05 times / under 0.95 times what ReWOO costs: {shares("react", "none")} without a cache, {shares("react", "deepseek")} under {rule("deepseek")}, {shares("react", "openai")} under {rule("openai")}, {shares("react", "anthropic-5m")} under {rule("anthropic-5m")}, {shares("react", "gemini")} under {rule("gemini")}, and {shares("react", "vllm")} under {rule("vllm")}, whose cached tokens are free (llama.cpp's: {shares("react", "llama.cpp")}). The shares depend on the axes: longer chains or contexts would give others. They hide a step at the rule's shortest prefix: under OpenAI's rule {parts("openai")}; under Anthropic's {parts("anthropic-5m")}; under Gemini's {parts("gemini")}. Where a rule has a shortest prefix, ReAct is the cheaper one as long as its prompts reach it and ReWOO's don't.

![Look-ups against tokens of context, a panel for each price: blue where ReWOO is cheaper than ReAct](chain-map.png)

ReAct's dollars as a multiple of ReWOO's, the least and the largest over all numbers of look-ups, by tokens of context (`map`; every cell is in [map-cells.csv](map-cells.csv)):

{map_of("react")}

**Against native tool calls, which need no exemplars, planning ahead saves less**: they cost over 1.05 times / 0.95 to 1.05 times / under 0.95 times what ReWOO costs in {shares("react-native", "none")} of the map without a cache, {shares("react-native", "openai")} under OpenAI's rule, {shares("react-native", "anthropic-5m")} under Anthropic's of five minutes, {shares("react-native", "deepseek")} under DeepSeek's.

{map_of("react-native")}

![The same map for native tool calls](chain-map-native.png)

Each line has the prices of its own model, so lines compare two architectures, not two providers. Dollars for a million tokens:

{prices}

Anthropic's and Gemini's shortest prefixes are those of the model here: other models of the sheets have up to {longest("anthropic")} (Anthropic) and {longest("google")} (Gemini). A dollar under vLLM's or llama.cpp's rule is nominal: a million tokens that the machine computes, input or output; cached input is free, and every prompt of the run stays in the cache.

The steps at the shortest prefixes:

![ReAct's dollars as a multiple of ReWOO's against tokens of context, a line for each price](chain-cache.png)

**In tokens, ReAct takes {hotpotqa("react")} times ReWOO's** on HotpotQA with six exemplars. The paper reports 4.93 for gpt-3.5-turbo, with 4.97 ReAct steps per question; a ReAct without mistakes makes {hotpotqa("react", "llm_calls")} calls.

![Stacked bars: where the tokens of each architecture go](hotpotqa-parts.png)

**LLMCompiler takes {hotpotqa("llmcompiler")} times ReWOO's tokens**, native ReAct {hotpotqa("react-native")}, the router with its rule {hotpotqa("router")}, plan-execute {hotpotqa("plan-execute")}.

**Exemplars, which every turn sends again, make most of the token ratio, and bring ReAct's prompts over the shortest cached prefix.** One change at a time (`ablation`); ReAct's multiple of ReWOO's:

| | tokens | {" | ".join(f"dollars, {title}" for title in SHOWN.values())} |
| --- | ---: | ---: | ---: | ---: |
{ablation("6 exemplars", "6 exemplars")}
{ablation("2 exemplars", "2 exemplars")}
{ablation("1 exemplar", "1 exemplars")}
{ablation("none", "0 exemplars")}
{ablation("25 tokens of each observation", "25 tokens of each observation")}
{ablation("400 tokens of each observation", "400 tokens of each observation")}
{ablation("native tool calls (no exemplars), against ReWOO with six", "native calls, side by side")}

**The paper's token model** (`formulas`): of the input of ReWOO's planner and solver it gives {formula("formula / prompts")} times the measured tokens. For ReAct it is an identity, since it sums the measured prompts. Fitted on chains of up to 4 look-ups, the laws are off by {cell("prediction", "mean error", architecture="react")} (ReAct) and {cell("prediction", "mean error", architecture="rewoo")} (ReWOO) on average on chains of 5 to 12 (`prediction`), for an agent that takes no detours.

![Input tokens against look-ups, with the laws of the paper and the measured means](chain-steps.png)

**The tokens of ReAct and of native ReAct grow faster than ReWOO's** (`hops`). From 1 to 12 dependent look-ups ReAct's multiple goes from {cell("hops", "react / rewoo", hops=1)} to {cell("hops", "react / rewoo", hops=12)}, native ReAct's from {cell("hops", "react-native / rewoo", hops=1)} to {cell("hops", "react-native / rewoo", hops=12)}. With 1 to 8 independent look-ups (`width`), which native ReAct makes in one turn, they go from {cell("width", "react / rewoo", width=1)} to {cell("width", "react / rewoo", width=8)} and from {cell("width", "react-native / rewoo", width=1)} to {cell("width", "react-native / rewoo", width=8)}.

**Where the question doesn't state the next look-up, a plan fails** (`branching`). Of {branching("rewoo", "questions")} answers ReWOO reaches {branching("rewoo")}, ReAct {branching("react")}, LLMCompiler {branching("llmcompiler")}, and `rewoo-react` {branching("rewoo-react")}, for {branching("rewoo-react", "total_tokens")} tokens where ReAct takes {branching("react", "total_tokens")}. ReWOO's and LLMCompiler's {branching("rewoo")} are by construction: the oracle plans the look-ups that the question states, and no guess beyond them. `rewoo-react` takes at most four turns after a gap: where four look-ups are unforeseen none is left for the answer, so {branching("rewoo-react", LIMITED)} questions end at that limit. A failed ReWOO answers "unknown" here, because the oracle does; how often a model gives a confident wrong answer instead, only real models can show.

**Horizon and notation** ([horizon-cells.csv](horizon-cells.csv), `horizon`). `rewoo-lazy` plans up to the answer, `react-json` takes one action a turn in the same notation: the full and the single-step horizon of Otani et al. 2026, who report 2 to 3 times fewer tokens and no price with a cache. The least and the largest ratio over 1 to 5 objectives of HotpotQA, 40 tasks each, by tokens, by model calls in sequence (latency without a server), and by dollars without a cache and under three rules:

| HotpotQA | tokens | calls in sequence | no cache | OpenAI's rule | Anthropic's rule | vLLM's rule |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{horizons("react-json", "rewoo-lazy")}
{horizons("react-native", "rewoo-lazy")}
{horizons("react", "rewoo")}
{horizons("rewoo-json", "rewoo")}
{horizons("rewoo-code", "rewoo")}
{horizons("react-code", "rewoo-code")}

The same over chains of 1 to 8 look-ups with 1 to 5 objectives, 5 tasks a cell:

| chains | tokens | calls in sequence | no cache | OpenAI's rule | Anthropic's rule | vLLM's rule |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{horizons("react-json", "rewoo-lazy", "chain")}
{horizons("react-native", "rewoo-lazy", "chain")}
{horizons("react", "rewoo", "chain")}
{horizons("rewoo-json", "rewoo", "chain")}
{horizons("rewoo-code", "rewoo", "chain")}
{horizons("react-code", "rewoo-code", "chain")}

A single step sends its trace again and a cache makes just that cheap, so the sign of the comparison is the cache's rule. Native calls share a turn where look-ups are independent. An opponent would say: these replies have no detours and no failing step, so `rewoo-lazy` never plans anew here, and its tools read pages by a model call that a loop does without. `react-code` makes at most 30 calls a question by default, and answers nothing in the three cells that need more. On HotpotQA exact match is {exact_match_of_tasks()}: one answer stands behind the first 200 tokens of its page, where the default length of a result cuts it off.

The picture: a cell has the colour of the architecture that takes least, and how many times as much the next one takes. A 1.00 is a tie, or nearly; a tie (most cells of the calls in sequence) has the colour of fewer tokens. By tokens and dollars `rewoo-lazy` takes least in {cells_won("rewoo-lazy")} cells.

![Which architecture takes least, by depth and breadth, a panel for each amount](horizon.png)

**With failing tools** (`failure`, calls with empty results) the tokens of both fall, because the oracle gives up after one more try. In the paper ReAct takes more tokens then: what a real model does after a failed call, an oracle can't show.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--hotpotqa", type=Path, help="HotpotQA questions in the official form; without them nothing is run"
    )
    parser.add_argument("--questions", type=int, help="number of questions; all by default")
    parser.add_argument(
        "--only", nargs="*", metavar="PART", help="main, chain, failure, ablation, horizon; all by default"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--check", action="store_true", help="run nothing; compare README.md and tables.md")
    options = parser.parse_args(arguments)
    if options.hotpotqa and not options.check:
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as work:
            study = Study(options.hotpotqa, options.questions, Path(work), options.out)
            for part in (main_table, chain_tables, failure_table, ablation_table, horizon_tables):
                if options.only and part.__name__.partition("_")[0] not in options.only:
                    continue
                for name, table in part(study):
                    table.to_csv(options.out / f"{name}.csv", index=False)
                    print(f"{name}\n{table.to_string(index=False)}\n", flush=True)
    tables, readme = Tables(options.out), options.out / "README.md"
    before = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    made = {readme: _PLACE.sub(lambda place: place[1] + results(tables) + place[2], before)}
    made[options.out / "tables.md"] = str(tables)
    if options.check:
        return int(any(path.read_text(encoding="utf-8") != text for path, text in made.items()))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
