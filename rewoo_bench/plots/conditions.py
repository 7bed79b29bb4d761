"""`failure` and `tools`: accuracy and tokens with failing tools, and with more tools."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import PlotData, arms, mean, share
from rewoo_bench.plots.labels import NAME_WIDTH, label_lines
from rewoo_bench.plots.picture import Picture, PlotOptions, picture
from rewoo_bench.plots.series_styles import SeriesStyle
from rewoo_bench.plots.style import count, grid, sheet, tall
from rewoo_bench.stats.paired import Interval

_CELL = ["line", "condition"]  # an architecture's line, and a point on it
_APART = 0.012  # of the axis, so that intervals don't cover each other


def failure(data: PlotData, options: PlotOptions) -> Picture:
    """Runs with `--tool-failure-rate`: the same questions, a growing share of failing tool calls."""
    rates = data.option("tool_failure_rate", 0.0)
    if rates.nunique() < 2:
        rate = ", ".join(f"{rate:g}" for rate in sorted(rates.unique()))
        raise NothingToDraw(f"needs runs with different --tool-failure-rate; here it is {rate} throughout")
    modes = data.option("tool_failure_mode", "empty")[(rates > 0).to_numpy(dtype=bool)].unique()
    if len(modes) > 1:
        raise NothingToDraw(f"needs runs of one --tool-failure-mode; here they are {', '.join(sorted(modes))}")
    rows = data.rows.assign(condition=rates.to_numpy(dtype=float), line=data.rows["architecture"].astype(str))
    data.only(rows).check_once(*_CELL)
    meaning = f"A failing tool {_MODES.get(str(modes[0]), str(modes[0]))}."
    title = "Accuracy and cost with failing tools"
    return _panels(data.only(shared(rows)), "share of tool calls that fail", "{:.0%}", title, meaning)


_MODES = {"empty": "finds nothing", "error": "answers with an error", "timeout": "doesn't answer in time"}


def tools(data: PlotData, options: PlotOptions) -> Picture:
    """Runs of the same architecture with different sets of tools."""
    offered = _offered(data)
    keys = list(zip(data.rows["run_id"].astype(str), data.rows["architecture"].astype(str), strict=True))
    known = [key in offered for key in keys]
    offers = [offered[key] for key in keys if key in offered]
    rows = data.rows[known].assign(condition=[offer.tools for offer in offers], line=[offer.kind for offer in offers])
    if not (rows.groupby("line")["condition"].nunique() > 1).any():
        counts = ", ".join(f"{name} {offer.tools}" for (_, name), offer in offered.items()) or "no run.json"
        raise NothingToDraw(f"needs runs of one architecture with different numbers of tools; there are: {counts}")
    names = {kind: min(map(str, part["architecture"].unique()), key=len) for kind, part in rows.groupby("line")}
    rows = shared(rows.assign(line=rows["line"].map(names)))
    data.only(rows).check_once(*_CELL)
    title = "Accuracy and cost with more tools"
    return _panels(data.only(rows), "tools offered to the architecture", "{:g}", title, "")


@dataclass(frozen=True, slots=True)
class _Offer:
    tools: int
    kind: str
    """Equal for architectures that differ only in their tools."""


def _offered(data: PlotData) -> dict[tuple[str, str], _Offer]:
    """Tools by run and architecture, from run.json."""
    runs = set(data.rows["run_id"].astype(str))
    return {
        (run, entry.name): _Offer(len(entry.tools), f"{entry.runner} {entry.settings} {entry.exemplars}")
        for run, manifest in data.manifests.items()
        if run in runs
        for entry in manifest.architectures
    }


def shared(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the questions that every line has under each of its conditions; of lines with two or more of them."""
    rows = rows[rows.groupby("line")["condition"].transform("nunique") > 1]
    cells = len(rows[_CELL].drop_duplicates())
    times = rows.groupby(["example_id", "trial"])["line"].transform("size")
    kept = rows[(times == cells).to_numpy(dtype=bool)]
    if not len(kept):
        raise NothingToDraw("needs the same questions of one architecture under two conditions or more")
    return kept


def _panels(data: PlotData, label: str, form: str, title: str, meaning: str) -> Picture:
    """Accuracy to the left, tokens to the right, a line per architecture."""
    rows = data.rows
    ticks = sorted(set(rows["condition"].tolist()))
    names = list(dict.fromkeys(rows["line"]))
    figure, (left, right) = sheet(1, 2, tall(data.style(name).wrapped(NAME_WIDTH) for name in names))
    ends: dict[str, tuple[float, float]] = {}
    accuracies: list[Interval] = []
    for i, name in enumerate(names):
        off = _APART * (ticks[-1] - ticks[0]) * (i - (len(names) - 1) / 2)
        own = rows[rows["line"] == name]
        parts = {at + off: own[own["condition"] == at] for at in sorted(set(own["condition"].tolist()))}
        right_answers = {at: share(part) for at, part in parts.items()}
        accuracies += right_answers.values()
        _line(left, data.style(name), right_answers)
        tokens = {at: mean(part, "total_tokens") for at, part in parts.items()}
        _line(right, data.style(name), tokens)
        ends[name] = (max(tokens), tokens[max(tokens)].estimate)
    top = min(1.03, 1.12 * max([0.2, *(each.high for each in accuracies if not math.isnan(each.high))]))
    left.set(ylim=(-0.03 * top / 1.03, top), ylabel="answered right, share of questions" if data.oracle else
             "exact match, share of questions")  # fmt: skip
    right.set(ylim=(0, right.get_ylim()[1]), ylabel="mean tokens per question")
    right.yaxis.set_major_formatter(lambda value, _: count(value))
    for axes in (left, right):
        grid(axes)
        axes.set_xlabel(label)
        axes.set_xticks(ticks, [form.format(at) for at in ticks])
    oracle = "An oracle is right where its searches found the evidence: this says nothing about a model."
    note = oracle if data.oracle else ""
    shown = picture(figure, title, meaning, note, "Bars: 95% intervals.", facts=data.facts())
    label_lines(right, ends, data.styles)
    return shown


def _line(axes: Axes, own: SeriesStyle, values: Mapping[float, Interval]) -> None:
    intervals = list(values.values())
    middle = [value.estimate for value in intervals]
    axes.errorbar(
        list(values), middle, yerr=arms(intervals), color=own.colour, marker=own.marker, capsize=2.5, elinewidth=1
    )
