"""Runs of a made-up model to draw, and whether a figure's texts are on the sheet and apart."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
from comparison_rows import frame, system
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from plot_runs import write_questions

from rewoo_bench.report.plots.data import read
from rewoo_bench.report.plots.draw import draw
from rewoo_bench.report.plots.style import Picture
from rewoo_bench.runs.manifest import FORMAT_VERSION

_SLACK = 1.5  # pixels


def made_run(folder: Path, names: Iterable[str], matches: str = "110100", **values: Any) -> Path:
    """A model's run of systems that cost about the same and are right as often."""
    values = {"run_id": "made", "dataset": "hotpotqa", "cost_usd": None, "model": "openai/small_1", **values}
    values = {"planner_model": values["model"], "solver_model": values["model"], **values}
    rows = frame(*(system(name, matches, 1000 + i // 2, **values) for i, name in enumerate(names)))
    rows["started_at"] = pd.Timestamp("2026-03-04", tz="UTC")
    folder.mkdir()
    write_questions(folder, rows)
    manifest = {
        "format_version": FORMAT_VERSION,
        "run_id": "made",
        "dataset": {"format": "hotpotqa"},
        "concurrency": 4,
        "options": {},
    }
    (folder / "run.json").write_text(json.dumps({"format_version": FORMAT_VERSION, **manifest}), encoding="utf-8")
    return folder


def pictures(*runs: Path, **how: Any) -> dict[str, Picture]:
    return dict(draw(read(runs), **how))


def shown(figure: Figure) -> list[Text]:
    """Every text that can be read in a figure; of tick labels those within the axes' limits."""
    figure.draw_without_rendering()
    ticks = {label: at for axes in figure.axes for label, at in _ticks(axes)}
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text) and text.get_visible() and text.get_text().strip() and ticks.get(text, True)
    ]


def _ticks(axes: Axes) -> Iterable[tuple[Text, bool]]:
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            for label in (tick.label1, tick.label2):
                yield label, axes.axison and low <= tick.get_loc() <= high


def check_fits(figure: Figure) -> None:
    """Nothing runs off the sheet, and no text covers another."""
    texts = shown(figure)
    boxes = [Text.get_window_extent(text) for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        inside = (box.x0, box.y0) >= (-_SLACK, -_SLACK) and box.y0 >= -_SLACK
        assert inside, text
        assert box.x1 <= figure.bbox.x1 + _SLACK, text
        assert box.y1 <= figure.bbox.y1 + _SLACK, text
    for (one, a), (other, b) in combinations(zip(texts, boxes, strict=True), 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        up = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= _SLACK or up <= _SLACK, (one, other)
