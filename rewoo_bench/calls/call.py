"""A metered call, and the limits of a question."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from rewoo_bench.call_site import CallSite
from rewoo_bench.row_notes import Interval, union_s
from rewoo_bench.text.prompt_parts import PromptParts
from rewoo_bench.types import CallCost, Usage

_NO_PARTS = PromptParts()


def content_of(*parts: object) -> bytes:
    """The `content` of a call."""
    return sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()[:16]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one question; None is no limit. `cost_usd` needs a known price."""

    tokens: int | None = None
    time_s: float | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A model or tool call. `start` and `end` are seconds of the monotonic clock.

    `usage` is logical (needed by the architecture); `call_cost.billed` is what was paid.
    """

    index: int
    kind: str
    name: str
    role: str
    call_site: CallSite
    status: str
    start: float
    end: float
    started_at: datetime
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    call_cost: CallCost = field(default_factory=CallCost)
    prompt_parts: PromptParts = _NO_PARTS
    thoughts: str = ""
    discarded_tokens: int = 0
    repairs: tuple[str, ...] = ()
    content: bytes = b""
    """A hash of what the call did: a reply with the calls that it asks for, or a tool's arguments and result."""
    startups: tuple[Interval, ...] = ()
    """When the call waited for something to start (row_notes.py)."""

    @property
    def latency_s(self) -> float:
        """Seconds of the call, without those in which it waited for something to start."""
        return self.end - self.start - union_s(self.startups)

    @property
    def waiting_s(self) -> float:
        """Seconds spent queueing and backing off."""
        return sum(end - start for start, end in self.call_cost.waiting)
