"""`steps`: input tokens against tool calls, with the two formulas of the ReWOO paper over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from rewoo_bench.cost_law import Law, mean_law
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.pairs import column
from rewoo_bench.plots.measured import Measured, arms, mean
from rewoo_bench.plots.picture import Options, Picture, picture
from rewoo_bench.plots.style import INK, count, drawn, grid, label_lines, legend_above, look, sampled, sheet
from rewoo_bench.stats import Interval

_JITTER = 0.12
_SOME = 5  # questions that an interval of their mean is drawn for


def steps(measured: Measured, options: Options) -> Picture:
    """Points per question, means by number of tool calls, and the formulas with the mean measured terms."""
    measured.check_once()
    measured = measured.only(measured.rows[measured.rows["input_tokens"] > 0])
    names = [name for name in measured.architectures if (measured.of(name)["tool_calls"] > 0).any()]
    if not names or measured.rows["tool_calls"].nunique() < 2:
        raise NothingToDraw(
            "needs questions that took different numbers of tool calls, such as those of "
            "--dataset 'chain?hops=1..10' --max-steps 19"
        )
    figure, axes = sheet()
    grid(axes)
    ends = {name: _measured(axes, measured, name) for name in names}
    most = int(measured.rows["tool_calls"].max())
    laws = {name: law for name in options.pair if name in names and (law := _law(measured, name))}
    for name, law in laws.items():
        _formula(axes, law, ends[name][0], look(name).colour)
    axes.set(xlabel="tool calls of the question", ylabel="input tokens per question", xlim=(-0.4, most + 0.4))
    axes.set_ylim(0, axes.get_ylim()[1])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: count(value))
    label_lines(axes, ends)
    if laws:
        axes.plot([], [], color=INK, ls=(0, (5, 2)), label="formula of Xu et al. 2023 with the mean measured terms")
    axes.plot([], [], color=INK, marker="o", lw=1, label="measured mean")
    legend_above(figure, ncols=2)
    return picture(
        figure,
        _title(laws, ends),
        f"A faint point is {measured.point}. Bars: 95% intervals of means over {_SOME} questions or more.",
        f"Formulas, without a solver's exemplars and an LLM tool's prompts: {_said(laws)}." if laws else "",
        sampled(max(len(measured.of(name)) for name in names)),
        "" if laws else "The formulas need the prompts' parts, which this run's calls.parquet lacks.",
        facts=measured.facts(),
    )


def _measured(axes: Axes, measured: Measured, name: str) -> tuple[float, float]:
    """Points and means of an architecture; returns where its line ends."""
    own, rows = look(name), measured.of(name)
    x, y = column(rows, "tool_calls"), column(rows, "input_tokens")
    chosen = drawn(len(x))
    jitter = np.random.default_rng(0).uniform(-_JITTER, _JITTER, len(chosen))
    axes.scatter(x[chosen] + jitter, y[chosen], s=9, color=own.colour, alpha=0.25, linewidths=0)
    groups = {k: mean(rows[x == k], "input_tokens") for k in sorted(set(x.tolist()))}
    middle, bars = [value.estimate for value in groups.values()], arms([_settled(value) for value in groups.values()])
    axes.errorbar(list(groups), middle, yerr=bars, color=own.colour, marker=own.marker, capsize=2, lw=1)
    last = max(groups)
    return last, groups[last].estimate


def _settled(value: Interval) -> Interval:
    """Without bounds where they are of so few questions that they would only say so."""
    return value if value.n >= _SOME else replace(value, low=value.estimate, high=value.estimate)


def _law(measured: Measured, name: str) -> Law | None:
    return mean_law(measured.calls[measured.calls["architecture"] == name])


def _formula(axes: Axes, law: Law, most: float, colour: str) -> None:
    x = np.linspace(0, most, 60)
    axes.plot(x, [law.input_tokens(float(k)) for k in x], color=colour, ls=(0, (5, 2)), lw=1.8)


def _said(laws: dict[str, Law]) -> str:
    """The formulas with their numbers, of n tool calls."""
    forms = {"ReAct": "{name} (n + 1) × {fixed} + n (n + 1) / 2 × {step}", "ReWOO": "{name} {fixed} + {step} n"}
    return "; ".join(
        forms[law.name].format(name=look(name).name, fixed=count(round(law.fixed)), step=count(round(law.step)))
        for name, law in laws.items()
    )


def _title(laws: dict[str, Law], ends: dict[str, tuple[float, float]]) -> str:
    kinds = {law.name: look(name).name for name, law in laws.items()}
    if len(kinds) == 2:
        return f"A tool call costs {kinds['ReAct']} its whole prompt again, {kinds['ReWOO']} only its evidence"
    return f"Input tokens by number of tool calls: {', '.join(look(name).name for name in ends)}"
