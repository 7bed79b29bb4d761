"""Dollars of each row for the sentences of a comparison (analysis/verdict.py): the run's own, or those of a sheet.

    pricing = priced(["results/local/mine"], rows, manifests)                       # an example where none is known
    pricing = priced(["results/local/mine"], rows, manifests, ["openai:gpt-4o-mini"])
    pricing.under       # "gpt-4o-mini's prices, cached input by OpenAI's rule, with up to 8 questions at once"

What a cache would have held is worked out from the prompts in the runs' journals, as `reprice` does.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.verdict import Pricing, at_once, own_prices
from rewoo_bench.config.price_sheets import Tariff, by_role, split_by_role, tariff_of
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.repricing.recorded import RECORDED_CACHE
from rewoo_bench.repricing.tokens import COLUMNS, own_models, recorded_tokens
from rewoo_bench.runs.failed_rows import failed
from rewoo_bench.runs.folder import load_table
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.table_columns import Column, read_columns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

EXAMPLE = "openai:gpt-5-mini"
"""Prices for a run whose own aren't known: of a local model, or of the oracle."""
MOST_ROWS = 20_000  # of runs whose journals are read without being asked to: more take minutes
_OTHERS = "others: rewoo-bench compare --prices SHEET:MODEL"


def priced(
    runs: Sequence[str | Path], rows: pd.DataFrame | pa.Table, manifests: Manifests, prices: Sequence[str] = ()
) -> Pricing:
    """The dollars of some runs: of `prices` ([ROLE:]SHEET:MODEL), else their own, else those of `EXAMPLE`.

    The planner and the solver have the prices of their own model where the sheet has them, or `prices` for their role.

    `rows` are those of `load(*runs)`, or of `load_table`. Raises `UsageError` for a sheet that doesn't exist, and
    `DataError` where `prices` are given and a run has no prompts.
    """
    paid = read_columns(rows, ["cost_usd"])["cost_usd"].values[~failed(rows)]
    if not prices and not np.isnan(paid).any():
        return own_prices(manifests)
    if not prices and len(rows) > MOST_ROWS:
        return Pricing(note=f"no dollars of more than {MOST_ROWS:,} rows unless asked for: --prices {EXAMPLE}")
    cost, columns = np.full(len(rows), np.nan), read_columns(rows, ["run_id", *COLUMNS])
    try:
        charged = [_add(cost, run, columns, prices or [EXAMPLE]) for run in map(Path, runs)]
    except DataError as error:
        if prices:
            chosen = " ".join(f"--prices {shlex.quote(each)}" for each in prices)
            command = f"rewoo-bench reprice {shlex.join(map(str, runs))} {chosen} --recorded-cache"
            cause = error.args[0].removesuffix(f"; {RECORDED_CACHE}")
            raise DataError(f"{cause}; the cached tokens that the provider reported are priced by: {command}") from None
        return Pricing(note=f"no dollars: {error.args[0].partition('; ')[0]}")
    tariff = charged[0][""]
    others = dict.fromkeys(
        f"{role}: {each.model}'s" for roles in charged for role, each in roles.items() if each != tariff
    )
    return Pricing(_under(tariff, list(others), at_once(manifests)), _note(tariff, columns, chosen=bool(prices)), cost)


def _add(
    cost: NDArray[np.float64], run: Path, columns: Mapping[str, Column], prices: Sequence[str]
) -> dict[str, Tariff]:
    """Prices the rows of one run; returns the prices of each role."""
    if not run.is_dir():
        raise DataError(f"{str(run)!r} has no prompts: it is no run's folder")
    ids = read_columns(load_table(run), ["run_id"])["run_id"].names
    own = np.isin(columns["run_id"].values, [columns["run_id"].names.index(id_) for id_ in ids])
    mine = {name: column.of(own) for name, column in columns.items()}
    models = own_models(mine)
    (sheet, *more), given = split_by_role(prices, models)
    if more:
        raise UsageError(f"--prices: give one SHEET:MODEL for the main model, got {sheet} and {more[0]}")
    tariffs = by_role(tariff_of(sheet), models, given)
    rules = list(dict.fromkeys(tariff.rule for tariff in tariffs.values() if tariff.rule is not None))
    tokens = recorded_tokens(run, mine, rules, shared=False)
    cost[own] = tokens.priced(tariffs)[1]
    return tariffs


def _under(tariff: Tariff, others: Sequence[str], when: str) -> str:
    roles = f" ({', '.join(others)})" if others else ""
    return f"{tariff.model}'s prices{roles}, " + (
        f"cached input by {tariff.title}'s rule{when}" if tariff.rule else "without a cache"
    )


def _note(tariff: Tariff, columns: Mapping[str, Column], *, chosen: bool) -> str:
    sheet = f"the sheet {tariff.sheet} of {tariff.as_of}"
    if chosen:
        return f"{tariff.model}'s prices are those of {sheet}"
    models = " and ".join(columns["model"].names_in_use)
    return f"{tariff.model}'s prices are hypothetical, since no prices are known for {models}: {sheet} ({_OTHERS})"
