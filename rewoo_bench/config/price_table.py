"""litellm's table of models, read from its package without importing litellm: prices, providers and limits.

    entry = find_price_entry("gpt-4o-mini")
    entry.provider                                  # "openai"
    entry.max_output_tokens                         # 16384
    entry.price(Usage(input_tokens=1000))           # 0.00015, US dollars

It is the one source of list prices. To import litellm takes some seconds; to read the file takes some milliseconds.
Prices are those of the standard service: the file's prices for batches, other service tiers and off-peak hours are not
used. A price has no date there, so it is named by litellm's version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from rewoo_bench.errors import DataError
from rewoo_bench.types import Usage

FILE = "model_prices_and_context_window_backup.json"
_FIELDS = {
    "input": "input_cost_per_token",
    "cached_input": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
    "output": "output_cost_per_token",
    "reasoning": "output_cost_per_reasoning_token",
}
# "input_cost_per_token_above_200k_tokens" has the price of a request with a longer prompt than that.
_ABOVE = re.compile(r"(?P<price>\w+)_above_(?P<count>\d+)(?P<thousand>k?)_tokens")


@dataclass(frozen=True)
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

    @cached_property
    def prices_of_long_prompts(self) -> list[tuple[int, str, float]]:
        """Prices of long prompts: tokens above which they hold, the field that they replace, dollars of a token."""
        above = []
        for name, rate in self.fields.items():
            if rate is not None and (match := _ABOVE.fullmatch(name)):
                above.append((int(match["count"]) * (1000 if match["thousand"] else 1), match["price"], float(rate)))
        return sorted(above)

    def price(self, usage: Usage) -> float | None:
        """US dollars of one request; None where the file has no price."""
        rates = self.rates(usage.input_tokens)
        if rates is None:
            return None
        tokens = {
            "input": max(0, usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens),
            "cached_input": usage.cached_input_tokens,
            "cache_write": usage.cache_write_tokens - usage.cache_write_1h_tokens,
            "cache_write_1h": usage.cache_write_1h_tokens,
            "output": max(0, usage.output_tokens - usage.reasoning_tokens),
            "reasoning": usage.reasoning_tokens,
        }
        return sum(count * rates[kind] for kind, count in tokens.items())

    def rates(self, input_tokens: int) -> dict[str, float] | None:
        """US dollars per token of a request with a prompt of that length, by kind; None where the file has none.

        Without a price of their own, tokens read from or written to a cache cost the same as other input, those
        written for an hour the same as others that are written, and reasoning the same as other output.
        """
        fields = self.fields
        if tiers := fields.get("tiered_pricing"):  # the last tier is for longer prompts, too
            ordered = sorted(tiers, key=lambda tier: tier["range"][0])
            tier = next((tier for tier in ordered if input_tokens <= tier["range"][1]), ordered[-1])
            fields = {"output_cost_per_token": fields.get("output_cost_per_token"), **tier}
        elif long := {price: rate for count, price, rate in self.prices_of_long_prompts if input_tokens > count}:
            fields = {**fields, **long}
        found = {kind: float(fields[name]) for kind, name in _FIELDS.items() if fields.get(name) is not None}
        if "input" not in found:
            return None
        output = found.get("output", 0.0)
        written = found.get("cache_write", found["input"])
        whole = {"cached_input": found["input"], "cache_write": written, "cache_write_1h": written}
        return {**whole, "output": output, "reasoning": output, **found}


def given_entry(name: str, prices: Mapping[str, float], known: PriceEntry | None) -> PriceEntry:
    """An entry with a user's prices (dollars per million tokens), and the limits of a `known` one."""
    kept = {key: value for key, value in (known.fields if known else {}).items() if "cost" not in key}
    kept.pop("tiered_pricing", None)
    paid = {_FIELDS[kind]: amount / 10**6 for kind, amount in prices.items()}
    return PriceEntry(name, {**kept, **paid}, is_given=True)


def find_price_entry(*names: str) -> PriceEntry | None:
    """The first of these names that has a price in the file, else the first that is in the file.

    A snapshot that isn't there has the entry of its name without the date.
    """
    names = (*names, *map(without_date, names))
    entries = [PriceEntry(name, _table()[name]) for name in names if name in _table()]
    return next((entry for entry in entries if entry.rates(1)), entries[0] if entries else None)


def listed_entry(provider: str, model: str) -> PriceEntry | None:
    """The provider's model of exactly that name, where it has a price."""
    entries = (PriceEntry(name, _table().get(name, {})) for name in (f"{provider}/{model}", model))
    return next((entry for entry in entries if entry.provider == provider and entry.rates(1)), None)


@cache
def _table() -> dict[str, Any]:
    """The whole file by model name. Raises `DataError` where litellm's package has no such file."""
    spec = find_spec("litellm")
    files = [Path(folder, FILE) for folder in (spec.submodule_search_locations if spec else None) or ()]
    if not files or not files[0].is_file():
        raise DataError(f"litellm's package has no {FILE}; expected the prices of models there, as in litellm 1.97")
    table = from_json(files[0].read_bytes())
    return {name: fields for name, fields in table.items() if isinstance(fields, dict) and name != "sample_spec"}


# Names of models: snapshots, and what gateways put before them.

_SNAPSHOT = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8})$")
_LATEST = re.compile(r"[-:]latest$")
# Bedrock's marks around a model's name: a region and a provider before it, a version behind it.
_OF_BEDROCK = re.compile(
    r"^(?:(?:us|eu|apac|au|jp|us-gov|global)\.)?(?:anthropic|amazon|meta|mistral|deepseek)\.|-v\d+(?::\d+)?$"
)


def without_date(model: str) -> str:
    """A model's name without the date of its snapshot: `gpt-4o-mini` of `gpt-4o-mini-2024-07-18`."""
    return _SNAPSHOT.sub("", model)


def names_in_sheets(model: str) -> list[str]:
    """The names under which a sheet may list a model, the exact one first.

        names_in_sheets("openrouter/openai/gpt-4o-2024-08-06")
        # ["openrouter/openai/gpt-4o-2024-08-06", "openai/gpt-4o-2024-08-06", "gpt-4o-2024-08-06", …, "gpt-4o"]

    Providers before the name are left out, then the date of a snapshot behind it. Whatever else is in a name makes
    another model of it: `gpt-4o-audio-preview-2024-12-17` isn't `gpt-4o`.
    """
    names = _without_providers(model)
    return list(dict.fromkeys([*names, *map(without_date, names)]))


def is_same_model(asked: str, answered: str) -> bool:
    """Whether a provider that was asked for one model has answered with it, or with a snapshot of it.

    is_same_model("openai/gpt-4o", "gpt-4o-2024-08-06")     # True
    """
    names = [{_LATEST.sub("", each) for each in _without_providers(name.casefold())} for name in (asked, answered)]
    plain = [set(map(without_date, each)) for each in names]
    are_snapshots = names[0] != plain[0] and names[1] != plain[1]
    first, second = names if are_snapshots else plain
    return not first.isdisjoint(second)


def _without_providers(model: str) -> list[str]:
    """A model's name, then with ever less of what stands before it."""
    parts = model.split("/")
    names = ["/".join(parts[start:]) for start in range(len(parts))]
    names.append(_OF_BEDROCK.sub("", names[-1]))
    if names[-1].startswith("claude-"):
        names.append(names[-1].replace(".", "-"))  # OpenRouter writes Anthropic's versions with a dot
    return names
