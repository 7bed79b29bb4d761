"""The tables of a study: a function each, from its results to rows of text, the heads first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from rewoo_bench.analysis.prices import EXAMPLE, SHOWN
from rewoo_bench.analysis.summary_tables import OF_OBJECTIVES
from rewoo_bench.report.overview import claim_lines
from rewoo_bench.runs.rows import left_out
from rewoo_bench.study.declaration import Cell
from rewoo_bench.study.drawings import price_title
from rewoo_bench.study.outcomes import (
    PAIR,
    UNCHANGED,
    CellResults,
    Decided,
    StudyResults,
    loops_and_plans,
    main_cells,
    priced_by,
)


def figures_table(results: StudyResults) -> pd.DataFrame:
    """Every figure by its name: estimate, 95% interval, questions, and whether a rare event may be missing."""
    return pd.DataFrame(
        [
            {
                "figure": name, "estimate": each.estimate, "low": each.low, "high": each.high, "n": each.n,
                "rare": each.rare,
            }
            for name, each in results.figures.items()
        ]
    ).round(6)  # fmt: skip


def outcomes_table(results: StudyResults) -> pd.DataFrame:
    """The declared outcomes: what each came to, and how it is decided."""
    return pd.DataFrame(
        [
            {
                "outcome": each.outcome.name, "run": each.cell.name,
                "architectures": " / ".join(each.architectures), "measure": each.outcome.measure,
                "prices": each.outcome.prices, "statistic": each.outcome.statistic, "margin": each.margin,
                "estimate": each.interval.estimate, "low": each.interval.low, "high": each.interval.high,
                "n": each.interval.n, "declared_n": each.declared_n, "p": each.p, "p_holm": each.p_holm,
                "verdict": each.verdict, "detectable": each.detectable, "exploratory": each.exploratory,
                "family": each.outcome.family,
            }
            for each in results.outcomes
        ]
    ).round(6)  # fmt: skip


def outcomes(results: StudyResults) -> list[list[str]]:
    head, *titles = _titles([each.cell for each in results.outcomes])
    rows = [["outcome", head, "n of those declared", "estimate [95% CI]", "p, Holm", "verdict"]]
    for each, title in zip(results.outcomes, titles, strict=True):
        p = "-" if each.p_holm != each.p_holm else "<0.001" if each.p_holm < 0.001 else f"{each.p_holm:.3f}"
        first, second = each.architectures
        named = f"{each.outcome.name}: {first} {'/' if each.outcome.statistic == 'ratio' else '-'} {second}"
        if each.outcome.statistic == "non-inferiority":
            one, other = each.outcome.architectures
            named += f" ({one} at most {each.outcome.margin:g} worse than {other})"
        verdict = each.verdict_shown
        if each.detectable is not None and math.isfinite(each.detectable):
            verdict += f" (McNemar's test has 80% power for a difference of {each.detectable:.2f})"
        rows.append([named, title, reached_n(each), results.figures[each.name].text, p, verdict])
    return rows


def _titles(cells: Sequence[Cell]) -> list[str]:
    """The heading of a table's column and what it says of each row's run: the model only where they differ."""
    if len({each.model for each in cells}) > 1:
        return ["data set, model", *(each.title for each in cells)]
    return ["data set", *(", ".join([each.dataset, *each.conditions_shown]) for each in cells)]


def reached_n(of: Decided) -> str:
    """`44 of 375`."""
    return f"{of.interval.n:,} of {'all' if of.declared_n is None else f'{of.declared_n:,}'}"


def _texts(results: StudyResults, of: str, *measures: str) -> list[str]:
    """Figures of an architecture or of two, as a table has them; `-` where one isn't known."""
    found = (results.figures.get(f"{of}/{measure}") for measure in measures)
    return ["-" if figure is None else figure.text for figure in found]


def _n(results: StudyResults, of: str, run: CellResults) -> str:
    """The number of questions behind figures: `6 of 10` where a provider failed the others."""
    figure = results.figures.get(f"{of}/total_tokens")
    own = run.rows[run.rows["architecture"].isin(of.removeprefix(f"{run.cell.name}/").split(" / "))]
    n = figure.n if figure is not None else 0 if len(own) and left_out(own).all() else run.n
    return f"{n:,} of {run.n:,}" if n < run.n else f"{run.n:,}"


def of_cells(results: StudyResults, cells: str) -> list[CellResults]:
    """The runs of some cells (`steps,form`), in the order of the study."""
    return [each for each in results.cells if each.cell.cells in cells.split(",")]


def means(results: StudyResults, runs: Sequence[CellResults], prices: Iterable[str] = SHOWN) -> list[list[str]]:
    """Each architecture of some runs."""
    systems = [(each, name, f"{each.cell.name}/{name}") for each in runs for name in each.names]
    is_joined = any(f"{of}/objectives_right" in results.figures for _, _, of in systems)
    joined = {"objectives_right": OF_OBJECTIVES} if is_joined else {}
    shown = {"exact_match": "exact match [95% CI]", **joined, "total_tokens": "tokens", "llm_calls": "model calls"}
    shown |= {name: f"{price_title(results.study, name)}, for 1,000" for name in prices}
    head, *titles = _titles([each.cell for each, _, _ in systems])
    rows = [[head, "architecture", "n", *shown.values()]]
    for title, (each, name, of) in zip(titles, systems, strict=True):
        texts = _texts(results, of, *shown)
        unknown_scores = 1 + len(joined) if each.is_oracle else 0
        rows.append([title, name, _n(results, of, each), *["-"] * unknown_scores, *texts[unknown_scores:]])
        if name == each.names[-1]:
            lacking = [other for other in each.cell.options.architectures if other not in each.architectures]
            rows += [[title, other, "0", *["-"] * len(shown)] for other in lacking]
    return rows


def ratios(results: StudyResults, runs: Sequence[CellResults]) -> list[list[str]]:
    """Each run but the main ones and the map's: ratios of two architectures and their difference of exact match.

    Beside each ratio stands the main run's on the same questions, where there is one.
    """
    measures = {"total_tokens": "tokens", EXAMPLE: price_title(results.study, EXAMPLE)}
    rows = [["run", "architectures", "n", *(each for title in measures.values() for each in (title, UNCHANGED))]]
    rows[0].append("exact match, the first's less the second's")
    for each in runs:
        names = each.names
        if "hops" in each.cell.conditions or len(names) < 2 or each.cell.cells == main_cells(results.study):
            continue
        first, second = next(iter(loops_and_plans(names)), (names[1], names[0]))
        of = f"{each.cell.name}/{first} / {second}"
        unchanged = f"{each.cell.name}/{UNCHANGED}/{' / '.join(PAIR)}" if loops_and_plans(names) else ""
        ratios = [text for name in measures for its in (of, unchanged) for text in _texts(results, its, name)]
        difference = _texts(results, f"{each.cell.name}/{first} - {second}", "exact_match")
        difference = ["-"] if each.is_oracle else difference
        rows.append([each.cell.name, f"{first} / {second}", _n(results, of, each), *ratios, *difference])
    return rows


def prices(results: StudyResults) -> list[list[str]]:
    """ReAct's dollars as a multiple of ReWOO's in the main runs, a row for each price."""
    runs = of_cells(results, main_cells(results.study))
    pairs = [f"{each.cell.name}/{' / '.join(PAIR)}" for each in runs]
    heads = (f"{each.cell.title} (n = {_n(results, pair, each)})" for each, pair in zip(runs, pairs, strict=True))
    rows = [["price", *heads]]
    for price in priced_by(results.study) if runs else ():
        cells = [_texts(results, pair, price)[0] for pair in pairs]
        rows.append([price_title(results.study, price), *cells])
    return rows


def trials(results: StudyResults) -> list[list[str]]:
    rows = [["run", "architecture", "n", "trials", "pass@1", "pass^k", "trials differ"]]
    for each in results.cells:
        trials = each.cell.options.trials
        for name in each.names if trials > 1 else ():
            texts = _texts(results, f"{each.cell.name}/{name}", "exact_match", f"pass^{trials}", "flips")
            texts = ["-"] * len(texts) if each.is_oracle else texts
            rows.append([each.cell.name, name, f"{each.n:,}", str(trials), *texts])
    return rows


def claims(runs: Sequence[Path], *verdicts: str) -> list[list[str]]:
    """A line for each published claim that the runs can test, of these verdicts; not for those that our own design
    makes true."""
    rows = [["about", "claim", "source", "claimed", "measured [95% CI]", "verdict"]]
    for each in claim_lines(runs):
        if each["verdict"] != "by construction" and each["verdict"] in (verdicts or (each["verdict"],)):
            rows.append([each[name] for name in ("about", "says", "source", "claimed", "measured", "verdict_shown")])
    return rows


def reached(results: StudyResults) -> list[list[str]]:
    """How many questions each run has, of those declared."""
    rows = [["run", "questions", "declared", "status"]]
    for each in results.cells:
        declared = "all" if each.cell.options.questions is None else f"{each.cell.options.questions:,}"
        rows.append([each.cell.name, f"{each.n:,}", declared, each.exploratory or "as declared"])
    asked = {each.cell.name for each in results.cells}
    lacking = [cell for cell in results.study.cells if cell.name not in asked]
    rows += [[cell.name, "0", f"{cell.options.questions or 'all'}", "not run"] for cell in lacking]
    return rows
