"""How an architecture's counts changed against the baseline, question by question, and why they grew.

growth.changes["total_tokens"]      # CountChange(before=1283.0, now=1306.0): means of a question
growth.cause()                      # "the planner's tokens grew most, by 23.0 a question: a longer prompt …"
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewoo_bench.gate.baseline import COUNTS, EVIDENCE, METRICS, ROLES
from rewoo_bench.gate.verdict import GrowthDetail

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class CountChange:
    """Means of a question, before and now."""

    before: float
    now: float

    @property
    def delta(self) -> float:
        return self.now - self.before

    @property
    def share(self) -> float:
        """Growth as a share: 0.02 is 2% more."""
        if self.before == 0:
            return 0.0 if self.now == 0 else float("inf")
        return self.now / self.before - 1


@dataclass(frozen=True, slots=True)
class Growth:
    """The means of every count, and the questions that grew most."""

    n: int
    """Questions compared."""
    rows: int
    """Questions times trials compared."""
    failed: int
    """Rows left out because the infrastructure failed one of the pair."""
    changes: dict[str, CountChange]
    grown: tuple[GrowthDetail, ...]

    def metrics(self) -> Iterator[tuple[str, CountChange]]:
        """The counts that a gate checks, where both sides have them."""
        yield from ((name, self.changes[name]) for name in METRICS if name in self.changes)

    def delta(self, name: str) -> float:
        return self.changes[name].delta if name in self.changes else 0.0

    def cause(self) -> str | None:
        """Why the tokens grew, in words; None where they didn't."""
        if self.delta("total_tokens") <= 0:
            return None
        role = max(ROLES, key=lambda role: self.delta(ROLES[role]))
        most = f"the {role}'s tokens grew most, by {self.delta(ROLES[role]):,.1f} a question"
        reasons = [*self._calls(), *self._evidence()] or self._lengths()
        return f"{most}: {', '.join(reasons)}" if reasons else most

    def _lengths(self) -> list[str]:
        """Prompts or answers, whichever grew more."""
        parts = {"input": "longer prompts", "output": "longer answers"}
        part = max(parts, key=lambda part: self.delta(f"{part}_tokens"))
        delta = self.delta(f"{part}_tokens")
        return [f"{parts[part]} (+{delta:,.1f} {part} tokens)"] if delta > 0 else []

    def _calls(self) -> list[str]:
        """More replans, or else more model calls; more tool calls."""
        names = {"replans": "more replans", "llm_calls": "more model calls", "tool_calls": "more tool calls"}
        more = {name: self.delta(name) for name in names if self.delta(name) > 0}
        if "replans" in more and more.get("llm_calls", 0) <= more["replans"]:
            more.pop("llm_calls", None)  # a replan is a model call
        return [f"{names[name]} (+{delta:.2f} a question)" for name, delta in more.items()]

    def _evidence(self) -> list[str]:
        """Evidence that accounts for half of the growth or more."""
        delta = self.delta(EVIDENCE)
        if delta <= 0 or 2 * delta < self.delta("total_tokens"):
            return []
        word = "more" if self.delta("tool_calls") > 0 else "longer"
        return [f"{word} evidence (+{delta:,.1f} tokens a question)"]


def growth_of(before: pd.DataFrame, now: pd.DataFrame) -> Growth:
    """The pairs of two tables of counts with the same keys; pairs that failed on a side are left out."""
    old, new = scored_pairs(before, now)
    names = [name for name in COUNTS if name in old and name in new]
    changes = (
        {name: CountChange(float(old[name].mean()), float(new[name].mean())) for name in names} if len(old) else {}
    )
    questions = int(old.index.get_level_values("example_id").nunique())
    return Growth(questions, len(old), len(before) - len(old), changes, _grown(old, new))


def scored_pairs(before: pd.DataFrame, now: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables without the pairs that the infrastructure failed on a side."""
    now = now.reindex(before.index)
    scored = before["exact_match"].notna() & now["exact_match"].notna()
    return before[scored], now[scored]


def _grown(old: pd.DataFrame, new: pd.DataFrame) -> tuple[GrowthDetail, ...]:
    """The questions with the largest growth of tokens; equal ones by id."""
    grown = []
    for key, before, now in zip(old.index, old.to_dict("records"), new.to_dict("records"), strict=True):
        by_role = {role: (now.get(name) or 0) - (before.get(name) or 0) for role, name in ROLES.items()}
        most = max(by_role, key=by_role.__getitem__)
        grown.append(
            GrowthDetail(str(key[0]), int(key[1]), int(before["total_tokens"]), int(now["total_tokens"]), most)
        )
    grown.sort(key=lambda question: (question.before - question.now, question.example_id, question.trial))
    return tuple(question for question in grown[:_SHOWN] if question.now > question.before)
