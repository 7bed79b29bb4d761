"""`pareto`: what accuracy costs, in tokens and, where the price is known, in dollars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from rewoo_bench.analysis.summary import ORACLE_ACCURACY
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import Measured, arms, mean, share
from rewoo_bench.plots.labels import WIDTH, label_points
from rewoo_bench.plots.looks import Look
from rewoo_bench.plots.picture import Options, Picture, picture
from rewoo_bench.plots.style import PALE, grid, legend_above, logarithmic, sheet
from rewoo_bench.stats.paired import Interval

Found = Mapping[str, Interval]
_MARKER, _RIM, _RIMS = 8.0, 3.0, 3  # points of a marker, of what is seen of one below it, and how many are


def pareto(measured: Measured, options: Options) -> Picture:
    """Exact match against mean cost, each with its interval; the front joins what nothing beats in both."""
    measured.check_once()
    if measured.oracle:
        raise NothingToDraw(f"needs a model: {ORACLE_ACCURACY}")
    names = measured.architectures
    spent = {name: mean(measured.of(name), "total_tokens") for name in names}
    right = {name: found for name in names if (found := share(measured.of(name))).n and spent[name].estimate > 0}
    if len(right) < 2:
        raise NothingToDraw(f"needs scored rows of two architectures or more; there are {', '.join(names)}")
    costs = {"mean tokens per question (log scale)": {name: spent[name] for name in right}}
    priced = bool(measured.rows["cost_usd"].notna().all() and (measured.rows["cost_usd"] > 0).all())
    if priced:
        dollars = measured.rows.assign(thousand=measured.rows["cost_usd"] * 1000)
        of = {name: mean(dollars[dollars["architecture"] == name], "thousand") for name in right}
        costs["US$ per 1,000 questions (log scale)"] = of
    figure, axes = sheet(1, len(costs), sharey=True, squeeze=False)
    for at, (label, cost) in zip(axes[0], costs.items(), strict=True):
        _cloud(at, cost, right, measured.looks, inches=6 / len(costs))
        at.set_xlabel(label)
    axes[0][0].set_ylabel("exact match, share of questions")
    tokens = next(iter(costs.values()))
    best = front(tokens, right)
    nothing = "The grey band is the Pareto front: nothing" if priced or len(best) > 1 else "Nothing"
    if priced:
        legend_above(figure, handles=[_handle(measured.look(name)) for name in right])
    shown = picture(
        figure,
        "What accuracy costs",
        f"Up and to the left is better. {nothing} measured is both cheaper and more often right than "
        f"{' or '.join(repr(measured.look(name).name) for name in best)}. Bars: 95% intervals.",
        "" if priced else "No dollars: a price isn't known.",
        facts=measured.facts(),
    )
    if not priced:  # on a whole sheet there is room for names beside the points
        points = {name: (tokens[name].estimate, right[name].estimate) for name in right}
        label_points(
            axes[0][0], points, [*_bars(tokens, right), *band([points[name] for name in best])], measured.looks
        )
    return shown


def front(cost: Found, right: Found) -> list[str]:
    """What nothing beats in both cost and accuracy, the cheapest first."""
    kept: list[str] = []
    for name in sorted(right, key=lambda name: (cost[name].estimate, -right[name].estimate)):
        if not kept or right[name].estimate > right[kept[-1]].estimate:
            kept.append(name)
    return kept


def _bars(cost: Found, right: Found) -> list[tuple[float, float]]:
    """Places along the error bars, which no name should cover."""
    places: list[tuple[float, float]] = []
    for name in right:
        x, y = cost[name], right[name]
        places += [(float(at), y.estimate) for at in np.linspace(x.low, x.high, 12) if np.isfinite(at)]
        places += [(x.estimate, float(at)) for at in np.linspace(y.low, y.high, 24) if np.isfinite(at)]
    return places


def band(front: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Places along the Pareto front's steps."""
    places: list[tuple[float, float]] = []
    for (x, y), (next_x, next_y) in pairwise(front):
        places += [(float(at), y) for at in np.geomspace(x, next_x, 24)]
        places += [(next_x, float(at)) for at in np.linspace(y, next_y, 24)]
    return places


def _cloud(axes: Axes, cost: Found, right: Found, looks: Mapping[str, Look], inches: float) -> None:
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
        own, x, y = looks[name], cost[name], right[name]
        axes.errorbar(x.estimate, y.estimate, xerr=arms([x]), yerr=arms([y]), color=own.colour, marker=own.marker,
                      ms=size, mec="white", mew=0.6, lw=1, capsize=2)  # fmt: skip


def _handle(own: Look) -> Line2D:
    return Line2D([], [], color=own.colour, marker=own.marker, ms=_MARKER, lw=1, label=own.wrapped(WIDTH))


def _tied(places: Mapping[str, NDArray[np.float64]], name: str, other: str) -> bool:
    return bool(np.hypot(*(places[name] - places[other])) < _MARKER / 2)


def _sizes(axes: Axes, points: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Markers in points; of those in the same place the ones below are larger, so that each is seen."""
    places = {name: axes.transData.transform(point) for name, point in points.items()}
    names = list(points)
    return {
        name: _MARKER + _RIM * min(_RIMS, sum(map(partial(_tied, places, name), names[at + 1 :])))
        for at, name in enumerate(names)
    }
