"""`latency`: seconds of the questions, a row of points an architecture, with the median and the 95th percentile."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rewoo_bench.errors import NothingToDraw
from rewoo_bench.pairs import column
from rewoo_bench.plots.measured import Measured
from rewoo_bench.plots.picture import Options, Picture, picture
from rewoo_bench.plots.style import GREY, INK, grid, legend_above, logarithmic, look, sheet

_MANY = 2_000
_HALF = 0.34  # of a row's height
Floats = NDArray[np.float64]


def latency(measured: Measured, options: Options) -> Picture:
    """A point a question; the wider the row, the more questions took so long."""
    measured.check_once()
    if measured.oracle:
        raise NothingToDraw("needs a model: an oracle takes no time, its seconds are the harness's own")
    found = {
        name: column(measured.of(name).dropna(subset=["latency_s"]), "latency_s") for name in measured.architectures
    }
    found = {name: seconds[seconds > 0] for name, seconds in found.items() if (seconds > 0).any()}
    if not found:
        raise NothingToDraw("needs latency_s, which a replayed or resumed question hasn't")
    figure, axes = sheet()
    ends = np.concatenate(list(found.values()))
    logarithmic(axes, "x", ends.min() / 1.2, ends.max() * 1.2)
    for at, (name, seconds) in enumerate(found.items()):
        _row(axes, at, name, seconds, _bounds(seconds) if measured.trials == 1 else None)
    axes.set_yticks(range(len(found)), [look(name).name for name in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlabel("seconds per question, wall time (log scale)")
    grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    for where, name in ((1.10, "p50"), (1.24, "p95")):
        axes.text(where, 1.01, name, transform=axes.transAxes, ha="right", weight="bold")
    axes.plot(
        [],
        [],
        "o",
        color=GREY,
        mec="white",
        ms=9,
        ls="",
        label="median, p50" + (" (bar: 95% interval)" if measured.trials == 1 else ""),
    )
    axes.plot([], [], "|", color=INK, ms=14, mew=2, ls="", label="95th percentile, p95")
    legend_above(figure, ncols=2)
    at_once = measured.concurrency()
    return picture(
        figure,
        "How long a question takes",
        f"A point is {measured.point}; rows are wide where many questions took so long.",
        f"Questions at once: {at_once}." if at_once else "",
        facts=measured.facts(),
    )


def _row(axes: Axes, at: int, name: str, seconds: Floats, bounds: tuple[float, float] | None) -> None:
    own = look(name)
    axes.scatter(seconds, at + _HALF * _width(np.log(seconds)), s=9, color=own.colour, alpha=0.35, linewidths=0,
                 rasterized=len(seconds) > _MANY)  # fmt: skip
    middle, late = (float(value) for value in np.quantile(seconds, [0.5, 0.95]))
    if bounds:
        axes.plot(bounds, [at, at], color=INK, lw=2.2, solid_capstyle="butt", zorder=4)
    axes.plot(middle, at, marker=own.marker, color=own.colour, mec="white", ms=9, zorder=5)
    axes.plot([late, late], [at - _HALF, at + _HALF], color=INK, lw=2, zorder=4)
    for where, value in ((1.10, middle), (1.24, late)):
        axes.text(
            where,
            at,
            f"{value:.2f} s" if value < 10 else f"{value:.1f} s",
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
        )


def _width(values: Floats) -> Floats:
    """Random places within a row from -1 to 1, as far out as there are many values alike."""
    counts, edges = np.histogram(values, bins=25)
    bins = np.clip(np.digitize(values, edges[1:-1]), 0, len(counts) - 1)
    places: Floats = np.random.default_rng(0).uniform(-1, 1, len(values)) * counts[bins] / counts.max()
    return places


def _bounds(seconds: Floats) -> tuple[float, float]:
    """The median's 95% interval: order statistics, so nothing is assumed of the distribution."""
    from scipy.stats import quantile_test

    test: Any = quantile_test(seconds, q=float(np.median(seconds)), p=0.5)
    found = test.confidence_interval(confidence_level=0.95)
    return float(found.low), float(found.high)
