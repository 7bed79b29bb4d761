"""The connections to a provider, which the driver grants to the calls of all workers in turn.

The driver has one limiter for each model, so `--max-connections` and the halving after a 429 are those of the whole
run. Each call asks for its connection, which takes some milliseconds: a worker that kept one would let others wait.
"""

from __future__ import annotations

from rewoo_bench.calls.rate_limiter import CallLimiter
from rewoo_bench.evaluation.cluster.link import Link


class RemoteLimiter(CallLimiter):
    """A worker's limiter of the calls to one model."""

    def __init__(self, link: Link, model: str) -> None:
        super().__init__()
        self._link = link
        self._model = model
        self._good = 0  # answers that the driver doesn't know of

    def succeeded(self) -> None:
        super().succeeded()
        self._good += 1

    def halve(self) -> None:
        """The driver halves the limit of the whole run."""
        self._link.tell("limited", self._model)

    async def acquire(self) -> None:
        await self._link.ask_for("connect", self._model, lambda _: self.release())

    def release(self) -> None:
        self._link.tell("disconnect", (self._model, self._good))
        self._good = 0
