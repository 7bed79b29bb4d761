"""Rows of questions.parquet -> what each architecture costs and buys, and how two of them differ.

    comparison = rewoo_bench.compare(rewoo_bench.load("results/local/my-rewoo", "results/local/my-react"))
    comparison.systems[0].summary.total_tokens      # means of the one part
    comparison.pairs[0]["total_tokens"].interval    # mean(b) / mean(a), 95%
    print(comparison)                               # both as tables
    comparison.to_frame()                           # both as one table of pandas, one row per estimate

Differences are b - a and ratios b / a, ReAct by ReWOO whatever order they stand in (`way_round`); pairs are of the same
question and trial, and the trials of a question are one observation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations, starmap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rewoo_bench.analysis.comparison_tables import Comparison, System
from rewoo_bench.analysis.pairs import Pair, PairUnder, Under, adjusted, both_did, paired, reference, way_round
from rewoo_bench.analysis.prices import Pricing, own_prices
from rewoo_bench.analysis.stats.paired import Floats, Interval, mean_of, ratio_of_means
from rewoo_bench.analysis.summary import bounded, summaries_of
from rewoo_bench.analysis.summary_tables import is_checked
from rewoo_bench.analysis.trials import trial_rows
from rewoo_bench.analysis.verdict import listed
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.runs.comparability import (
    noted_differences,
    of_agents,
    of_unused_tools,
    refusals,
    unfinished,
    unpaid,
    wait,
)
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.rows import Rows, flag_lines, mean_over_questions
from rewoo_bench.text.words import counted

if TYPE_CHECKING:
    import pandas as pd


class Key(NamedTuple):
    """The identity of a system: rows with the same values in these columns are of the same one."""

    run_id: str
    architecture: str
    dataset: str
    model: str


# Means that a summary lacks; None for a column that the rows lack.
_MORE_MEANS = (
    *("steps", "planner_tokens", "solver_tokens", "tool_llm_tokens", "agent_tokens", "billed_tokens"),
    *("router_tokens", "gold_pages_found"),
)


def compare(
    rows: Rows | pd.DataFrame,
    *,
    manifests: Manifests | None = None,
    baseline: str | None = None,
    all_pairs: bool = False,
    intersect: bool = False,
    within_model: bool = False,
    pricing: Pricing | None = None,
    under: Sequence[Pricing] = (),
) -> Comparison:
    """Compares every system with the `baseline`, or each with each.

    The default `baseline` is the first system that plans ahead, else the first (`reference`); of two runs of the same
    architectures each architecture is compared before and after. Each data set is a table of its own, and Holm's
    adjustment is for all of its tests.
    `manifests` are run.json by run id, where there are any: `rewoo_bench.manifests(*runs)`. All dollars and cached
    tokens are those of `pricing`; the run's own by default. Dollars `under` several prices are in tables of their own.

    Raises `UsageError` where runs on one data set didn't answer the same questions. With `intersect` they are compared
    on those they share, with a warning, as the architectures of one run always are. `within_model` compares no systems
    of different models, and lets a data set have one system alone.
    """
    if not len(rows):
        raise DataError("no rows to compare")
    pricing = pricing or own_prices(manifests or {})
    rows = pricing.of(Rows.of(rows)).assign(**_priced_columns(under))
    names = run_names(rows)
    named = {names[run]: manifest for run, manifest in (manifests or {}).items() if run in names}
    systems: list[System] = []
    pairs: list[Pair] = []
    priced: list[Under] = []
    warnings = dict.fromkeys(unfinished(named))
    for dataset, block in _blocks(rows, names, named, alone=within_model).items():
        keys = {label: key for label, (key, _) in block.items()}
        runs = {names[key.run_id] for key in keys.values()}
        reasons = refusals({run: manifest for run, manifest in named.items() if run in runs})
        shares = intersect or len(runs) == 1  # a run that was stopped has some questions of one architecture only
        same, cautions = aligned({label: own for label, (_, own) in block.items()}, reasons, intersect=shares)
        own_systems = [
            _system(label, keys[label].run_id, own, block[label][1], manifests or {}) for label, own in same.items()
        ]
        systems += own_systems
        oracles = {system.label for system in own_systems if system.summary.oracle}
        checked = is_checked(each.summary for each in own_systems)
        sides = chosen(keys, baseline, all_pairs=all_pairs, within_model=within_model)
        sides = list(starmap(way_round, sides))
        for a, b in sides:
            cautions += _across_forms({a: same[a], b: same[b]})
            facts = {"oracle": bool(oracles & {a, b}), "checked": checked}
            pairs.append(paired(dataset, (a, same[a]), (b, same[b]), **facts))
        of_done = oracles if checked else set()
        priced += [_under(dataset, price, same, sides, of_done) for price in under]
        warnings |= dict.fromkeys(cautions)
    warnings |= dict.fromkeys(flag_lines(rows))
    notes = [f"run {name}: {run}" for run, name in names.items() if run != name and len(names) > 1]
    notes += [*noted_differences(named), *of_agents(named), *dict.fromkeys(of_unused_tools(named))]
    notes += [f"latency ({run}): {note}" for run, manifest in named.items() if (note := wait(manifest))]
    notes += [f"cost ({run}): {note}" for run, manifest in named.items() if (note := unpaid(manifest))]
    took = {run: manifest.took for run, manifest in named.items()}
    return Comparison(
        *(tuple(systems), adjusted(pairs), tuple(warnings), tuple(notes), pricing, tuple(priced), tuple(under)),
        took=took,
    )


def compare_run(rows: Rows, pricing: Pricing, manifests: Manifests | None = None) -> Comparison | None:
    """The architectures of one run on the questions that all have ended; None where there is no such question."""
    try:
        return compare(rows, manifests=manifests, pricing=pricing, intersect=True)
    except UsageError:
        return None


def questions_of(rows: Rows) -> int:
    return len(np.unique(rows.question))


def _priced_columns(prices: Sequence[Pricing]) -> dict[str, Floats]:
    """Dollars and cached tokens of each row under some prices, by the names that `_under` reads."""
    found = dict[str, Floats]()
    for price in prices:
        if price.cost_usd is not None and price.cached is not None:
            found |= {f"cost_usd {price.asked}": price.cost_usd, f"cached {price.asked}": price.cached}
    return found


def _under(
    dataset: str, price: Pricing, systems: Mapping[str, Rows], sides: Sequence[tuple[str, str]], of_done: Set[str]
) -> Under:
    """The dollars of aligned rows under a price, and the ratios of pairs (a, b).

    Of a pair with a system `of_done` the ratio is of the rows that both have right (`paired`).
    """
    tariff, usd, cached, pairs = price.tariff, dict[str, Floats](), dict[str, Floats](), []
    kept = {label: ~own.left_out for label, own in systems.items()}
    for label, own in systems.items():
        usd[label], cached[label] = own[f"cost_usd {price.asked}"], own[f"cached {price.asked}"]
    questions = {label: own.question for label, own in systems.items()}
    for a, b in sides:
        both = kept[a] & kept[b]
        if {a, b} & of_done:
            both = both & both_did(systems[a], systems[b])
        if not usd[a][both].any():
            continue
        ratio, even_at = ratio_of_means(usd[a][both], usd[b][both], clusters=questions[a][both]), math.nan
        if tariff and tariff.input:
            of_cached = {side: float(cached[side][both].sum()) for side in (a, b)}
            rest = {side: float(usd[side][both].sum()) - of_cached[side] * tariff.cache_read for side in (a, b)}
            fewer = of_cached[a] - of_cached[b]
            at = (rest[b] - rest[a]) / tariff.input / fewer if fewer else math.nan
            even_at = at if 0 <= at <= 1 else math.nan
        pairs.append(PairUnder(a, b, ratio, even_at))
    return Under(
        dataset,
        price.asked,
        {label: mean_of(usd[label][some], clusters=questions[label][some]) for label, some in kept.items()},
        {label: mean_over_questions(cached[label][some], questions[label][some]) for label, some in kept.items()},
        tariff.cache_read / tariff.input if tariff and tariff.rule and tariff.input else None,
        tuple(pairs),
    )


def _blocks(
    rows: Rows, names: Mapping[str, str], manifests: Manifests, *, alone: bool
) -> dict[str, dict[str, tuple[Key, Rows]]]:
    """Data set -> label -> key and rows of its systems; two or more but for `alone`, else raises `UsageError`."""
    groups = [(Key(*key), group) for key, group in rows.groups(*Key._fields).items()]
    labelled = dict(zip(labels([key for key, _ in groups], names), groups, strict=True))
    blocks: dict[str, dict[str, tuple[Key, Rows]]] = {}
    for label, (key, own) in labelled.items():
        blocks.setdefault(key.dataset, {})[label] = key, own
    single = [(label, dataset) for dataset, block in blocks.items() for label in block if len(block) == 1]
    if alone or not single or len(blocks) == 1:
        return blocks
    label, dataset = single[0]
    others = ", ".join(repr(name) for name in blocks if name != dataset)
    remedy = "leave it out, or run another architecture on it"
    if any(manifest.imported for manifest in manifests.values()):
        remedy = "name the tasks of imported runs alike: import --dataset NAME"
    raise UsageError(
        f"not comparable: only {label!r} ran on the data set {dataset!r}, the others on {others}; {remedy}"
    )


def _system(label: str, run_id: str, rows: Rows, every: Rows, manifests: Manifests) -> System:
    """The system of aligned rows; `every` are all that it has, of whose trials none need be in another system."""
    scored, found = rows.where(~rows.left_out), dict[str, Interval]()
    for name in _MORE_MEANS if len(scored) else ():
        if not np.isnan(scored[name]).any():
            found[name] = mean_of(scored[name], clusters=scored.question)
    (summary,) = summaries_of(rows, manifests)
    means = {name: found[name].estimate if name in found else None for name in _MORE_MEANS}
    trials = trial_rows(every.where(np.isin(every.question, rows.question)))
    intervals = summary.intervals | bounded(found)
    return System(label, run_id, questions_of(rows), summary, means, intervals, tuple(trials))


def _across_forms(pair: Mapping[str, Rows]) -> Iterator[str]:
    """A line where one side carries exemplars in its prompts and the other none."""
    carried: dict[str, float] = {}
    for label, rows in pair.items():
        if "exemplar_tokens" not in rows or not (rows["tool_calls"] > 0).any():
            return  # of an earlier version, or an architecture that has no form
        carried[label] = float(np.nansum(rows["exemplar_tokens"]) / max(1.0, float(np.nansum(rows["llm_calls"]))))
    with_them, without = sorted(carried, key=lambda label: -carried[label])
    if carried[with_them] and not carried[without]:
        tokens = f"{carried[with_them]:,.0f} tokens of exemplars a call"
        yield f"{with_them} carries {tokens} and {without} none: a part of what they differ by is their form"


def aligned(
    systems: Mapping[str, Rows], unlike: Sequence[str], *, intersect: bool
) -> tuple[dict[str, Rows], list[str]]:
    """The rows of each system for the same questions and trials, in the same order, and warnings.

    `unlike` are reasons against comparing that the manifests give. Raises `UsageError` for a question that a system
    has twice, and, but for `intersect`, where the systems didn't answer the same questions.
    """
    # A number for each question and trial, the same in every system and whatever the order of rows.
    trials = 1 + max(int(rows["trial"].max()) for rows in systems.values())
    keys = {label: rows.question * trials + rows["trial"].astype(np.int64) for label, rows in systems.items()}
    orders = {label: np.argsort(own, kind="stable") for label, own in keys.items()}
    every, shared = np.concatenate(list(keys.values())), next(iter(keys.values()))
    for label, own in keys.items():
        again = np.flatnonzero(np.diff(own[orders[label]]) == 0)
        if len(again):
            rows, at = systems[label], orders[label][again[0]]
            where = f"question {rows['example_id'][at]!r}, trial {rows['trial'][at]:.0f}"
            raise UsageError(f"{label!r} has {where} more than once in the run {rows['run_id'][at]!r}; given twice?")
        shared = np.intersect1d(shared, own)
    reasons, asked, unit = list(unlike), len(np.unique(every)), "question" if trials == 1 else "row"
    if len(shared) < asked:
        named = listed([repr(label) for label in systems])
        reasons.append(f"of {counted(asked, unit)}, {named} share {len(shared):,}")
    if not len(shared):
        raise UsageError(f"not comparable: {'; '.join(reasons)}")
    if reasons and not intersect:
        hint = "--intersect compares on the questions that they share"
        raise UsageError(f"not comparable: {'; '.join(reasons)}; {hint}")
    same = {}
    for label, own in keys.items():
        kept = orders[label][np.isin(own[orders[label]], shared, assume_unique=True)]
        same[label] = systems[label].where(kept)
    if not reasons:
        return same, []
    left = f"all below is of the {counted(len(shared), unit)} that all share"
    return same, [f"not all answered the same questions: {'; '.join(reasons)}; {left}"]


def run_names(rows: Rows) -> dict[str, str]:
    """Run id -> the name of its folder, where `load` read the rows; else the id, or its last part if that is enough."""
    runs = rows.texts("run_id")
    short = {run: run.rpartition("-")[2] for run in runs}
    if "run_folder" in rows:
        short = dict(zip(rows["run_id"][::-1], rows["run_folder"][::-1], strict=True))
        short = {run: short[run] for run in runs}
    return short if len(set(short.values())) == len(short) else {run: run for run in runs}


def labels(keys: Sequence[Key], names: Mapping[str, str]) -> list[str]:
    """Names of systems: the architecture, and the model and the run where the others differ in them."""
    models = len({key.model for key in keys}) > 1
    plain = [f"{key.architecture}, {key.model}" if models else key.architecture for key in keys]
    alike = Counter(plain)
    return [
        f"{label}, run {names[key.run_id]}" if alike[label] > 1 else label
        for label, key in zip(plain, keys, strict=True)
    ]


def chosen(
    systems: Mapping[str, Key], baseline: str | None, *, all_pairs: bool, within_model: bool = False
) -> list[tuple[str, str]]:
    """The pairs (a, b) to compare, of the systems of one data set by label.

    `within_model`: of each model apart, unless no model has two systems.
    Each with each, or the others with the `baseline`. Without one: where two runs have the same
    architectures, each architecture before and after; else the others with the `reference`. Raises `UsageError`.
    """
    if within_model:
        models = [
            {label: key for label, key in systems.items() if key.model == model}
            for model in dict.fromkeys(key.model for key in systems.values())
        ]
        if len(models) > 1 and max(map(len, models)) > 1:
            return [pair for model in models for pair in chosen(model, baseline, all_pairs=all_pairs)]
    names = list(systems)
    if all_pairs:
        return list(combinations(names, 2))
    if baseline is None:
        runs: dict[str, dict[str, str]] = {}
        for label, key in systems.items():
            runs.setdefault(key.run_id, {})[key.architecture] = label
        if len(runs) == 2 and sum(map(len, runs.values())) == len(systems):
            before, after = runs.values()
            if before.keys() == after.keys() and len(before) > 1:
                return [(label, after[architecture]) for architecture, label in before.items()]
    first = reference(names)
    if baseline is not None:
        exact = [label for label in names if label == baseline]
        matches = exact or [label for label in names if label.split(", ")[0] == baseline]
        if not matches:
            raise UsageError(unknown("baseline", baseline, names))
        if len(matches) > 1:
            raise UsageError(f"baseline {baseline!r} may be any of {', '.join(map(repr, matches))}; give one of them")
        (first,) = matches
    return [(first, label) for label in names if label != first]
