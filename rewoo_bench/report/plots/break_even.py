"""`break-even`: a map with a row for each number of tool calls, by the price of cached input."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from rewoo_bench.analysis.call_costs import calls_of, priced
from rewoo_bench.analysis.cost_laws import PRICES, BreakEven
from rewoo_bench.analysis.cost_laws import break_even as find_break_even
from rewoo_bench.analysis.prices import SHARED_UNKNOWN, own_models
from rewoo_bench.analysis.stats.paired import A_RARE_EVENT, FEWEST
from rewoo_bench.config.price_sheets import Tariff, by_role, named_tariff
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.data import PlotData
from rewoo_bench.report.plots.style import GREY, INK, Picture
from rewoo_bench.runs.rows import Rows

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
    roles = by_role(tariff, own_models(Rows(sides)), {})
    if len(set(roles.values())) > 1:
        raise NothingToDraw(f"{tariff.model}: the planner or solver has a model of its own, at other prices")
    if not {first, second} <= set(data.architectures):
        raise data.lacks_pair(*pair)
    if not len(data.calls):
        raise NothingToDraw(f"needs what prompts share: {SHARED_UNKNOWN}")
    calls = calls_of(data.calls, Rows(sides))
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
        bar = figure.colorbar(ScalarMappable(norm, colours), ax=axes, fraction=0.05, pad=0.1, aspect=18)
        bar.set_ticks(range(-3, 4), labels=["1/8×", "1/4×", "1/2×", "1×", "2×", "4×", "8×"])
        bar.ax.minorticks_off()
        bar.outline.set_visible(False)
        bar.set_label(label, fontsize=8.5)
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


def tariff_title(tariff: Tariff) -> str:
    """`OpenAI's rule, from 1,024`: the rule's name, and the shortest prefix that it caches."""
    least = tariff.rule and tariff.rule.minimum_prefix_tokens
    return tariff.cache_rule.partition(":")[0] + (f", from {least:,}" if least else "")
