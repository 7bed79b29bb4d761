"""`steps`: input tokens against the look-ups that a question needs, with the two laws of the ReWOO paper over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from rewoo_bench.analysis.pairs import column
from rewoo_bench.analysis.scaling import FITTED_UP_TO, Prediction, cut_off, look_ups, predict, terms
from rewoo_bench.errors import NothingToDraw
from rewoo_bench.plots.data import Measured, arms, mean, positive
from rewoo_bench.plots.labels import WIDTH, label_lines
from rewoo_bench.plots.picture import Options, Picture, picture
from rewoo_bench.plots.style import GREY, INK, count, drawn, grid, legend_above, sampled, sheet, tall
from rewoo_bench.stats.paired import Interval

_JITTER = 0.12
_DOTTED, _DASHED = (0, (1, 1.2)), (0, (5, 2))
_SOME = 5  # questions that an interval of their mean is drawn for
_NEAR = 0.25  # a law that is off by more is told, and not drawn


def steps(measured: Measured, options: Options) -> Picture:
    """Points per question, means by number of look-ups, and the laws fitted on the short questions."""
    measured.check_once()
    rejected = measured.rows[(measured.rows["stop_reason"] == "invalid_plan").to_numpy(bool)]
    rows = measured.rows.drop(rejected.index)
    rows = rows.assign(look_ups=look_ups(rows))[positive(rows, "input_tokens")]
    measured = measured.only(rows.dropna(subset=["look_ups"]))
    names = _names(measured, len(rows), len(rejected))
    figure, axes = sheet(height=tall(measured.look(name).wrapped(WIDTH) for name in names))
    grid(axes)
    ends = {name: _measured(axes, measured, name) for name in names}
    found = {name: law for name in options.pair if name in names and (law := predict(measured.of(name)))}
    near = {name: law for name, law in found.items() if not law.error > _NEAR}
    for name, law in near.items():
        own = measured.of(name)["look_ups"]
        _curve(axes, law, float(own.min()), float(own.max()), measured.look(name).colour)
    axes.set(xlabel="look-ups that the question needs", ylabel="input tokens per question")
    needed = measured.rows["look_ups"]
    axes.set_xlim(float(needed.min()) - 0.4, float(needed.max()) + 0.4)
    axes.set_ylim(0, axes.get_ylim()[1])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: count(value))
    axes.plot([], [], color=INK, marker="o", lw=1, label="measured mean")
    if near:
        _tell_parts(axes, near)
    legend_above(figure)
    shown = picture(
        figure,
        _title(measured, near),
        f"A faint point is {measured.point}. Bars: 95% intervals of means over {_SOME} questions or more.",
        *(_said(measured, name, law) for name, law in found.items()),
        _counted(measured, "Rejected plans, left out", rejected),
        _counted(measured, "In the means but in no fit, since a limit cut them off", rows[cut_off(rows)]),
        sampled(max(len(measured.of(name)) for name in names)),
        facts=measured.facts(),
    )
    label_lines(axes, ends, measured.looks)
    return shown


def _names(measured: Measured, sound: int, rejected: int) -> list[str]:
    """The architectures that use tools. Raises `NothingToDraw`."""
    if not sound and rejected:
        raise NothingToDraw(f"needs questions that a plan was found for; here all {rejected:,} plans were rejected")
    if not len(measured.rows):
        raise NothingToDraw("needs questions whose look-ups are known: hops, which this data set or an old run lacks")
    names = [name for name in measured.architectures if positive(measured.of(name), "tool_calls").any()]
    if not names or measured.rows["look_ups"].nunique() < 2:
        raise NothingToDraw(
            "needs tool calls on questions that need different numbers of look-ups, such as those of "
            "--dataset 'chain?hops=1..8' --max-steps 15"
        )
    return names


def _measured(axes: Axes, measured: Measured, name: str) -> tuple[float, float]:
    """Points and means of an architecture; returns where its line ends."""
    own, rows = measured.look(name), measured.of(name)
    x, y = column(rows, "look_ups"), column(rows, "input_tokens")
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


def _curve(axes: Axes, found: Prediction, least: float, most: float, colour: str) -> None:
    """Dotted where the law was fitted, dashed where it predicts."""
    end = min(most, FITTED_UP_TO)
    for first, last, dashes in ((least, end, _DOTTED), (end, most, _DASHED)):
        if first < last:
            x = np.linspace(first, last, 60)
            axes.plot(x, found.law.input_tokens(x), color=colour, ls=dashes, lw=1.8)


def _tell_parts(axes: Axes, found: dict[str, Prediction]) -> None:
    """The legend's lines of the laws, and where the questions that they were fitted on end."""
    axes.plot([], [], color=INK, ls=_DOTTED, lw=1.8, label=f"law of Xu et al. 2023, fitted up to {FITTED_UP_TO}")
    if any(law.held_out for law in found.values()):
        axes.plot([], [], color=INK, ls=_DASHED, lw=1.8, label="the law's prediction")
        axes.axvline(FITTED_UP_TO + 0.5, color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=0)


def _said(measured: Measured, name: str, found: Prediction) -> str:
    """A law with its numbers, of h look-ups, and how far off it was on the questions that it wasn't fitted on."""
    law = found.law
    fixed, step = count(round(law.fixed)), count(round(law.step))
    form = f"(h + 1) × {fixed} + h (h + 1) / 2 × {step}" if law.name == "ReAct" else _line(law.fixed, law.step)
    off = f"off by {found.error:.1%} on average, {found.largest:.1%} at most" if found.held_out else "not tested"
    text = f"{measured.look(name).name}: {form}{_terms(measured, name)}; {found.held_out} questions held out, {off}."
    return f"{text} Too far off to be drawn." if found.error > _NEAR else text


def _terms(measured: Measured, name: str) -> str:
    """Those terms that the paper's formula of ReWOO doesn't have."""
    found = terms(measured.calls[measured.calls["architecture"] == name], measured.of(name))
    own = {"the solver's exemplars": found.get("solver's exemplars"), "the LLM tool": found.get("LLM tool's prompts")}
    said = [f"{term} {_line(law.fixed, law.step)}" for term, law in own.items() if law]
    return f", of which {' and '.join(said)}" if said else ""


def _line(fixed: float, step: float) -> str:
    """`194`, `900 + 217 h`, `-105 + 107 h`."""
    sign = "+" if step > 0 else "-"
    return count(round(fixed)) + (f" {sign} {count(abs(round(step)))} h" if abs(step) >= 0.5 else "")


def _counted(measured: Measured, said: str, rows: pd.DataFrame) -> str:
    counts = measured.counts(rows)
    return f"{said}: {counts}." if counts else ""


def _title(measured: Measured, near: dict[str, Prediction]) -> str:
    kinds = {law.law.name: measured.look(name).name for name, law in near.items() if law.held_out and law.law.step > 0}
    if len(kinds) == 2:
        return f"A look-up costs {kinds['ReAct']} its whole prompt again, {kinds['ReWOO']} only its evidence"
    return "Input tokens by the look-ups that a question needs"
