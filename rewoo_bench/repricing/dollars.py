"""Dollars of each row for the sentences of a comparison (analysis/verdict.py): the run's own, or those of a sheet.

    pricing = priced(["results/local/mine"], rows, manifests)                       # an example where none is known
    pricing = priced(["results/local/mine"], rows, manifests, "openai:gpt-4o-mini")
    pricing.under       # "gpt-4o-mini's prices, cached input by OpenAI's rule"

What a cache would have held is worked out from the prompts in the runs' journals, as `reprice` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rewoo_bench.analysis.verdict import Pricing, own_prices
from rewoo_bench.config.price_sheets import CacheRule, Tariff, tariff_of
from rewoo_bench.errors import DataError
from rewoo_bench.repricing.tokens import recorded_tokens
from rewoo_bench.runs.failed_rows import failed
from rewoo_bench.runs.manifest import Manifests

if TYPE_CHECKING:
    import pandas as pd

EXAMPLE = "openai:gpt-5-mini"
"""Prices for a run whose own aren't known: of a local model, or of the oracle."""
MOST_ROWS = 20_000  # of runs whose journals are read without being asked to: more take minutes
_OTHERS = "others: rewoo-bench compare --prices SHEET:MODEL"


def priced(runs: Sequence[str | Path], rows: pd.DataFrame, manifests: Manifests, prices: str | None = None) -> Pricing:
    """The dollars of some runs: of `prices` (SHEET:MODEL), else their own, else those of `EXAMPLE`.

    `rows` are those of `load(*runs)`. Raises `UsageError` for a sheet that doesn't exist, and `DataError` where
    `prices` are given and a run has no prompts.
    """
    if prices is None and bool(rows.loc[~failed(rows), "cost_usd"].notna().all()):
        return own_prices(manifests)
    tariff = tariff_of(prices or EXAMPLE)
    if prices is None and len(rows) > MOST_ROWS:
        return Pricing(note=f"no dollars of more than {MOST_ROWS:,} rows unless asked for: --prices {EXAMPLE}")
    cost = np.full(len(rows), np.nan)
    try:
        for run in map(Path, runs):
            _add(cost, run, rows, tariff)
    except DataError as error:
        if prices is not None:
            raise
        return Pricing(note=f"no dollars: {error.args[0].partition('; ')[0]}")
    return Pricing(_under(tariff), _note(tariff, rows, chosen=prices is not None), _series(cost, rows))


def _add(cost: np.ndarray[tuple[int], np.dtype[np.float64]], run: Path, rows: pd.DataFrame, tariff: Tariff) -> None:
    """Prices the rows of one run."""
    from rewoo_bench.runs.folder import load

    if not run.is_dir():
        raise DataError(f"{str(run)!r} has no prompts: it is no run's folder")
    own = (rows["run_id"].astype(str).isin(load(run)["run_id"].astype(str).unique())).to_numpy(bool)
    rules: list[CacheRule] = [] if tariff.rule is None else [tariff.rule]
    tokens = recorded_tokens(run, rows[own], rules, shared=False)
    cached, written = tokens.found[tariff.rule].T
    cost[own] = tariff.cost_usd(tokens.input, cached, written, tokens.output)


def _series(cost: np.ndarray[tuple[int], np.dtype[np.float64]], rows: pd.DataFrame) -> pd.Series:
    import pandas as pd

    return pd.Series(cost, index=rows.index)


def _under(tariff: Tariff) -> str:
    return f"{tariff.model}'s prices, " + (
        f"cached input by {tariff.title}'s rule" if tariff.rule else "without a cache"
    )


def _note(tariff: Tariff, rows: pd.DataFrame, *, chosen: bool) -> str:
    sheet = f"the sheet {tariff.sheet} of {tariff.as_of}"
    if chosen:
        return f"{tariff.model}'s prices are those of {sheet}"
    models = " and ".join(dict.fromkeys(rows["model"].astype(str)))
    return f"{tariff.model}'s prices are hypothetical, since {models} has none: {sheet} ({_OTHERS})"
