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

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rewoo_bench.analysis.stats.paired import Floats
from rewoo_bench.config.names import LOCAL, REPLAY, is_oracle
from rewoo_bench.config.price_sheets import (
    CacheRule,
    Tariff,
)
from rewoo_bench.errors import DataError
from rewoo_bench.runs.columns import CALLS, SHARED, UNPRICED_ROLES
from rewoo_bench.runs.folder import CALLS_FILE, read_table
from rewoo_bench.runs.manifest import no_run
from rewoo_bench.runs.rows import Rows, recorded_model

if TYPE_CHECKING:
    import pandas as pd


CACHE_PARTS = ("cached_input_tokens", "cache_write_tokens")
"""Parts of the input that have prices of their own, as the provider counted them."""
ROW_KEY = ("architecture", "example_id", "trial")
_NUMBERS = (
    *("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "billed_tokens"),
    *("billed_output_tokens", *(f"billed_{name}" for name in CACHE_PARTS), "latency_s", *SHARED),
)

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
    """The model that answered; of a replay that of the recorded run."""
    columns: Mapping[str, Floats]
    """Columns of calls.parquet, NaN where a value is missing, and what failed attempts took: `lost_input_tokens`,
    `lost_output_tokens` and of the input those of `CACHE_PARTS`. Cached tokens that nobody recorded are 0 there."""
    unrecorded: NDArray[np.bool_]
    """The calls of which no cached tokens were recorded."""
    embedded_by: tuple[str, ...]
    """Models that agents asked for embeddings, which a price of theirs alone could count."""

    @property
    def is_counted(self) -> bool:
        """Whether an endpoint counted the cached tokens of every answered call, and no local model, no oracle and no
        replay of which nobody says what it replays."""
        answered = self.columns["input_tokens"] > 0
        hosted = not any(model.startswith((LOCAL, REPLAY)) or is_oracle(model) for model in set(self.model))
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


def read_calls(folder: Path, rows: Rows | pd.DataFrame, *, embeddings: bool = False) -> Calls:
    """The calls of a run for rows of its questions.parquet, with `embeddings` or without. Raises `DataError`."""
    if not folder.is_dir():
        raise no_run(folder, CALLS_FILE)
    try:
        return calls_of(read_table(folder / CALLS_FILE, CALLS, columns=list(PRICED_COLUMNS)), Rows.of(rows), embeddings)
    except FileNotFoundError:
        raise DataError(f"{str(folder)!r} has no {CALLS_FILE}") from None


def calls_of(table: pd.DataFrame | pa.Table, rows: Rows, embeddings: bool = False) -> Calls:
    """The same from a table with `PRICED_COLUMNS`."""
    found = Rows(table)
    keys, all_keys = (zip(*(each[name].tolist() for name in ROW_KEY), strict=True) for each in (rows, found))
    places = {key: place for place, key in enumerate(keys)}
    row = np.array([places.get(key, -1) for key in all_keys], dtype=np.int64)
    roles = found["role"]
    unpriced = UNPRICED_ROLES - ({"embedding"} if embeddings else set())
    some = (found["kind"] == "model") & ~np.isin(roles, list(unpriced)) & (row >= 0)
    columns = {name: found[name][some] for name in _NUMBERS}
    unrecorded = np.isnan(columns["cached_input_tokens"])
    for name in CACHE_PARTS:
        columns[name] = np.nan_to_num(columns[name])
        columns[f"lost_{name}"] = np.maximum(np.nan_to_num(columns[f"billed_{name}"]) - columns[name], 0)
    for name in SHARED:  # of a call that failed
        columns[name] = np.where(columns["input_tokens"] == 0, 0.0, columns[name])
    lost = np.maximum(columns["billed_tokens"] - columns["input_tokens"] - columns["output_tokens"], 0)
    lost_output = np.clip(columns["billed_output_tokens"] - columns["output_tokens"], 0, lost)
    columns["lost_output_tokens"] = np.nan_to_num(lost_output)
    columns["lost_input_tokens"] = lost - columns["lost_output_tokens"]
    answering = {name: recorded_model(name) for name in dict.fromkeys(found["name"][some])}
    models = np.array([answering[name] for name in found["name"][some]], dtype=object)
    embedded_by = tuple(sorted(set(found["name"][(roles == "embedding") & (row >= 0)])))
    return Calls(len(rows), row[some], roles[some], models, columns, unrecorded, embedded_by)


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
    the rule, which finds nothing of failed attempts in the cache. `context` is that of `cached_tokens`.
    """
    parts = np.full((3, len(calls.row)), np.nan)
    for role in dict.fromkeys(calls.role):
        tariff, own = tariffs.get(role) or tariffs[""], calls.role == role
        sizes = {name: values[own] for name, values in calls.columns.items()}
        cached, written = cached_tokens(sizes, tariff.rule, context)
        lost_cached = lost_written = np.zeros_like(cached)
        if recorded:
            cached, written = (sizes[name] for name in CACHE_PARTS)
            lost_cached, lost_written = (sizes[f"lost_{name}"] for name in CACHE_PARTS)
        written = written * float(tariff.cache_write is not None)
        whole = sizes["input_tokens"] + context * (sizes["input_tokens"] > 0) + sizes["lost_input_tokens"]
        output = sizes["output_tokens"] + sizes["lost_output_tokens"]
        usd = tariff.cost_usd(whole, cached + lost_cached, written + lost_written, output)
        parts[:, own] = cached, written, usd
    return CallCosts(*parts)
