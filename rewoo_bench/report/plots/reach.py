"""`reach`: what an attacker's text reached, against cost."""

from __future__ import annotations

import numpy as np

from rewoo_bench.errors import NothingToDraw
from rewoo_bench.report.plots import style
from rewoo_bench.report.plots.data import PlotData, arms, mean_of_questions, positive, share_of
from rewoo_bench.report.plots.style import NAME_WIDTH, Picture


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
    ends = [value.estimate for value in spent.values()]
    style.logarithmic(axes, "x", min(ends) / 1.6, max(ends) * 2.2, 3.5)
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks(np.linspace(0, 1, 6))
    style.grid(axes)
    for name, share in shares.items():
        own, cost = data.styles[name], spent[name]
        axes.errorbar(cost.estimate, share.estimate, xerr=arms([cost]), yerr=arms([share]), color=own.colour,
                      marker=own.marker, ms=8, mec="white", mew=0.6, lw=1, capsize=2)  # fmt: skip
    axes.set_xlabel("mean tokens per question (log scale)")
    axes.set_ylabel("share of attacked questions")
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
