"""The three figures of a study: the map, dollars under price rules, accuracy against tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from rewoo_bench.analysis.prices import SHOWN
from rewoo_bench.config.names import file_name
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.style import Picture, series_styles, styled
from rewoo_bench.study.declaration import Study
from rewoo_bench.study.outcomes import (
    PAIR,
    CellResults,
    StudyResults,
    loops_and_plans,
    main_cells,
)

_FARTHEST, _DARK = 3.0, 2.2  # times, at the ends of the map's colours, and where they are dark
_PRICE = "openai"
"""The rule under which accuracy is held against dollars."""
_MARGIN = 1.15  # of a bound, at the ends of a log scale
_MOST_TICKS, _WIDE = 5, 6.0  # spaces between the numbers of an axis; inches of a sheet with two panels and names


def drawn(results: StudyResults) -> Mapping[str, Callable[[], Picture]]:
    """The figures that the runs have data for, by name."""
    own = [each for each in results.cells if each.cell.cells == main_cells(results.study)]
    found: dict[str, Callable[[], Picture]] = {}
    if (places := _by_look_ups(results)) and any(_ratios(results, price, places) for price in SHOWN):
        found["map"] = lambda: _map(places, results)
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


def _by_look_ups(results: StudyResults) -> Mapping[int, CellResults]:
    """The oracle's runs by their look-ups, of the first cells with this condition: of each number the first run."""
    grid = [each for each in results.cells if isinstance(each.cell.conditions.get("hops"), int)]
    own = [each for each in grid if each.cell.cells == grid[0].cell.cells]
    return dict(sorted({int(each.cell.conditions["hops"]): each for each in reversed(own)}.items()))


def _ratios(results: StudyResults, price: str, places: Mapping[int, CellResults]) -> Mapping[int, float]:
    """ReAct's dollars / ReWOO's at a price, by look-ups."""
    named = {
        hops: f"{each.cell.name}/{' / '.join(loops_and_plans(each.names)[0])}/{price}"
        for hops, each in places.items()
        if loops_and_plans(each.names)
    }
    return {hops: results.figures[name].estimate for hops, name in named.items() if name in results.figures}


def _map(places: Mapping[int, CellResults], results: StudyResults) -> Picture:
    """The ratio of dollars by look-ups and price rule."""
    figure, axes = style.sheet(height=3.4)
    norm = TwoSlopeNorm(1.0, 1 / _FARTHEST, _FARTHEST)
    rows = [_ratios(results, price, places) for price in SHOWN]
    cached = [value for row in rows[1:] for value in row.values()]
    is_turned = min(rows[0].values(), default=0) > 1 > max(cached, default=1)
    values = np.array([[row.get(hops, np.nan) for hops in places] for row in rows])
    axes.imshow(values, cmap="RdBu", norm=norm, aspect="auto")
    for (down, right), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if max(value, 1 / value) > _DARK else style.INK
            axes.text(
                right, down, format(value, ".1f" if value >= 1 else ".2f"), ha="center", va="center", color=colour
            )
    axes.set_xticks(range(len(places)), [str(hops) for hops in places])
    axes.set_yticks(range(len(SHOWN)), list(SHOWN.values()))
    axes.grid(visible=False)
    axes.set_xlabel("look-ups of a question")
    return style.picture(
        figure,
        "Without a cache ReWOO is cheaper, with one ReAct is" if is_turned else "ReAct's dollars divided by ReWOO's",
        "ReAct's dollars divided by ReWOO's: blue where ReWOO is cheaper, red where ReAct is.",
        "OpenAI and Anthropic charge less for prompts that begin alike for 1,024 tokens or more"
        + (", and only ReAct's do." if is_turned else "."),
        "True by the construction of these two architectures and their prompts, not a measurement of a model.",
        facts=f"oracle · chain · n = {min(each.n for each in places.values())} tasks in each cell",
    )


def _prices(results: StudyResults, cells: Sequence[CellResults]) -> Picture:
    """Ratios of tokens and of dollars under three rules, with intervals, a panel for each data set and model."""
    measures = {"total_tokens": "tokens", **{price: f"$, {title}" for price, title in SHOWN.items()}}

    def value(of: CellResults, measure: str) -> Any:
        return results.figures.get(f"{of.cell.name}/{' / '.join(PAIR)}/{measure}")

    known = {measure: found.estimate for measure in measures if (found := value(cells[0], measure)) and found.n}
    order = sorted(measures, key=lambda measure: known.get(measure, np.inf))
    figure, panels = style.sheet(len(cells), 1, 1.2 + 1.7 * len(cells), sharex=True, squeeze=False)
    bounds = [0.5, 2.0]
    for (panel,), each in zip(panels, cells, strict=True):
        for place, measure in enumerate(order):
            if (found := value(each, measure)) and found.n:
                bounds += [found.low, found.high]
                panel.plot([found.low, found.high], [place, place], color=style.INK)
                panel.plot([found.estimate], [place], "o", color=style.INK)
                panel.annotate(f"{found.estimate:.2g}", (found.estimate, place), xytext=(0, 5), ha="center",
                               textcoords="offset points")  # fmt: skip
        panel.axvline(1.0, color=style.GREY, lw=0.8)
        panel.set_ylim(-0.5, len(order) - 0.3)
        panel.set_yticks(range(len(order)), [measures[measure] for measure in order])
        panel.set_title(_head(each).replace("\n", ", "), loc="left")
    panel.set_xlabel("ReAct / ReWOO (log scale)")
    limits = np.log2(_known(bounds))
    low, high = np.floor(limits.min()), np.ceil(limits.max())
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
    """Exact match against tokens and dollars: a row of panels for each data set and model, with a common x."""
    costs = {"total_tokens": "tokens per question", _PRICE: f"$ per 1,000 questions,\n{SHOWN[_PRICE]}"}
    styles = series_styles(list(dict.fromkeys(name for each in cells for name in each.names)))
    figure, panels = style.sheet(
        len(cells), 2, 1.4 + 2.3 * len(cells), _WIDE, sharex="col", sharey="row", squeeze=False
    )
    bounds: dict[str, list[float]] = {measure: [] for measure in costs}
    ends: list[dict[str, tuple[float, float]]] = []
    for row, each in zip(panels, cells, strict=True):
        ends.append({})
        for (measure, _), panel in zip(costs.items(), row, strict=True):
            for name in each.names:
                own, figures = styles[name], results.figures
                right, cost = (figures.get(f"{each.cell.name}/{name}/{what}") for what in ("exact_match", measure))
                if right is None or cost is None:
                    continue
                bounds[measure] += [cost.low, cost.high]
                ends[-1][name] = (cost.estimate, right.estimate)
                panel.errorbar(
                    cost.estimate, right.estimate, fmt=own.marker, color=own.colour,
                    xerr=[[cost.estimate - cost.low], [cost.high - cost.estimate]],
                    yerr=[[right.estimate - right.low], [right.high - right.estimate]],
                )  # fmt: skip
            style.grid(panel)
        row[0].set_title(_head(each).replace("\n", ", "), loc="left")
        row[0].set_ylabel("exact match")
    for (measure, label), panel in zip(costs.items(), panels[-1], strict=True):
        if len(known := _known(bounds[measure])):  # no bound of a single question is finite
            style.logarithmic(panel, "x", known.min() / _MARGIN, known.max() * _MARGIN, 2.2)
        panel.set_xlabel(f"{label} (log scale)" if measure != _PRICE else label)
    shown = style.picture(
        figure,
        "Accuracy against tokens and dollars",
        "Up and to the left is better. Bars: 95% intervals.",
        facts=_facts(cells),
    )
    for row, of in zip(panels, ends, strict=True):
        style.label_lines(row[-1], of, styles)
    return shown


def _head(of: CellResults) -> str:
    return "\n".join([f"{of.cell.dataset}, {of.cell.model}", *of.cell.conditions_shown, f"n = {of.n}"])


def price_title(study: Study, price: str) -> str:
    """`$ gpt-5-mini, OpenAI's rule, from 1,024`; prices that nobody asks are `nominal $`."""
    tariff = named_tariff(study.price(price))
    return f"{'nominal $' if tariff.prices_are else f'$ {tariff.model}'}, {tariff.title}"


def _known(bounds: Sequence[float]) -> NDArray[np.float64]:
    return np.array([bound for bound in bounds if 0 < bound < np.inf])


def _facts(cells: Sequence[CellResults]) -> str:
    return " · ".join(
        dict.fromkeys(f"{each.cell.dataset}, {file_name(each.cell.options.model)}, n = {each.n}" for each in cells)
    )
