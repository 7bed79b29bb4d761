"""Coverage of the 95% intervals, from samples of the committed runs drawn with replacement.

    python scripts/measure_coverage.py                          # writes results/coverage.md, some minutes
    python scripts/measure_coverage.py --samples 100 --questions 50 --trials 1 --out /tmp/coverage.md

A whole run is the population: its values are the truth, and a sample of n of its questions is a comparison. For each
kind of printed interval: the share of samples with the truth inside. Where a sample has too few questions for an
interval (p95), none is printed.

The committed runs have one trial. Samples with more trials take a trial from the question's own row with probability
`OWN`, else from a random question. This changes no truth, and two trials correlate with OWN², as two runs of the same
questions do (hotpotqa-qwen-1.5b and -100: 0.76 to 0.81 for tokens).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.runs.folder import load
from rewoo_bench.stats.paired import (
    Interval,
    difference_of_means,
    difference_of_proportions,
    geometric_mean_ratio,
    mean_of,
    proportion,
    ratio_of_means,
)
from rewoo_bench.stats.quantiles import quantile_interval

Floats = NDArray[np.float64]
RESULTS = Path(__file__).parents[1] / "results"
BASELINE = "rewoo"
RUNS: Mapping[str, Sequence[str]] = {
    "hotpotqa-smollm2-135m-300": ("react", "react-native"),
    "hotpotqa-gemma-3-270m": ("react",),
    "hotpotqa-qwen-1.5b-100": ("react", "react-native"),
    "hotpotqa-qwen-1.5b-eight": ("plan-execute", "rewoo-json", "rewoo-react"),
    "triviaqa-smollm2-135m-300": ("react", "react-native"),
    "triviaqa-gemma-3-270m": ("react",),
    "triviaqa-qwen-1.5b-100": ("react", "react-native"),
    "sample-smollm2-135m": ("react", "react-native", "plan-execute", "rewoo-json", "rewoo-react"),
    "sample-qwen-1.5b-eight": ("react", "react-native", "plan-execute", "rewoo-json", "rewoo-react"),
    "chain-smollm2-135m": ("react",),
    "branching-smollm2-135m": ("react",),
}
OWN = 0.9  # share of trials from the question's own row
ENOUGH = 0.90  # lower coverage is bold


_LEGEND = f"""\
Written by scripts/measure_coverage.py; don't edit.

Share of {{samples:,}} samples of n questions, drawn with replacement from committed runs, whose 95% interval holds
what the whole run has. **Bold** is under {ENOUGH:.0%}: such an interval is too narrow. A dash: of so few questions
no interval is printed, and no estimate either; or the run lacks latencies. Differences and ratios are those of an
architecture to {BASELINE}, the rest is of the architecture. Where there are three trials, two of a question
correlate with {OWN**2:.2f}. How far the intervals allow for a tail that wasn't seen was chosen on these runs
(mean_bounds.py)."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of two architectures on the same questions and trials; `questions` are the questions of the rows."""

    right: tuple[Floats, Floats]
    f1: tuple[Floats, Floats]
    tokens: tuple[Floats, Floats]
    latency: tuple[Floats, Floats]
    questions: NDArray[np.int64] | None = None

    def drawn(self, rows: NDArray[np.int64], questions: NDArray[np.int64] | None) -> Rows:
        """Some of the rows, and the question that each is a trial of."""
        right, f1, tokens, latency = ((a[rows], b[rows]) for a, b in (self.right, self.f1, self.tokens, self.latency))
        return Rows(right, f1, tokens, latency, questions)


def population(run: str, architecture: str) -> Rows:
    """The questions of a committed run that neither the baseline nor the other architecture failed.

    Of some questions the latency isn't known: those that were begun in an earlier session of the run.
    """
    table = load(RESULTS / "models" / run)
    columns = ["exact_match", "f1", "total_tokens", "latency_s"]
    sides = [table[table["architecture"] == name].set_index("example_id")[columns] for name in (BASELINE, architecture)]
    known = [side[side["exact_match"].notna()].index for side in sides]
    a, b = (side.loc[known[0].intersection(known[1])] for side in sides)

    def column(name: str) -> tuple[Floats, Floats]:
        return a[name].to_numpy(float, na_value=math.nan), b[name].to_numpy(float, na_value=math.nan)

    return Rows(column("exact_match"), column("f1"), column("total_tokens"), column("latency_s"))


def sample(rows: Rows, n: int, trials: int, draw: np.random.Generator) -> Rows:
    """A sample of n questions with the given number of trials each."""
    known = len(rows.tokens[0])
    own = draw.integers(known, size=(n, 1))
    if trials == 1:
        return rows.drawn(own[:, 0], None)
    other = draw.integers(known, size=(n, trials))
    taken = np.where(draw.random((n, trials)) < OWN, own, other)
    return rows.drawn(taken.ravel(), np.repeat(np.arange(n), trials))


# Every kind of interval that tables, comparisons and figures print, of the second architecture or of both.
KINDS: Mapping[str, Callable[[Rows], Interval]] = {
    "EM": lambda r: proportion(r.right[1], clusters=r.questions),
    "F1": lambda r: mean_of(r.f1[1], ends=(0.0, 1.0), clusters=r.questions),
    "EM difference": lambda r: difference_of_proportions(*r.right, clusters=r.questions),
    "F1 difference": lambda r: difference_of_means(*r.f1, ends=(0.0, 1.0), clusters=r.questions),
    "tokens": lambda r: mean_of(r.tokens[1], clusters=r.questions),
    "token ratio": lambda r: ratio_of_means(*r.tokens, clusters=r.questions),
    "geometric ratio": lambda r: geometric_mean_ratio(*r.tokens, r.questions),
    "p50 latency": lambda r: _latency(r, 0.5),
    "p95 latency": lambda r: _latency(r, 0.95),
}


def _latency(rows: Rows, share: float) -> Interval:
    """A quantile; None where the run lacks a latency."""
    if np.isnan(rows.latency[1]).any():
        return Interval(math.nan, math.nan, math.nan, 0)
    return quantile_interval(rows.latency[1], share, clusters=rows.questions)


def truths(rows: Rows) -> dict[str, float]:
    """The true values: the estimates of the whole run. A quantile is one of its values."""
    found = {name: kind(rows).estimate for name, kind in KINDS.items()}
    for name, share in (("p50 latency", 0.50), ("p95 latency", 0.95)):
        found[name] = float(np.quantile(rows.latency[1], share, method="inverted_cdf"))
    return found


def coverage(rows: Rows, n: int, trials: int, samples: int) -> dict[str, float]:
    """Share of samples with the truth in their interval, by kind; NaN where most samples have no interval."""
    truth = {name: value for name, value in truths(rows).items() if not math.isnan(value)}
    held, printed = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    draw = np.random.default_rng([n, trials])
    for _ in range(samples):
        drawn = sample(rows, n, trials, draw)
        for name, value in truth.items():
            found = KINDS[name](drawn)
            if math.isfinite(found.low) and math.isfinite(found.high):
                printed[name] += 1
                held[name] += found.low <= value <= found.high
    return {name: held[name] / printed[name] if printed[name] > samples / 2 else math.nan for name in KINDS}


def document(cells: Mapping[tuple[int, int], Mapping[str, Mapping[str, float]]], samples: int) -> str:
    """results/coverage.md; `cells`: coverage of each kind, by trials and n, then by run."""
    parts = ["# Coverage of the intervals", "", _LEGEND.format(samples=samples)]
    parts += ["", "## The lowest of all runs, and the median", ""]
    parts += _markdown(["trials", "n", *KINDS], _lowest(cells))
    for (trials, n), by_run in cells.items():
        parts += ["", f"## n = {n}, {trials} {'trial' if trials == 1 else 'trials'}", ""]
        lines = [[run, *(_share(shares[kind]) for kind in KINDS)] for run, shares in by_run.items()]
        parts += _markdown(["run", *KINDS], lines)
    return "\n".join(parts) + "\n"


def _lowest(cells: Mapping[tuple[int, int], Mapping[str, Mapping[str, float]]]) -> Iterator[list[str]]:
    for (trials, n), by_run in cells.items():
        columns = [np.array([shares[kind] for shares in by_run.values()]) for kind in KINDS]
        known = [column[~np.isnan(column)] for column in columns]
        shown = [f"{_share(each.min())}, {np.median(each):.0%}" if len(each) else "-" for each in known]
        yield [str(trials), str(n), *shown]


def _share(share: float) -> str:
    if math.isnan(share):
        return "-"
    return f"**{share:.0%}**" if share < ENOUGH else f"{share:.0%}"


def _markdown(header: Sequence[str], rows: Iterator[list[str]] | Sequence[list[str]]) -> list[str]:
    sides = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(row)} |" for row in (header, sides, *rows)]


def main() -> None:
    """Writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--questions", type=int, nargs="+", default=[30, 50, 100])
    parser.add_argument("--trials", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--out", type=Path, default=RESULTS / "coverage.md")
    flags = parser.parse_args()
    rows = {f"{run}, {name}": population(run, name) for run, names in RUNS.items() for name in names}
    cells = {
        (trials, n): {name: coverage(each, n, trials, flags.samples) for name, each in rows.items()}
        for trials in flags.trials
        for n in flags.questions
    }
    flags.out.write_text(document(cells, flags.samples), encoding="utf-8")
    print(f"{flags.out} written")


if __name__ == "__main__":
    main()
