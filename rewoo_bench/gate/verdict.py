"""What a gate found: checks, each passed, warned or failed, and the exit code that follows.

Check("growth", "fail", Group("rewoo", "sample", "oracle"), "total_tokens",
      "total_tokens grew by 23.0 a question, 800.0 -> 823.0 (+2.9%, 2% allowed)", …)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

PASSED, FAILED, INCOMPLETE = 0, 1, 3

ENOUGH_QUESTIONS = 200
"""Below, accuracy only warns: one and the same system differs by several points from run to run."""

Kind = Literal[
    "budget",
    "cost unknown",
    "latency",
    "accuracy",
    "growth",
    "changed",
    "not comparable",
    "failed questions",
    "can't tell",
]
Status = Literal["pass", "warn", "fail"]


class Group(NamedTuple):
    """What a check is about."""

    architecture: str
    dataset: str
    model: str

    def __str__(self) -> str:
        return ", ".join(self)


@dataclass(frozen=True, slots=True)
class Grown:
    """A question whose tokens grew, and the part of the architecture whose grew most."""

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
    """One line of the gate. `text` is a sentence that can be read alone, beside its group."""

    kind: Kind
    status: Status
    group: Group
    name: str
    """What was checked, such as `total_tokens p95` or `ids`."""
    text: str
    measured: float | None = None
    limit: float | None = None
    before: float | None = None
    """The baseline's mean, where there is a baseline."""
    n: int = 0
    """Questions."""
    grown: tuple[Grown, ...] = ()

    @property
    def metric(self) -> str:
        """`total_tokens` of `total_tokens p95`."""
        return self.name.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks of a gate. `incomplete` says why a run that isn't whole was not judged."""

    checks: tuple[Check, ...]
    incomplete: str | None = None

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "fail")

    @property
    def warnings(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.status == "warn")

    @property
    def untold(self) -> tuple[Check, ...]:
        """Those that a live comparison of so few questions could not decide."""
        return tuple(check for check in self.checks if check.kind == "can't tell")

    @property
    def code(self) -> int:
        """The exit code: 0 passed, 1 failed, 3 incomplete."""
        if self.incomplete is not None:
            return INCOMPLETE
        return FAILED if self.failures else PASSED


def shown(metric: str, value: float | None) -> str:
    """A value as tables show it.

    >>> shown("total_tokens", 1431.92), shown("llm_calls", 2), shown("cost_usd", None)
    ('1,431.9', '2.00', 'unknown')
    """
    if value is None:
        return "unknown"
    if metric.endswith("_tokens"):
        return f"{value:,.1f}"
    if metric == "cost_usd":
        return f"${value:.6f}"
    if metric == "latency_s":
        return f"{value:.2f} s"
    return f"{value:.3f}" if metric in ("exact_match", "f1") else f"{value:,.2f}"
