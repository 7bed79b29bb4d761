"""`pareto`: exact match against cost, in tokens and, where the price is known, in dollars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from rewoo_bench.analysis.summary import ORACLE_ACCURACY
from rewoo_bench.analysis.verdict import dollars_at
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import PlotData, arms, mean, share
from rewoo_bench.plots.labels import NAME_WIDTH, label_points
from rewoo_bench.plots.picture import Picture, PlotOptions, picture
from rewoo_bench.plots.series_styles import SeriesStyle
from rewoo_bench.plots.style import PALE, grid, legend_above, logarithmic, sheet, tall
from rewoo_bench.stats.paired import Interval

Intervals = Mapping[str, Interval]
_MARKER, _RIM, _RIMS = 8.0, 3.0, 3  # points of a marker and of the visible rim of one below it; most rims
_MANY = 10  # architectures; with more, points have numbers and the names are in a list


def pareto(data: PlotData, options: PlotOptions) -> Picture:
    """Exact match against mean cost, each with its interval, and the Pareto front."""
    data.check_once()
    if data.oracle:
        raise NothingToDraw(f"needs a model: {ORACLE_ACCURACY}")
    names = data.architectures
    spent = {name: mean(data.of(name), "total_tokens") for name in names}
    right = {name: own for name in names if (own := share(data.of(name))).n and spent[name].estimate > 0}
    if len(right) < 2:
        raise NothingToDraw(f"needs scored rows of two architectures or more; there are {', '.join(names)}")
    costs = _costs(data, {name: spent[name] for name in right})
    priced = len(costs) > 1
    texts = {name: str(i) if len(right) > _MANY else data.style(name).wrapped(NAME_WIDTH) for i, name in enumerate(right, 1)}
    handles = [_handle(data.style(name), texts[name]) for name in right]
    figure, axes = sheet(1, len(costs), tall(str(handle.get_label()) for handle in handles), sharey=True, squeeze=False)
    for panel, (label, cost) in zip(axes[0], costs.items(), strict=True):
        _cloud(panel, cost, right, data.styles, inches=6 / len(costs))
        panel.set_xlabel(label)
    axes[0][0].set_ylabel("exact match, share of questions")
    best = front(next(iter(costs.values())), right)
    if priced:
        legend_above(figure, handles=handles)
    elif len(right) > _MANY:
        axes[0][0].legend(handles=handles, loc="upper left", bbox_to_anchor=(1.03, 1.0), borderaxespad=0.0)
    shown = picture(
        figure,
        "What accuracy costs",
        _caption([data.style(name).name for name in best], drawn=priced or len(best) > 1),
        f"US$ are at {dollars_at(data.manifests)}." if priced else "No dollars: the run has no prices of its own.",
        facts=data.facts(),
    )
    if not priced or len(right) > _MANY:  # two panels have room for numbers, but not for names
        for panel, cost in zip(axes[0], costs.values(), strict=True):
            points = {name: (cost[name].estimate, right[name].estimate) for name in right}
            obstacles = [*_bars(cost, right), *band([points[name] for name in front(cost, right)])]
            label_points(panel, points, obstacles, data.styles, texts)
    return shown


def _costs(data: PlotData, tokens: Intervals) -> dict[str, Intervals]:
    """By the axis' label: tokens, and dollars where every price is known."""
    costs = {"mean tokens per question (log scale)": tokens}
    if data.rows["cost_usd"].notna().all() and (data.rows["cost_usd"] > 0).all():
        dollars = data.rows.assign(thousand=data.rows["cost_usd"] * 1000)
        of = {name: mean(dollars[dollars["architecture"] == name], "thousand") for name in tokens}
        costs["US$ per 1,000 questions (log scale)"] = of
    return costs


def _caption(best: Sequence[str], *, drawn: bool) -> str:
    band = "The grey band is the Pareto front: no" if drawn else "No"
    names = " or ".join(map(repr, best))
    return (
        f"Up and to the left is better. {band} other architecture is both cheaper and more often right than {names}, "
        "by point estimates. Bars: 95% intervals."
    )


def front(cost: Intervals, right: Intervals) -> list[str]:
    """The Pareto front: the architectures that no other beats in both cost and accuracy, the cheapest first."""
    kept: list[str] = []
    for name in sorted(right, key=lambda name: (cost[name].estimate, -right[name].estimate)):
        if not kept or right[name].estimate > right[kept[-1]].estimate:
            kept.append(name)
    return kept


def _bars(cost: Intervals, right: Intervals) -> list[tuple[float, float]]:
    """Points along the error bars, which no text should cover."""
    places: list[tuple[float, float]] = []
    for name in right:
        x, y = cost[name], right[name]
        places += [(float(at), y.estimate) for at in np.linspace(x.low, x.high, 12) if np.isfinite(at)]
        places += [(x.estimate, float(at)) for at in np.linspace(y.low, y.high, 24) if np.isfinite(at)]
    return places


def band(front: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points along the steps of the Pareto front."""
    places: list[tuple[float, float]] = []
    for (x, y), (next_x, next_y) in pairwise(front):
        places += [(float(at), y) for at in np.geomspace(x, next_x, 24)]
        places += [(next_x, float(at)) for at in np.linspace(y, next_y, 24)]
    return places


def _cloud(axes: Axes, cost: Intervals, right: Intervals, styles: Mapping[str, SeriesStyle], inches: float) -> None:
    ends = [value.estimate for value in cost.values()]
    logarithmic(axes, "x", min(ends) / 1.6, max(ends) * 2.2, inches)
    top = min(1.03, 1.12 * max(0.1, *(np.nanmax([at.high, at.estimate]) for at in right.values())))
    axes.set_ylim(-0.03 * top, top)  # a marker at 0 or 1 is whole
    axes.set_yticks([at for at in axes.get_yticks() if 0 <= at <= min(1, top)])
    grid(axes)
    best = front(cost, right)
    axes.step([cost[name].estimate for name in best], [right[name].estimate for name in best], where="post", color=PALE,
              lw=5, zorder=1, solid_joinstyle="round")  # fmt: skip
    for name, size in _sizes(axes, {name: (cost[name].estimate, right[name].estimate) for name in right}).items():
        own, x, y = styles[name], cost[name], right[name]
        axes.errorbar(x.estimate, y.estimate, xerr=arms([x]), yerr=arms([y]), color=own.colour, marker=own.marker,
                      ms=size, mec="white", mew=0.6, lw=1, capsize=2)  # fmt: skip


def _handle(own: SeriesStyle, text: str) -> Line2D:
    """A line of the legend: the name, after its number where points have numbers."""
    name = own.wrapped(NAME_WIDTH)
    label = name if text == name else f"{text}  {name}"
    return Line2D([], [], color=own.colour, marker=own.marker, ms=_MARKER, lw=1, label=label)


def _tied(places: Mapping[str, NDArray[np.float64]], name: str, other: str) -> bool:
    return bool(np.hypot(*(places[name] - places[other])) < _MARKER / 2)


def _sizes(axes: Axes, points: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Sizes of markers in points: of markers at one position the lower ones are larger, so that each is visible."""
    places = {name: axes.transData.transform(point) for name, point in points.items()}
    names = list(points)
    return {
        name: _MARKER + _RIM * min(_RIMS, sum(map(partial(_tied, places, name), names[at + 1 :])))
        for at, name in enumerate(names)
    }
