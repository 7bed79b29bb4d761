"""`failure`: accuracy and tokens with failing tools; and `latency`."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.stats.paired import quantile_interval
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.data import PlotData, arms, mean_of_questions, positive, share_of
from rewoo_bench.report.plots.style import GREY, INK, NAME_WIDTH, ROW, Picture, SeriesStyle

_APART = 0.012  # of the axis, so that intervals don't cover each other
_MODES = {"empty": "finds nothing", "error": "answers with an error", "timeout": "doesn't answer in time"}


def failure(data: PlotData, pair: tuple[str, str]) -> Picture:
    """Accuracy and tokens by `--tool-failure-rate`, on the same questions: a line for each architecture."""
    rates = data.option("tool_failure_rate", 0.0)
    if rates.nunique() < 2:
        rate = ", ".join(f"{rate:g}" for rate in sorted(rates.unique()))
        raise NothingToDraw(f"needs runs with different --tool-failure-rate; here it is {rate} throughout")
    modes = data.option("tool_failure_mode", "empty")[(rates > 0).to_numpy(dtype=bool)].unique()
    if len(modes) > 1:
        raise NothingToDraw(f"needs runs of one --tool-failure-mode; here they are {', '.join(sorted(modes))}")
    rows = data.rows.assign(rate=rates.to_numpy(dtype=float))
    data.only(rows).check_once("architecture", "rate")
    data = data.only(_shared(rows))
    rows, names = data.rows, data.architectures
    ticks = sorted(set(rows["rate"].tolist()))
    wrapped = [data.styles[name].wrapped(NAME_WIDTH) for name in names]
    figure, (above, below) = style.sheet(2, 1, style.tall(wrapped, 2), sharex=True)
    ends: dict[Axes, dict[str, tuple[float, float]]] = {above: {}, below: {}}
    times: dict[str, float] = {}
    highest = [0.2]
    for i, name in enumerate(names):
        off = _APART * (ticks[-1] - ticks[0]) * (i - (len(names) - 1) / 2)
        own, of = data.styles[name], data.of(name)
        parts = {at + off: of[of["rate"] == at] for at in sorted(set(of["rate"].tolist()))}
        accuracies = [share_of(part) for part in parts.values()]
        tokens = [mean_of_questions(part, "total_tokens") for part in parts.values()]
        for axes, values in ((above, accuracies), (below, tokens)):
            ends[axes][name] = (max(parts), values[-1].estimate)
            axes.errorbar(list(parts), [value.estimate for value in values], yerr=arms(values), color=own.colour,
                          marker=own.marker, capsize=2.5, elinewidth=1)  # fmt: skip
        highest += [each.high for each in accuracies if not math.isnan(each.high)]
        times[name] = tokens[-1].estimate / tokens[0].estimate
    top = min(1.03, 1.12 * max(highest))
    scored = "answered right" if data.oracle else "exact match"
    above.set(ylim=(-0.03 * top / 1.03, top), ylabel=scored)
    below.set(ylim=(0, below.get_ylim()[1]), ylabel="tokens per question", xlabel="share of tool calls that fail")
    below.yaxis.set_major_formatter(lambda value, _: style.count(value))
    below.set_xticks(ticks, [f"{at:.0%}" for at in ticks])
    for axes in ends:
        style.grid(axes)
    named = style.titled(times, pair)
    oracle = "An oracle is right where its searches found the evidence: this says nothing about a model."
    shown = style.picture(
        figure,
        f"Where {'all' if ticks[-1] == 1 else f'{ticks[-1]:.0%} of'} tool calls fail, "
        + ", ".join(f"{data.styles[name].name} takes {times[name]:.2g} times the tokens" for name in named),
        f"A failing tool {_MODES[str(modes[0])]}.",
        oracle if data.oracle else "",
        "Bars: 95% intervals.",
        facts=data.facts(),
    )
    for axes, of_axes in ends.items():
        style.label_lines(axes, of_axes, data.styles)
    return shown


def _shared(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the questions that every architecture has at each of its rates; of those with two or more of them."""
    rows = rows[rows.groupby("architecture", observed=True)["rate"].transform("nunique") > 1]
    cells = len(rows[["architecture", "rate"]].drop_duplicates())
    times = rows.groupby(["example_id", "trial"])["architecture"].transform("size")
    kept = rows[(times == cells).to_numpy(dtype=bool)]
    if not len(kept):
        raise NothingToDraw("needs the same questions of one architecture at two rates or more")
    return kept


_HALF = 0.34  # of a row's height
_OUTLINE = [withStroke(linewidth=3.5, foreground="white")]


def latency(data: PlotData, pair: tuple[str, str]) -> Picture:
    """A row of points an architecture, wide where many questions took about as long, with median and 95th percentile.

    The percentile is left out where there are too few questions for its interval.
    """
    data.check_once()
    if data.oracle:
        raise NothingToDraw("needs a model: an oracle has no latency, its seconds are those of the harness")
    timed = data.only(data.rows[positive(data.rows, "latency_s")])
    names = timed.architectures
    if not names:
        imported = any(run.imported for run in data.manifests.values())
        who = "the imported traces" if imported else "replayed and resumed questions"
        raise NothingToDraw(f"needs latency_s, which {who} lack")
    titles = [timed.styles[name].wrapped(ROW) for name in names]
    figure, axes = style.sheet(height=style.tall_rows(titles))
    ends = column(timed.rows, "latency_s")
    style.logarithmic(axes, "x", ends.min() / 1.2, ends.max() * 1.2, inches=2.6)
    late = [_draw_seconds(axes, at, timed.styles[name], timed.of(name)) for at, name in enumerate(names)]
    half = {name: float(np.median(column(timed.of(name), "latency_s"))) for name in names}
    said = ", ".join(f"{timed.styles[name].name} over {half[name]:.2g} s" for name in style.titled(half, pair))
    axes.set_yticks(range(len(names)), titles)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("seconds per question, wall time (log scale)")
    style.grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    axes.plot([], [], "o", color=GREY, mec="white", ms=9, ls="", label="median, p50 (bar: 95% interval)")
    if any(late):
        axes.plot([], [], "|", color=INK, ms=14, mew=2, ls="", label="95th percentile, p95 (bar: 95% interval)")
    style.legend_above(figure)
    runs = data.rows["run_id"].astype(str).unique()
    known = (data.manifests[run].concurrency for run in runs if run in data.manifests)
    at_once = " and ".join(dict.fromkeys(str(value) for value in known if value))
    return style.picture(
        figure,
        f"Half of the questions took {said}",
        f"A point is {data.point}. A row is wide where many questions took about as long.",
        "" if all(late) else "p95 needs 72 questions for a 95% interval and isn't shown for fewer.",
        style.sampled(max(len(timed.of(name)) for name in names)),
        f"Questions at once: {at_once}." if at_once else "",
        facts=timed.facts(),
    )


def _draw_seconds(axes: Axes, at: int, own: SeriesStyle, rows: pd.DataFrame) -> bool:
    """Points, the median as a marker, the 95th percentile as an upright line, and their intervals.

    Returns whether it has the percentile. Both stand in words to the right of the axes.
    """
    seconds, questions = column(rows, "latency_s"), rows["example_id"].to_numpy(dtype=object)
    # Random places within the row: farther out where more values are alike.
    values = np.log(seconds)
    counts, edges = np.histogram(values, bins=25)
    bins = np.clip(np.digitize(values, edges[1:-1]), 0, len(counts) - 1)
    places = at + _HALF * (np.random.default_rng(0).uniform(-1, 1, len(values)) * counts[bins] / counts.max())
    chosen = style.drawn(len(seconds))
    axes.scatter(seconds[chosen], places[chosen], s=9, color=own.colour, alpha=0.35, linewidths=0)
    median, late = (quantile_interval(seconds, share, clusters=questions) for share in (0.5, 0.95))
    is_late = math.isfinite(late.low + late.high)
    for each in (median, late):
        if math.isfinite(each.low + each.high):
            axes.plot([each.low, each.high], [at, at], color=INK, lw=2.2, solid_capstyle="butt", zorder=4,
                      path_effects=_OUTLINE)  # fmt: skip
    axes.plot(median.estimate, at, marker=own.marker, color=own.colour, mec="white", ms=9, zorder=5)
    said = [f"p50 {median.estimate:.3g} s"]
    if is_late:
        axes.plot([late.estimate] * 2, [at - _HALF, at + _HALF], color=INK, lw=2, zorder=4, path_effects=_OUTLINE)
        said.append(f"p95 {late.estimate:.3g} s")
    axes.annotate("\n".join(said), (1, at), xycoords=axes.get_yaxis_transform(), xytext=(8, 0), va="center",
                  textcoords="offset points")  # fmt: skip
    return is_late
