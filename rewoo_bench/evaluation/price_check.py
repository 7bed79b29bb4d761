"""Whether a limit in dollars can be kept, checked before the first call."""

from __future__ import annotations

from collections.abc import Mapping

from rewoo_bench.errors import UsageError
from rewoo_bench.model_names import REPLAY, is_oracle
from rewoo_bench.runs.options import RunOptions


def costs_nothing(model: str) -> bool:
    """Whether a model costs no money: the oracle and a replay."""
    return is_oracle(model) or model.startswith(REPLAY)


def check_price(options: RunOptions, model: str, prices: Mapping[str, float] | None) -> None:
    """Raises `UsageError` where a limit in dollars is set and the price of a model isn't known."""
    if prices is not None or costs_nothing(model):
        return
    for flag, limit in (("--max-total-cost", options.max_total_cost), ("--cost-limit", options.cost_limit)):
        if limit is not None:
            where = " at --api-base" if options.api_base else ""
            raise UsageError(
                f"{flag} {limit:g}: the price of {model!r}{where} isn't known; "
                "limit tokens instead (--max-total-tokens, --token-limit)"
            )
