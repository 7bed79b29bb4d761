"""What of a study is done, what the rest will take, and which of its runs are no longer what it declares.

for each in await study_status(study, study.cells, Path("results/local/study")):
    print(each.cell.name, each.asked, each.wanted, each.stale)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from rewoo_bench.config.specs import AGENT_NAME
from rewoo_bench.errors import DataError, RewooBenchError, UsageError
from rewoo_bench.evaluation.inputs import RunInputs, read_run_inputs
from rewoo_bench.evaluation.prepare import costs_nothing
from rewoo_bench.evaluation.resume import resumed
from rewoo_bench.evaluation.run import dry_run
from rewoo_bench.runs.folder import load
from rewoo_bench.runs.manifest import LOOSE, MANIFEST, Manifest, changed_values, read_manifest
from rewoo_bench.study.declaration import Cell, Study
from rewoo_bench.study.rounds import asked_of
from rewoo_bench.text.escaping import text_table


@dataclass(frozen=True)
class CellStatus:
    """A run of a study: how far it is, and what the rest of it will take."""

    cell: Cell
    asked: int
    wanted: int
    calls_left: float | None
    """Model calls, by the mean of the questions so far, else as `run --dry-run` estimates them; None for agents."""
    hours_left: float | None
    """Of its calls one after the other; None where no run of the study has asked its model."""
    dollars_left: float | None
    """None for an unknown price."""
    stale: str | None = None
    """What has changed since the run began, what is wrong with its folder, or why it can't be asked here."""
    exploratory: str | None = None
    """Why it decides no outcome."""


async def study_status(study: Study, cells: Sequence[Cell], folder: Path) -> list[CellStatus]:
    """The state of each of these runs. No model is asked."""
    rows = {cell.name: _rows(folder / cell.name) for cell in cells}
    seconds = {
        model: _seconds_a_call([rows[cell.name] for cell in cells if cell.options.model == model])
        for model in {cell.options.model for cell in cells}
    }
    return [
        await _status(study, cell, folder / cell.name, rows[cell.name], seconds[cell.options.model]) for cell in cells
    ]


def why_exploratory(study: Study, cell: Cell, manifest: Manifest | None) -> str | None:
    """Why a run decides no outcome: it was declared so, or was begun before what the study declares now."""
    if cell.exploratory:
        return "declared as exploratory"
    if manifest is None:
        return None
    if manifest.study is None:
        return "begun outside the study"
    if manifest.study.get("sha256") != study.sha256:
        return "begun before the study was changed"
    declared = study.spec.study.declared
    return "begun before the study was declared" if declared and str(manifest.started_at) < str(declared) else None


async def _status(study: Study, cell: Cell, folder: Path, rows: pd.DataFrame, seconds: float | None) -> CellStatus:
    of_a_question = len(cell.options.architectures) * cell.options.trials
    asked = max(asked_of(folder), len(rows) // of_a_question)  # the latter while a round goes on
    try:
        inputs = await read_run_inputs(cell.options)
    except RewooBenchError as error:  # its data or its model isn't here
        return CellStatus(
            cell, asked, max(asked, cell.options.questions or 0), None, None, None, f"it can't be asked here: {error}"
        )
    wanted = len(inputs.dataset.examples)
    left = max(0, wanted - asked)
    calls: float | None
    if len(rows):
        of_each = len(rows) / of_a_question
        calls = float(rows["llm_calls"].sum()) / of_each
        paid = None if rows["cost_usd"].isna().any() else float(rows["cost_usd"].sum()) / of_each
    elif any(each.spec.runner == AGENT_NAME for each in inputs.architectures):
        calls = paid = None
    else:
        estimates = await dry_run(replace(cell.options, questions=min(10, wanted)))
        calls = sum(each.llm_calls for each in estimates) / min(10, wanted)
        costs = [each.cost_usd for each in estimates]
        paid = None if None in costs else sum(cost for cost in costs if cost) / min(10, wanted)
    manifest: Manifest | None = None
    try:
        manifest = read_manifest(folder)
    except DataError as error:
        stale = str(error) if (folder / MANIFEST).exists() else None
    else:
        stale = _stale(cell, folder, manifest, inputs)
    hours = None if seconds is None or calls is None else left * calls * seconds / 3600
    dollars = None if paid is None else left * paid
    if not left or costs_nothing(cell.options.model):
        hours = dollars = 0.0
    return CellStatus(
        cell,
        asked,
        wanted,
        None if calls is None else left * calls,
        hours,
        dollars,
        stale,
        why_exploratory(study, cell, manifest),
    )


def _rows(folder: Path) -> pd.DataFrame:
    try:
        return load(folder)
    except DataError:
        return pd.DataFrame()


def _seconds_a_call(tables: Sequence[pd.DataFrame]) -> float | None:
    """Mean seconds of a question for each of its model calls; None where nothing was asked."""
    known = [table for table in tables if len(table)]
    calls = sum(float(table["llm_calls"].sum()) for table in known)
    return sum(float(table["latency_s"].sum()) for table in known) / calls if calls else None


def _stale(cell: Cell, folder: Path, manifest: Manifest, inputs: RunInputs) -> str | None:
    """The first difference between a run and what the study would begin now."""
    try:
        questions = max(cell.options.questions or 0, manifest.dataset.limit or 0) or None
        resumed(folder, cell.saved_options | {"questions": questions})
    except UsageError as error:
        return str(error).removeprefix("--resume: ")
    now = json.loads(json.dumps([each.manifest for each in inputs.architectures], default=str))
    return next(changed_values(manifest.as_json().get("architectures"), now, "architectures", LOOSE), None)


def status_text(found: Sequence[CellStatus]) -> str:
    """The state of a study as a table, with a line for each run that is stale or exploratory."""
    cells = [["run", "questions", "calls left", "hours left", "$ left"]]
    for each in found:
        hours = "?" if each.hours_left is None else f"{each.hours_left:,.1f}"
        dollars = "?" if each.dollars_left is None else f"{each.dollars_left:,.2f}"
        done = f"{each.asked:,} of {each.wanted:,}"
        calls = "?" if each.calls_left is None else f"{each.calls_left:,.0f}"
        cells.append([each.cell.name, done, calls, hours, dollars])
    known = [each.hours_left for each in found if each.hours_left is not None]
    lines = text_table(cells)
    left = sum(each.wanted > each.asked for each in found)
    total = f"{left} of {len(found)} runs lack questions: {sum(each.calls_left or 0 for each in found):,.0f} calls"
    total += f", {sum(known):,.1f} hours one after the other" if known else ""
    lines += ["", total + (", some of unknown length" if len(known) < len(found) else "")]
    lines += [f"stale: {each.cell.name}: {each.stale}" for each in found if each.stale]
    lines += [
        f"exploratory: {each.cell.name}: {each.exploratory}"
        for each in found
        if each.exploratory and not each.cell.exploratory
    ]
    return "\n".join(lines)
