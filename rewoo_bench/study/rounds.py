"""A study's runs, made in rounds: each adds a few questions to a run, so that an early stop is balanced.

    end = await run_study(study, study.cells, Path("results/local/study"))

A cell is a run as `rewoo-bench run` makes one, in a folder of the study's. A round resumes it with more questions, and
everything that a resumed run guarantees holds here. Local models stay open from one round to the next, so that they
keep the prompts that they have read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rewoo_bench.config.names import LOCAL, REPLAY, is_oracle
from rewoo_bench.errors import DataError, ModelNotFound, RewooBenchError, UsageError
from rewoo_bench.evaluation.inputs import PythonInputs, model_settings, read_run_inputs
from rewoo_bench.evaluation.new_manifest import StudyRound
from rewoo_bench.evaluation.resume import resumed, seal
from rewoo_bench.evaluation.run import run
from rewoo_bench.models.open import HOSTED_CONCURRENCY, open_model
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.runs.publish import restore
from rewoo_bench.study.declaration import Cell, Study
from rewoo_bench.text.escaping import terminal
from rewoo_bench.text.words import counted

_MOST_COPIES = 8  # of a local model; more architectures share their prefix caches
_SECONDS_A_LINE = 30.0


@dataclass(frozen=True)
class SessionChoices:
    """What each session of a study may choose; none of it changes an answer."""

    n: int | None = None
    """Most questions of a run, below what the study declares."""
    block: int | None = None
    """Questions that a round adds to a run; None is as many as its model answers at the same time."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of every run, such as `engine`."""
    published: Path | None = None
    """A published study: runs that the folder lacks go on from the copies in it."""
    say: Callable[[str], None] = lambda line: print(terminal(line), file=sys.stderr, flush=True)


@dataclass
class StudyEnd:
    """How a session of a study ended: the runs that lack questions, and why."""

    unfinished: dict[str, str] = field(default_factory=dict)
    was_interrupted: bool = False


async def run_study(
    study: Study, cells: Sequence[Cell], folder: Path, choices: SessionChoices = SessionChoices()
) -> StudyEnd:
    """Asks what these runs lack, stage by stage. Raises `UsageError` where the inputs of one are wrong."""
    session = _Session(study, folder, choices)
    await session.prepare(cells)
    for stage in sorted({cell.stage for cell in cells}):
        async with AsyncExitStack() as stack:
            await session.ask([cell for cell in cells if cell.stage == stage], stack)
        if session.end.was_interrupted:
            break
    for cell in cells:
        if session.asked[cell.name] < session.wanted[cell.name]:
            session.end.unfinished.setdefault(cell.name, "interrupted")
    return session.end


class _Session:
    """A session of a study: how many questions each run has, and how many it is to have."""

    def __init__(self, study: Study, folder: Path, choices: SessionChoices) -> None:
        self.end = StudyEnd()
        self.asked: dict[str, int] = {}
        self.wanted: dict[str, int] = {}
        self._study = study
        self._folder = folder
        self._choices = choices
        self._resumed = set[str]()
        self._started = self._said = time.monotonic()
        self._answered = 0  # in this session

    async def prepare(self, cells: Sequence[Cell]) -> None:
        """Reads the inputs of all runs, before any model is asked, and counts their questions."""
        for cell in cells:
            try:
                inputs = await read_run_inputs(replace(cell.options, questions=self._most(cell)))
            except RewooBenchError as error:
                raise UsageError(f"{cell.name}: {error}") from None
            self.wanted[cell.name] = len(inputs.dataset.examples)
            most = self._most(cell)
            if most is not None and self.wanted[cell.name] < most:
                self._choices.say(f"{cell.name}: its data set has {self.wanted[cell.name]:,} of {most:,} questions")
            await self._restore(cell)
            self.asked[cell.name] = asked_of(self._folder / cell.name)

    async def _restore(self, cell: Cell) -> None:
        """Begins a run with the questions of its published copy, if there is one. Its options are the cell's."""
        folder, copy = self._folder / cell.name, (self._choices.published or Path()) / "runs" / cell.name
        if self._choices.published is None or (folder / MANIFEST).exists() or not (copy / MANIFEST).exists():
            return
        before = read_manifest(copy)
        options = replace(cell.options, questions=before.dataset.limit).as_json()
        rows = await restore(copy, folder, {"options": options, "seal": seal(before.run_id, options)})
        self._choices.say(f"{cell.name}: goes on from {counted(rows, 'published row')}")

    def _most(self, cell: Cell) -> int | None:
        limits = [limit for limit in (cell.options.questions, self._choices.n) if limit is not None]
        return min(limits, default=None)

    async def ask(self, cells: Sequence[Cell], stack: AsyncExitStack) -> None:
        """Asks the questions of a stage; the next one is always of the run that has the fewest."""
        todo = [cell for cell in cells if self.asked[cell.name] < self.wanted[cell.name]]
        copies = {
            model: min(_MOST_COPIES, len({name for cell in todo if cell.options.model == model
                                          for name in cell.options.architectures}))
            for model in {cell.options.model for cell in todo if cell.options.model.startswith(LOCAL)}
        }  # fmt: skip
        for cell in {cell.options.model: cell for cell in todo if cell.options.model in copies}.values():
            settings = replace(model_settings(cell.options), n_caches=copies[cell.options.model])
            with suppress(ModelNotFound):  # its runs say so
                await stack.enter_async_context(open_model(cell.options.model, settings))
        while todo:
            cell = min(todo, key=lambda each: self.asked[each.name])
            fault = await self._round(cell, copies.get(cell.options.model))
            if self.end.was_interrupted:
                return
            if fault:
                self.end.unfinished[cell.name] = fault
                self._choices.say(f"{cell.name}: {fault}")
            if fault or self.asked[cell.name] >= self.wanted[cell.name]:
                todo.remove(cell)
            self._report(cell, cells, is_last=not todo)

    async def _round(self, cell: Cell, n_caches: int | None) -> str | None:
        """Adds questions to a run. Returns why it can't go on in this session."""
        folder = self._folder / cell.name
        is_new = not (folder / MANIFEST).exists()
        reached = self.asked[cell.name]
        limit = min(self.wanted[cell.name], reached + (self._choices.block or block_of(cell.options, self._choices)))
        facts = {"file": self._study.file.name, "sha256": self._study.sha256, "cell": cell.name}
        declared = self._study.spec.study.declared
        facts |= {"declared": str(declared)} if declared else {}
        study = StudyRound(facts, is_new_session=cell.name not in self._resumed)
        try:
            options = self._options(cell, folder, limit, is_new=is_new)
            outcome = await run(options, PythonInputs(n_caches=n_caches), study=study)
        except RewooBenchError as error:  # of this run alone: changed settings, a refused key, a damaged folder
            return str(error).removeprefix("--resume: ")
        self._resumed.add(cell.name)
        self.end.was_interrupted = outcome.was_interrupted
        if outcome.status == "done":
            self.asked[cell.name] = limit
            self._answered += (limit - reached) * len(cell.options.architectures) * cell.options.trials
            return None
        return None if outcome.was_interrupted else outcome.reason or "incomplete"

    def _options(self, cell: Cell, folder: Path, limit: int, *, is_new: bool) -> RunOptions:
        """The options of a round. Raises `UsageError` where the run was begun with other ones."""
        chosen = {**self._choices.options, "progress": False, "report": False}
        if is_new:
            return replace(cell.options, questions=limit, out=folder, **chosen)
        reached = read_manifest(folder).dataset.limit or 0
        given = {**cell.unsaved_options, **cell.saved_options, **chosen, "questions": max(limit, reached)}
        return resumed(folder, given, trust=False)

    def _report(self, cell: Cell, cells: Sequence[Cell], *, is_last: bool) -> None:
        """A line now and then: where the study is, and how long it will take."""
        if not is_last and time.monotonic() - self._said < _SECONDS_A_LINE:
            return
        self._said = time.monotonic()
        left = sum(
            (self.wanted[each.name] - self.asked[each.name]) * len(each.options.architectures) * each.options.trials
            for each in cells
            if each.name not in self.end.unfinished
        )
        seconds = self._said - self._started
        where = f"{cell.name}: {self.asked[cell.name]:,} of {counted(self.wanted[cell.name], 'question')}"
        if left and self._answered:
            where += f"; {counted(left, 'answer')} of all to go, {left * seconds / self._answered / 3600:.1f} h"
        self._choices.say(where)


def asked_of(folder: Path) -> int:
    """The questions that a run has finished; in one that was interrupted, those before the last round."""
    try:
        manifest = read_manifest(folder)
    except DataError:
        return 0
    answers = max(1, len(manifest.architectures) * int(manifest.options.get("trials") or 1))
    if manifest.status == "done":
        return manifest.dataset.examples or 0
    return min((manifest.rows or 0) // answers, max(0, (manifest.dataset.examples or 0) - 1))


def block_of(options: RunOptions, choices: SessionChoices) -> int:
    """Questions that a model answers at the same time; the oracle takes all at once."""
    if is_oracle(options.model) or options.model.startswith(REPLAY):
        return sys.maxsize
    workers = int(choices.options.get("workers") or 1)
    at_once = options.concurrency or (1 if options.model.startswith(LOCAL) else HOSTED_CONCURRENCY)
    return int(choices.options.get("concurrency") or at_once) * workers
