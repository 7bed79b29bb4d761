"""What a plan could have saved of loops: tasks by the model calls they save, and dollars under each price."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from rewoo_bench.analysis.plannable import tables
from rewoo_bench.analysis.plannable.run import HORIZONS, Plannable
from rewoo_bench.errors import NothingToDraw, UsageError
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.draw import PICTURE_FORMATS, PICTURE_METADATA
from rewoo_bench.report.plots.style import GREY, ROW, Picture
from rewoo_bench.system.files import replaced
from rewoo_bench.text.words import counted

_STYLES = dict(
    zip(HORIZONS[1:], (("#0072B2", "o", "-"), ("#117733", "^", "--"), ("#D55E00", "s", "-.")), strict=True)
)  # colour, marker, line
_APART = 0.22  # of a price, between the marks of its horizons


def save_planned(found: Plannable, path: Path) -> None:
    """Draws the figure into a file, whose name says the format. Raises `UsageError` and `NothingToDraw`."""
    form = path.suffix.removeprefix(".").lower()
    if form not in PICTURE_FORMATS:
        raise UsageError(f"--plot {str(path)!r}: expected a name that ends in {' or '.join(PICTURE_FORMATS)}")
    with style.styled(), replaced(path, follows=False) as opened:
        planned(found).figure.savefig(opened, format=form, metadata=PICTURE_METADATA[form])


def planned(found: Plannable) -> Picture:
    """A row of two panels for each loop."""
    names = found.architectures()
    figure, grid = style.sheet(len(names), 2, height=1.2 + 2.9 * len(names), squeeze=False)
    for (left, right), name in zip(grid, names, strict=True):
        _tasks(left, found, name)
        _dollars(right, found, name)
        if len(names) > 1:
            left.set_title(name[:ROW], loc="left")
    style.legend_above(figure, 3, handles=grid[0][0].get_lines())
    tasks = found.tasks["example_id"].nunique()
    notes = tables.notes(found)
    return style.picture(
        figure,
        "What planning ahead could have saved",
        "Left: the share of tasks that save at least that part of their model calls. Right: the part of the dollars "
        "that is saved; bars are 95% intervals.",
        f"This is {notes[0]}.",
        *(f"{note[0].upper()}{note[1:]}." for note in notes[1:]),
        facts=f"n = {counted(tasks, 'task')} · {found.folder.name} · {', '.join(names)}",
    )


def _tasks(axes: Axes, found: Plannable, architecture: str) -> None:
    """The share of tasks that save at least x."""
    saved = tables.saved_by_task(found, architecture)
    style.grid(axes)
    for horizon, (colour, marker, line) in _STYLES.items():
        values = np.sort(saved[horizon].to_numpy())
        # From the least to the largest saving: all tasks save at least the least one.
        x = np.concatenate([[min(0.0, values[0])], values, [1.0]])
        y = np.concatenate([[1.0], 1 - np.arange(len(values)) / len(values), [0.0]])
        axes.step(x, y, where="pre", color=colour, linestyle=line, marker=marker, markevery=[], label=horizon)
    axes.set(xlabel="at least this part of the model calls saved", ylabel="of the tasks", ylim=(0, 1.02))
    axes.set_xlim(min(0.0, float(saved.to_numpy().min())), 1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0%}")


def _dollars(axes: Axes, found: Plannable, architecture: str) -> None:
    """A place for each price, and there a mark for each horizon."""
    rows = {(row["horizon"], row["measure"]): row for row in tables.savings(found, architecture).to_dict("records")}
    prices = [price for price in found.prices if (HORIZONS[-1], f"usd:{price}") in rows]
    if not prices:
        raise NothingToDraw(f"no dollars are known of {architecture!r}")
    style.grid(axes, "x")
    axes.axvline(0, color=GREY, lw=0.8)
    for i, (horizon, (colour, marker, _)) in enumerate(_STYLES.items()):
        own = [rows[horizon, f"usd:{price}"] for price in prices]
        middle = np.array([row["saved"] for row in own])
        arms = [[row["saved"] - row["low"] for row in own], [row["high"] - row["saved"] for row in own]]
        places = np.arange(len(prices)) + (i - 1) * _APART
        axes.errorbar(middle, places, xerr=np.maximum(arms, 0), fmt=marker, color=colour, capsize=2, ms=5, lw=1.2)
    axes.set_yticks(range(len(prices)), [found.prices[price][:ROW] for price in prices])
    axes.set(xlabel="part of the dollars saved", ylim=(len(prices) - 0.5, -0.5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
