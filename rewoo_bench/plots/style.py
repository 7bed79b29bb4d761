"""The style of figures: one sheet, with a title and a legend that fit, and plain numbers on the axes.

figure, axes = sheet(1, 2)
finish(figure, "What accuracy costs", "Bars: 95% intervals.", "n = 50 questions · local/x · hotpotqa · 2026-11-22")
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

INK, GREY, PALE = "#1a1a1a", "#666666", "#cccccc"
WIDTH, HEIGHT = 7.0, 4.5  # inches
DPI = 200
MANY = 2_000  # points of a colour; more would be one blot
_MARGIN = 0.012  # of the width, to the left and to the right of title and caption
_LINE, _TITLE_LINE = 0.14, 0.19  # inches, a line of the caption and of the title
_ROOM = 1.5  # inches of a sheet for title, legend and caption; it grows where they take more
_NAME_LINE = 0.145  # inches, a line of a name
_TICKS = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))  # in a decade
_TICKS_AN_INCH = 1.8
_RC: Any = {
    "font.size": 9, "font.family": "DejaVu Sans", "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": GREY, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.axisbelow": True, "grid.color": "#e6e6e6", "grid.linewidth": 0.7, "legend.frameon": False,
    "lines.linewidth": 1.4, "lines.markersize": 6, "hatch.linewidth": 0.6, "savefig.dpi": DPI,
    "svg.hashsalt": "rewoo_bench", "svg.fonttype": "path", "axes.unicode_minus": True,
    "text.parse_math": False,  # a name may contain a dollar sign
}  # fmt: skip


@contextmanager
def styled() -> Iterator[None]:
    """These settings and no others, whatever the matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def sheet(rows: int = 1, columns: int = 1, height: float = HEIGHT, **more: Any) -> tuple[Figure, Any]:
    """A figure with its axes, one or an array of them."""
    figure = Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine())
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **more)


def tall(names: Iterable[str], other: float = 2.0) -> float:
    """Inches of a sheet with room for the names below each other, and `other` inches for the rest."""
    return max(HEIGHT, other + _NAME_LINE * sum(1.35 + name.count("\n") for name in names))


def tall_rows(names: Sequence[str], other: float = 2.0) -> float:
    """The same for names of rows of equal height."""
    lines = [1 + name.count("\n") for name in names]
    most = max([1.0, *((a + b) / 2 for a, b in pairwise(lines))])
    return max(HEIGHT, other + _NAME_LINE * (most + 0.6) * len(lines))


def finish(figure: Figure, title: str, text: str, facts: str) -> None:
    """The title and the legend above the axes, the caption below them, with the facts on their own line."""
    above = figure.text(_MARGIN, 1, title, fontsize=11, fontweight="bold", va="top")
    below = figure.text(_MARGIN, 0, text, fontsize=8, color=GREY, va="bottom", linespacing=1.25)
    _wrap(figure, above, [title])
    _wrap(figure, below, [text, *facts.splitlines()])
    top = 0.15 + _TITLE_LINE * _lines(above)
    bottom = 0.09 + _LINE * _lines(below)
    legends = sum(legend.get_window_extent().height / figure.dpi for legend in figure.legends)
    height = figure.get_figheight() + max(0.0, top + bottom + legends - _ROOM)
    figure.set_figheight(height)
    above.set_y(1 - 0.11 / height)
    below.set_y(0.055 / height)
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, 1 - top / height))
        top += legend.get_window_extent().height / figure.dpi
    rect = (0, bottom / height, 1, 1 - (top + bottom) / height)
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, rect=rect))


def _lines(text: Text) -> int:
    return 1 + text.get_text().count("\n")


def _wrap(figure: Figure, text: Text, paragraphs: Sequence[str]) -> None:
    """Breaks the text into lines that fit on the sheet."""
    text.set_text("\n".join(filter(None, [_wrapped(figure, text, each) for each in paragraphs])))


def _wrapped(figure: Figure, text: Text, paragraph: str) -> str:
    """The paragraph in lines that fill the sheet's width in this text's font."""
    room = (1 - 2 * _MARGIN) * figure.bbox.width
    for width in range(140, 10, -2):
        text.set_text(textwrap.fill(paragraph, width))
        if text.get_window_extent(_renderer(figure)).width <= room:
            break
    return text.get_text()


def _renderer(figure: Figure) -> Any:
    return figure.canvas.get_renderer()  # type: ignore[attr-defined]


def legend_above(figure: Figure, columns: int = 4, **more: Any) -> None:
    """A legend between the title and the axes, with as many columns as fit; `finish` makes room for it."""
    for ncols in range(columns, 0, -1):
        legend = figure.legend(loc="upper left", columnspacing=1.6, ncols=ncols, **more)
        legend.set_in_layout(False)
        if ncols == 1 or legend.get_window_extent(_renderer(figure)).width <= figure.bbox.width:
            return
        legend.remove()


def grid(axes: Axes, which: str = "both") -> None:
    """Faint lines at the ticks of an axis, `x` or `y`, or of both."""
    axes.grid(True, axis=which)  # type: ignore[arg-type]
    axes.tick_params(length=2.5, color=GREY)


def count(value: float) -> str:
    """A number of tokens as text: `1,432`, `12.5`."""
    return f"{value:,.0f}" if abs(value) >= 20 or value == int(value) else f"{value:.3g}"


def logarithmic(axes: Axes, which: str, low: float, high: float, inches: float = 6.0) -> None:
    """A log scale with limits, and as many plain numbers as fit on an axis of `inches`."""
    axis: Axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    decades = math.log10(high / low)
    steps = next((steps for steps in _TICKS if len(steps) * decades <= _TICKS_AN_INCH * inches), _TICKS[-1])
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(LogLocator(subs=()))


def drawn(points: int) -> NDArray[np.int64]:
    """Indices of the points to draw: all of a few, else a sample that is always the same."""
    if points <= MANY:
        return np.arange(points)
    return np.sort(np.random.default_rng(0).choice(points, MANY, replace=False))


def sampled(points: int) -> str:
    """The caption's sentence about points that aren't drawn; empty where all are."""
    return f"Of each architecture {MANY:,} points are drawn." if points > MANY else ""
