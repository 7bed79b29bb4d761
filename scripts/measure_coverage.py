"""How often do 95% intervals hold the truth? Samples of the project's own runs, drawn with replacement.

    python scripts/measure_coverage.py                          # writes results/coverage.md, some minutes
    python scripts/measure_coverage.py --samples 100 --questions 50 --trials 1 --out /tmp/coverage.md

A run is taken for everything there is: what it has on the whole is the truth, and samples of n of its
questions are comparisons that know only a part. Of every kind of interval that is printed: which share
of the samples has the truth in it. Where a run has too few questions for one (p95), none is printed.

The committed runs have one trial. Samples with more take a trial of a question from its own row (`OWN`)
or else from that of any other question, which leaves every truth as it is; two trials correlate with OWN²
then, as two runs of the same questions do (hotpotqa-qwen-1.5b and -100: 0.76 to 0.81 for tokens).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.quantiles import quantile_interval
from rewoo_bench.results import load
from rewoo_bench.stats import (
    Interval,
    difference_of_means,
    difference_of_proportions,
    geometric_mean_ratio,
    mean_of,
    proportion,
    ratio_of_means,
)

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
OWN = 0.9  # share of trials that a question has of its own
ENOUGH = 0.90  # less is marked


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of two architectures, the same questions and trials in both; `questions` are those of the rows."""

    right: tuple[Floats, Floats]
    f1: tuple[Floats, Floats]
    tokens: tuple[Floats, Floats]
    latency: tuple[Floats, Floats]
    questions: NDArray[np.int64] | None = None

    def drawn(self, rows: NDArray[np.int64], questions: NDArray[np.int64] | None) -> Rows:
        columns = (self.right, self.f1, self.tokens, self.latency)
        return Rows(*((a[rows], b[rows]) for a, b in columns), questions)  # type: ignore[misc]


def population(run: str, architecture: str) -> Rows:
    """The questions of a committed run that neither the baseline nor the other architecture failed."""
    table = load(RESULTS / "models" / run)
    columns = ["exact_match", "f1", "total_tokens", "latency_s"]
    sides = [table[table["architecture"] == name].set_index("example_id")[columns] for name in (BASELINE, architecture)]
    both = sides[0].dropna().index.intersection(sides[1].dropna().index)
    a, b = (side.loc[both].astype(float) for side in sides)
    return Rows(*((a[name].to_numpy(), b[name].to_numpy()) for name in columns))  # type: ignore[arg-type]


def sample(rows: Rows, n: int, trials: int, draw: np.random.Generator) -> Rows:
    """So many questions with so many trials each."""
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
    "p50 latency": lambda r: quantile_interval(r.latency[1], 0.5, clusters=r.questions),
    "p95 latency": lambda r: quantile_interval(r.latency[1], 0.95, clusters=r.questions),
}


def coverage(
    rows: Rows, n: int, trials: int, samples: int, kinds: Mapping[str, Callable[[Rows], Interval]] = KINDS
) -> dict[str, float]:
    """Share of samples whose interval holds the truth, by kind; NaN where most samples have none to print."""
    truth = {name: kind(rows).estimate for name, kind in kinds.items()}
    held = dict.fromkeys(kinds, 0)
    printed = dict.fromkeys(kinds, 0)
    draw = np.random.default_rng([n, trials])
    for _ in range(samples):
        drawn = sample(rows, n, trials, draw)
        for name, kind in kinds.items():
            found = kind(drawn)
            if math.isfinite(found.low) and math.isfinite(found.high):
                printed[name] += 1
                held[name] += found.low <= truth[name] <= found.high
    return {name: held[name] / printed[name] if printed[name] > samples / 2 else math.nan for name in kinds}


def document(cells: Mapping[tuple[int, int], Mapping[str, Mapping[str, float]]], samples: int) -> str:
    """results/coverage.md: `cells` has for trials and n, and there for each run, the coverage of each kind."""
    parts = [
        "# Coverage of the intervals",
        "",
        "Written by scripts/measure_coverage.py; don't edit.",
        "",
        f"Share of {samples:,} samples of n questions, drawn with replacement from committed runs, whose 95% interval "
        f"holds what the whole run has (standard error near 95%: {math.sqrt(0.95 * 0.05 / samples):.1%}). "
        f"**Bold** is under {ENOUGH:.0%}: such an interval is too narrow. A dash: with so few questions no interval is "
        "printed, and no estimate either. Differences and ratios are those of an architecture to rewoo, the rest is of "
        f"the architecture. Where there are trials, two of a question correlate with {OWN**2:.2f}.",
        "",
        "## The lowest of all runs, and the median",
        "",
        *_markdown(["trials", "n", *KINDS], _lowest(cells)),
    ]
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
