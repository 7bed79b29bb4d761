"""Names next to lines and points. They don't cover each other and stay on the sheet.

Both functions need finished axes: with limits, scales, title and caption.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text

from rewoo_bench.plots.series_styles import SeriesStyle
from rewoo_bench.plots.style import GREY

Point = tuple[float, float]
SIZE = 8.5  # points of a name
NAME_WIDTH = 24  # characters of a line of a name
ROW = 30  # the same for the name of a row
_LINE_OF_NAME = 0.15  # inches, a line of a name
_AIR = 0.03  # inches between names
_HALO = [withStroke(linewidth=2.5, foreground="white")]  # a name on a band or a line stays readable
_DOTTED = {"arrowstyle": "-", "color": GREY, "lw": 0.7, "linestyle": (0, (1, 2.5))}
_NEAR = 14.0  # points from a marker to its name, if there is room
_LEADER = 22.0  # a name farther off has a line to its marker


def label_lines(axes: Axes, ends: Mapping[str, Point], styles: Mapping[str, SeriesStyle]) -> None:
    """The architectures' names to the right of the axes, level with the ends of their lines or moved apart.

    A thin grey dotted line leads from a name to its line's end: in the line's colour it would look like data.
    """
    figure = _drawn(axes)
    inches = axes.bbox.height / figure.dpi
    names = sorted(ends, key=lambda name: ends[name][1])
    texts = [styles[name].wrapped(NAME_WIDTH) for name in names]
    sizes = [(_AIR + _LINE_OF_NAME * (1 + text.count("\n"))) / inches for text in texts]
    for name, text, at in zip(names, texts, spread([_height(axes, ends[name]) for name in names], sizes), strict=True):
        colour = styles[name].colour
        axes.annotate(
            text, xy=ends[name], xytext=(1.03, at), textcoords="axes fraction", color=colour, va="center",
            fontsize=SIZE,
            arrowprops={**_DOTTED, "shrinkA": 2, "shrinkB": 5, "relpos": (0, 0.5)},
        )  # fmt: skip


def spread(heights: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Rising heights of names of these sizes, moved apart as little as possible, within 0 to 1 where they fit.

    >>> spread([0.25, 0.25, 0.75], [0.25, 0.25, 0.25])
    [0.125, 0.375, 0.75]
    """
    from scipy.optimize import isotonic_regression

    if not len(heights):
        return []
    size = np.asarray(sizes, dtype=np.float64)
    steps = np.concatenate([[0.0], np.cumsum((size[:-1] + size[1:]) / 2)])
    placed = isotonic_regression(np.asarray(heights) - steps).x
    within = np.clip(placed, 0, max(0.0, 1 - steps[-1])) + steps
    return [float(height) for height in within]


def label_points(
    axes: Axes,
    points: Mapping[str, Point],
    obstacles: Sequence[Point],
    styles: Mapping[str, SeriesStyle],
    texts: Mapping[str, str],
) -> None:
    """Texts next to the architectures' points, each where it covers no other text, no point and no obstacle.

    A text far from its point, or closer to another one, has a line to its own. Without a free place, a text may cover
    obstacles, but no other text.
    """
    figure = _drawn(axes)
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    marks = {name: axes.transData.transform(point) for name, point in points.items()}
    spots = [*marks.values(), *map(axes.transData.transform, obstacles)]
    taken: list[Any] = []
    for name, point in points.items():
        best: tuple[float, Annotation, list[Any]] | None = None
        for offset in _offsets():
            leader = _unclear(name, marks, offset, figure.dpi)
            text = _text(axes, texts[name], styles[name].colour, point, offset, leader=leader)
            box = _text_box(text, renderer)
            covered = 0.5 * leader + sum(box.contains(*spot) for spot in spots)
            covered += 10_000 * sum(box.overlaps(other) for other in taken)
            covered += 1_000 * (not _within(axes, figure, box))
            line = _line_to(marks[name], offset, figure.dpi) if leader else []
            covered += 100 * any(other.contains(*spot) for other in taken for spot in line)
            if best is None or covered < best[0]:
                if best:
                    best[1].remove()
                best = covered, text, line
            else:
                text.remove()
            if best[0] < (1 if math.hypot(*offset) > _LEADER else 0.5):
                break
        assert best is not None
        taken.append(_text_box(best[1], renderer))
        spots += best[2]


def _offsets() -> Iterator[Point]:
    """Places around a point, in points: the nearest first, the right before the left."""
    for radius in (_NEAR, _LEADER - 1, *np.arange(26.0, 200.0, 13.0)):
        level = (0, 180, 90, -90) if radius <= _LEADER else ()  # a level or upright line would pass for an error bar
        for degrees in (35, -35, 145, -145, 62, -62, 118, -118, *level):
            yield radius * math.cos(math.radians(degrees)), radius * math.sin(math.radians(degrees))


def _unclear(name: str, marks: Mapping[str, Any], offset: Point, dpi: float) -> bool:
    """Whether a reader may take a text at this place for another point's."""
    begins = marks[name] + np.array(offset) * dpi / 72
    own = float(np.hypot(*(marks[name] - begins)))
    others = [float(np.hypot(*(mark - begins))) for other, mark in marks.items() if other != name]
    return own > _LEADER * dpi / 72 or any(far <= own for far in others)


def _line_to(mark: Any, offset: Point, dpi: float) -> list[Any]:
    """Places along the line between a point and its name."""
    return list(np.linspace(mark, mark + np.array(offset) * dpi / 72, 16))


def _text(axes: Axes, text: str, colour: str, point: Point, offset: Point, *, leader: bool) -> Annotation:
    side = "left" if offset[0] > 1 else "right" if offset[0] < -1 else "center"
    begins = ({"left": 0.0, "right": 1.0, "center": 0.5}[side], 0.5)  # where on the text its line begins
    line = {"arrowstyle": "-", "color": colour, "lw": 0.6, "shrinkA": 0, "shrinkB": 3, "relpos": begins}
    return axes.annotate(
        text, point, xytext=offset, textcoords="offset points", ha=side, va="center", color=colour,
        fontsize=SIZE, path_effects=_HALO, arrowprops=line if leader else None, annotation_clip=False, in_layout=False,
    )  # fmt: skip


def _text_box(text: Annotation, renderer: Any) -> Any:
    """The box of the text, without the line to its point."""
    text.update_positions(renderer)
    return Text.get_window_extent(text, renderer)


def _within(axes: Axes, figure: Figure, box: Any) -> bool:
    return bool(
        axes.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and axes.bbox.y0 <= box.y0 and box.y1 <= axes.bbox.y1
    )


def _drawn(axes: Axes) -> Figure:
    """The figure, laid out, so that positions are known."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    return figure


def _height(axes: Axes, point: Point) -> float:
    """A point's height between the bottom (0) and the top (1) of its axes."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform(point))[1])
