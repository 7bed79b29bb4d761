"""litellm's table of models, read from its package: providers, prices and limits, without importing litellm.

    entry = find_price_entry("gpt-4o-mini")
    entry.provider                                  # "openai"
    entry.max_output_tokens                         # 16384
    entry.price(Usage(input_tokens=1000))           # 0.00015, US dollars

To import litellm takes some seconds; to read the file takes some milliseconds. Prices are those of
the standard service: the file's prices for batches, other service tiers and off-peak hours are not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from rewoo_bench.errors import DataError
from rewoo_bench.types import Usage

FILE = "model_prices_and_context_window_backup.json"
# "input_cost_per_token_above_200k_tokens" has the price of a request with a longer prompt than that.
_GIVEN = {
    "input": "input_cost_per_token",
    "cached_input": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "output": "output_cost_per_token",
}
_ABOVE = re.compile(r"(?P<price>\w+)_above_(?P<count>\d+)(?P<thousand>k?)_tokens")


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per token of one request."""

    input: float
    cache_read: float
    cache_write: float
    output: float
    reasoning: float


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """A model of the table. `fields` is its JSON object."""

    name: str
    fields: Mapping[str, Any]
    is_given: bool = False
    """Whether the prices are the user's, and not litellm's."""

    @property
    def provider(self) -> str:
        return str(self.fields.get("litellm_provider") or "")

    @property
    def max_output_tokens(self) -> int | None:
        tokens = self.fields.get("max_output_tokens")
        return int(tokens) if isinstance(tokens, int | float) else None

    @property
    def supports_response_schema(self) -> bool:
        return bool(self.fields.get("supports_response_schema"))

    @property
    def is_priced(self) -> bool:
        return self.rates(1) is not None

    def price(self, usage: Usage) -> float | None:
        """US dollars of one request; None where the file has no price."""
        rates = self.rates(usage.input_tokens)
        if rates is None:
            return None
        uncached = max(0, usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens)
        visible = max(0, usage.output_tokens - usage.reasoning_tokens)
        return (
            uncached * rates.input
            + usage.cached_input_tokens * rates.cache_read
            + usage.cache_write_tokens * rates.cache_write
            + visible * rates.output
            + usage.reasoning_tokens * rates.reasoning
        )

    def rates(self, input_tokens: int) -> Rates | None:
        """The prices of a request with a prompt of that length; None where the file has none.

        Without a price of their own, tokens read from or written to a cache cost the same as other input, and
        reasoning the same as other output.
        """
        fields = self.fields
        if tiers := fields.get("tiered_pricing"):  # the last tier is for longer prompts, too
            ordered = sorted(tiers, key=lambda tier: tier["range"][0])
            tier = next((tier for tier in ordered if input_tokens <= tier["range"][1]), ordered[-1])
            fields = {"output_cost_per_token": fields.get("output_cost_per_token"), **tier}
        else:
            above = []  # prices of long prompts: tokens above which they hold, the field that they replace, dollars
            for name, rate in fields.items():
                if rate is not None and (match := _ABOVE.fullmatch(name)):
                    count = int(match["count"]) * (1000 if match["thousand"] else 1)
                    above.append((count, match["price"], float(rate)))
            fields = {**fields, **{price: rate for count, price, rate in sorted(above) if input_tokens > count}}
        if fields.get("input_cost_per_token") is None:
            return None

        def paid(name: str, default: float) -> float:
            return default if (rate := fields.get(name)) is None else float(rate)

        whole = float(fields["input_cost_per_token"])
        output = paid("output_cost_per_token", 0.0)
        return Rates(
            input=whole,
            cache_read=paid("cache_read_input_token_cost", whole),
            cache_write=paid("cache_creation_input_token_cost", whole),
            output=output,
            reasoning=paid("output_cost_per_reasoning_token", output),
        )


def given_entry(name: str, prices: Mapping[str, float], known: PriceEntry | None) -> PriceEntry:
    """An entry with a user's prices (dollars per million tokens), and the limits of a `known` one."""
    kept = {key: value for key, value in (known.fields if known else {}).items() if "cost" not in key}
    kept.pop("tiered_pricing", None)
    paid = {_GIVEN[kind]: amount / 10**6 for kind, amount in prices.items()}
    return PriceEntry(name, {**kept, **paid}, is_given=True)


def find_price_entry(*names: str) -> PriceEntry | None:
    """The first of these names that has a price in the file, else the first that is in the file."""
    entries = [PriceEntry(name, _table()[name]) for name in names if name in _table()]
    return next((entry for entry in entries if entry.is_priced), entries[0] if entries else None)


@cache
def _table() -> dict[str, Any]:
    """The whole file by model name. Raises `DataError` where litellm's package has no such file."""
    spec = find_spec("litellm")
    folders = [Path(folder) for folder in (spec.submodule_search_locations if spec else None) or ()]
    path = next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)
    if path is None:
        raise DataError(f"litellm's package has no {FILE}; expected the prices of models there, as in litellm 1.97")
    table = from_json(path.read_bytes())
    return {name: fields for name, fields in table.items() if isinstance(fields, dict) and name != "sample_spec"}
