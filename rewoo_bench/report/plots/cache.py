"""`cache` and `cache-map`: which of two architectures costs less, by the length of a prefix that all prompts share.

`cache` has a line for each price that ships, `cache-map` a panel for each, with the look-ups that a question needs
upwards. What is varied is told in analysis/context_prices.py.

`break-even` is a map with a row for each number of tool calls, by the price of cached input.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from rewoo_bench.analysis.call_costs import calls_of, priced
from rewoo_bench.analysis.context_prices import ContextPrices, context_prices
from rewoo_bench.analysis.cost_laws import PRICES, BreakEven, look_ups
from rewoo_bench.analysis.cost_laws import break_even as find_break_even
from rewoo_bench.analysis.pairs import bounds
from rewoo_bench.analysis.prices import SHARED_UNKNOWN, SHOWN, own_models
from rewoo_bench.analysis.stats.bootstrap import SMALL
from rewoo_bench.analysis.stats.paired import A_RARE_EVENT, FEWEST, ratio_of_means
from rewoo_bench.config.price_sheets import RULES, Tariff, by_role, named_tariff
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.data import PlotData
from rewoo_bench.report.plots.style import GREY, INK, Picture, SeriesStyle
from rewoo_bench.runs.rows import read_columns

SIDES = LinearSegmentedColormap.from_list("cheaper", ["#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b"])
_PRICE_STEP = PRICES[1] - PRICES[0]
_HEIGHT = 0.26  # inches of a row
_HALF = 0.46  # of a row
_FEWEST = 5  # rows that the sheet has room for at least
_LINE = 30  # characters of a text beside them
_STRONGEST = 8.0  # times: stronger ratios have the same colour
_OF_FORMULA: dict[str, Any] = {"color": INK, "ls": (0, (4, 2)), "lw": 1.3, "marker": "o", "ms": 4, "mfc": "white"}
_OF_SHEET: dict[str, Any] = {"color": INK, "ls": (0, (1, 1.5)), "lw": 1}


def break_even(data: PlotData, pair: tuple[str, str]) -> Picture:
    """Which of two architectures costs less at `data.price`, by the price of cached input and the tool calls."""
    data.check_once()
    first, second = pair[::-1]
    tariff, sides = named_tariff(data.price), data.rows[data.rows["architecture"].isin(pair)]
    if not tariff.input:
        raise NothingToDraw(f"needs a price of input, and {tariff.model} has none")
    roles = by_role(tariff, own_models(read_columns(sides, ["model", "planner_model", "solver_model"])), {})
    if len(set(roles.values())) > 1:
        raise NothingToDraw(f"{tariff.model}: the planner or solver has a model of its own, at other prices")
    if not {first, second} <= set(data.architectures):
        raise data.lacks_pair(*pair)
    if not len(data.calls):
        raise NothingToDraw(f"needs what prompts share: {SHARED_UNKNOWN}")
    calls = calls_of(data.calls, sides)
    costs, sizes = priced(calls, roles), calls.columns
    if np.isnan(costs.usd).any():
        raise NothingToDraw(f"needs what prompts share: {SHARED_UNKNOWN}")
    found = find_break_even(
        sides.assign(
            input_tokens=calls.of_rows(sizes["input_tokens"] + sizes["lost_input_tokens"]),
            cached_input_tokens=calls.of_rows(costs.cached),
            paid=calls.of_rows(costs.usd - costs.cached * tariff.cache_read) / tariff.input,
        ),
        (first, second),
    )
    price = tariff.cache_read / tariff.input if tariff.rule else None
    return break_even_map(found, price=price, priced=tariff.model, rule=tariff.cache_rule, facts=data.facts())


def break_even_map(found: BreakEven, *, price: float | None, priced: str, rule: str, facts: str) -> Picture:
    """The map. `price` is that of the sheet's cached input, relative to input; `priced` names the sheet's model, `rule`
    that of its cache."""
    with style.styled():
        first, second = (style.series_styles(found.pair)[name].name for name in found.pair)
        figure, axes = style.sheet(height=2.4 + _HEIGHT * max(_FEWEST, len(found.rows)))
        norm = TwoSlopeNorm(0.0, -math.log2(_STRONGEST), math.log2(_STRONGEST))
        second_is_blue = "rewoo" not in found.pair or found.pair[1] == "rewoo"
        colours = SIDES if second_is_blue else SIDES.reversed()
        _draw_rows(axes, found, norm, colours, second)
        handles: list[Line2D | Patch] = []
        measured = [(row.price, place) for place, row in enumerate(found.rows) if not math.isnan(row.price)]
        for at, place in measured:
            axes.plot([at] * 2, [place - _HALF, place + _HALF], color=INK, lw=2.6, solid_capstyle="butt")
        if measured:
            handles.append(Line2D([], [], color=INK, lw=2.6, label="break-even, measured"))
        law = found.predicted
        predicted = [(law.price(row.tool_calls), place) for place, row in enumerate(found.rows)] if law else []
        predicted = [point for point in predicted if not math.isnan(point[0])]
        if predicted:
            axes.plot(*zip(*predicted, strict=True), **_OF_FORMULA)
            handles.append(Line2D([], [], label="break-even by the formula of Xu et al. 2023", **_OF_FORMULA))
        if price is not None:
            axes.axvline(price, **_OF_SHEET)
            handles.append(Line2D([], [], label=f"{priced}: {price:.3g}", **_OF_SHEET))
        handles.append(Patch(facecolor="white", edgecolor=GREY, hatch="////", linewidth=0.5, label="uncertain"))
        lines = f"{second} / {first}", f"(blue: {second if second_is_blue else first} is cheaper)"
        label = "\n".join(textwrap.fill(line, _LINE) for line in lines)
        times = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8]
        _draw_scale(figure, axes, ScalarMappable(norm, colours), times, label, pad=0.1, aspect=18)
        style.legend_above(figure, handles=handles)
        left_out = f"Left out: {found.left_out:,} questions without tool calls of {second} or that failed."
        return style.picture(
            figure,
            _title(found, first, second),
            f"Colour: dollars of {second} per dollar of {first} on the same questions, with {priced}'s prices of output"
            f" and of writing to the cache, and the cached share under {rule}.",
            f"Hatched: the 95% interval of the ratio holds 1, or {A_RARE_EVENT} (under {FEWEST} questions, or few that "
            "make the spread).",
            left_out if found.left_out else "",
            "The formula's terms, and a straight line for the input that isn't cached, are fitted on these questions."
            if predicted
            else "",
            facts=facts,
        )


def _draw_rows(axes: Axes, found: BreakEven, norm: TwoSlopeNorm, colours: Colormap, second: str) -> None:
    """A row of cells for each number of tool calls, hatched where a ratio is uncertain."""
    for position, row in enumerate(found.rows):
        for place, (price, ratio) in enumerate(zip(PRICES, row.ratios, strict=True)):
            left, right = max(0.0, price - _PRICE_STEP / 2), min(1.0, price + _PRICE_STEP / 2)
            colour = colours(norm(float(np.clip(math.log2(ratio.estimate), norm.vmin, norm.vmax))))
            cell: dict[str, Any] = {"xy": (left, position - _HALF), "width": right - left, "height": 2 * _HALF}
            axes.add_patch(Rectangle(**cell, linewidth=0, facecolor=colour))
            if not row.is_sure(place):
                axes.add_patch(Rectangle(**cell, linewidth=0, facecolor="none", edgecolor=GREY, hatch="////"))
        axes.annotate(f"n = {row.n:,}", (1, position), xytext=(5, 0), textcoords="offset points", fontsize=8,
                      va="center", color=GREY)  # fmt: skip
    axes.set(xlim=(0, 1), ylim=(-0.6, len(found.rows) - 0.4))
    axes.set(xlabel="price of cached input / price of input", ylabel=textwrap.fill(f"tool calls of {second}", _LINE))
    axes.set_xticks([0, 0.1, 0.25, 0.5, 0.75, 1])
    axes.set_yticks(range(len(found.rows)), [str(row.tool_calls) for row in found.rows])
    axes.tick_params(length=2.5, color=GREY)


def _title(found: BreakEven, first: str, second: str) -> str:
    is_second_cheaper = [row.ratios[0].estimate < 1 for row in found.rows]  # where cached input is free
    crossing = [row for row in found.rows if not math.isnan(row.price)]
    if not crossing:
        if len(set(is_second_cheaper)) > 1:
            return f"{second} against {first}"
        return f"{second if is_second_cheaper[0] else first} is cheaper at every price of cached input"
    low, high = min(row.price for row in crossing), max(row.price for row in crossing)
    at = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
    second_first = crossing[0].ratios[0].estimate < 1
    said = f"{second if second_first else first} is cheaper while cached input costs less than {at} of input"
    n = sum(row.n for row in found.rows)
    for price, always in (("every", second_first), ("no", not second_first)):
        rows = zip(found.rows, is_second_cheaper, strict=True)
        others = sum(row.n for row, cheaper in rows if math.isnan(row.price) and cheaper == always)
        said += f"; at {price} price for {others:,} of {n:,} questions" if others else ""
    return said


def _draw_scale(
    figure: Figure, axes: Any, colours: ScalarMappable, times: Sequence[float], label: str, **place: Any
) -> None:
    """The bar that says which colour is which ratio."""
    bar = figure.colorbar(colours, ax=axes, fraction=0.05, **place)
    names = [f"{each:g}×" if each >= 1 else f"1/{1 / each:g}×" for each in times]
    bar.set_ticks([math.log2(each) for each in times], labels=names)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=8.5)


LONGEST, MAP_LONGEST = 8192, 4096
EQUAL = 0.05
"""Ratios as near to 1 as this count as equal."""
_NEARLY_ALL = 0.9  # of the map's cells
_CONTEXT_STEP = 32
_CELL = 128  # tokens of a cell of the map, over which dollars are averaged: what blocks round away depends on the place
_STRONGEST_SAVING = 4.0  # times: stronger ratios have the same colour
_VARIED = (
    "Varied: tokens at the beginning of every prompt of both, the LLM tool's too, the same in all of them and sent "
    "before; calls and replies stay as they were."
)
_COLOURS = ("#7F7F7F", "#D55E00", "#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#E69F00", "#000000")


def cache(data: PlotData, pair: tuple[str, str]) -> Picture:
    """The ratio of dollars against the tokens of a context that all prompts share, a line for each price."""
    contexts = np.arange(0, LONGEST + 1, _CONTEXT_STEP)
    found = _found(data, pair, contexts)
    lines = {price: found.ratios(price) for price in RULES}
    first, second = (data.styles[name].name for name in pair)
    figure, axes = style.sheet()
    styles = {}
    for (price, ratios), colour in zip(lines.items(), _COLOURS, strict=True):
        styles[price] = SeriesStyle(tariff_title(named_tariff(price)), colour, "")
        axes.plot(contexts, ratios, color=colour, lw=1.5)
    values = np.concatenate(list(lines.values()))
    style.logarithmic(axes, "y", min(0.8, values.min() / 1.15), max(1.25, values.max() * 1.15), inches=2.5)
    axes.set_xlim(0, LONGEST)
    axes.set_xticks(range(0, LONGEST + 1, 1024), [f"{each:,}" for each in range(0, LONGEST + 1, 1024)])
    axes.axhline(1, color=INK, lw=0.9, ls=(0, (4, 2)))
    style.grid(axes)
    axes.set_xlabel("tokens of context before every prompt")
    axes.set_ylabel(f"dollars, {first} / {second} (log scale)")
    crossed = [price for price, ratios in lines.items() if ratios.min() < 1 < ratios.max()]
    n = len(found.rows)
    if n < SMALL:
        doubt = f"n\xa0=\xa0{n:,}: too few for an interval"
        without = ", ".join(f"{SHOWN[price]} {lines[price][0]:.2f}" for price in SHOWN)
    else:
        both = 0  # prices with the intervals of the line's lowest and of its highest point on two sides of 1
        for price in crossed:
            ends = (lines[price].argmin(), lines[price].argmax())
            low, high = (ratio_of_means(*found.usd[price][place][::-1]) for place in ends)
            both += low.high < 1 < high.low
        doubt = f"n\xa0=\xa0{n:,}; 95% intervals show it under {both or 'none'} of the prices"
        intervals = (ratio_of_means(*found.usd[price][0][::-1]) for price in SHOWN)
        texts = (f"{name} {bounds(each, 1.0)}" for name, each in zip(SHOWN.values(), intervals, strict=True))
        without = f"{', '.join(texts)} [95% intervals]"
    shown = style.picture(
        figure,
        f"Under {len(crossed) or 'none'} of {len(lines)} prices the length of a shared prefix decides which is cheaper "
        f"({doubt})",
        f"Above 1 {second} is cheaper.",
        _VARIED,
        "A line has a step where the prefix of some prompts gets as long as the rule's minimum, and teeth where tokens "
        "are cached in whole blocks.",
        f"Without a context: {without}.",
        "Each line has its own model's prices: lines compare two architectures, not providers.",
        facts=data.facts(n=n),
    )
    style.label_lines(axes, {price: (LONGEST, float(ratios[-1])) for price, ratios in lines.items()}, styles)
    return shown


def cache_map(data: PlotData, pair: tuple[str, str]) -> Picture:
    """Look-ups against the tokens of a shared context, coloured by the ratio of dollars, a panel for each price."""
    table = map_table(data, pair)
    needed = sorted(table["look_ups"].unique())
    if len(needed) < 2:
        raise NothingToDraw(
            "needs questions that need different numbers of look-ups, such as those of "
            "--dataset 'chain?hops=1..12' --max-steps 32"
        )
    first, second = (data.styles[name].name for name in pair)
    figure, panels = style.sheet(2, 4, 5.0, sharex=True, sharey=True)
    norm = TwoSlopeNorm(0.0, -math.log2(_STRONGEST_SAVING), math.log2(_STRONGEST_SAVING))
    second_is_blue = "rewoo" not in pair or pair[1] == "rewoo"
    colours = SIDES.reversed() if second_is_blue else SIDES
    for axes, price in zip(panels.flat, RULES, strict=True):
        of_price = table[table["price"] == price].pivot_table(index="look_ups", columns="context", values="ratio")
        x, y = of_price.columns.to_numpy(float) + _CELL / 2, of_price.index.to_numpy(float)
        powers = np.log2(of_price.to_numpy(float))
        axes.pcolormesh(x, y, powers, cmap=colours, norm=norm, shading="nearest", rasterized=True)
        if powers.min() < 0 < powers.max():
            axes.contour(x, y, powers, levels=[0.0], colors=INK, linewidths=1.2)
        name = tariff_title(named_tariff(price)).replace("from ", "from\xa0")
        axes.set_title(textwrap.fill(name, 20), fontsize=8.5)
        axes.set_xticks(range(0, MAP_LONGEST + 1, 1024), ["0", "", "2,048", "", "4,096"])
        axes.set_yticks([each for each in (1, 3, 6, 9, 12) if y.min() <= each <= y.max()])
        axes.tick_params(length=2.5, color=GREY, labelsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("tokens of context")
    for axes in panels[:, 0]:
        axes.set_ylabel("look-ups needed")
    marks = [1 / 4, 1 / 2, 1, 2, 4]
    label = f"dollars, {first} / {second}"
    _draw_scale(figure, panels, ScalarMappable(norm, colours), marks, label, pad=0.02, aspect=30)
    low, high = (second, first) if second_is_blue else (first, second)
    n = table.groupby("look_ups")["n"].first()
    of_each = f"{n.min():,}" if n.min() == n.max() else f"{n.min():,} to {n.max():,}"
    cheaper, dearer = (
        sum(side(table.loc[table["price"] == price, "ratio"]) == each for price in RULES) for each in (1, -1)
    )
    return style.picture(
        figure,
        f"{second} is cheaper under {cheaper or 'none'} of {len(RULES)} prices, dearer under {dearer or 'none'}; "
        f"else it depends (n\xa0=\xa0{of_each} in a row, without intervals)",
        f"Cheaper, dearer: by over {EQUAL:.0%} in {_NEARLY_ALL:.0%} of a price's cells or more, and in none the other "
        "way round. Other look-ups or contexts would give other counts.",
        f"Blue: {low} is cheaper than {high}; red: dearer; on the line both cost the same.",
        _VARIED,
        f"A cell is the mean over {_CELL} tokens of context and {of_each} questions.",
        "An oracle writes perfect plans and turns; a model's detours move the border." if data.oracle else "",
        facts=data.facts(n=int(n.sum())),
    )


def map_table(data: PlotData, pair: tuple[str, str]) -> pd.DataFrame:
    """The cells of the map: price, look-ups, tokens of context (from here on `_CELL`), questions, ratio of dollars."""
    contexts = np.arange(0, MAP_LONGEST, _CONTEXT_STEP)
    found = _found(data, pair, contexts)
    needed = look_ups(found.rows).to_numpy(float)
    counts = sorted(set(needed[~np.isnan(needed)].tolist()))
    if not counts:
        raise NothingToDraw("needs questions with a known number of look-ups: the column hops")
    parts = [
        pd.DataFrame({"price": price, "look_ups": int(steps), "context": contexts[:: _CELL // _CONTEXT_STEP]}).assign(
            n=int((needed == steps).sum()), ratio=found.ratios(price, needed == steps, _CELL // _CONTEXT_STEP)
        )
        for price in RULES
        for steps in counts
    ]
    return pd.concat(parts, ignore_index=True)


def _found(data: PlotData, pair: tuple[str, str], contexts: np.ndarray) -> ContextPrices:
    data.check_once()
    lacking = NothingToDraw(f"needs what prompts share: {SHARED_UNKNOWN}")
    if not len(data.calls):
        raise lacking
    found = context_prices(data.rows, data.calls, pair, contexts.tolist())
    if pair[0] == pair[1] or not len(found.rows):
        raise data.lacks_pair(*pair)
    if any(np.isnan(usd).any() or not usd.all() for usd in found.usd.values()):
        raise lacking
    return found


def side(ratios: pd.Series) -> int:
    """1 where the second is the cheaper one in nearly all cells of a price and nowhere the dearer one, -1, or 0."""
    cheaper, dearer = ratios > 1 + EQUAL, ratios < 1 - EQUAL
    for this, other, sign in ((cheaper, dearer, 1), (dearer, cheaper, -1)):
        if this.mean() >= _NEARLY_ALL and not other.any():
            return sign
    return 0


def tariff_title(tariff: Tariff) -> str:
    """`OpenAI's rule, from 1,024`: the rule's name, and the shortest prefix that it caches."""
    least = tariff.rule and tariff.rule.minimum_prefix_tokens
    return tariff.cache_rule.partition(":")[0] + (f", from {least:,}" if least else "")
