"""A comparison as data (`Comparison`), as tables (`tables`) and as text (`render_comparison`).

for table in tables(comparison):
    table.title, table.cells            # the first row of the cells is the header
print(render_comparison(comparison, "markdown"))   # or terminal, latex, csv (one row per estimate), json
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rewoo_bench.analysis.pairs import PASS, PER_SOLVED, Effect, Pair, Under
from rewoo_bench.analysis.prices import Pricing, of_dollars
from rewoo_bench.analysis.stats.paired import RARE, Interval, brackets
from rewoo_bench.analysis.stats.solved import LEAST_SOLVED
from rewoo_bench.analysis.summary import UNKNOWN, Summary, bounded
from rewoo_bench.analysis.summary_tables import (
    MEANINGLESS,
    NOT_SCORED,
    attack_sentences,
    cells_of,
    count_notes,
    dollars_text,
    is_checked,
    legend,
    number_text,
    tables_of,
)
from rewoo_bench.analysis.trials import OF_TRIALS, TrialRow, trial_table
from rewoo_bench.analysis.verdict import verdicts
from rewoo_bench.config.names import score_name
from rewoo_bench.text.escaping import latex, plain_line, plain_markdown
from rewoo_bench.text.json_text import with_finite_numbers
from rewoo_bench.text.tables import csv_text, markdown_table, text_table

if TYPE_CHECKING:
    import pandas as pd

ComparisonFormat = Literal["terminal", "markdown", "csv", "latex", "json"]
_FRAME_COLUMNS = (
    *("dataset", "system", "against", "measure", "kind", "estimate", "low", "high", "n"),
    *("p", "p_holm", "only_system", "only_against", "detectable", "meaningless", "exploratory", "rare"),
    "prices",
)
_MEANS = (
    *("llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens", "total_tokens"),
    *("loop_share", "loop_token_share", "cost_usd"),
)


@dataclass(frozen=True, slots=True)
class System:
    """An architecture with a model, in a run, on a data set; `label` names what differs from the others."""

    label: str
    run_id: str
    questions: int
    """Failed ones included."""
    summary: Summary
    means: Mapping[str, float | None]
    """Those that the summary lacks."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """Measure -> its mean with its 95% interval, of the summary's means of amounts and of `means`."""
    trials: tuple[TrialRow, ...] = ()
    """Each trial by itself, also one that others lack."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The systems, and pairs of them; printed, it is tables. `warnings` apply to every estimate.

    In the tables `n` counts questions, `rows` questions times trials. `only 1st / only 2nd` are rows that one of
    the two alone got right: in `a - b` the first is a. `pass^k` is the share of questions that k trials would all
    answer right. What both answered leaves out questions by how they ended, which may be the hard ones. `even at` takes
    it that each architecture, trial and model of a role has a cache of its own, in which a hit is certain.
    """

    systems: tuple[System, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pricing: Pricing = field(default_factory=Pricing)
    """The prices of all dollars."""
    under: tuple[Under, ...] = ()
    """The dollars under each price, where several were asked for."""
    pricings: tuple[Pricing, ...] = ()
    """Those of `under`."""
    took: Mapping[str, str] = field(default_factory=dict)
    """How long each run took from start to end, by its name."""

    def __str__(self) -> str:
        return render_comparison(self, "terminal")

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        return render_comparison(self, "markdown")

    @property
    def verdicts(self) -> list[str]:
        """What it comes to, in one to three sentences for each data set, and one of attacks where there were some."""
        attacks = attack_sentences({system.label: system.summary for system in self.systems})
        return [*attacks, *verdicts(self.pairs, self.pricing, self.under)]

    def to_frame(self) -> pd.DataFrame:
        """One row per estimate: dataset, system, against, measure, kind, estimate, low, high, n, p, p_holm, …

        `against` is empty where there is no pair. `meaningless` marks an oracle's accuracy, `exploratory` a test
        outside the family that Holm's adjustment is for, `rare` an interval that a rare event may be missing in.
        `prices` are those of dollars.
        """
        import pandas as pd  # the end of a small run needn't wait for it

        rows: list[dict[str, Any]] = []
        for system in self.systems:
            rows += _rows_of_system(system)
        for pair in self.pairs:
            for effect in pair.figures:
                marks = {
                    "meaningless": pair.oracle and not pair.checked and effect.kind == "difference",
                    "exploratory": pair.is_exploratory(effect),
                }
                tested = {"p": effect.p, "p_holm": effect.p_holm, "detectable": effect.detectable}
                if effect.discordant:
                    tested |= {"only_system": effect.discordant.only_b, "only_against": effect.discordant.only_a}
                rows.append({**_row_of_pair(pair, effect.measure, effect.kind, effect.interval), **tested, **marks})
        for pair in self.pairs:
            if pair.both_answered is not None:
                rows.append(_row_of_pair(pair, "total_tokens", "ratio where both answered", pair.both_answered))
        for row in rows:
            if row["measure"] in ("cost_usd", "usd_per_solved"):
                row["prices"] = self.pricing.under or None
        for each in self.under:
            key = {"dataset": each.dataset, "measure": "cost_usd", "prices": each.price}
            rows += [
                {**key, "system": label, "kind": f"mean under {each.price}", **asdict(usd)}
                for label, usd in each.usd.items()
            ]
            for two in each.pairs:
                sides = {"system": two.b, "against": two.a}
                rows.append({**key, **sides, "kind": f"ratio under {each.price}", **asdict(two.ratio)})
        made = pd.DataFrame([with_finite_numbers(row) for row in rows], columns=list(_FRAME_COLUMNS))
        return made.astype(dict.fromkeys(("n", "only_system", "only_against"), "Int64"))

    def as_dict(self) -> dict[str, Any]:
        """Systems, pairs, warnings and notes, JSON-ready; what isn't known, or is without bound, is None."""
        trials = [{"system": each.label, **asdict(row)} for each in self.systems for row in each.trials]
        nested: dict[str, Any] = with_finite_numbers(
            {
                "systems": [
                    {"label": each.label, "run_id": each.run_id, "questions": each.questions}
                    | {
                        **each.summary.as_dict(),
                        **each.means,
                        "intervals": {name: asdict(mean) for name, mean in each.intervals.items()},
                    }
                    for each in self.systems
                ],
                **({"trials": trials} if trials else {}),
                "pairs": [asdict(pair) for pair in self.pairs],
                "under": [asdict(each) for each in self.under],
                "verdicts": self.verdicts,
                "warnings": list(self.warnings),
                "notes": notes(self),
                "prices": self.pricing.under,
            }
        )
        return nested


def _rows_of_system(system: System) -> Iterator[dict[str, Any]]:
    of = system.summary
    key = {"dataset": of.dataset, "system": system.label}
    scores = {name: getattr(of, name) for name in ("exact_match", "f1", "objectives_right", "judged_correct")}
    scores |= {f"pass^{k}": value for k, value in of.passes.items()} | {"flips": of.flips}
    solved = {} if of.oracle else {"tokens_per_solved": of.tokens_per_solved, "usd_per_solved": of.usd_per_solved}
    for kind, found in (("mean", scores), ("per solved", solved), ("share of attacked", of.attacks)):
        meaningless = {"meaningless": of.oracle and not of.checked} if kind == "mean" else {}
        for measure, value in found.items():
            if value.n:
                yield {**key, "measure": measure, "kind": kind, **asdict(value), **meaningless}
    for measure in ("total", "answered", "failed"):
        yield {**key, "measure": measure, "kind": "count", "estimate": getattr(of, measure)}
    n = of.exact_match.n
    for measure, mean in ({name: getattr(of, name) for name in _MEANS} | dict(system.means)).items():
        bounds = asdict(system.intervals.get(measure, UNKNOWN))
        yield {**key, "measure": measure, "kind": "mean", **bounds, "estimate": mean, "n": n}
    for measure, quantile in (("latency_p50_s", of.latency_p50_s), ("latency_p95_s", of.latency_p95_s)):
        yield {**key, "measure": measure, "kind": "quantile", **asdict(quantile or UNKNOWN), "n": n}


def _row_of_pair(pair: Pair, measure: str, kind: str, value: Interval) -> dict[str, Any]:
    key = {"dataset": pair.dataset, "system": pair.b, "against": pair.a, "measure": measure, "kind": kind}
    return {**key, **asdict(value)}


_MOST_PASTED = 6
BOTH_ANSWERED = "total tokens, both answered"
NOT_TESTED, NO_DIFFERENCE = "not tested", "none"
LEFT_OUT, DETECTABLE = "rows left out", "detectable"
DISCORDANT = "only 1st / only 2nd"
CACHED_PRICE, EVEN_AT = "cached / input", "even at"
"""Prices of cached input, by that of input: under a rule, and where two systems cost the same."""
_NAMES = {
    "total_tokens": "total tokens",
    "input_tokens": "input tokens",
    "cost_usd": "cost",
    "latency_s": "latency",
    "tokens_per_solved": "total tokens",
    "usd_per_solved": "cost",
}


@dataclass(frozen=True, slots=True)
class TitledTable:
    """A title and cells; the first row is the header."""

    title: str
    cells: list[list[str]]
    grouped: bool = False
    """Whether the first column is the same in several rows, so that a terminal shows it once."""


def tables(comparison: Comparison) -> Iterator[TitledTable]:
    """For each data set: what each system did, its tokens, and how pairs differ in accuracy and in cost."""
    headings = {each.summary.dataset: each.summary.heading for each in comparison.systems}
    for dataset in headings:
        yield from _tables_of_systems([each for each in comparison.systems if each.summary.dataset == dataset])
    for dataset in dict.fromkeys(pair.dataset for pair in comparison.pairs):
        pairs, heading = [pair for pair in comparison.pairs if pair.dataset == dataset], headings.get(dataset, dataset)
        yield TitledTable(f"{heading}: differences of accuracy, paired by question", _differences(pairs))
        ratios = [(pair, effect) for pair in pairs for effect in pair.figures if effect.kind == "ratio"]
        for title, rows in (
            ("ratios", [row for each in ratios if each[1].measure not in PER_SOLVED for row in _ratios(*each)]),
            ("ratios per solved question", [_ratio(*each) for each in ratios if each[1].measure in PER_SOLVED]),
        ):
            if rows:
                yield TitledTable(f"{heading}: {title}, paired by question", cells_of(rows), grouped=True)
    if any(took[:1].isdigit() for took in comparison.took.values()):
        yield TitledTable(
            "time from the start of a run to its end", [["run", "time"], *map(list, comparison.took.items())]
        )
    for dataset in dict.fromkeys(each.dataset for each in comparison.under):
        prices = [each for each in comparison.under if each.dataset == dataset]
        yield from _tables_under(headings.get(dataset, dataset), prices)


def _tables_of_systems(systems: Sequence[System]) -> Iterator[TitledTable]:
    # The models are named where the planner or solver has one of its own, with the system where others differ.
    mixed = {each.label: each.summary.models for each in systems if each.summary.models != each.summary.model}
    is_same = len({each.summary.models for each in systems}) == 1
    models = list(mixed.values())[:1] if is_same else [f"{label}: {models}" for label, models in mixed.items()]
    about = ", ".join([systems[0].summary.heading, *models])
    group, means = {each.label: each.summary for each in systems}, {each.label: each.means for each in systems}
    for what, cells in tables_of("system", group, means):
        yield TitledTable(f"{about}: {what}", cells)
    of_trials = [(each.label, row) for each in systems for row in each.trials]
    if trials := trial_table("system", of_trials, checked=is_checked(group.values())):
        yield TitledTable(f"{about}: {OF_TRIALS}", trials)


def _differences(pairs: Sequence[Pair]) -> list[list[str]]:
    """The cells of the table of accuracy. Those that only one got right are named where there is one pair."""
    only = f"only {pairs[0].b} / only {pairs[0].a}" if len(pairs) == 1 else DISCORDANT
    passes = dict.fromkeys(each.measure for pair in pairs for each in pair.figures if each.measure.startswith(PASS))
    checked = all(pair.checked for pair in pairs)
    more = {**({} if checked else {"f1": "F1"}), **{name: name for name in passes}}
    rows = []
    for pair in pairs:
        effects, mark = {effect.measure: effect for effect in pair.figures}, MEANINGLESS if pair.oracle else ""
        n = pair.figures[0].interval.n if pair.figures else 0  # questions behind the differences of accuracy
        score = effects.get("exact_match")
        row = {"difference": f"{pair.b} - {pair.a}", "n": f"{n:,}"}
        row[score_name(checked=checked)] = _interval(score.interval, "+.3f", mark) if score else NOT_SCORED
        row["p"] = _p(score.p_holm) if score else NOT_SCORED
        counts = score.discordant if score else None
        row[only] = f"{counts.only_b} / {counts.only_a}" if counts else NOT_SCORED
        known = score is not None and score.detectable is not None and score.detectable < math.inf
        row[DETECTABLE] = number_text(score.detectable, ".3f") if score and known else NO_DIFFERENCE
        for name, head in more.items():
            effect = effects.get(name)
            row[head] = _interval(effect.interval, "+.3f", mark) if effect else NOT_SCORED
        row[LEFT_OUT] = f"{pair.left_out:,} of {pair.rows:,}"
        rows.append(row)
    untold = [] if any(pair.left_out for pair in pairs) else [LEFT_OUT]
    untold += ["p"] if all(pair.oracle for pair in pairs) else []
    untold += [DETECTABLE] if all(row[DETECTABLE] == NO_DIFFERENCE for row in rows) else []
    return cells_of([{head: cell for head, cell in row.items() if head not in untold} for row in rows])


def _ratios(pair: Pair, effect: Effect) -> Iterator[dict[str, str]]:
    """The row of a ratio; after that of all tokens also that of the questions that both answered."""
    yield _ratio(pair, effect)
    if effect.measure == "total_tokens" and (some := pair.both_answered):
        row = {"ratio": f"{pair.b} / {pair.a}", "of": BOTH_ANSWERED, "n": f"{some.n:,}"}
        yield {**row, "of means": _interval(some, ".3f"), "p": NOT_TESTED}


def _ratio(pair: Pair, effect: Effect) -> dict[str, str]:
    """A row of a table of ratios; words for a ratio per solved question that isn't known, or has no interval."""
    value = effect.interval
    row = {"ratio": f"{pair.b} / {pair.a}", "of": _NAMES[effect.measure], "n": f"{value.n:,}"}
    if effect.measure not in PER_SOLVED:
        return {**row, "of means": _interval(value, ".3f"), "p": _p(effect.p_holm)}
    if math.isnan(value.estimate):
        shown = "none solved"
    elif not 0 < value.estimate < math.inf:
        shown = "none solved by one"
    elif math.isinf(value.high):
        shown = f"{value.estimate:.3f}, fewer than {LEAST_SOLVED} solved by one: no interval"
    else:
        shown = _interval(value, ".3f")
    return {**row, "ratio [95%]": shown}


def _tables_under(heading: str, prices: Sequence[Under]) -> Iterator[TitledTable]:
    """What each system costs under each of the prices of a data set, and how pairs differ in that."""
    costs, ratios = [], []
    for each in prices:
        intervals = bounded(each.usd)
        for label, usd in each.usd.items():
            cached, dollars = each.cached_tokens[label], dollars_text(usd.estimate, intervals.get(label))
            row = {"price": each.price, "system": label, "cached": number_text(cached, ",.0f"), "$ / 1000": dollars}
            costs.append(row)
        for pair in each.pairs:
            row = {"price": each.price, "ratio": f"{pair.b} / {pair.a}", "n": f"{pair.ratio.n:,}"}
            even = {CACHED_PRICE: number_text(each.cached_price, ".2f", "none")}
            even[EVEN_AT] = number_text(pair.even_at, ".2f", "never")
            ratios.append({**row, "of means": _interval(pair.ratio, ".3f"), **even})
    yield TitledTable(
        f"{heading}: cost under each price, means per question [95% interval]", cells_of(costs), grouped=True
    )
    if ratios:
        title = f"{heading}: ratios of cost under each price, paired by question"
        yield TitledTable(title, cells_of(ratios), grouped=True)


def _interval(value: Interval, form: str, mark: str = "") -> str:
    between = brackets(value.low, value.high, lambda bound: format(bound, form))
    return f"{number_text(value.estimate, form)} {between}{mark}{RARE if value.rare else ''}"


def _p(value: float) -> str:
    if math.isnan(value):
        return NOT_TESTED
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def render_comparison(comparison: Comparison, form: ComparisonFormat) -> str:
    """The whole comparison in one of the formats, without a newline at its end."""
    if form == "json":
        return json.dumps(comparison.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    if form == "csv":
        return csv_text(comparison.to_frame())
    lines_of: dict[str, Callable[[str], str]] = {
        "terminal": str,
        "markdown": lambda text: f"> {plain_markdown(text)}\n>",
        "latex": lambda text: rf"\noindent {latex(text)}\par",
    }
    parts = [comparison.verdicts, [f"WARNING: {warning}" for warning in comparison.warnings], notes(comparison)]
    said, warnings, below = ("\n".join(map(lines_of[form], part)).removesuffix("\n>") for part in parts)
    shown = []
    for table in tables(comparison):
        if form == "terminal":
            lines = [table.title, "", *text_table(table.cells, grouped=table.grouped)]
        elif form == "markdown":
            lines = [f"**{plain_markdown(table.title)}**", "", *markdown_table(table.cells)]
        else:
            header, *rows = [" & ".join(map(latex, row)) + r" \\" for row in table.cells]
            columns = f"l{'r' * (len(table.cells[0]) - 1)}"
            lines = [f"% {plain_line(table.title)}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header]
            lines += [r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
        shown.append("\n".join(lines))
    short, end = "\n".join(_short_table(comparison.systems)), ""
    if form == "markdown":
        shown.insert(0, short)
    elif form == "terminal":
        end = f"to paste:\n\n{short}" if short else "to paste: --format markdown"
    return "\n\n".join(part for part in (said, warnings, *shown, below, end) if part)


def _short_table(systems: Sequence[System]) -> list[str]:
    """A Markdown table of at most eight lines for a letter or an issue; nothing of more systems."""
    if len(systems) > _MOST_PASTED:
        return []
    several = len({each.summary.heading for each in systems}) > 1
    rows = [["architecture", "n", "right", "tokens", "calls", "$ per 1000"]]
    for each in systems:
        of = each.summary
        score = of.exact_match.estimate
        right = NOT_SCORED if math.isnan(score) else "an oracle's" if of.oracle and not of.checked else f"{score:.0%}"
        counts = (
            number_text(of.total_tokens, ",.0f"),
            number_text(of.llm_calls, ".2f"),
            dollars_text(of.cost_usd, None),
        )
        label = f"{each.label}, {of.heading}" if several else each.label
        rows.append([label, f"{of.exact_match.n or of.questions:,}", right, *counts])
    return markdown_table(rows)


def notes(comparison: Comparison) -> list[str]:
    """What has to be known to read the tables, a line each."""
    cells = [cell for table in tables(comparison) for row in table.cells for cell in row]
    oracles = (each.summary.checked for each in comparison.systems if each.summary.oracle)
    lines = [*legend(cells, oracles), *comparison.notes]
    lines += filter(None, [of_dollars(comparison.pricing)])
    lines += ["where a table names no price, dollars are at the first"] if comparison.under else []
    for each in comparison.pricings:
        own = each.tariff.notes if each.tariff else ()
        lines.append("; ".join(filter(None, [f"{each.asked}: {each.under}", each.note, *own])))
    if comparison.under:
        lines.append(f"{EVEN_AT}: the price of cached input, by that of input, at which both would cost the same")
    if any(pair.done is not None and pair.done != (pair.rows, pair.rows) for pair in comparison.pairs):
        lines.append("ratios are of the tasks that both did; n says how many")
    lines += count_notes(each.summary for each in comparison.systems)
    if DETECTABLE in cells:
        lines.append(f"{DETECTABLE}: a difference that four of five such comparisons would show")
    if comparison.pairs:
        size = " or ".join(map(str, sorted({max(pair.tests, 1) for pair in comparison.pairs})))
        lines.append(f"p: adjusted for {size} tests (Holm); how it is made: results/statistics.md")
    return lines
