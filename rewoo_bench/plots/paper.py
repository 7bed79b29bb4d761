"""`paper`: Table 2 of the ReWOO paper (paper.toml) and these runs, on the same data sets."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import BaseModel, ConfigDict

from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import PlotData, arms, mean, positive, share
from rewoo_bench.plots.picture import Picture, PlotOptions, picture
from rewoo_bench.plots.series_styles import series_styles
from rewoo_bench.plots.style import GREY, INK, PALE, count, grid, legend_above, logarithmic, sheet
from rewoo_bench.stats.paired import Interval

METHODS = ("direct", "cot", "react", "rewoo")
_STYLES = series_styles(METHODS)
_MODEL = 50  # characters of a line of its name


class Cell(BaseModel):
    """A method on a data set: exact match in percent, mean tokens per question."""

    model_config = ConfigDict(extra="forbid")

    exact_match: float
    tokens: float


class Block(BaseModel):
    """The methods on a data set."""

    model_config = ConfigDict(extra="forbid")

    name: str
    questions: int
    direct: Cell
    cot: Cell
    react: Cell
    rewoo: Cell

    def of(self, method: str) -> Cell:
        cell: Cell = getattr(self, method)
        return cell


class Paper(BaseModel):
    """paper.toml."""

    model_config = ConfigDict(extra="forbid")

    source: str
    model: str
    datasets: dict[str, Block]


@cache
def published() -> Paper:
    """The numbers of the paper."""
    return Paper(**tomllib.loads(Path(__file__).with_name("paper.toml").read_text(encoding="utf-8")))


def paper(data: PlotData, options: PlotOptions) -> Picture:
    """Exact match and tokens of direct, cot, react and rewoo: hollow markers for the paper, filled ones for runs."""
    ours = {key: part for key, part in _by_format(data) if set(part.architectures) & set(METHODS)}
    if not ours:
        raise NothingToDraw(_missing(data))
    figure, grid_of_axes = sheet(len(ours), 2, height=2.2 + 2.3 * len(ours), squeeze=False, sharex="col", sharey=True)
    for (left, right), (key, part) in zip(grid_of_axes, ours.items(), strict=True):
        part.check_once()
        _block(left, right, published().datasets[key], part)
    _limits(grid_of_axes)
    left, right = grid_of_axes[-1]
    asked = " and ".join(sorted({f"{published().datasets[key].questions:,}" for key in ours}))
    left.set_xlabel("exact match, % of questions")
    right.set_xlabel("mean tokens per question (log scale)")
    _legend(figure, grid_of_axes[0][0], data)
    return picture(
        figure,
        "The paper's Table 2 and this run",
        f"Hollow: {published().source}, {published().model}, n = {asked} each. Filled: this run, with 95% intervals.",
        "An oracle's exact match means nothing and isn't drawn." if data.oracle else "",
        " ".join(_ratios(published().datasets[key], part) for key, part in ours.items()),
        facts="\n".join(part.facts() for part in ours.values()),
    )


def _missing(data: PlotData) -> str:
    """What the runs lack: a data set of the paper, or the architectures of its table."""
    theirs = [published().datasets[key].name for key, _ in _by_format(data)]
    if theirs:
        names = f"{', '.join(METHODS[:-1])} or {METHODS[-1]}"
        return f"needs {names} without options; the runs on {' and '.join(theirs)} have {', '.join(data.architectures)}"
    wanted = " or ".join(block.name for block in published().datasets.values())
    return f"needs run folders of {', '.join(METHODS)} on {wanted}; these are of {data.dataset}"


def _by_format(data: PlotData) -> Iterator[tuple[str, PlotData]]:
    """The rows on each data set of the paper, by the format in run.json."""
    formats = {run: manifest.dataset.format for run, manifest in data.manifests.items()}
    own = data.rows["run_id"].astype(str).map(formats)
    for key in published().datasets:
        rows = data.rows[(own == key).to_numpy(dtype=bool)]
        if len(rows):
            yield key, data.only(rows)


def _block(left: Axes, right: Axes, block: Block, part: PlotData) -> None:
    for at, method in enumerate(METHODS):
        rows, cell = part.of(method), block.of(method)
        tokens = mean(rows, "total_tokens") if positive(rows, "total_tokens").any() else None
        accuracy = None if part.oracle or not len(rows) else share(rows)
        percent = accuracy and _percent(accuracy)
        _row(left, at, method, cell.exact_match, percent)
        _row(right, at, method, cell.tokens, tokens)
    left.set_ylim(len(METHODS) - 0.45, -0.6)
    left.set_yticks(range(len(METHODS)), [_STYLES[method].name for method in METHODS])
    for axes in (left, right):
        grid(axes, "x")
        axes.tick_params(axis="y", length=0)
    left.set_title(block.name, loc="left", weight="bold")


def _limits(grid_of_axes: Any) -> None:
    """The same limits for all data sets, with room for markers at 0 and for numbers to the right of markers."""
    lefts, rights = ([axes.dataLim for axes in column] for column in grid_of_axes.T)
    for axes in grid_of_axes[:, 0]:
        axes.set_xlim(-3, max(85.0, 1.15 * max(box.x1 for box in lefts)))
        axes.set_xticks(range(0, 101, 20) if axes.get_xlim()[1] >= 100 else range(0, 81, 20))
    low, high = min(box.x0 for box in rights), max(box.x1 for box in rights)
    for axes in grid_of_axes[:, 1]:
        logarithmic(axes, "x", min(25.0, low / 1.5), max(60_000.0, 6 * high), inches=2.5)


def _percent(found: Interval) -> Interval:
    return Interval(100 * found.estimate, 100 * found.low, 100 * found.high, found.n)


def _row(axes: Axes, at: int, method: str, theirs: float, ours: Interval | None) -> None:
    """A hollow marker for the paper above the row, a filled one for this run below it, each with its number."""
    own: dict[str, Any] = {"marker": _STYLES[method].marker, "color": _STYLES[method].colour, "ms": 7, "zorder": 3}
    axes.plot(theirs, at - 0.14, mfc="white", **own)
    _number(axes, theirs, at - 0.14, count(theirs) if theirs >= 100 else f"{theirs:.1f}", GREY)
    if ours is None:
        return
    axes.plot([theirs, ours.estimate], [at - 0.14, at + 0.14], color=PALE, lw=1, zorder=1)
    axes.errorbar(ours.estimate, at + 0.14, xerr=arms([ours]), capsize=2, elinewidth=1, **own)
    end = ours.high if np.isfinite(ours.high) else ours.estimate
    _number(axes, end, at + 0.14, count(ours.estimate) if ours.estimate >= 100 else f"{ours.estimate:.1f}", INK)


def _number(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    axes.annotate(text, (x, y), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8, color=colour)


def _legend(figure: Figure, axes: Axes, data: PlotData) -> None:
    shown = [
        axes.plot([], [], "o", color=GREY, mfc="white", ms=7, ls="", label=f"paper, {published().model}")[0],
        axes.plot([], [], "o", color=GREY, ms=7, ls="", label=textwrap.fill(f"this run, {data.model}", _MODEL))[0],
    ]
    legend_above(figure, handles=shown)


def _ratios(block: Block, part: PlotData) -> str:
    """ReAct's tokens over ReWOO's, in the paper and in this run."""
    text = f"{block.name}, ReAct / ReWOO tokens: {block.react.tokens / block.rewoo.tokens:.2f}× in the paper"
    means = [mean(part.of(name), "total_tokens").estimate for name in ("react", "rewoo")]
    return f"{text}, {means[0] / means[1]:.2f}× in this run." if min(means) > 0 else f"{text}."
