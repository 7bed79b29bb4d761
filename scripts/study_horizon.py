"""results/oracle: which horizon and which notation of a plan costs least, without mistakes.

    python scripts/study_horizon.py --hotpotqa dev_distractor_sample.json     # everything; takes some minutes
    python scripts/study_horizon.py             # README.md again, from the CSV files
    python scripts/study_horizon.py --check     # exit code 1 where it differs from the CSV files

Runs the oracle over generated chains and over HotpotQA questions, several of them in a task, and writes the cells
(horizon-cells.csv), their regression (horizon.csv), the figure and the README's results into results/oracle. No model
is asked. The CSV files are the same on every machine.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import rewoo_bench
from rewoo_bench.analysis.prices import priced_rows
from rewoo_bench.config.price_sheets import SHORT_PRICES, named_tariff
from rewoo_bench.report.plots.draw import PICTURE_METADATA
from rewoo_bench.report.plots.style import series_styles, styled

RESULTS = Path(__file__).parents[1] / "results" / "oracle"
DEPTHS, BREADTHS = range(1, 9), range(1, 6)
PLANNERS = ("rewoo", "rewoo-json", "rewoo-lazy", "rewoo-code", "llmcompiler")
LOOPS = ("react", "react-json", "react-native", "react-code")
IN_SEQUENCE = "calls in sequence"
DOLLARS = {rule: f"usd / 1000: {rule}" for rule in SHORT_PRICES}
COUNTS = ("llm_calls", IN_SEQUENCE, "input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")
PAIRS = (
    ("react-json", "rewoo-lazy"),
    ("react-native", "rewoo-lazy"),
    ("react", "rewoo"),
    ("rewoo-json", "rewoo"),
    ("rewoo-code", "rewoo"),
    ("react-code", "rewoo-code"),
)
"""The architectures that the README's tables compare."""
_PLACE = re.compile(r"(<!-- results: [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)


def cell(depth: int | None, breadth: int, run: Path, hotpotqa: Path | None = None) -> pd.DataFrame:
    """Means of each architecture on tasks of `breadth` questions; without a depth, on HotpotQA's. `run`: a new folder."""
    rewoo_bench.bench(
        [*(f"{name}?map_tokens=20000" for name in PLANNERS), *LOOPS],
        dataset=f"chain?hops={depth}&objectives={breadth}" if depth else f"{hotpotqa}?objectives={breadth}",
        questions=5 if depth else 40,
        max_steps=100,
        concurrency=1,  # what questions at the same time find of each other is a matter of moments
        out=run,
    )
    rows = rewoo_bench.load(run)
    waited = calls_in_sequence(pd.read_parquet(run / "calls.parquet"))
    rows = rows.merge(waited, on=["architecture", "example_id"], how="left")
    for column, priced in zip(
        DOLLARS.values(), priced_rows([run], rows, [[rule] for rule in SHORT_PRICES]), strict=True
    ):
        rows[column] = (1000 * priced.usd).round(9)  # calls that end in another order change the last bits
    rows["architecture"] = rows["architecture"].astype(str).str.partition("?")[0]
    by_architecture = rows.groupby("architecture", sort=False)
    means = by_architecture[["exact_match", *COUNTS, *DOLLARS.values()]].mean().astype(float).round(3)
    means.insert(0, "questions", by_architecture.size())
    means = means.reset_index()
    means.insert(0, "depth", depth or "hotpotqa")
    means.insert(1, "objectives", breadth)
    return means


def calls_in_sequence(calls: pd.DataFrame) -> pd.DataFrame:
    """Model calls of each question that wait for each other: its latency, counted in calls.

    Planner, solver and turns are one after the other, and so are the steps of rewoo-lazy. Of other plans and of programs,
    the steps that ask a model at one depth of the plan count once; of a turn those at the same depth.
    """
    own = calls[(calls["kind"] == "model").to_numpy(bool) & (calls["status"] == "ok").to_numpy(bool)]
    turn = own["place"].str.extract(r"^(turn \d+|call \d+)", expand=False).fillna("")
    is_alone = (own["role"] != "tool").to_numpy(bool) | own["architecture"].astype(str).str.startswith("rewoo-lazy")
    moment = own["place"].where(is_alone, turn + " " + own["plan_depth"].astype(str))
    counted = own.assign(moment=moment).groupby(["architecture", "example_id"], observed=True)["moment"].nunique()
    return counted.rename(IN_SEQUENCE).reset_index()


def regression(cells: pd.DataFrame) -> pd.DataFrame:
    """Least squares over the cells of the chains: amount = a + b depth + c objectives + d depth x objectives."""
    rows = []
    for amount in ("total_tokens", IN_SEQUENCE, *DOLLARS.values()):
        for name, own in cells[cells["depth"] != "hotpotqa"].groupby("architecture", sort=False):
            depth, breadth = own["depth"].to_numpy(float), own["objectives"].to_numpy(float)
            x = np.column_stack([np.ones(len(own)), depth, breadth, depth * breadth])
            y = own[amount].to_numpy(float)
            found, *_ = np.linalg.lstsq(x, y, rcond=None)
            left, spread = y - x @ found, y - y.mean()
            terms = dict(zip(("constant", "depth", "objectives", "depth x objectives"), found.round(3), strict=True))
            explained = round(1 - float(left @ left) / float(spread @ spread), 4)
            rows.append({"amount": amount, "architecture": name, **terms, "R2": explained, "cells": len(own)})
    return pd.DataFrame(rows)


def figure(cells: pd.DataFrame) -> Figure:
    """Which architecture takes least in each cell of the chains, a panel for each amount."""
    right = cells[(cells["depth"] != "hotpotqa") & (cells["exact_match"] == 1)]
    looks = series_styles([*PLANNERS, *LOOPS])
    panels = {"total_tokens": "tokens", IN_SEQUENCE: "model calls in sequence"}
    panels |= {column: f"dollars, {named_tariff(rule).title}" for rule, column in DOLLARS.items()}
    drawn, axes = plt.subplots(-(-len(panels) // 3), 3, figsize=(11, 10), sharex=True, sharey=True, layout="tight")
    won = set()
    for axis, (amount, title) in zip(axes.flat, panels.items(), strict=False):
        for depth, breadth in product(DEPTHS, BREADTHS):
            own = right[(right["depth"] == str(depth)) & (right["objectives"] == breadth)]
            least = own.sort_values([amount, "total_tokens"])[["architecture", amount]].head(2)
            (name, amount_of_it), (_, second) = least.to_numpy().tolist()
            won.add(name)
            axis.add_patch(Rectangle((depth - 0.5, breadth - 0.5), 1, 1, color=looks[name].colour, alpha=0.75, lw=0))
            axis.text(depth, breadth, f"{second / amount_of_it:.2f}", ha="center", va="center", fontsize=7)
        axis.set(title=title, xlim=(0.5, 8.5), ylim=(0.5, 5.5), xticks=DEPTHS, yticks=BREADTHS)
        axis.title.set_fontsize(8)
        axis.grid(False)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    drawn.supxlabel("look-ups in a row (depth)", fontsize=9)
    drawn.supylabel("objectives (breadth)", fontsize=9)
    shown = [looks[name] for name in (*PLANNERS, *LOOPS) if name in won]
    patches = [Rectangle((0, 0), 1, 1, color=look.colour, alpha=0.75) for look in shown]
    drawn.legend(patches, [look.name for look in shown], loc="lower right", fontsize=9, ncols=2)
    return drawn


def ratio_table(title: str, cells: pd.DataFrame) -> str:
    """The least and the largest ratio of each pair over the cells that both answer."""
    amounts = {"tokens": "total_tokens", IN_SEQUENCE: IN_SEQUENCE, "no cache": DOLLARS["none"]}
    amounts |= {"OpenAI": DOLLARS["openai"], "Anthropic": DOLLARS["anthropic-5m"], "vLLM": DOLLARS["vllm"]}
    lines = [f"| {' | '.join([title, *amounts])} |", f"|---|{'---:|' * len(amounts)}"]
    wide = cells[cells["exact_match"] > 0].pivot(index=["depth", "objectives"], columns="architecture")
    for one, other in PAIRS:
        ratios = [(wide[column][one] / wide[column][other]).dropna() for column in amounts.values()]
        shown = (f"{each.min():.2f}–{each.max():.2f}" for each in ratios)
        lines.append(f"| {one} / {other} | {' | '.join(shown)} |")
    return "\n".join(lines)


def results(cells: pd.DataFrame, laws: pd.DataFrame) -> str:
    """The README's results, every figure of which is in a table."""
    hotpotqa, chains = cells[cells["depth"] == "hotpotqa"], cells[cells["depth"] != "hotpotqa"]
    wrong = hotpotqa[hotpotqa["exact_match"] < 1]
    exact_match = " to ".join(f"{each:.3f}" for each in sorted(set(wrong["exact_match"])))
    unanswered = chains[(chains["architecture"] == "react-code") & (chains["exact_match"] == 0)]
    answered = chains[chains["exact_match"] == 1]
    amounts = ["total_tokens", *DOLLARS.values()]
    least = answered[amounts] == answered.groupby(["depth", "objectives"])[amounts].transform("min")
    won = least[answered["architecture"] == "rewoo-lazy"].to_numpy()
    laws = laws[laws["amount"] == "total_tokens"].set_index("architecture").sort_values("depth x objectives")
    slopes = ", ".join(f"{name} {slope:,.0f}" for name, slope in laws["depth x objectives"].items())
    plans, loops = (sorted(laws.loc[list(names), "R2"]) for names in (PLANNERS, LOOPS))

    return f"""`rewoo-lazy` plans up to the answer, `react-json` takes one action a turn in the same notation: the full and the single-step horizon of Otani et al. 2026, who report 2 to 3 times fewer tokens and no price with a cache. The least and the largest ratio over 1 to 5 objectives of HotpotQA, {hotpotqa["questions"].max()} tasks each ([every cell](horizon-cells.csv)); the last four columns are dollars:

{ratio_table("HotpotQA", hotpotqa)}

Chains of 1 to 8 look-ups, the same objectives, {chains["questions"].max()} tasks a cell:

{ratio_table("chains", chains)}

A single step sends its trace again, which a cache makes cheap: its rule decides which horizon costs less. An opponent would say: without detours or failing steps `rewoo-lazy` never plans anew, and its tools read pages by a model call that a loop does without.

On HotpotQA exact match is {exact_match} at {wrong["objectives"].min()} to {wrong["objectives"].max()} objectives: one answer stands beyond the 200 tokens that are kept of its page. `react-code` stops at 30 calls, unanswered, in {len(unanswered)} cells of the chains.

![Which architecture takes least, by depth and breadth](horizon.png)

A cell has the colour of the architecture that takes least, of those that answer everything; its number is the next one's multiple. Ties (1.00, or nearly) go to fewer tokens. By tokens and dollars `rewoo-lazy` takes least in {won.sum() or "none"} of {won.size} cells.

**Tokens grow with depth x objectives.** Least squares over the {chains.groupby(["depth", "objectives"]).ngroups} cells of the chains, with terms for each alone, gives tokens for one more of the product ([horizon.csv](horizon.csv)): {slopes}. R2 is {plans[0]:.3f} to {plans[-1]:.3f} for plans and {loops[0]:.3f} to {loops[-1]:.3f} for loops: these grow faster than such a law or, as `react-code`, which serves all objectives in a turn, with depth: {laws["depth"]["react-code"]:,.0f} a look-up (unanswered cells included).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotpotqa", type=Path, help="HotpotQA questions in the official form; else nothing is run")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--check", action="store_true", help="run nothing; compare README.md with the CSV files")
    options = parser.parse_args(arguments)
    cells_file, laws_file = options.out / "horizon-cells.csv", options.out / "horizon.csv"
    is_run = options.hotpotqa and not options.check
    if is_run:
        with tempfile.TemporaryDirectory() as work:
            places = [*product(DEPTHS, BREADTHS), *product([None], BREADTHS)]
            parts = [cell(*place, Path(work, f"run{i}"), options.hotpotqa) for i, place in enumerate(places)]
        options.out.mkdir(parents=True, exist_ok=True)
        pd.concat(parts).to_csv(cells_file, index=False)
    cells = pd.read_csv(cells_file)
    if is_run:
        regression(cells).to_csv(laws_file, index=False)
        with styled():
            figure(cells).savefig(options.out / "horizon.png", metadata=PICTURE_METADATA["png"])
    readme = options.out / "README.md"
    made = results(cells, pd.read_csv(laws_file))
    before = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    after = _PLACE.sub(lambda place: place[1] + made + place[2], before)
    if options.check:
        return int(after != before)
    readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
