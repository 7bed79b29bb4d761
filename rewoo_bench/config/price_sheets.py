"""Price sheets: what a provider asks for tokens, and how its prompt cache works, as TOML.

    title = "OpenAI"
    unit = "USD per million tokens"
    source = "litellm 1.106.2, model_prices_and_context_window"
    as_of = 2026-11-24

    [cache.automatic]
    kind = "automatic"
    minimum_prefix_tokens = 1024
    source = "https://developers.openai.com/api/docs/guides/prompt-caching"
    as_of = 2026-11-24

    [models.gpt-4o-mini]
    input = 0.15
    output = 0.6
    cache_read = 0.075
    cache = "automatic"

A fact that isn't known is left out. What that means for an estimate stands in `CacheRule.unknown`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from rewoo_bench.config.specs import read_values, validated
from rewoo_bench.errors import SpecError, UsageError, unknown

RULES = {
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
_NOT_A_DEFAULT = ("none", "vllm", "llama_cpp", "anthropic_1h", "openai_question")
PRICE_KINDS = {"input": "input", "cached": "cached_input", "cache_write": "cache_write", "output": "output"}
"""Kinds of tokens in `--price`, and their names in run.json."""
# Units of prices, and how many of them are a dollar for one token.
PRICE_UNITS = {"USD per million tokens": 1e-6, "USD per thousand tokens": 1e-3, "USD per token": 1.0}

_SNAPSHOT = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8})$")
_LATEST = re.compile(r"[-:]latest$")
# Bedrock's marks around a model's name: a region and a provider before it, a version behind it.
_OF_BEDROCK = re.compile(
    r"^(?:(?:us|eu|apac|au|jp|us-gov|global)\.)?(?:anthropic|amazon|meta|mistral|deepseek)\.|-v\d+(?::\d+)?$"
)

_Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=1)]


class CacheRule(BaseModel):
    """A `[cache.NAME]` table: how a provider keeps prompts.

    `automatic` finds the longest prefix of earlier prompts. `explicit` finds prefixes that end at a mark of the
    request (`cache_control`). A hit begins the lifetime anew. analysis/prices.py applies it.
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


class ModelPrices(BaseModel):
    """A `[models.NAME]` table: prices in the sheet's unit."""

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
    unit: str
    source: str
    as_of: date
    note: str = ""
    rule: str = ""
    """The rule of the cache by its name, in a sentence; TITLE's rule by default."""
    prices: str = ""
    """What the prices are, in a sentence; MODEL's prices of the date by default."""
    cache: dict[str, CacheRule] = {}
    models: dict[str, ModelPrices] = Field(min_length=1)

    @field_validator("unit")
    @classmethod
    def _known_unit(cls, unit: str) -> str:
        if unit not in PRICE_UNITS:
            raise ValueError(f"unknown unit {unit!r}, expected one of: {', '.join(PRICE_UNITS)}")
        return unit

    @model_validator(mode="after")
    def _known_caches(self) -> Sheet:
        for name, prices in self.models.items():
            if prices.cache is not None and prices.cache not in self.cache:
                raise ValueError(f"models.{name}: {unknown('cache', prices.cache, self.cache)}")
        return self


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices of one model in dollars a token, and the rule of its cache. `sheet` is the sheet's name."""

    sheet: str
    model: str
    input: float
    output: float
    cache_read: float
    rule: CacheRule | None
    cache_rule: str
    """The rule of the cache by its name: `OpenAI's rule: prefixes of 1,024 tokens and more, in blocks of 128`."""
    under: str
    """The price by its name, behind `under`: the rule of the cache, then `gpt-5-mini's prices of 2026-11-24`."""
    name: str
    """The same for a sentence: `gpt-5-mini's prices under OpenAI's rule`."""
    prices_are: str
    """What the prices are, where they are no model's."""
    source: str
    as_of: date
    path: Path
    """The sheet's file."""
    notes: tuple[str, ...]
    """Those of the sheet and of the model's prices, then `notes_of_rule`."""
    notes_of_rule: tuple[str, ...]
    cache_write: float | None = None
    """None where what is written costs what other input does."""

    def without_cache(self) -> Tariff:
        """The same prices where nothing is cached."""
        own = tuple(note for note in self.notes if note not in self.notes_of_rule)
        rule, under = "no cache", f"no cache{self.under.removeprefix(self.cache_rule)}"
        name = f"{self.name.partition(' under ')[0]} without a cache"
        return replace(
            self,
            sheet=NO_CACHE,
            rule=None,
            cache_rule=rule,
            under=under,
            name=name,
            cache_write=None,
            notes=own,
            notes_of_rule=(),
        )

    def cost_usd(self, tokens: Any, cached: Any, written: Any, output: Any) -> Any:
        """Dollars of some tokens, numbers or arrays of them; `cached` and `written` are parts of the input `tokens`."""
        extra = 0.0 if self.cache_write is None else written * (self.cache_write - self.input)
        return (tokens - cached) * self.input + cached * self.cache_read + extra + output * self.output


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


def read_sheet(path: Path) -> Sheet:
    """The sheet in a file. Raises `SpecError` with one line."""
    values = read_values(path)
    if "unit" not in values:
        example = next(iter(PRICE_UNITS))
        raise SpecError(f'{path}: unit is missing: write what the prices are in, such as unit = "{example}"')
    return validated(Sheet, values, str(path))


@cache
def bundled_sheets() -> dict[str, Path]:
    """The files of the sheets in the package, by name."""
    return {path.stem: path for path in sorted(Path(__file__).with_name("prices").glob("*.toml"))}


def read_price(text: str) -> dict[str, float]:
    """Dollars per million tokens from `input=0.15,cached=0.075,output=0.6`, by `PRICE_KINDS`. Raises `UsageError`."""
    found: dict[str, float] = {}
    for part in text.split(","):
        kind, _, amount = (piece.strip() for piece in part.partition("="))
        if kind not in PRICE_KINDS:
            raise UsageError(f"--price {text}: {unknown('kind of token', kind, PRICE_KINDS)}")
        if PRICE_KINDS[kind] in found:
            raise UsageError(f"--price {text}: {kind}= is given twice")
        try:
            value = float(amount)
        except ValueError:
            value = -1.0
        if not 0 <= value < math.inf:
            raise UsageError(f"--price {text}: {kind}={amount!s}: expected dollars per million tokens, such as 0.15")
        found[PRICE_KINDS[kind]] = value
    for kind in ("input", "output"):
        if kind not in found:
            raise UsageError(f"--price {text}: {kind}= is missing; write input=0.15,cached=0.075,output=0.6")
    return found


def sheet_and_model(text: str) -> tuple[str, str]:
    """The sheet (its name, or a file) and the model that a price names; `""` where it names no model.

    A short name (`RULES`) names its sheet: `gemini:gemini-2.5-pro` is `google:gemini-2.5-pro`.
    """
    file, ending, model = text.partition(".toml")
    if ending:
        return f"{file}{ending}", model.removeprefix(":")
    sheet, _, model = text.partition(":")
    return RULES.get(sheet, sheet).partition(":")[0], model


def named_tariff(text: str, model: str | None = None) -> Tariff:
    """The price that a short name (`RULES`), SHEET, SHEET:MODEL or FILE.toml[:MODEL] stands for. Raises `UsageError`.

    A sheet alone has the price of `model` (`names_in_sheets`), or of its only one. Where no `model` is asked for, it
    stands for the model of its short name, else for its first.
    """
    sheet, wanted = sheet_and_model(text)
    found = {tariff.model: tariff for tariff in tariffs(sheet)}
    if wanted:
        names = [wanted]
    elif model is None:
        example = next((at for at in RULES.values() if at.startswith(f"{sheet}:")), "").partition(":")[2]
        names = [example, *found]
    else:
        names = [*names_in_sheets(model), *([] if len(found) > 1 else found)]
    chosen = next((found[name] for name in names if name in found), None)
    if chosen is None:
        what = unknown("model of the sheet", wanted or model, found)
        raise UsageError(f"--prices {text}: {what}" + ("" if wanted else f"; write {sheet}:MODEL"))
    return chosen


def price_of(model: str) -> str | None:
    """SHEET:MODEL of a model that a provider's sheet lists, `openai:gpt-4o` of `openai/gpt-4o`; None for no such."""
    sheets = [name for name in bundled_sheets() if name not in _NOT_A_DEFAULT]
    listed = {each.model: f"{sheet}:{each.model}" for sheet in reversed(sheets) for each in tariffs(sheet)}
    return next((listed[name] for name in names_in_sheets(model) if name in listed), None)


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
    sheet = {each.model: each for each in tariffs(tariff.path)} if models else {}
    for role, model in models.items():
        listed = next((sheet[name] for name in names_in_sheets(model) if name in sheet), None)
        if listed is None and own and (elsewhere := price_of(model)):
            listed = named_tariff(elsewhere)
        if listed and tariff.sheet == NO_CACHE:
            listed = listed.without_cache()
        found[role] = named_tariff(given[role], model) if role in given else listed or tariff
    return found


def tariffs(name: str | Path) -> tuple[Tariff, ...]:
    """The prices of all models in a sheet, by its name or its file. Raises `UsageError`."""
    known, path, text = bundled_sheets(), Path(name), str(name)
    if path.suffix != ".toml":
        if text not in known:
            forms = "or SHEET:MODEL (rewoo-bench list --prices), or a file of your own: sheet.toml[:MODEL]"
            model = text.rpartition("/")[2]
            if of := [sheet for sheet, file in known.items() if model in read_sheet(file).models]:
                written = " or ".join(f"{sheet}:{model}" for sheet in of)
                raise UsageError(f"unknown price {text!r}, which is a model: write {written}")
            raise UsageError(f"{unknown('price', text, {*RULES, *known})}; {forms}")
        return _bundled(known[text])
    return tuple(_tariffs_in(path))


@cache  # the figures of a study name these hundreds of times
def _bundled(path: Path) -> tuple[Tariff, ...]:
    return tuple(_tariffs_in(path))


def _tariffs_in(path: Path) -> Iterator[Tariff]:
    sheet = read_sheet(path)
    for model, prices in sheet.models.items():
        rule = None if prices.cache is None else sheet.cache[prices.cache]
        rule_name = sheet.rule or f"{sheet.title}'s rule"
        cache_rule = "no cache" if rule is None else f"{rule_name}: {rule}"
        whose = f"{model}'s prices"
        prices_name = sheet.prices or f"{whose} of {sheet.as_of}"
        notes = tuple(note for note in (sheet.note, prices.note) if note)
        notes_of_rule = tuple(filter(None, (rule.note, *rule.unknown))) if rule else ()
        kinds = ("input", "output", "cache_read", "cache_write")
        amounts = {kind: amount for kind in kinds if (amount := getattr(prices, kind)) is not None}
        dollars = {kind: amount * PRICE_UNITS[sheet.unit] for kind, amount in amounts.items()}
        yield Tariff(
            sheet=path.stem,
            model=model,
            rule=rule,
            cache_rule=cache_rule,
            under=f"{cache_rule}; {prices_name}",
            name=f"{sheet.prices or whose} {f'under {rule_name}' if rule else 'without a cache'}",
            prices_are=sheet.prices,
            source=sheet.source,
            as_of=sheet.as_of,
            path=path,
            notes=(*notes, *notes_of_rule),
            notes_of_rule=notes_of_rule,
            **{"cache_read": dollars["input"], **dollars},
        )
