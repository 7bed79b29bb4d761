"""`failure` and `tools`: accuracy and tokens with failing tools, and with more tools."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.stats.paired import Interval, quantile_interval
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots.data import PlotData, arms, mean, positive, share
from rewoo_bench.report.plots.style import (
    GREY,
    INK,
    NAME_WIDTH,
    ROW,
    Picture,
    PlotOptions,
    SeriesStyle,
    count,
    drawn,
    grid,
    label_lines,
    legend_above,
    logarithmic,
    picture,
    sampled,
    sheet,
    tall,
    tall_rows,
)

_CELL = ["line", "condition"]  # an architecture's line, and a point on it
_APART = 0.012  # of the axis, so that intervals don't cover each other


def failure(data: PlotData, options: PlotOptions) -> Picture:
    """Runs with `--tool-failure-rate`: the same questions, a growing share of failing tool calls."""
    rates = data.option("tool_failure_rate", 0.0)
    if rates.nunique() < 2:
        rate = ", ".join(f"{rate:g}" for rate in sorted(rates.unique()))
        raise NothingToDraw(f"needs runs with different --tool-failure-rate; here it is {rate} throughout")
    modes = data.option("tool_failure_mode", "empty")[(rates > 0).to_numpy(dtype=bool)].unique()
    if len(modes) > 1:
        raise NothingToDraw(f"needs runs of one --tool-failure-mode; here they are {', '.join(sorted(modes))}")
    rows = data.rows.assign(condition=rates.to_numpy(dtype=float), line=data.rows["architecture"].astype(str))
    data.only(rows).check_once(*_CELL)
    meaning = f"A failing tool {_MODES.get(str(modes[0]), str(modes[0]))}."
    title = "Accuracy and cost with failing tools"
    return _panels(data.only(shared(rows)), "share of tool calls that fail", "{:.0%}", title, meaning)


_MODES = {"empty": "finds nothing", "error": "answers with an error", "timeout": "doesn't answer in time"}


def tools(data: PlotData, options: PlotOptions) -> Picture:
    """Runs of the same architecture with different sets of tools."""
    offered = _offered(data)
    keys = list(zip(data.rows["run_id"].astype(str), data.rows["architecture"].astype(str), strict=True))
    known = [key in offered for key in keys]
    offers = [offered[key] for key in keys if key in offered]
    rows = data.rows[known].assign(condition=[offer.tools for offer in offers], line=[offer.kind for offer in offers])
    if not (rows.groupby("line")["condition"].nunique() > 1).any():
        counts = ", ".join(f"{name} {offer.tools}" for (_, name), offer in offered.items()) or "no run.json"
        raise NothingToDraw(f"needs runs of one architecture with different numbers of tools; there are: {counts}")
    names = {kind: min(map(str, part["architecture"].unique()), key=len) for kind, part in rows.groupby("line")}
    rows = shared(rows.assign(line=rows["line"].map(names)))
    data.only(rows).check_once(*_CELL)
    title = "Accuracy and cost with more tools"
    return _panels(data.only(rows), "tools offered to the architecture", "{:g}", title, "")


@dataclass(frozen=True, slots=True)
class _Offer:
    tools: int
    kind: str
    """Equal for architectures that differ only in their tools."""


def _offered(data: PlotData) -> dict[tuple[str, str], _Offer]:
    """Tools by run and architecture, from run.json."""
    runs = set(data.rows["run_id"].astype(str))
    return {
        (run, entry.name): _Offer(len(entry.tools), f"{entry.runner} {entry.settings} {entry.exemplars}")
        for run, manifest in data.manifests.items()
        if run in runs
        for entry in manifest.architectures
    }


def shared(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the questions that every line has under each of its conditions; of lines with two or more of them."""
    rows = rows[rows.groupby("line")["condition"].transform("nunique") > 1]
    cells = len(rows[_CELL].drop_duplicates())
    times = rows.groupby(["example_id", "trial"])["line"].transform("size")
    kept = rows[(times == cells).to_numpy(dtype=bool)]
    if not len(kept):
        raise NothingToDraw("needs the same questions of one architecture under two conditions or more")
    return kept


def _panels(data: PlotData, label: str, form: str, title: str, meaning: str) -> Picture:
    """Accuracy to the left, tokens to the right, a line per architecture."""
    rows = data.rows
    ticks = sorted(set(rows["condition"].tolist()))
    names = list(dict.fromkeys(rows["line"]))
    figure, (left, right) = sheet(1, 2, tall(data.style(name).wrapped(NAME_WIDTH) for name in names))
    ends: dict[str, tuple[float, float]] = {}
    accuracies: list[Interval] = []
    for i, name in enumerate(names):
        off = _APART * (ticks[-1] - ticks[0]) * (i - (len(names) - 1) / 2)
        own = rows[rows["line"] == name]
        parts = {at + off: own[own["condition"] == at] for at in sorted(set(own["condition"].tolist()))}
        right_answers = {at: share(part) for at, part in parts.items()}
        accuracies += right_answers.values()
        _line(left, data.style(name), right_answers)
        tokens = {at: mean(part, "total_tokens") for at, part in parts.items()}
        _line(right, data.style(name), tokens)
        ends[name] = (max(tokens), tokens[max(tokens)].estimate)
    top = min(1.03, 1.12 * max([0.2, *(each.high for each in accuracies if not math.isnan(each.high))]))
    left.set(ylim=(-0.03 * top / 1.03, top), ylabel="answered right, share of questions" if data.oracle else
             "exact match, share of questions")  # fmt: skip
    right.set(ylim=(0, right.get_ylim()[1]), ylabel="mean tokens per question")
    right.yaxis.set_major_formatter(lambda value, _: count(value))
    for axes in (left, right):
        grid(axes)
        axes.set_xlabel(label)
        axes.set_xticks(ticks, [form.format(at) for at in ticks])
    oracle = "An oracle is right where its searches found the evidence: this says nothing about a model."
    note = oracle if data.oracle else ""
    shown = picture(figure, title, meaning, note, "Bars: 95% intervals.", facts=data.facts())
    label_lines(right, ends, data.styles)
    return shown


def _line(axes: Axes, own: SeriesStyle, values: Mapping[float, Interval]) -> None:
    intervals = list(values.values())
    middle = [value.estimate for value in intervals]
    axes.errorbar(
        list(values), middle, yerr=arms(intervals), color=own.colour, marker=own.marker, capsize=2.5, elinewidth=1
    )


# `latency`: seconds of the questions, a row of points an architecture, with the median and the 95th percentile.


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
