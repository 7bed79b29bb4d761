"""Tokens of each row of a run, and how many of them a cache would have held.

    columns = read_columns(rows, COLUMNS)
    tokens = recorded_tokens(folder, columns, [rule], shared=False)     # from the journal's prompts
    tokens.found[rule]                                                  # cached and written, for each row
    tokens.priced({"": tariff, "planner": another})                     # the same under prices, and dollars

Each architecture has a cache of its own, as a user who runs one of them would have; so does each trial, and each model
of a role. `shared` gives the whole run one cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewoo_bench.config.price_sheets import CacheRule, Tariff
from rewoo_bench.errors import DataError
from rewoo_bench.journal.records import TaskKey
from rewoo_bench.repricing.prefix_cache import AutomaticCache, ExplicitCache
from rewoo_bench.repricing.recorded import UNPRICED_ROLES, RecordedCalls, recorded_calls
from rewoo_bench.repricing.slot_cache import SlotCache
from rewoo_bench.runs.folder import CALLS_FILE, read_table
from rewoo_bench.runs.schema import CALLS
from rewoo_bench.runs.table_columns import Column

if TYPE_CHECKING:
    import pandas as pd

_ROW = ["architecture", "example_id", "trial"]
COLUMNS = (*_ROW, "started_at", "model", "planner_model", "solver_model")
"""Of questions.parquet, to work out the tokens of a row."""
_MODELS = {"planner": "planner_model", "solver": "solver_model"}
ROLES = ("", *_MODELS)
"""Roles that may have a model of their own; `""` is every other one."""


Found = dict[CacheRule | None, NDArray[np.int64]]
"""Cached and written tokens under each rule: a line for each row."""


class RoleTokens(NamedTuple):
    """Tokens of each row that some roles used; the cached and the written ones are parts of the input."""

    input: NDArray[np.int64]
    output: NDArray[np.int64]
    found: Found


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of each row of a run."""

    roles: Mapping[str, RoleTokens]
    """Those of the planner, of the solver, and of every other role (`""`)."""
    rounds: NDArray[np.int64]
    """The most model calls of a question that followed each other: as many batches, one after the other."""
    notes: tuple[str, ...] = ()

    @property
    def input(self) -> NDArray[np.int64]:
        return sum((part.input for part in self.roles.values()), np.zeros_like(self.rounds))

    @property
    def output(self) -> NDArray[np.int64]:
        return sum((part.output for part in self.roles.values()), np.zeros_like(self.rounds))

    @property
    def found(self) -> Found:
        rules = self.roles[""].found
        return {rule: np.sum([part.found[rule] for part in self.roles.values()], axis=0) for rule in rules}

    def priced(self, tariffs: Mapping[str, Tariff], *, batch: bool = False) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Cached and written tokens, and dollars, of each row under the prices of each role (`""`: every other).

        Nothing is cached in a batch, and nothing is written where that has no price.
        """
        found: NDArray[Any] = np.zeros((len(self.rounds), 2), dtype=np.int64)
        cost: NDArray[np.float64] = np.zeros(len(self.rounds))
        for role, part in self.roles.items():
            tariff = tariffs.get(role) or tariffs[""]
            own = part.found[None if batch else tariff.rule] * [1, int(tariff.cache_write is not None)]
            found += own
            cost = cost + tariff.cost_usd(part.input, own[:, 0], own[:, 1], part.output, batch=batch)
        return found, cost


def own_models(columns: Mapping[str, Column]) -> dict[str, str]:
    """The models of the planner and of the solver where they aren't the main one, by role; `columns` are of one run."""
    main = columns["model"].names_in_use[:1]
    found = {role: columns[column].names_in_use for role, column in _MODELS.items()}
    return {role: names[0] for role, names in found.items() if names and names[:1] != main}


def recorded_tokens(folder: Path, columns: Mapping[str, Column], rules: Sequence[CacheRule], *, shared: bool) -> Tokens:
    """The tokens of a run's recorded calls, cached by each of the rules, for rows of `COLUMNS`. Raises `DataError`."""
    names, ids, trials = (columns[name] for name in _ROW)
    keys = zip(names.values.tolist(), ids.values.tolist(), trials.values.tolist(), strict=True)
    places = {
        str(TaskKey(names.names[name], ids.names[id_], int(trial))): place
        for place, (name, id_, trial) in enumerate(keys)
    }
    began = columns["started_at"].values
    with recorded_calls(folder, places, began.tolist()) as calls:
        sizes = {role: np.zeros((len(began), 2), dtype=np.int64) for role in ROLES}
        for role, lost in calls.other.items():
            sizes[_priced_as(role)] += lost
        for number, role in enumerate(calls.roles):
            own = calls.kept[calls.kept["role"] == number]
            for position, column in enumerate(("input", "output")):
                np.add.at(sizes[_priced_as(role)][:, position], own["row"], own[column])
        found = {role: _none_found(rules, len(began)) for role in ROLES}
        groups = _groups(calls, columns, shared=shared)
        for group in np.unique(groups):
            _play(calls, groups == group, found)
        roles = {role: RoleTokens(size[:, 0], size[:, 1], found[role]) for role, size in sizes.items()}
        return Tokens(roles, _rounds(calls, len(began)), tuple(_notes(calls, rules)))


def reported_tokens(folder: Path, rows: pd.DataFrame, rules: Sequence[CacheRule]) -> Tokens:
    """The tokens of calls.parquet, cached as the provider reported it whatever the rule. Raises `DataError`."""
    import pandas as pd

    columns = [*_ROW, "kind", "role", "input_tokens", "cached_input_tokens", "output_tokens"]
    columns += ["cache_write_tokens", "billed_tokens"]
    try:
        calls = read_table(folder / CALLS_FILE, CALLS, columns=columns).to_pandas()
    except FileNotFoundError:
        raise DataError(f"{str(folder)!r} has no {CALLS_FILE}") from None
    calls = calls.reindex(columns=columns).fillna({"cache_write_tokens": 0})  # older runs lack that column
    calls = calls[(calls["kind"] == "model") & ~calls["role"].isin(UNPRICED_ROLES)]
    index = pd.MultiIndex.from_frame(rows[_ROW].astype({"architecture": str, "example_id": str, "trial": int}))
    roles = {}
    for role in ROLES:
        sums = calls[calls["role"].map(_priced_as) == role].groupby(_ROW, observed=True)[columns[5:]].sum()
        kept: NDArray[np.int64] = sums.reindex(index, fill_value=0).to_numpy(dtype=np.int64)
        used, cached, output, written, billed = kept.T
        found: Found = _none_found((), len(rows)) | dict.fromkeys(rules, np.column_stack([cached, written]))
        roles[role] = RoleTokens(used + np.maximum(billed - used - output, 0), output, found)
    counts = calls.groupby(_ROW, observed=True).size().reindex(index, fill_value=0)
    rounds = np.array(counts, dtype=np.int64)
    note = "cached tokens are those that the provider reported, whatever the sheet's cache is (--recorded-cache)"
    return Tokens(roles, rounds, (note,))


def _priced_as(role: str) -> str:
    return role if role in _MODELS else ""


def _none_found(rules: Sequence[CacheRule], rows: int) -> Found:
    return {rule: np.zeros((rows, 2), dtype=np.int64) for rule in (*rules, None)}


def _groups(calls: RecordedCalls, columns: Mapping[str, Column], *, shared: bool) -> NDArray[np.int64]:
    """A number for each call: calls with the same one share a cache."""
    if shared:
        return np.zeros(len(calls.kept), dtype=np.int64)
    alike = [columns[name].values.tolist() for name in ("architecture", "trial")]
    numbers: dict[tuple[object, ...], int] = {}
    groups = np.zeros(len(calls.kept), dtype=np.int64)
    for number, role in enumerate(calls.roles):
        asked = columns[_MODELS.get(role, "model")]
        of_role = zip(*alike, (asked.names[place] if place >= 0 else "" for place in asked.values), strict=True)
        codes = np.array([numbers.setdefault(key, len(numbers)) for key in of_role], dtype=np.int64)
        chosen = calls.kept["role"] == number
        groups[chosen] = codes[calls.kept["row"][chosen]]
    return groups


def _play(calls: RecordedCalls, chosen: NDArray[np.bool_], found: Mapping[str, Found]) -> None:
    """Sends the calls that share a cache through every rule, and adds what each found."""
    caches = list(_caches([rule for rule in found[""] if rule is not None]))
    for call in calls.among(chosen) if caches else ():
        for rules, cache in caches:
            for rule, one in zip(rules, cache.send(call), strict=True):
                found[_priced_as(call.role)][rule][call.row] += one


def _caches(rules: Sequence[CacheRule]) -> Iterator[tuple[list[CacheRule], AutomaticCache | ExplicitCache | SlotCache]]:
    """New caches, each with its rules: automatic ones with the same lifetime remember the same prefixes."""
    alike: dict[tuple[float | None, bool], list[CacheRule]] = {}
    for rule in rules:
        if rule.kind == "automatic":
            alike.setdefault((rule.lifetime_s, rule.renewed_by_hit), []).append(rule)
        else:
            yield [rule], ExplicitCache(rule) if rule.kind == "explicit" else SlotCache(rule)
    for some in alike.values():
        yield some, AutomaticCache(some)


def _rounds(calls: RecordedCalls, rows: int) -> NDArray[np.int64]:
    """Of each row the longest chain of calls, each sent when the one before had ended."""
    rounds = np.zeros(rows, dtype=np.int64)
    until = np.full(rows, -np.inf)
    for row, start, end in calls.kept[np.argsort(calls.kept["end"], kind="stable")][["row", "start", "end"]].tolist():
        if start >= until[row]:
            rounds[row] += 1
            until[row] = end
    return rounds


def _notes(calls: RecordedCalls, rules: Sequence[CacheRule]) -> Iterator[str]:
    of_all = f"of {len(calls.kept):,} calls"
    if calls.untimed:
        yield (
            f"{calls.untimed:,} {of_all} were recorded without their times, by an older version: they are taken to "
            "follow each other from the start of their question on"
        )
    if calls.untimed and any(rule.kind == "explicit" for rule in rules):
        yield f"{calls.untimed:,} {of_all} were recorded without their cache marks: no explicit cache holds them"
