"""Rows of questions.parquet -> what each architecture costs and buys, and how two of them differ.

    comparison = rewoo_bench.compare(rewoo_bench.load("results/local/my-rewoo", "results/local/my-react"))
    comparison.systems[0].summary.total_tokens      # means of the one part
    comparison.pairs[0]["total_tokens"].interval    # mean(b) / mean(a), 95%
    print(comparison)                               # both as tables
    comparison.to_frame()                           # both as one table of pandas, one row per estimate

Differences are b - a and ratios b / a, where a is the baseline; pairs are of the same question and
trial, and the trials of a question are one observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rewoo_bench.analysis.align import Key, aligned, chosen, labels, run_names
from rewoo_bench.analysis.comparison_tables import Comparison, System
from rewoo_bench.analysis.pairs import PRICED, Pair, Pricing, adjusted, measured, own_prices, paired
from rewoo_bench.analysis.summary import LOOPS, summarise
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.comparability import differences, unlike, waits
from rewoo_bench.runs.folder import INFERRED
from rewoo_bench.runs.manifest import Manifests
from rewoo_bench.runs.rows import flagged, left_out, subsets
from rewoo_bench.runs.table_columns import check_columns

if TYPE_CHECKING:
    import pandas as pd


SYSTEM_KEYS = Key._fields
ROW_KEYS = ("example_id", "trial")
# Means that a summary lacks; a file of an older version may lack one of these columns.
MORE_MEANS = (
    *("steps", "planner_tokens", "solver_tokens", "tool_llm_tokens", "agent_tokens", "billed_tokens"),
    *("router_tokens", "gold_pages_found"),
)


def compare(
    rows: pd.DataFrame,
    *,
    manifests: Manifests | None = None,
    baseline: str | None = None,
    all_pairs: bool = False,
    intersect: bool = False,
    by: str | None = None,
    within_model: bool = False,
    within_dataset: bool = False,
    pricing: Pricing | None = None,
) -> Comparison:
    """Compares every system with the `baseline`, or each with each.

    The default `baseline` is the first system; of two runs of the same architectures each architecture is
    compared before and after. `by` names a column, such as `question_type`: the questions of each value are
    compared separately. Each data set is a table of its own, and Holm's adjustment is for all of its tests.
    `manifests` are run.json by run id, where there are any: `rewoo_bench.manifests(*runs)`. `pricing` has the prices
    of the dollars in the sentences (`verdicts`); the run's own by default.

    Raises `UsageError` where runs on one data set didn't answer the same questions. With `intersect` they are compared
    on those they share, with a warning, as the architectures of one run always are. `within_dataset` lets a data set
    have one system alone; `within_model` compares no systems of different models.
    """
    check_columns(rows.columns, [*SYSTEM_KEYS, *ROW_KEYS, "exact_match", "total_tokens"])
    if not len(rows):
        raise DataError("no rows to compare")
    pricing = pricing or own_prices(manifests or {})
    if pricing.cost_usd is not None:
        rows = rows.assign(**{PRICED: pricing.cost_usd})
    if by is None:
        found = _compare(rows, manifests or {}, baseline, all_pairs, intersect, within_model, within_dataset)
        return replace(found, pricing=pricing)
    found_parts = subsets(rows, by)
    wholes = sorted(map(str, rows["dataset"].unique()), key=len)  # of two that fit, the longer one
    names = {str(name) for part in found_parts for name in part["dataset"].unique()}
    of = {name: whole for whole in wholes for name in names if name.startswith(f"{whole}, ")}
    parts = [
        _compare(part, manifests or {}, baseline, all_pairs, intersect, within_model, within_dataset)
        for part in found_parts
    ]
    return Comparison(
        systems=tuple(system for part in parts for system in part.systems),
        pairs=adjusted([pair for part in parts for pair in part.pairs], of),
        warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        pricing=pricing,
    )


def _compare(
    rows: pd.DataFrame,
    manifests: Manifests,
    baseline: str | None,
    all_pairs: bool,
    intersect: bool,
    within_model: bool,
    within_dataset: bool,
) -> Comparison:
    by_key = rows.groupby(list(SYSTEM_KEYS), sort=False, observed=True)
    groups = [(Key(*map(str, key)), group) for key, group in by_key]
    names = run_names(rows)
    labelled = dict(zip(labels([key for key, _ in groups], names), groups, strict=True))
    named = {names[run]: manifest for run, manifest in manifests.items() if run in names}
    systems: list[System] = []
    pairs: list[Pair] = []
    warnings: list[str] = []
    for dataset, block in _blocks(labelled, intersect=intersect, within_dataset=within_dataset).items():
        keys = {label: labelled[label][0] for label in block}
        runs = {names[key.run_id] for key in keys.values()}
        reasons = unlike({run: manifest for run, manifest in named.items() if run in runs})
        shares = intersect or len(runs) == 1  # a run that was stopped has some questions of one architecture only
        same, cautions = aligned({label: labelled[label][1] for label in block}, reasons, intersect=shares)
        own = [_system(label, keys[label], same[label]) for label in block]
        oracles = {system.label for system in own if system.oracle}
        columns = {label: measured(part) for label, part in same.items()}
        for a, b in chosen(keys, baseline, all_pairs=all_pairs, within_model=within_model):
            first, second = ((label, columns[label]) for label in (a, b))
            pairs.append(paired(dataset, first, second, oracle=bool(oracles & {a, b})))
        systems += own
        warnings += [*cautions, *_without_calls(own)]
    notes = [f"run {name}: {run}" for run, name in names.items() if run != name and len(names) > 1]
    if flagged(rows, INFERRED).any():
        notes.append(f"{LOOPS}: inferred from the sizes of calls, since a run is older than the columns of loops")
    return Comparison(tuple(systems), adjusted(pairs), tuple(warnings), (*notes, *differences(named), *waits(named)))


def _blocks(
    labelled: Mapping[str, tuple[Key, pd.DataFrame]], *, intersect: bool, within_dataset: bool
) -> dict[str, list[str]]:
    """Labels of the systems of each data set; of all of them where one is alone and shared questions are asked for."""
    blocks: dict[str, list[str]] = {}
    for label, (key, _) in labelled.items():
        blocks.setdefault(key.dataset, []).append(label)
    alone = [(block[0], dataset) for dataset, block in blocks.items() if len(block) == 1]
    if within_dataset or not alone or len(blocks) == 1:
        return blocks
    if intersect:
        return {" + ".join(blocks): list(labelled)}
    label, dataset = alone[0]
    others = ", ".join(repr(name) for name in blocks if name != dataset)
    raise UsageError(
        f"not comparable: only {label!r} ran on the data set {dataset!r}, the others on {others}; leave it out, or run "
        "another architecture on it"
    )


def _system(label: str, key: Key, rows: pd.DataFrame) -> System:
    (summary,) = summarise(rows)
    scored = rows[~left_out(rows)]
    priced = (PRICED,) if PRICED in rows.columns else ()
    means = {name: _mean(scored, name) for name in (*MORE_MEANS, *priced)}
    return System(label, key.run_id, rows["example_id"].nunique(), summary, means)


def _without_calls(systems: Sequence[System]) -> Iterator[str]:
    for system in systems:
        if count := system.summary.unmetered:
            of = f"{count:,} of the {system.summary.total:,} rows of {system.label!r}"
            yield f"{of} were answered without a metered model call; no figure has them, or a pair with one of them"
        if system.summary.llm_calls == 0:
            ended = ", ".join(f"{reason}: {count:,}" for reason, count in system.summary.not_answered.items())
            why = f" ({ended})" if ended else ""
            yield f"{system.label!r} made no model call in any question{why}, so it is in no ratio"


def _mean(rows: pd.DataFrame, column: str) -> float | None:
    known = rows[column].dropna() if column in rows.columns else ()
    return float(known.mean()) if len(known) and len(known) == len(rows) else None  # type: ignore[union-attr]
