"""What the calls of a run cost under a price: the one place where the rule of a cache becomes tokens and dollars.

    calls = read_calls(Path("results/local/mine"), rows)    # of calls.parquet, in the order of `rows`
    cached, written = cached_tokens(calls.columns, tariff.rule)     # of each call
    costs = priced(calls, {"": tariff})                     # the same, and dollars
    calls.of_rows(costs.usd)                                # sums of each row

A rule has a minimum, blocks, a lifetime and breakpoints (`CacheRule`), and a tariff the prices of reading and writing.
What calls share with earlier ones is in the columns `SHARED` of calls.parquet (runs/columns.py): no prompt is needed.
It is a cache of one user who runs one architecture, and a hit is certain: providers promise none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.config.names import LOCAL, is_oracle
from rewoo_bench.config.price_sheets import (
    PRICE_KINDS,
    RULES,
    CacheRule,
    Tariff,
    by_role,
    named_tariff,
    names_in_sheets,
    price_of,
    read_price,
    split_by_role,
    unlisted,
)
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.columns import CALLS, SHARED, UNPRICED_ROLES
from rewoo_bench.runs.folder import CALLS_FILE, load_table, read_table
from rewoo_bench.runs.manifest import Manifests, no_run
from rewoo_bench.runs.option_types import SHORT_NAMES
from rewoo_bench.runs.rows import Rows

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_Rows = TypeVar("_Rows", "pd.DataFrame", Rows)


ROW_KEY = ("architecture", "example_id", "trial")
_NUMBERS = (
    *("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "billed_tokens"),
    *("billed_output_tokens", "latency_s", *SHARED),
)
_PARTS_OF_INPUT = ("cached_input_tokens", "cache_write_tokens", *(name for name in SHARED if name.endswith("_tokens")))

PRICED_COLUMNS = (*ROW_KEY, "kind", "role", "name", *_NUMBERS)
"""Columns of calls.parquet that a price takes."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The model calls of a run that count in a question's cost."""

    rows: int
    row: NDArray[np.int64]
    """The position of each call's question."""
    role: NDArray[np.object_]
    model: NDArray[np.object_]
    columns: Mapping[str, Floats]
    """Columns of calls.parquet, NaN where a value is missing, and what failed attempts took, which is paid in full:
    `lost_input_tokens` and `lost_output_tokens`. Cached tokens that nobody recorded are 0 there."""
    unrecorded: NDArray[np.bool_]
    """The calls of which no cached tokens were recorded."""

    @property
    def is_counted(self) -> bool:
        """Whether an endpoint counted the cached tokens of every answered call, and no local model or oracle."""
        answered = self.columns["input_tokens"] > 0
        hosted = not any(model.startswith(LOCAL) or is_oracle(model) for model in set(self.model))
        return bool(hosted and answered.any() and not self.unrecorded[answered].any())

    def of_rows(self, values: Floats) -> Floats:
        """Sums of the calls of each row."""
        sums = np.zeros(self.rows)
        np.add.at(sums, self.row, values)
        return sums


class CallCosts(NamedTuple):
    """Of each call the input tokens found in the cache and those written to it, and dollars; NaN is not known."""

    cached: Floats
    written: Floats
    usd: Floats


def read_calls(folder: Path, rows: Rows | pd.DataFrame) -> Calls:
    """The calls of a run for rows of its questions.parquet. Raises `DataError`."""
    if not folder.is_dir():
        raise no_run(folder, CALLS_FILE)
    try:
        calls = calls_of(read_table(folder / CALLS_FILE, CALLS, columns=list(PRICED_COLUMNS)), Rows.of(rows))
    except FileNotFoundError:
        raise DataError(f"{str(folder)!r} has no {CALLS_FILE}") from None
    for name in _PARTS_OF_INPUT:
        values, tokens = calls.columns[name], calls.columns["input_tokens"]
        if (wrong := (values < 0) | (values > tokens)).any():
            found = f"{values[wrong][0]:.0f} of {tokens[wrong][0]:.0f} input tokens"
            raise DataError(f"{folder / CALLS_FILE}: the column {name!r} has {found}")
    return calls


def calls_of(table: pd.DataFrame | pa.Table, rows: Rows) -> Calls:
    """The same from a table with `PRICED_COLUMNS`."""
    found = Rows(table)
    keys, all_keys = (zip(*(each[name].tolist() for name in ROW_KEY), strict=True) for each in (rows, found))
    places = {key: place for place, key in enumerate(keys)}
    row = np.array([places.get(key, -1) for key in all_keys], dtype=np.int64)
    roles = found["role"]
    some = (found["kind"] == "model") & ~np.isin(roles, list(UNPRICED_ROLES)) & (row >= 0)
    columns = {name: found[name][some] for name in _NUMBERS}
    unrecorded = np.isnan(columns["cached_input_tokens"])
    for name in ("cached_input_tokens", "cache_write_tokens"):
        columns[name] = np.nan_to_num(columns[name])
    for name in SHARED:  # of a call that failed
        columns[name] = np.where(columns["input_tokens"] == 0, 0.0, columns[name])
    lost = np.maximum(columns["billed_tokens"] - columns["input_tokens"] - columns["output_tokens"], 0)
    lost_output = np.clip(columns["billed_output_tokens"] - columns["output_tokens"], 0, lost)
    columns["lost_output_tokens"] = np.nan_to_num(lost_output)
    columns["lost_input_tokens"] = lost - columns["lost_output_tokens"]
    return Calls(len(rows), row[some], roles[some], found["name"][some], columns, unrecorded)


def cached_tokens(calls: Mapping[str, Floats], rule: CacheRule | None, context: float = 0.0) -> tuple[Floats, Floats]:
    """Input tokens of each call that a cache with this rule holds, and those that are written to it.

    `calls` has `input_tokens` and the columns `SHARED`. NaN where it isn't known what a call shares. With a `context`
    every prompt begins with that many tokens more, the same in all of them: they were sent before the run, their end is
    marked, and they are in time.
    """
    before = np.where(calls["input_tokens"] > 0, context, 0.0)
    tokens = calls["input_tokens"] + before
    if rule is None:
        return np.zeros_like(tokens), np.zeros_like(tokens)
    least, block = rule.minimum_prefix_tokens or 0, rule.block_tokens or 1
    lifetime = np.inf if rule.lifetime_s is None else rule.lifetime_s
    run_age, question_age = calls["shared_run_age_s"], calls["shared_question_age_s"]
    shared_run = calls["shared_run_tokens"]
    if rule.scope == "question":
        run_age, shared_run = question_age, calls["shared_question_tokens"]

    def in_time(tokens: Floats, age: Floats) -> Floats:
        return np.where(age > lifetime, 0.0, tokens)

    if rule.kind == "explicit":
        of_run = shared_run + 1  # rounded down, where the tokens up to a mark are rounded
        marked, last, found = (calls[name] for name in ("marked_tokens", "last_marked_tokens", "shared_marked_tokens"))
        found = np.where((rule.scope == "question") & (found > of_run), 0.0, found)
        longest = in_time(found, np.where(found <= of_run, run_age, question_age))
        cached = before + np.maximum(longest, in_time(np.where(marked <= of_run, marked, 0.0), run_age))
        cached, last = np.where(cached < least, 0.0, cached), before + last
        return cached, np.where(last < least, 0.0, np.maximum(last - cached, 0.0))
    of_question = in_time(calls["shared_question_tokens"], question_age)
    shared = before + np.maximum(of_question, in_time(shared_run, run_age))
    cached = np.minimum(shared, tokens - 1) // block * block
    too_short = tokens < max(least, 1)
    cached = np.where(too_short | (cached < max(least, 1)), 0.0, cached)
    return cached, np.where(too_short, 0.0, tokens // block * block - cached)


def priced(
    calls: Calls,
    tariffs: Mapping[str, Tariff],
    *,
    recorded: bool = False,
    context: float = 0.0,
) -> CallCosts:
    """The calls under the prices of each role (`""`: every other).

    What is written is counted where it has a price of its own. `recorded` takes what the provider reported in place of
    the rule. `context` is that of `cached_tokens`.
    """
    parts = np.full((3, len(calls.row)), np.nan)
    for role in dict.fromkeys(calls.role):
        tariff, own = tariffs.get(role) or tariffs[""], calls.role == role
        sizes = {name: values[own] for name, values in calls.columns.items()}
        cached, written = cached_tokens(sizes, tariff.rule, context)
        if recorded:
            cached, written = sizes["cached_input_tokens"], sizes["cache_write_tokens"]
        written = written * float(tariff.cache_write is not None)
        whole = sizes["input_tokens"] + context * (sizes["input_tokens"] > 0) + sizes["lost_input_tokens"]
        output = sizes["output_tokens"] + sizes["lost_output_tokens"]
        parts[:, own] = cached, written, tariff.cost_usd(whole, cached, written, output)
    return CallCosts(*parts)


@dataclass(frozen=True, slots=True)
class Pricing:
    """The prices that dollars are counted at, and the rule that says which input is cached: one for a whole output."""

    under: str = ""
    """The prices and the rule of the cache by their names; empty where dollars aren't known."""
    note: str = ""
    """Where they come from, or why dollars aren't known."""
    name: str = ""
    """`under` for a sentence: `gpt-5-mini's prices under OpenAI's rule`."""
    cost_usd: Floats | None = None
    """Dollars of each row under a sheet, NaN where they aren't known; None for what the run recorded."""
    cached: Floats | None = None
    """Input tokens of each row that are cached under the same rule; None for what the endpoint counted."""
    asked: str = ""
    """What was written to ask for it: `openai`, or `sheet.toml:large`."""
    tariff: Tariff | None = None
    """The prices of every call; None where some have others, or their sheet isn't known."""

    def of(self, rows: _Rows) -> _Rows:
        """Rows with these dollars and cached tokens in `cost_usd` and `cached_input_tokens`; the same rows in order."""
        if self.cost_usd is None or self.cached is None:
            return rows
        columns: dict[str, Any] = {"cost_usd": self.cost_usd, "cached_input_tokens": self.cached}
        return rows.assign(**columns)


def own_prices(manifests: Manifests) -> Pricing:
    """The prices that the runs were paid at, by the names of their models."""
    priced = [name for run in manifests.values() for name, prices in (run.prices or {}).items() if prices]
    return _as_counted(priced, manifests) if priced else Pricing()


def _as_counted(
    models: Iterable[str], manifests: Manifests, usd: Floats | None = None, cached: Floats | None = None
) -> Pricing:
    """The models' own prices, with cached input as it was reported."""
    prices = " and ".join(f"{name}'s" for name in dict.fromkeys(models)) + " prices"
    under = f"{prices}, cached input as the endpoint counted it{at_once(manifests)}"
    return Pricing(under, name=prices, cost_usd=usd, cached=cached)


def at_once(manifests: Manifests) -> str:
    """The number of questions at once, which decides what a cache holds when a call is sent; empty if not known."""
    known = {(run.dataset.name, run.concurrency) for run in manifests.values() if run.concurrency}
    counts = sorted({count for _, count in known})
    if len(counts) > 1:
        by_data = len(known) == len({name for name, _ in known})
        why = ", by the data set" if by_data else ": the runs differ in it, and that alone changes cached input"
        return f", with up to {' or '.join(map(str, counts))} questions at once{why}"
    return "".join(f", with {'one question' if n == 1 else f'up to {n:,} questions'} at once" for n in counts)


def of_dollars(pricing: Pricing) -> str:
    """At which prices dollars are, and why; or why there are none."""
    return "; ".join(filter(None, [pricing.under and f"dollars are under {pricing.under}", pricing.note]))


EXAMPLE = "openai"
"""The price for a run whose own isn't known: of a local model, or of the oracle."""
SHOWN = {"none": "no cache", "openai": "OpenAI's rule", "anthropic-5m": "Anthropic's rule"}
"""The prices in tables of runs whose own aren't known, and their titles there."""
ALL = "all"
"""Every price with a short name (`RULES`), in `--prices`."""
GIVEN = "--price"
"""The source of prices that no sheet has."""
_MODELS = {"planner": "planner_model", "solver": "solver_model"}


SHARED_UNKNOWN = "calls.parquet doesn't say what its prompts share with earlier ones: they weren't recorded"
TOKENS_UNKNOWN = "the tokens of its single model calls weren't recorded, so they have no price"


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def example_note(models: Sequence[str], command: str) -> str:
    """That dollars are at an example's price, since no sheet has these models, and how to choose another one."""
    imported = "; import --model NAME names the model of traces" if "unknown" in models else ""
    of = f"since none is known for {' and '.join(models)}"
    return f"the price is an example, {of} ({command} --prices NAME: {SHORT_NAMES}{imported})"


@dataclass(frozen=True, slots=True)
class PricedRows:
    """Dollars of each row under a named price, NaN where they aren't known, and the prices of each role."""

    tariffs: tuple[Mapping[str, Tariff], ...]
    """Of each run."""
    usd: Floats
    cached: Floats
    """Input tokens of each row that are cached under the same rules."""
    is_counted: bool
    """Whether cached input is as the endpoints counted it, and not as the rules have it."""
    models: tuple[str, ...]
    """Those of the calls, sorted."""


def priced_rows(
    runs: Sequence[str | Path],
    rows: Rows | pd.DataFrame,
    names: Sequence[Sequence[str]],
    *,
    own_roles: bool = False,
    as_counted: bool = False,
) -> list[PricedRows]:
    """Dollars of each row of some runs under each of some prices.

    With `as_counted` cached input is as the endpoints counted it, where they did of every call.

    A price is a short name (`RULES`) or SHEET:MODEL, and others for the planner's or solver's own model:
    `["openai", "planner:openai:gpt-5"]`; with `own_roles` these have their own, where a sheet lists them. `rows` are
    those of `load(*runs)`, or of `load_table`. Raises `UsageError` for a price that doesn't exist, and `DataError`
    where a run has no calls.parquet.
    """
    rows = Rows.of(rows)
    of_runs = list(_calls_of_runs(runs, rows))
    models = [own_models(mine) for _, mine, _ in of_runs]
    of_calls = tuple(sorted({model for _, _, calls in of_runs for model in calls.model}))
    is_counted = as_counted and all(calls.is_counted for _, _, calls in of_runs)
    found = []
    for chosen in names:
        (price,), given = split_by_role(chosen, {role for each in models for role in each})
        tariffs = tuple(by_role(named_tariff(price), each, given, own=own_roles) for each in models)
        usd, cached = np.full((2, len(rows)), np.nan)
        for (own, _, calls), of_roles in zip(of_runs, tariffs, strict=True):
            costs = priced(calls, of_roles, recorded=is_counted)
            usd[own], cached[own] = calls.of_rows(costs.usd), calls.of_rows(costs.cached)
        found.append(PricedRows(tariffs, usd, cached, is_counted, of_calls))
    return found


def _calls_of_runs(runs: Sequence[str | Path], rows: Rows) -> Iterator[tuple[NDArray[np.bool_], Rows, Calls]]:
    """Of each run which of the rows are its own, these, and their calls."""
    for run in map(Path, runs):
        own = np.isin(rows["run_id"], Rows(load_table(run)).texts("run_id"))
        mine = rows.where(own)
        yield own, mine, read_calls(run if run.is_dir() else run.parent, mine)


def given_tariffs(prices: Mapping[str, Mapping[str, float] | None]) -> dict[str, Tariff]:
    """Prices that a run was given, by its models and kinds of tokens as run.json has them, as tariffs.

    Where cached input is cheaper, the rule of its cache is that of the model's sheet, else of `EXAMPLE`.
    """
    found = {}
    for model, dollars in prices.items():
        if dollars:
            paid = {kind: dollars[kind] / 1e6 for kind in PRICE_KINDS.values() if kind in dollars}
            cached, written = paid.get("cached_input", paid["input"]), paid.get("cache_write", paid["input"])
            base = named_tariff(price_of(model) or EXAMPLE)
            tariff = replace(
                base,
                sheet="given",
                model=model,
                under=f"{base.cache_rule}; {model}'s prices as given",
                source=GIVEN,
                notes=base.notes_of_rule,
                input=paid["input"],
                output=paid["output"],
                cache_read=cached,
                cache_write=None if written == paid["input"] else written,
            )
            found[model] = tariff if cached < paid["input"] else tariff.without_cache()
    return found


def own_tariffs(models: Iterable[str], manifests: Manifests) -> dict[str, Tariff]:
    """The price of each model: the one that its run was given (`--price`, `--prices`), else that of a sheet.

    Models without either are left out.
    """
    given = dict[str, Tariff]()
    for run in manifests.values():
        if run.options.get("price") or run.options.get("prices"):
            given |= given_tariffs(run.prices or {})
    listed = {model: at for model in models if model not in given and (at := price_of(model))}
    return {model: given[model] for model in models if model in given} | {
        model: named_tariff(at) for model, at in listed.items()
    }


def _at_given_prices(runs: Sequence[str | Path], rows: Rows, manifests: Manifests, price: Sequence[str]) -> Pricing:
    """The dollars that the runs would have recorded with `--price`. Raises `UsageError` for a model without one."""
    of_runs = list(_calls_of_runs(runs, rows))
    models = sorted({model for _, _, calls in of_runs for model in calls.model})
    dollars = dict[str, dict[str, float]]()
    for value in price:
        whose, _, text = value.rpartition(":")
        roles = {name for _, mine, _ in of_runs for role, name in own_models(mine).items() if role == whose}
        named = roles or ({whose} if whose else set(models) - {each.rpartition(":")[0] for each in price})
        if unasked := named - set(models):
            raise UsageError(f"--price {value}: {unknown('model of the runs', min(unasked), models)}")
        if len(named) > 1:
            raise UsageError(f"--price {value}: it is one model's, and the runs asked {' and '.join(sorted(named))}")
        dollars |= dict.fromkeys(named, read_price(text))
    if missing := [model for model in models if model not in dollars]:
        raise UsageError(f"--price: no price of {missing[0]!r}; write {missing[0]}:input=0.15,cached=0.075,output=0.6")
    tariffs, (usd, cached) = given_tariffs(dollars), np.full((2, len(rows)), np.nan)
    for own, _, calls in of_runs:
        costs = priced(replace(calls, role=calls.model), tariffs, recorded=True)
        usd[own], cached[own] = calls.of_rows(costs.usd), calls.of_rows(costs.cached)
    return _as_counted(models, manifests, usd, cached)


def own_or_listed(runs: Sequence[str | Path], rows: Rows, manifests: Manifests) -> Pricing | None:
    """The dollars that the runs recorded, else each call's at the price of its own model, where all have one.

    Cached input is as the endpoint counted it, where it did of every call or the run was given its prices; else as the
    rule of the price has it. None where neither is known of all rows that haven't failed.
    """
    scored = ~rows.failed
    if not np.isnan(rows["cost_usd"][scored]).any():
        unnamed = Pricing("prices that run.json doesn't name, cached input as the endpoint counted it")
        return known if (known := own_prices(manifests)).under else unnamed
    usd, cached = np.full((2, len(scored)), np.nan)
    tariffs, is_counted = dict[tuple[str, str], Tariff](), False
    try:
        of_runs = list(_calls_of_runs(runs, rows))
        is_counted = all(calls.is_counted for _, _, calls in of_runs)
        for own, mine, calls in of_runs:
            asked = set(calls.model)
            of_run = {name: manifests[name] for name in mine.texts("run_id") if name in manifests}
            found = own_tariffs(asked, of_run)
            if asked - found.keys():
                return None
            tariffs |= {(model, tariff.source): tariff for model, tariff in found.items()}
            is_given = all(tariff.source == GIVEN for tariff in found.values())
            costs = priced(replace(calls, role=calls.model), found, recorded=is_given or is_counted)
            usd[own], cached[own] = calls.of_rows(costs.usd), calls.of_rows(costs.cached)
    except DataError:
        return None
    if not tariffs or np.isnan(usd[scored]).any():
        return None
    if is_counted or all(tariff.source == GIVEN for tariff in tariffs.values()):
        return _as_counted((model for model, _ in tariffs), manifests, usd, cached)
    under, names = (sorted({getattr(each, of) for each in tariffs.values()}) for of in ("under", "name"))
    note = "each model is at its own prices" if len(under) > 1 else ""
    return Pricing(" and ".join(under) + at_once(manifests), note, " and ".join(names), usd, cached)


def with_dollars(runs: Sequence[str | Path], rows: Rows, manifests: Manifests) -> tuple[Rows, Pricing]:
    """The rows with the dollars of `own_or_listed` in `cost_usd`, and at which prices they are.

    Where none are known, the rows as they are, and prices without a name.
    """
    found = own_or_listed(runs, rows, manifests) or Pricing()
    if found.cost_usd is None:
        return rows, found
    return rows.assign(cost_usd=found.cost_usd), replace(found, cost_usd=None)


def pricing_of(
    runs: Sequence[str | Path],
    rows: Rows | pd.DataFrame,
    manifests: Manifests,
    prices: Sequence[str] = (),
    price: Sequence[str] = (),
) -> Pricing:
    """The first of `pricings_of`."""
    return pricings_of(runs, rows, manifests, prices, price)[0]


def pricings_of(
    runs: Sequence[str | Path],
    rows: Rows | pd.DataFrame,
    manifests: Manifests,
    prices: Sequence[str] = (),
    price: Sequence[str] = (),
) -> list[Pricing]:
    """The dollars of some runs: under each of `prices` or at `price`, else those of `own_or_listed`.

    `prices` are those of `priced_rows`, or several in one text with commas between them; `all` is every short name
    (`RULES`). Those of a role hold for each. A `price` is `[MODEL:]input=0.15,cached=0.075,output=0.6`, or begins with
    the role of a model, as that of a run.

    Without either it is one: that of the main model where all runs have the same one and a sheet lists it, else of
    `EXAMPLE`. Raises `UsageError` for a price that doesn't exist, and `DataError` where `prices` are given and a run
    lacks what it takes.
    """
    rows = Rows.of(rows)
    if price:
        if prices:
            raise UsageError(f"--prices {prices[0]}: leave it or --price out")
        return [_at_given_prices(runs, rows, manifests, price)]
    if not prices and (known := own_or_listed(runs, rows, manifests)):
        return [known]
    main, planners, solvers = (rows.texts(name) for name in ("model", *_MODELS.values()))
    listed = price_of(main[0]) if len(main) == 1 else None
    asked, of_roles = _asked_prices(prices) if prices else ([listed or EXAMPLE], [])
    try:
        chosen = [[name, *of_roles] for name in asked]
        found = priced_rows(runs, rows, chosen, own_roles=not prices, as_counted=not prices)
        for each in found:
            if np.isnan(each.usd[~rows.failed]).any():
                has_rule = any(tariff.rule for tariff in each.tariffs[0].values())
                raise DataError(SHARED_UNKNOWN if has_rule else TOKENS_UNKNOWN)
    except DataError as error:
        if prices:
            raise
        return [Pricing(note=f"no dollars: {error.args[0]}")]
    unknown = unlisted([*main, *planners, *solvers]) or unlisted(found[0].models)
    notes = []
    if not prices and not listed:
        notes.append(example_note(unknown or main, "compare"))
    elif not prices and unknown:
        of = f"no price is known for {' and '.join(unknown)}"
        notes.append(f"{of}, counted as the other calls are (compare --prices gives others)")
    own = {"planner": set(planners) - set(main), "solver": set(solvers) - set(main)} if prices else {}
    return [_pricing(name, each, notes, own, manifests) for name, each in zip(asked, found, strict=True)]


def _asked_prices(prices: Sequence[str]) -> tuple[list[str], list[str]]:
    """The prices that some texts name, each once, and those of roles."""
    names = [name.strip() for text in prices for name in text.split(",") if name.strip()]
    names = list(dict.fromkeys(each for name in names for each in (RULES if name == ALL else [name])))
    of_roles = [name for name in names if name.partition(":")[0] in (*_MODELS, "judge")]
    plain = [name for name in names if name not in of_roles]
    split_by_role([*plain, *of_roles], _MODELS)  # which refuses those of a role alone
    return plain, of_roles


def _pricing(
    asked: str, found: PricedRows, notes: Sequence[str], own: Mapping[str, Collection[str]], manifests: Manifests
) -> Pricing:
    """The price that was asked for, with its name and what it takes for granted.

    `own` are the models that a role has of its own, where their price is to be noted if their sheet lacks it.
    """
    tariff = found.tariffs[0][""]
    others = {f"{role}: {each.model}'s": None for run in found.tariffs for role, each in run.items() if each != tariff}
    under, name = tariff.under + (f" ({', '.join(others)})" if others else "") + at_once(manifests), tariff.name
    if found.is_counted:
        paid = [tariff.model, *(each.model for run in found.tariffs for each in run.values())]
        counted = _as_counted(paid, manifests)
        under, name = counted.under, counted.name
    said = [*notes]
    for role, models in own.items():
        as_others = any(run.get(role) == tariff for run in found.tariffs)
        for model in sorted(models) if as_others else ():
            if tariff.model not in names_in_sheets(model):
                of = f"the {role}'s model {model} isn't in the sheet {tariff.sheet}"
                said.append(f"{of}, and is counted as the other calls are: --prices {role}:SHEET:MODEL")
    of_all = None if others else tariff
    return Pricing(under, "; ".join(said), name, found.usd, found.cached, asked, of_all)


def own_models(rows: Rows) -> dict[str, str]:
    """The models of the planner and of the solver where they aren't the main one, by role; the rows are of one run."""
    main = rows.texts("model")[:1]
    found = {role: rows.texts(column) for role, column in _MODELS.items()}
    return {role: names[0] for role, names in found.items() if names and names[:1] != main}


# Dollars of two architectures, had every prompt begun with the same tokens: where a cache begins to hold prompts.
#
# What is varied is the tokens of a context (instructions, tools, a document) at the beginning of all prompts of both
# architectures: each call's input and each prefix that it shares grow by as much. The context was sent before the run,
# its end is marked, and it is in time. What the model writes and how often it is called stays as it was.


@dataclass(frozen=True, slots=True)
class ContextPrices:
    """Dollars of each price that ships (`RULES`): contexts x the two architectures x their shared questions."""

    rows: pd.DataFrame
    """The rows of the second architecture, in the order of the dollars."""
    usd: dict[str, Floats]

    def ratios(self, price: str, some: NDArray[np.bool_] | slice = slice(None), of: int = 1) -> Floats:
        """The first architecture's mean dollars by the second's, over all or `some` questions: of each context.

        With `of` above 1 it is of each so many contexts together.
        """
        first, second = self.usd[price][:, :, some].mean(axis=2).reshape(-1, of, 2).mean(axis=1).T
        found: Floats = first / second
        return found


def context_prices(
    rows: pd.DataFrame, calls: pd.DataFrame, pair: tuple[str, str], contexts: Sequence[float]
) -> ContextPrices:
    """The dollars of a pair on the questions that both have. NaN where it isn't known what prompts share."""
    key = ["example_id", "trial"]
    sides = [rows[rows["architecture"] == name] for name in pair]
    shared = sides[0][key].merge(sides[1][key])
    sides = [side.merge(shared).sort_values(key, ignore_index=True) for side in sides]
    both = [calls_of(calls, Rows(side)) for side in sides]

    def dollars(tariff: Tariff) -> Floats:
        return np.array([[own.of_rows(priced(own, {"": tariff}, context=at).usd) for own in both] for at in contexts])

    usd = {name: dollars(named_tariff(name)) for name in RULES}
    return ContextPrices(sides[1], usd)
