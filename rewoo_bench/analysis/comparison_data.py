"""A comparison as data: one table with one row per estimate, or nested and JSON-ready.

dataset   system  against  measure       kind   estimate  low   high  n   p      p_holm  …
hotpotqa  rewoo            total_tokens  mean   1431.9                50
hotpotqa  react   rewoo    total_tokens  ratio  2.658     2.21  4.39  50  0.000  0.000   …
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rewoo_bench.analysis.pairs import Effect, Pair
from rewoo_bench.analysis.summary import Summary
from rewoo_bench.analysis.verdict import Pricing, verdicts

if TYPE_CHECKING:
    import pandas as pd

FRAME_COLUMNS = (
    *("dataset", "system", "against", "measure", "kind", "estimate", "low", "high", "n"),
    *("p", "p_holm", "only_system", "only_against", "detectable", "meaningless", "exploratory"),
)
_SCORES = ("exact_match", "f1", "judged_correct")
_PER_SOLVED = ("tokens_per_solved", "usd_per_solved")
_COUNTS = ("total", "answered", "failed")
_MEANS = (
    *("llm_calls", "tool_calls", "input_tokens", "cached_input_tokens", "output_tokens", "total_tokens"),
    *("loop_share", "loop_token_share", "cost_usd", "latency_p50_s", "latency_p95_s"),
)


@dataclass(frozen=True, slots=True)
class System:
    """An architecture with a model, in a run, on a data set; `label` names what differs from the others."""

    label: str
    run_id: str
    questions: int
    """Failed ones included."""
    summary: Summary
    means: Mapping[str, float | None]

    @property
    def oracle(self) -> bool:
        """Whether its accuracy means nothing, and it has no latency."""
        return self.summary.oracle


@dataclass(frozen=True, slots=True)
class ComparisonData:
    """The systems, and pairs of them. `warnings` apply to every estimate."""

    systems: tuple[System, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pricing: Pricing | None = None
    """The prices of the dollars in `verdicts`; None for the run's own, unnamed."""

    @property
    def verdicts(self) -> list[str]:
        """What each pair comes to, in a sentence."""
        return verdicts(self.pairs, self.pricing)

    @property
    def tests(self) -> int:
        """Number of p values that Holm's adjustment is for: those of exact match, total tokens and cost."""
        return sum(not pair.is_exploratory(effect) for pair in self.pairs for effect in pair.figures)

    def to_frame(self) -> pd.DataFrame:
        """One row per estimate: dataset, system, against, measure, kind, estimate, low, high, n, p, p_holm, …

        `against` is empty where there is no pair. `meaningless` marks an oracle's accuracy, `exploratory` a test
        outside the family that Holm's adjustment is for.
        """
        import pandas as pd

        rows = [row for system in self.systems for row in _of_system(system)]
        rows += [row for pair in self.pairs for effect in pair.figures for row in _of_effect(pair, effect)]
        rows += [row for pair in self.pairs for row in _where_answered(pair)]
        made = pd.DataFrame([_known(row) for row in rows], columns=list(FRAME_COLUMNS))
        return made.astype(dict.fromkeys(("n", "only_system", "only_against"), "Int64"))

    def as_dict(self) -> dict[str, Any]:
        """Systems, pairs, warnings and notes, JSON-ready; what isn't known, or is without bound, is None."""
        nested: dict[str, Any] = _known(
            {
                "systems": [_system(system) for system in self.systems],
                "pairs": [asdict(pair) for pair in self.pairs],
                "verdicts": self.verdicts,
                "tests": self.tests,
                "warnings": list(self.warnings),
                "notes": list(self.notes),
            }
        )
        return nested


def _system(system: System) -> dict[str, Any]:
    named = {"label": system.label, "run_id": system.run_id, "questions": system.questions, "oracle": system.oracle}
    return {**named, **system.summary.as_dict(), **system.means}


def _of_system(system: System) -> Iterator[dict[str, Any]]:
    summary = system.summary
    key = {"dataset": summary.dataset, "system": system.label}
    for measure in _SCORES:
        value = getattr(summary, measure)
        if value.n:
            bounds = {"estimate": value.mean, "low": value.low, "high": value.high, "n": value.n}
            yield {**key, "measure": measure, "kind": "mean", **bounds, "meaningless": system.oracle}
    for measure in _PER_SOLVED:
        value = getattr(summary, measure)
        if value.n and not system.oracle:
            bounds = {"estimate": value.mean, "low": value.low, "high": value.high, "n": value.n}
            yield {**key, "measure": measure, "kind": "per solved", **bounds}
    for measure in _COUNTS:
        yield {**key, "measure": measure, "kind": "count", "estimate": getattr(summary, measure)}
    means = {**{name: getattr(summary, name) for name in _MEANS}, **system.means}
    for measure, value in means.items():
        kind = "quantile" if "_p50" in measure or "_p95" in measure else "mean"
        yield {**key, "measure": measure, "kind": kind, "estimate": value, "n": summary.exact_match.n}


def _where_answered(pair: Pair) -> Iterator[dict[str, Any]]:
    if pair.both_answered is not None:
        key = {"dataset": pair.dataset, "system": pair.b, "against": pair.a, "measure": "total_tokens"}
        yield {**key, "kind": "ratio where both answered", **_bounds(pair.both_answered)}


def _of_effect(pair: Pair, effect: Effect) -> Iterator[dict[str, Any]]:
    key = {"dataset": pair.dataset, "system": pair.b, "against": pair.a, "measure": effect.measure}
    tested = {"p": effect.p, "p_holm": effect.p_holm, "detectable": effect.detectable}
    if effect.discordant:
        tested |= {"only_system": effect.discordant.only_b, "only_against": effect.discordant.only_a}
    meaningless = pair.oracle and effect.kind == "difference"
    marks = {"meaningless": meaningless, "exploratory": pair.is_exploratory(effect)}
    yield {**key, "kind": effect.kind, **_bounds(effect.interval), **tested, **marks}
    if effect.geometric:
        yield {**key, "kind": "geometric mean ratio", **_bounds(effect.geometric)}


def _bounds(interval: Any) -> dict[str, Any]:
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high, "n": interval.n}


def _known(value: Any) -> Any:
    """The same with None for every number that isn't finite."""
    if isinstance(value, dict):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_known(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
