"""The three figures of a study: the map, dollars under price rules, accuracy against tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from rewoo_bench.analysis.prices import SHOWN
from rewoo_bench.config.names import file_name
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.style import Picture, series_styles, styled
from rewoo_bench.study.declaration import Study
from rewoo_bench.study.outcomes import (
    CONTEXTS,
    PAIR,
    CellResults,
    StudyResults,
    loops_and_plans,
    main_cells,
    priced_by,
    with_context,
)

_FARTHEST, _DARK = 3.0, 2.2  # times, at the ends of the map's colours, and where they are dark
_UPWARDS = {"objectives": "questions of a task", "words": "words of a page"}
"""The conditions that the map has beside the look-ups (`hops`)."""
_MARGIN = 1.15  # of a bound, at the ends of a log scale
_IN_A_ROW, _MOST_TICKS = 2, 5  # panels; spaces between the numbers of an axis


def drawn(results: StudyResults) -> Mapping[str, Callable[[], Picture]]:
    """The figures that the runs have data for, by name."""
    own = [each for each in results.cells if each.cell.cells == main_cells(results.study)]
    found: dict[str, Callable[[], Picture]] = {}
    if rows := _map_rows(results):
        found["map"] = lambda: _map(rows, results)
    if pairs := [each for each in own if PAIR in loops_and_plans(each.names)]:
        found["prices"] = lambda: _prices(results, pairs)
    if models := [each for each in own if not each.is_oracle]:
        found["accuracy"] = lambda: _accuracy(results, models)
    return found


def drawings(results: StudyResults) -> Iterator[tuple[str, Picture]]:
    """The same figures, each made when it is asked for, so that one at a time is in memory."""
    with styled():
        for name, picture in drawn(results).items():
            yield name, picture()


@dataclass(frozen=True)
class _MapRow:
    """A row of the map: what grows upwards, and the ratio of dollars at each place, by price."""

    label: str
    ratios: Mapping[str, Mapping[tuple[int, int], float]]
    """Price -> (look-ups, what grows upwards) -> ReAct's dollars / ReWOO's."""


def _map_rows(results: StudyResults) -> list[_MapRow]:
    """The rows for which there are runs of the oracle."""
    grid = [each for each in results.cells if isinstance(each.cell.conditions.get("hops"), int)]
    found: list[_MapRow] = []
    for name, label in _UPWARDS.items():
        own = [each for each in grid if isinstance(each.cell.conditions.get(name), int)]
        places = [(each, int(each.cell.conditions[name]), 0) for each in own]
        found.append(_map_row(results, label, places))
        if name == "objectives":
            contexts = [(each, at, at) for each, size, _ in places if size == 1 for at in (0, *CONTEXTS)]
            found.append(_map_row(results, "tokens before each prompt", contexts))
    return [row for row in found if any(row.ratios.values())]


def _map_row(results: StudyResults, label: str, places: Sequence[tuple[CellResults, int, int]]) -> _MapRow:
    """A row of some runs, each with its place upwards and the tokens before its prompts."""
    ratios: dict[str, dict[tuple[int, int], float]] = {price: {} for price in SHOWN}
    for price, (each, size, context) in product(SHOWN, places):
        for first, second in loops_and_plans(each.names)[:1]:
            named = f"{each.cell.name}/{first} / {second}/{with_context(price, context)}"
            if ratio := results.figures.get(named):
                ratios[price][int(each.cell.conditions["hops"]), size] = ratio.estimate
    return _MapRow(label, ratios)


def _map(rows: Sequence[_MapRow], results: StudyResults) -> Picture:
    """The ratio of dollars by depth and by what else makes a task long, a panel for each price rule."""
    figure, axes = style.sheet(len(rows), len(SHOWN), 1.2 + 2.1 * len(rows), style.WIDTH, sharey="row", squeeze=False)
    norm = TwoSlopeNorm(1.0, 1 / _FARTHEST, _FARTHEST)
    for row, panels in zip(rows, axes, strict=True):
        places = sorted({place for ratios in row.ratios.values() for place in ratios})
        hops, sizes = (sorted({place[axis] for place in places}) for axis in (0, 1))
        for panel, (price, title) in zip(panels, SHOWN.items(), strict=True):
            values = np.array([[row.ratios[price].get((x, y), np.nan) for x in hops] for y in sizes])
            panel.imshow(values, cmap="RdBu", norm=norm, aspect="auto", origin="lower")
            for (up, right), value in np.ndenumerate(values):
                if np.isfinite(value):
                    colour = "white" if max(value, 1 / value) > _DARK else style.INK
                    panel.text(right, up, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
            panel.set_xticks(range(len(hops)), [str(each) for each in hops])
            panel.set_yticks(range(len(sizes)), [f"{each:,}" for each in sizes])
            panel.grid(visible=False)
            if row is rows[0]:
                panel.set_title(title)
            if row is rows[-1]:
                panel.set_xlabel("look-ups of a question")
        panels[0].set_ylabel(row.label)
    drawn = [each for each in results.cells if "hops" in each.cell.conditions]
    return style.picture(
        figure,
        f"Dollars of {PAIR[0]} as a multiple of {PAIR[1]}'s, without a model's mistakes",
        "Blue: the plan is the cheaper one. True by the construction of these two architectures and their prompts, not "
        "a measurement of a model. Tokens before each prompt are added by calculation, to the calls of the LLM tool, "
        "too, and stand in the cache from the first call on.",
        facts=f"oracle · chain · n = {min(each.n for each in drawn)} tasks in each cell",
    )


def _prices(results: StudyResults, cells: Sequence[CellResults]) -> Picture:
    """Ratios of tokens and of dollars under each price, with intervals, a panel for each data set and model."""
    study = results.study
    measures = {"total_tokens": "tokens", **{price: price_title(study, price) for price in priced_by(study)}}
    figure, panels = _panels(len(cells), 2.1 + 0.24 * len(measures), sharex=True)
    bounds = [0.5, 2.0]
    for panel, each in zip(panels, cells, strict=True):
        for place, measure in enumerate(reversed(measures)):
            value = results.figures.get(f"{each.cell.name}/{' / '.join(PAIR)}/{measure}")
            if value and value.n:
                bounds += [value.low, value.high]
                panel.plot([value.low, value.high], [place, place], color=style.INK)
                panel.plot([value.estimate], [place], "o", color=style.INK)
        panel.axvline(1.0, color=style.GREY, lw=0.8)
        panel.set_yticks(range(len(measures)), list(reversed(measures.values())))
        panel.set_title(_head(each))
        panel.set_xlabel("ReAct / ReWOO, log")
    known = np.log2(_known(bounds))
    low, high = np.floor(known.min()), np.ceil(known.max())
    panel.set_xscale("log", base=2)
    panel.set_xlim(2**low, 2**high)
    panel.set_xticks([2.0**power for power in np.arange(low, high + 1, 1 + (high - low) // _MOST_TICKS)])
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.count(value)))
    return style.picture(
        figure,
        "ReAct's tokens and dollars as multiples of ReWOO's",
        "To the right of 1 ReAct takes more, to the left ReWOO. Bars: 95% intervals of the ratio of means, paired by "
        "question.",
        facts=_facts(cells),
    )


def _accuracy(results: StudyResults, cells: Sequence[CellResults]) -> Picture:
    """Exact match against tokens of each architecture, a panel for each data set and model."""
    figure, panels = _panels(len(cells), style.HEIGHT)
    styles = series_styles(list(dict.fromkeys(name for each in cells for name in each.names)))
    for panel, each in zip(panels, cells, strict=True):
        bounds = []
        for name in each.names:
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
        if len(known := _known(bounds)):  # no bound of a single question is finite
            style.logarithmic(panel, "x", known.min() / _MARGIN, known.max() * _MARGIN, style.WIDTH / _IN_A_ROW)
        panel.set_title(_head(each))
        panel.set_xlabel("tokens of a question (log scale)")
    for panel in panels[::_IN_A_ROW]:
        panel.set_ylabel("exact match")
    labelled = [panel.get_legend_handles_labels() for panel in panels]
    handles = {label: handle for each in labelled for handle, label in zip(*each, strict=True)}
    if handles:  # of a single question no interval is known
        style.legend_above(figure, handles=[*handles.values()], labels=[*handles])
    return style.picture(
        figure,
        "Accuracy against tokens",
        "Up and to the left is better; dollars under a cache may have another order. Bars: 95% intervals.",
        facts=_facts(cells),
    )


def _head(of: CellResults) -> str:
    return "\n".join([f"{of.cell.dataset}, {of.cell.model}", *of.cell.conditions_shown, f"n = {of.n}"])


def price_title(study: Study, price: str) -> str:
    """`$ gpt-5-mini, OpenAI's rule, from 1,024`; prices that nobody asks are `nominal $`."""
    tariff = named_tariff(study.price(price))
    return f"{'nominal $' if tariff.prices_are else f'$ {tariff.model}'}, {tariff.title}"


def _panels(number: int, height: float, **more: Any) -> tuple[Figure, list[Axes]]:
    """A figure of so many panels, two in a row, each row of a height in inches."""
    rows = -(-number // _IN_A_ROW)
    columns = min(number, _IN_A_ROW)
    figure, axes = style.sheet(rows, columns, rows * height, style.WIDTH, sharey=True, squeeze=False, **more)
    for unused in axes.flat[number:]:
        unused.remove()
    panels = [*axes.flat[:number]]
    for lowest in panels[-_IN_A_ROW:]:  # where an axis is shared, a panel above an unused one has no numbers
        lowest.tick_params(labelbottom=True)
    return figure, panels


def _known(bounds: Sequence[float]) -> NDArray[np.float64]:
    return np.array([bound for bound in bounds if 0 < bound < np.inf])


def _facts(cells: Sequence[CellResults]) -> str:
    return " · ".join(
        dict.fromkeys(f"{each.cell.dataset}, {file_name(each.cell.options.model)}, n = {each.n}" for each in cells)
    )
