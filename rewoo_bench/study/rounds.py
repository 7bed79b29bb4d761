"""A study's runs, made in rounds: each adds a few questions to a run, so that an early stop is balanced.

    end = await run_study(study, study.cells, Path("results/local/study"))

A cell is a run as `rewoo-bench run` makes one, in a folder of the study's. A round resumes it with more questions, and
everything that a resumed run guarantees holds here. Local models stay open from one round to the next, so that they
keep the prompts that they have read.

The second half says how far they are.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from anyio import to_thread

from rewoo_bench.config.names import LOCAL, REPLAY, file_names, is_oracle
from rewoo_bench.config.specs import AGENT_NAME
from rewoo_bench.errors import (
    DataError,
    JournalError,
    ModelNotFound,
    OptionChanged,
    RewooBenchError,
    UnknownPrice,
    UsageError,
)
from rewoo_bench.evaluation.inputs import PythonInputs, RunInputs, model_settings, read_run_inputs
from rewoo_bench.evaluation.prepare import costs_nothing
from rewoo_bench.evaluation.progress import duration
from rewoo_bench.evaluation.resume import StudyRound, resumed
from rewoo_bench.evaluation.run import dry_run, run
from rewoo_bench.evaluation.trust import remember
from rewoo_bench.models.open import HOSTED_CONCURRENCY, open_model
from rewoo_bench.runs.columns import CALLS, QUESTIONS
from rewoo_bench.runs.folder import CALLS_FILE, JOURNAL_FILE, QUESTIONS_FILE, load, open_table
from rewoo_bench.runs.journal.store import Spent, read_journal
from rewoo_bench.runs.manifest import LOOSE, MANIFEST, Manifest, changed_values, read_manifest
from rewoo_bench.runs.options import OPTIONS, RunOptions
from rewoo_bench.runs.publish import restore
from rewoo_bench.runs.rows import common_error, left_out
from rewoo_bench.study.declaration import Cell, Study
from rewoo_bench.system.output import echo
from rewoo_bench.text.redaction import redact_settings
from rewoo_bench.text.tables import text_table
from rewoo_bench.text.words import counted

_MOST_COPIES = 8  # of a local model; more architectures share their prefix caches
_MOST_IN_VAIN = 3  # questions in a row without an answer, before a run is left to a later session
_SECONDS_A_LINE = 30.0
DATASET_SIZE = "dataset_size"
"""In what a run's manifest says of its study: the questions of its data set, where all of them were declared."""
DECLARED_N = "declared_n"
"""Also there: the questions that were declared when the run began."""


@dataclass(frozen=True)
class SessionChoices:
    """What each session of a study may choose; none of it changes an answer. Raises `UsageError`."""

    n: int | None = None
    """Most questions of a run, below what the study declares."""
    block: int | None = None
    """Questions that a round adds to a run; None is as many as its model answers at the same time."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of every run, such as `engine`."""
    published: Path | None = None
    """A published study: runs that the folder lacks go on from the copies in it."""
    study_cost: float | None = None
    """Most US dollars of all runs of the study in all sessions."""
    say: Callable[[str], None] = lambda line: echo(line, err=True)

    def __post_init__(self) -> None:
        if self.study_cost is not None and not 0 < self.study_cost < math.inf:
            raise UsageError(f"--study-cost {self.study_cost:g}: expected dollars, a number above 0")


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
        elif changed := _changed(cell, folder / cell.name):  # it has its questions, of other settings
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
        self._started = self._said = time.monotonic()
        self._answered = 0  # in this session
        self._failed: dict[str, str] = {}  # why runs are incomplete that asked all their questions so far
        self._last_answer: dict[str, tuple[int, int]] = {}  # how many answers a run had, and of how many questions
        self._cost_usd: dict[str, float] = {}  # of each run, those of the study included that aren't asked now

    async def prepare(self, cells: Sequence[Cell]) -> None:
        """Reads the inputs of all runs, before any model is asked, and counts their questions."""
        copies = self._choices.published and self._choices.published / "runs"
        if copies and not any((copies / cell.name / MANIFEST).exists() for cell in cells):
            raise UsageError(  # else all that it has would be asked and paid again
                f"--from: {str(self._choices.published)!r} has no published run of these; "
                "expected a folder that `study publish` wrote, with the runs in its folder runs"
            )
        for cell in cells:
            try:
                inputs = await read_run_inputs(replace(cell.options, questions=self._most(cell)))
            except RewooBenchError as error:
                raise UsageError(f"{cell.name}: {error}") from None
            self.wanted[cell.name] = len(inputs.dataset.examples)
            most = self._most(cell)
            if most is not None and self.wanted[cell.name] < most:
                self._choices.say(f"{cell.name}: its data set has {self.wanted[cell.name]:,} of {most:,} questions")
            if copies:
                await self._restore(cell, copies / cell.name)
            self.asked[cell.name] = asked_of(self._folder / cell.name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--out: can't write to {str(self._folder)!r}: {error.strerror or error}") from None
        if self._choices.study_cost is not None:
            for cell in self._study.cells:
                if (self._folder / cell.name / MANIFEST).exists():
                    self._cost_usd[cell.name] = await self._cost_of(cell)

    async def _cost_of(self, cell: Cell) -> float:
        """US dollars of all sessions of a run; of one without its journal, those of its finished questions."""
        try:
            spent = await _spent(self._folder / cell.name)
        except (DataError, JournalError) as error:
            rows = _rows(self._folder / cell.name)[0]
            # Never less than nothing: somebody else's table would raise the limit.
            cost_usd = float(rows["cost_usd"].clip(lower=0).sum()) if len(rows) else 0.0
            self._choices.say(f"{cell.name}: {error}; --study-cost counts {cost_usd:.2f} USD, of its table")
            return cost_usd
        if spent.unpriced and not _is_free(cell.options):
            self._choices.say(f"{cell.name}: --study-cost doesn't count its calls whose price isn't known")
        return spent.cost_usd

    async def _restore(self, cell: Cell, copy: Path) -> None:
        """Begins a run with the questions of its published copy, if there is one. Its options are the cell's."""
        folder = self._folder / cell.name
        if (folder / MANIFEST).exists() or not (copy / MANIFEST).exists():
            return
        before = read_manifest(copy)
        if other := _differing_option(cell.options, before):
            raise UsageError(f"--from: {cell.name}: {OPTIONS[other].flag} was another one in the published run")
        options = replace(cell.options, questions=before.dataset.limit).as_json()
        rows = await restore(copy, folder, {"options": options})
        remember(read_manifest(folder).as_json())
        self._choices.say(f"{cell.name}: goes on from {counted(rows, 'published row')}")

    def _most(self, cell: Cell) -> int | None:
        limits = [limit for limit in (cell.options.questions, self._choices.n) if limit is not None]
        return min(limits, default=None)

    async def ask(self, cells: Sequence[Cell], stack: AsyncExitStack) -> None:
        """Asks the questions of a stage; the next one is always of the run that has the fewest.

        A run that has them, but has lost a table, gets a round of none, which writes its tables again.
        """
        todo = [
            cell
            for cell in cells
            if self.asked[cell.name] < self.wanted[cell.name]
            or (self.asked[cell.name] and _damage(self._folder / cell.name))
        ]
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
            if not fault and self.asked[cell.name] >= self.wanted[cell.name] and cell.name in self._failed:
                fault = await self._round(cell, copies.get(cell.options.model), again=True)
                fault = fault or self._failed.get(cell.name)
            if self.end.was_interrupted:
                return
            if fault:
                if cell.name in self._failed:
                    fault += _why(_error_of(_rows(self._folder / cell.name)[0]))
                self.end.unfinished[cell.name] = fault
                self._choices.say(f"{cell.name}: {fault}")
            if fault or self.asked[cell.name] >= self.wanted[cell.name]:
                todo.remove(cell)
            self._report(cell, cells, is_last=not todo)

    async def _round(self, cell: Cell, n_caches: int | None, *, again: bool = False) -> str | None:
        """Adds questions to a run, or asks those `again` that failed. Returns why it can't go on in this session."""
        folder = self._folder / cell.name
        most_usd = self._most_usd(cell)
        if most_usd is not None and most_usd <= self._cost_usd.get(cell.name, 0.0):
            return self._is_spent()
        is_new = not (folder / MANIFEST).exists()
        reached = self.asked[cell.name]
        block = self._choices.block or block_of(cell.options, self._choices)
        limit = max(reached, min(self.wanted[cell.name], reached + block))
        facts: dict[str, Any] = {"file": self._study.file.name, "sha256": self._study.sha256, "cell": cell.name}
        declared = self._study.spec.study.declared
        facts |= {"declared": str(declared)} if declared else {}
        facts |= {DATASET_SIZE: self.wanted[cell.name]} if self._most(cell) is None else {}
        facts |= {DECLARED_N: cell.options.questions} if cell.options.questions else {}
        study = StudyRound(facts, is_new_session=cell.name not in self._resumed, asks_failed=again, run_cost=most_usd)
        try:
            options = self._options(cell, folder, limit, is_new=is_new)
            outcome = await run(options, PythonInputs(n_caches=n_caches), study=study)
        except UnknownPrice as error:
            return str(error) if most_usd is None else f"{self._limit_flag}: {error.why}"  # the study's is the limit
        except RewooBenchError as error:  # of this run alone: changed settings, a refused key, a damaged folder
            return _in_words_of_a_study(error)
        self._cost_usd[cell.name] = outcome.cost_usd
        self._resumed.add(cell.name)
        self.end.was_interrupted = outcome.was_interrupted
        if outcome.status != "done" and (outcome.was_interrupted or not outcome.has_asked_all):
            spent = None if most_usd is None or outcome.cost_usd < most_usd else self._is_spent()
            return None if outcome.was_interrupted else spent or outcome.reason or "incomplete"
        self.asked[cell.name] = options.questions or limit  # of a killed run more than was known to be asked
        self._answered += (limit - reached) * len(cell.options.architectures) * cell.options.trials
        if outcome.status == "done":
            self._failed.pop(cell.name, None)
        else:  # a content filter refuses some questions: the others go on, and these are asked again at the end
            self._failed[cell.name] = outcome.reason or "some answers failed"
        answers, asked = self._last_answer.get(cell.name, (0, reached))
        if outcome.finished > answers:
            answers, asked = outcome.finished, self.asked[cell.name]
        self._last_answer[cell.name] = answers, asked
        return self._failed.get(cell.name) if self.asked[cell.name] - asked >= _MOST_IN_VAIN else None

    def _most_usd(self, cell: Cell) -> float | None:
        """What a run may cost in all sessions, where the study's limit leaves less than its own; None elsewhere."""
        if self._choices.study_cost is None or _is_free(cell.options):
            return None
        others = sum(amount for name, amount in self._cost_usd.items() if name != cell.name)
        left = round(max(0.0, self._choices.study_cost - others), 6)
        return None if cell.options.run_cost is not None and cell.options.run_cost <= left else left

    @property
    def _limit_flag(self) -> str:
        return f"--study-cost {self._choices.study_cost:g}"

    def _is_spent(self) -> str:
        return (
            f"all runs have cost {sum(self._cost_usd.values()):.2f} of {self._choices.study_cost:g} USD (--study-cost)"
        )

    def _options(self, cell: Cell, folder: Path, limit: int, *, is_new: bool) -> RunOptions:
        """The options of a round. Raises `UsageError` where the run was begun with other ones."""
        chosen = {**self._choices.options, "progress": False, "report": False}
        if is_new:
            return replace(cell.options, questions=limit, out=folder, **chosen)
        reached = read_manifest(folder).dataset.limit or 0
        if reached > max(self.wanted[cell.name], self.asked[cell.name]):
            raise UsageError(
                f"a round ended before all of its {reached:,} questions were answered: ask at least so many "
                "(-n, or n in the file)"
            )
        given = {**cell.declared_options, **chosen, "questions": max(limit, reached)}
        return resumed(folder, given, trust=False)

    def _report(self, cell: Cell, cells: Sequence[Cell], *, is_last: bool) -> None:
        """A line now and then: where the study is, and how long it will take."""
        if not is_last and time.monotonic() - self._said < _SECONDS_A_LINE:
            return
        self._said = time.monotonic()
        left = sum(
            max(0, self.wanted[each.name] - self.asked[each.name])
            * len(each.options.architectures)
            * each.options.trials
            for each in cells
            if each.name not in self.end.unfinished
        )
        seconds = self._said - self._started
        where = f"{cell.name}: {self.asked[cell.name]:,} of {counted(self.wanted[cell.name], 'question')}"
        if left and self._answered:
            where += f"; {counted(left, 'answer')} of all runs left, {duration(left * seconds / self._answered)} to go"
        self._choices.say(where)


def _is_free(options: RunOptions) -> bool:
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


# What of a study is done, what the rest will take, and which of its runs are no longer what it declares.
#
#     for each in await study_status(study, study.cells, Path("results/local/study")):
#         print(each.cell.name, each.asked, each.wanted, each.stale)


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
    rows = {cell.name: _rows(folder / cell.name) for cell in cells}
    seconds = {
        model: _seconds_a_call([rows[cell.name][0] for cell in cells if cell.options.model == model])
        for model in {cell.options.model for cell in cells}
    }
    return [
        await _status(study, cell, folder / cell.name, rows[cell.name], seconds[cell.options.model]) for cell in cells
    ]


def why_exploratory(study: Study, cell: Cell, manifest: Manifest | None) -> str | None:
    """Why a run decides no outcome: it was declared so, or was begun before what the study declares now."""
    other = manifest and cell.name in study.declared and _differing_option(study.declared[cell.name], manifest)
    otherwise = f"{OPTIONS[other].flag} isn't as declared" if other else None
    if cell.exploratory:
        return "declared as exploratory" + (f", {otherwise}" if otherwise else "")
    if manifest is None:
        return None
    if manifest.study is None:
        return "begun outside the study"
    if manifest.study.get("sha256") != study.sha256:
        return "begun before the study was changed"
    declared = study.spec.study.declared
    if declared and str(manifest.started_at) < str(declared):
        return "begun before the study was declared"
    return otherwise


def _differing_option(declared: RunOptions, manifest: Manifest) -> str | None:
    """The first option that changes answers and differs between a run and what was declared, as with `--set`.

    Models, and files of the same data set, may differ: the page names the model, and a file's name says nothing.
    """
    options = redact_settings(json.loads(json.dumps(declared.as_json(), default=str)))
    recorded, options = file_names(manifest.options), file_names(options)
    free = {"architectures", "questions", "ids", "corpus", "failed_in", "wrong_in", "llama_server", "price", "prices"}
    for name in filter(recorded.__contains__, options):
        values = [options[name], recorded[name]]
        if name == "dataset":  # `hotpotqa=dev.json?objectives=2`
            values = [(re.split("[=?]", str(each))[0], str(each).partition("?")[2]) for each in values]
        is_free = name in free or name.endswith("model") or not OPTIONS[name].role.resume
        if not is_free and values[0] != values[1]:
            return str(name)
    return None


async def _status(
    study: Study, cell: Cell, folder: Path, found: tuple[pd.DataFrame, str | None], seconds: float | None
) -> CellStatus:
    rows, damage = found
    of_a_question = len(cell.options.architectures) * cell.options.trials
    asked = max(asked_of(folder), len(rows) // of_a_question)  # the latter while a round goes on
    try:
        inputs = await read_run_inputs(cell.options)
    except RewooBenchError as error:  # its data or its model isn't here
        wanted = max(asked, cell.options.questions or 0)
        return CellStatus(cell, asked, wanted, None, None, None, unreadable=str(error))
    wanted = max(asked, len(inputs.dataset.examples))
    left = wanted - asked
    calls: float | None
    answered = rows[~left_out(rows)] if len(rows) else rows
    if len(answered):
        calls, paid = await _of_an_answer(cell, folder, answered)
        calls, paid = calls * of_a_question, None if paid is None else paid * of_a_question
    elif any(each.spec.runner == AGENT_NAME for each in inputs.architectures):
        calls = paid = None
    else:
        try:
            estimates = await dry_run(replace(cell.options, questions=min(10, wanted)))
        except RewooBenchError as error:
            return CellStatus(cell, asked, wanted, None, None, None, unreadable=str(error))
        calls = sum(each.llm_calls for each in estimates) / min(10, wanted)
        costs = [each.cost_usd for each in estimates]
        paid = None if None in costs else sum(cost for cost in costs if cost) / min(10, wanted)
    manifest: Manifest | None = None
    try:
        manifest = read_manifest(folder)
    except DataError as error:
        stale = str(error) if (folder / MANIFEST).exists() else None
    else:
        is_published = manifest.published is not None  # and so has no journal to go on with
        stale = damage or (None if is_published and not left else _stale(cell, folder, manifest, inputs))
    hours = None if seconds is None or calls is None else left * calls * seconds / 3600
    dollars = None if paid is None else left * paid
    if not left or all(costs_nothing(each.name) for each in cell.options.role_models.values()):
        hours = dollars = 0.0
    elif paid is None and _is_free(cell.options):
        dollars = 0.0
    calls_left = None if calls is None else left * calls
    exploratory = why_exploratory(study, cell, manifest)
    failed = int(left_out(rows).sum()) if len(rows) else 0
    return CellStatus(
        cell, asked, wanted, calls_left, hours, dollars, stale, exploratory,
        failed=failed, common_error=_error_of(rows),
    )  # fmt: skip


async def _spent(folder: Path) -> Spent:
    """What all sessions of a run have cost. Raises `DataError` and `JournalError`."""
    async with read_journal(folder / JOURNAL_FILE) as journal:
        return (await to_thread.run_sync(journal.survey))[1]


async def _of_an_answer(cell: Cell, folder: Path, answered: pd.DataFrame) -> tuple[float, float | None]:
    """Model calls and dollars of an answer, those of a judge included, which its row doesn't have."""
    calls, costs = float(answered["llm_calls"].sum()), answered["cost_usd"]
    paid = None if costs.isna().any() else float(costs.sum())
    if cell.options.judge_model:
        if not _damage(folder):
            calls += float((pd.read_parquet(folder / CALLS_FILE, columns=["role"])["role"] == "judge").sum())
        try:  # only the journal has what a judge cost
            spent = await _spent(folder)
            paid = None if spent.unpriced else spent.cost_usd
        except (DataError, JournalError):
            paid = None
    return calls / len(answered), None if paid is None else paid / len(answered)


def _rows(folder: Path) -> tuple[pd.DataFrame, str | None]:
    """The rows of a run, and what is wrong with its tables, where it has any."""
    try:
        return load(folder), _damage(folder)
    except DataError as error:
        return pd.DataFrame(), str(error) if (folder / QUESTIONS_FILE).exists() else None


def _damage(folder: Path) -> str | None:
    """What is wrong with the tables of a run that has asked questions."""
    for name, schema in ((QUESTIONS_FILE, QUESTIONS), (CALLS_FILE, CALLS)):
        try:
            open_table(folder / name, schema).close()
        except FileNotFoundError:
            return f"it has lost its {name}"
        except DataError as error:
            return str(error)
    return None


def _error_of(rows: pd.DataFrame) -> str:
    """The most common error of the answers that failed."""
    return common_error(rows[left_out(rows)]) if len(rows) else ""


def _why(error: str) -> str:
    return f"; most common error: {error}" if error else ""


def _seconds_a_call(tables: Sequence[pd.DataFrame]) -> float | None:
    """Mean seconds of a question for each of its model calls; None where nothing was asked."""
    known = [table for table in tables if len(table)]
    calls = sum(float(table["llm_calls"].sum()) for table in known)
    return sum(float(table["latency_s"].sum()) for table in known) / calls if calls else None


def _stale(cell: Cell, folder: Path, manifest: Manifest, inputs: RunInputs) -> str | None:
    """The first difference between a run and what the study would begin now."""
    if changed := _changed(cell, folder):
        return changed
    now = json.loads(json.dumps([each.manifest for each in inputs.architectures], default=str))
    return next(changed_values(manifest.as_json().get("architectures"), now, "architectures", LOOSE), None)


def _changed(cell: Cell, folder: Path) -> str | None:
    """Why a run can't go on as the study declares it now: the option that differs, or what is wrong with its folder."""
    try:
        questions = max(cell.options.questions or 0, read_manifest(folder).dataset.limit or 0) or None
        resumed(folder, cell.declared_options | {"questions": questions})
    except RewooBenchError as error:
        return _in_words_of_a_study(error)
    return None


def _in_words_of_a_study(error: RewooBenchError) -> str:
    """The error without the flag that nobody gave, and with advice that one can follow in a file."""
    if isinstance(error, OptionChanged):
        return f"{error.what}: take that back in the file, or give the cell another name"
    return str(error).removeprefix("--resume: ")


def _total(found: Sequence[CellStatus]) -> str:
    """What all runs lack, and of how many of them that isn't known."""
    lacking = [each for each in found if each.wanted > each.asked]
    said, unknown = [], []
    for name, shown, amounts in (
        ("calls", "{:,.0f} calls", [each.calls_left for each in lacking]),
        ("dollars", "${:,.2f}", [each.dollars_left for each in lacking]),
        ("hours", "{:,.1f} hours one after the other", [each.hours_left for each in lacking]),
    ):
        known = [amount for amount in amounts if amount is not None]
        said += [shown.format(sum(known))] if known else []
        unknown += [f"{name} of {counted(len(amounts) - len(known), 'run')}"] if len(known) < len(amounts) else []
    total = f"{len(lacking)} of {len(found)} runs lack questions"
    total += f": {', '.join(said)}" if said else ""
    return total + (f"; unknown: {', '.join(unknown)}" if unknown else "")


def status_text(found: Sequence[CellStatus]) -> str:
    """The state of a study as a table, with a line for each run that is stale or exploratory."""
    cells = [["run", "questions", "calls left", "hours left", "$ left"]]
    for each in found:
        hours = "?" if each.hours_left is None else f"{each.hours_left:,.1f}"
        dollars = "?" if each.dollars_left is None else f"{each.dollars_left:,.2f}"
        done = f"{each.asked:,} of {each.wanted:,}"
        calls = "?" if each.calls_left is None else f"{each.calls_left:,.0f}"
        cells.append([each.cell.name, done, calls, hours, dollars])
    lines = text_table(cells)
    lines += ["", _total(found)]
    for why in dict.fromkeys(each.unreadable for each in found if each.unreadable):  # often the same of many runs
        first, *others = (each.cell.name for each in found if each.unreadable == why)
        named = f"{first} and {counted(len(others), 'other run')}" if others else first
        lines.append(f"can't be asked here: {named}: {why}")
    lines += [
        f"failed: {each.cell.name}: {counted(each.failed, 'answer')}{_why(each.common_error)}"
        for each in found
        if each.failed
    ]
    lines += [f"stale: {each.cell.name}: {each.stale}" for each in found if each.stale]
    lines += [
        f"exploratory: {each.cell.name}: {each.exploratory}"
        for each in found
        if each.exploratory and not each.cell.exploratory
    ]
    return "\n".join(lines)
