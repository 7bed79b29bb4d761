"""A finished run under price sheets: what each architecture would have cost, with intervals.

    repriced = reprice("results/local/mine", prices=["openai", "anthropic-5m"])
    print(repriced)                 # a table for each model: tokens, cached share, dollars with intervals
    repriced.lines[0].usd_per_1000  # Interval(estimate=0.41, low=0.38, high=0.44, n=100)
    repriced.questions()            # a row for each question, architecture and model

Intervals are those of `compare`: 95%, the trials of a question are one observation, and ratios are paired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.analysis.prices import STAND_IN, UNKNOWN, CallCosts, Calls, own_models, priced, read_calls
from rewoo_bench.analysis.stats.paired import Interval, mean_of, ratio_of_means
from rewoo_bench.config.price_sheets import (
    RULES,
    Tariff,
    by_role,
    named_tariff,
    sheet_and_model,
    split_by_role,
    tariffs,
)
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.rows import failed, left_out, oracle_rows
from rewoo_bench.runs.table_columns import read_columns
from rewoo_bench.text.argument_checks import as_path, check_names, check_switches

if TYPE_CHECKING:
    import pandas as pd


_COLUMNS = ["run_id", "architecture", "example_id", "trial", "question_type", "hops", "tool_calls"]
BATCH = (
    "--batch: each round of model calls is one batch of all questions, at the batch price and without a cache; a "
    "question needs as many batches, one after the other, as the column `rounds` says"
)
_CLOCKS_DIFFER_S = 2e-5
_ORACLE = "an oracle answers at once: its calls are closer to each other than a model's, so more of them are cached"
_OWN_CACHE = "each architecture, trial and model of a role has a cache of its own, and a hit is certain"
_REPORTED = "cached tokens are those that the provider reported, whatever the sheet's cache is (--recorded-cache)"


@dataclass(frozen=True, slots=True)
class Line:
    """What an architecture would have cost with a model. Means are per question, intervals are 95%."""

    sheet: str
    model: str
    architecture: str
    total: int
    failed: int
    """Rows that the infrastructure failed: they are in no mean."""
    input_tokens: Interval
    cached_share: Interval
    """Of the input tokens."""
    cache_write_tokens: Interval
    output_tokens: Interval
    rounds: float
    most_rounds: int
    usd_per_1000: Interval
    ratio: Interval | None
    """Dollars of this architecture per dollar of the baseline, paired by question; None for the baseline."""


@dataclass(frozen=True)
class RepricedData:
    """The result of `reprice`."""

    folder: Path
    baseline: str
    lines: tuple[Line, ...]
    tariffs: tuple[Tariff, ...]
    notes: tuple[str, ...]
    batch: bool
    rows: pd.DataFrame
    """Some columns of the run's rows, with the tokens of each."""
    calls: Calls
    rounds: NDArray[np.int64]
    """Of each row the longest chain of calls: as many batches, one after the other."""
    recorded: bool
    """Whether cached tokens are those that the provider reported."""
    by_role: Mapping[Tariff, Mapping[str, Tariff]]
    """For each of `tariffs` the prices of the planner and of the solver that have a model of their own, by role."""

    def questions(self, tariff: Tariff | None = None) -> pd.DataFrame:
        """A row for each question, trial, architecture and model (or only those of one `tariff`)."""
        import pandas as pd

        return pd.concat([self._questions(each) for each in ((tariff,) if tariff else self.tariffs)], ignore_index=True)

    def _questions(self, tariff: Tariff) -> pd.DataFrame:
        costs, sizes = self.costs(tariff), self.calls.columns
        return self.rows.assign(
            sheet=tariff.sheet,
            priced_model=tariff.model,
            input_tokens=self.calls.of_rows(sizes["input_tokens"] + sizes["lost_input_tokens"]),
            cached_input_tokens=self.calls.of_rows(costs.cached),
            cache_write_tokens=self.calls.of_rows(costs.written),
            output_tokens=self.calls.of_rows(sizes["output_tokens"] + sizes["lost_output_tokens"]),
            rounds=self.rounds,
            repriced_usd=self.calls.of_rows(costs.usd),
        )

    def costs(self, tariff: Tariff) -> CallCosts:
        """Cached and written tokens and dollars of each of `calls`."""
        return priced(self.calls, self.by_role[tariff], batch=self.batch, recorded=self.recorded)


def repriced_run(
    run: object,
    *,
    prices: str | Path | Sequence[str | Path],
    models: Sequence[str] = (),
    baseline: str | None = None,
    batch: bool = False,
    recorded_cache: bool = False,
) -> RepricedData:
    """The run under each model's prices. Raises `UsageError`, and `DataError` where the run lacks what it takes."""
    check_names(models=models)
    check_switches(batch=batch, recorded_cache=recorded_cache)
    folder = as_path("run", run, "the folder of a run")
    rows = load(folder)
    if not len(rows):
        raise DataError(f"{str(folder)!r} has no rows")
    own = own_models(read_columns(rows, ["model", "planner_model", "solver_model"]))
    names, given = split_by_role([*map(str, [prices] if isinstance(prices, str | Path) else prices)], own)
    chosen = _chosen(names, models)
    if not chosen:
        raise UsageError("no price given")
    charged = {tariff: by_role(tariff, own, given) for tariff in chosen}
    architectures = [str(name) for name in rows["architecture"].unique()]
    if baseline is not None and baseline not in architectures:
        raise UsageError(unknown("baseline", baseline, architectures))
    calls = read_calls(folder, rows)
    notes = [*_notes(calls, rows, charged, batch=batch, recorded=recorded_cache), *_of_roles(charged, own)]
    present = [name for name in _COLUMNS if name in rows.columns]
    kept = rows[present].assign(failed=left_out(rows))
    made = RepricedData(
        folder, baseline or architectures[0], (), tuple(chosen), tuple(notes), batch, kept, calls, _rounds(calls),
        recorded_cache, charged,
    )  # fmt: skip
    return replace(made, lines=tuple(line for tariff in chosen for line in _lines(made, tariff, rows)))


def _chosen(names: Sequence[str], models: Sequence[str]) -> list[Tariff]:
    """The prices that are named: a short name's or SHEET:MODEL, or all of a sheet's; of `models` only, where given."""
    sheets = {name: sheet_and_model(name) for name in names}
    if models:
        if one := next((name for name, (_, model) in sheets.items() if model), None):
            raise UsageError(f"--prices {one} names its model: leave it out there, or leave out --model")
        return tariffs([sheet for sheet, _ in sheets.values()], models)
    found: list[Tariff] = []
    for name, (sheet, model) in sheets.items():
        found += [named_tariff(name)] if model or name in RULES else tariffs([sheet])
    return found


def _rounds(calls: Calls) -> NDArray[np.int64]:
    """Of each row the longest chain of calls, each begun when the one before had ended."""
    rounds, until = np.zeros(calls.rows, dtype=np.int64), np.full(calls.rows, -np.inf)
    start = calls.columns["started_at"]
    end = start + np.nan_to_num(calls.columns["latency_s"])
    for place in np.argsort(end, kind="stable"):
        row = calls.row[place]
        if start[place] >= until[row] - _CLOCKS_DIFFER_S:
            rounds[row] += 1
            until[row] = end[place]
    return rounds


def _of_roles(charged: Mapping[Tariff, Mapping[str, Tariff]], own: Mapping[str, str]) -> Iterator[str]:
    """Which prices a role's own model has."""
    for role, model in own.items():
        listed, missing = [], []
        for tariff, roles in charged.items():
            at = roles[role]
            if at is tariff and tariff.model not in (model, model.partition("/")[2]):
                missing.append(tariff.sheet)
            else:
                listed.append(f"{at.model}'s prices of the sheet {at.sheet}")
        if listed:
            yield f"the {role}'s model {model} is counted at {' and '.join(dict.fromkeys(listed))}"
        if missing:
            sheets = " or ".join(dict.fromkeys(missing))
            yield (
                f"the {role}'s model {model} isn't in the sheet {sheets}, and is counted as the other calls are: "
                f"--prices {role}:SHEET:MODEL"
            )


def _lines(made: RepricedData, tariff: Tariff, rows: pd.DataFrame) -> Iterator[Line]:
    priced_rows = made.questions(tariff)
    cost = priced_rows["repriced_usd"].to_numpy(float)
    if np.isnan(cost[~failed(rows)]).any():
        raise DataError(f"{str(made.folder)!r}: {UNKNOWN}; or take what the provider reported: --recorded-cache")
    architectures = rows["architecture"].astype(str).to_numpy(dtype=object)
    questions, lost = np.unique(rows["example_id"].to_numpy(dtype=object), return_inverse=True)[1], left_out(rows)
    for name in dict.fromkeys(architectures):
        own = architectures == name
        some = own & ~lost

        def of(column: str, some: NDArray[np.bool_] = some) -> NDArray[Any]:
            return priced_rows[column].to_numpy(float)[some]

        def mean(values: NDArray[Any], some: NDArray[np.bool_] = some) -> Interval:
            return mean_of(values, clusters=questions[some])

        rounds = made.rounds[some]
        yield Line(
            sheet=tariff.sheet,
            model=tariff.model,
            architecture=name,
            total=int(own.sum()),
            failed=int((own & lost).sum()),
            input_tokens=mean(of("input_tokens")),
            cached_share=_share(of("input_tokens"), of("cached_input_tokens"), questions[some]),
            cache_write_tokens=mean(of("cache_write_tokens")),
            output_tokens=mean(of("output_tokens")),
            rounds=float(rounds.mean()) if len(rounds) else float("nan"),
            most_rounds=int(rounds.max(initial=0)),
            usd_per_1000=mean(1000 * of("repriced_usd")),
            ratio=None if name == made.baseline else _ratio(cost, rows, (made.baseline, name), lost),
        )


def _share(whole: NDArray[Any], part: NDArray[Any], questions: NDArray[Any]) -> Interval:
    share = ratio_of_means(whole, part, clusters=questions)
    return replace(share, high=min(share.high, 1.0)) if np.isfinite(share.high) else share


def _ratio(cost: NDArray[Any], rows: pd.DataFrame, pair: tuple[str, str], lost: NDArray[np.bool_]) -> Interval:
    """Dollars of the second per dollar of the first, over the questions that neither failed."""
    frame = rows[["architecture", "example_id", "trial"]].assign(cost=cost)[~lost]
    first, second = (frame[(frame["architecture"] == name).to_numpy(bool)] for name in pair)
    both = first.merge(second, on=["example_id", "trial"], suffixes=("_a", "_b"))
    labels = np.unique(both["example_id"].to_numpy(dtype=object), return_inverse=True)[1]
    return ratio_of_means(both["cost_a"], both["cost_b"], clusters=labels)


def _notes(
    calls: Calls, rows: pd.DataFrame, charged: Mapping[Tariff, Mapping[str, Tariff]], *, batch: bool, recorded: bool
) -> Iterator[str]:
    if batch:
        yield BATCH
    elif recorded:
        yield _REPORTED
    elif any(tariff.rule for roles in charged.values() for tariff in roles.values()):
        yield _OWN_CACHE
        if calls.stands_in:
            yield STAND_IN
        if bool(oracle_rows(rows).any()):
            yield _ORACLE
