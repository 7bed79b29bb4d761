"""A run's manifest and rows as a baseline.

baseline_of(folder, read_manifest(folder), load(folder)).text()     # the file that `baseline update` writes
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic

from rewoo_bench.analysis.call_prices import priced, read_calls
from rewoo_bench.analysis.dollars import EXAMPLE
from rewoo_bench.config.price_sheets import named_tariff
from rewoo_bench.errors import DataError
from rewoo_bench.gate.baseline import CACHEABLE, COUNTS, LINE_COLUMNS, ArchitectureBaseline, Baseline, first_fault
from rewoo_bench.model_names import LOCAL, REPLAY, is_deterministic
from rewoo_bench.runs.failed_rows import left_out
from rewoo_bench.runs.folder import CALLS_FILE
from rewoo_bench.runs.manifest import DatasetFacts, Manifest, PrefixFacts
from rewoo_bench.runs.manifest_diff import LOOSE
from rewoo_bench.runs.options import options_that

if TYPE_CHECKING:
    import pandas as pd

OPTIONS = options_that(lambda role: role.baseline)
_PREFIXES = (REPLAY, LOCAL)


def baseline_of(
    run: str | Path, manifest: Manifest, rows: pd.DataFrame, *, deterministic: bool | None = None
) -> Baseline:
    """A run as a baseline. Raises `DataError` where the run has no rows or a wrong count."""
    if not len(rows):
        raise DataError(f"run {manifest.run_id!r} has no rows")
    models = {str(name) for column in ("model", "planner_model", "solver_model") for name in rows[column].unique()}
    facts = {facts.name: facts.model_dump(mode="json", exclude_unset=True) for facts in manifest.architectures}
    # by name, and not by the order of the rows, so that the file is the same
    rows, usd = _held_by_a_cache(Path(run), manifest, rows)
    groups = {str(name): group for name, group in rows.groupby(rows["architecture"].astype(str), sort=True)}
    prices = manifest.prices
    try:
        return Baseline(
            deterministic=is_deterministic(models) if deterministic is None else deterministic,
            model=_plain(str(rows["model"].iloc[0])),
            dataset=_dataset(manifest.dataset),
            corpus={"content_hash": manifest.corpus.content_hash} if manifest.corpus else None,
            models={role: _model(model) for role, model in manifest.models.items()},
            options={name: manifest.options.get(name) for name in OPTIONS},
            prices=prices and {_plain(model): price for model, price in prices.items()},
            tokenizer=manifest.tokenizer,
            architectures={
                name: _facts(facts.get(name, {}), group, manifest.shared_prefixes.get(name, {}), usd.get(name, {}))
                for name, group in groups.items()
            },
            columns=list(LINE_COLUMNS),
            questions={name: _lines(group) for name, group in groups.items()},
        )
    except pydantic.ValidationError as error:
        raise DataError(f"run {manifest.run_id!r} can't be compared: {first_fault(error)}") from None


def _dataset(facts: DatasetFacts) -> dict[str, Any]:
    """The identity of a data set, without its folder."""
    source = dict(facts.source)
    if source.get("file"):
        source["file"] = Path(source["file"]).name
    same = {"name": facts.name, "format": facts.format, "split": facts.split, "ids_hash": facts.ids_hash}
    return {**same, "source": source}


def _model(manifest: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: value for key, value in manifest.items() if key not in LOOSE}
    return {**facts, "name": _plain(str(manifest.get("name")))}


def _plain(name: str) -> str:
    """A model's name without the folder of its file or recording."""
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), None)
    return f"{prefix}{Path(name).name}" if prefix else name


def _facts(
    manifest: Mapping[str, Any], rows: pd.DataFrame, prefixes: Mapping[str, PrefixFacts], usd: dict[str, float]
) -> ArchitectureBaseline:
    counts = [name for name in COUNTS if name in rows]
    means = {name: round(float(rows[name].astype("float64").mean()), 4) for name in counts if rows[name].notna().any()}
    return ArchitectureBaseline(
        manifest=dict(manifest),
        usage_sources=sorted(map(str, rows["usage_source"].dropna().unique())),
        means=means,
        shared_prefixes=dict(prefixes),
        usd_per_1000=usd,
    )


def _held_by_a_cache(
    run: Path, manifest: Manifest, rows: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, dict[str, float]]]:
    """The rows with `CACHEABLE`, and dollars of 1,000 questions by architecture and price, where these are known.

    The part that all questions share takes the place of what earlier calls of the run happened to share, so that the
    order in which questions were asked doesn't matter. Calls of tools are made at once, and which of them finds the
    other's prompt is chance: only that part of theirs is counted as `CACHEABLE`.
    """
    if not (run / CALLS_FILE).exists():
        return rows, {}
    calls, tariff = read_calls(run, rows), named_tariff(EXAMPLE)
    names, scored = rows["architecture"].astype(str).to_numpy(), ~left_out(rows) & rows["exact_match"].notna()
    pairs = zip(names[calls.row], calls.role, strict=True)
    prefixes = manifest.shared_prefixes
    shared = [prefixes[name][role].tokens if role in prefixes.get(name, {}) else 0.0 for name, role in pairs]
    held = {"shared_run_tokens": np.array(shared), "shared_run_age_s": np.zeros(len(shared))}
    longer = np.where(calls.role == "tool", shared, np.maximum(calls.columns["shared_question_tokens"], shared))
    tokens = calls.of_rows(np.minimum(longer, calls.columns["input_tokens"]))
    if not calls.stands_in and not np.isnan(tokens[scored]).any():
        rows = rows.assign(**{CACHEABLE: tokens})
    usd = calls.of_rows(priced(replace(calls, columns={**calls.columns, **held}), {"": tariff}).usd)
    dollars = {name: usd[(names == name) & scored] for name in prefixes}
    means = {name: 1000 * float(some.mean()) for name, some in dollars.items() if len(some)}
    return rows, {name: {tariff.under: round(mean, 6)} for name, mean in means.items() if mean > 0}


def _lines(rows: pd.DataFrame) -> list[list[Any]]:
    """The rows of an architecture as lines, by id and trial."""
    rows = rows.assign(exact_match=rows["exact_match"].mask(left_out(rows)))  # as if it had failed
    lines = [[_value(row, column) for column in LINE_COLUMNS] for row in rows.to_dict("records")]
    return sorted(lines, key=lambda line: (line[0], line[1]))


def _value(row: Mapping[Any, Any], column: str) -> Any:
    if column == "text":
        return _digest(str(row["question"]), row["answers"])
    value = row.get(column)
    if value is None or value != value or str(value) == "<NA>":
        return None
    if column in ("example_id", "stop_reason"):
        return str(value)
    if column == "exact_match":
        return bool(value)
    return round(float(value), 6) if column == "f1" else int(value)


def _digest(question: str, answers: Sequence[str] | None) -> str:
    """Tells whether an id still belongs to the same question and answers."""
    text = json.dumps([question, list(answers) if answers is not None else []], ensure_ascii=False)
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
