"""A study's runs -> every figure by its name, and what its declared outcomes come to.

    found = read_results(study, Path("results/local/study"))
    found.outcomes[0].verdict            # "react takes more"
    found.figures["main-hotpotqa-qwen/rewoo/total_tokens"].text

Means are those of `summary`, ratios and differences those of `compare`, on the questions that all architectures of a
run have finished. The outcomes of a family are adjusted for their number together (Holm), those of every data set,
model and condition among them.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rewoo_bench.analysis.call_costs import priced, read_calls
from rewoo_bench.analysis.pairs import ALPHA, Pair, paired, way_round
from rewoo_bench.analysis.prices import SHOWN, priced_rows
from rewoo_bench.analysis.stats.paired import RARE, Floats, Interval, brackets, mean_of, proportion, ratio_of_means
from rewoo_bench.analysis.stats.tests import holm, minimum_detectable_difference, p_of_margin
from rewoo_bench.analysis.summary import Summary, summaries_of
from rewoo_bench.config.names import file_name, is_oracle
from rewoo_bench.config.price_sheets import SHORT_PRICES, named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.runs.folder import QUESTIONS_FILE, load
from rewoo_bench.runs.manifest import MANIFEST, Manifest, read_manifest
from rewoo_bench.runs.rows import Rows, left_out
from rewoo_bench.study.declaration import Cell, Outcome, Study, decides, outcome_name
from rewoo_bench.study.rounds import DATASET_SIZE, DECLARED_N
from rewoo_bench.study.status import why_exploratory

PAIR = ("react", "rewoo")
"""The architectures whose ratios are drawn, in any form (`react?repeat_guard=stop`)."""
NATIVE_PAIR = ("react-native", "rewoo")
CONTEXTS = (512, 1024, 2048, 4096)
"""Tokens before every prompt under which both pairs of the oracle's runs are priced, too: instructions, tools."""
UNCHANGED = "main, these questions"
ORACLES = "an oracle's accuracy means nothing"
BOTH_ANSWERED, PER_RIGHT = ", both answered", " a right answer"
"""Behind the name of a ratio: on the questions that both answered; for each exact match."""
_KEY = ["example_id", "trial"]
_SCORES = ("exact_match", "judged_correct", "objectives_right")
_MEANS = {"llm_calls": ".2f", "input_tokens": ",.0f", "output_tokens": ",.0f", "total_tokens": ",.0f"}


@dataclass(frozen=True, slots=True)
class Figure(Interval):
    """A number of the study, with its 95% interval and the number of questions behind it."""

    form: str = ".2f"

    @property
    def text(self) -> str:
        """`3.36 [2.89, 3.91]`, with the mark `?` where a rare event may be missing."""
        if not self.n:
            return "-"
        bounds = brackets(self.low, self.high, lambda bound: format(bound, self.form))
        return f"{self.estimate:{self.form}} {bounds}{RARE if self.rare else ''}"


@dataclass(frozen=True)
class Decided:
    """A declared outcome of one run."""

    outcome: Outcome
    cell: Cell
    interval: Interval
    """Of the pair the way round that it has everywhere (`architectures`)."""
    p: float
    """Of the null hypothesis: a ratio of 1, no difference, or worse by the margin and more."""
    declared_n: int | None
    """Questions that the study declares; None is all of a data set that the run hasn't asked to its end."""
    exploratory: str | None = None
    detectable: float | None = None
    """Of exact match: the smallest difference that exact McNemar shows 4 times in 5 on so many questions."""
    p_holm: float = math.nan

    @property
    def name(self) -> str:
        return outcome_name(self.outcome, self.cell)

    @property
    def is_partial(self) -> bool:
        """Whether the run lacks questions that were declared."""
        return self.declared_n is None or self.interval.n < self.declared_n

    @property
    def architectures(self) -> tuple[str, str]:
        """As in `first / second` and `first - second`, in whatever order they were declared."""
        first, second = self.outcome.architectures
        return way_round(second, first)[::-1]

    @property
    def margin(self) -> float | None:
        """The difference of the two that is to be ruled out, on the scale of `interval`."""
        margin = self.outcome.margin
        return margin if margin is None or self.architectures != self.outcome.architectures else -margin

    @property
    def verdict(self) -> str:
        """What the interval shows, in words."""
        first, second = self.architectures
        value, margin = self.interval, self.margin or 0.0
        no_effect = {"ratio": 1.0, "non-inferiority": margin}.get(self.outcome.statistic, 0.0)
        if not value.n:
            return "no data"
        if not self.p_holm < ALPHA or value.rare or value.low <= no_effect <= value.high:
            return "undecided"
        if self.outcome.statistic == "non-inferiority":
            is_worse = value.low > no_effect if margin > 0 else value.high < no_effect
            by = f"worse by more than {abs(margin):g}" if is_worse else f"at most {abs(margin):g} worse"
            return f"{self.outcome.architectures[0]} is {by}"
        more = first if value.low > no_effect else second
        return f"{more} takes more" if self.outcome.statistic == "ratio" else f"{more} is higher"

    @property
    def verdict_shown(self) -> str:
        """`so far: react takes more` of a part of the questions; why it decides nothing, where it doesn't."""
        verdict = self.verdict if self.exploratory is None else f"exploratory: {self.exploratory}"
        return f"so far: {verdict}" if self.is_partial and self.interval.n else verdict


@dataclass(frozen=True)
class CellResults:
    """A run of the study: its rows on the questions and trials that all of its architectures have."""

    cell: Cell
    manifest: Manifest
    rows: pd.DataFrame
    exploratory: str | None
    dollars: Mapping[str, Floats]
    """Dollars of each row under each price, NaN where they aren't known; `with_context("openai", 1024)` is one, too."""

    @property
    def n(self) -> int:
        return int(self.rows["example_id"].nunique())

    @cached_property
    def architectures(self) -> Mapping[str, str]:
        """As the study declares them (`agent:python mine.py`) -> as rows have them; only those that the run has."""
        declared = map(str, self.manifest.options.get("architectures", ()))
        named = dict(zip(map(file_name, declared), (each.name for each in self.manifest.architectures), strict=True))
        return {each: named[file_name(each)] for each in self.cell.options.architectures if file_name(each) in named}

    @property
    def names(self) -> list[str]:
        """The names of its architectures in rows, in the order of the declaration."""
        return list(self.architectures.values())

    @cached_property
    def _of_each(self) -> Mapping[str, tuple[Rows, NDArray[np.intp]]]:
        """Each architecture's rows, in an order that is the same for all, and their places."""
        rows = Rows(self.rows)
        order = np.lexsort((rows["trial"], rows.question))
        places = {name: order[rows["architecture"][order] == name] for name in rows.texts("architecture")}
        return {name: (rows.where(own), own) for name, own in places.items()}

    @cached_property
    def is_oracle(self) -> bool:
        """Whether its accuracy means nothing."""
        return bool(Rows(self.rows).oracle.any())

    def of(self, architecture: str, price: str = "") -> Rows:
        """An architecture's rows, in an order that is the same for all, with dollars of a price."""
        found, places = self._of_each[architecture]
        return found if not price else found.assign(cost_usd=self.dollars[price][places])

    def pair(self, first: str, second: str, price: str = "") -> Pair:
        """The first architecture against the second, paired by question."""
        pair = (second, self.of(second, price)), (first, self.of(first, price))
        return paired(self.cell.dataset, *pair, oracle=self.is_oracle)


@dataclass(frozen=True)
class StudyResults:
    """Everything that is published of a study, computed from the tables of its runs."""

    study: Study
    cells: Sequence[CellResults]
    outcomes: Sequence[Decided]
    figures: Mapping[str, Figure]


def read_results(study: Study, folder: Path) -> StudyResults:
    """The results of the runs that have any. Raises `DataError` where none has, and `UsageError` for a wrong price."""
    found: list[CellResults] = []
    figures: dict[str, Figure] = {}
    for cell in study.cells:
        if (each := _cell(study, cell, folder / cell.name)) is not None:
            found.append(each)
            figures |= _figures(each)
    if not found:
        command = f"rewoo-bench study run {shlex.quote(str(study.file))} --out {shlex.quote(str(folder))}"
        raise DataError(f"{str(folder)!r} has no run of the study: begin with {command}")
    outcomes = _decided(study, found)
    for decided in outcomes:
        figures[decided.name] = _figure(decided.interval, ".2f" if decided.outcome.statistic == "ratio" else "+.3f")
    figures |= {name: figure for each in found for name, figure in _without_the_change(study, each, found)}
    return StudyResults(study, found, outcomes, figures)


def _cell(study: Study, cell: Cell, folder: Path) -> CellResults | None:
    if not (folder / MANIFEST).exists() or not (folder / QUESTIONS_FILE).exists():
        return None
    manifest, rows = read_manifest(folder), load(folder)
    exploratory = why_exploratory(study, cell, manifest)
    names = CellResults(cell, manifest, rows, exploratory, {}).names
    rows = rows[rows["architecture"].isin(names)]
    finished = rows.groupby(_KEY, observed=True)["architecture"].transform("nunique")
    whole = rows[finished == len(names)].reset_index(drop=True)
    if not len(whole):
        return None
    own = [each.prices for each in study.spec.outcomes if each.cells == cell.cells]
    prices = [*(priced_by(study) if cell.cells == main_cells(study) else SHOWN), *filter(None, own)]
    found = priced_rows([folder], Rows(whole), [[study.price(name)] for name in prices])
    dollars = {name: each.usd for name, each in zip(prices, found, strict=True)}
    if is_oracle(cell.options.model):
        calls = read_calls(folder, Rows(whole))
        for name, context in product(SHOWN, CONTEXTS):
            costs = priced(calls, {"": named_tariff(name)}, context=context)
            dollars[with_context(name, context)] = calls.of_rows(costs.usd)
    return CellResults(cell, manifest, whole, exploratory, dollars)


def _decided(study: Study, cells: Sequence[CellResults]) -> list[Decided]:
    found = [_decide(outcome, each) for outcome in study.spec.outcomes for each in cells if decides(outcome, each.cell)]
    families: dict[str, list[int]] = {}
    for place, each in enumerate(found):
        if each.exploratory is None and each.interval.n:
            families.setdefault(each.outcome.family, []).append(place)
    for places in families.values():
        for place, adjusted in zip(places, holm([found[place].p for place in places]), strict=True):
            found[place] = replace(found[place], p_holm=adjusted)
    return found


def _decide(outcome: Outcome, of: CellResults) -> Decided:
    effect = None
    if {*outcome.architectures} <= of.architectures.keys():
        first, second = (of.architectures[name] for name in outcome.architectures)
        a, b = way_round(second, first)
        pair = of.pair(b, a, outcome.prices or "")
        effect = next((each for each in pair.figures if each.measure == outcome.measure), None)
    facts = of.manifest.study or {}
    declared = of.cell.options.questions or facts.get(DATASET_SIZE)
    if declared is not None:  # a file that asks for fewer now doesn't make a first look the last one
        declared = max(declared, int(facts.get(DECLARED_N) or 0))
    exploratory = of.exploratory or (ORACLES if of.is_oracle and outcome.statistic != "ratio" else None)
    if effect is None:  # nothing of it is known of both
        return Decided(outcome, of.cell, Interval(math.nan, -math.inf, math.inf, 0), math.nan, declared, exploratory)
    p, detectable = effect.p, None
    if outcome.statistic == "non-inferiority":
        p = _p_of_margin(of, outcome, outcome.margin or 0.0)
    if effect.discordant_share is not None and effect.pairs is not None:
        detectable = minimum_detectable_difference(effect.discordant_share, effect.pairs, ALPHA)
    return Decided(outcome, of.cell, effect.interval, p, declared, exploratory, detectable)


def _p_of_margin(of: CellResults, outcome: Outcome, margin: float) -> float:
    """The p value that belongs to the interval of the difference, of the same pairs."""
    first, second = (of.of(of.architectures[name]) for name in reversed(outcome.architectures))
    scores = first[outcome.measure], second[outcome.measure]
    known = ~(first.left_out | second.left_out | np.isnan(scores[0] + scores[1]))
    questions = first.question
    clusters = questions[known] if len(np.unique(questions)) < len(questions) else None
    a, b = (each[known] for each in scores)
    return p_of_margin(a, b, margin, clusters, proportions=outcome.measure == "exact_match")


def _figure(value: Interval, form: str) -> Figure:
    return Figure(**asdict(value), form=form)


def _figures(of: CellResults) -> Iterator[tuple[str, Figure]]:
    """Means of each architecture; ratios and differences with the first one, and of each ReAct with each ReWOO."""
    names = of.names
    summaries = {each.architecture: each for each in summaries_of(of.rows)}
    for name in names:
        for what, figure in _of_architecture(of, name, summaries[name]):
            yield f"{of.cell.name}/{name}/{what}", figure
    for first in names:
        for second in names:
            is_loop_and_plan = (first, second) in loops_and_plans(names)
            if first != second and (is_loop_and_plan or second == names[0]):
                in_contexts = is_loop_and_plan or (family(first), family(second)) == NATIVE_PAIR
                for what, figure in _of_pair(of, first, second, of.dollars if in_contexts else SHOWN):
                    yield f"{of.cell.name}/{what}", figure


def _of_pair(of: CellResults, first: str, second: str, prices: Iterable[str] = SHOWN) -> Iterator[tuple[str, Figure]]:
    """Ratios and differences of two architectures: `react / rewoo/openai`, `react - rewoo/exact_match`.

    Of a ReAct and a ReWOO also the ratio of tokens where both answered, and ratios per right answer (`PER_RIGHT`).
    """
    in_full = (first, second) in loops_and_plans(of.names)
    for price in prices:
        names = {"cost_usd": price, **({"usd_per_solved": f"{price}{PER_RIGHT}"} if in_full and price in SHOWN else {})}
        pair = of.pair(first, second, price)
        for effect in pair.figures:
            if effect.measure in names:
                yield f"{first} / {second}/{names[effect.measure]}", _figure(effect.interval, ".2f")
    for effect in pair.figures:
        if effect.measure == "total_tokens":
            yield f"{first} / {second}/total_tokens", _figure(effect.interval, ".2f")
            answered = pair.both_answered
            if all((of.of(name)["stop_reason"] == "answered").all() for name in (first, second)):
                answered = effect.interval
            if in_full and answered is not None:
                yield f"{first} / {second}/total_tokens{BOTH_ANSWERED}", _figure(answered, ".2f")
        if effect.measure == "exact_match":
            yield f"{first} - {second}/exact_match", _figure(effect.interval, "+.3f")


def _without_the_change(study: Study, of: CellResults, among: Sequence[CellResults]) -> Iterator[tuple[str, Figure]]:
    """The figures of ReAct and ReWOO in the main run, on the questions of another run, which changes something."""
    named = main_cells(study)
    asked = set(of.rows["example_id"])
    runs = [each for each in among if each.cell.cells == named and each.cell.model == of.cell.model]
    base = max(runs, key=lambda each: len(asked & set(each.rows["example_id"])), default=None)
    if of.cell.cells == named or base is None or not (same := base.rows["example_id"].isin(asked)).any():
        return
    dollars = {name: usd[same.to_numpy()] for name, usd in base.dollars.items()}
    base = replace(base, rows=base.rows[same].reset_index(drop=True), dollars=dollars)
    for first, second in loops_and_plans(base.names)[:1]:
        for what, figure in _of_pair(base, first, second):
            yield f"{of.cell.name}/{UNCHANGED}/{what}", figure


def _of_architecture(of: CellResults, name: str, summary: Summary) -> Iterator[tuple[str, Figure]]:
    estimates: dict[str, Interval] = {score: getattr(summary, score) for score in _SCORES}
    estimates |= {f"pass^{k}": each for k, each in summary.passes.items()} | {"flips": summary.flips}
    for what, each in estimates.items():
        if each.n:
            yield what, _figure(each, ".2f")
    n = summary.exact_match.n or summary.questions
    own = of.rows[(of.rows["architecture"] == name) & ~left_out(of.rows)]
    questions = own["example_id"].astype(str).to_numpy()
    for what, form in _MEANS.items():
        if bounds := summary.intervals.get(what):
            yield what, replace(_figure(bounds, form), n=n)
    yield "unanswered", _figure(proportion(own["stop_reason"] != "answered", clusters=questions), ".2f")
    for price in SHOWN:
        usd = of.dollars[price][own.index]
        if len(usd) and np.isfinite(usd).all():
            yield price, _figure(mean_of(1000 * usd, clusters=questions), ".3f")
    loops, tokens = (own[column].astype(float).to_numpy() for column in ("loop_tokens", "total_tokens"))
    if len(loops) and np.isfinite(loops).all() and tokens.any():
        share_ = ratio_of_means(tokens, loops, clusters=questions)
        share_ = replace(share_, low=max(0.0, share_.low), high=min(1.0, share_.high))
        yield "in loops", _figure(share_, ".0%")


def with_context(price: str, context: int) -> str:
    """The name of a price where every prompt begins with so many tokens more: `openai, 1,024 tokens before`."""
    return f"{price}, {context:,} tokens before" if context else price


def priced_by(study: Study) -> list[str]:
    """The prices under which the main runs are shown: those that ship, and the study's own."""
    return [*SHORT_PRICES, *study.spec.study.prices]


def main_cells(study: Study) -> str:
    """The cells of the first outcome, else the first cells."""
    return study.spec.outcomes[0].cells if study.spec.outcomes else study.spec.cells[0].name


def loops_and_plans(names: Sequence[str]) -> list[tuple[str, str]]:
    """Each ReAct with each ReWOO, in any form."""
    return [(first, second) for first, second in product(names, repeat=2) if (family(first), family(second)) == PAIR]


def family(architecture: str) -> str:
    """`react` of `react?repeat_guard=stop`."""
    return architecture.partition("?")[0]
