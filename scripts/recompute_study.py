"""Every figure of a published study computed again from its published rows; nothing of rewoo_bench is imported.

    python scripts/recompute_study.py results/study     # exit code 1 where a figure differs

It needs `pip install pandas pyarrow scipy` and a clone, whose price sheets it reads. Printed are how many figures of
each kind agree, and each that doesn't. A name that says nothing to this script is a failure.

A figure agrees where its estimate, both bounds and its number of questions are the published ones after rounding to 6
digits. Two columns of outcomes.csv are found in steps, and may be off by one of them: p of non-inferiority (0.000001,
and p by Holm by as much for each outcome of its family) and `detectable` (0.0001).

The formulas are those of results/statistics.md and the prices those of rewoo_bench/config/price_sheets.py, written
a second time.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import StringIO
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import binom, gamma, norm, t

Numbers = np.ndarray
Estimate = tuple[float, float, float]
"""A figure and the ends of its interval."""

SHEETS = Path(__file__).parents[1] / "rewoo_bench" / "config" / "prices"
SHORT = {
    "none": "none:gpt-5-mini",
    "openai": "openai:gpt-5-mini",
    "anthropic-5m": "anthropic:claude-sonnet-4-5",
    "anthropic-1h": "anthropic_1h:claude-sonnet-4-5",
    "gemini": "google:gemini-2.5-flash",
    "deepseek": "deepseek:deepseek-chat",
    "vllm": "vllm:computed",
    "llama.cpp": "llama_cpp:computed",
}
"""Short names of prices: the sheet and the model of each."""
ROW, PAIR = ["architecture", "example_id", "trial"], ["example_id", "trial"]
COUNTS = ("llm_calls", "input_tokens", "output_tokens", "total_tokens")
SCORES = ("exact_match", "judged_correct", "objectives_right", "f1")
COLUMNS = [*ROW, *COUNTS, *SCORES, "cost_usd", "latency_s", "loop_tokens", "oracle", "flags", "stop_reason"]
SHARED = (
    *("shared_question_tokens", "shared_question_age_s", "shared_run_tokens", "shared_run_age_s"),
    *("marked_tokens", "last_marked_tokens", "shared_marked_tokens"),
)
PRICED = ("input_tokens", "output_tokens", "billed_tokens", "billed_output_tokens", *SHARED)
UNPRICED = ("judge", "embedding", "count")
UNCHANGED = "main, these questions"
BOTH_ANSWERED, PER_RIGHT = ", both answered", " a right answer"
"""Behind a ratio's name."""
FEWEST_RIGHT = 15
NORMAL = float(norm.ppf(0.975))
AGREES, DIFFERS, UNKNOWN = "agrees", "DIFFERS", "UNKNOWN"
STEP_OF_P, STEP_OF_DETECTABLE = 1e-6, 1e-4


class CantCompute(Exception):
    """Why a figure can't be computed."""


@dataclass(frozen=True)
class Found:
    """A figure: its kind, its interval, and the number of questions; of a pair also p of no difference."""

    kind: str
    interval: Estimate
    n: int
    p: float = math.nan
    rare: bool = False
    """Whether a rare event may be missing."""


# Intervals of values that are independent.


def wilson(right: float, n: float, quantile: float) -> Estimate:
    """Wilson's score interval (1927) of a share; of 3 or fewer of the rarer kind the bound beside it is Poisson's."""
    p, z = right / n, quantile
    centre, half = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    low, high = (centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n)
    if 0 < right <= 3.5 and p < 0.5:
        low = min(low, gamma.ppf(0.05, right) / n)
    if 0 < n - right <= 3.5 and p > 0.5:
        high = max(high, 1 - gamma.ppf(0.05, n - right) / n)
    return p, low, high


def score_of(more: float, less: float, n: float, delta: float) -> float:
    """Tango's score (1998) of a difference: `more` and `less` of n pairs are those that only one of two got right."""
    first = 2 * n
    second = -more - less + (2 * n - more + less) * delta
    third = -less * delta * (1 - delta)
    q = (math.sqrt(max(second**2 - 4 * first * third, 0.0)) - second) / (2 * first)
    error = math.sqrt(max(n * (2 * q + delta * (1 - delta)), 1e-300))
    return (more - less - n * delta) / error


def score_interval(more: float, less: float, n: float, quantile: float) -> Estimate:
    """The difference of shares, and the differences that the score test doesn't refute."""
    found = (more - less) / n

    def end(side: int) -> float:
        if side * found > 1 - 1e-9:
            return float(side)
        return float(brentq(lambda delta: score_of(more, less, n, delta) + side * quantile, found, side * (1 - 1e-12)))

    return found, end(-1), end(+1)


def makers_of(values: Numbers, least: float = 0.0) -> float:
    """How many values make the spread; none where they differ by rounding alone, of which `least` gives the size."""
    apart = values - values.mean()
    return float((apart**2).sum() ** 2 / (apart**4).sum()) if np.ptp(values) > 1e-9 * least else 0.0


def is_rare(values: Numbers, least: float = 0.0) -> bool:
    """Whether an interval has the mark `?`: a rare event may be missing."""
    return makers_of(values, least) < 3 or len(values) < 20


def extended(values: Numbers, least: float, ends: tuple[float, float] | None = None) -> list[tuple[float, float]]:
    """Mean and standard error with some weight more on the smallest value, and with as much more on the largest.

    The weight is 2 / m, at most 1, where m = (sum of d²)² / (sum of d⁴) of the distances from the mean. With m below 3,
    or fewer than 20 values, it is one value more: at the end of the scale, else 0.75 of the range farther away, and at
    least `least`.
    """
    n, low, high, makers = len(values), values.min(), values.max(), makers_of(values, least)
    weight = min(1.0, 2 / makers) if makers else 1.0
    if is_rare(values, least):
        reach, weight = max(0.75 * (high - low), least), 1.0
        low, high = ends or (low - reach, high + reach)
    found = []
    for end in (low, high):
        weights = np.append(np.ones(n), weight)
        more = np.append(values, end)
        mean = (weights * more).sum() / weights.sum()
        variance = (weights * (more - mean) ** 2).sum() / (weights.sum() - 1)
        found.append((mean, math.sqrt(variance / weights.sum())))
    return found


def bounds(values: Numbers, least: float, ends: tuple[float, float] | None = None) -> tuple[float, float]:
    """Student's 95% bounds of a mean, each with some weight more on the farthest value of its side."""
    (low, below), (high, above) = extended(values, least, ends)
    quantile = t.ppf(0.975, len(values) - 1)
    return low - quantile * below, high + quantile * above


def ratio_of_means(a: Numbers, b: Numbers) -> Estimate:
    """mean(a) / mean(b): the bounds are those of its logarithm, by the delta method."""
    ratio = a.mean() / b.mean()
    low, high = bounds(a / a.mean() - b / b.mean(), 0.5)
    return ratio, ratio * math.exp(low), ratio * math.exp(high)


def mean(values: Numbers) -> Estimate:
    """Of amounts, which are never negative."""
    low, high = bounds(values, 0.25 * values.mean())
    return values.mean(), max(low, 0.0), high


# Intervals and tests. Where a question has several trials, `questions` has the question of each value.


def averages(values: Numbers, questions: Numbers) -> Numbers:
    """The trials of a question are one observation: their mean."""
    _, question = np.unique(questions, return_inverse=True)
    return np.bincount(question, weights=values) / np.bincount(question)


def student(n: int) -> float:
    return float(t.ppf(0.975, n - 1))


def within(interval: Estimate, low: float, high: float) -> Estimate:
    """An interval on a scale."""
    return interval[0], max(interval[1], low), min(interval[2], high)


def rows_worth(means: Numbers, variance: float, rows: int, ends: tuple[float, float]) -> float:
    """How many independent rows tell as much as these means of questions (Rao and Scott 1992).

    `variance` is that of one row. Both have some weight more on a question whose trials are all at the farther end.
    """
    n, makers = len(means), makers_of(means)
    if not makers:
        return n
    end, weight = max(ends, key=lambda end: abs(end - means.mean())), min(1.0, 2 / makers)
    centre = (means.sum() + weight * end) / (n + weight)
    more = weight * (end - centre) ** 2
    of_question = (((means - centre) ** 2).sum() + more) / (n + weight - 1)
    of_row = (n * (variance + (means.mean() - centre) ** 2) + more) / (n + weight)
    return float(min(max(n * of_row / of_question, n), rows))


def share_of(values: Numbers, questions: Numbers) -> Estimate:
    """The share of ones."""
    means = averages(values, questions)
    n, p = len(means), float(means.mean())
    once = wilson(p * n, n, NORMAL)
    if n in (1, len(values)):
        return once
    worth = rows_worth(means, p * (1 - p), len(values), (0.0, 1.0))
    return within(wilson(p * worth, worth, student(n)), *once[1:])  # trials make no interval wider


def discordant(a: Numbers, b: Numbers, questions: Numbers) -> tuple[float, float, float]:
    """Shares of the pairs that only a and only b got right, and how many independent pairs the rows are worth."""
    more, less = averages(a > b, questions), averages(a < b, questions)
    n, p, q = len(more), float(more.mean()), float(less.mean())
    if n in (1, len(a)):
        return p, q, n
    return p, q, rows_worth(more - less, p + q - (p - q) ** 2, len(a), (-1.0, 1.0))


def difference_of(a: Numbers, b: Numbers, questions: Numbers) -> tuple[Estimate, float]:
    """mean(a) - mean(b) of zeros and ones, and p by the exact McNemar test."""
    more, less, worth = discordant(a, b, questions)
    n = len(set(questions))
    once, p = score_interval(more * n, less * n, n, NORMAL), sign_test(a - b, questions)
    if n in (1, len(a)):
        return once, p
    return within(score_interval(more * worth, less * worth, worth, student(n)), *once[1:]), p


def sign_test(differences: Numbers, questions: Numbers) -> float:
    """If whole questions may as well have the other sign: how often their sum is as far from 0 as this one."""
    sums = pd.Series(differences).groupby(questions).sum().to_numpy()
    law = np.ones(1)
    for size in np.abs(sums[sums != 0]).astype(int):
        step = np.zeros(2 * size + 1)
        step[[0, -1]] = 0.5
        law = np.convolve(law, step)
    distances = np.abs(np.arange(len(law)) - len(law) // 2)
    return float(min(1.0, law[distances >= abs(sums.sum()) - 0.5].sum()))


def not_worse_p(a: Numbers, b: Numbers, questions: Numbers, margin: float) -> float:
    """p of "the share of a is below that of b by the margin": below 0.05 where the interval leaves that out."""
    (more, less, worth), n = discordant(a, b, questions), len(set(questions))
    once, all_ = (abs(score_of(more * each, less * each, each, -margin)) for each in (n, worth))
    p = float(2 * norm.sf(once))
    return p if n in (1, len(a)) else min(p, float(2 * t.sf(all_, n - 1)))


def student_bounds(parts: Sequence[tuple[float, float]], n: int) -> tuple[float, float]:
    """The 95% bounds of a mean, from `extended` values."""
    (low, below), (high, above) = parts
    return low - student(n) * below, high + student(n) * above


def student_p(shift: float, parts: Sequence[tuple[float, float]], n: int) -> float:
    """p of "the mean and `shift` are 0", from `extended` values: below 0.05 where the bounds leave that out."""
    (low, below), (high, above) = parts
    distance, error = (shift + low, below) if shift + low > 0 else (-shift - high, above)
    if distance <= 0:
        return 1.0
    return float(2 * t.sf(distance / error, n - 1)) if error else 0.0


def mean_of(values: Numbers) -> Estimate:
    """The mean of amounts."""
    return mean(values) if len(values) > 1 else (float(values[0]), 0.0, math.inf)


def score_mean_of(values: Numbers) -> Estimate:
    """The mean of values from 0 to 1; of nothing but zeros and ones it is a share."""
    return wilson(values.sum(), len(values), NORMAL) if set(values) <= {0, 1} else scale_mean_of(values)


def scale_mean_of(values: Numbers) -> Estimate:
    """The mean of values on a scale from 0 to 1."""
    n, found = len(values), float(values.mean())
    bounds = student_bounds(extended(values, 0.25 * found, (0.0, 1.0)), n) if n > 1 else (0.0, 1.0)
    return within((found, *bounds), 0.0, 1.0)


def ratio_of(a: Numbers, b: Numbers) -> tuple[Estimate, float, bool]:
    """mean(a) / mean(b) of amounts, p of "they are equal", and whether a rare event may be missing."""
    if len(a) < 2 or not a.any() or not b.any():
        return (float(a.sum() / b.sum()) if b.any() else math.inf, 0.0, math.inf), 1.0, False
    apart = a / a.mean() - b / b.mean()
    p = student_p(math.log(a.mean() / b.mean()), extended(apart, 0.5), len(a))
    return ratio_of_means(a, b), p, is_rare(apart, 0.5)


def score_difference_of(a: Numbers, b: Numbers, margin: float = 0.0) -> tuple[Estimate, float, bool]:
    """mean(a) - mean(b) of values from 0 to 1, p of "it is -margin", and whether a rare event may be missing."""
    found, least = float((a - b).mean()), 0.25 * max(a.mean(), b.mean())
    if len(a) < 2:
        return (found, -1.0, 1.0), 1.0, False
    parts = extended(a - b, least, (-1.0, 1.0))
    interval = within((found, *student_bounds(parts, len(a))), -1.0, 1.0)
    return interval, student_p(margin, parts, len(a)), is_rare(a - b, least)


def per_right(amount: Numbers, share: Numbers, design: float) -> Estimate:
    """What a right answer takes: the mean amount over the share of right answers, of questions.

    The interval has all shares that Wilson's score test doesn't refute, with the amounts' variance and their
    covariance with being right in the error. `design` is the variance of a share in variances of one row.
    """
    n, p, varies = len(amount), float(share.mean()), float(amount.std() / amount.mean())
    error_of_mean = student(n) / math.sqrt(n)
    r = float(np.corrcoef(amount, share)[0, 1]) if varies and share.std() else 0.0

    def refuted(x: float) -> float:
        of_share = math.sqrt(max(x * (1 - x), 0.0) * design)
        return (p - x) ** 2 - error_of_mean**2 * (of_share**2 - 2 * r * varies * x * of_share + (varies * x) ** 2)

    room = 1 - varies * error_of_mean
    low = brentq(refuted, 0.0, p * (1 - 1e-9))
    high = brentq(refuted, p * (1 + 1e-9), (1 + 1e-8) / room) if room > 0 else math.inf
    return amount.mean() / p, amount.mean() / high, amount.mean() / low


def ratio_per_right(a: tuple[Numbers, Numbers], b: tuple[Numbers, Numbers], designs: tuple[float, float]) -> Estimate:
    """What a right answer takes of a over what it takes of b, each (amounts, shares of right answers) of questions.

    The two intervals are added in squares on the logarithm, with the correlation of the estimates (Zou and Donner).
    Where either has fewer than 15 right answers there is no interval.
    """
    if min(share.sum() for _, share in (a, b)) < FEWEST_RIGHT:
        of_a, of_b = (amount.mean() / share.mean() if share.any() else math.inf for amount, share in (a, b))
        return of_a / of_b if of_a < math.inf or of_b < math.inf else math.nan, 0.0, math.inf
    (of_a, low_a, high_a), (of_b, low_b, high_b) = (
        per_right(*each, design) for each, design in zip((a, b), designs, strict=True)
    )
    moved = [amount / amount.mean() - share / share.mean() for amount, share in (a, b)]
    both = float(np.corrcoef(*moved)[0, 1])

    def added(one: float, other: float) -> float:
        return math.sqrt(max(one**2 + other**2 - 2 * both * one * other, 0.0))

    low = added(math.log(of_a / low_a), math.log(high_b / of_b))
    high = added(math.log(high_a / of_a), math.log(of_b / low_b))
    return of_a / of_b, of_a / of_b * math.exp(-low), of_a / of_b * math.exp(high)


def power(share: float, difference: float, n: int) -> float:
    """How often the exact McNemar test at 0.05 shows a difference, where so large a share of n pairs is discordant."""
    counts = np.arange(n + 1)
    most = binom.ppf(0.025, counts, 0.5)
    most = np.where(binom.cdf(most, counts, 0.5) <= 0.025, most, most - 1)  # in the minority, for p of 0.05 or less
    one = (1 + difference / share) / 2
    shown = binom.cdf(most, counts, one) + binom.cdf(most, counts, 1 - one)
    return float(binom.pmf(counts, n, share) @ shown)


def detectable(share: float, n: int) -> float:
    """The smallest difference that the exact McNemar test shows 4 times in 5; the share may have to grow with it."""

    def lacking(difference: float) -> float:
        return power(max(share, difference), difference, n) - 0.8

    return float(brentq(lacking, 1e-9, 1.0)) if lacking(1.0) >= 0 else math.inf


def holm(values: pd.Series[float]) -> pd.Series[float]:
    """p values adjusted for their number (Holm 1979)."""
    steps = values.sort_values() * np.arange(len(values), 0, -1)
    return steps.cummax().clip(upper=1.0).reindex(values.index)


# Prices


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens, and the rule of the cache: a fact that its sheet leaves out limits nothing."""

    input: float
    output: float
    read: float
    write: float
    kind: str = ""
    """`automatic`, `explicit`, or none."""
    least: int = 0
    block: int = 1
    lifetime: float = math.inf
    scope: str = "run"
    """Whose prompts may be found: those of all questions, or of the same `question`."""


@cache
def price_of(name: str) -> Price:
    """The price of a short name, SHEET or SHEET:MODEL; of a sheet alone it is that of a short name, else the first."""
    sheet, _, model = SHORT.get(name, name).partition(":")
    sheet = SHORT.get(sheet, sheet).partition(":")[0]
    if not (SHEETS / f"{sheet}.toml").exists():
        raise CantCompute(f"no price sheet {sheet!r}")
    table = tomllib.loads((SHEETS / f"{sheet}.toml").read_text(encoding="utf-8"))
    usual = dict(each.split(":") for each in SHORT.values()).get(sheet, next(iter(table["models"])))
    if (facts := table["models"].get(model or usual)) is None:
        raise CantCompute(f"the price sheet {sheet!r} has no model {model!r}")
    rule = table["cache"][facts["cache"]] if "cache" in facts else {}
    names = {"kind": "kind", "scope": "scope", "block": "block_tokens", "lifetime": "lifetime_s"}
    names["least"] = "minimum_prefix_tokens"
    return Price(
        *(facts["input"], facts["output"]),
        *(facts.get(f"cache_{what}", facts["input"]) for what in ("read", "write")),
        **{ours: rule[theirs] for ours, theirs in names.items() if theirs in rule},
    )


Calls = Mapping[str, Numbers]
"""Columns of calls.parquet, and `before`: tokens more before each prompt."""


def dollars(calls: Calls, price: Price) -> Numbers:
    """Dollars of each call; what failed attempts took is billed, too."""
    cached, written = cached_and_written(calls, price)
    output = np.maximum(calls["billed_output_tokens"], calls["output_tokens"])
    tokens = np.maximum(calls["billed_tokens"] - output, calls["input_tokens"]) + calls["before"]
    usd: Numbers = (tokens - cached - written) * price.input + output * price.output
    usd += cached * price.read + written * price.write
    return usd / 1e6


def cached_and_written(calls: Calls, price: Price) -> tuple[Numbers, Numbers]:
    """Input tokens of each call that the cache has, and those that are written to it."""
    before, tokens = calls["before"], calls["before"] + calls["input_tokens"]
    if not price.kind:
        return 0 * tokens, 0 * tokens
    if price.kind == "explicit":
        found, last = before + marked(calls, price), before + calls["last_marked_tokens"]
    else:
        found, last = before + longest(calls, price), tokens // price.block * price.block
        found = np.where(tokens < price.least, 0, np.minimum(found, tokens - 1) // price.block * price.block)
    found = np.where(found < price.least, 0, found)
    return found, np.where(last < price.least, 0, np.maximum(last - found, 0))


def longest(calls: Calls, price: Price) -> Numbers:
    """Tokens of the longest prefix that the cache has."""
    of_question, of_run = (
        in_time(calls[f"{of}_tokens"], calls[f"{of}_age_s"], price) for of in ("shared_question", "shared_run")
    )
    found: Numbers = of_question if price.scope == "question" else np.maximum(of_question, of_run)
    return found


def marked(calls: Calls, price: Price) -> Numbers:
    """Tokens up to the last mark that the cache has, else to the first; 1 may be missing of a prefix, by rounding."""
    first, last, of_run = (calls[f"{name}_tokens"] for name in ("marked", "shared_marked", "shared_run"))
    run_age, question_age = calls["shared_run_age_s"], calls["shared_question_age_s"]
    if price.scope == "question":
        of_run, run_age = calls["shared_question_tokens"], question_age
        last = np.where(last <= of_run + 1, last, 0)
    to_last = in_time(last, np.where(last <= of_run + 1, run_age, question_age), price)
    to_first = in_time(np.where(first <= of_run + 1, first, 0), run_age, price)
    found: Numbers = np.maximum(to_last, to_first)
    return found


def in_time(tokens: Numbers, age: Numbers, price: Price) -> Numbers:
    return np.where(age > price.lifetime, 0, tokens)


# Runs


@dataclass(frozen=True)
class Run:
    """A published run."""

    folder: Path
    only: frozenset[tuple[str, int]] | None = None
    """The questions and trials that are meant, where that isn't all."""

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "run.json").read_text(encoding="utf-8")))

    @cached_property
    def names(self) -> dict[str, str]:
        """Architectures as the study declares them, and as rows have them."""
        made = [each["name"] for each in self.manifest["architectures"]]
        return dict(zip(self.manifest["options"]["architectures"], made, strict=True))

    @cached_property
    def finished(self) -> pd.DataFrame:
        """Rows of the questions and trials that all architectures have finished."""
        rows = pd.read_parquet(self.folder / "questions.parquet", columns=COLUMNS)
        return rows[rows.groupby(PAIR)["architecture"].transform("nunique") == len(self.names)]

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Those that count: without those that the infrastructure failed, or that no metered call answered."""
        unmetered = self.finished["flags"].map(lambda flags: flags is not None and "unmetered" in flags)
        return self.finished[self.finished["exact_match"].notna() & ~unmetered].reset_index(drop=True)

    @cached_property
    def calls(self) -> dict[str, Numbers]:
        """Columns of the calls that these rows pay for, and the `row` of each."""
        table = pd.read_parquet(self.folder / "calls.parquet", columns=[*ROW, "kind", "role", *PRICED])
        row = pd.MultiIndex.from_frame(self.rows[ROW]).get_indexer(pd.MultiIndex.from_frame(table[ROW]))
        is_paid = ((table["kind"] == "model") & ~table["role"].isin(UNPRICED)).to_numpy() & (row >= 0)
        calls = {name: table[name].to_numpy(dtype=float)[is_paid] for name in PRICED}
        for name in SHARED:  # by a call that failed, nothing
            calls[name] = np.where(calls["input_tokens"] == 0, 0, calls[name])
        return {**calls, "row": row[is_paid]}


@cache
def dollars_of(run: Run, name: str) -> pd.Series[float]:
    """Dollars of each row under a price, NaN where they aren't known; `openai, 1,024 tokens before` is one, too."""
    price, _, more = name.removesuffix(" tokens before").partition(", ")
    before = int(more.replace(",", "") or 0) * (run.calls["input_tokens"] > 0)
    usd = dollars({**run.calls, "before": before}, price_of(price))
    return pd.Series(np.bincount(run.calls["row"], weights=usd, minlength=len(run.rows)))


def column(run: Run, name: str) -> pd.Series[float]:
    """Numbers of all rows: a column, or dollars under a price."""
    return (run.rows[name] if name in run.rows else dollars_of(run, name)).astype(float)


# Figures


@cache
def rows_of(run: Run, name: str) -> pd.DataFrame:
    """The rows of an architecture, by its name in the study."""
    return run.rows[run.rows["architecture"] == run.names[name]]


def of_architecture(run: Run, name: str, what: str) -> Found:
    """A mean of an architecture."""
    rows = rows_of(run, name)
    questions = rows["example_id"].to_numpy(dtype=str)
    if what == "flips" or what.startswith("pass^"):
        return of_trials(rows, what)
    if what == "in loops":
        loops, tokens = (averages(rows[f"{of}_tokens"].to_numpy(float), questions) for of in ("loop", "total"))
        return Found("shares in loops", within(ratio_of(loops, tokens)[0], 0.0, 1.0), len(loops))
    if what == "unanswered":
        ended = (rows["stop_reason"] != "answered").to_numpy(dtype=float)
        return Found("shares without an answer", share_of(ended, questions), len(set(questions)))
    values = column(run, what)[rows.index].to_numpy()
    if what in ("exact_match", "judged_correct"):
        known = np.isfinite(values)  # a judge may have failed
        asked = questions[known]
        return Found(f"means: {what.replace('_', ' ')}", share_of(values[known], asked), len(set(asked)))
    if what == "objectives_right":
        means = averages(values, questions)
        return Found("means: questions of a task right", scale_mean_of(means), len(means))
    kind, scale = ("tokens and calls", 1) if what in COUNTS else ("dollars per 1,000 questions", 1000)
    means = averages(values, questions)
    return Found(f"means: {kind}", mean_of(scale * means), len(means))


def of_trials(rows: pd.DataFrame, what: str) -> Found:
    """The chance that k trials of a question are all right (`pass^k`), or the share of those with both (`flips`)."""
    counts = rows["exact_match"].astype(int).groupby(rows["example_id"]).agg(["sum", "count"])
    counts = counts[counts["count"] >= (2 if what == "flips" else int(what.removeprefix("pass^")))]
    right, trials = counts["sum"].tolist(), counts["count"].tolist()
    if what == "flips":
        values = [float(0 < c < n) for c, n in zip(right, trials, strict=True)]
    else:
        k = int(what.removeprefix("pass^"))
        values = [math.comb(c, k) / math.comb(n, k) for c, n in zip(right, trials, strict=True)]
    return Found("pass^k and flips", score_mean_of(np.array(values)), len(values))


def both(run: Run, first: str, second: str, what: str, among: set[str] | None = None) -> tuple[Numbers, ...]:
    """Numbers of two architectures, and their questions, where both have a number, `among` some questions.

    Dollars have to be known of all pairs; an oracle's seconds are no model's.
    """
    places, questions = pairs_of(run, first, second)
    if among is not None:
        is_meant = np.isin(questions, sorted(among))
        places, questions = places[:, is_meant], questions[is_meant]
    a, b = column(run, what).to_numpy()[places]
    known = np.isfinite(a) & np.isfinite(b)
    is_dollars = what == "cost_usd" or what not in run.rows
    if (is_dollars and not known.all()) or (what == "latency_s" and run.rows["oracle"].eq(True).any()):
        known[:] = False
    return a[known], b[known], questions[known]


@cache
def pairs_of(run: Run, first: str, second: str) -> tuple[Numbers, Numbers]:
    """Places of the rows of two architectures that answered the same question and trial, and these questions."""
    sides = [rows_of(run, name)[PAIR].reset_index(names=name) for name in (first, second)]
    pairs = sides[0].merge(sides[1], on=PAIR)
    if run.only is not None:
        pairs = pairs[[key in run.only for key in pairs[PAIR].itertuples(index=False, name=None)]]
    return pairs[[first, second]].to_numpy().T, pairs["example_id"].to_numpy(dtype=str)


def of_pair(run: Run, first: str, second: str, what: str, among: set[str] | None = None) -> Found:
    """A ratio or a difference of two architectures."""
    if what.endswith(PER_RIGHT):
        return of_right_answers(run, first, second, what.removesuffix(PER_RIGHT), among)
    if what.endswith(BOTH_ANSWERED):
        what = what.removesuffix(BOTH_ANSWERED)
        rows = run.rows[run.rows["architecture"].isin([run.names[first], run.names[second]])]
        answered = (rows["stop_reason"] == "answered").groupby([rows[key] for key in PAIR]).all()
        run = replace(run, only=frozenset(answered.index[answered]))
    a, b, questions = both(run, first, second, what, among)
    n = len(set(questions))
    if not n:
        return Found("nothing", (math.nan, -math.inf, math.inf), 0)
    if what == "exact_match":
        interval, p = difference_of(a, b, questions)
        return Found("differences of exact match", interval, n, p)
    measured = score_difference_of if what == "f1" else ratio_of
    interval, p, rare = measured(averages(a, questions), averages(b, questions))
    kind = "tokens" if what in COUNTS else "dollars, with tokens before" if "before" in what else "dollars"
    return Found(f"ratios: {kind}", interval, n, p, rare)


def of_right_answers(run: Run, first: str, second: str, what: str, among: set[str] | None) -> Found:
    """The ratio of what two architectures take for each right answer."""
    amounts, right = (both(run, first, second, each, among) for each in (what, "exact_match"))
    questions = amounts[2]

    def side(which: int) -> tuple[Numbers, Numbers]:
        return averages(amounts[which], questions), averages(right[which], questions)

    def design(which: int) -> float:
        rows, (_, means) = right[which], side(which)
        p, n = float(rows.mean()), len(means)
        return 1.0 if n in (1, len(rows)) else n / rows_worth(means, p * (1 - p), len(rows), (0.0, 1.0))

    found = ratio_per_right(side(0), side(1), (design(0), design(1)))
    return Found("ratios for each right answer", found, len(side(0)[0]))


@dataclass(frozen=True)
class Study:
    """A publication."""

    folder: Path

    @cached_property
    def figures(self) -> pd.DataFrame:
        return pd.read_csv(self.folder / "figures.csv")

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        empty = not (text := (self.folder / "outcomes.csv").read_text(encoding="utf-8").strip())
        return pd.DataFrame(columns=["family", "outcome", "exploratory"]) if empty else pd.read_csv(StringIO(text))

    @cached_property
    def runs(self) -> dict[str, Run]:
        return {file.parent.name: Run(file.parent) for file in sorted(self.folder.glob("runs/*/run.json"))}

    def main_run(self, changed: Run) -> Run:
        """Of the main runs of the same model the one that has most of another run's questions."""
        model, asked = changed.manifest["options"]["model"], set(changed.finished["example_id"])
        runs = [self.runs[name] for name in self.main_runs if self.runs[name].manifest["options"]["model"] == model]
        return max(runs, key=lambda run: len(asked & set(run.finished["example_id"])))

    @cached_property
    def main_runs(self) -> list[str]:
        """Those of the first outcome; without outcomes those whose names begin as the first one's."""
        if not self.outcomes.empty:
            return [*self.outcomes["run"][self.outcomes["outcome"] == self.outcomes["outcome"].iloc[0]]]
        begin, _, _ = str(self.figures["figure"].iloc[0]).partition("-")
        return [name for name in self.runs if name.startswith(f"{begin}-")]


def figure(study: Study, name: str) -> Found:
    """A figure by its name."""
    run, _, rest = name.partition("/")
    if run in study.runs:
        return figure_of_run(study, study.runs[run], rest)
    for _, outcome in study.outcomes.iterrows():
        if name.startswith(f"{outcome['outcome']}/") and is_of_run(name, outcome):
            return replace(of_outcome(study, outcome), kind="outcomes")
    raise CantCompute("an unknown name")


def is_of_run(name: str, outcome: pd.Series[Any]) -> bool:
    """Whether `tokens/hotpotqa/qwen` is the outcome of a run: of `main-hotpotqa-qwen`."""
    end = name.removeprefix(outcome["outcome"]).replace("/", "-")
    return str(outcome["run"]).endswith(re.sub(r"[^\w.+=-]+", "-", end))


def figure_of_run(study: Study, run: Run, rest: str) -> Found:
    """A figure of a run by what its name says behind the run's."""
    asked = None
    if rest.startswith(f"{UNCHANGED}/"):
        rest, asked = rest.removeprefix(f"{UNCHANGED}/"), set(run.finished["example_id"])
        run = study.main_run(run)
    of, _, what = rest.rpartition("/")
    if of in run.names:
        return of_architecture(run, of, what)
    for first, second in permutations(run.names, 2):
        if of in (f"{first} / {second}", f"{first} - {second}"):
            found = of_pair(run, first, second, what, asked)
            return found if asked is None else replace(found, kind=UNCHANGED)
    raise CantCompute("an unknown name")


def architectures_of(run: Run, outcome: pd.Series[Any]) -> tuple[str, str]:
    return next(pair for pair in permutations(run.names, 2) if " / ".join(pair) == outcome["architectures"])


def measure_of(outcome: pd.Series[Any]) -> str:
    """A column, or the name of a price."""
    return str(outcome["prices"] if isinstance(outcome["prices"], str) else outcome["measure"])


def of_outcome(study: Study, outcome: pd.Series[Any]) -> Found:
    """A declared outcome, with p before Holm's adjustment."""
    run, measure = study.runs[outcome["run"]], measure_of(outcome)
    pair = architectures_of(run, outcome)
    found = of_pair(run, *pair, measure)
    if outcome["statistic"] != "non-inferiority" or not found.n:
        return found
    a, b, questions = both(run, *pair, measure)
    if outcome["margin"] > 0:  # of the second, which may not be below the first by as much
        a, b = b, a
    if measure == "exact_match":
        return replace(found, p=not_worse_p(a, b, questions, abs(outcome["margin"])))
    _, p, _ = score_difference_of(averages(a, questions), averages(b, questions), abs(outcome["margin"]))
    return replace(found, p=p)


def detectable_of(study: Study, outcome: pd.Series[Any]) -> float:
    """What an outcome of exact match could have shown on so many questions."""
    run = study.runs[outcome["run"]]
    a, b, questions = both(run, *architectures_of(run, outcome), "exact_match")
    if measure_of(outcome) != "exact_match" or not len(a):
        return math.nan
    return detectable(float((a != b).mean()), round(discordant(a, b, questions)[2]))


def verdict(outcome: pd.Series[Any], found: Found, p_holm: float) -> str:
    """What an outcome came to, in words."""
    (first, second), (_, low, high) = outcome["architectures"].split(" / "), found.interval
    if not found.n:
        return "no data"
    margin, is_ratio = outcome["margin"], outcome["statistic"] == "ratio"
    no_effect = is_ratio if outcome["statistic"] != "non-inferiority" else margin
    if not p_holm < 0.05 or found.rare or low <= no_effect <= high:
        return "undecided"
    if outcome["statistic"] == "non-inferiority":
        tested, is_worse = (second, low > margin) if margin > 0 else (first, high < margin)
        return f"{tested} is {f'worse by more than {abs(margin):g}' if is_worse else f'at most {abs(margin):g} worse'}"
    more = first if low > is_ratio else second
    return f"{more} takes more" if is_ratio else f"{more} is higher"


# Comparison


@dataclass(frozen=True)
class Compared:
    """Numbers or words that the rows give, and what is published."""

    kind: str
    name: str
    found: Sequence[float] | str
    published: Sequence[float] | str
    step: float = 0.0
    """How far the published number may be off, beside its rounding."""
    why: str = ""
    """Why nothing is found."""

    @property
    def state(self) -> str:
        if self.why:
            return UNKNOWN
        if isinstance(self.found, str) or isinstance(self.published, str):
            return AGREES if self.found == self.published else DIFFERS
        is_close = np.isclose(self.found, self.published, rtol=1e-9, atol=0.51e-6 + self.step, equal_nan=True)
        return AGREES if is_close.all() else DIFFERS

    def __str__(self) -> str:
        found, published = (
            each if isinstance(each, str) else " ".join(f"{number:.8g}" for number in each)
            for each in (self.found, self.published)
        )
        return f"{self.state:8} {self.name}: {self.why or f'{found}; published: {published}'}"


def compared_figures(study: Study) -> Iterator[Compared]:
    for name, *published in study.figures[["figure", "estimate", "low", "high", "n"]].itertuples(index=False):
        try:
            found = figure(study, name)
        except CantCompute as why:
            yield Compared("", name, (), published, why=str(why))
        else:
            yield Compared(found.kind, name, (*found.interval, found.n), published)


def compared_outcomes(study: Study) -> Iterator[Compared]:
    """Of outcomes.csv."""
    if (table := study.outcomes).empty:
        return
    try:
        found = [of_outcome(study, outcome) for _, outcome in table.iterrows()]
    except CantCompute as why:
        yield Compared("", "outcomes.csv", (), (), why=str(why))
        return
    table = table.assign(
        own_p=[each.p for each in found],
        own_n=[each.n for each in found],
        step=STEP_OF_P * (table["statistic"] == "non-inferiority"),
    )
    deciding, steps = table["exploratory"].isna() & (table["own_n"] > 0), table.groupby("family")["step"]
    table["own_p_holm"] = table[deciding].groupby("family")["own_p"].transform(holm)
    table["step_holm"] = steps.transform("max") * steps.transform("size")
    for (_, outcome), each in zip(table.iterrows(), found, strict=True):
        yield from compared_outcome(study, outcome, each)


def compared_outcome(study: Study, outcome: pd.Series[Any], found: Found) -> Iterator[Compared]:
    """The columns of an outcome, which has its `own_p_holm`, and the steps of both p."""
    p_holm = outcome["own_p_holm"]
    columns = {
        "estimate, low, high and n": ((*found.interval, found.n), ["estimate", "low", "high", "n"], 0.0),
        "p": ([found.p], ["p"], outcome["step"]),
        "p by Holm": ([p_holm], ["p_holm"], outcome["step_holm"]),
        "detectable": ([detectable_of(study, outcome)], ["detectable"], STEP_OF_DETECTABLE),
    }
    name = f"{outcome['outcome']} of {outcome['run']}"
    for what, (numbers, published, step) in columns.items():
        yield Compared(f"outcomes.csv: {what}", f"{name}: {what}", numbers, [*outcome[published]], step)
    said = verdict(outcome, found, p_holm)
    yield Compared("outcomes.csv: verdict", f"{name}: verdict", said, outcome["verdict"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what agrees and what doesn't; 1 where a figure differs, or its name is unknown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="with figures.csv, outcomes.csv and runs/")
    folder = parser.parse_args(arguments).folder
    if missing := [name for name in ("figures.csv", "outcomes.csv", "runs") if not (folder / name).exists()]:
        parser.error(f"{folder} has no {missing[0]}")
    study = Study(folder)
    compared = [*compared_figures(study), *compared_outcomes(study)]
    for kind in dict.fromkeys(each.kind for each in compared if each.kind):
        states = [each.state for each in compared if each.kind == kind]
        print(f"{kind}: {states.count(AGREES):,} of {len(states):,} agree")
    for each in compared:
        if each.state != AGREES:
            print(each)
    states = [each.state for each in compared]
    print(
        f"{states.count(AGREES):,} of {len(states):,} agree, {states.count(DIFFERS):,} differ, "
        f"{states.count(UNKNOWN):,} have an unknown name"
    )
    return int(DIFFERS in states or UNKNOWN in states)


if __name__ == "__main__":
    sys.exit(main())
