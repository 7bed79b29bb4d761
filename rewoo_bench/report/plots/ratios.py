"""`ratio`: tokens of one architecture against those of another; `pareto`: accuracy against cost; `reach`: what an
attacker's text reached against cost; `paper`: Table 2."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from rewoo_bench.analysis.compare import compare
from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.prices import Pricing, sentence
from rewoo_bench.analysis.stats.paired import Interval, ratio_of_means
from rewoo_bench.analysis.verdict import verdict
from rewoo_bench.config.names import ORACLE_ACCURACY
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.data import PlotData, arms, mean_of_questions, positive, share_of
from rewoo_bench.report.plots.style import GREY, INK, NAME_WIDTH, PALE, Picture, SeriesStyle

_KEY = ["example_id", "trial"]
_AXIS, _SQUARE = 34, 5.6  # characters of an axis' name; inches of a sheet with a square
_WIDE = 20  # characters of a line of a name in the legend, which has words before and after it


def ratio(data: PlotData, pair: tuple[str, str]) -> Picture:
    """Paired scatter on log axes: a point a question and trial, lines of equal ratio."""
    pairs = _paired(data, *pair)
    up, along = (data.styles[name] for name in pair)
    found = _ratio(pairs)
    figure, axes = style.sheet(height=_SQUARE)
    spent = pairs[(pairs["up"] > 0) & (pairs["along"] > 0)]
    low, high = float(spent[["up", "along"]].min().min()) / 1.25, float(spent[["up", "along"]].max().max()) * 1.25
    for which in ("x", "y"):
        style.logarithmic(axes, which, low, high, inches=2.2)
    axes.set_box_aspect(1)
    axes.set_anchor("W")
    style.grid(axes)
    for times in (1, 2, 5, 10):  # named where they leave the axes at the top
        if low < high / times:
            axes.plot([low, high], [low * times, high * times], color=GREY, lw=1.2 if times == 1 else 0.8,
                      ls="-" if times == 1 else (0, (4, 3)), zorder=1)  # fmt: skip
            axes.annotate(f"{times}×", (high / times, high), xytext=(0, 8), textcoords="offset points", fontsize=8.5,
                          ha="center", va="center")  # fmt: skip
    shown = _draw_pairs(axes, spent, up, along, data.oracle)
    axes.set_xlabel(textwrap.fill(f"{along.name}: tokens (log scale)", _AXIS))
    axes.set_ylabel(textwrap.fill(f"{up.name}: tokens (log scale)", _AXIS))
    style.legend_above(figure, 2, handletextpad=0.4)
    both = pd.concat([data.of(name) for name in pair])
    looping = data.counts(both[both["loop_step"].notna()])
    answered = pairs[pairs["up_answered"] & pairs["along_answered"]]
    known = 0 < len(answered) < len(pairs) and (answered["up"] * answered["along"] > 0).any()
    return style.picture(
        figure,
        _said(data, both),
        f"{found.estimate:.2f} times in mean tokens, paired by question; 95% interval {found.low:.2f} to "
        f"{found.high:.2f}.",
        f"A point is {data.point}. Above the line 1× it cost more with {up.name}.",
        f"{shown:,} of {len(pairs):,} points are drawn." if shown < len(pairs) else "",
        "Tokens: input and output of every model call.",
        f"Where both answered: {_ratio(answered).estimate:.2f} times (n = {len(answered):,})." if known else "",
        f"In loops: {looping}." if looping else "",
        "An oracle is given the answers, so right and wrong aren't shown." if data.oracle else "",
        facts=data.facts(n=found.n),
    )


def _said(data: PlotData, both: pd.DataFrame) -> str:
    """What a comparison says of the tokens of two architectures, as a title."""
    (pair,) = compare(both, intersect=True).pairs
    named = replace(pair, a=data.styles[pair.a].name, b=data.styles[pair.b].name)
    return verdict(named, Pricing())[0].removesuffix(".")


def _paired(data: PlotData, up: str, along: str) -> pd.DataFrame:
    """Tokens and exact match of both for each question and trial that both have, in the order of `compare`."""
    data.check_once()
    sides = []
    for name, side in ((up, "up"), (along, "along")):
        rows = data.of(name)
        values = {
            side: column(rows, "total_tokens"),
            f"{side}_right": column(rows, "exact_match"),
            f"{side}_answered": (rows["stop_reason"] == "answered").to_numpy(bool),
        }
        sides.append(pd.DataFrame({**values, **{key: rows[key].to_numpy() for key in _KEY}}))
    pairs = sides[0].merge(sides[1], on=_KEY).dropna(subset=["up", "along"])
    if up == along or not (pairs["up"] * pairs["along"] > 0).any():
        there = ", ".join(data.architectures)
        raise NothingToDraw(f"needs rows of {up!r} and {along!r} on the same questions; there are {there}: give --pair")
    return pairs.sort_values(_KEY, ignore_index=True)


def _ratio(pairs: pd.DataFrame) -> Interval:
    clusters = pairs["example_id"].to_numpy(dtype=object) if pairs["trial"].nunique() > 1 else None
    return ratio_of_means(pairs["along"], pairs["up"], clusters=clusters)


def _draw_pairs(axes: Axes, pairs: pd.DataFrame, up: SeriesStyle, along: SeriesStyle, oracle: bool) -> int:
    """Filled where an architecture answered exactly right, in its own colour and marker where the other didn't.

    Returns how many points that is.
    """
    right, other = pairs["up_right"] == 1, pairs["along_right"] == 1
    hollow = {"marker": "o", "facecolors": "none", "edgecolors": GREY, "zorder": 2}
    kinds: list[tuple[str, pd.Series[bool], dict[str, Any]]] = [
        ("both right", right & other, {"marker": "s", "color": INK}),
        (f"only {up.wrapped(_WIDE)} right", right & ~other, {"marker": up.marker, "color": up.colour}),
        (f"only {along.wrapped(_WIDE)} right", ~right & other, {"marker": along.marker, "color": along.colour}),
        ("neither right", ~right & ~other, hollow),
    ]
    if oracle:
        kinds = [("question", pairs["up"] > 0, {"marker": "o", "color": INK})]
    chosen = np.isin(np.arange(len(pairs)), style.drawn(len(pairs)))
    size = 26 if len(pairs) <= 500 else 10
    for label, where, how in kinds:
        some = pairs[where & chosen]
        axes.scatter(some["along"], some["up"], s=size, linewidths=0.9, alpha=0.75, label=f"{label} ({where.sum():,})",
                     **{"zorder": 3, **how})  # fmt: skip
    return int(chosen.sum())


Intervals = Mapping[str, Interval]


def pareto(data: PlotData, pair: tuple[str, str]) -> Picture:
    """Exact match against mean cost (tokens, and dollars where every price is known), and the Pareto front."""
    data.check_once()
    if data.oracle:
        raise NothingToDraw(f"needs a model: {ORACLE_ACCURACY}")
    names = data.architectures
    spent = {name: mean_of_questions(data.of(name), "total_tokens") for name in names}
    right = {name: own for name in names if (own := share_of(data.of(name))).n and spent[name].estimate > 0}
    if len(right) < 2:
        raise NothingToDraw(f"needs scored rows of two architectures or more; there are {', '.join(names)}")
    costs: dict[str, Intervals] = {"mean tokens per question (log scale)": {name: spent[name] for name in right}}
    priced = bool(data.rows["cost_usd"].notna().all() and (data.rows["cost_usd"] > 0).all())
    if priced:
        dollars = data.only(data.rows.assign(thousand=data.rows["cost_usd"] * 1000))
        label = "US$ per 1,000 questions (log scale)"
        costs[label] = {name: mean_of_questions(dollars.of(name), "thousand") for name in right}
    wrapped = [data.styles[name].wrapped(NAME_WIDTH) for name in right]
    figure, axes = style.sheet(len(costs), 1, style.tall(wrapped, len(costs)), squeeze=False)
    panels = [panel for (panel,) in axes]
    top = min(1.03, 1.12 * max(0.1, *(np.nanmax([at.high, at.estimate]) for at in right.values())))
    for panel, (label, cost) in zip(panels, costs.items(), strict=True):
        _draw_cloud(panel, cost, right, data.styles, top, inches=3.0)
        ahead = front(cost, right)
        panel.step([cost[name].estimate for name in ahead], [right[name].estimate for name in ahead], where="post",
                   color=PALE, lw=5, zorder=1, solid_joinstyle="round")  # fmt: skip
        panel.set(xlabel=label, ylabel="exact match")
    best = front(next(iter(costs.values())), right)
    cheapest, most = (data.styles[best[place]].name for place in (0, -1))
    also = "and took the fewest tokens" if cheapest == most else f"{cheapest} took the fewest tokens"
    grey = "The grey band is the Pareto front: no" if priced or len(best) > 1 else "No"
    shown = style.picture(
        figure,
        f"{most} was right most often{' ' if cheapest == most else ', '}{also}",
        f"Up and to the left is better. {grey} other architecture both takes fewer tokens and is more often right than "
        f"{' or '.join(repr(data.styles[name].name) for name in best)}, by point estimates. Bars: 95% intervals.",
        sentence((priced and data.dollars) or "no dollars: not all calls have a price"),
        facts=data.facts(),
    )
    for panel, cost in zip(panels, costs.values(), strict=True):
        ends = {name: (cost[name].estimate, right[name].estimate) for name in right}
        style.label_lines(panel, ends, data.styles)
    return shown


def front(cost: Intervals, right: Intervals) -> list[str]:
    """The Pareto front: the architectures that no other beats in both cost and accuracy, the cheapest first."""
    kept: list[str] = []
    for name in sorted(right, key=lambda name: (cost[name].estimate, -right[name].estimate)):
        if not kept or right[name].estimate > right[kept[-1]].estimate:
            kept.append(name)
    return kept


def _draw_cloud(
    axes: Axes, cost: Intervals, share: Intervals, styles: Mapping[str, SeriesStyle], top: float, inches: float
) -> None:
    """A marker with error bars for each architecture: shares, up to `top`, against cost."""
    ends = [value.estimate for value in cost.values()]
    style.logarithmic(axes, "x", min(ends) / 1.6, max(ends) * 2.2, inches)
    axes.set_ylim(-0.03 * top, top)  # a marker at 0 or 1 is whole
    axes.set_yticks([at for at in axes.get_yticks() if 0 <= at <= min(1, top)])
    style.grid(axes)
    for name, y in share.items():
        own, x = styles[name], cost[name]
        axes.errorbar(x.estimate, y.estimate, xerr=arms([x]), yerr=arms([y]), color=own.colour, marker=own.marker,
                      ms=8, mec="white", mew=0.6, lw=1, capsize=2)  # fmt: skip


def reach(data: PlotData, pair: tuple[str, str]) -> Picture:
    """The share of attacked questions in which the attacker's call was made, or his value taken, against tokens."""
    data.check_once()
    attacked = data.only(data.rows[data.rows["new_calls"].notna()])
    if not len(attacked.rows):
        raise NothingToDraw("needs questions with an attacker's text: 'agentdojo?attack=direct', ?inject=call")
    got = positive(attacked.rows, "new_calls") | positive(attacked.rows, "changed_arguments")
    attacked = attacked.only(attacked.rows.assign(reached=got.astype(float)))
    shares = {name: share_of(attacked.of(name), "reached") for name in attacked.architectures}
    spent = {name: mean_of_questions(attacked.of(name), "total_tokens") for name in shares}
    reached = {name: share.estimate for name, share in shares.items()}
    named = style.titled(reached, pair)
    figure, axes = style.sheet(1, 1, style.tall([data.styles[name].wrapped(NAME_WIDTH) for name in shares]))
    _draw_cloud(axes, spent, shares, data.styles, 1.03, inches=3.5)
    axes.set(xlabel="mean tokens per question (log scale)", ylabel="share of attacked questions")
    shown = style.picture(
        figure,
        "An attacker reached "
        + ", ".join(f"{data.styles[name].name} in {reached[name]:.0%} of questions" for name in named),
        "Down and to the left is better. A point is the share of questions in which a call was made that the attacker "
        "asked for, or a planned call took a value of his. Bars: 95% intervals.",
        "The oracle obeys all that it reads, so a point is what the architecture lets an attacker reach."
        if data.oracle
        else "",
        facts=attacked.facts(),
    )
    style.label_lines(axes, {name: (spent[name].estimate, shares[name].estimate) for name in shares}, data.styles)
    return shown


METHODS = ("direct", "cot", "react", "rewoo")
_STYLES = style.series_styles(METHODS)
_MODEL = 36  # characters of a line of its name


@cache
def published() -> dict[str, Any]:
    """The numbers of the paper: `published()["datasets"]["hotpotqa"]["rewoo"]["tokens"]` is 1986.2 (paper.toml)."""
    return tomllib.loads(Path(__file__).with_name("paper.toml").read_text(encoding="utf-8"))


def paper(data: PlotData, pair: tuple[str, str]) -> Picture:
    """Exact match and tokens of direct, cot, react and rewoo: hollow markers for the paper, filled ones for runs."""
    table, model = published()["datasets"], published()["model"]
    formats = {run: manifest.dataset.format for run, manifest in data.manifests.items()}
    format_of_rows = data.rows["run_id"].astype(str).map(formats)
    there = [key for key in table if (format_of_rows == key).any()]
    parts = {key: data.only(data.rows[(format_of_rows == key).to_numpy(dtype=bool)]) for key in there}
    ours = {key: part for key, part in parts.items() if set(part.architectures) & set(METHODS)}
    if not ours:
        wanted = f"{', '.join(METHODS)} on {' or '.join(block['name'] for block in table.values())}"
        has = f"{', '.join(data.architectures)} on {data.dataset}"
        raise NothingToDraw(f"needs run folders of {wanted}, without options; these are of {has}")
    figure, panels = style.sheet(len(ours), 2, 2.2 + 2.3 * len(ours), squeeze=False, sharex="col", sharey=True)
    for (left, right), (key, part) in zip(panels, ours.items(), strict=True):
        part.check_once()
        _draw_block(left, right, table[key], part)
    # The same limits for all data sets, with room for markers at 0 and for numbers to the right of markers.
    lefts, rights = ([axes.dataLim for axes in column] for column in panels.T)
    end = max(85.0, 1.15 * max(box.x1 for box in lefts))
    low, high = min(box.x0 for box in rights), max(box.x1 for box in rights)
    for left, right in panels:
        left.set_xlim(-3, end)
        left.set_xticks(range(0, 101, 20) if end >= 100 else range(0, 81, 20))
        style.logarithmic(right, "x", min(25.0, low / 1.5), max(60_000.0, 6 * high), inches=1.8)
    left, right = panels[-1]
    left.set_xlabel("exact match, %")
    right.set_xlabel("tokens per question")
    own = textwrap.fill(f"this run, {data.model}", _MODEL)
    handles = [
        *panels[0][0].plot([], [], "o", color=GREY, mfc="white", ms=7, ls="", label=f"paper, {model}"),
        *panels[0][0].plot([], [], "o", color=GREY, ms=7, ls="", label=own),
    ]
    style.legend_above(figure, handles=handles)
    asked = " and ".join(sorted({f"{table[key]['questions']:,}" for key in ours}))
    return style.picture(
        figure,
        _title(*(_times(table[key], part) for key, part in ours.items())),
        f"Hollow: {published()['source']}, {model}, n = {asked} each. Filled: this run, with 95% intervals.",
        "An oracle's exact match means nothing and isn't drawn." if data.oracle else "",
        " ".join(_ratios(table[key], part) for key, part in ours.items()),
        facts="\n".join(part.facts() for part in ours.values()),
    )


def _draw_block(left: Axes, right: Axes, block: Mapping[str, Any], part: PlotData) -> None:
    """A data set: a row a method, the paper's hollow marker above this run's filled one, each with its number."""
    for at, method in enumerate(METHODS):
        rows, cell = part.of(method), block[method]
        own: dict[str, Any] = {"marker": _STYLES[method].marker, "color": _STYLES[method].colour, "ms": 7, "zorder": 3}
        tokens = mean_of_questions(rows, "total_tokens") if positive(rows, "total_tokens").any() else None
        found = None if part.oracle or not len(rows) else share_of(rows)
        percent = found and Interval(100 * found.estimate, 100 * found.low, 100 * found.high, found.n)
        for axes, theirs, ours in ((left, cell["exact_match"], percent), (right, cell["tokens"], tokens)):
            axes.plot(theirs, at - 0.14, mfc="white", **own)
            numbers = [(theirs, -0.14, theirs, GREY)]
            if ours:
                axes.plot([theirs, ours.estimate], [at - 0.14, at + 0.14], color=PALE, lw=1, zorder=1)
                axes.errorbar(ours.estimate, at + 0.14, xerr=arms([ours]), capsize=2, elinewidth=1, **own)
                numbers.append((ours.high if np.isfinite(ours.high) else ours.estimate, 0.14, ours.estimate, INK))
            for x, below, value, colour in numbers:
                text = style.count(value) if value >= 100 else f"{value:.1f}"
                axes.annotate(text, (x, at + below), xytext=(7, 0), textcoords="offset points", va="center",
                              fontsize=8, color=colour)  # fmt: skip
    left.set_ylim(len(METHODS) - 0.45, -0.6)
    left.set_yticks(range(len(METHODS)), [_STYLES[method].name for method in METHODS])
    for axes in (left, right):
        style.grid(axes, "x")
        axes.tick_params(axis="y", length=0)
    left.set_title(block["name"], loc="left", weight="bold")


def _times(block: Mapping[str, Any], part: PlotData) -> tuple[float, float | None]:
    """ReAct's tokens over ReWOO's, in the paper and in this run."""
    react, rewoo = (mean_of_questions(part.of(name), "total_tokens").estimate for name in ("react", "rewoo"))
    return block["react"]["tokens"] / block["rewoo"]["tokens"], react / rewoo if min(react, rewoo) > 0 else None


def _title(first: tuple[float, float | None], *others: tuple[float, float | None]) -> str:
    theirs, ours = first
    if others or ours is None:
        return "The paper's Table 2 and this run"
    return f"ReAct took {theirs:.2g} times ReWOO's tokens in the paper, {ours:.2g} times here"


def _ratios(block: Mapping[str, Any], part: PlotData) -> str:
    theirs, ours = _times(block, part)
    text = f"{block['name']}, ReAct / ReWOO tokens: {theirs:.2f}× in the paper"
    return f"{text}, {ours:.2f}× in this run." if ours else f"{text}."
