"""`parts`: the tokens by part of the prompts and the output, a bar per architecture."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from rewoo_bench.analysis.cost_formulas import PARTS, scaled_parts
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import PlotData, arms, mean
from rewoo_bench.plots.labels import ROW
from rewoo_bench.plots.picture import Picture, PlotOptions, picture
from rewoo_bench.plots.style import INK, count, grid, legend_above, sheet, tall_rows

# Colours of Paul Tol's muted scheme, different from those of architectures; light and dark in turn.
_SHOWN = {
    "context_tokens": ("instructions, tools", "#332288", "", "white"),
    "exemplar_tokens": ("exemplars", "#88CCEE", "///", INK),
    "question_tokens": ("question", "#882255", "", "white"),
    "written_tokens": ("written in earlier turns", "#DDCC77", "...", INK),
    "found_tokens": ("results (observations, plan, evidence)", "#117733", "", "white"),
    "output_tokens": ("output", "#9A9A9A", "xxx", INK),
}
_BELOW = 0.22  # of a row's height: position of the interval of a total, below the numbers
_WIDE = 0.1  # of the axis: the smallest part with room for a number


def parts(data: PlotData, options: PlotOptions) -> Picture:
    """Stacked bars of mean tokens per question: the parts of the prompts, and the output."""
    data.check_once()
    table = _table(data)
    totals = table.sum(axis=1)
    names = [data.style(str(name)).wrapped(ROW) for name in table.index]
    bounds = [mean(data.of(str(name)), "total_tokens") for name in table.index]
    ends = [each.high if math.isfinite(each.high) else total for total, each in zip(totals, bounds, strict=True)]
    most = max(*ends, *totals, 1.0)
    figure, axes = sheet(height=tall_rows(names))
    left = pd.Series(0.0, index=table.index)
    for part, (name, colour, hatch, ink) in _SHOWN.items():
        sizes = table[part]
        axes.barh(range(len(table)), sizes, left=left, color=colour, hatch=hatch, edgecolor="white", lw=0.6,
                  height=0.62, label=name)  # fmt: skip
        _numbers(axes, left, sizes, _WIDE * most, ink, colour)
        left += sizes
    below = np.arange(len(table)) + _BELOW
    axes.errorbar(totals, below, xerr=arms(bounds), fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    for at, (total, end) in enumerate(zip(totals, ends, strict=True)):
        axes.annotate(count(round(total)), (max(total, end), at), xytext=(5, 0),
                      textcoords="offset points", va="center", weight="bold")  # fmt: skip
    axes.set_yticks(range(len(table)), names)
    axes.set_ylim(len(table) - 0.5, -0.5)
    axes.set(xlabel="mean tokens per question, summed over its model calls", xlim=(0, most * 1.12))
    axes.xaxis.set_major_formatter(lambda value, _: count(value))
    grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    legend_above(figure, columns=3, handlelength=1.8)
    return picture(
        figure,
        "Where the tokens go",
        "Every call pays for its whole prompt: instructions, exemplars and results count once per call. Totals are in "
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
        raise NothingToDraw(f"needs calls.parquet with {', '.join(PARTS)}, which older runs lack")
    sizes = sizes.assign(output_tokens=asked["output_tokens"].astype("float64").fillna(0.0))
    sums = sizes.groupby(asked["architecture"], sort=False, observed=True).sum()
    rows = data.rows.groupby("architecture", sort=False, observed=True).size()
    means = sums.div(rows.rename(index=str), axis=0).dropna()
    return means.loc[[name for name in data.architectures if name in means.index]]


def _numbers(axes: Axes, left: pd.Series[float], sizes: pd.Series[float], least: float, ink: str, colour: str) -> None:
    """The size of each part, where there is room."""
    for at, (start, size) in enumerate(zip(left, sizes, strict=True)):
        if size >= least:
            box = {"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "none"}
            axes.text(
                start + size / 2, at, count(round(size)), ha="center", va="center", fontsize=8, color=ink, bbox=box
            )
