"""Dollars of each row for the sentences and tables of a run: its own, or those under a named price.

    pricing = pricing_of(["results/local/mine"], rows, manifests)              # an example where none is known
    pricing = pricing_of(["results/local/mine"], rows, manifests, ["openai"])  # a short name, or SHEET:MODEL
    pricing.under       # "OpenAI's rule: prefixes of 1,024 tokens and more, in blocks of 128; gpt-5-mini's prices …"

What a cache would have held is worked out from calls.parquet (call_prices.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.call_prices import ROW_KEY, STAND_IN, priced, read_calls
from rewoo_bench.analysis.verdict import Pricing, at_once, own_prices
from rewoo_bench.config.price_sheets import RULES, Tariff, by_role, named_tariff, split_by_role
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.failed_rows import failed
from rewoo_bench.runs.folder import load_table
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.table_columns import Column, read_columns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

EXAMPLE = "openai"
"""The price for a run whose own isn't known: of a local model, or of the oracle."""
SHOWN = {"none": "no cache", "openai": "OpenAI's rule", "anthropic-5m": "Anthropic's rule"}
"""The prices in tables of runs whose own aren't known, and their titles there."""
_MODELS = {"planner": "planner_model", "solver": "solver_model"}
_COLUMNS = ("run_id", *ROW_KEY, "model", *_MODELS.values())


@dataclass(frozen=True, slots=True)
class PricedRows:
    """Dollars of each row under a named price, NaN where they aren't known, and the prices of each role."""

    tariffs: tuple[Mapping[str, Tariff], ...]
    """Of each run."""
    usd: NDArray[np.float64]
    stands_in: bool
    """Whether what llama.cpp reported stands in for what prompts share (`STAND_IN`)."""


def priced_rows(
    runs: Sequence[str | Path], rows: pd.DataFrame | pa.Table, names: Sequence[Sequence[str]]
) -> list[PricedRows]:
    """Dollars of each row of some runs under each of some prices.

    A price is a short name (`RULES`) or SHEET:MODEL, and others for the planner's or solver's own model:
    `["openai", "planner:openai:gpt-5"]`. `rows` are those of `load(*runs)`, or of `load_table`. Raises `UsageError`
    for a price that doesn't exist, and `DataError` where a run has no calls.parquet.
    """
    columns = read_columns(rows, _COLUMNS)
    found: list[tuple[list[Mapping[str, Tariff]], NDArray[np.float64]]] = [
        ([], np.full(len(columns["trial"].values), np.nan)) for _ in names
    ]
    stands_in = False
    for run, own in _rows_of_runs(runs, columns):
        mine = {name: column.of(own) for name, column in columns.items()}
        calls = read_calls(run, mine)
        stands_in |= calls.stands_in
        for (tariffs, usd), chosen in zip(found, names, strict=True):
            tariffs.append(_tariffs(chosen, own_models(mine)))
            usd[own] = calls.of_rows(priced(calls, tariffs[-1]).usd)
    return [PricedRows(tuple(tariffs), usd, stands_in) for tariffs, usd in found]


def pricing_of(
    runs: Sequence[str | Path], rows: pd.DataFrame | pa.Table, manifests: Manifests, prices: Sequence[str] = ()
) -> Pricing:
    """The dollars of some runs: of `prices` (as in `priced_rows`), else their own, else those of `EXAMPLE`.

    Raises `UsageError` for a price that doesn't exist, and `DataError` where `prices` are given and a run lacks what
    it takes.
    """
    paid = read_columns(rows, ["cost_usd"])["cost_usd"].values[~failed(rows)]
    if not prices and not np.isnan(paid).any():
        return own_prices(manifests)
    try:
        (found,) = priced_rows(runs, rows, [prices or [EXAMPLE]])
        if np.isnan(found.usd[~failed(rows)]).any():
            raise DataError(UNKNOWN)
    except DataError as error:
        if prices:
            raise
        return Pricing(note=f"no dollars: {error.args[0]}")
    tariff = found.tariffs[0][""]
    roles = (each for run in found.tariffs for each in run.items() if each[1] != tariff)
    others = list(dict.fromkeys(f"{role}: {each.model}'s" for role, each in roles))
    under = tariff.under + (f" ({', '.join(others)})" if others else "") + at_once(manifests)
    models = " and ".join(read_columns(rows, ["model"])["model"].names_in_use)
    notes = (
        []
        if prices
        else [f"the price is an example, since none is known for {models} (compare --prices NAME: {_NAMES})"]
    )
    return Pricing(under, "; ".join([*notes, *([STAND_IN] if found.stands_in else [])]), found.usd)


_NAMES = ", ".join(RULES)
UNKNOWN = (
    "calls.parquet doesn't say what its prompts share with earlier ones, as in older runs; "
    "an older run with its journal gets it by: rewoo-bench run --resume RUN"
)


def own_models(columns: Mapping[str, Column]) -> dict[str, str]:
    """The models of the planner and of the solver where they aren't the main one, by role; `columns` are of one run."""
    main = columns["model"].names_in_use[:1]
    found = {role: columns[column].names_in_use for role, column in _MODELS.items()}
    return {role: names[0] for role, names in found.items() if names and names[:1] != main}


def _tariffs(prices: Sequence[str], models: Mapping[str, str]) -> dict[str, Tariff]:
    (price, *more), given = split_by_role(prices, models)
    if more:
        raise UsageError(f"--prices: give one price for the main model, got {price} and {more[0]}")
    return by_role(named_tariff(price), models, given)


def _rows_of_runs(
    runs: Sequence[str | Path], columns: Mapping[str, Column]
) -> Iterator[tuple[Path, NDArray[np.bool_]]]:
    """The folder of each run, and a mask of its rows."""
    for run in map(Path, runs):
        folder = run if run.is_dir() else run.parent
        ids = read_columns(load_table(run), ["run_id"])["run_id"].names
        names = columns["run_id"].names
        yield folder, np.isin(columns["run_id"].values, [names.index(id_) for id_ in ids if id_ in names])
