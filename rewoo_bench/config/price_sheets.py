"""Price sheets: how a provider's prompt cache works and what it asks for tokens, as TOML.

    title = "OpenAI"
    provider = "openai"
    cache_of_others = "automatic"
    unit = "USD per million tokens"
    source = "litellm 1.106.2, model_prices_and_context_window"
    as_of = 2026-11-24

    [cache.automatic]
    kind = "automatic"
    minimum_prefix_tokens = 1024
    source = "https://developers.openai.com/api/docs/guides/prompt-caching"
    as_of = 2026-11-24

    [models.gpt-5-mini]
    input = 0.25
    output = 2
    cache_read = 0.025
    cache = "automatic"

The prices in a sheet stay what they were on its day: published figures and baselines rest on them. Every other model of
its `provider` has the price in litellm's table (price_table.py). A fact that isn't known is left out. What that means
for an estimate stands in `CacheRule.unknown`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rewoo_bench.config.price_table import PriceEntry, listed_entry, names_in_sheets, without_date
from rewoo_bench.config.specs import read_spec
from rewoo_bench.errors import UsageError, unknown

SHORT_PRICES = {
    "none": "none:gpt-5-mini",
    "openai": "openai:gpt-5-mini",
    "anthropic-5m": "anthropic:claude-sonnet-4-5",
    "anthropic-1h": "anthropic_1h:claude-sonnet-4-5",
    "gemini": "google:gemini-2.5-flash",
    "deepseek": "deepseek:deepseek-chat",
    "vllm": "vllm:computed",
    "llama.cpp": "llama_cpp:computed",
}
"""Short names of prices, each of one SHEET:MODEL: its prices and the rule of its cache."""
NO_CACHE = "none"
"""The sheet of prices without a cache."""
PRICE_KINDS = {"input": "input", "cached": "cached_input", "cache_write": "cache_write", "output": "output"}
"""Kinds of tokens in `--price`, and their names in run.json."""

_Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=1)]


class CacheRule(BaseModel):
    """A `[cache.NAME]` table: how a provider keeps prompts.

    `automatic` finds the longest prefix of earlier prompts. `explicit` finds prefixes that end at a mark of the
    request (`cache_control`). A hit begins the lifetime anew. analysis/call_costs.py applies it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["automatic", "explicit"]
    minimum_prefix_tokens: Annotated[int, Field(ge=0)] | None = None
    """The shortest prefix that is kept; None is not known."""
    block_tokens: _Count | None = None
    """Prefixes are found in whole blocks; None is not known."""
    lifetime_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Seconds that a prefix is kept; None is not known."""
    scope: Literal["run", "question"] = "run"
    """Whose earlier prompts a prompt may share a prefix with: those of all questions, or of its own question alone.

    The age of a prefix is that since any call last had it, of another question, too.
    """
    source: str
    as_of: date
    note: str = ""

    @property
    def unknown(self) -> list[str]:
        """The facts that aren't known, with what is assumed instead."""
        assumed = {
            "minimum_prefix_tokens": "the shortest cached prefix isn't known: none is assumed",
            "block_tokens": "the size of a cached block isn't known: 1 token is assumed",
            "lifetime_s": "the lifetime of a cached prefix isn't known: it never ends here",
        }
        if self.kind == "explicit":
            del assumed["block_tokens"]  # its prefixes end at marks
        return [text for name, text in assumed.items() if getattr(self, name) is None]

    def __str__(self) -> str:
        """`prefixes of 1,024 tokens and more, in blocks of 128`."""
        marked = "marked " if self.kind == "explicit" else ""
        least, block, life = self.minimum_prefix_tokens, self.block_tokens, self.lifetime_s
        said = f"{marked}prefixes of {least:,} tokens and more" if least else f"{marked}prefixes of any length"
        said += f", in blocks of {block:,}" if block and block > 1 else ""
        said += ", of earlier prompts of the same question" if self.scope == "question" else ""
        return said + (f", kept for {life / 60:g} minutes" if life else "")


class ToolBilling(BaseModel):
    """The `[tools]` table: input tokens that a provider bills for tools and schemas; analysis/law.py applies it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """Billed tokens of a tool by those of its JSON, as they are counted here."""
    per_call: Annotated[int, Field(ge=0)] = 0
    """Tokens that each call with tools takes beside them."""
    per_call_of: dict[str, Annotated[int, Field(ge=0)]] = {}
    """The same of models that have a number of their own."""
    response_schema: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Billed tokens of a reply's JSON schema by those of its JSON; 0 where it isn't billed, or nobody knows how."""
    source: str
    as_of: date
    note: str = ""

    def of(self, model: str) -> ToolBilling:
        """That of one model."""
        return self.model_copy(update={"per_call": self.per_call_of.get(model, self.per_call)})


class ModelPrices(BaseModel):
    """A `[models.NAME]` table: US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Price
    output: _Price
    cache_read: _Price | None = None
    cache_write: _Price | None = None
    """None is no price of its own: what is written costs what other input does."""
    cache: str | None = None
    """Name of a `[cache.NAME]` table; None is no cache."""
    note: str = ""

    @model_validator(mode="after")
    def _complete(self) -> ModelPrices:
        if self.cache is not None and self.cache_read is None:
            raise ValueError(f"cache = {self.cache!r} needs cache_read, the price of cached input")
        return self


class Sheet(BaseModel):
    """A file of prices."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    unit: Literal["USD per million tokens"]
    source: str
    as_of: date
    note: str = ""
    rule: str = ""
    """The rule of the cache by its name, in a sentence; TITLE's rule by default."""
    prices: str = ""
    """What the prices are, in a sentence; MODEL's prices of the date by default."""
    cache: dict[str, CacheRule] = {}
    tools: ToolBilling | None = None
    models: dict[str, ModelPrices] = Field(min_length=1)
    provider: str = ""
    """litellm's name of the provider whose other models belong to the sheet, at litellm's prices; empty for none."""
    cache_of_others: str | None = None
    """Name of the `[cache.NAME]` table of these models, where their cached input is cheaper."""

    @model_validator(mode="after")
    def _known_caches(self) -> Sheet:
        named = {f"models.{name}": prices.cache for name, prices in self.models.items()}
        for place, cache_name in {**named, "cache_of_others": self.cache_of_others}.items():
            if cache_name is not None and cache_name not in self.cache:
                raise ValueError(f"{place}: {unknown('cache', cache_name, self.cache)}")
        return self


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices of one model in dollars a token, and the rule of its cache.

    `sheet` is the sheet's name, `path` its file and `source` where the prices are from.
    """

    sheet: str
    path: Path
    source: str
    model: str
    input: float
    output: float
    cache_read: float
    cache_write: float | None
    """None where what is written costs what other input does."""
    rule: CacheRule | None
    rule_name: str
    """`OpenAI's rule`."""
    tools: ToolBilling | None
    """None where nobody knows: tools as their JSON counts, and no schema."""
    prices: str
    """`gpt-5-mini's prices of 2026-11-24`."""
    prices_are: str
    """What the prices are, where they are no model's."""
    own_notes: tuple[str, ...]
    """Those of the sheet and of the model's prices."""

    @property
    def title(self) -> str:
        """`OpenAI's rule, from 1,024`: the rule's name, and the shortest prefix that it caches."""
        least = self.rule and self.rule.minimum_prefix_tokens
        return (self.rule_name if self.rule else "no cache") + (f", from {least:,}" if least else "")

    @property
    def brief(self) -> str:
        """The same in a few words: `gpt-5-mini's prices of 2026-11-24 under OpenAI's rule`."""
        return f"{self.prices} {f'under {self.rule_name}' if self.rule else 'without a cache'}"

    @property
    def name(self) -> str:
        """The same for a sentence: `gpt-5-mini's prices under OpenAI's rule`."""
        whose = self.prices_are or f"{self.model}'s prices"
        return f"{whose} {f'under {self.rule_name}' if self.rule else 'without a cache'}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the prices and the rule take for granted."""
        of_rule = [self.rule.note, *self.rule.unknown] if self.rule else []
        return (*self.own_notes, *filter(None, of_rule))

    def without_cache(self) -> Tariff:
        """The same prices where nothing is cached."""
        return replace(self, sheet=NO_CACHE, rule=None, cache_write=None)

    def cost_usd(self, tokens: Any, cached: Any, written: Any, output: Any) -> Any:
        """Dollars of some tokens, numbers or arrays of them; `cached` and `written` are parts of the input `tokens`."""
        extra = 0.0 if self.cache_write is None else written * (self.cache_write - self.input)
        return (tokens - cached) * self.input + cached * self.cache_read + extra + output * self.output


def read_sheet(path: Path) -> Sheet:
    """The sheet in a file. Raises `SpecError` with one line."""
    return _bundled(path) if path in bundled_sheets().values() else read_spec(path, Sheet)


@cache  # the figures of a study name these hundreds of times
def _bundled(path: Path) -> Sheet:
    return read_spec(path, Sheet)


@cache
def bundled_sheets() -> dict[str, Path]:
    """The files of the sheets in the package, by name."""
    return {path.stem: path for path in sorted(Path(__file__).with_name("prices").glob("*.toml"))}


def read_price(text: str) -> dict[str, float]:
    """Dollars per million tokens from `input=0.15,cached=0.075,output=0.6`, by `PRICE_KINDS`. Raises `UsageError`."""
    try:
        given = {kind.strip(): float(amount) for kind, _, amount in (part.partition("=") for part in text.split(","))}
    except ValueError:
        given = {}
    is_price = {"input", "output"} <= given.keys() and all(0 <= each < math.inf for each in given.values())
    if not is_price or given.keys() - PRICE_KINDS.keys() or len(given) <= text.count(","):
        form = "input=0.15,cached=0.075,output=0.6 in dollars per million tokens"
        raise UsageError(f"--price {text}: expected {form}; kinds of tokens: {', '.join(PRICE_KINDS)}")
    return {PRICE_KINDS[kind]: amount for kind, amount in given.items()}


def sheet_and_model(text: str) -> tuple[str, str]:
    """The sheet (its name, or a file) and the model that a price names; `""` where it names no model.

    A short name (`SHORT_PRICES`) names its sheet: `gemini:gemini-2.5-pro` is `google:gemini-2.5-pro`.
    """
    file, ending, model = text.partition(".toml")
    if ending:
        return f"{file}{ending}", model.removeprefix(":")
    sheet, _, model = text.partition(":")
    return SHORT_PRICES.get(sheet, sheet).partition(":")[0], model


def named_tariff(text: str, model: str | None = None) -> Tariff:
    """The price that a short name (`SHORT_PRICES`), SHEET, SHEET:MODEL or FILE.toml[:MODEL] stands for.

    Raises `UsageError`.

    A sheet alone has the price of `model` (`names_in_sheets`), or of its only one. Where no `model` is asked for, it
    stands for the model of its short name, else for its first.
    """
    name, wanted = sheet_and_model(text)
    path, sheet = _find_sheet(name)
    chosen = None
    if wanted or model:
        chosen = tariff_of(path, wanted or model or "", exactly=bool(wanted))
    if chosen is None and not wanted and (model is None or len(sheet.models) == 1):
        example = next((at for at in SHORT_PRICES.values() if at.startswith(f"{name}:")), "").partition(":")[2]
        chosen = tariff_of(path, example or next(iter(sheet.models)), exactly=True)
    if chosen is None:
        what = unknown("model of the sheet", wanted or model or "", sheet.models)
        raise UsageError(f"--prices {text}: {what}" + ("" if wanted else f"; write {name}:MODEL"))
    return chosen


def tariff_of(path: Path, model: str, *, exactly: bool = False) -> Tariff | None:
    """The price of a model in the sheet of a file, else of its provider in litellm's table; None where neither has it.

    A snapshot has the price by its name without the date where they are the same, unless `exactly` it is meant.
    """
    sheet = read_sheet(path)
    for given in [model] if exactly else names_in_sheets(model):
        name = given.removeprefix(f"{sheet.provider}/")
        if name in sheet.models:
            return _of_sheet(path, sheet, name)
        if sheet.provider and (entry := listed_entry(sheet.provider, name)):
            undated = listed_entry(sheet.provider, without_date(name))
            if undated and undated.rates(1) == entry.rates(1) and not exactly:
                return tariff_of(path, without_date(name), exactly=True)
            return _of_table(path, sheet, name, entry)
    return None


def price_of(model: str) -> str | None:
    """SHEET:MODEL of a model with a price of its own, `openai:gpt-4o` of `openai/gpt-4o`; None for any other."""
    found = (tariff_of(path, model) for path in bundled_sheets().values() if read_sheet(path).provider)
    return next((f"{tariff.sheet}:{tariff.model}" for tariff in found if tariff), None)


def unlisted(models: Iterable[str]) -> list[str]:
    """Those of the models that no provider's sheet lists."""
    return [model for model in dict.fromkeys(models) if price_of(model) is None]


def split_by_role(prices: Sequence[str], roles: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """Values of `--prices` without a role, and by role those that begin with one, such as `planner:openai:gpt-4o`.

    `roles` are those that have a model of their own. Raises `UsageError`.
    """
    plain, of_roles = [], {}
    for value in prices:
        role, _, text = value.partition(":")
        if role == "judge":
            raise UsageError(f"--prices {value}: the judge's calls are in no question's cost")
        if role not in ("planner", "solver"):
            plain.append(value)
        elif role not in roles:
            raise UsageError(f"--prices {value}: the {role} has no model of its own in this run")
        else:
            of_roles[role] = text
    if of_roles and not plain:
        raise UsageError(f"--prices {prices[0]}: give those of the run's other calls, too: --prices SHEET")
    return plain, of_roles


def by_role(
    tariff: Tariff, models: Mapping[str, str], given: Mapping[str, str], *, own: bool = False
) -> dict[str, Tariff]:
    """The prices of every role (`""`), and of those with a model of their own: given, the sheet's, or `tariff`.

    With `own` a model that the sheet lacks has the prices of the sheet that lists it, where there is one.
    """
    found = {"": tariff}
    for role, model in models.items():
        listed = tariff_of(tariff.path, model)
        if listed is None and own and (elsewhere := price_of(model)):
            listed = named_tariff(elsewhere)
        if listed and tariff.sheet == NO_CACHE:
            listed = listed.without_cache()
        found[role] = named_tariff(given[role], model) if role in given else listed or tariff
    return found


def _find_sheet(name: str) -> tuple[Path, Sheet]:
    """The file of a sheet, by its name or its own path, and what is in it. Raises `UsageError`."""
    known, path = bundled_sheets(), Path(name)
    if path.suffix == ".toml":
        return path, read_sheet(path)
    if name in known:
        return known[name], read_sheet(known[name])
    if at := price_of(name):
        raise UsageError(f"unknown price {name!r}, which is a model: write {at}")
    forms = "or SHEET:MODEL (rewoo-bench list --prices), or a file of your own: sheet.toml[:MODEL]"
    raise UsageError(f"{unknown('price', name, {*SHORT_PRICES, *known})}; {forms}")


def _of_sheet(path: Path, sheet: Sheet, model: str) -> Tariff:
    """The price of a model that stands in the sheet."""
    prices = sheet.models[model]
    kinds = ("input", "output", "cache_read", "cache_write")
    dollars = {kind: amount * 1e-6 for kind in kinds if (amount := getattr(prices, kind)) is not None}
    said = sheet.prices or f"{model}'s prices of {sheet.as_of}"
    return _tariff(path, sheet, model, said, dollars, prices.cache, prices.note)


def _of_table(path: Path, sheet: Sheet, model: str, entry: PriceEntry) -> Tariff:
    """The price of a model in litellm's table, under the rule of the sheet's provider."""
    rates = entry.rates(1)
    assert rates is not None
    dollars = {"input": rates["input"], "output": rates["output"], "cache_read": rates["cached_input"]}
    if rates["cache_write"] > rates["input"]:
        dollars["cache_write"] = rates["cache_write"]
    rule = sheet.cache_of_others if rates["cached_input"] < rates["input"] else None
    note = "prices of long prompts are higher, and not counted" if entry.prices_of_long_prompts else ""
    return _tariff(path, sheet, model, f"{model}'s prices in litellm {version('litellm')}", dollars, rule, note)


def _tariff(
    path: Path, sheet: Sheet, model: str, prices: str, dollars: dict[str, float], cache_name: str | None, note: str
) -> Tariff:
    """A price by all its names: `prices` says what it is, `dollars` are of a token by kind."""
    return Tariff(
        sheet=path.stem,
        path=path,
        source=sheet.source,
        model=model,
        input=dollars["input"],
        output=dollars["output"],
        cache_read=dollars.get("cache_read", dollars["input"]),
        cache_write=dollars.get("cache_write"),
        rule=None if cache_name is None else sheet.cache[cache_name],
        rule_name=sheet.rule or f"{sheet.title}'s rule",
        tools=sheet.tools and sheet.tools.of(model),
        prices=prices,
        prices_are=sheet.prices,
        own_notes=tuple(filter(None, (sheet.note, note))),
    )
