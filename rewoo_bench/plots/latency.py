"""`latency`: seconds of the questions, a row of points an architecture, with the median and the 95th percentile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from rewoo_bench.analysis.pairs import column
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import PlotData, positive
from rewoo_bench.plots.labels import ROW
from rewoo_bench.plots.picture import Picture, PlotOptions, picture
from rewoo_bench.plots.series_styles import SeriesStyle
from rewoo_bench.plots.style import GREY, INK, drawn, grid, legend_above, logarithmic, sampled, sheet, tall_rows
from rewoo_bench.stats.paired import Interval
from rewoo_bench.stats.quantiles import quantile_interval

_HALF = 0.34  # of a row's height
_TOP = -0.62  # above the first row: where the heads of the columns are
_OUTLINE = [withStroke(linewidth=3.5, foreground="white")]
Floats = NDArray[np.float64]
_P50, _P95 = 46, 96  # where the columns of numbers end, in points to the right of the axes


def latency(data: PlotData, options: PlotOptions) -> Picture:
    """A point per question; a row is wide where many questions took about as long."""
    data.check_once()
    if data.oracle:
        raise NothingToDraw("needs a model: an oracle has no latency, its seconds are those of the harness")
    timed = data.only(data.rows[positive(data.rows, "latency_s")])
    names = timed.architectures
    if not names:
        raise NothingToDraw("needs latency_s, which replayed and resumed questions lack")
    titles = [timed.style(name).wrapped(ROW) for name in names]
    figure, axes = sheet(height=tall_rows(titles))
    ends = column(timed.rows, "latency_s")
    logarithmic(axes, "x", ends.min() / 1.2, ends.max() * 1.2, inches=4.0)
    quantiles = {name: _quantiles(timed.of(name)) for name in names}
    late = [name for name in names if _P95 in quantiles[name]]
    for at, name in enumerate(names):
        _row(axes, at, timed.style(name), column(timed.of(name), "latency_s"), quantiles[name])
    axes.set_yticks(range(len(names)), titles)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("seconds per question, wall time (log scale)")
    grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    _number(axes, _P50, _TOP, "p50", weight="bold")
    axes.plot([], [], "o", color=GREY, mec="white", ms=9, ls="", label="median, p50 (bar: 95% interval)")
    if late:
        _number(axes, _P95, _TOP, "p95", weight="bold")
        axes.plot([], [], "|", color=INK, ms=14, mew=2, ls="", label="95th percentile, p95 (bar: 95% interval)")
    legend_above(figure)
    at_once = data.concurrency()
    return picture(
        figure,
        "How long a question takes",
        f"A point is {data.point}. A row is wide where many questions took about as long.",
        "p95 needs 72 questions for a 95% interval and isn't shown for fewer." if len(late) < len(names) else "",
        sampled(max(len(timed.of(name)) for name in names)),
        f"Questions at once: {at_once}." if at_once else "",
        facts=timed.facts(),
    )


def _quantiles(rows: pd.DataFrame) -> dict[float, Interval]:
    """The median and, given enough questions for its interval, the 95th percentile; by their columns."""
    seconds, questions = column(rows, "latency_s"), rows["example_id"].to_numpy(dtype=object)
    both = {at: quantile_interval(seconds, share, clusters=questions) for at, share in ((_P50, 0.5), (_P95, 0.95))}
    return {at: value for at, value in both.items() if at == _P50 or _bounded(value)}


def _row(axes: Axes, at: int, own: SeriesStyle, seconds: Floats, quantiles: Mapping[float, Interval]) -> None:
    """Points, the median as a marker, the 95th percentile as an upright line, and their intervals."""
    places = at + _HALF * _width(np.log(seconds))
    chosen = drawn(len(seconds))
    axes.scatter(seconds[chosen], places[chosen], s=9, color=own.colour, alpha=0.35, linewidths=0)
    for where, quantile in quantiles.items():
        value, bounds = quantile.estimate, [quantile.low, quantile.high]
        if _bounded(quantile):
            axes.plot(bounds, [at, at], color=INK, lw=2.2, solid_capstyle="butt", zorder=4, path_effects=_OUTLINE)
        if where == _P50:
            axes.plot(value, at, marker=own.marker, color=own.colour, mec="white", ms=9, zorder=5)
        else:
            axes.plot([value] * 2, [at - _HALF, at + _HALF], color=INK, lw=2, zorder=4, path_effects=_OUTLINE)
        text = f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
        _number(axes, where, at, text)


def _number(axes: Axes, where: float, at: float, text: str, **more: Any) -> None:
    """A text in a column to the right of the axes. Its distance is in points, whatever the width of the axes."""
    axes.annotate(text, (1, at), xycoords=axes.get_yaxis_transform(), xytext=(where, 0), textcoords="offset points",
                  ha="right", va="center", **more)  # fmt: skip


def _bounded(quantile: Interval) -> bool:
    return bool(np.isfinite([quantile.low, quantile.high]).all())


def _width(values: Floats) -> Floats:
    """Random places within a row, from -1 to 1: farther out where more values are alike."""
    counts, edges = np.histogram(values, bins=25)
    bins = np.clip(np.digitize(values, edges[1:-1]), 0, len(counts) - 1)
    places: Floats = np.random.default_rng(0).uniform(-1, 1, len(values)) * counts[bins] / counts.max()
    return places
