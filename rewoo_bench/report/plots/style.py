"""The style of figures: one sheet, with a title, a legend and a caption that fit, and plain numbers on the axes.

figure, axes = sheet(1, 2)
picture(figure, "What accuracy costs", "Bars: 95% intervals.", facts="n = 50 questions · local/x · hotpotqa")
series_styles(["rewoo", "mine"])["rewoo"].colour    # "#0072B2", wherever it is drawn
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from rewoo_bench.text.escaping import plain_markdown

INK, GREY, PALE = "#1a1a1a", "#666666", "#cccccc"
NARROW, WIDTH, HEIGHT = 5.2, 7.0, 4.5  # inches: letters of a narrow sheet are legible at 400 pixels
MANY = 2_000  # points of a colour; more would be one blot
NAME_WIDTH, ROW = 16, 20  # characters of a line of a name, and of the name of a row
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
    "lines.linewidth": 1.4, "lines.markersize": 6, "hatch.linewidth": 0.6, "savefig.dpi": 200,
    "figure.dpi": 200,  # as saved: letters are wider or narrower at another resolution, so a text may not fit
    "svg.hashsalt": "rewoo_bench", "svg.fonttype": "path", "axes.unicode_minus": True,
    "text.parse_math": False,  # a name may contain a dollar sign
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure and its caption, which is also in the figure."""

    figure: Figure
    title: str
    caption: str

    @property
    def markdown(self) -> str:
        """Title and caption for captions.md, escaped: names in them may come from another person's run."""
        return f"**{plain_markdown(self.title)}.** {plain_markdown(self.caption)}"


@contextmanager
def styled() -> Iterator[None]:
    """These settings and no others, whatever the matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def sheet(
    rows: int = 1, columns: int = 1, height: float = HEIGHT, width: float = NARROW, **more: Any
) -> tuple[Figure, Any]:
    """A figure with its axes, one or an array of them."""
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine())
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **more)


def tall(names: Iterable[str], panels: int = 1) -> float:
    """Inches of a sheet with room for the names below each other, in each of the panels that stand below each other."""
    return _ROOM + panels * max(2.4, 0.5 + _NAME_LINE * sum(1.35 + name.count("\n") for name in names))


def tall_rows(names: Sequence[str]) -> float:
    """The same for names of rows of equal height."""
    lines = [1 + name.count("\n") for name in names]
    most = max([1.0, *((a + b) / 2 for a, b in pairwise(lines))])
    return max(HEIGHT, 2.0 + _NAME_LINE * (most + 0.6) * len(lines))


def picture(figure: Figure, title: str, *sentences: str, facts: str) -> Picture:
    """The figure with the title and the legend above the axes, and the caption below them; facts are its last lines.

    Empty sentences are left out. The sheet grows where there isn't enough room.
    """
    caption = " ".join(filter(None, sentences))
    above = figure.text(_MARGIN, 1, _wrapped(figure, title, fontsize=11, fontweight="bold"), fontsize=11,
                        fontweight="bold", va="top")  # fmt: skip
    paragraphs = [_wrapped(figure, each, fontsize=8) for each in (caption, *facts.splitlines())]
    below = figure.text(_MARGIN, 0, "\n".join(filter(None, paragraphs)), fontsize=8, color=GREY, va="bottom",
                        linespacing=1.25)  # fmt: skip
    top = 0.15 + _TITLE_LINE * (1 + above.get_text().count("\n"))
    bottom = 0.09 + _LINE * (1 + below.get_text().count("\n"))
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
    return Picture(figure, title, f"{caption} {facts.replace(chr(10), '; ')}")


def _wrapped(figure: Figure, paragraph: str, **font: Any) -> str:
    """The paragraph in lines that fill the sheet's width."""
    room = (1 - 2 * _MARGIN) * figure.bbox.width
    text = figure.text(0, 0, paragraph, **font)
    for width in range(140, 10, -2):
        text.set_text(textwrap.fill(paragraph, width))
        if text.get_window_extent().width <= room:
            break
    text.remove()
    return text.get_text()


def legend_above(figure: Figure, columns: int = 4, **more: Any) -> None:
    """A legend between the title and the axes, with as many columns as fit; `picture` makes room for it."""
    for ncols in range(columns, 0, -1):
        legend = figure.legend(loc="upper left", columnspacing=1.6, ncols=ncols, **more)
        legend.set_in_layout(False)
        if ncols == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def grid(axes: Axes, which: str = "both") -> None:
    """Faint lines at the ticks of an axis, `x` or `y`, or of both."""
    axes.grid(True, axis=which)  # type: ignore[arg-type]
    axes.tick_params(length=2.5, color=GREY)


def count(value: float) -> str:
    """A number of tokens as text: `1,432`, `12.5`."""
    return f"{value:,.0f}" if abs(value) >= 20 or value == int(value) else f"{value:.3g}"


def logarithmic(axes: Axes, which: str, low: float, high: float, inches: float) -> None:
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


def titled(values: Mapping[str, float], pair: Sequence[str]) -> list[str]:
    """The architectures that a title names: the pair where both are there, else the highest value and the lowest."""
    order = sorted(values, key=lambda name: -values[name])
    return [*pair] if set(pair) <= set(order) else [*dict.fromkeys((*order[:1], *order[-1:]))]


def drawn(points: int) -> NDArray[np.int64]:
    """Indices of the points to draw: all of a few, else a sample that is always the same."""
    if points <= MANY:
        return np.arange(points)
    return np.sort(np.random.default_rng(0).choice(points, MANY, replace=False))


def sampled(points: int) -> str:
    """The caption's sentence about points that aren't drawn; empty where all are."""
    return f"Of each architecture {MANY:,} points are drawn." if points > MANY else ""


# A name, a colour and a marker for each architecture, no two alike in one figure.
#
# Colours are those of Okabe and Ito 2008 (Color Universal Design), without their yellow, which is invisible on
# white, and five more of Paul Tol's muted scheme. Each has its own marker, so that a grey print is readable too.


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """Name, as in the tables, colour and marker of an architecture."""

    name: str
    colour: str
    marker: str

    def wrapped(self, width: int) -> str:
        """The name on up to five lines of at most `width` characters, broken behind ? and & where it has options, and
        behind = in a long one; a longer name loses its end."""
        pieces = re.findall("[^?&]+[?&]?|[?&]", self.name)
        apart = " ".join(piece if len(piece) <= width else piece.replace("=", "= ") for piece in pieces)
        lines = textwrap.wrap(apart, width, max_lines=5, placeholder="…")
        return "\n".join(re.sub("([?&=]) ", r"\1", line) for line in lines) or self.name


_LOOKS = {
    "rewoo": ("#0072B2", "o"),
    "rewoo-json": ("#56B4E9", "s"),
    "rewoo-lazy": ("#117733", "<"),
    "rewoo-code": ("#661100", "H"),
    "react": ("#D55E00", "^"),
    "react-json": ("#DDCC77", ">"),
    "react-code": ("#6699CC", "d"),
    "react-native": ("#E69F00", "v"),
    "rewoo-react": ("#009E73", "D"),
    "router": ("#AA4499", "*"),
    "plan-execute": ("#CC79A7", "P"),
    "llmcompiler": ("#882255", "h"),
    "direct": ("#000000", "X"),
    "cot": ("#7F7F7F", "p"),
}
_STYLES = {name: SeriesStyle(name, *look) for name, look in _LOOKS.items()}
# For other architectures, including variants of bundled ones; in this order.
_COLOURS = ("#332288", "#44AA99", "#999933", *(own.colour for own in _STYLES.values()))
_MARKERS = ("8", ".", *(own.marker for own in _STYLES.values()))


def series_styles(architectures: Iterable[str]) -> dict[str, SeriesStyle]:
    """A style for each: the bundled ones and two others have unique colours and markers, more have unique pairs.

    A bundled architecture has the same style everywhere, another one wherever the same architectures are drawn.
    """
    names = sorted(set(architectures))
    found = {name: _STYLES[name] for name in names if name in _STYLES}
    for name in names:
        if name in found:
            continue
        # the first of the colours and markers that are used least, and not together
        colour = min(_COLOURS, key=[own.colour for own in found.values()].count)
        used = [own.marker for own in found.values()]
        beside = {own.marker for own in found.values() if own.colour == colour}
        marker = min(_MARKERS, key=lambda each: (each in beside, used.count(each)))
        found[name] = SeriesStyle(name, colour, marker)
    return found


# Names next to lines and points. They don't cover each other and stay on the sheet. The axes must be finished: with
# limits, scales, title and caption.


Point = tuple[float, float]
_SIZE, _PALEST = 8.5, 0.6  # points of a name; brightness of its colour
_LINE_OF_NAME, _AIR = 0.15, 0.03  # inches: a line of a name, and between names


def label_lines(axes: Axes, ends: Mapping[str, Point], styles: Mapping[str, SeriesStyle]) -> None:
    """The architectures' names to the right of the axes, level with their points or the ends of their lines, or apart.

    A thin grey dotted line leads from a name to its point: in the architecture's colour it would look like data.
    """
    figure = _drawn(axes)
    inches = axes.bbox.height / figure.dpi
    names = sorted(ends, key=lambda name: ends[name][1])
    texts = [styles[name].wrapped(NAME_WIDTH) for name in names]
    sizes = [(_AIR + _LINE_OF_NAME * (1 + text.count("\n"))) / inches for text in texts]
    to_axes = axes.transAxes.inverted()
    heights = [float(to_axes.transform(axes.transData.transform(ends[name]))[1]) for name in names]
    leader = {
        "arrowstyle": "-", "color": GREY, "lw": 0.7, "linestyle": (0, (1, 2.5)), "shrinkA": 2, "shrinkB": 5,
        "relpos": (0, 0.5),
    }  # fmt: skip
    for name, text, at in zip(names, texts, spread(heights, sizes), strict=True):
        axes.annotate(
            text, xy=ends[name], xytext=(1.03, at), textcoords="axes fraction", color=_ink(styles[name].colour),
            va="center", fontsize=_SIZE, arrowprops=leader,
        )  # fmt: skip


def _ink(colour: str) -> str:
    """The colour of a name: a pale one is illegible as a letter."""
    red, green, blue = to_rgb(colour)
    return INK if 0.3 * red + 0.59 * green + 0.11 * blue > _PALEST else colour


def spread(heights: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Rising heights of names of these sizes, moved apart as little as possible, within 0 to 1 where they fit.

    >>> spread([0.25, 0.25, 0.75], [0.25, 0.25, 0.25])
    [0.125, 0.375, 0.75]
    """
    if not len(heights):
        return []
    size = np.asarray(sizes, dtype=np.float64)
    steps = np.concatenate([[0.0], np.cumsum((size[:-1] + size[1:]) / 2)])
    blocks: list[list[float]] = []  # isotonic regression (scipy.optimize's takes half a second to import)
    for height in np.asarray(heights) - steps:
        blocks.append([height])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    placed = [np.mean(block) for block in blocks for _ in block]
    within = np.clip(placed, 0, max(0.0, 1 - steps[-1])) + steps
    return [float(height) for height in within]


def _drawn(axes: Axes) -> Figure:
    """The figure, laid out, so that positions are known."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    return figure
