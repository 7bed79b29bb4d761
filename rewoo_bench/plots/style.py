"""How figures look: one sheet size, one colour and marker an architecture, labels that don't cover each other.

    figure, axes = sheet(1, 2)
    finish(figure, "What accuracy costs", "Bars: 95% intervals.", "n = 50 questions · local/x · hotpotqa · 2026-11-22")

Colours are those of Okabe and Ito 2008 (Color Universal Design), without their yellow, which is lost on
white; each comes with a marker of its own, so that a grey print tells as much.
"""

from __future__ import annotations

import math
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

INK, GREY, PALE = "#1a1a1a", "#666666", "#cccccc"
WIDTH, HEIGHT = 7.0, 4.5  # inches
DPI = 200
MANY = 2_000  # points of a colour; more of them are one blot
_CAPTION_WIDTH = 118  # characters of 8 points on so many inches
_LINE = 0.14  # inches, a line of the caption
_TITLE = 0.34  # inches, what the title takes
_TICKS = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))  # in a decade
_TICKS_AN_INCH = 1.8
_HALO = [withStroke(linewidth=2.5, foreground="white")]  # a name on a band or a line stays readable
_LABEL_HEIGHT = 0.062  # of an axes' height, a label of 8.5 points with air
_RC: Any = {
    "font.size": 9, "font.family": "DejaVu Sans", "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": GREY, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.axisbelow": True, "grid.color": "#e6e6e6", "grid.linewidth": 0.7, "legend.frameon": False,
    "lines.linewidth": 1.4, "lines.markersize": 6, "hatch.linewidth": 0.6, "savefig.dpi": DPI,
    "svg.hashsalt": "rewoo_bench", "svg.fonttype": "path", "axes.unicode_minus": True,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """An architecture in every figure."""

    name: str
    """As a reader knows it."""
    colour: str
    marker: str


_LOOKS = {
    "rewoo": Look("ReWOO", "#0072B2", "o"),
    "rewoo-json": Look("ReWOO, JSON plan", "#56B4E9", "s"),
    "react": Look("ReAct", "#D55E00", "^"),
    "react-native": Look("ReAct, native calls", "#E69F00", "v"),
    "rewoo-react": Look("ReWOO, then ReAct", "#009E73", "D"),
    "plan-execute": Look("plan-execute", "#CC79A7", "P"),
    "direct": Look("direct", "#000000", "X"),
    "cot": Look("chain of thought", "#7F7F7F", "p"),
}
_OTHERS = list(product(("#882255", "#332288", "#44AA99", "#999933"), ("h", "<", ">", "d", "8")))


def look(architecture: str) -> Look:
    """The same for the same name, whatever else is drawn; one that isn't bundled gets it from its name."""
    colour, marker = _OTHERS[zlib.crc32(architecture.encode()) % len(_OTHERS)]
    return _LOOKS.get(architecture) or Look(_spoken(architecture), colour, marker)


def _spoken(architecture: str) -> str:
    """`rewoo?max_steps=5&schedule=levels` as `ReWOO, max steps 5, schedule levels`."""
    plain, mark, options = architecture.partition("?")
    if not mark or plain not in _LOOKS:
        return architecture
    changes = options.replace("_", " ").replace("=", " ").replace("+", " + ").split("&")
    return ", ".join([_LOOKS[plain].name, *changes])


@contextmanager
def styled() -> Iterator[None]:
    """These settings and no others, whatever matplotlibrc there is."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def sheet(rows: int = 1, columns: int = 1, height: float = HEIGHT, **more: Any) -> tuple[Figure, Any]:
    """A figure with its axes, one or an array of them."""
    figure = Figure(figsize=(WIDTH, height), layout=ConstrainedLayoutEngine())
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **more)


def finish(figure: Figure, title: str, text: str, facts: str) -> None:
    """The title and the legend above the axes; below them what they show, and the facts on a line of their own."""
    paragraphs = [text, *facts.splitlines()]
    lines = [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, _CAPTION_WIDTH)]
    height = figure.get_figheight()
    bottom, top = (0.09 + _LINE * len(lines)) / height, 1 - _TITLE / height
    figure.text(0.012, 1 - 0.11 / height, title, fontsize=11, fontweight="bold", va="top")
    figure.text(0.012, 0.055 / height, "\n".join(lines), fontsize=8, color=GREY, va="bottom", linespacing=1.25)
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0, top))
        top -= legend.get_window_extent().height / figure.bbox.height
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, rect=(0, bottom, 1, top - bottom)))


def legend_above(figure: Figure, **more: Any) -> None:
    """A legend between the title and the axes; `finish` makes room for it."""
    figure.legend(loc="upper left", columnspacing=1.6, **more).set_in_layout(False)


def grid(axes: Axes, which: str = "both") -> None:
    """Faint lines at the ticks of an axis, `x` or `y`, or of both."""
    axes.grid(True, axis=which)  # type: ignore[arg-type]
    axes.tick_params(length=2.5, color=GREY)


def count(value: float) -> str:
    """Tokens as people write them: `1,432`, `12.5`."""
    return f"{value:,.0f}" if abs(value) >= 20 or value == int(value) else f"{value:.3g}"


def logarithmic(axes: Axes, which: str, low: float, high: float, inches: float = 6.0) -> None:
    """A log scale with limits, and plain numbers at as many places as an axis of so many inches has room for."""
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
    """Which of so many points are drawn: all of a few, else a sample that is always the same."""
    if points <= MANY:
        return np.arange(points)
    return np.sort(np.random.default_rng(0).choice(points, MANY, replace=False))


def sampled(points: int) -> str:
    """What a caption says of points that aren't all drawn."""
    return f"Of each architecture {MANY:,} points are drawn." if points > MANY else ""


def label_lines(axes: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """The architectures' names to the right of where their lines end, pushed apart where they meet.

    The axes must have their limits and scales.
    """
    order = sorted(ends, key=lambda name: ends[name][1])
    heights = [_height(axes, ends[name]) for name in order]
    for name, at in zip(order, spread(heights, _LABEL_HEIGHT), strict=True):
        own = look(name)
        axes.annotate(
            own.name, xy=ends[name], xytext=(1.03, at), textcoords="axes fraction", color=own.colour, va="center",
            fontsize=8.5, arrowprops={"arrowstyle": "-", "color": own.colour, "lw": 0.6, "shrinkA": 1, "shrinkB": 4,
                        "relpos": (0, 0.5)},
        )  # fmt: skip


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Rising heights with at least `gap` between them, moved as little as that takes, within 0 to 1 where they fit.

    >>> spread([0.25, 0.25, 0.75], 0.25)
    [0.125, 0.375, 0.75]
    """
    from scipy.optimize import isotonic_regression

    steps = gap * np.arange(len(heights))
    placed = isotonic_regression(np.asarray(heights) - steps).x
    within = np.clip(placed, 0, max(0.0, 1 - gap * (len(heights) - 1))) + steps
    return [float(height) for height in within]


def label_points(
    axes: Axes, points: Mapping[str, tuple[float, float]], obstacles: Sequence[tuple[float, float]]
) -> None:
    """The architectures' names beside their points, each where it covers no other name and no obstacle.

    Nor where it begins closer to another point: whose name would it be?
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    marks = {name: axes.transData.transform(point) for name, point in points.items()}
    spots = [*marks.values(), *map(axes.transData.transform, obstacles)]
    taken: list[Any] = []
    for name, point in points.items():
        own = look(name)
        for dx, dy, side in ((9, 9, "left"), (9, -9, "left"), (-9, 9, "right"), (-9, -9, "right"), (9, 24, "left"),
                             (9, -24, "left"), (-9, 24, "right"), (-9, -24, "right")):  # fmt: skip
            text = axes.annotate(own.name, point, xytext=(dx, dy), textcoords="offset points", ha=side, va="center",
                                 color=own.colour, fontsize=8.5, path_effects=_HALO)  # fmt: skip
            box = text.get_window_extent(renderer)
            begins = marks[name] + np.array([dx, dy]) * figure.dpi / 72
            nearest = min(marks, key=lambda other: float(np.hypot(*(marks[other] - begins))))
            free = not any(box.overlaps(other) for other in taken) and not any(box.contains(*spot) for spot in spots)
            within = axes.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and axes.bbox.y0 <= box.y0
            if free and nearest == name and within:
                break
            text.remove()
        else:
            axes.annotate(own.name, point, xytext=(9, 9), textcoords="offset points", color=own.colour, fontsize=8.5,
                          path_effects=_HALO)  # fmt: skip
        taken.append(box)


def _height(axes: Axes, point: tuple[float, float]) -> float:
    """Where a point lies between the bottom (0) and the top (1) of its axes."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform(point))[1])
