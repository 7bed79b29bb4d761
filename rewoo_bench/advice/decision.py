"""Candidates and their contrasts -> the architecture to use, or how many questions decide it.

1. Only architectures within the limits may be recommended: those whose intervals are at or below them.
2. An architecture that another of them beats (exact McNemar, Holm) isn't the most accurate. Where one alone is left, it
   is recommended.
3. Else it is the cheapest of those that are left, if it is shown not to be worse than any other of them by the margin
   or more: it has to show that against each (an intersection-union test, Berger 1982, Technometrics 24), with Holm's
   adjustment for the number of architectures that try.
4. Else nothing is recommended: a dearer one may be as good as the cheapest and no better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from rewoo_bench.advice.candidates import Candidate
from rewoo_bench.advice.contrasts import Contrasts
from rewoo_bench.advice.terms import ALPHA
from rewoo_bench.stats.power import questions_for_difference, questions_for_margin
from rewoo_bench.stats.tests import holm

Kind = Literal[
    "most accurate",
    "cheapest that isn't worse",
    "only one within the limits",
    "undecided",
    "limits undecided",
    "none within the limits",
    "not measured",
    "oracle",
]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to use, and why."""

    kind: Kind
    recommended: str | None = None
    contenders: tuple[str, ...] = ()
    """Architectures within the limits that no other one within them is shown to beat."""
    not_worse: tuple[tuple[str, float], ...] = ()
    """Architectures within the limits, with Holm's p that they aren't worse than a contender by the margin."""
    open: tuple[str, ...] = ()
    """Architectures that more questions could make the recommended one."""
    near: tuple[str, ...] = ()
    """Those shown to be less than the margin worse than the most accurate; the interval of their cost says cheaper."""
    questions: float | None = None
    """Number of questions that decides between them with power 0.8, if the differences are as measured."""


def decide(candidates: Sequence[Candidate], contrasts: Contrasts, margin: float) -> Decision:
    """The decision by the rules above; `contrasts` are of the candidates within the limits."""
    if sum(each.state != "not measured" for each in candidates) < 2:
        return Decision("not measured")
    within = [each for each in candidates if each.state == "within"]
    maybe = [each for each in candidates if each.state == "may be within"]
    if not within:
        if not maybe:
            return Decision("none within the limits")
        needed = [check.questions for each in maybe for check in each.limits if check.state == "may be within"]
        return Decision("limits undecided", open=_names(maybe), questions=max(needed))
    if len(within) == 1:
        return Decision("only one within the limits", within[0].architecture, _names(within))
    contenders = _unbeaten(within, contrasts)
    if len(contenders) == 1:
        return _most_accurate(within, contenders[0], contrasts)
    return _cheapest(within, contenders, contrasts, margin)


def _unbeaten(within: Sequence[Candidate], contrasts: Contrasts) -> list[Candidate]:
    """Those that no other one beats. All of them, where failed questions make the pairs go round in a circle."""

    def is_beaten(one: Candidate) -> bool:
        against = [contrasts[other.architecture, one.architecture] for other in _others(within, one)]
        return any(contrast.p_holm < ALPHA and contrast.accuracy.estimate > 0 for contrast in against)

    return [one for one in within if not is_beaten(one)] or list(within)


def _most_accurate(within: Sequence[Candidate], best: Candidate, contrasts: Contrasts) -> Decision:
    others = _others(within, best)
    against = [contrasts[one.architecture, best.architecture] for one in others]
    p = holm([each.not_worse_p for each in against])
    shown = dict(zip(_names(others), p, strict=True))
    cheaper = [each.one for each in against if each.cost.high < 1 and not each.cost.rare]
    near = [one for one in others if shown[one.architecture] < ALPHA and one.architecture in cheaper]
    name = best.architecture
    return Decision("most accurate", name, (name,), tuple(shown.items()), near=_names(near))


def _cheapest(
    within: Sequence[Candidate], contenders: Sequence[Candidate], contrasts: Contrasts, margin: float
) -> Decision:
    worst = [
        max(contrasts[one.architecture, other.architecture].not_worse_p for other in _others(contenders, one))
        for one in within
    ]
    shown = dict(zip(_names(within), holm(worst), strict=True))
    names, name = _names(contenders), min(contenders, key=lambda one: one.cost.estimate).architecture
    if shown[name] < ALPHA:
        return Decision("cheapest that isn't worse", name, names, tuple(shown.items()))
    questions = max(_questions(one, other, contrasts, margin) for one, other in combinations(contenders, 2))
    return Decision("undecided", None, names, tuple(shown.items()), names, questions=questions)


def _questions(one: Candidate, other: Candidate, contrasts: Contrasts, margin: float) -> float:
    """Questions that show which of two is more accurate, or that the cheaper one isn't worse by the margin.

    The fewer of the two, if the difference is as measured; each test at the level that Holm's adjustment begins with.
    """
    cheap, dear = sorted((one, other), key=lambda each: each.cost.estimate)
    contrast = contrasts[cheap.architecture, dear.architecture]
    level = ALPHA / (len(contrasts) / 2)
    difference, share = contrast.accuracy.estimate, contrast.discordant_share
    pairs = min(
        questions_for_difference(share, difference, level), questions_for_margin(share, difference, margin, level)
    )
    n = contrast.accuracy.n
    if not n or not math.isfinite(pairs):
        return math.inf
    return max(pairs * n / contrast.pairs, n + 1)


def _others(candidates: Iterable[Candidate], one: Candidate) -> list[Candidate]:
    return [each for each in candidates if each.architecture != one.architecture]


def _names(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    return tuple(each.architecture for each in candidates)
