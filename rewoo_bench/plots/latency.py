"""`latency`: seconds of the questions, a row of points an architecture, with the median and the 95th percentile."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from rewoo_bench.errors import NothingToDraw
from rewoo_bench.pairs import column
from rewoo_bench.plots.labels import ROW
from rewoo_bench.plots.looks import Look
from rewoo_bench.plots.measured import Measured
from rewoo_bench.plots.picture import Options, Picture, picture
from rewoo_bench.plots.style import GREY, INK, drawn, grid, legend_above, logarithmic, sampled, sheet, tall_rows

_HALF = 0.34  # of a row's height
_OUTLINE = [withStroke(linewidth=3.5, foreground="white")]
Floats = NDArray[np.float64]
_FEWEST = 72  # questions that a 95% interval of the 95th percentile needs: 0.95 ** 72 < 0.025
_P50, _P95 = 1.10, 1.24  # where the numbers end, of the axes' width


def latency(measured: Measured, options: Options) -> Picture:
    """A point a question; the wider the row, the more questions took so long."""
    measured.check_once()
    if measured.oracle:
        raise NothingToDraw("needs a model: an oracle takes no time, its seconds are the harness's own")
    timed = measured.only(measured.rows[(measured.rows["latency_s"] > 0).fillna(value=False).to_numpy(bool)])
    names = timed.architectures
    if not names:
        raise NothingToDraw("needs latency_s, which a replayed or resumed question hasn't")
    titles = [timed.look(name).wrapped(ROW) for name in names]
    figure, axes = sheet(height=tall_rows(titles))
    ends = column(timed.rows, "latency_s")
    logarithmic(axes, "x", ends.min() / 1.2, ends.max() * 1.2, inches=4.0)
    late = [name for name in names if timed.of(name)["example_id"].nunique() >= _FEWEST]
    for at, name in enumerate(names):
        _row(axes, at, timed.look(name), column(timed.of(name), "latency_s"), late=name in late, once=timed.trials == 1)
    axes.set_yticks(range(len(names)), titles)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("seconds per question, wall time (log scale)")
    grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    bars = " (bar: 95% interval)" if timed.trials == 1 else ""
    axes.text(_P50, 1.01, "p50", transform=axes.transAxes, ha="right", weight="bold")
    axes.plot([], [], "o", color=GREY, mec="white", ms=9, ls="", label=f"median, p50{bars}")
    if late:
        axes.text(_P95, 1.01, "p95", transform=axes.transAxes, ha="right", weight="bold")
        axes.plot([], [], "|", color=INK, ms=14, mew=2, ls="", label=f"95th percentile, p95{bars}")
    legend_above(figure)
    at_once = measured.concurrency()
    return picture(
        figure,
        "How long a question takes",
        f"A point is {measured.point}; rows are wide where many questions took so long.",
        f"No p95 of fewer than {_FEWEST} questions: it has no 95% interval." if len(late) < len(names) else "",
        sampled(max(len(timed.of(name)) for name in names)),
        f"Questions at once: {at_once}." if at_once else "",
        facts=timed.facts(),
    )


def _row(axes: Axes, at: int, own: Look, seconds: Floats, *, late: bool, once: bool) -> None:
    """Points, the median and, where there are enough, the 95th percentile; intervals where a row is a question."""
    places = at + _HALF * _width(np.log(seconds))
    chosen = drawn(len(seconds))
    axes.scatter(seconds[chosen], places[chosen], s=9, color=own.colour, alpha=0.35, linewidths=0)
    for where, share in ((_P50, 0.5), *(((_P95, 0.95),) if late else ())):
        value = float(np.quantile(seconds, share))
        low, high = _bounds(seconds, share) if once else (value, value)
        if np.isfinite([low, high]).all():
            axes.plot([low, high], [at, at], color=INK, lw=2.2, solid_capstyle="butt", zorder=4, path_effects=_OUTLINE)
        if where == _P50:
            axes.plot(value, at, marker=own.marker, color=own.colour, mec="white", ms=9, zorder=5)
        else:
            axes.plot([value] * 2, [at - _HALF, at + _HALF], color=INK, lw=2, zorder=4, path_effects=_OUTLINE)
        text = f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
        axes.text(where, at, text, transform=axes.get_yaxis_transform(), ha="right", va="center")


def _width(values: Floats) -> Floats:
    """Random places within a row from -1 to 1, as far out as there are many values alike."""
    counts, edges = np.histogram(values, bins=25)
    bins = np.clip(np.digitize(values, edges[1:-1]), 0, len(counts) - 1)
    places: Floats = np.random.default_rng(0).uniform(-1, 1, len(values)) * counts[bins] / counts.max()
    return places


def _bounds(seconds: Floats, share: float) -> tuple[float, float]:
    """A quantile's 95% interval: order statistics, so nothing is assumed of the distribution; NaN of too few."""
    from scipy.stats import quantile_test

    test: Any = quantile_test(seconds, q=float(np.quantile(seconds, share)), p=share)
    found = test.confidence_interval(confidence_level=0.95)
    return float(found.low), float(found.high)
