"""Dollars of each row for the sentences of a comparison (analysis/verdict.py): the run's own, or those of a sheet.

    pricing = priced(["results/local/mine"], rows, manifests)                       # an example where none is known
    pricing = priced(["results/local/mine"], rows, manifests, "openai:gpt-4o-mini")
    pricing.under       # "gpt-4o-mini's prices, cached input by OpenAI's rule"

What a cache would have held is worked out from the prompts in the runs' journals, as `reprice` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.verdict import Pricing, own_prices
from rewoo_bench.config.price_sheets import CacheRule, Tariff, tariff_of
from rewoo_bench.errors import DataError
from rewoo_bench.repricing.tokens import COLUMNS, recorded_tokens
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
    runs: Sequence[str | Path], rows: pd.DataFrame | pa.Table, manifests: Manifests, prices: str | None = None
) -> Pricing:
    """The dollars of some runs: of `prices` (SHEET:MODEL), else their own, else those of `EXAMPLE`.

    `rows` are those of `load(*runs)`, or of `load_table`. Raises `UsageError` for a sheet that doesn't exist, and
    `DataError` where `prices` are given and a run has no prompts.
    """
    paid = read_columns(rows, ["cost_usd"])["cost_usd"].values[~failed(rows)]
    if prices is None and not np.isnan(paid).any():
        return own_prices(manifests)
    tariff = tariff_of(prices or EXAMPLE)
    if prices is None and len(rows) > MOST_ROWS:
        return Pricing(note=f"no dollars of more than {MOST_ROWS:,} rows unless asked for: --prices {EXAMPLE}")
    cost, columns = np.full(len(rows), np.nan), read_columns(rows, ["run_id", *COLUMNS])
    try:
        for run in map(Path, runs):
            _add(cost, run, columns, tariff)
    except DataError as error:
        if prices is not None:
            raise
        return Pricing(note=f"no dollars: {error.args[0].partition('; ')[0]}")
    return Pricing(_under(tariff), _note(tariff, columns, chosen=prices is not None), cost)


def _add(cost: NDArray[np.float64], run: Path, columns: Mapping[str, Column], tariff: Tariff) -> None:
    """Prices the rows of one run."""
    if not run.is_dir():
        raise DataError(f"{str(run)!r} has no prompts: it is no run's folder")
    ids = read_columns(load_table(run), ["run_id"])["run_id"].names
    own = np.isin(columns["run_id"].values, [columns["run_id"].names.index(id_) for id_ in ids])
    rules: list[CacheRule] = [] if tariff.rule is None else [tariff.rule]
    mine = {name: column.of(own) for name, column in columns.items()}
    tokens = recorded_tokens(run, mine, rules, shared=False)
    cached, written = tokens.found[tariff.rule].T
    cost[own] = tariff.cost_usd(tokens.input, cached, written, tokens.output)


def _under(tariff: Tariff) -> str:
    return f"{tariff.model}'s prices, " + (
        f"cached input by {tariff.title}'s rule" if tariff.rule else "without a cache"
    )


def _note(tariff: Tariff, columns: Mapping[str, Column], *, chosen: bool) -> str:
    sheet = f"the sheet {tariff.sheet} of {tariff.as_of}"
    if chosen:
        return f"{tariff.model}'s prices are those of {sheet}"
    models = " and ".join(columns["model"].names_in_use)
    return f"{tariff.model}'s prices are hypothetical, since {models} has none: {sheet} ({_OTHERS})"
