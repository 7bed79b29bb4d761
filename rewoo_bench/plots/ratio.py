"""`ratio`: the tokens of one architecture against those of another, question by question."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.verdict import bounds
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import PlotData
from rewoo_bench.plots.labels import NAME_WIDTH
from rewoo_bench.plots.picture import Picture, PlotOptions, picture
from rewoo_bench.plots.series_styles import SeriesStyle
from rewoo_bench.plots.style import GREY, INK, drawn, grid, logarithmic, sheet
from rewoo_bench.stats.paired import Interval, ratio_of_means

_KEY = ["example_id", "trial"]
_AXIS = 40  # characters of an axis' name
_WIDE = 20  # characters of a line of a name in the legend, which has words before and after it
_LINES, _FAR_LINES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), (0.01, 0.1, 1.0, 10.0, 100.0)
_FAR = 300.0  # times the fewest tokens; where the most are more, there is room for fewer lines


def ratio(data: PlotData, options: PlotOptions) -> Picture:
    """Paired scatter on log axes: a point a question and trial, lines of equal ratio."""
    pairs = _paired(data, *options.pair)
    up, along = (data.style(name) for name in options.pair)
    found = _ratio(pairs)
    figure, (axes, panel) = sheet(1, 2, width_ratios=[2, 1])
    spent = pairs[(pairs["up"] > 0) & (pairs["along"] > 0)]
    low, high = float(spent[["up", "along"]].min().min()) / 1.25, float(spent[["up", "along"]].max().max()) * 1.25
    for which in ("x", "y"):
        logarithmic(axes, which, low, high, inches=3.0)
    axes.set_box_aspect(1)
    axes.set_anchor("W")
    grid(axes)
    _ratio_lines(axes, low, high, float((spent["up"] / spent["along"]).min()))
    shown = _points(axes, spent, up, along, data.oracle)
    axes.set_xlabel(_title(along))
    axes.set_ylabel(_title(up))
    looping = data.counts(pd.concat([_loops(data.of(name)) for name in options.pair]))
    name = f"{up.name} / {along.name}"
    _panel(panel, axes, name if len(name) <= NAME_WIDTH else "ratio of tokens", found)
    return picture(
        figure,
        f"{up.name} took {found.estimate:.2f} times the tokens of {along.name}",
        f"A point is {data.point}. Above the line 1× it cost more with {up.name}.",
        f"{shown:,} of {len(pairs):,} points are drawn." if shown < len(pairs) else "",
        "Tokens: input and output of every model call.",
        _where_both_answered(pairs),
        f"In loops: {looping}." if looping else "",
        "An oracle is given the answers, so right and wrong aren't shown." if data.oracle else "",
        facts=data.facts(n=found.n),
    )


def _title(of: SeriesStyle) -> str:
    return textwrap.fill(f"{of.name}: tokens per question (log scale)", _AXIS)


def _panel(panel: Axes, axes: Axes, name: str, found: Interval) -> None:
    """Next to the points: the meaning of the markers, and the ratio of means."""
    panel.axis("off")
    handles, labels = axes.get_legend_handles_labels()
    panel.legend(handles, labels, loc="upper left", borderaxespad=0.0, handletextpad=0.4, borderpad=0.0)
    panel.text(0, 0.27, name, fontsize=9, va="bottom", color=GREY)
    panel.text(0, 0.14, f"{found.estimate:.2f}×", fontsize=20, va="bottom", weight="bold")
    bounds = f"95% interval {found.low:.2f} to {found.high:.2f},\nratio of the mean tokens,\npaired by question"
    panel.text(0, 0.12, bounds, fontsize=8.5, va="top", color=GREY)


def _paired(data: PlotData, up: str, along: str) -> pd.DataFrame:
    """Tokens and exact match of both for each question and trial that both have."""
    data.check_once()
    sides = []
    for name, side in ((up, "up"), (along, "along")):
        rows = data.of(name)
        values: dict[str, NDArray[Any]] = {side: column(rows, "total_tokens")}
        values[f"{side}_right"] = column(rows, "exact_match")
        if "stop_reason" in rows:
            values[f"{side}_answered"] = (rows["stop_reason"] == "answered").to_numpy()
        sides.append(pd.DataFrame({**values, **{key: rows[key].to_numpy() for key in _KEY}}))
    pairs = sides[0].merge(sides[1], on=_KEY).dropna(subset=["up", "along"])
    pairs = pairs.sort_values(_KEY, ignore_index=True)  # as compare orders them
    if up == along or not (pairs["up"] * pairs["along"] > 0).any():
        there = ", ".join(data.architectures)
        raise NothingToDraw(f"needs rows of {up!r} and {along!r} on the same questions; there are {there}")
    return pairs


def _ratio(pairs: pd.DataFrame) -> Interval:
    clusters = pairs["example_id"].to_numpy(dtype=object) if pairs["trial"].nunique() > 1 else None
    return ratio_of_means(pairs["along"], pairs["up"], clusters=clusters)


def _where_both_answered(pairs: pd.DataFrame) -> str:
    """The ratio without the questions that either didn't finish; empty where that is all questions, or none."""
    answered = pairs.filter(like="_answered").all(axis=1)
    some = pairs[answered]
    if len(some) in (0, len(pairs)) or not (some["up"] * some["along"] > 0).any():
        return ""
    return f"Where both answered: {bounds(_ratio(some), 1.0)} times (n = {len(some):,})."


def _loops(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["loop_step"].notna()] if "loop_step" in rows else rows[:0]


def _ratio_lines(axes: Axes, low: float, high: float, lowest: float) -> None:
    """Lines of equal ratio, named where they leave the axes: above, or to the right."""
    for times in _LINES if high < _FAR * low else _FAR_LINES:
        if lowest > 1.5 * times < 1.5 or not low < times * high or not low < high / times:
            continue
        axes.plot([low, high], [low * times, high * times], color=GREY, lw=1.2 if times == 1 else 0.8,
                  ls="-" if times == 1 else (0, (4, 3)), zorder=1)  # fmt: skip
        name = f"{times:g}×" if times >= 1 else f"1/{1 / times:g}×"
        at, where = ((high / times, high), (0, 4)) if times > 1 else ((high, high * times), (5, 0))
        axes.annotate(name, at, xytext=where, textcoords="offset points", fontsize=8.5, color=INK,
                      ha="center" if times > 1 else "left", va="bottom" if times > 1 else "center")  # fmt: skip


def _points(axes: Axes, pairs: pd.DataFrame, up: SeriesStyle, along: SeriesStyle, oracle: bool) -> int:
    """Filled where an architecture answered exactly right, in its own colour and marker where the other didn't.

    Returns how many points that is.
    """
    right = pairs["up_right"] == 1, pairs["along_right"] == 1
    kinds: list[tuple[str, pd.Series[bool], dict[str, Any]]] = [
        ("both right", right[0] & right[1], {"marker": "s", "color": INK}),
        (f"only {up.wrapped(_WIDE)} right", right[0] & ~right[1], {"marker": up.marker, "color": up.colour}),
        (f"only {along.wrapped(_WIDE)} right", ~right[0] & right[1], {"marker": along.marker, "color": along.colour}),
        (
            "neither right",
            ~right[0] & ~right[1],
            {"marker": "o", "facecolors": "none", "edgecolors": GREY, "zorder": 2},
        ),
    ]
    if oracle:
        kinds = [("question", pairs["up"] > 0, {"marker": "o", "color": INK})]
    chosen = np.isin(np.arange(len(pairs)), drawn(len(pairs)))
    size = 26 if len(pairs) <= 500 else 10
    for label, where, how in kinds:
        some = pairs[where & chosen]
        named = f"{label} ({where.sum():,})"
        axes.scatter(some["along"], some["up"], s=size, linewidths=0.9, alpha=0.75, label=named,
                     **{"zorder": 3, **how})  # fmt: skip
    return int(chosen.sum())
