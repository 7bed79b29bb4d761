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

from anyio import to_thread

from rewoo_bench.config.names import LOCAL, REPLAY, is_oracle
from rewoo_bench.errors import DataError, ModelNotFound, OptionChanged, RewooBenchError, UnknownPrice, UsageError
from rewoo_bench.evaluation.folder import Outcome
from rewoo_bench.evaluation.inputs import PythonInputs, model_settings, read_run_inputs
from rewoo_bench.evaluation.prepare import costs_nothing
from rewoo_bench.evaluation.resume import StudyRound, resumed
from rewoo_bench.evaluation.run import run
from rewoo_bench.models.open import HOSTED_CONCURRENCY, open_model
from rewoo_bench.runs.folder import JOURNAL_FILE
from rewoo_bench.runs.journal.store import Spent, read_journal
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.study.declaration import Cell, Study
from rewoo_bench.system.output import echo
from rewoo_bench.text.words import counted

_MOST_COPIES = 8  # of a local model; more architectures share their prefix caches
_MOST_IN_VAIN = 3  # rounds in a row without an answer, before a run is left to a later session
_SECONDS_A_LINE = 30.0
DATASET_SIZE = "dataset_size"
"""In what a run's manifest says of its study: the questions of its data set, where all of them were declared."""
DECLARED_N = "declared_n"
"""Also there: the questions that were declared when the run began."""


@dataclass(frozen=True)
class SessionChoices:
    """What each session of a study may choose; none of it changes an answer."""

    n: int | None = None
    """Most questions of a run, below what the study declares."""
    block: int | None = None
    """Questions that a round adds to a run; None is as many as its model answers at the same time."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of every run, such as `engine`."""
    study_cost: float | None = None
    """Most US dollars of all runs of the study in all sessions."""
    say: Callable[[str], None] = lambda line: echo(line, err=True)


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
        elif changed := what_changed(cell, folder / cell.name):  # it has its questions, of other settings
            session.end.unfinished.setdefault(cell.name, changed)
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
        self._said = time.monotonic()
        self._failed: dict[str, str] = {}  # why some answers of a run failed
        self._finished: dict[str, int] = {}  # answers of a run after its last round
        self._in_vain: dict[str, int] = {}  # its last rounds without an answer
        self._cost_usd: dict[str, float] = {}  # of each run, those of the study included that aren't asked now

    async def prepare(self, cells: Sequence[Cell]) -> None:
        """Reads the inputs of all runs, before any model is asked, and counts their questions."""
        for cell in cells:
            most = self._most(cell)
            try:
                inputs = await read_run_inputs(replace(cell.options, questions=most))
            except RewooBenchError as error:
                raise UsageError(f"{cell.name}: {error}") from None
            self.wanted[cell.name] = found = len(inputs.dataset.examples)
            if most is not None and found < most:
                self._choices.say(f"{cell.name}: its data set has {found:,} of {most:,} questions")
            self.asked[cell.name] = asked_of(self._folder / cell.name)
        self._folder.mkdir(parents=True, exist_ok=True)
        for cell in self._study.cells if self._choices.study_cost is not None else ():
            if (self._folder / cell.name / MANIFEST).exists():
                self._cost_usd[cell.name] = (await spent_by(self._folder / cell.name)).cost_usd

    def _most(self, cell: Cell) -> int | None:
        limits = [limit for limit in (cell.options.questions, self._choices.n) if limit is not None]
        return min(limits, default=None)

    async def ask(self, cells: Sequence[Cell], stack: AsyncExitStack) -> None:
        """Asks the questions of a stage; the next one is always of the run that has the fewest."""
        todo = [cell for cell in cells if self.asked[cell.name] < self.wanted[cell.name]]
        copies: dict[str, int] = {}  # of each local model
        for cell in todo:
            if (model := cell.options.model).startswith(LOCAL) and model not in copies:
                names = {name for each in todo if each.options.model == model for name in each.options.architectures}
                copies[model] = min(_MOST_COPIES, len(names))
                with suppress(ModelNotFound):  # its runs say so
                    settings = replace(model_settings(cell.options), n_caches=copies[model])
                    await stack.enter_async_context(open_model(model, settings))
        while todo:
            cell = min(todo, key=lambda each: self.asked[each.name])
            n_caches = copies.get(cell.options.model)
            fault = await self._round(cell, n_caches)
            is_asked = self.asked[cell.name] >= self.wanted[cell.name]
            if not fault and is_asked and cell.name in self._failed:
                fault = await self._round(cell, n_caches, again=True) or self._failed.get(cell.name)
            if self.end.was_interrupted:
                return
            if fault:
                self.end.unfinished[cell.name] = fault
                self._choices.say(f"{cell.name}: {fault}")
            if fault or is_asked:
                todo.remove(cell)
            self._report(cell, cells, is_last=not todo)

    async def _round(self, cell: Cell, n_caches: int | None, *, again: bool = False) -> str | None:
        """Adds questions to a run, or asks those `again` that failed. Returns why it can't go on in this session."""
        most_usd = self._most_usd(cell)
        if most_usd is not None and most_usd <= self._cost_usd.get(cell.name, 0.0):
            return self._is_spent()
        reached = self.asked[cell.name]
        block = self._choices.block or block_of(cell.options, self._choices)
        limit = max(reached, min(self.wanted[cell.name], reached + block))
        is_new_session = cell.name not in self._resumed
        study = StudyRound(self._facts(cell), is_new_session=is_new_session, asks_failed=again, run_cost=most_usd)
        try:
            options = self._options(cell, limit)
            outcome = await run(options, PythonInputs(n_caches=n_caches), study=study)
        except UnknownPrice as error:  # the study's is the limit
            return str(error) if most_usd is None else f"--study-cost {self._choices.study_cost:g}: {error.why}"
        except RewooBenchError as error:  # of this run alone: changed settings, a refused key, a damaged folder
            return advice(error)
        self._cost_usd[cell.name] = outcome.cost_usd
        self._resumed.add(cell.name)
        self.end.was_interrupted = outcome.was_interrupted
        if outcome.status != "done" and (outcome.was_interrupted or not outcome.has_asked_all):
            is_spent = most_usd is not None and outcome.cost_usd >= most_usd
            return None if outcome.was_interrupted else self._is_spent() if is_spent else outcome.reason or "incomplete"
        self.asked[cell.name] = options.questions or limit  # of a killed run more than was known to be asked
        return self._failures(cell, outcome)

    def _failures(self, cell: Cell, outcome: Outcome) -> str | None:
        """Keeps why some answers failed, which are asked again at the end; returns it after rounds without any answer.

        A content filter refuses some questions, and the others go on.
        """
        self._failed.pop(cell.name, None)
        if outcome.status != "done":
            self._failed[cell.name] = outcome.reason or "some answers failed"
        is_in_vain = outcome.finished <= self._finished.get(cell.name, 0)
        self._finished[cell.name] = outcome.finished
        self._in_vain[cell.name] = self._in_vain.get(cell.name, 0) + 1 if is_in_vain else 0
        return self._failed.get(cell.name) if self._in_vain[cell.name] >= _MOST_IN_VAIN else None

    def _facts(self, cell: Cell) -> dict[str, Any]:
        """What the manifest of a run says of its study."""
        facts: dict[str, Any] = {"file": self._study.file.name, "sha256": self._study.sha256, "cell": cell.name}
        if declared := self._study.spec.study.declared:
            facts["declared"] = str(declared)
        if self._most(cell) is None:
            facts[DATASET_SIZE] = self.wanted[cell.name]
        if cell.options.questions:
            facts[DECLARED_N] = cell.options.questions
        return facts

    def _most_usd(self, cell: Cell) -> float | None:
        """What a run may cost in all sessions, where the study's limit leaves less than its own; None elsewhere."""
        if self._choices.study_cost is None or is_free(cell.options):
            return None
        others = sum(amount for name, amount in self._cost_usd.items() if name != cell.name)
        left = round(max(0.0, self._choices.study_cost - others), 6)
        return None if cell.options.run_cost is not None and cell.options.run_cost <= left else left

    def _is_spent(self) -> str:
        spent = sum(self._cost_usd.values())
        return f"all runs have cost {spent:.2f} of {self._choices.study_cost:g} USD (--study-cost)"

    def _options(self, cell: Cell, limit: int) -> RunOptions:
        """The options of a round. Raises `OptionChanged` where the run was begun with other ones."""
        folder, chosen = self._folder / cell.name, {**self._choices.options, "progress": False, "report": False}
        if not (folder / MANIFEST).exists():
            return replace(cell.options, questions=limit, out=folder, **chosen)
        begun = read_manifest(folder).dataset.limit or 0  # by a killed round, whose questions are asked to their end
        return resumed(folder, {**cell.declared_options, **chosen, "questions": max(limit, begun)})

    def _report(self, cell: Cell, cells: Sequence[Cell], *, is_last: bool) -> None:
        """A line now and then: where the study is."""
        if not is_last and time.monotonic() - self._said < _SECONDS_A_LINE:
            return
        self._said = time.monotonic()
        open_ = [each.name for each in cells if each.name not in self.end.unfinished]
        left = sum(max(0, self.wanted[name] - self.asked[name]) for name in open_)
        where = f"{cell.name}: {self.asked[cell.name]:,} of {counted(self.wanted[cell.name], 'question')}"
        self._choices.say(where + (f"; {left:,} left in all runs of this stage" if left else ""))


async def spent_by(folder: Path) -> Spent:
    """What all sessions of a run have cost, a judge's calls included. Raises `DataError` and `JournalError`."""
    async with read_journal(folder / JOURNAL_FILE) as journal:
        return (await to_thread.run_sync(journal.survey))[1]


def is_free(options: RunOptions) -> bool:
    """Whether nobody bills the calls of a run: those of local models, of the oracle and of a replay."""
    models = {model.name for model in options.role_models.values()}
    return all(costs_nothing(each) or each.startswith(LOCAL) for each in models)


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


def what_changed(cell: Cell, folder: Path) -> str | None:
    """Why a run can't go on as the study declares it now: the option that differs, or what is wrong with its folder."""
    try:
        questions = max(cell.options.questions or 0, read_manifest(folder).dataset.limit or 0) or None
        resumed(folder, cell.declared_options | {"questions": questions})
    except RewooBenchError as error:
        return advice(error)
    return None


def advice(error: RewooBenchError) -> str:
    """The error, with advice that one can follow in a file."""
    if isinstance(error, OptionChanged):
        return f"{error.what}: take that back in the file, or give the cell another name"
    return str(error)
