"""`latency`: seconds of the questions, a row of points an architecture, with the median and the 95th percentile."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from rewoo_bench.analysis.pairs import column
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import Measured, positive
from rewoo_bench.plots.labels import ROW
from rewoo_bench.plots.looks import Look
from rewoo_bench.plots.picture import Options, Picture, picture
from rewoo_bench.plots.style import GREY, INK, drawn, grid, legend_above, logarithmic, sampled, sheet, tall_rows
from rewoo_bench.stats.paired import Interval
from rewoo_bench.stats.quantiles import quantile_interval

_HALF = 0.34  # of a row's height
_OUTLINE = [withStroke(linewidth=3.5, foreground="white")]
Floats = NDArray[np.float64]
_P50, _P95 = 1.10, 1.24  # where the numbers end, of the axes' width


def latency(measured: Measured, options: Options) -> Picture:
    """A point a question; the wider the row, the more questions took so long."""
    measured.check_once()
    if measured.oracle:
        raise NothingToDraw("needs a model: an oracle takes no time, its seconds are the harness's own")
    timed = measured.only(measured.rows[positive(measured.rows, "latency_s")])
    names = timed.architectures
    if not names:
        raise NothingToDraw("needs latency_s, which a replayed or resumed question hasn't")
    titles = [timed.look(name).wrapped(ROW) for name in names]
    figure, axes = sheet(height=tall_rows(titles))
    ends = column(timed.rows, "latency_s")
    logarithmic(axes, "x", ends.min() / 1.2, ends.max() * 1.2, inches=4.0)
    quantiles = {name: _quantiles(timed.of(name)) for name in names}
    late = [name for name in names if _P95 in quantiles[name]]
    for at, name in enumerate(names):
        _row(axes, at, timed.look(name), column(timed.of(name), "latency_s"), quantiles[name])
    axes.set_yticks(range(len(names)), titles)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("seconds per question, wall time (log scale)")
    grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    axes.text(_P50, 1.01, "p50", transform=axes.transAxes, ha="right", weight="bold")
    axes.plot([], [], "o", color=GREY, mec="white", ms=9, ls="", label="median, p50 (bar: 95% interval)")
    if late:
        axes.text(_P95, 1.01, "p95", transform=axes.transAxes, ha="right", weight="bold")
        axes.plot([], [], "|", color=INK, ms=14, mew=2, ls="", label="95th percentile, p95 (bar: 95% interval)")
    legend_above(figure)
    at_once = measured.concurrency()
    return picture(
        figure,
        "How long a question takes",
        f"A point is {measured.point}; rows are wide where many questions took so long.",
        "No p95 where there are too few questions (72) for a 95% interval of it." if len(late) < len(names) else "",
        sampled(max(len(timed.of(name)) for name in names)),
        f"Questions at once: {at_once}." if at_once else "",
        facts=timed.facts(),
    )


def _quantiles(rows: pd.DataFrame) -> dict[float, Interval]:
    """The median and, where there are questions enough for an interval of it, the 95th percentile; by their columns."""
    seconds, questions = column(rows, "latency_s"), rows["example_id"].to_numpy(dtype=object)
    found = {at: quantile_interval(seconds, share, clusters=questions) for at, share in ((_P50, 0.5), (_P95, 0.95))}
    return {at: value for at, value in found.items() if at == _P50 or _bounded(value)}


def _row(axes: Axes, at: int, own: Look, seconds: Floats, quantiles: Mapping[float, Interval]) -> None:
    """Points, the median as a marker, the 95th percentile as an upright line, and their intervals."""
    places = at + _HALF * _width(np.log(seconds))
    chosen = drawn(len(seconds))
    axes.scatter(seconds[chosen], places[chosen], s=9, color=own.colour, alpha=0.35, linewidths=0)
    for where, found in quantiles.items():
        value, bounds = found.estimate, [found.low, found.high]
        if _bounded(found):
            axes.plot(bounds, [at, at], color=INK, lw=2.2, solid_capstyle="butt", zorder=4, path_effects=_OUTLINE)
        if where == _P50:
            axes.plot(value, at, marker=own.marker, color=own.colour, mec="white", ms=9, zorder=5)
        else:
            axes.plot([value] * 2, [at - _HALF, at + _HALF], color=INK, lw=2, zorder=4, path_effects=_OUTLINE)
        text = f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
        axes.text(where, at, text, transform=axes.get_yaxis_transform(), ha="right", va="center")


def _bounded(found: Interval) -> bool:
    return bool(np.isfinite([found.low, found.high]).all())


def _width(values: Floats) -> Floats:
    """Random places within a row from -1 to 1, as far out as there are many values alike."""
    counts, edges = np.histogram(values, bins=25)
    bins = np.clip(np.digitize(values, edges[1:-1]), 0, len(counts) - 1)
    places: Floats = np.random.default_rng(0).uniform(-1, 1, len(values)) * counts[bins] / counts.max()
    return places
