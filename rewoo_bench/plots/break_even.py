"""The break-even map: the price of cached input and the number of tool calls at which an architecture is the cheaper.

A row of the map for each number of tool calls: blue where ReWOO is cheaper, red where the other one is.
It is drawn by `rewoo-bench plot --only break-even`, since it takes a repriced run.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from rewoo_bench.analysis.break_even import PRICES, BreakEven, Row
from rewoo_bench.analysis.pairs import A_RARE_EVENT
from rewoo_bench.plots.picture import Picture, picture
from rewoo_bench.plots.series_styles import series_styles
from rewoo_bench.plots.style import GREY, INK, legend_above, sheet, styled
from rewoo_bench.stats.mean_bounds import FEWEST

_PRICE_STEP = PRICES[1] - PRICES[0]
_HEIGHT = 0.26  # inches of a row
_HALF = 0.46  # of a row
_FEWEST = 5  # rows that the sheet has room for at least
_STRONGEST = 8.0  # times: stronger ratios have the same colour
SIDES = LinearSegmentedColormap.from_list("cheaper", ["#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b"])


def break_even_map(found: BreakEven, *, price: float | None, priced: str, rule: str, facts: str) -> Picture:
    """The map. `price` is that of the sheet's cached input, relative to input; `priced` names the sheet's model, `rule`
    that of its cache."""
    with styled():
        first, second = (series_styles(found.pair)[name].name for name in found.pair)
        figure, axes = sheet(height=2.4 + _HEIGHT * max(_FEWEST, len(found.rows)))
        norm = TwoSlopeNorm(0.0, -math.log2(_STRONGEST), math.log2(_STRONGEST))
        colours = SIDES if blue(found.pair) == found.pair[1] else SIDES.reversed()
        for position, row in enumerate(found.rows):
            _draw_row(axes, position, row, norm, colours)
        _draw_lines(axes, found, price)
        _axes(axes, found, second)
        _price_scale(figure, axes, ScalarMappable(norm, colours), found.pair)
        _legend(figure, found, price, priced)
        return picture(
            figure,
            _title(found, first, second),
            f"Colour: dollars of {second} per dollar of {first} on the same questions, with {priced}'s prices of output"
            f" and of writing to the cache, and the cached share under {rule}.",
            f"Hatched: the 95% interval of the ratio holds 1, or {A_RARE_EVENT} (under {FEWEST} questions, or few that "
            "make the spread).",
            f"Left out: {found.left_out:,} questions without tool calls of {second} or that failed."
            if found.left_out
            else "",
            _of_formula(found),
            facts=facts,
        )


def blue(pair: tuple[str, str]) -> str:
    """The one of a pair that is cheaper where a map is blue: ReWOO, else the second."""
    return "rewoo" if "rewoo" in pair else pair[1]


def _draw_row(axes: Axes, position: int, row: Row, norm: TwoSlopeNorm, colours: Colormap) -> None:
    for place, (price, ratio) in enumerate(zip(PRICES, row.ratios, strict=True)):
        left, right = max(0.0, price - _PRICE_STEP / 2), min(1.0, price + _PRICE_STEP / 2)
        colour = colours(norm(float(np.clip(math.log2(ratio.estimate), norm.vmin, norm.vmax))))
        corner, width = (left, position - _HALF), right - left
        axes.add_patch(Rectangle(corner, width, 2 * _HALF, linewidth=0, facecolor=colour))
        if not row.is_sure(place):
            hatched = Rectangle(corner, width, 2 * _HALF, linewidth=0, facecolor="none", edgecolor=GREY, hatch="////")
            axes.add_patch(hatched)


def _draw_lines(axes: Axes, found: BreakEven, price: float | None) -> None:
    """The measured break-even of each row, that of the formula, and the sheet's price."""
    for position, row in enumerate(found.rows):
        if not math.isnan(row.price):
            axes.plot([row.price] * 2, [position - _HALF, position + _HALF], color=INK, lw=2.6, solid_capstyle="butt")
    if found.predicted is not None:
        predicted = [found.predicted.price(row.tool_calls) for row in found.rows]
        there = [(place, position) for position, place in enumerate(predicted) if not math.isnan(place)]
        if there:
            axes.plot(*zip(*there, strict=True), color=INK, ls=(0, (4, 2)), lw=1.3, marker="o", ms=4, mfc="white")
    if price is not None:
        axes.axvline(price, color=INK, lw=1, ls=(0, (1, 1.5)))


def _axes(axes: Axes, found: BreakEven, second: str) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(-0.6, len(found.rows) - 0.4)
    axes.set_xlabel("price of cached input / price of input")
    axes.set_ylabel(f"tool calls of {second}")
    axes.set_xticks([0, 0.1, 0.25, 0.5, 0.75, 1])
    axes.set_yticks(range(len(found.rows)), [str(row.tool_calls) for row in found.rows])
    axes.tick_params(length=2.5, color=GREY)
    for position, row in enumerate(found.rows):
        axes.annotate(f"n = {row.n:,}", (1, position), xytext=(5, 0), textcoords="offset points", fontsize=8,
                      va="center", color=GREY)  # fmt: skip


def _price_scale(figure: Figure, axes: Axes, colours: ScalarMappable, pair: tuple[str, str]) -> None:
    names = {key: style.name for key, style in series_styles(pair).items()}
    bar = figure.colorbar(colours, ax=axes, pad=0.1, fraction=0.05, aspect=18)
    times = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8]
    bar.set_ticks([math.log2(each) for each in times], labels=[multiple(each) for each in times])
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label(f"{names[pair[1]]} / {names[pair[0]]} (blue: {names[blue(pair)]} is cheaper)", fontsize=8.5)


def multiple(ratio: float) -> str:
    return f"{ratio:g}×" if ratio >= 1 else f"1/{1 / ratio:g}×"


def _legend(figure: Figure, found: BreakEven, price: float | None, priced: str) -> None:
    handles: list[Line2D | Patch] = []
    if any(not math.isnan(row.price) for row in found.rows):
        handles.append(Line2D([], [], color=INK, lw=2.6, label="break-even, measured"))
    if _is_predicted(found):
        label = "break-even by the formula of Xu et al. 2023"
        handles.append(Line2D([], [], color=INK, ls=(0, (4, 2)), lw=1.3, marker="o", ms=4, mfc="white", label=label))
    if price is not None:
        handles.append(Line2D([], [], color=INK, lw=1, ls=(0, (1, 1.5)), label=f"{priced}: {price:.3g}"))
    handles.append(Patch(facecolor="white", edgecolor=GREY, hatch="////", linewidth=0.5, label="uncertain"))
    legend_above(figure, handles=handles)


def _title(found: BreakEven, first: str, second: str) -> str:
    below = [row for row in found.rows if not math.isnan(row.price)]
    if not below:
        cheaper = first if all(row.ratios[0].estimate > 1 for row in found.rows) else second
        whatever = all((row.ratios[0].estimate > 1) == (cheaper == first) for row in found.rows)
        return f"{cheaper} is cheaper at every price of cached input" if whatever else f"{second} against {first}"
    low, high = min(row.price for row in below), max(row.price for row in below)
    at = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
    cheaper = second if below[0].ratios[0].estimate < 1 else first
    said = f"{cheaper} is cheaper while cached input costs less than {at} of input"
    n, second_cheaper = sum(row.n for row in found.rows), cheaper == second
    for price, always in (("every", second_cheaper), ("no", not second_cheaper)):
        others = sum(row.n for row in found.rows if math.isnan(row.price) and (row.ratios[0].estimate < 1) == always)
        said += f"; at {price} price for {others:,} of {n:,} questions" if others else ""
    return said


def _of_formula(found: BreakEven) -> str:
    if not _is_predicted(found):
        return ""
    return "The formula's terms, and a straight line for the input that isn't cached, are fitted on these questions."


def _is_predicted(found: BreakEven) -> bool:
    """Whether the formula has a break-even to draw."""
    predicted = found.predicted
    return predicted is not None and any(not math.isnan(predicted.price(row.tool_calls)) for row in found.rows)
