"""Published figures computed again from the published rows, with pandas and scipy; nothing of rewoo_bench is imported.

    python scripts/recompute.py      # each figure, and the published one; exit code 1 where one differs or isn't found

It needs `pip install pandas pyarrow scipy` and a clone. A figure agrees where it is the published one after rounding.
The formulas are those of results/statistics.md, written a second time.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import binomtest, gamma, norm, t

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "results" / "models"
HOTPOTQA, TRIVIAQA = "hotpotqa-qwen-1.5b-100", "triviaqa-qwen-1.5b-100"
Numbers = np.ndarray
Estimate = tuple[float, float, float]
"""An estimate with its 95% interval."""


@dataclass(frozen=True)
class Compared:
    """A figure: what the rows give, and what is published."""

    what: str
    found: Sequence[float] | str
    published: str | None
    """"" is a figure that isn't where it belongs, None one that no page prints (`UNPRINTED`)."""

    @property
    def agrees(self) -> bool:
        """Whether the published numbers are these after rounding, or the text is this one."""
        if self.published is None:
            return True
        if isinstance(self.found, str):
            return self.found == self.published
        texts = re.findall(r"[-+]?\d[\d,]*(?:\.\d+)?", self.published)
        return len(texts) == len(self.found) and all(map(_rounds_to, self.found, texts))

    def __str__(self) -> str:
        found = self.found if isinstance(self.found, str) else " ".join(f"{each:.4f}" for each in self.found)
        if self.published is None:
            return f"alone    {self.what}: {found}"
        state = "agrees " if self.agrees else "DIFFERS" if self.published else "MISSING"
        return f"{state}  {self.what}: {found}; published: {self.published or 'not found'}"


def _rounds_to(value: float, text: str) -> bool:
    decimals = len(text.partition(".")[2])
    return abs(value - float(text.replace(",", ""))) <= 0.5 * 10.0**-decimals * (1 + 1e-9)


def read(run: str, file: str = "questions") -> pd.DataFrame:
    return pd.read_parquet(MODELS / run / f"{file}.parquet")


def paired(rows: pd.DataFrame, column: str, *names: str) -> list[Numbers]:
    """A column of some architectures over the questions that each of them has a value for."""
    wide = rows[rows["architecture"].isin(names) & rows["exact_match"].notna()].pivot(
        index=["example_id", "trial"], columns="architecture", values=column
    )
    wide = wide[list(names)].dropna()
    return [wide[name].to_numpy(dtype=float) for name in names]


# Intervals


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


def share(values: Numbers) -> Estimate:
    return wilson(values.sum(), len(values), norm.ppf(0.975))


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


def difference_of_shares(a: Numbers, b: Numbers) -> Estimate:
    """Tango's score interval of mean(a) - mean(b)."""
    more, less = float(((a == 1) & (b == 0)).sum()), float(((a == 0) & (b == 1)).sum())
    return score_interval(more, less, len(a), float(norm.ppf(0.975)))


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


def difference_of_scores(a: Numbers, b: Numbers) -> Estimate:
    """mean(a) - mean(b) of values from 0 to 1."""
    low, high = bounds(a - b, 0.25 * max(a.mean(), b.mean()), (-1.0, 1.0))
    return (a - b).mean(), low, high


# Verdicts


@dataclass(frozen=True)
class Claim:
    """A claim of results/models/claims.md, and how it is tested."""

    section: str
    says: str
    run: str
    measure: Callable[..., Estimate]
    column: str
    names: tuple[str, ...]
    band: tuple[float, float]
    """The verdict is `reproduced` for an interval inside, `contradicted` for one outside, else `undecided`."""
    scale: float = 1.0


def saving(a: Numbers, b: Numbers) -> Estimate:
    """1 - mean(a) / mean(b)."""
    ratio, low, high = ratio_of_means(a, b)
    return 1 - ratio, 1 - high, 1 - low


PAIR, ANY = ("rewoo", "react"), math.inf
EM, F1, STEPS = "Exact match, ReWOO's minus ", "F1, ReWOO's minus ", "ReAct's steps"
TOKENS = "ReAct's tokens, times ReWOO's"
CLAIMS = (
    Claim("HotpotQA", TOKENS, HOTPOTQA, ratio_of_means, "total_tokens", PAIR[::-1], (4.93 * 0.8, 4.93 * 1.2)),
    Claim("TriviaQA", TOKENS, TRIVIAQA, ratio_of_means, "total_tokens", PAIR[::-1], (3.14 * 0.8, 3.14 * 1.2)),
    Claim(
        *("HotpotQA", "ReWOO takes fewer input tokens than ReAct", HOTPOTQA, saving, "input_tokens", PAIR),
        band=(0, ANY),
        scale=100,
    ),
    Claim("HotpotQA", STEPS, HOTPOTQA, mean, "steps", ("react",), (4.97 * 0.8, 4.97 * 1.2)),
    Claim("TriviaQA", STEPS, TRIVIAQA, mean, "steps", ("react",), (5.21 * 0.8, 5.21 * 1.2)),
    *(
        Claim(section, f"{what}{other}", run, measure, column, ("rewoo", name), band, 100)
        for section, what, other, name, run, measure, column, band in (
            ("HotpotQA", EM, "ReAct's", "react", HOTPOTQA, difference_of_shares, "exact_match", (-0.062, 0.026)),
            ("HotpotQA", EM, "chain of thought's", "cot", HOTPOTQA, difference_of_shares, "exact_match", (0, ANY)),
            ("HotpotQA", F1, "ReAct's", "react", HOTPOTQA, difference_of_scores, "f1", (-0.039, 0.049)),
            ("HotpotQA", F1, "chain of thought's", "cot", HOTPOTQA, difference_of_scores, "f1", (0, ANY)),
            ("TriviaQA", EM, "ReAct's", "react", TRIVIAQA, difference_of_shares, "exact_match", (0, ANY)),
            ("TriviaQA", EM, "chain of thought's", "cot", TRIVIAQA, difference_of_shares, "exact_match", (-ANY, 0)),
            ("TriviaQA", F1, "ReAct's", "react", TRIVIAQA, difference_of_scores, "f1", (0, ANY)),
        )
    ),
)


def shown_verdict(claim: Claim, found: Estimate) -> str:
    """Undecided is also a figure with the mark `?`; a ratio of tokens that comes out otherwise where both answered; and
    one of a claimed number with architectures that aren't in their papers' form.
    """
    plain = verdict(found, claim.band)
    if claim.measure is difference_of_shares and 0 in claim.band:  # exact McNemar decides whether it is above 0
        a, b = paired(read(claim.run), claim.column, *claim.names)
        more, less = int((a > b).sum()), int((a < b).sum())
        p = binomtest(more, more + less).pvalue if more + less else 1.0
        side = "reproduced" if claim.band[0] < found[0] < claim.band[1] else "contradicted"
        return side if p < 0.05 else "undecided"
    if claim.measure is not difference_of_shares:
        columns = paired(read(claim.run), claim.column, *claim.names)
        a, b = columns[0], columns[-1]
        apart = a - b if claim.measure is difference_of_scores else a / a.mean() - b / b.mean()
        if is_rare(a if claim.measure is mean else apart):
            return "undecided"
    if not claim.column.endswith("_tokens"):
        return plain
    rows = read(claim.run)
    answered = rows[rows["architecture"].isin(claim.names) & (rows["stop_reason"] == "answered")]
    both = answered.groupby("example_id")["architecture"].nunique() == len(claim.names)
    some = claim.measure(*paired(rows[rows["example_id"].map(both).eq(True)], claim.column, *claim.names))
    made = json.loads((MODELS / claim.run / "run.json").read_text(encoding="utf-8"))["architectures"]
    is_older = any(each["name"] == "rewoo" and each["exemplars"].get("solver") for each in made)
    return "undecided" if verdict(some, claim.band) != plain or (claim.says == TOKENS and is_older) else plain


def verdict(interval: Estimate, band: tuple[float, float]) -> str:
    _, low, high = interval
    if band[0] < low and high < band[1]:
        return "reproduced"
    return "contradicted" if high < band[0] or low > band[1] else "undecided"


def claims() -> Iterator[Compared]:
    page = (MODELS / "claims.md").read_text(encoding="utf-8")
    for claim in CLAIMS:
        section = page.partition(f"## {claim.section}\n")[2].partition("\n## ")[0]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()]
        row = next((row for row in rows if row[0] == claim.says), [""] * 5)
        found = claim.measure(*paired(read(claim.run), claim.column, *claim.names))
        label = f"{claim.section}: {claim.says}"
        yield Compared(label, [claim.scale * each for each in found], row[3].partition(", n")[0])
        yield Compared(f"{label}: verdict", shown_verdict(claim, found), row[4].partition("*\\*")[0].strip("*\\"))


# Prices


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens, and the rule of the cache. Sources: the sheets in rewoo_bench/config/prices."""

    input: float
    output: float
    read: float
    write: float | None = None
    """None where what is written to the cache costs what other input does."""
    least: int = 0
    """Tokens of the shortest prefix that is cached."""
    block: int = 1
    is_cached: bool = True
    is_marked: bool = False
    """Whether only prefixes that end at a mark of the prompt are cached."""


PRICES = {
    "none": Price(0.25, 2, 0.25, is_cached=False),
    "openai": Price(0.25, 2, 0.025, least=1024, block=128),
    "anthropic-5m": Price(3, 15, 0.3, write=3.75, least=1024, is_marked=True),
    "anthropic-1h": Price(3, 15, 0.3, write=6, least=1024, is_marked=True),
    "gemini": Price(0.3, 2.5, 0.03, least=2048),
    "deepseek": Price(0.28, 0.42, 0.028),
    "vllm": Price(1, 1, 0, block=16),
    "llama.cpp": Price(1, 1, 0),
}

KEY = ["architecture", "example_id", "trial"]
SHOWN = {"none": "no cache", "openai": "OpenAI's rule", "anthropic-5m": "Anthropic's rule"}
"""Prices in the published tables, and what these call them."""
UNPRINTED = ("anthropic-1h", "gemini", "deepseek", "vllm", "llama.cpp")
"""Prices that no page prints the ratio of."""


def priced(run: str, price: Price) -> pd.DataFrame:
    """questions.parquet of a run with the dollars of each question, from calls.parquet.

    These runs were made before calls.parquet had what prompts share. llama.cpp has no shortest prefix, so the prefix
    that it reported stands in for it, up to the longest earlier prompt of the question, since it also keeps replies.
    Every prefix is taken to be in time.
    """
    calls = read(run, "calls")
    calls = calls[(calls["kind"] == "model") & (calls["role"] != "judge")]
    tokens, output = calls["input_tokens"], calls["output_tokens"]
    first, reported = _shared(calls)
    cached = reported.clip(upper=tokens - 1) // price.block * price.block
    cached, written = cached.where(cached >= max(price.least, 1), 0) * price.is_cached, 0 * tokens
    if price.is_marked:
        cached, written = _marked(calls, price, first, reported)
    lost = (calls["billed_tokens"] - tokens - output).clip(lower=0)  # of failed attempts
    if "billed_output_tokens" in calls:
        lost_output = (calls["billed_output_tokens"] - output).clip(lower=0).fillna(0)
        lost, output = lost - lost_output, output + lost_output
    # dollars per 1,000 questions, of prices per million tokens
    usd = (tokens + lost - cached) * price.input + cached * price.read + output * price.output
    usd += written * ((price.input if price.write is None else price.write) - price.input)
    sums = (usd / 1000).groupby([calls[name] for name in KEY]).sum().rename("usd").reset_index()
    return read(run).merge(sums, on=KEY, how="left").fillna({"usd": 0.0})


def _shared(calls: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Tokens up to the mark behind instructions and exemplars, and those that are shared with an earlier prompt.

    The place of a mark in the provider's tokens is by the share of the prompt's parts, which are counted with the
    pinned tokenizer.
    """
    parts = calls[["context_tokens", "exemplar_tokens", "question_tokens", "written_tokens", "found_tokens"]].fillna(0)
    tokens, question = calls["input_tokens"], [calls[name] for name in KEY]
    same = parts["context_tokens"] + parts["exemplar_tokens"]
    first = (tokens * same / parts.sum(axis=1).clip(lower=1)).round()
    earlier = tokens.astype(float).groupby(question).cummax().groupby(question).shift(fill_value=math.inf)
    return first, calls["cached_input_tokens"].fillna(0).clip(upper=earlier.clip(lower=first))


def _marked(calls: pd.DataFrame, price: Price, first: pd.Series, reported: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Cached and written tokens where prompts have marks: behind instructions and exemplars, and behind a trace.

    A trace is found where the call before it in the question had one, too.
    """
    has_trace = calls["written_tokens"].fillna(0) > 0
    last = calls["input_tokens"].where(has_trace, first)
    had_trace = has_trace.groupby([calls[name] for name in KEY]).shift(fill_value=False)
    is_first_found = reported + 1 >= first
    cached = first.where(is_first_found, 0.0).where(
        ~(has_trace & had_trace), np.maximum(reported, first * is_first_found)
    )
    cached = cached.where(cached >= price.least, 0.0)
    return cached, (last - cached).clip(lower=0).where(last >= price.least, 0.0)


def main_table() -> Iterator[Compared]:
    """The table on README's first screen, and the sentence below it: tokens, and three prices."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("<!-- main table")[2].partition("<!-- end -->")[0]
    shown, rows = cells_of(text), read(HOTPOTQA)
    dollars = {price: priced(HOTPOTQA, PRICES[price]) for price in SHOWN}
    for name in ("rewoo", "react", "direct", "cot"):
        em, tokens, calls = (paired(rows, each, name)[0] for each in ("exact_match", "total_tokens", "llm_calls"))
        found = {"exact match [95% CI]": share(em), "tokens": mean(tokens), "model calls": [calls.mean()]}
        found |= {f"$, {SHOWN[price]}": mean(paired(own, "usd", name)[0]) for price, own in dollars.items()}
        for what, value in found.items():
            yield Compared(f"README, {name}: {what}", value, shown.get((name, what), ""))
    ratios = {"times ReWOO's,": ratio_of_means(*paired(rows, "total_tokens", *PAIR[::-1]))}
    for words, own in zip(
        ("times as much without a cache", "under OpenAI's rule", "under Anthropic's"), dollars.values(), strict=True
    ):
        ratios[words] = ratio_of_means(*paired(own, "usd", *PAIR[::-1]))
    ratios["times where both answered"] = where_both_answered(rows)
    for words, value in ratios.items():
        said = re.search(rf"([\d.]+ \[[\d.]+, [\d.]+\]) {re.escape(words)}", text)
        yield Compared(f"README, ReAct {words}", value, said[1] if said else "")


def where_both_answered(rows: pd.DataFrame) -> Estimate:
    return ratio_of_means(*paired(rows[rows["stop_reason"] == "answered"], "total_tokens", *PAIR[::-1]))


def cells_of(text: str) -> dict[tuple[str, str], str]:
    """The cells of the first table of a text, by the first cell of their line and their column's head."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    head, _, *rows = lines
    return {(row[0], what): cell for row in rows if len(row) == len(head) for what, cell in zip(head, row, strict=True)}


RUNS = {
    "1.5B, HotpotQA": HOTPOTQA,
    "1.5B, TriviaQA": TRIVIAQA,
    "1.5B, bundled sample": "sample-qwen-1.5b-eight",
    "135M, HotpotQA": "hotpotqa-smollm2-135m-300",
    "135M, TriviaQA": "triviaqa-smollm2-135m-300",
    "135M, bundled sample": "sample-smollm2-135m",
    "270M base, HotpotQA": "hotpotqa-gemma-3-270m",
    "270M base, TriviaQA": "triviaqa-gemma-3-270m",
}


def prices() -> Iterator[Compared]:
    """ReAct's dollars as a multiple of ReWOO's: of each run under the prices of results/models/README.md, and of one
    run under every rule."""
    shown = cells_of((MODELS / "README.md").read_text(encoding="utf-8").partition("### Is ReWOO cheaper?")[2])
    for label, run in RUNS.items():
        found = {"tokens": ratio_of_means(*paired(read(run), "total_tokens", *PAIR[::-1]))}
        found["tokens where both answered (n)"] = where_both_answered(read(run))
        for price, title in SHOWN.items():
            found[f"dollars, {title}"] = ratio_of_means(*paired(priced(run, PRICES[price]), "usd", *PAIR[::-1]))
        for what, value in found.items():
            yield Compared(f"{label}, ReAct / ReWOO: {what}", value, shown.get((label, what), "").partition(" (")[0])
    for name in UNPRINTED:
        ratio = ratio_of_means(*paired(priced(HOTPOTQA, PRICES[name]), "usd", *PAIR[::-1]))
        yield Compared(f"1.5B, HotpotQA, ReAct / ReWOO: dollars, {name}", ratio, None)


# Loops

CYCLES = ((1, 3), (2, 4), (3, 6))
"""Steps of a cycle, and steps that it takes at the end of a trajectory to be a loop."""


def loop_of(calls: pd.DataFrame) -> float | None:
    """Tokens of the loop that a question's calls end with, without its first occurrence; None where there is none.

    These runs have no texts and no column for loops. Two steps are taken for the same where their replies have the same
    tokens, call the same tools and add as many tokens to the next prompt; no prompt follows the last step, which may
    have added what any with a reply of its size did.
    """
    steps: list[list[tuple[object, ...]]] = []
    own = calls[(calls["role"] != "judge") & ~calls["place"].str.endswith("partial answer")].sort_values("call_index")
    for _, call in own.iterrows():
        if call["kind"] == "model" and call["status"] == "ok":
            steps.append([(call["output_tokens"], call["input_tokens"])])
        elif call["kind"] == "tool" and steps:
            steps[-1].append((call["name"], call["status"]))
    replies, prompts = [step[0][0] for step in steps], [float(str(step[0][1])) for step in steps]
    added = list(np.diff(prompts))
    for last in {more for reply, more in zip(replies, added, strict=False) if reply == replies[-1]}:
        what = [
            (reply, more, *step[1:]) if step[1:] else (reply,)
            for reply, more, step in zip(replies, [*added, last], steps, strict=True)
        ]
        for length, least in CYCLES:
            start = len(what) - length
            while start > 0 and what[start - 1] == what[start - 1 + length]:
                start -= 1
            if start >= 0 and len(what) - start >= least:
                used = zip(prompts[start + length :], replies[start + length :], strict=True)
                return sum(given + float(str(written)) for given, written in used)
    return None


def loops() -> Iterator[Compared]:
    """What README and results/models/README.md say of ReAct's loops, and of its questions that end at the limit."""
    readme = re.search(
        r"(\d+) of its questions end in a loop; they hold (\d+%) of its tokens, the loops alone (\d+%)",
        (ROOT / "README.md").read_text(encoding="utf-8"),
    )
    page = (MODELS / "README.md").read_text(encoding="utf-8").partition("questions end in a loop**")[2]
    texts = re.findall(
        r"(\d+) of (\d+) do so; the \d+ hold (\d+%) of ReAct's tokens, the loops alone (\d+%)", page.partition("\n")[0]
    )
    for run, said in zip((HOTPOTQA, TRIVIAQA, "triviaqa-gemma-3-270m"), texts, strict=True):
        rows, calls = (each[each["architecture"] == "react"] for each in (read(run), read(run, "calls")))
        rows = rows.set_index(KEY[1:])
        of = calls.groupby(KEY[1:])
        at_limit = rows.index[rows["stop_reason"] == "step_limit"]
        found = {key: tokens for key in at_limit if (tokens := loop_of(of.get_group(key))) is not None}
        percent = 100 / rows["total_tokens"].sum()
        limited, looping = (percent * rows.loc[list(some), "total_tokens"].sum() for some in (at_limit, found))
        alone = percent * sum(found.values())
        what = f"{run}, ReAct's loops at the limit, questions there, % of tokens of these and of the loops"
        yield Compared(what, [len(found), len(at_limit), limited, alone], " ".join(said))
        if run == HOTPOTQA:
            shown = " ".join(readme.groups()) if readme else ""
            yield Compared("README, ReAct's loops, % of tokens of these questions", [len(found), looping, alone], shown)


def main() -> int:
    """Prints every figure; 1 where one differs or isn't found."""
    found = [*main_table(), *prices(), *loops(), *claims()]
    print("\n".join(map(str, found)))
    printed = [each for each in found if each.published is not None]
    agreeing, missing = sum(each.agrees for each in printed), sum(not each.published for each in printed)
    different = len(printed) - agreeing - missing
    print(
        f"{agreeing} of {len(printed)} published figures agree, {different} differ, {missing} are not found; "
        f"{len(found) - len(printed)} more are printed nowhere"
    )
    return int(agreeing < len(printed))


if __name__ == "__main__":
    sys.exit(main())
