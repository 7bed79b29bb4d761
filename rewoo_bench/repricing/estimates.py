"""A finished run under price sheets: what each architecture would have cost, with intervals.

    repriced = reprice("results/local/mine", prices=["openai"], models=["gpt-4o-mini"])
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

from rewoo_bench.argument_checks import as_path, check_names, check_switches
from rewoo_bench.config.price_sheets import CacheRule, Tariff, by_role, split_by_role, tariffs
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.repricing.tokens import COLUMNS, Tokens, own_models, recorded_tokens, reported_tokens
from rewoo_bench.runs.failed_rows import left_out
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.oracle_rows import oracle_rows
from rewoo_bench.runs.table_columns import read_columns
from rewoo_bench.stats.paired import Interval, mean_of, ratio_of_means

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ["run_id", "architecture", "example_id", "trial", "question_type", "hops", "tool_calls"]
BATCH = (
    "--batch: each round of model calls is one batch of all questions, at the batch price and without a cache; a "
    "question needs as many batches, one after the other, as the column `rounds` says"
)
_ORACLE = "an oracle answers at once: its calls are closer to each other than a model's, so more of them are cached"
_ONE_CACHE = "all architectures share one cache (--shared-cache)"
_OWN_CACHE = "each architecture, trial and model of a role has a cache of its own; --shared-cache gives them one"


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
    tokens: Tokens
    by_role: Mapping[Tariff, Mapping[str, Tariff]]
    """For each of `tariffs` the prices of the planner and of the solver that have a model of their own, by role."""

    def questions(self, tariff: Tariff | None = None) -> pd.DataFrame:
        """A row for each question, trial, architecture and model (or only those of one `tariff`)."""
        import pandas as pd

        return pd.concat([self._questions(each) for each in ((tariff,) if tariff else self.tariffs)], ignore_index=True)

    def _questions(self, tariff: Tariff) -> pd.DataFrame:
        found, cost = self.tokens.priced(self.by_role[tariff], batch=self.batch)
        return self.rows.assign(
            sheet=tariff.sheet,
            priced_model=tariff.model,
            input_tokens=self.tokens.input,
            cached_input_tokens=found[:, 0],
            cache_write_tokens=found[:, 1],
            output_tokens=self.tokens.output,
            rounds=self.tokens.rounds,
            repriced_usd=cost,
        )


def repriced_run(
    run: object,
    *,
    prices: str | Path | Sequence[str | Path],
    models: Sequence[str] = (),
    baseline: str | None = None,
    batch: bool = False,
    shared_cache: bool = False,
    recorded_cache: bool = False,
) -> RepricedData:
    """The run under each model's prices. Raises `UsageError`, and `DataError` where the run lacks what it takes."""
    check_names(models=models)
    check_switches(batch=batch, shared_cache=shared_cache, recorded_cache=recorded_cache)
    folder = as_path("run", run, "the folder of a run")
    rows = load(folder)
    if not len(rows):
        raise DataError(f"{str(folder)!r} has no rows")
    columns = read_columns(rows, COLUMNS)
    own = own_models(columns)
    sheets, given = split_by_role([*map(str, [prices] if isinstance(prices, str | Path) else prices)], own)
    chosen = tariffs(sheets, models)
    if not chosen:
        raise UsageError("no price sheet given")
    charged = {tariff: by_role(tariff, own, given) for tariff in chosen}
    names = [str(name) for name in rows["architecture"].unique()]
    if baseline is not None and baseline not in names:
        raise UsageError(unknown("baseline", baseline, names))
    used = [each for roles in charged.values() for each in roles.values()]
    rules = list(dict.fromkeys(tariff.rule for tariff in used if tariff.rule is not None))
    if recorded_cache:
        tokens = reported_tokens(folder, rows, rules)
    else:
        tokens = recorded_tokens(folder, columns, [] if batch else rules, shared=shared_cache)
    first = baseline or names[0]
    lines = [line for tariff in chosen for line in _lines(charged[tariff], tokens, rows, first, batch=batch)]
    notes = [*_notes(rules, rows, batch=batch, shared=shared_cache, recorded=recorded_cache), *tokens.notes]
    notes += _of_roles(charged, own)
    present = [name for name in _COLUMNS if name in rows.columns]
    kept = rows[present].assign(failed=left_out(rows))
    return RepricedData(folder, first, tuple(lines), tuple(chosen), tuple(notes), batch, kept, tokens, charged)


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


def _lines(
    tariffs: Mapping[str, Tariff], tokens: Tokens, rows: pd.DataFrame, baseline: str, *, batch: bool
) -> Iterator[Line]:
    tariff, (found, cost) = tariffs[""], tokens.priced(tariffs, batch=batch)
    input_tokens, output_tokens = tokens.input, tokens.output
    architectures = rows["architecture"].astype(str).to_numpy(dtype=object)
    questions, lost = np.unique(rows["example_id"].to_numpy(dtype=object), return_inverse=True)[1], left_out(rows)
    for name in dict.fromkeys(architectures):
        own = architectures == name
        some = own & ~lost

        def mean(values: NDArray[Any], some: NDArray[np.bool_] = some) -> Interval:
            return mean_of(values[some], clusters=questions[some])

        rounds = tokens.rounds[some]
        yield Line(
            sheet=tariff.sheet,
            model=tariff.model,
            architecture=name,
            total=int(own.sum()),
            failed=int((own & lost).sum()),
            input_tokens=mean(input_tokens),
            cached_share=_share(input_tokens[some], found[some, 0], questions[some]),
            cache_write_tokens=mean(found[:, 1]),
            output_tokens=mean(output_tokens),
            rounds=float(rounds.mean()) if len(rounds) else float("nan"),
            most_rounds=int(rounds.max(initial=0)),
            usd_per_1000=mean(1000 * cost),
            ratio=None if name == baseline else _ratio(cost, rows, (baseline, name), lost),
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
    rules: Sequence[CacheRule], rows: pd.DataFrame, *, batch: bool, shared: bool, recorded: bool
) -> Iterator[str]:
    if batch:
        yield BATCH
    elif rules and not recorded:
        yield _ONE_CACHE if shared else _OWN_CACHE
        if bool(oracle_rows(rows).any()):
            yield _ORACLE
