"""`failure` and `tools`: accuracy and tokens where the tools fail, and where there are more of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import Measured, arms, mean, share
from rewoo_bench.plots.labels import WIDTH, label_lines
from rewoo_bench.plots.looks import Look
from rewoo_bench.plots.picture import Options, Picture, picture
from rewoo_bench.plots.style import count, grid, sheet, tall
from rewoo_bench.stats.paired import Interval

_CELL = ["line", "condition"]  # what a row belongs to: an architecture's line, and where on it
_APART = 0.012  # of the axis, so that intervals don't cover each other


def failure(measured: Measured, options: Options) -> Picture:
    """Runs with `--tool-failure-rate`: the same questions, so many of the tool calls failing."""
    rates = measured.option("tool_failure_rate", 0.0)
    if rates.nunique() < 2:
        said = ", ".join(f"{rate:g}" for rate in sorted(rates.unique()))
        raise NothingToDraw(f"needs runs with different --tool-failure-rate; here it is {said} throughout")
    modes = measured.option("tool_failure_mode", "empty")[(rates > 0).to_numpy(dtype=bool)].unique()
    if len(modes) > 1:
        raise NothingToDraw(f"needs runs of one --tool-failure-mode; here they are {', '.join(sorted(modes))}")
    rows = measured.rows.assign(condition=rates.to_numpy(dtype=float), line=measured.rows["architecture"].astype(str))
    measured.only(rows).check_once(*_CELL)
    said = f"A failing tool {_MODES.get(str(modes[0]), str(modes[0]))}."
    title = "What failing tools do to accuracy and cost"
    return _panels(measured.only(shared(rows)), "share of tool calls that fail", "{:.0%}", title, said)


_MODES = {"empty": "finds nothing", "error": "answers with an error", "timeout": "doesn't answer in time"}


def tools(measured: Measured, options: Options) -> Picture:
    """Runs of the same architecture with different sets of tools."""
    offered = _offered(measured)
    keys = list(zip(measured.rows["run_id"].astype(str), measured.rows["architecture"].astype(str), strict=True))
    there = [key in offered for key in keys]
    found = [offered[key] for key in keys if key in offered]
    rows = measured.rows[there].assign(condition=[offer.tools for offer in found], line=[offer.kind for offer in found])
    if not (rows.groupby("line")["condition"].nunique() > 1).any():
        counts = ", ".join(f"{name} {offer.tools}" for (_, name), offer in offered.items()) or "no run.json"
        raise NothingToDraw(f"needs runs of one architecture with different numbers of tools; there are: {counts}")
    names = {kind: min(map(str, part["architecture"].unique()), key=len) for kind, part in rows.groupby("line")}
    rows = shared(rows.assign(line=rows["line"].map(names)))
    measured.only(rows).check_once(*_CELL)
    title = "What more tools do to accuracy and cost"
    return _panels(measured.only(rows), "tools offered to the architecture", "{:g}", title, "")


@dataclass(frozen=True, slots=True)
class _Offer:
    tools: int
    kind: str
    """The same for architectures that differ in their tools alone."""


def _offered(measured: Measured) -> dict[tuple[str, str], _Offer]:
    """By run and architecture, as run.json says."""
    runs = set(measured.rows["run_id"].astype(str))
    return {
        (run, entry.name): _Offer(len(entry.tools), f"{entry.runner} {entry.settings} {entry.exemplars}")
        for run, manifest in measured.manifests.items()
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


def _panels(measured: Measured, label: str, form: str, title: str, said: str) -> Picture:
    """Accuracy to the left, tokens to the right, a line an architecture."""
    rows = measured.rows
    ticks = sorted(set(rows["condition"].tolist()))
    names = list(dict.fromkeys(rows["line"]))
    figure, (left, right) = sheet(1, 2, tall(measured.look(name).wrapped(WIDTH) for name in names))
    ends: dict[str, tuple[float, float]] = {}
    accuracies: list[Interval] = []
    for i, name in enumerate(names):
        off = _APART * (ticks[-1] - ticks[0]) * (i - (len(names) - 1) / 2)
        own = rows[rows["line"] == name]
        parts = {at + off: own[own["condition"] == at] for at in sorted(set(own["condition"].tolist()))}
        right_answers = {at: share(part) for at, part in parts.items()}
        accuracies += right_answers.values()
        _line(left, measured.look(name), right_answers)
        tokens = {at: mean(part, "total_tokens") for at, part in parts.items()}
        _line(right, measured.look(name), tokens)
        ends[name] = (max(tokens), tokens[max(tokens)].estimate)
    top = min(1.03, 1.12 * max([0.2, *(found.high for found in accuracies if not math.isnan(found.high))]))
    left.set(ylim=(-0.03 * top / 1.03, top), ylabel="answered right, share of questions" if measured.oracle else
             "exact match, share of questions")  # fmt: skip
    right.set(ylim=(0, right.get_ylim()[1]), ylabel="mean tokens per question")
    right.yaxis.set_major_formatter(lambda value, _: count(value))
    for axes in (left, right):
        grid(axes)
        axes.set_xlabel(label)
        axes.set_xticks(ticks, [form.format(at) for at in ticks])
    oracle = "An oracle answers right where its search brought what it needs: that says nothing of a model."
    told = oracle if measured.oracle else ""
    shown = picture(figure, title, said, told, "Bars: 95% intervals.", facts=measured.facts())
    label_lines(right, ends, measured.looks)
    return shown


def _line(axes: Axes, own: Look, values: Mapping[float, Interval]) -> None:
    found = list(values.values())
    middle = [value.estimate for value in found]
    axes.errorbar(
        list(values), middle, yerr=arms(found), color=own.colour, marker=own.marker, capsize=2.5, elinewidth=1
    )
