"""At which prices a run's dollars are: those that were paid, those of its models, or named ones.

pricing = pricing_of(["results/local/mine"], rows, manifests("results/local/mine"), ["openai"])
pricing.cost_usd                    # dollars of each row
pricing.under                       # "gpt-5-mini's prices of 2026-11-24 under OpenAI's rule"
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.call_costs import CallCosts, Calls, priced, read_calls
from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.config.price_sheets import (
    PRICE_KINDS,
    SHORT_PRICES,
    Tariff,
    by_role,
    named_tariff,
    price_of,
    read_price,
    split_by_role,
    unlisted,
)
from rewoo_bench.config.price_table import names_in_sheets
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.folder import load_table
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.rows import Rows, recorded_model

if TYPE_CHECKING:
    import pandas as pd

_Rows = TypeVar("_Rows", "pd.DataFrame", Rows)


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
    embedded_by: tuple[str, ...] = ()
    """Models of embeddings, which aren't in `cost_usd`: they have prices of their own."""

    def of(self, rows: _Rows) -> _Rows:
        """Rows with these dollars and cached tokens in `cost_usd` and `cached_input_tokens`; the same rows in order."""
        if self.cost_usd is None or self.cached is None:
            return rows
        columns: dict[str, Any] = {"cost_usd": self.cost_usd, "cached_input_tokens": self.cached}
        return rows.assign(**columns)


def own_prices(manifests: Manifests) -> Pricing:
    """The prices that the runs were paid at, by the names of their models."""
    every = ((name, prices) for run in manifests.values() for name, prices in (run.prices or {}).items() if prices)
    priced = [(name, tuple(sorted(prices.items()))) for name, prices in every]
    return _as_counted(priced, manifests) if priced else Pricing()


def _as_counted(
    priced: Iterable[tuple[str, Hashable]],
    manifests: Manifests,
    usd: Floats | None = None,
    cached: Floats | None = None,
) -> Pricing:
    """The models' own prices, with cached input as it was reported. `priced` are models with their prices."""
    models = [model for model, _ in dict.fromkeys(priced)]
    name, notes = " and ".join(f"{model}'s" for model in dict.fromkeys(models)) + " prices", list[str]()
    if differing := sorted({model for model in models if models.count(model) > 1}):
        name = "each run's own prices"
        notes = [f"the runs have different prices of {' and '.join(differing)}: --prices NAME puts them under one"]
    note = "; ".join([*notes, *_unlike_caches(manifests)])
    return Pricing(f"{name}, cached input as the endpoint counted it", note, name, usd, cached)


def _rates(tariff: Tariff) -> tuple[float, float, float]:
    return tariff.input, tariff.cache_read, tariff.output


def _unlike_caches(manifests: Manifests) -> list[str]:
    """A caution where runs on the same data asked another number of questions at once: what a cache holds when a call
    is sent depends on that."""
    counts: dict[str, set[int]] = {}
    for run in manifests.values():
        counts.setdefault(run.dataset.name, set()).update([run.concurrency] if run.concurrency else [])
    unlike = sorted(set().union(*(each for each in counts.values() if len(each) > 1)))
    said = f"cached input differs by the runs' concurrency alone: {' or '.join(map(str, unlike))} questions at once"
    return [said] if unlike else []


def of_dollars(pricing: Pricing) -> str:
    """A sentence on the prices of dollars, where they come from or why there are none."""
    return "; ".join(filter(None, [pricing.under and f"dollars are at {pricing.under}", pricing.note]))


EXAMPLE = "openai"
"""The price for a run whose own isn't known: of a local model, or of the oracle."""
SHOWN = {"none": "no cache", "openai": "OpenAI's rule", "anthropic-5m": "Anthropic's rule"}
"""The prices in tables of runs whose own aren't known, and their titles there."""
ALL = "all"
"""Every price with a short name (`SHORT_PRICES`), in `--prices`."""
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
    if "unknown" in models:
        return "an example, since the traces name no model: import --model NAME does"
    return f"an example, since no price of {' and '.join(models)} is known: {command} --prices NAME"


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
    embedded_by: tuple[str, ...]
    """Models of embeddings, which aren't in the dollars."""


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

    A price is a short name (`SHORT_PRICES`) or SHEET:MODEL, and others for the planner's or solver's own model:
    `["openai", "planner:openai:gpt-5"]`; with `own_roles` these have their own, where a sheet lists them. `rows` are
    those of `load(*runs)`, or of `load_table`. Raises `UsageError` for a price that doesn't exist, and `DataError`
    where a run has no calls.parquet.
    """
    of_runs = _calls_of_runs(runs, Rows.of(rows))
    models = [own_models(run.rows) for run in of_runs]
    of_calls = tuple(sorted({model for run in of_runs for model in run.calls.model}))
    is_counted = as_counted and all(run.calls.is_counted for run in of_runs)
    found = []
    for chosen in names:
        (price,), given = split_by_role(chosen, {role for each in models for role in each})
        tariffs = tuple(by_role(named_tariff(price), each, given, own=own_roles) for each in models)
        pairs = zip(of_runs, tariffs, strict=True)
        usd, cached = _of_rows(of_runs, (priced(run.calls, each, recorded=is_counted) for run, each in pairs))
        found.append(PricedRows(tariffs, usd, cached, is_counted, of_calls, _embedded_by(of_runs)))
    return found


class _RunCalls(NamedTuple):
    """Which of some rows are a run's own, these, and their calls."""

    own: NDArray[np.bool_]
    rows: Rows
    calls: Calls


def _calls_of_runs(runs: Sequence[str | Path], rows: Rows, *, embeddings: bool = False) -> list[_RunCalls]:
    found = []
    for run in map(Path, runs):
        own = np.isin(rows["run_id"], Rows(load_table(run)).texts("run_id"))
        mine = rows.where(own)
        folder = run if run.is_dir() else run.parent
        found.append(_RunCalls(own, mine, read_calls(folder, mine, embeddings=embeddings)))
    return found


def _embedded_by(runs: Sequence[_RunCalls]) -> tuple[str, ...]:
    return tuple(sorted({model for run in runs for model in run.calls.embedded_by}))


def _without_embeddings(pricing: Pricing, models: Sequence[str]) -> Pricing:
    """The pricing, which says that it has no price of the embeddings by these models."""
    if not models:
        return pricing
    note = f"the embeddings of {' and '.join(models)} aren't in the dollars"
    name = f"{pricing.name} and without embeddings"
    return replace(pricing, name=name, note="; ".join(filter(None, [pricing.note, note])), embedded_by=tuple(models))


def _of_rows(runs: Sequence[_RunCalls], costs: Iterable[CallCosts]) -> tuple[Floats, Floats]:
    """Dollars and cached tokens of each row, from the costs of each run's calls; NaN in rows of no run."""
    usd, cached = np.full((2, len(runs[0].own) if runs else 0), np.nan)
    for run, of_calls in zip(runs, costs, strict=True):
        usd[run.own], cached[run.own] = run.calls.of_rows(of_calls.usd), run.calls.of_rows(of_calls.cached)
    return usd, cached


def _by_model(calls: Calls, tariffs: Mapping[str, Tariff], *, recorded: bool) -> CallCosts:
    """The calls at the prices of their own models, whatever their role."""
    return priced(replace(calls, role=calls.model), tariffs, recorded=recorded)


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
                prices=f"{model}'s prices as given",
                source=GIVEN,
                own_notes=(),
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
    """The dollars that the runs would have recorded with `--price`: embeddings with a price are in them, and a judge
    never is. Raises `UsageError` for a model without one."""
    of_runs = _calls_of_runs(runs, rows)
    embedded_by = _embedded_by(of_runs)
    price = [value for value in price if not value.startswith("judge:")]
    if any(value.rpartition(":")[0] in ("embedding", *embedded_by) for value in price):
        of_runs, embedded_by = _calls_of_runs(runs, rows, embeddings=True), ()
    models = sorted({model for run in of_runs for model in run.calls.model})
    roles: dict[str, set[str]] = {"embedding": {name for run in of_runs for name in run.calls.embedded_by}}
    for run in of_runs:
        for role, name in own_models(run.rows).items():
            roles.setdefault(role, set()).add(name)
    named_by = {whose: roles.get(whose) or {whose} for value in price if (whose := value.rpartition(":")[0])}
    dollars = dict[str, dict[str, float]]()
    for value in price:
        whose, _, text = value.rpartition(":")
        named = named_by[whose] if whose else set(models).difference(*named_by.values())
        if unasked := named - set(models):
            raise UsageError(f"--price {value}: {unknown('model of the runs', min(unasked), models)}")
        if len(named) > 1:
            raise UsageError(f"--price {value}: it is one model's, and the runs asked {' and '.join(sorted(named))}")
        dollars |= dict.fromkeys(named, read_price(text))
    if missing := [model for model in models if model not in dollars]:
        raise UsageError(f"--price: no price of {missing[0]!r}; write {missing[0]}:input=0.15,cached=0.075,output=0.6")
    tariffs = given_tariffs(dollars)
    usd, cached = _of_rows(of_runs, (_by_model(run.calls, tariffs, recorded=True) for run in of_runs))
    priced_at = [(model, _rates(tariffs[model])) for model in models]
    return _without_embeddings(_as_counted(priced_at, manifests, usd, cached), embedded_by)


def own_or_listed(runs: Sequence[str | Path], rows: Rows, manifests: Manifests) -> Pricing | None:
    """The dollars that the runs recorded, else each call's at the price of its own model, where all have one.

    Cached input is as the endpoint counted it, where it did of every call or the run was given its prices; else as the
    rule of the price has it. None where neither is known of all rows that haven't failed.
    """
    scored = ~rows.failed
    if not np.isnan(rows["cost_usd"][scored]).any():
        unnamed = Pricing("prices that run.json doesn't name, cached input as the endpoint counted it")
        return known if (known := own_prices(manifests)).under else unnamed
    try:
        of_runs = _calls_of_runs(runs, rows)
    except DataError:
        return None
    is_counted, costs = all(run.calls.is_counted for run in of_runs), list[CallCosts]()
    tariffs = dict[tuple[str, Hashable], Tariff]()
    for run in of_runs:
        asked, names = set(run.calls.model), run.rows.texts("run_id")
        found = own_tariffs(asked, {name: manifests[name] for name in names if name in manifests})
        if asked - found.keys():
            return None
        tariffs |= {(model, _rates(tariff)): tariff for model, tariff in found.items()}
        is_given = all(tariff.source == GIVEN for tariff in found.values())
        costs.append(_by_model(run.calls, found, recorded=is_given or is_counted))
    usd, cached = _of_rows(of_runs, costs)
    if not tariffs or np.isnan(usd[scored]).any():
        return None
    if is_counted or all(tariff.source == GIVEN for tariff in tariffs.values()):
        pricing = _as_counted(tariffs, manifests, usd, cached)
    else:
        unders, names = (sorted({getattr(each, of) for each in tariffs.values()}) for of in ("brief", "name"))
        notes = ["each model is at its own prices"] if len(unders) > 1 else []
        note = "; ".join([*notes, *_unlike_caches(manifests)])
        pricing = Pricing(" and ".join(unders), note, " and ".join(names), usd, cached)
    is_elsewhere = any(run.options.get("api_base") for run in manifests.values())
    if is_elsewhere and any(tariff.source != GIVEN for tariff in tariffs.values()):
        of_server = "they are the provider's prices, since what the server at --api-base takes isn't known"
        pricing = replace(pricing, note="; ".join(filter(None, [pricing.note, of_server])))
    return _without_embeddings(pricing, _embedded_by(of_runs))


def expected_dollars(
    tokens_of_roles: Mapping[str, tuple[float, float]], models: Mapping[str, str]
) -> tuple[float, list[str]]:
    """Dollars of input and output tokens by role, at the prices that `pricings_of` has for a run without known dollars,
    and these prices by name. `models` are those of the roles, `""` of every other; nothing is cached.
    """
    named = {role: recorded_model(name) for role, name in models.items()}
    own = {role: name for role, name in named.items() if role}
    tariffs = by_role(named_tariff(price_of(named[""]) or EXAMPLE), own, {}, own=True)
    used = {role: tariffs[role].without_cache() for role in tokens_of_roles}
    usd = sum(used[role].cost_usd(given, 0, 0, written) for role, (given, written) in tokens_of_roles.items())
    return usd, [each.name for each in used.values()]


def with_dollars(runs: Sequence[str | Path], rows: Rows, manifests: Manifests) -> tuple[Rows, Pricing]:
    """The rows with the dollars of `own_or_listed` in `cost_usd`, and at which prices they are.

    Where none are known, or not those of embeddings, the rows as they are, and prices without a name.
    """
    found = own_or_listed(runs, rows, manifests)
    if found is None or found.embedded_by:
        return rows, Pricing()
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
    (`SHORT_PRICES`). Those of a role hold for each. A `price` is `[MODEL:]input=0.15,cached=0.075,output=0.6`, or
    begins with the role of a model, as that of a run.

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
    main, planners, solvers = (
        list(dict.fromkeys(map(recorded_model, rows.texts(name)))) for name in ("model", *_MODELS.values())
    )
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
    names = list(dict.fromkeys(each for name in names for each in (SHORT_PRICES if name == ALL else [name])))
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
    under, name = tariff.brief + (f" ({', '.join(others)})" if others else ""), tariff.name
    if found.is_counted:
        every = (tariff, *(each for run in found.tariffs for each in run.values()))
        counted = _as_counted([(each.model, _rates(each)) for each in every], {})
        under, name = counted.under, counted.name
    said = [*notes, *_unlike_caches(manifests)]
    for role, models in own.items():
        as_others = any(run.get(role) == tariff for run in found.tariffs)
        for model in sorted(models) if as_others else ():
            if tariff.model not in names_in_sheets(model):
                of = f"the {role}'s model {model} isn't in the sheet {tariff.sheet}"
                said.append(f"{of}, and is counted as the other calls are: --prices {role}:SHEET:MODEL")
    of_all = None if others else tariff
    pricing = Pricing(under, "; ".join(said), name, found.usd, found.cached, asked, of_all)
    return _without_embeddings(pricing, found.embedded_by)


def own_models(rows: Rows) -> dict[str, str]:
    """The models of the planner and of the solver where they aren't the main one, by role; the rows are of one run."""
    main = rows.texts("model")[:1]
    found = {role: rows.texts(column) for role, column in _MODELS.items()}
    return {role: names[0] for role, names in found.items() if names and names[:1] != main}
