"""`parts`: where the tokens go, a bar an architecture."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from rewoo_bench.cost_law import PARTS
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.measured import Measured
from rewoo_bench.plots.picture import Options, Picture, picture
from rewoo_bench.plots.style import INK, count, grid, legend_above, look, sheet

# Colours of Paul Tol's muted scheme, so that no part looks like an architecture; light and dark in turn.
_SHOWN = {
    "context_tokens": ("instructions, tools", "#332288", "", "white"),
    "exemplar_tokens": ("exemplars", "#88CCEE", "///", INK),
    "question_tokens": ("question", "#882255", "", "white"),
    "written_tokens": ("written in earlier turns", "#DDCC77", "...", INK),
    "found_tokens": ("found (observations, plan, evidence)", "#117733", "", "white"),
    "output_tokens": ("output", "#9A9A9A", "xxx", INK),
}
_WIDE = 0.075  # of the longest bar: room for a number


def parts(measured: Measured, options: Options) -> Picture:
    """Stacked bars of mean tokens per question: what the prompts are made of, and the output."""
    measured.check_once()
    table = _table(measured)
    totals = table.sum(axis=1)
    figure, axes = sheet()
    left = pd.Series(0.0, index=table.index)
    for part, (name, colour, hatch, ink) in _SHOWN.items():
        sizes = table[part]
        axes.barh(range(len(table)), sizes, left=left, color=colour, hatch=hatch, edgecolor="white", lw=0.6,
                  height=0.62, label=name)  # fmt: skip
        _numbers(axes, left, sizes, _WIDE * float(totals.max()), ink, colour)
        left += sizes
    for at, total in enumerate(totals):
        axes.annotate(f"{count(round(total))}", (total, at), xytext=(5, 0), textcoords="offset points", va="center",
                      weight="bold")  # fmt: skip
    axes.set_yticks(range(len(table)), [look(str(name)).name for name in table.index])
    axes.invert_yaxis()
    axes.set(xlabel="mean tokens per question, summed over its model calls", xlim=(0, float(totals.max()) * 1.1))
    axes.xaxis.set_major_formatter(lambda value, _: count(value))
    grid(axes, "x")
    axes.tick_params(axis="y", length=0)
    legend_above(figure, ncols=3, handlelength=1.8)
    return picture(
        figure,
        "Where the tokens go",
        "A prompt is paid again with every call that repeats it: instructions, exemplars and what was found count once "
        "a call. Prompts are counted with the project's own tokenizer, output as the provider counts it.",
        facts=measured.facts(),
    )


def _table(measured: Measured) -> pd.DataFrame:
    """Mean tokens per question, a row an architecture in the order of the run, a column a part."""
    calls = measured.calls
    asked = calls[(calls["kind"] == "model") & (calls["role"] != "judge")]
    known = asked[asked[PARTS].notna().all(axis=1)]
    if not len(known):
        raise NothingToDraw(f"needs calls.parquet with {', '.join(PARTS)}, which older runs lack")
    sums = known.groupby("architecture", sort=False, observed=True)[list(_SHOWN)].sum().astype("float64")
    rows = measured.rows.groupby("architecture", sort=False, observed=True).size()
    means = sums.div(rows.rename(index=str), axis=0).dropna()
    return means.loc[[name for name in measured.architectures if name in means.index]]


def _numbers(axes: Axes, left: pd.Series[float], sizes: pd.Series[float], least: float, ink: str, colour: str) -> None:
    """The size of each part that has room for it."""
    for at, (start, size) in enumerate(zip(left, sizes, strict=True)):
        if size >= least:
            box = {"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "none"}
            axes.text(
                start + size / 2, at, count(round(size)), ha="center", va="center", fontsize=8, color=ink, bbox=box
            )
