"""The three figures of a study: the map, dollars under price rules, accuracy against cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from rewoo_bench.analysis.prices import SHOWN
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.style import Picture, series_styles, styled
from rewoo_bench.study.outcomes import PAIR, CellResults, StudyResults

_FARTHEST, _DARK = 3.0, 2.2  # times, at the ends of the map's colours, and where they are dark
_MARGIN = 1.15  # of a bound, at the ends of a log scale


def drawings(results: StudyResults, main: str) -> Iterator[tuple[str, Picture]]:
    """The figures that the runs have data for, by name; `main` names the cells of the study's outcomes."""
    own = [each for each in results.cells if each.cell.cells == main]
    grid = [
        each
        for each in results.cells
        if all(isinstance(each.cell.conditions.get(name), int) for name in ("hops", "objectives"))
    ]
    with styled():
        if grid:
            yield "map", _map(results, grid)
        if own:
            yield "prices", _prices(results, own)
            yield "accuracy", _accuracy(results, own)


def _map(results: StudyResults, cells: Sequence[CellResults]) -> Picture:
    """The ratio of dollars by depth and breadth, a panel for each price rule."""
    hops = sorted({int(each.cell.conditions["hops"]) for each in cells})
    objectives = sorted({int(each.cell.conditions["objectives"]) for each in cells})
    figure, axes = style.sheet(1, len(SHOWN), 3.4, sharey=True, squeeze=False)
    norm = TwoSlopeNorm(1.0, 1 / _FARTHEST, _FARTHEST)
    for panel, (price, title) in zip(axes[0], SHOWN.items(), strict=True):
        values = np.full((len(objectives), len(hops)), np.nan)
        for each in cells:
            ratio = results.figures.get(f"{each.cell.name}/{' / '.join(PAIR)}/{price}")
            row = objectives.index(int(each.cell.conditions["objectives"]))
            values[row, hops.index(int(each.cell.conditions["hops"]))] = ratio.estimate if ratio else np.nan
        panel.imshow(values, cmap="RdBu", norm=norm, aspect="auto", origin="lower")
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "white" if max(value, 1 / value) > _DARK else style.INK
                panel.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
        panel.set_xticks(range(len(hops)), [str(each) for each in hops])
        panel.set_yticks(range(len(objectives)), [str(each) for each in objectives])
        panel.set_title(title)
        panel.set_xlabel("look-ups of a question")
        panel.grid(visible=False)
    axes[0][0].set_ylabel("questions of a task")
    return style.picture(
        figure,
        "ReAct's dollars as a multiple of ReWOO's, without a model's mistakes",
        "Blue: ReWOO is the cheaper one. True by the construction of these architectures and their prompts, not a "
        "measurement of a model.",
        facts=f"oracle · chain · n = {min(each.n for each in cells)} tasks in each cell",
    )


def _prices(results: StudyResults, cells: Sequence[CellResults]) -> Picture:
    """Ratios of tokens and of dollars under each rule, with intervals, a row for each data set and model."""
    measures = {"total_tokens": "tokens", **{price: f"$, {title}" for price, title in SHOWN.items()}}
    rows = [(each, measure) for each in cells for measure in measures]
    names = [f"{each.cell.title}: {measures[measure]} (n = {each.n})" for each, measure in rows]
    figure, panel = style.sheet(1, 1, 1.9 + 0.24 * len(names))
    bounds = [1.0]
    for place, (each, measure) in enumerate(reversed(rows)):
        value = results.figures.get(f"{each.cell.name}/{' / '.join(PAIR)}/{measure}")
        if value and value.n:
            bounds += [value.low, value.high]
            panel.plot([value.low, value.high], [place, place], color=style.INK)
            panel.plot([value.estimate], [place], "o", color=style.INK)
    panel.axvline(1.0, color=style.GREY, lw=0.8)
    panel.set_yticks(range(len(names)), list(reversed(names)))
    _log_axis(panel, bounds, style.WIDTH / 2)
    panel.set_xlabel("ReAct / ReWOO, ratio of means (log scale)")
    return style.picture(
        figure,
        "What planning ahead saves, in tokens and in dollars",
        "To the right of 1 ReWOO is the cheaper one. Bars: 95% intervals, paired by question.",
        facts=_facts(cells),
    )


def _accuracy(results: StudyResults, cells: Sequence[CellResults]) -> Picture:
    """Exact match against tokens of each architecture, a panel for each data set and model."""
    figure, axes = style.sheet(1, len(cells), sharey=True, squeeze=False)
    styles = series_styles(list(dict.fromkeys(name for each in cells for name in each.cell.options.architectures)))
    for panel, each in zip(axes[0], cells, strict=True):
        bounds = []
        for name in each.cell.options.architectures:
            own, figures = styles[name], results.figures
            right, tokens = (figures.get(f"{each.cell.name}/{name}/{what}") for what in ("exact_match", "total_tokens"))
            if right is None or tokens is None:
                continue
            bounds += [tokens.low, tokens.high]
            panel.errorbar(
                tokens.estimate, right.estimate, fmt=own.marker, color=own.colour, label=own.name,
                xerr=[[tokens.estimate - tokens.low], [tokens.high - tokens.estimate]],
                yerr=[[right.estimate - right.low], [right.high - right.estimate]],
            )  # fmt: skip
        _log_axis(panel, bounds, style.WIDTH / len(cells))
        heads = [f"{each.cell.dataset}, {each.cell.model}", *each.cell.conditions_shown, f"n = {each.n}"]
        panel.set_title("\n".join(heads))
        panel.set_xlabel("tokens of a question (log scale)")
    axes[0][0].set_ylabel("exact match")
    handles, labels = axes[0][0].get_legend_handles_labels()
    style.legend_above(figure, handles=handles, labels=labels)
    return style.picture(
        figure, "Accuracy against cost", "Up and to the left is better. Bars: 95% intervals.", facts=_facts(cells)
    )


def _log_axis(panel: Axes, bounds: Sequence[float], inches: float) -> None:
    known = [bound for bound in bounds if 0 < bound < np.inf]
    style.logarithmic(panel, "x", min(known) / _MARGIN, max(known) * _MARGIN, inches)


def _facts(cells: Sequence[CellResults]) -> str:
    return " · ".join(dict.fromkeys(f"{each.cell.dataset}, {each.cell.options.model}, n = {each.n}" for each in cells))
