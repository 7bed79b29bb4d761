"""How far the runs of a study are, what the rest will take, and which of them are no longer what it declares.

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
from rewoo_bench.errors import DataError, JournalError, RewooBenchError
from rewoo_bench.evaluation.inputs import RunInputs, read_run_inputs
from rewoo_bench.evaluation.run import dry_run
from rewoo_bench.runs.folder import QUESTIONS_FILE, load
from rewoo_bench.runs.manifest import LOOSE, MANIFEST, Manifest, changed_values, read_manifest
from rewoo_bench.runs.rows import common_error, left_out
from rewoo_bench.study.declaration import Cell, Study
from rewoo_bench.study.rounds import asked_of, is_free, spent_by, what_changed
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.words import counted

_TRIED = 10  # questions of a dry run


@dataclass(frozen=True)
class CellStatus:
    """A run of a study: how far it is, and what the rest of it will take."""

    cell: Cell
    asked: int
    wanted: int
    calls_left: float | None = None
    """Model calls but a judge's, by the mean of the questions so far, else as `run --dry-run` estimates them; None for
    agents."""
    hours_left: float | None = None
    """Of its questions one after the other; None where none was asked."""
    dollars_left: float | None = None
    """None for an unknown price."""
    stale: str | None = None
    """What has changed since the run began, or what is wrong with its folder."""
    exploratory: str | None = None
    """Why it decides no outcome."""
    unreadable: str | None = None
    """Why it can't be asked here: its data or its model isn't there."""
    failed: int = 0
    """Answers that a provider or a tool's server failed; they are in no figure."""
    common_error: str = ""
    """The most common error of these; empty where none is known."""


async def study_status(study: Study, cells: Sequence[Cell], folder: Path, n: int | None = None) -> list[CellStatus]:
    """The state of each of these runs, of which `n` questions are wanted at most. No model is asked."""
    if n is not None:
        most = [min(n, cell.options.questions or n) for cell in cells]
        cells = [replace(cell, options=replace(cell.options, questions=q)) for cell, q in zip(cells, most, strict=True)]
    return [await _status(study, cell, folder / cell.name) for cell in cells]


async def _status(study: Study, cell: Cell, folder: Path) -> CellStatus:
    asked, stale, manifest = asked_of(folder), None, None
    rows = pd.DataFrame()
    try:
        if (folder / MANIFEST).exists():
            manifest = read_manifest(folder)
        if (folder / QUESTIONS_FILE).exists():
            rows = load(folder)
    except DataError as error:
        stale = str(error)
    asked = max(asked, len(rows) // (len(cell.options.architectures) * cell.options.trials))  # while a round goes on
    try:
        inputs = await read_run_inputs(cell.options)
        each = await _of_a_question(cell, folder, rows, asked, inputs)
    except RewooBenchError as error:  # its data or its model isn't here
        return CellStatus(cell, asked, max(asked, cell.options.questions or 0), unreadable=str(error))
    wanted = max(asked, len(inputs.dataset.examples))
    left = wanted - asked
    if manifest is not None and (left or manifest.published is None):  # a published copy can't go on
        stale = stale or _stale(cell, folder, manifest, inputs)
    failed = rows[left_out(rows)] if len(rows) else rows
    calls, hours, dollars = (amount if amount is None else left * amount for amount in each)
    most_common = common_error(failed) if len(failed) else ""
    exploratory = why_exploratory(study, cell, manifest)
    return CellStatus(cell, asked, wanted, calls, hours, dollars, stale, exploratory, None, len(failed), most_common)


_Amounts = tuple[float | None, float | None, float | None]  # calls, hours and dollars


async def _of_a_question(cell: Cell, folder: Path, rows: pd.DataFrame, asked: int, inputs: RunInputs) -> _Amounts:
    """What a question takes of all architectures and trials, by those so far, else by a dry run.

    Raises `RewooBenchError`.
    """
    free = 0.0 if is_free(cell.options) else None
    answered = rows[~left_out(rows)] if len(rows) else rows
    if len(answered):
        try:
            spent = await spent_by(folder)
            dollars = None if spent.unpriced else spent.cost_usd / asked
        except (DataError, JournalError):  # a published copy has no journal
            dollars = None
        of_a_question = len(cell.options.architectures) * cell.options.trials / len(answered)
        calls, seconds = (float(answered[name].sum()) * of_a_question for name in ("llm_calls", "latency_s"))
        return calls, seconds / 3600, free if dollars is None else dollars
    if any(each.spec.runner == AGENT_NAME for each in inputs.architectures):
        return None, None, free
    tried = min(_TRIED, len(inputs.dataset.examples))
    estimates = await dry_run(replace(cell.options, questions=tried))
    costs = [each.cost_usd for each in estimates]
    dollars = free if None in costs else sum(cost or 0.0 for cost in costs) / tried
    return sum(each.llm_calls for each in estimates) / tried, None, dollars


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


def _stale(cell: Cell, folder: Path, manifest: Manifest, inputs: RunInputs) -> str | None:
    """The first difference between a run and what the study would begin now."""
    now = json.loads(json.dumps([each.manifest for each in inputs.architectures], default=str))
    changed = changed_values(manifest.as_json().get("architectures"), now, "architectures", LOOSE)
    return what_changed(cell, folder) or next(changed, None)


def status_text(found: Sequence[CellStatus]) -> str:
    """The state of a study: how many runs are finished, a table of the others, and what is wrong with any."""
    lacking = [each for each in found if each.wanted > each.asked]
    done = len(found) - len(lacking)
    lines = [f"{counted(done, 'run')} finished"] if done else []
    if lacking:
        cells = [["run", "questions", "calls left", "hours left", "$ left"]]
        for each in lacking:
            left = [
                ("not here" if each.unreadable else none) if amount is None else shown.format(amount)
                for (_, shown, none), amount in zip(_LEFT, _amounts(each), strict=True)
            ]
            cells.append([each.cell.name, f"{each.asked:,} of {each.wanted:,}", *left])
        lines += [_total(lacking, len(found)), "", *text_table(cells)]
    lines += [f"can't be asked here: {each.cell.name}: {each.unreadable}" for each in found if each.unreadable]
    for each in found:
        if each.failed:
            why = f"; most common error: {each.common_error}" if each.common_error else ""
            lines.append(f"failed: {each.cell.name}: {counted(each.failed, 'answer')}{why}")
    lines += [f"stale: {each.cell.name}: {each.stale}" for each in found if each.stale]
    changed = [each for each in found if each.exploratory and not each.cell.exploratory]
    return "\n".join([*lines, *(f"exploratory: {each.cell.name}: {each.exploratory}" for each in changed)])


_LEFT = (
    ("calls", "{:,.0f}", "an agent's"),
    ("hours one after the other", "{:,.1f}", "not begun"),
    ("dollars", "{:,.2f}", "no price"),
)
"""What the rest of a run takes: its name in the total, its form, and what stands where it isn't known."""


def _amounts(of: CellStatus) -> _Amounts:
    return of.calls_left, of.hours_left, of.dollars_left


def _total(lacking: Sequence[CellStatus], runs: int) -> str:
    """What all runs lack, and of how many of them that isn't known."""
    said = []
    for (name, shown, _), amounts in zip(_LEFT, zip(*map(_amounts, lacking), strict=True), strict=True):
        known = [amount for amount in amounts if amount is not None]
        of = f" in {len(known)} of them" if len(known) < len(amounts) else ""
        said += [f"{shown.format(sum(known))} {name}{of}"] if known else []
    return f"{len(lacking)} of {runs} runs lack questions" + (f": {', '.join(said)}" if said else "")
