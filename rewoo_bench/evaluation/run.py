"""A run from its options to its folder: the one place where the parts are put together.

options -> data set, architectures, models, toolbox -> evaluator -> run folder
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from rewoo_bench.concurrency import background_task
from rewoo_bench.errors import (
    HarnessFault,
    JournalError,
    ModelGone,
    ProviderRefused,
    RepeatedCrash,
    RunStopped,
    UsageError,
)
from rewoo_bench.evaluation.dry_run import RunEstimate, estimate
from rewoo_bench.evaluation.environment import new_run_id
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder_lock import begin, taken
from rewoo_bench.evaluation.given import GivenObjects
from rewoo_bench.evaluation.inputs import input_notes, read_inputs
from rewoo_bench.evaluation.new_manifest import begin_manifest, now, refused_requests, sent_differences
from rewoo_bench.evaluation.notices import notices_to, say
from rewoo_bench.evaluation.open_files import allow_open_files
from rewoo_bench.evaluation.prepare import PreparedRun, connections, make_evaluator, prepared, run_columns
from rewoo_bench.evaluation.progress import Progress
from rewoo_bench.evaluation.question_choice import with_recorded_ids
from rewoo_bench.evaluation.resume import resume_command
from rewoo_bench.evaluation.run_folder import RunFolder, open_run, remove_run
from rewoo_bench.evaluation.tasks import Result, Task
from rewoo_bench.evaluation.telemetry import exporting
from rewoo_bench.events import Event
from rewoo_bench.journal.records import TaskKey
from rewoo_bench.loaders.sampling import shuffled
from rewoo_bench.metering.interrupt import shutdown_on_signal
from rewoo_bench.metering.recorder import Recorder
from rewoo_bench.model_names import REPLAY
from rewoo_bench.runs.manifest import Manifest, write_manifest
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.tools.mcp import McpServers

RESULTS = Path("results/local")


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `done`, or `incomplete` for the reason given."""

    folder: Path
    status: Literal["done", "incomplete"]
    reason: str | None = None
    is_resumable: bool = True
    """Whether `--resume` can finish an incomplete run; False where every failure would come again."""
    keys: Sequence[TaskKey] = ()
    """Questions x trials x architectures in the order of the tables, finished or not."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The columns of questions.parquet that all rows share."""


@dataclass
class Failures:
    """The failed questions of a session, and whether another session could do better."""

    count: int = 0
    can_be_retried: bool = False
    """Whether one of them may succeed when it is tried again."""
    has_repeated_crash: bool = False

    def add(self, result: Result) -> None:
        if result.score is None:
            self.count += 1
            self.can_be_retried |= result.is_retryable

    def stopped(self, stop: Exception) -> None:
        """Records why the session ended."""
        self.has_repeated_crash |= isinstance(stop, RepeatedCrash)

    def ended_run(self, fail_on_error: float | None, tasks: int) -> bool:
        """Whether failures ended the run before its last question."""
        if fail_on_error is None:
            return self.has_repeated_crash
        return self.has_repeated_crash or self.count > (fail_on_error * (1 if fail_on_error >= 1 else tasks))


@dataclass(frozen=True)
class Listeners:
    """Callbacks of a run: `on_result` gets each result as it ends, `on_event` the events inside each question."""

    on_result: Callable[[Result], None] | None = None
    on_event: Callable[[Task, Event], None] | None = None


def in_turn(first: Callable[[Result], None], second: Callable[[Result], None] | None) -> Callable[[Result], None]:
    """A listener that calls both."""

    def call(result: Result) -> None:
        first(result)
        if second is not None:
            second(result)

    return call


async def run(
    options: RunOptions,
    given: GivenObjects = GivenObjects(),  # noqa: B008 - frozen
    listeners: Listeners = Listeners(),
    *,
    signals: bool = True,
) -> Outcome:
    """Runs the benchmark; every finished question is in the folder, whatever ends the run.

    With `signals`, Ctrl-C, SIGTERM and SIGHUP end the run in good order; without, they are the caller's.
    Raises `UsageError` before the first question where the command or its input is wrong.
    """
    options = with_recorded_ids(options)
    async with AsyncExitStack() as stack:
        with notices_to(say):
            prepared_run = await stack.enter_async_context(prepared(options, given))
            allow_open_files(sum(connections(options, prepared_run).values()))
            run_id = new_run_id([architecture.name for architecture in prepared_run.architectures])
            folder = options.resume or options.out or RESULTS / run_id
            stack.enter_context(taken(folder, is_new=options.resume is None))
            manifest = begin_manifest(options, prepared_run, folder, run_id)
            columns = run_columns(options, prepared_run, manifest.run_id)
            opened = await stack.enter_async_context(open_run(folder, columns))
        if options.resume is not None:
            begin(folder, manifest, "--resume")  # only now: a run that is refused stays as it was
        judged_live = options.judge_model and not options.judge_model.startswith(REPLAY)
        live = frozenset({"judge"} if judged_live else ())
        recorder = Recorder(opened.journal, prepared_run.replay, live, prepared_run.cache)
        on_signal = partial(shutdown_on_signal, recorder.shutdown, options.grace, resume_command(folder))
        await stack.enter_async_context(background_task(on_signal) if signals else nullcontext())
        evaluator = make_evaluator(options, prepared_run, recorder)
        if options.engine == "ray":
            try:
                evaluator = await _on_cluster(options, prepared_run, recorder, evaluator, manifest, listeners, stack)
            except UsageError:
                if options.resume is None:
                    remove_run(folder)  # nothing was asked: the same --out can be used again
                raise
        if options.otel:
            export = stack.enter_context(exporting(options.otel, manifest.run_id))
            listeners = replace(listeners, on_result=in_turn(export, listeners.on_result))
        return await _evaluated(options, prepared_run, evaluator, opened, manifest, listeners)


async def _on_cluster(
    options: RunOptions,
    prepared_run: PreparedRun,
    recorder: Recorder,
    evaluator: Evaluator,
    manifest: Manifest,
    listeners: Listeners,
    stack: AsyncExitStack,
) -> Evaluator:
    """The evaluator, whose questions the workers of a cluster ask until `stack` ends."""
    from rewoo_bench.evaluation.cluster.driver import questions_at_once, ray_engine

    engine = ray_engine(
        options,
        prepared_run,
        recorder,
        sent=manifest.sent,
        wants_events=listeners.on_event is not None,
        say=logging.getLogger(__name__).warning,
    )
    opened = await stack.enter_async_context(engine)
    return replace(evaluator, engine=opened, concurrency=questions_at_once(options, prepared_run))


async def dry_run(options: RunOptions) -> list[RunEstimate]:
    """Estimates calls, tokens and cost; no model is fetched or asked, and nothing is written."""
    async with McpServers() as servers:
        inputs = await read_inputs(with_recorded_ids(options), servers=servers)
        return await estimate(
            inputs.dataset.examples,
            inputs.architectures,
            inputs.toolbox,
            inputs.dataset.scorer,
            trials=options.trials,
            models={role: model.name for role, model in options.role_models.items()},
            api_base=options.api_base,
        )


async def _evaluated(
    options: RunOptions,
    prepared_run: PreparedRun,
    evaluator: Evaluator,
    opened: RunFolder,
    manifest: Manifest,
    listeners: Listeners,
) -> Outcome:
    """Asks the questions and writes the files, whatever ends the run."""
    folder, examples = opened.folder, prepared_run.dataset.examples
    tasks = [task.key for task in tasks_of(examples, prepared_run.architectures, options.trials)]
    progress = Progress(
        len(tasks),
        done=opened.journal.count_finished(),
        shown=options.progress,
        verbose=options.verbose,
        engine=evaluator.engine.state if evaluator.engine else None,
    )
    for note in input_notes(prepared_run.dataset, prepared_run.architectures, options.limit):
        progress.note(note)
    progress.note(f"writing to {folder}")  # where to look at once, and after an interruption

    failures = Failures()

    def on_result(result: Result) -> None:
        progress.add(result)
        failures.add(result)
        if listeners.on_result:
            listeners.on_result(result)

    ended: dict[str, Any] = {"status": "incomplete", "reason": "interrupted"}
    refused: UsageError | None = None  # by the provider: the answers so far are kept
    wrong: UsageError | None = None
    try:
        with notices_to(progress.say):
            totals = await evaluator.run(
                shuffled(examples, options.seed),
                prepared_run.architectures,
                trials=options.trials,
                keep=opened.keep,
                on_result=on_result,
                on_event=listeners.on_event,
            )
        failed = evaluator.run_limits.unfinished(totals)
        ended = {"status": "incomplete" if failed else "done", "reason": failed}
    except (RunStopped, ModelGone, JournalError, HarnessFault) as stop:
        ended["reason"] = str(stop)
        failures.stopped(stop)
    except ProviderRefused as stop:
        ended["reason"] = str(stop)
        refused = UsageError(str(stop))
    except UsageError as stop:  # such as an agent that can't be started
        ended["reason"] = str(stop)
        wrong = stop
    finally:
        with suppress(OSError):  # of a terminal that was closed
            progress.close()
        facts = {"sent": sent_differences(options, prepared_run), **refused_requests(prepared_run)}
        if evaluator.engine is not None:
            facts = evaluator.engine.facts(facts)
        rows = await _write_tables(opened, manifest, tasks, ended, facts)
    is_empty = not rows and options.resume is None and not opened.journal.holds_answers()
    if is_empty and (stopped := wrong or refused):
        remove_run(folder)  # nothing was answered yet: the same --out can be used again
        raise stopped
    if wrong:
        raise wrong
    is_resumable = failures.can_be_retried or (
        rows < len(tasks) and not failures.ended_run(options.fail_on_error, len(tasks))
    )
    return Outcome(folder, **ended, is_resumable=is_resumable, keys=tasks, columns=opened.columns)


async def _write_tables(
    opened: RunFolder, manifest: Manifest, tasks: Sequence[TaskKey], ended: dict[str, Any], facts: dict[str, Any]
) -> int:
    """Writes the tables and the manifest; the number of rows. Changes `ended` where rows are missing.

    Raises `JournalError` where a file can't be written.
    """
    folder = opened.folder
    try:
        rows = await opened.export(tasks)
        if ended["status"] == "done" and rows != len(tasks):
            ended.update(status="incomplete", reason=f"the tables have {rows} rows of {len(tasks)}")
        changed = {"finished_at": now(), "rows": rows, **facts}
        write_manifest(folder, manifest.model_copy(update={**ended, **changed}))
    except OSError as error:
        cause = f"can't write the tables of {str(folder)!r}: {error.strerror or error}"
        raise JournalError(f"{cause}; finished questions are in the journal; {resume_command(folder)}") from None
    return rows
