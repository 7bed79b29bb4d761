"""A gate's verdict: checks, each passed, warned or failed, and the exit code that follows.

Check("growth", "fail", Group("rewoo", "sample", "oracle"), "total_tokens",
      "total_tokens grew by 23.0 a question, 800.0 -> 823.0 (+2.9%, 2% allowed)", …)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

ENOUGH_QUESTIONS = 200
"""Below, a fall of accuracy that may be chance warns: a system differs by several points from run to run."""
FALSE_ALARMS = 0.005
"""One-sided, of a live gate's test of total tokens on a system against itself, shared by its architectures
(Bonferroni); and as much of its tests of answers."""
NOTHING_CACHED = "no call read a token from a prefix cache"

CheckKind = Literal[
    "budget",
    "cost unknown",
    "latency",
    "accuracy",
    "growth",
    "prefix cache",
    "changed",
    "not comparable",
    "failed questions",
    "can't tell",
]
Status = Literal["pass", "warn", "fail"]


class Group(NamedTuple):
    """The rows that a check is about."""

    architecture: str
    dataset: str
    model: str

    def __str__(self) -> str:
        return ", ".join(self)


@dataclass(frozen=True, slots=True)
class GrowthDetail:
    """A question with more tokens than before, and the role that took most of the growth."""

    example_id: str
    trial: int
    before: int
    now: int
    role: str

    def __str__(self) -> str:
        trial = f" (trial {self.trial})" if self.trial else ""
        return f"{self.example_id}{trial} {self.now - self.before:+,} ({self.role}, {self.before:,} -> {self.now:,})"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the gate. `text` can be read without the other checks of its group."""

    kind: CheckKind
    status: Status
    group: Group
    name: str
    """Such as `total_tokens p95` or `ids`."""
    text: str
    measured: float | None = None
    limit: float | None = None
    before: float | None = None
    """The baseline's mean, where there is a baseline."""
    n: int = 0
    """Questions."""
    grown: tuple[GrowthDetail, ...] = ()
    oracle: bool = False
    """Whether it is about an oracle's accuracy, which means nothing."""

    @property
    def metric(self) -> str:
        """`total_tokens` of `total_tokens p95`."""
        return self.name.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks of a gate. `incomplete` is the reason why an incomplete run was not judged."""

    checks: tuple[Check, ...]
    incomplete: str | None = None
    notes: tuple[str, ...] = ()
    """What is to be known of the figures, such as the prices of dollars."""

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "fail")

    @property
    def warnings(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "warn")

    @property
    def undecided(self) -> tuple[Check, ...]:
        """Checks of a live comparison that has too few questions to decide."""
        return tuple(check for check in self.checks if check.kind == "can't tell")

    @property
    def code(self) -> int:
        """The exit code: 0 passed, 1 failed, 3 incomplete."""
        return 3 if self.incomplete is not None else 1 if self.failures else 0


def too_many_failed(failed: int, rows: int) -> bool:
    """Whether the rows that didn't fail are no fair sample of all of them: where more than a tenth failed.

    Failures aren't drawn at random: a long question runs into a time-out or a context limit sooner than a short one.
    So the means of the others are too low, and the more so the more failed. A tenth leaves room for the odd failure.
    """
    return failed > 0.1 * rows


def amount(metric: str, value: float | None) -> str:
    """A value as tables show it, with enough digits to tell it from 0.

    >>> amount("total_tokens", 1431.92), amount("llm_calls", 2), amount("latency_s", 0.001), amount("cost_usd", None)
    ('1,431.9', '2.00', '0.001 s', 'unknown')
    """
    if value is None:
        return "unknown"
    decimals = {"cost_usd": 6, "usd_per_solved": 6, "exact_match": 3, "f1": 3}.get(
        metric, 1 if "tokens" in metric else 2
    )
    text = f"{value:,.{decimals}f}"
    if abs(value - float(text.replace(",", ""))) > 0.01 * abs(value):
        text = f"{value:.3g}"
    return f"${text}" if "usd" in metric else f"{text} s" if metric == "latency_s" else text
