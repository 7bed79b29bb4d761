"""Do 95% intervals hold the truth 95 times in 100? Simulated comparisons whose truth is known.

    python scripts/simulate_intervals.py                        # 2,000 comparisons a cell, some minutes
    python scripts/simulate_intervals.py --comparisons 200 --questions 50

A question has a difficulty and a length that both architectures share and one that each has for
itself; every trial adds its own. Tokens are lognormal: one architecture as skewed as a long ReAct
(coefficient of variation 0.7 to 0.8), the other less. F1 is 0, 1 or a share in between.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.stats import paired as stats
from rewoo_bench.stats.paired import Interval
from rewoo_bench.text.tables import text_table

Floats = NDArray[np.float64]
SHARED, OWN, TRIAL = 1.0, 0.5, 1.0  # standard deviations of what makes an answer right
EASE = (-0.4, -0.1)  # of the first architecture and the second; below 0 most answers are wrong
LENGTH = (8.0, 7.2)  # mean logarithm of tokens
SPREAD = (0.65, 0.35)  # standard deviation of the logarithm of a question's tokens
WOBBLE = 0.2  # the same between the trials of one question
ALIKE = 0.5  # correlation of the two lengths of a question
PARTLY = 0.3  # share of wrong answers that have an F1 anyway, drawn evenly


@dataclass(frozen=True, slots=True)
class Sample:
    """Paired columns, a row for each question and trial."""

    right: tuple[Floats, Floats]
    f1: tuple[Floats, Floats]
    tokens: tuple[Floats, Floats]
    questions: NDArray[np.int64] | None


def sample(draw: np.random.Generator, questions: int, trials: int) -> Sample:
    """One comparison's rows."""
    shape = (questions, trials)
    shared = SHARED * draw.standard_normal((questions, 1))
    right: list[Floats] = []
    f1: list[Floats] = []
    for ease in EASE:
        skill = ease + shared + OWN * draw.standard_normal((questions, 1)) + TRIAL * draw.standard_normal(shape)
        right.append((skill > 0).astype(np.float64))
        partly = (draw.random(shape) < PARTLY) * draw.random(shape)
        f1.append(np.where(skill > 0, 1.0, partly))
    lengths = draw.multivariate_normal([0, 0], [[1, ALIKE], [ALIKE, 1]], size=questions)
    tokens: list[Floats] = [
        np.exp(LENGTH[i] + SPREAD[i] * lengths[:, i, None] + WOBBLE * draw.standard_normal(shape)).round()
        for i in range(2)
    ]
    labels = np.repeat(np.arange(questions), trials) if trials > 1 else None
    return Sample(_flat(right), _flat(f1), _flat(tokens), labels)


def _flat(columns: list[Floats]) -> tuple[Floats, Floats]:
    return columns[0].ravel(), columns[1].ravel()


def truths() -> dict[str, float]:
    """What the intervals should hold."""
    spread = math.sqrt(SHARED**2 + OWN**2 + TRIAL**2)
    first, second = (0.5 * math.erfc(-ease / spread / math.sqrt(2)) for ease in EASE)
    logs = [LENGTH[i] + (SPREAD[i] ** 2 + WOBBLE**2) / 2 for i in range(2)]
    return {
        "EM difference": second - first,
        "F1 difference": (second - first) * (1 - PARTLY / 2),
        "token ratio": math.exp(logs[1] - logs[0]),
        "geometric mean ratio": math.exp(LENGTH[1] - LENGTH[0]),
    }


def intervals(rows: Sample) -> dict[str, Interval]:
    """Every interval of one comparison."""
    questions = rows.questions
    return {
        "EM difference": stats.difference_of_proportions(*rows.right, clusters=questions),
        "F1 difference": stats.difference_of_means(*rows.f1, ends=(0.0, 1.0), clusters=questions),
        "token ratio": stats.ratio_of_means(*rows.tokens, clusters=questions),
        "geometric mean ratio": stats.geometric_mean_ratio(*rows.tokens, questions),
    }


def coverage(questions: int, trials: int, comparisons: int, seed: int = 0) -> dict[str, float]:
    """Share of comparisons whose interval holds the truth, by figure."""
    expected = truths()
    hits = dict.fromkeys(expected, 0)
    draw = np.random.default_rng([seed, questions, trials])
    for _ in range(comparisons):
        for name, found in intervals(sample(draw, questions, trials)).items():
            hits[name] += found.low <= expected[name] <= found.high
    return {name: count / comparisons for name, count in hits.items()}


def main() -> None:
    """Prints a row for each number of questions and trials."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=2_000)
    parser.add_argument("--questions", type=int, nargs="+", default=[50, 100, 500])
    parser.add_argument("--trials", type=int, nargs="+", default=[1, 3])
    flags = parser.parse_args()
    cells = [["questions", "trials", *truths()]]
    for trials in flags.trials:
        for questions in flags.questions:
            shares = coverage(questions, trials, flags.comparisons)
            cells.append([f"{questions}", f"{trials}", *(f"{share:.1%}" for share in shares.values())])
    error = math.sqrt(0.95 * 0.05 / flags.comparisons)
    print(f"coverage of 95% intervals in {flags.comparisons:,} simulated comparisons (standard error {error:.1%})\n")
    print("\n".join(text_table(cells)))


if __name__ == "__main__":
    main()
