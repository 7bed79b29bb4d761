"""The finding in one sentence: whether a policy beats the better of the two parents.

Always taking the better parent needs no router, so that is what a policy has to beat. It buys accuracy where its exact
match is higher (exact McNemar, Holm over the policies, p below 0.05), and tokens where it takes fewer (the 95%
interval of the ratio is below 1) and a loss of exact match is ruled out: one of more than 2 points, or of more than a
tenth of the parent's own exact match where that is less. The bounds are no policies, and aren't asked. Of many runs
some will show a saving by chance: the sentence is for one.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewoo_bench.routing.outcomes import Outcomes
from rewoo_bench.routing.ways import Against, Way
from rewoo_bench.stats.paired import Interval
from rewoo_bench.stats.tests import holm
from rewoo_bench.text.counts import counted

SIGNIFICANT = 0.05
LARGEST_LOSS, LARGEST_SHARE = 0.02, 0.1  # of exact match, and of the parent's exact match: 2 points of 7 are no detail


def verdict_of(outcomes: Outcomes, ways: Sequence[Way]) -> str:
    """The sentence."""
    better = outcomes.parents[outcomes.better]
    if outcomes.oracle:
        return "An oracle answered: accuracy means nothing here, so these rows can't say what routing buys."
    policies = [way for way in ways if way.kind == "policy"]
    adjusted = holm([_against(way, outcomes).p for way in policies]) if policies else []
    gains = [
        way
        for way, p in zip(policies, adjusted, strict=True)
        if p < SIGNIFICANT and _against(way, outcomes).exact_match.estimate > 0
    ]
    of = f"the better parent, {better!r}"
    if gains:
        best = max(gains, key=lambda way: _against(way, outcomes).exact_match.estimate)
        return f"Routing buys accuracy here: {best.name!r} is right more often than {of}: {_points(best, outcomes)}."
    savings = [way for way in policies if _saves(way, outcomes)]
    if savings:
        best = min(savings, key=lambda way: _tokens(way, outcomes).estimate)
        ratio = _tokens(best, outcomes)
        return (
            f"Routing saves tokens here: {best.name!r} takes {ratio.estimate:.2f} [{ratio.low:.2f}, {ratio.high:.2f}] "
            f"of the tokens of {of}, and a loss of {100 * _largest_loss(outcomes):.1f} points is ruled out: "
            f"{_points(best, outcomes)}."
        )
    shown = "; ".join(f"{way.name}: {_points(way, outcomes)}" for way in policies) or "no policy could be tried"
    return (
        f"Routing buys nothing that these {counted(outcomes.questions, 'question')} show: no policy is right more "
        f"often than {of}, or as often for fewer tokens ({shown})."
    )


def _against(way: Way, outcomes: Outcomes) -> Against:
    return way.against[outcomes.better]


def _tokens(way: Way, outcomes: Outcomes) -> Interval:
    tokens = _against(way, outcomes).total_tokens
    return tokens or Interval(float("inf"), float("inf"), float("inf"), 0)


def _saves(way: Way, outcomes: Outcomes) -> bool:
    return bool(_tokens(way, outcomes).high < 1 and _against(way, outcomes).exact_match.low > -_largest_loss(outcomes))


def _largest_loss(outcomes: Outcomes) -> float:
    return min(LARGEST_LOSS, LARGEST_SHARE * float(outcomes.measures["exact_match"][outcomes.better].mean()))


def _points(way: Way, outcomes: Outcomes) -> str:
    interval = _against(way, outcomes).exact_match
    return f"EM {interval.estimate:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}], n = {interval.n}"
