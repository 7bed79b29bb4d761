"""What a plan would have cost by recorded loops: dollars under each price."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes

from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.planned import WAYS
from rewoo_bench.analysis.plannable.run import Plannable
from rewoo_bench.errors import NothingToDraw, UsageError
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.draw import PICTURE_FORMATS, PICTURE_METADATA
from rewoo_bench.report.plots.style import GREY, ROW, Picture
from rewoo_bench.system.files import replaced
from rewoo_bench.text.words import counted

_STYLES = dict(zip(WAYS, (("#0072B2", "o"), ("#117733", "^"), ("#D55E00", "s")), strict=True))  # colour, marker
_APART = 0.22  # of a price, between its marks


def save_planned(found: Plannable, path: Path) -> None:
    """Draws the figure into a file, whose name says the format. Raises `UsageError` and `NothingToDraw`."""
    form = path.suffix.removeprefix(".").lower()
    if form not in PICTURE_FORMATS:
        raise UsageError(f"--plot {str(path)!r}: expected a name that ends in {' or '.join(PICTURE_FORMATS)}")
    with style.styled(), replaced(path, follows=False) as opened:
        planned(found).figure.savefig(opened, format=form, metadata=PICTURE_METADATA[form])


def planned(found: Plannable) -> Picture:
    """A panel for each loop."""
    names = found.architectures()
    figure, grid = style.sheet(len(names), 1, height=1.2 + 2.4 * len(names), squeeze=False)
    for (axes,), name in zip(grid, names, strict=True):
        _dollars(axes, found, name)
        if len(names) > 1:
            axes.set_title(name[:ROW], loc="left")
    style.legend_above(figure, 3, handles=grid[0][0].get_legend_handles_labels()[0])
    tasks = found.tasks["example_id"].nunique()
    notes = tables.notes(found)
    return style.picture(
        figure,
        "What a plan would have cost, divided by the loop",
        "Dollars of each way to plan, divided by the loop's: below 1 the plan is cheaper; bars are 95% intervals.",
        f"This is {notes[0]}.",
        *(f"{note[0].upper()}{note[1:]}." for note in notes[1:]),
        facts=f"n = {counted(tasks, 'task')} · {found.folder.name} · {', '.join(names)}",
    )


def _dollars(axes: Axes, found: Plannable, architecture: str) -> None:
    """A place for each price, and there a mark for each way to plan."""
    rows = {(row["way"], row["measure"]): row for row in tables.against_loop(found, architecture).to_dict("records")}
    prices = [price for price in found.prices if ("plan", f"usd:{price}") in rows]
    if not prices:
        raise NothingToDraw(f"no dollars are known of {architecture!r}")
    style.grid(axes, "x")
    axes.axvline(1, color=GREY, lw=0.8)
    for i, (way, (colour, marker)) in enumerate(_STYLES.items()):
        own = [rows[way, f"usd:{price}"] for price in prices]
        middle = np.array([row["ratio"] for row in own])
        arms = [[row["ratio"] - row["low"] for row in own], [row["high"] - row["ratio"] for row in own]]
        places = np.arange(len(prices)) + (i - 1) * _APART
        xerr, label = np.maximum(arms, 0), WAYS[way]
        axes.errorbar(middle, places, xerr=xerr, label=label, fmt=marker, color=colour, capsize=2, ms=5, lw=1.2)
    axes.set_yticks(range(len(prices)), [fill(found.prices[price], ROW) for price in prices])
    axes.set(xlabel="dollars, divided by the loop's", ylim=(len(prices) - 0.5, -0.5))
