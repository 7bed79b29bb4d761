"""How often the gate on a live model is wrong: pairs of runs of one and the same system, and of a dearer one.

    python scripts/simulate_gate.py RUN [RUN ...]

From the rows of real runs, for each architecture: n questions are drawn with replacement, the same
for both runs of a pair, and each run draws for each question one of the totals that were measured
for it. Where a question was measured T times (trials, or several runs of the same questions), the
totals are spread about the question's mean by sqrt(T / (T - 1)), or T draws would have less spread
than the model has. Where every question was measured once, nothing is known of the spread between
runs, and each run draws its own questions: the worst case, as if pairing explained nothing.

The second run of a pair is taken as it is (A/A), or with every total 10% higher. Both go through
the gate's own rule, at its own level, with all architectures of the runs in one gate.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.gate.against import LIVE_MARGIN, ratio_beyond
from rewoo_bench.results import load

Totals = NDArray[np.float64]
INCREASE = 1.10


def measured(runs: Sequence[str | Path]) -> dict[str, Totals]:
    """Total tokens by architecture, a row a question and a column a measurement, for questions that never failed."""
    rows = load(*runs)
    rows["total_tokens"] = rows["total_tokens"].astype("float64").where(rows["exact_match"].notna())
    rows["time"] = rows.groupby(["architecture", "example_id"]).cumcount()
    tables = {
        str(name): group.pivot_table(index="example_id", columns="time", values="total_tokens", dropna=False)
        for name, group in rows.groupby("architecture", sort=False)
    }
    return {name: table.dropna().to_numpy(dtype=float) for name, table in tables.items()}


def spread(totals: Totals) -> Totals:
    """The totals about each question's mean, with the spread that their number takes from them."""
    times = totals.shape[1]
    if times == 1:
        return totals
    means = totals.mean(axis=1, keepdims=True)
    widened: Totals = np.maximum(means + (totals - means) * np.sqrt(times / (times - 1)), 1)
    return widened


def draw(totals: Totals, n: int, random: np.random.Generator) -> tuple[Totals, Totals]:
    """Two runs of one system over n questions."""
    questions, times = totals.shape
    first = random.integers(questions, size=n)
    second = first if times > 1 else random.integers(questions, size=n)
    return totals[first, random.integers(times, size=n)], totals[second, random.integers(times, size=n)]


def simulate(tables: Mapping[str, Totals], n: int, pairs: int, increase: float, seed: int = 0) -> dict[str, Totals]:
    """Which of the pairs fail, by architecture."""
    random = np.random.default_rng(seed)
    widened = {name: spread(totals) for name, totals in tables.items()}
    failed = {name: np.zeros(pairs) for name in tables}
    for pair in range(pairs):
        for name, totals in widened.items():
            before, now = draw(totals, n, random)
            ratio = ratio_beyond(before, now * increase, np.arange(n), LIVE_MARGIN, len(tables))
            failed[name][pair] = ratio is not None and ratio.low > 1
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--pairs", type=int, default=2000, help="pairs of one and the same system")
    parser.add_argument("--dearer-pairs", type=int, default=500, help="pairs with a true increase; these take longer")
    parser.add_argument("-n", type=int, nargs="+", default=[100, 500], help="questions of a run")
    options = parser.parse_args()
    tables = measured(options.runs)
    print(f"| n | architecture | measured | A/A fails | +{INCREASE - 1:.0%} caught |\n|---:|---|---|---:|---:|")
    for n in options.n:
        same = simulate(tables, n, options.pairs, 1.0)
        dearer = simulate(tables, n, options.dearer_pairs, INCREASE)
        for name, totals in tables.items():
            size = f"{totals.shape[0]} questions x {totals.shape[1]}"
            print(f"| {n} | {name} | {size} | {same[name].mean():.2%} | {dearer[name].mean():.2%} |")
        print(f"| {n} | **any of them** | | {np.max(list(same.values()), axis=0).mean():.2%} | |", flush=True)


if __name__ == "__main__":
    main()
