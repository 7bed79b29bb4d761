"""A run from its options to its folder: the one place where the parts are put together.

options -> data set, architectures, models, toolbox -> evaluator -> run folder
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rewoo_bench.calls.caps import shutdown_on_signal
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.config.names import REPLAY, SOLVED, is_oracle, score_name
from rewoo_bench.config.specs import AGENT_NAME
from rewoo_bench.errors import (
    CapReached,
    HarnessFault,
    JournalError,
    ModelGone,
    ProviderRefused,
    RepeatedCrash,
    RunStopped,
    UsageError,
)
from rewoo_bench.evaluation.dry_run import RunEstimate, estimate_run
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder import (
    Outcome,
    Result,
    RunFolder,
    Task,
    open_run,
    remove_run,
    taken,
)
from rewoo_bench.evaluation.inputs import (
    NOTHING_GIVEN,
    PythonInputs,
    input_notes,
    question_notes,
    read_run_inputs,
    step_limit_notes,
    trial_notes,
)
from rewoo_bench.evaluation.prepare import (
    PreparedRun,
    connections,
    given_prices,
    make_evaluator,
    prepared,
    questions_at_once,
    run_columns,
)
from rewoo_bench.evaluation.progress import Progress, notices_to, say
from rewoo_bench.evaluation.question_choice import first_line, with_first_questions, with_recorded_ids
from rewoo_bench.evaluation.resume import (
    StudyRound,
    begin_manifest,
    new_run_id,
    now,
    sent_differences,
)
from rewoo_bench.evaluation.trust import remember, was_begun_here
from rewoo_bench.evaluation.with_worlds import rehearsed
from rewoo_bench.events import Event
from rewoo_bench.loaders.sampling import shuffled
from rewoo_bench.runs.folder import CALLS_FILE
from rewoo_bench.runs.journal.prefixes import common_prefixes
from rewoo_bench.runs.journal.store import JournalReader
from rewoo_bench.runs.manifest import ArchitectureFacts, Manifest, PrefixFacts, resume_command, write_manifest
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.runs.past_runs import RESULTS
from rewoo_bench.system.concurrency import background_task
from rewoo_bench.text.tokens import count_tool
from rewoo_bench.tools import BUNDLED
from rewoo_bench.tools.mcp_server import McpServers

if sys.platform != "win32":
    import resource

_OTHER_FILES = 128  # the journal, the corpus, tables, libraries, and connections of tools


def allow_open_files(connections: int) -> None:
    """Raises this process's limit of open files for that number of connections, as far as it may."""
    if sys.platform == "win32":  # there is no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _OTHER_FILES
    if resource.RLIM_INFINITY != soft < needed:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else min(needed, hard), hard)
        )


@dataclass(frozen=True)
class Listeners:
    """Callbacks of a run: `on_result` gets each result as it ends, `on_event` the events inside each question."""

    on_result: Callable[[Result], None] | None = None
    on_event: Callable[[Task, Event], None] | None = None


async def run(
    options: RunOptions,
    python_inputs: PythonInputs = NOTHING_GIVEN,
    listeners: Listeners = Listeners(),
    *,
    signals: bool = True,
    is_kept: bool = True,
    study: StudyRound | None = None,
) -> Outcome:
    """Runs the benchmark; every finished question is in the folder, whatever ends the run.

    With `signals`, Ctrl-C, SIGTERM and SIGHUP end the run in good order; without, they are the caller's. `is_kept` says
    that the folder stays, so that it is worth naming, and `study` that this is a part of one.

    Raises `UsageError` before the first question where the command or its input is wrong.
    """
    chosen = with_recorded_ids(options)
    declared = options = with_first_questions(chosen) if study is None else chosen
    if study is not None and study.run_cost is not None:  # of this session alone: the manifest keeps what was declared
        options = replace(options, run_cost=study.run_cost)
    async with AsyncExitStack() as stack:
        with notices_to(say):
            prepared_run = await stack.enter_async_context(prepared(options, python_inputs))
            allow_open_files(sum(connections(options, prepared_run).values()))
            run_id = new_run_id([architecture.name for architecture in prepared_run.architectures])
            folder = options.resume or options.out or RESULTS / run_id
            stack.enter_context(taken(folder, is_new=options.resume is None))
            manifest = begin_manifest(declared, prepared_run, folder, run_id, study)
            columns = run_columns(options, prepared_run, manifest.run_id)
            opened = await stack.enter_async_context(
                open_run(folder, columns, recorded_calls=manifest.recorded_calls or 0, accept_loss=options.accept_loss)
            )
        if options.accept_loss:
            manifest = manifest.model_copy(update={"recorded_calls": opened.journal.recorded_calls})
        # Only now: a run that is refused stays as it was, and a run with a manifest has a journal.
        write_manifest(folder, manifest)
        if options.progress and is_kept:
            agents = any(each.spec.runner == AGENT_NAME for each in prepared_run.architectures)
            plain = not (agents or options.world or options.mcp or options.tools or options.engine == "ray")
            say(first_line(options, prepared_run.dataset, folder, len(opened.journal.finished()), plain=plain))
        if is_kept:
            remember(manifest.as_json())
        judged_live = options.judge_model and not options.judge_model.startswith(REPLAY)
        live = frozenset({"judge"} if judged_live else ())
        recorder = Recorder(opened.journal, replay=prepared_run.replay, live_roles=live, cache=prepared_run.cache)
        shutdown = recorder.live.shutdown
        on_signal = partial(shutdown_on_signal, shutdown, options.grace, resume_command(folder))
        await stack.enter_async_context(background_task(on_signal) if signals else nullcontext())
        evaluator = make_evaluator(options, prepared_run, recorder)
        evaluator = replace(evaluator, asks_failed=study is None or study.asks_failed)
        if options.engine == "ray":
            from rewoo_bench.evaluation.cluster.start import ray_workers

            if options.progress:
                say(f"connecting to Ray at {options.ray_address}" if options.ray_address else "starting Ray")
            wants_events = listeners.on_event is not None
            on_ray = ray_workers(options, prepared_run, recorder, sent=manifest.sent, wants_events=wants_events)
            try:
                workers = await stack.enter_async_context(on_ray)
            except UsageError:
                if options.resume is None:
                    remove_run(folder)  # nothing was asked: the same --out can be used again
                raise
            evaluator = replace(evaluator, engine=workers, concurrency=questions_at_once(options, prepared_run))
        end = await _evaluated(options, prepared_run, evaluator, opened, manifest, listeners, study)
        end.was_interrupted = shutdown.requested.is_set() and shutdown.reason is None
        return end


async def dry_run(options: RunOptions) -> list[RunEstimate]:
    """Estimates calls, tokens and cost; no model is fetched or asked, and nothing is written."""
    asked = with_first_questions(with_recorded_ids(options))
    async with McpServers(options.mcp_timeout) as servers:
        inputs = await read_run_inputs(asked, servers=servers)
        async with inputs.toolbox as toolbox:
            return await estimate_run(
                inputs.dataset.examples,
                inputs.architectures,
                toolbox,
                inputs.dataset.scorer,
                trials=options.trials,
                models={role: model.name for role, model in options.role_models.items()},
                api_base=options.api_base,
                prices=given_prices(options),
            )


async def _evaluated(
    options: RunOptions,
    prepared_run: PreparedRun,
    evaluator: Evaluator,
    opened: RunFolder,
    manifest: Manifest,
    listeners: Listeners,
    study: StudyRound | None,
) -> Outcome:
    """Asks the questions and writes the files, whatever ends the run."""
    folder = opened.folder
    tasks = [task.key for task in tasks_of(prepared_run.dataset.examples, prepared_run.architectures, options.trials)]
    progress = Progress(
        len(tasks),
        done=(done := len(opened.journal.finished())),
        shown=options.progress,
        score=score_name(checked=prepared_run.dataset.scoring == SOLVED),
        engine=evaluator.engine.state if evaluator.engine else None,
        calls=lambda: opened.journal.recorded_calls,
    )
    notes = input_notes(prepared_run.dataset, prepared_run.architectures, options.questions)
    if (worlds := prepared_run.toolbox.worlds) is not None and options.resume is None:
        with_gold = any(is_oracle(role.name) for role in options.role_models.values())
        notes += await rehearsed(prepared_run.dataset, worlds, options.mcp_timeout, with_gold=with_gold)
    for note in notes:
        progress.note(note)

    end = Outcome(folder, tasks, opened.shared)
    try:
        with notices_to(progress.say):
            limits = question_notes(prepared_run.dataset)
            limits += step_limit_notes(prepared_run.dataset, prepared_run.architectures)
            of_cell = f"{study.facts['cell']}: " if study else ""
            trials = trial_notes(options, prepared_run.architectures)
            for note in (*limits, *trials) if study is None or study.is_new_session else ():
                logging.getLogger(__name__).warning(of_cell + note)  # also without progress: it bears on the accuracy
            if done >= len(tasks):
                logging.getLogger(__name__).warning(
                    f"nothing is left to do: all {len(tasks):,} answers are finished; the tables are written again"
                )
            await _ask(options, prepared_run, evaluator, opened, listeners, progress, end)
            for line in end.other_models():
                logging.getLogger(__name__).warning(line)
    finally:
        with suppress(OSError):  # of a terminal that was closed
            progress.close()
        facts: dict[str, Any] = {"sent": sent_differences(options, prepared_run)}
        if prepared_run.gateway and prepared_run.gateway.refused:  # by path: requests with the key of no open question
            facts["refused_requests"] = dict(prepared_run.gateway.refused)
        if evaluator.engine is not None:
            facts["sent"] |= evaluator.engine.sent
        if was_begun_here(manifest.as_json()):
            remember({**manifest.as_json(), "sent": facts["sent"]})
        questions = {example.id: example.question for example in prepared_run.dataset.examples}
        rows = await _write_tables(opened, prepared_run.replay, manifest, questions, end, facts)
    is_empty = options.resume is None and not opened.journal.has_answers_or_bills()
    if is_empty and end.wrong:
        remove_run(folder)  # nothing was answered yet: the same --out can be used again
    if end.wrong and (is_empty or not end.is_refused):
        raise end.wrong
    end.is_resumable = end.can_be_retried or (rows < len(tasks) and not end.is_failure(options.fail_on_error))
    end.finished = len(opened.journal.finished())
    end.cost_usd = opened.journal.spent.cost_usd
    if end.reason:
        end.unfinished = opened.journal.survey(unfinished=True)[1]
    return end


async def _ask(
    options: RunOptions,
    prepared_run: PreparedRun,
    evaluator: Evaluator,
    opened: RunFolder,
    listeners: Listeners,
    progress: Progress,
    end: Outcome,
) -> None:
    """Asks every question; `end` says how that ended."""

    def on_result(result: Result) -> None:
        progress.add(result)
        end.add(result)
        if listeners.on_result:
            listeners.on_result(result)

    try:
        with progress.moving():
            totals = await evaluator.run(
                shuffled(prepared_run.dataset.examples, options.seed),
                prepared_run.architectures,
                trials=options.trials,
                store=opened.store,
                on_result=on_result,
                on_event=listeners.on_event,
            )
    except (RunStopped, ModelGone, JournalError, HarnessFault) as stop:
        end.reason, end.cap = str(stop), stop if isinstance(stop, CapReached) else None
        end.has_repeated_crash = isinstance(stop, RepeatedCrash)
    except (ProviderRefused, UsageError) as stop:  # a wrong key, an agent that can't be started
        end.reason, end.is_refused = str(stop), isinstance(stop, ProviderRefused)
        end.wrong = UsageError(str(stop)) if isinstance(stop, ProviderRefused) else stop
    else:
        end.has_asked_all, end.reason = True, evaluator.run_limits.unfinished(totals)
        end.status = "incomplete" if end.reason else "done"


async def _write_tables(
    opened: RunFolder,
    replayed: JournalReader | None,
    manifest: Manifest,
    questions: Mapping[str, str],
    end: Outcome,
    facts: dict[str, Any],
) -> int:
    """Writes the tables and the manifest; the number of rows. Changes `end` where rows are missing.

    Raises `JournalError` where a file can't be written.
    """
    folder = opened.folder
    try:
        rows = await opened.export(end.keys, replayed)
        if end.status == "done" and rows != len(end.keys):
            end.status, end.reason = "incomplete", f"the tables have {rows} rows of {len(end.keys)}"
        changed = {"status": end.status, "reason": end.reason, "finished_at": now(), "rows": rows, **facts}
        changed["recorded_calls"] = opened.journal.recorded_calls
        tools = {each.name: [*each.tools] for each in manifest.architectures}
        prefixes = common_prefixes((replayed or opened.journal).database, questions, tools)
        changed["shared_prefixes"] = {
            name: {role: PrefixFacts(**facts) for role, facts in roles.items()} for name, roles in prefixes.items()
        }
        changed["never_called"] = _never_called(folder, manifest.architectures)
        write_manifest(folder, manifest.model_copy(update=changed))
    except OSError as error:
        cause = f"can't write the tables of {str(folder)!r}: {error.strerror or error}"
        raise JournalError(f"{cause}; finished questions are in the journal; {resume_command(folder)}") from None
    return rows


def _never_called(folder: Path, architectures: Iterable[ArchitectureFacts]) -> dict[str, dict[str, int | None]]:
    """The tools that no call in calls.parquet is of; those that ask a model aren't tool calls there."""
    called = set[tuple[str, str]]()
    with pq.ParquetFile(folder / CALLS_FILE) as file:
        for batch in file.iter_batches(columns=["architecture", "kind", "name"]):
            called |= {(row["architecture"], row["name"]) for row in batch.to_pylist() if row["kind"] == "tool"}
    found: dict[str, dict[str, int | None]] = {}
    for each in architectures:
        for tool in each.tools:
            if tool != "LLM" and (each.name, tool) not in called:
                tokens = count_tool(BUNDLED[tool]) if tool in BUNDLED else None
                found.setdefault(each.name, {})[tool] = tokens
    return found
