"""`steps`: input tokens against the look-ups that a question needs;
and `parts`: tokens by part of the prompts and the output, a bar per architecture."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from rewoo_bench.analysis.input_parts import look_ups, scaled_parts
from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.stats.paired import FEWEST, Interval
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.data import PlotData, arms, mean_of_questions, positive
from rewoo_bench.report.plots.style import INK, NAME_WIDTH, ROW, Picture, count
from rewoo_bench.runs.columns import PARTS

_JITTER = 0.12
_SOME = 5  # questions that an interval of their mean is drawn for


def steps(data: PlotData, pair: tuple[str, str]) -> Picture:
    """Points per question, and means by number of look-ups."""
    data.check_once()
    rejected = data.rows[(data.rows["stop_reason"] == "invalid_plan").to_numpy(bool)]
    rows = data.rows.drop(rejected.index)
    rows = rows.assign(look_ups=look_ups(rows))[positive(rows, "input_tokens")]
    data = data.only(rows.dropna(subset=["look_ups"]))
    if not len(rows) and len(rejected):
        raise NothingToDraw(f"needs questions with a valid plan; here all {len(rejected):,} plans were rejected")
    if not len(data.rows):
        raise NothingToDraw(
            "needs questions with a known number of look-ups: the column hops, which this data set or run lacks"
        )
    names = [name for name in data.architectures if positive(data.of(name), "tool_calls").any()]
    needed = data.rows["look_ups"]
    if not names or needed.nunique() < 2:
        raise NothingToDraw(
            "needs tool calls on questions that need different numbers of look-ups, such as those of "
            "--dataset 'chain?hops=1..8' --max-steps 15"
        )
    figure, axes = style.sheet(height=style.tall(data.styles[name].wrapped(NAME_WIDTH) for name in names))
    style.grid(axes)
    drawn = {name: _draw_means(axes, data, name) for name in names}
    grown = {name: of[max(of)].estimate / of[min(of)].estimate for name, of in drawn.items()}
    said = ", ".join(f"{data.styles[name].name} {grown[name]:.2g} times" for name in style.titled(grown, pair))
    few = any(value.rare and value.n >= _SOME for groups in drawn.values() for value in groups.values())
    axes.set(xlabel="look-ups that the question needs", ylabel="input tokens per question")
    axes.set_xlim(float(needed.min()) - 0.4, float(needed.max()) + 0.4)
    axes.set_ylim(0, axes.get_ylim()[1])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: count(value))
    shown = style.picture(
        figure,
        f"With more look-ups the input grows: {said}",
        f"A faint point is {data.point}. Bars: 95% intervals of means over {_SOME} questions or more.",
        f"Where a rare event may be missing (under {FEWEST} questions, or few that make the spread) a bar allows for a "
        "question farther off than all, by a quarter of the mean or more; so it may reach beyond the points, down to 0."
        if few
        else "",
        f"Rejected plans, left out: {data.counts(rejected)}." if len(rejected) else "",
        style.sampled(max(len(data.of(name)) for name in names)),
        facts=data.facts(),
    )
    ends = {name: (max(groups), groups[max(groups)].estimate) for name, groups in drawn.items()}
    style.label_lines(axes, ends, data.styles)
    return shown


def _draw_means(axes: Axes, data: PlotData, name: str) -> dict[float, Interval]:
    """Points of an architecture, and its means by number of look-ups, which are returned."""
    own, rows = data.styles[name], data.of(name)
    x, y = column(rows, "look_ups"), column(rows, "input_tokens")
    groups = {k: mean_of_questions(rows[x == k], "input_tokens") for k in sorted(set(x.tolist()))}
    chosen = style.drawn(len(x))
    jitter = np.random.default_rng(0).uniform(-_JITTER, _JITTER, len(chosen))
    axes.scatter(x[chosen] + jitter, y[chosen], s=9, color=own.colour, alpha=0.25, linewidths=0)
    middle = [value.estimate for value in groups.values()]
    bars = arms(list(groups.values()))
    bars[:, [value.n < _SOME for value in groups.values()]] = 0  # no bar for a mean over too few questions
    axes.errorbar(list(groups), middle, yerr=bars, color=own.colour, marker=own.marker, capsize=2, lw=1)
    return groups


# Letters on a colour, which stay as they are on a dark page.
_ON_DARK, _ON_PALE = "#fefefe", "#1b1b1b"

# Colours of Paul Tol's muted scheme, different from those of architectures; light and dark in turn.
_SHOWN = {
    "context_tokens": ("instructions and tools", "#332288", "", _ON_DARK),
    "exemplar_tokens": ("exemplars", "#88CCEE", "///", _ON_PALE),
    "question_tokens": ("question", "#882255", "", _ON_DARK),
    "written_tokens": ("written in earlier turns", "#DDCC77", "...", _ON_PALE),
    "found_tokens": ("results", "#117733", "", _ON_DARK),
    "output_tokens": ("output", "#9A9A9A", "xxx", _ON_PALE),
}
_BELOW = 0.22  # of a row's height: position of the interval of a total, below the numbers
_WIDE = 0.1  # of the axis: the smallest part with room for a number


def parts(data: PlotData, pair: tuple[str, str]) -> Picture:
    """Stacked bars of mean tokens per question: the parts of the prompts, and the output."""
    data.check_once()
    table = _table(data)
    totals = table.sum(axis=1)
    dearest = str(totals.idxmax())
    largest = str(table.loc[dearest].idxmax())
    share = table.loc[dearest, largest] / totals[dearest] if totals[dearest] else 0.0
    names = [data.styles[str(name)].wrapped(ROW) for name in table.index]
    bounds = [mean_of_questions(data.of(str(name)), "total_tokens") for name in table.index]
    ends = [each.high if math.isfinite(each.high) else total for total, each in zip(totals, bounds, strict=True)]
    most = max(*ends, *totals, 1.0)
    figure, axes = style.sheet(height=style.tall_rows(names))
    left = pd.Series(0.0, index=table.index)
    for part, (name, colour, hatch, ink) in _SHOWN.items():
        sizes = table[part]
        axes.barh(range(len(table)), sizes, left=left, color=colour, hatch=hatch, edgecolor="white", lw=0.6,
                  height=0.62, label=name)  # fmt: skip
        box = {"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "none"}
        for at, (start, size) in enumerate(zip(left, sizes, strict=True)):
            if size >= _WIDE * most:
                axes.text(start + size / 2, at, count(round(size)), ha="center", va="center", fontsize=8, color=ink,
                          bbox=box)  # fmt: skip
        left += sizes
    below = np.arange(len(table)) + _BELOW
    axes.errorbar(totals, below, xerr=arms(bounds), fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    for at, (total, end) in enumerate(zip(totals, ends, strict=True)):
        axes.annotate(count(round(total)), (max(total, end), at), xytext=(5, 0),
                      textcoords="offset points", va="center", weight="bold")  # fmt: skip
    axes.set_yticks(range(len(table)), names)
    axes.set_ylim(len(table) - 0.5, -0.5)
    axes.set(xlabel="mean tokens per question, all model calls", xlim=(0, most * 1.12))
    axes.xaxis.set_major_formatter(lambda value, _: count(value))
    style.grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    style.legend_above(figure, columns=3, handlelength=1.8)
    return style.picture(
        figure,
        f"{share:.0%} of the tokens of {data.styles[dearest].name} are {_SHOWN[largest][0]}",
        "Every call pays for its whole prompt: instructions, exemplars and results (observations, plans, evidence) "
        "count once per call. Totals are in "
        "the model's tokens, as in the tables; the shares are from the project's own tokenizer. Bars at the ends: "
        "95% intervals.",
        facts=data.facts(),
    )


def _table(data: PlotData) -> pd.DataFrame:
    """Mean tokens per question: a row per architecture in the order of the run, a column per part."""
    calls = data.calls
    asked = calls[(calls["kind"] == "model") & (calls["role"] != "judge")]
    unknown = asked.loc[asked[PARTS].isna().any(axis=1) & (asked["input_tokens"] > 0), "architecture"].unique()
    asked = asked[~asked["architecture"].isin(unknown)]
    sizes = scaled_parts(asked)
    if sizes is None:
        raise NothingToDraw(f"needs calls.parquet with {', '.join(PARTS)}, which this run lacks")
    sizes = sizes.assign(output_tokens=asked["output_tokens"].astype("float64").fillna(0.0))
    sums = sizes.groupby(asked["architecture"], sort=False, observed=True).sum()
    rows = data.rows.groupby("architecture", sort=False, observed=True).size()
    means = sums.div(rows.rename(index=str), axis=0).dropna()
    return means.loc[[name for name in data.architectures if name in means.index]]
