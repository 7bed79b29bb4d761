"""How often intervals and tests are right, where the truth is known: writes results/coverage.md.

    python scripts/measure_coverage.py                        # six to twelve minutes on one core
    python scripts/measure_coverage.py --samples 100 --out page.md

A run of tests/golden/models is a population: its values are the truth, and n of its questions drawn with replacement
are a sample. Populations with heavier tails and recommendations are simulated. Every cell has a random generator of its
own, seeded by `--seed`, its place and n.

These runs have one trial. Samples with more take a trial from the question's own row with probability `OWN`,
else from a random question. This changes no truth, and two trials correlate with OWN², as two runs of the same
questions do (hotpotqa-qwen-1.5b and -100: 0.76 to 0.81 for tokens).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.prices import priced_rows
from rewoo_bench.analysis.stats.paired import (
    FEW,
    Interval,
    difference_of_proportions,
    makers_of,
    mean_of,
    proportion,
    quantile_interval,
    ratio_of_means,
)
from rewoo_bench.analysis.stats.solved import LEAST_SOLVED, per_solved, ratio_per_solved
from rewoo_bench.analysis.stats.tests import mcnemar_exact, minimum_detectable_difference
from rewoo_bench.runs.folder import load
from rewoo_bench.text.tables import markdown_table

Floats = NDArray[np.float64]
ROOT = Path(__file__).parents[1]
RESULTS, MODELS = ROOT / "results", ROOT / "tests" / "golden" / "models"
BASELINE = "rewoo"
PRICE = "openai"
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
QUESTIONS = (20, 50, 100, 300)
LEAST = 50  # questions from which on the goal is held
COLUMNS = ("exact_match", "f1", "total_tokens", "cost_usd", "latency_s")


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of the baseline and of an architecture on the same questions; `questions` are those of the rows."""

    columns: Mapping[str, tuple[Floats, Floats]]
    questions: NDArray[np.int64] | None = None

    @property
    def asked(self) -> int:
        """How many rows there are: the questions of a run."""
        return len(self.columns["total_tokens"][0])


def population(run: str, architecture: str) -> Rows:
    """The questions of a run that neither the baseline nor the other architecture failed."""
    folder = MODELS / run
    table = load(folder)
    table = table.assign(cost_usd=priced_rows([folder], table, [[PRICE]])[0].usd)
    sides = [table[table["architecture"] == name].set_index("example_id") for name in (BASELINE, architecture)]
    known = [side[side["exact_match"].notna()].index for side in sides]
    a, b = (side.loc[known[0].intersection(known[1])] for side in sides)
    values = {name: tuple(side[name].to_numpy(float, na_value=math.nan) for side in (a, b)) for name in COLUMNS}
    return Rows(values)  # type: ignore[arg-type]


def sample(rows: Rows, n: int, trials: int, draw: np.random.Generator) -> Rows:
    """A sample of n questions with the given number of trials each."""
    known = rows.asked
    own = draw.integers(known, size=(n, 1))
    taken = own
    if trials > 1:
        other = draw.integers(known, size=(n, trials))
        taken = np.where(draw.random((n, trials)) < OWN, own, other)
    columns = {name: (a[taken.ravel()], b[taken.ravel()]) for name, (a, b) in rows.columns.items()}
    return Rows(columns, np.repeat(np.arange(n), trials) if trials > 1 else None)


def _latency(rows: Rows) -> Interval:
    """The median; not measured where a latency is missing: of questions that were begun in an earlier session."""
    values = rows.columns["latency_s"][1]
    if np.isnan(values).any():
        return Interval(math.nan, math.nan, math.nan, 0)
    found = quantile_interval(values, 0.5, clusters=rows.questions)
    return Interval(float(np.quantile(values, 0.5, method="inverted_cdf")), found.low, found.high, found.n)


# The intervals of the second architecture, or of it beside the baseline.
KINDS: Mapping[str, Callable[[Rows], Interval]] = {
    "EM": lambda r: proportion(r.columns["exact_match"][1], clusters=r.questions),
    "EM difference": lambda r: difference_of_proportions(*r.columns["exact_match"], clusters=r.questions),
    "tokens": lambda r: mean_of(r.columns["total_tokens"][1], clusters=r.questions),
    "token ratio": lambda r: ratio_of_means(*r.columns["total_tokens"], clusters=r.questions),
    "cost": lambda r: mean_of(r.columns["cost_usd"][1], clusters=r.questions),
    "F1": lambda r: mean_of(r.columns["f1"][1], ends=(0.0, 1.0), clusters=r.questions),
    "tokens per solved": lambda r: per_solved(r.columns["total_tokens"][1], r.columns["exact_match"][1],
                                              clusters=r.questions),
    "latency p50": _latency,
}  # fmt: skip


class Held(NamedTuple):
    """Shares of the samples of a cell."""

    every: float = math.nan
    """With the truth in their interval; NaN where there is no truth, or no such interval."""
    unmarked: float = math.nan
    """The same of the intervals without the mark of a rare event; NaN where fewer than a tenth have none."""
    marked: float = math.nan


Cells = Mapping[str, Mapping[str, Held]]
"""By population and kind."""


def coverage(rows: Rows, n: int, trials: int, samples: int, seed: int = 0) -> dict[str, Held]:
    """How often each kind of interval holds the truth."""
    truth = {name: kind(rows).estimate for name, kind in KINDS.items()}
    known = {name: value for name, value in truth.items() if math.isfinite(value)}
    found: dict[str, list[tuple[bool, bool]]] = {name: [] for name in known}
    draw = np.random.default_rng([seed, n, trials])
    for _ in range(samples):
        drawn = sample(rows, n, trials, draw)
        for name, value in known.items():
            interval = KINDS[name](drawn)
            found[name].append((interval.low <= value <= interval.high, interval.rare))
    return {name: _held(np.array(found[name])) if name in found else Held() for name in KINDS}


def _held(found: NDArray[np.bool_]) -> Held:
    held, rare = found.T
    unmarked = float(held[~rare].mean()) if (~rare).mean() >= 0.1 else math.nan
    return Held(float(held.mean()), unmarked, float(rare.mean()))


def over_populations(cells: Mapping[tuple[int, int], Cells]) -> Iterator[list[str]]:
    """For each kind of interval: the lowest coverage, and populations with less than 93%, by n and trials."""
    for kind in KINDS:
        yield [kind, *(counted(held[kind].every for held in each.values()) for each in cells.values())]


def counted(shares: Iterable[float]) -> str:
    """`66% (12/25)`, or `94%` where none is below 93%."""
    known = np.array([share for share in shares if not math.isnan(share)])
    if not len(known):
        return "-"
    below = (known < 0.93).sum()
    return f"{known.min():.0%} ({below}/{len(known)})" if below else f"{known.min():.0%}"


def expected(rows: Rows, n: int) -> float:
    """How many of n questions make the spread of the token ratio, of those that make the population's."""
    return makers_of(_apart(*rows.columns["total_tokens"])) * n / rows.asked


def _apart(a: Floats, b: Floats) -> Floats:
    """How far each question moves the logarithm of mean(b) / mean(a)."""
    moved: Floats = b / b.mean() - a / a.mean()
    return moved


# Tokens of one architecture, with a tail; the truth is the mean. The other's are lognormal with sigma 0.35.
TAILS: Mapping[str, tuple[Callable[[np.random.Generator, int], Floats], float]] = {
    "1% of questions at 10 times": (lambda draw, n: _events(draw, n, 0.01, 10), 1.09 * math.exp(0.3**2 / 2)),
    "3% of questions at 20 times": (lambda draw, n: _events(draw, n, 0.03, 20), 1.57 * math.exp(0.3**2 / 2)),
    "lognormal, sigma 1": (lambda draw, n: draw.lognormal(0, 1, n), math.exp(0.5)),
    "lognormal, sigma 1.5": (lambda draw, n: draw.lognormal(0, 1.5, n), math.exp(1.125)),
    "Pareto, exponent 2.5": (lambda draw, n: 1 + draw.pareto(2.5, n), 2.5 / 1.5),
}


def _events(draw: np.random.Generator, n: int, share: float, times: float) -> Floats:
    costs: Floats = draw.lognormal(0, 0.3, n) * np.where(draw.random(n) < share, times, 1)
    return costs


def of_tail(name: str, n: int, samples: int, seed: int) -> tuple[float, float]:
    """Coverage of the token ratio among intervals without a mark, and the share that is marked."""
    make, mean = TAILS[name]
    truth, held, marked = mean / math.exp(0.35**2 / 2), 0, 0
    draw = np.random.default_rng([seed, n, list(TAILS).index(name)])
    for _ in range(samples):
        found = ratio_of_means(draw.lognormal(0, 0.35, n), make(draw, n))
        marked += found.rare
        held += not found.rare and found.low <= truth <= found.high
    return held / (samples - marked) if marked < samples else math.nan, marked / samples


def of_rare_answers(share: float, n: int, samples: int, seed: int) -> list[float]:
    """Coverage of EM with three trials a question, for correlations of two trials from 0.1 to 1."""
    found = []
    for correlation in (0.1, 0.5, 1.0):
        draw = np.random.default_rng([seed, n, round(1000 * share), round(10 * correlation)])
        held = 0
        for _ in range(samples):
            own, other = draw.random((n, 1)) < share, draw.random((n, 3)) < share
            answers = np.where(draw.random((n, 3)) < math.sqrt(correlation), own, other)
            interval = proportion(answers.ravel(), clusters=np.repeat(np.arange(n), 3))
            held += interval.low <= share <= interval.high
        found.append(held / samples)
    return found


SOLVED = ((1, 4), (5, 9), (10, 14), (15, 19))


def of_solved(samples: int, seed: int) -> list[float]:
    """Coverage of the ratio per solved question, for numbers of questions that the second system solved (`SOLVED`).

    It takes as many tokens as the first, and solves a part of what that one solves.
    """
    draw = np.random.default_rng([seed, 3])
    held: dict[tuple[int, int], list[bool]] = {group: [] for group in SOLVED}
    for n, share, part in product((20, 50, 100), (0.05, 0.1, 0.2, 0.3, 0.5), (0.5, 0.7, 0.85)):
        for _ in range(samples):
            first = draw.random(n) < share
            second = first & (draw.random(n) < part)
            a, b = draw.lognormal(0, 0.3, n) * draw.lognormal(0, 0.2, (2, n))
            for least, most in SOLVED:
                if least <= second.sum() <= most:
                    found = ratio_per_solved((a, first), (b, second), least=1)
                    held[least, most].append(found.low <= 1 / part <= found.high)
    return [float(np.mean(each)) for each in held.values()]


TESTS = 9  # of a family: EM, tokens and dollars of three pairs; Holm's first step is at 0.05 by their number


def power(n: int, share: float, difference: float, level: float, samples: int, seed: int) -> float:
    """How often the exact McNemar test shows a difference, of paired answers with this share of discordant pairs."""
    draw, share = np.random.default_rng([seed, n, round(100 * share)]), max(share, difference)
    shown = 0
    for _ in range(samples):
        lot = draw.random(n)
        only_b, discordant = lot < (share + difference) / 2, lot < share
        shown += mcnemar_exact(discordant & ~only_b, only_b).p <= level
    return shown / samples


_TEXT = """\
# Coverage of the intervals

**Most 95% intervals hold the truth about 95 times in 100. Those of tokens and dollars are too narrow where a sample \
lacks a rare, dear question.** `python scripts/measure_coverage.py` writes this page (seed {seed}).

Each architecture beside {baseline} in a run of tests/golden/models is a population, {populations} in all, of which we \
draw n questions {samples:,} times. A cell has the worst coverage, and how many populations are below 93%.

{committed}

{verdict}

## The ratio of tokens

{goal}

{ratio}

Expected are dear questions, which make the spread. A sample without them has a narrow interval and no mark `?`. So \
`compare` says which events may be missing.

## Heavier tails

Coverage of ratios without the mark, and in brackets samples with it:

{tails}

## Other checks

{others}

So `compare` shows no ratio per solved question where either side solved fewer than {least_solved}.
"""


def document(samples: int, tests: int, seed: int) -> str:
    """results/coverage.md."""
    populations = {f"{run} {name}": population(run, name) for run, names in RUNS.items() for name in names}
    cells = {
        (n, trials): {name: coverage(rows, n, trials, samples, seed) for name, rows in populations.items()}
        for n, trials in (*((n, 1) for n in QUESTIONS), (50, 3))
    }
    goal = {key: each for key, each in cells.items() if key[0] >= LEAST}
    rare = [of_rare_answers(share, n, samples, seed) for share in (0.01, 0.02) for n in QUESTIONS]
    shares = [share for each in rare for share in each]
    shown = [
        power(n, share, minimum_detectable_difference(share, n, level), level, tests, seed)
        for n in QUESTIONS[1:]
        for share in (0.1, 0.25)
        for level in (0.05, 0.05 / TESTS)
    ]
    solved = zip(SOLVED, of_solved(samples // 5, seed), strict=True)
    tails = [[name, *(_of_tail(*of_tail(name, n, samples, seed)) for n in QUESTIONS)] for name in TAILS]
    sizes = {key: _size(*key) for key in cells}
    row = "ratio per solved question, the second solved"
    others = [
        *([f"{row} {low} to {high}", _share(held)] for (low, high), held in solved),
        ["EM of 1 and 2%, three trials", f"{min(shares):.1%} to {max(shares):.1%}"],
        ["McNemar's test shows a detectable difference (aim 0.80)", f"{min(shown):.2f} to {max(shown):.2f}"],
    ]
    return _TEXT.format(
        seed=seed,
        samples=samples,
        baseline=BASELINE,
        populations=len(populations),
        committed=_table(["n", *sizes.values()], [*over_populations(cells)]),
        verdict=_verdict(goal),
        goal=_goal(goal, populations),
        ratio=_table(["n", *(sizes[key] for key in goal)], [*_of_ratio(goal, populations)]),
        tails=_table(["n", *map(str, QUESTIONS)], tails),
        others=_table(["check", "coverage"], others),
        least_solved=LEAST_SOLVED,
    )


def _of_ratio(cells: Mapping[tuple[int, int], Cells], rows: Mapping[str, Rows]) -> Iterator[list[str]]:
    """The table of the token ratio, by what is known of its cells."""
    ratios = {key: {name: held["token ratio"] for name, held in each.items()} for key, each in cells.items()}
    yield ["samples without a mark", *(counted(held.unmarked for held in each.values()) for each in ratios.values())]
    for label, enough in ((f"at least {FEW:.0f} expected", True), ("fewer expected", False)):
        shown = [
            counted(held.every for name, held in each.items() if (expected(rows[name], key[0]) >= FEW) == enough)
            for key, each in ratios.items()
        ]
        yield [label, *shown]


def _goal(cells: Mapping[tuple[int, int], Cells], rows: Mapping[str, Rows]) -> str:
    """Whether the goal is reached, and by how much it is missed."""
    every = {(name, key): each[name]["token ratio"].every for key, each in cells.items() for name in each}
    enough = {cell: share for cell, share in every.items() if expected(rows[cell[0]], cell[1][0]) >= FEW}
    shares = np.array([*enough.values()])
    inside, under = ((shares >= 0.93) & (shares <= 0.97)).mean(), (shares < 0.9).sum()
    of_all = np.array([*every.values()])
    good = ((of_all >= 0.93) & (of_all <= 0.97)).mean()
    is_missed = inside < 0.9 or under
    return (
        f"The goal is {'missed' if is_missed else 'reached'}: 93 to 97% in nine of ten cells from n = {LEAST}, none "
        f"under 90%. With {FEW:.0f} or more expected {inside:.0%} are there, the lowest at {shares.min():.1%}. "
        f"Of all, {good:.0%} are, the lowest at {of_all.min():.1%}."
    )


def _verdict(cells: Mapping[tuple[int, int], Cells]) -> str:
    """How many cells of all kinds are where they should be."""
    kinds = (held[kind].every for each in cells.values() for held in each.values() for kind in KINDS)
    found = np.array([share for share in kinds if not math.isnan(share)])
    good = np.mean((found >= 0.93) & (found <= 0.97))
    return f"From n = {LEAST} on, {good:.0%} of all cells are at 93 to 97% and {np.mean(found < 0.93):.0%} below."


def _size(n: int, trials: int) -> str:
    return f"{n}, {trials} trials" if trials > 1 else f"{n}"


def _of_tail(held: float, marked: float) -> str:
    return f"{_share(held)} ({marked:.0%})"


def _share(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.1%}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(markdown_table([header, *rows]))


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000, help="of a cell")
    parser.add_argument("--tests", type=int, default=4_000, help="simulated comparisons of a detectable difference")
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--out", type=Path, default=RESULTS / "coverage.md")
    flags = parser.parse_args()
    flags.out.write_text(document(flags.samples, flags.tests, flags.seed), encoding="utf-8")
    print(f"{flags.out} written (seed {flags.seed})")


if __name__ == "__main__":
    main()
