"""A metered call, and the limits of a question."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from rewoo_bench.call_site import Place
from rewoo_bench.text.prompt_parts import Parts
from rewoo_bench.types import Receipt, Usage

_NO_PARTS = Parts()


@dataclass(frozen=True, slots=True)
class Limits:
    """What one question may use; None is no limit. `cost_usd` needs a known price."""

    tokens: int | None = None
    time_s: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A model or tool call. `start` and `end` are seconds of the monotonic clock.

    `usage` is logical (what the architecture needed); `receipt.billed` is what was paid.
    """

    index: int
    kind: str
    name: str
    role: str
    place: Place
    status: str
    start: float
    end: float
    started_at: datetime
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    receipt: Receipt = field(default_factory=Receipt)
    parts: Parts = _NO_PARTS
    thoughts: str = ""
    discarded_tokens: int = 0
    repairs: tuple[str, ...] = ()

    @property
    def waiting_s(self) -> float:
        """Seconds spent queueing and backing off."""
        return sum(end - start for start, end in self.receipt.waiting)
