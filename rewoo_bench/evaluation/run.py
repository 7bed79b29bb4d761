"""A run from its options to its folder: the one place where the parts are put together.

options -> data set, architectures, models, toolbox -> evaluator -> run folder
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from rewoo_bench.concurrency import beside
from rewoo_bench.errors import HarnessFault, JournalError, ModelGone, ProviderRefused, RunStopped, UsageError
from rewoo_bench.evaluation.dry_run import Estimate, estimate
from rewoo_bench.evaluation.environment import command_line, environment, new_run_id
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder_lock import begin, check_journal, check_new, taken
from rewoo_bench.evaluation.inputs import Inputs, model_settings, read_inputs, sample_note
from rewoo_bench.evaluation.judge import ModelJudge
from rewoo_bench.evaluation.notices import notices_to, say
from rewoo_bench.evaluation.open_files import allow_open_files
from rewoo_bench.evaluation.price_check import check_price, costs_nothing
from rewoo_bench.evaluation.progress import Progress
from rewoo_bench.evaluation.resume import check_same, resume_command
from rewoo_bench.evaluation.run_folder import RunFolder, open_run, remove_run
from rewoo_bench.journal.response_cache import ResponseCache
from rewoo_bench.journal.store import JOURNAL, JournalReader, read_journal
from rewoo_bench.loaders.sampling import shuffled
from rewoo_bench.metering.calls import Limits
from rewoo_bench.metering.interrupt import shutdown_on_signal
from rewoo_bench.metering.recorder import Recorder
from rewoo_bench.metering.run_limits import RunLimits
from rewoo_bench.model_names import LOCAL, REPLAY
from rewoo_bench.models.hosted.rate_limiter import AdaptiveLimiter
from rewoo_bench.models.hosted.retry import RetryingModel
from rewoo_bench.models.open import OpenModel, open_model
from rewoo_bench.runs.manifest import Manifest, manifest_of, read_manifest, write_manifest
from rewoo_bench.runs.options import RoleModel, RunOptions
from rewoo_bench.text.tokens import TOKENIZER
from rewoo_bench.tools import Corpus
from rewoo_bench.types import GoldAware, Model

RESULTS = Path("results/local")


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `done`, or `incomplete` for the reason given."""

    folder: Path
    status: Literal["done", "incomplete"]
    reason: str | None = None
    tasks: int = 0
    """Questions x trials x architectures that were to be done."""


@dataclass(frozen=True)
class _Prepared(Inputs):
    """What a run works with: its inputs, and models that are ready."""

    models: dict[RoleModel, OpenModel]
    replay: JournalReader | None
    cache: ResponseCache | None


async def run(options: RunOptions) -> Outcome:
    """Runs the benchmark; what was finished is in the folder, whatever ends the run.

    Raises `UsageError` before the first question where the command or its input is wrong.
    """
    async with AsyncExitStack() as stack:
        with notices_to(say):
            prepared = await stack.enter_async_context(_prepared(options))
            allow_open_files(sum(_connections(options, prepared).values()))
            run_id = new_run_id([architecture.name for architecture in prepared.architectures])
            folder = options.resume or options.out or RESULTS / run_id
            stack.enter_context(taken(folder, is_new=options.resume is None))
            manifest = _begun(options, prepared, folder, run_id)
            columns = _run_columns(options, prepared, manifest.run_id)
            opened = await stack.enter_async_context(open_run(folder, columns))
        if options.resume is not None:
            begin(folder, manifest, "--resume")  # only now: the run may be refused, and stays as it was then
        judged_live = options.judge_model and not options.judge_model.startswith(REPLAY)
        live = frozenset({"judge"} if judged_live else ())
        recorder = Recorder(opened.journal, prepared.replay, live, prepared.cache)
        await stack.enter_async_context(
            beside(partial(shutdown_on_signal, recorder.shutdown, options.grace, resume_command(folder)))
        )
        evaluator = _evaluator(options, prepared, recorder)
        return await _evaluated(options, prepared, evaluator, opened, manifest)


async def dry_run(options: RunOptions) -> list[Estimate]:
    """What the run would take; no model is fetched or asked, and nothing is written."""
    inputs = await read_inputs(options)
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
    options: RunOptions, prepared: _Prepared, evaluator: Evaluator, opened: RunFolder, manifest: Manifest
) -> Outcome:
    """Runs what is to be run and writes the files, whatever ends it."""
    folder, examples = opened.folder, prepared.dataset.examples
    tasks = [task.key for task in tasks_of(examples, prepared.architectures, options.trials)]
    progress = Progress(len(tasks), done=opened.journal.count_finished(), shown=options.progress)
    if note := sample_note(prepared.dataset, options.limit):
        progress.note(note)
    progress.note(f"writing to {folder}")  # where to look at once, and after an interruption
    ended: dict[str, Any] = {"status": "incomplete", "reason": "interrupted"}
    refused: UsageError | None = None
    try:
        with notices_to(progress.say):
            totals = await evaluator.run(
                shuffled(examples, options.seed),
                prepared.architectures,
                trials=options.trials,
                keep=opened.keep,
                on_result=progress.add,
            )
        failed = evaluator.run_limits.unfinished(totals)
        ended = {"status": "incomplete" if failed else "done", "reason": failed}
    except (RunStopped, ModelGone, JournalError, HarnessFault) as stop:
        ended["reason"] = str(stop)
    except ProviderRefused as stop:
        ended["reason"] = str(stop)
        refused = UsageError(str(stop))
    finally:
        with suppress(OSError):  # of a terminal that was closed
            progress.close()
        try:
            rows = await opened.export(tasks)
            if ended["status"] == "done" and rows != len(tasks):
                ended = {"status": "incomplete", "reason": f"the tables have {rows} rows of {len(tasks)}"}
            changed = {"finished_at": _now(), "rows": rows, "sent": _sent(options, prepared)}
            write_manifest(folder, manifest.model_copy(update={**ended, **changed}))
        except OSError as error:
            said = f"can't write the tables of {str(folder)!r}: {error.strerror or error}"
            raise JournalError(f"{said}; the journal has what was finished; {resume_command(folder)}") from None
    if refused and not rows and options.resume is None and not opened.journal.holds_answers():
        remove_run(folder)  # nothing was answered yet: the same --out can be used again
        raise refused
    return Outcome(folder, **ended, tasks=len(tasks))


@asynccontextmanager
async def _prepared(options: RunOptions) -> AsyncIterator[_Prepared]:
    """Everything that can be wrong is found here, cheapest first, before a model is fetched or asked."""
    if options.out is not None and options.resume is None:
        check_new(options.out)  # once more when the folder is taken
    inputs = await read_inputs(options)
    async with AsyncExitStack() as stack:
        replay = cache = None
        if options.model.startswith(REPLAY):
            recorded = Path(options.model.removeprefix(REPLAY)) / JOURNAL
            replay = await stack.enter_async_context(read_journal(recorded))
        if options.cache:
            cache = stack.enter_context(closing(ResponseCache(options.cache)))
        opened: dict[RoleModel, OpenModel] = {}
        for role in dict.fromkeys(options.role_models.values()):
            settings = replace(model_settings(options), temperature=role.temperature)
            if role.name.startswith(LOCAL):
                check_price(options, role.name, None)  # before anything is fetched
            opened[role] = await stack.enter_async_context(open_model(role.name, settings))
            check_price(options, role.name, opened[role].prices)
        await stack.enter_async_context(inputs.toolbox)
        yield _Prepared(**vars(inputs), models=opened, replay=replay, cache=cache)


def _evaluator(options: RunOptions, prepared: _Prepared, recorder: Recorder) -> Evaluator:
    limiters = {name: AdaptiveLimiter(places) for name, places in _connections(options, prepared).items()}
    models: dict[str, Model] = {}
    for role, wanted in options.role_models.items():
        opened = prepared.models[wanted]
        if isinstance(opened.model, GoldAware):
            models[role] = opened.model  # it has no provider to be patient with
            continue
        models[role] = RetryingModel(
            opened.model,
            name=wanted.name,
            identity=opened.identity,
            prices=opened.prices,
            max_retries=options.max_retries,
            limiter=limiters.get(wanted.name),
        )
    is_free = all(costs_nothing(model.name) for model in options.role_models.values())
    return Evaluator(
        models=models,
        scoring=prepared.dataset.scorer,
        toolbox=prepared.toolbox,
        limits=Limits(options.token_limit, options.time_limit, None if is_free else options.cost_limit),
        run_limits=RunLimits(
            options.max_total_tokens, None if is_free else options.max_total_cost, options.fail_on_error
        ),
        judge=ModelJudge() if options.judge_model else None,
        recorder=recorder,
        grace_s=options.grace,
        concurrency=_concurrency(options, prepared),
    )


def _connections(options: RunOptions, prepared: _Prepared) -> dict[str, int]:
    """The most calls at once to each model that has a provider."""
    return {
        wanted.name: options.max_connections or opened.concurrency
        for wanted, opened in prepared.models.items()
        if not costs_nothing(wanted.name)
    }


def _concurrency(options: RunOptions, prepared: _Prepared) -> int:
    return options.concurrency or prepared.models[options.role_models[""]].concurrency


def _begun(options: RunOptions, prepared: _Prepared, folder: Path, run_id: str) -> Manifest:
    """The manifest of a run: a new one, which is written, or that of the run that goes on."""
    manifest = _manifest(options, prepared, run_id)
    if options.resume is not None:
        before = read_manifest(options.resume)
        check_journal(folder, before.rows or 0)
        check_same(before, manifest, [example.id for example in prepared.dataset.examples])
        _recall(options, prepared, before.sent)
        sessions = [*before.sessions, {"command": command_line(), "started_at": _now()}]
        kept = {"run_id": before.run_id, "started_at": before.started_at, "command": before.command}
        return manifest.model_copy(update={**kept, "sessions": sessions})
    begin(folder, manifest, "--out")
    return manifest


def _manifest(options: RunOptions, prepared: _Prepared, run_id: str) -> Manifest:
    facts = {
        "run_id": run_id,
        "status": "running",
        "started_at": _now(),
        "command": command_line(),
        "options": options.as_json(),
        "concurrency": _concurrency(options, prepared),
        "dataset": dict(prepared.dataset.manifest),
        "corpus": _corpus_manifest(prepared.corpus, options.corpus or prepared.dataset.corpus),
        "architectures": [architecture.manifest for architecture in prepared.architectures],
        "models": {
            role or "default": dict(prepared.models[model].manifest) for role, model in options.role_models.items()
        },
        "prices": {model.name: opened.prices for model, opened in prepared.models.items()},
        "tokenizer": TOKENIZER,
        "environment": environment(),
    }
    return manifest_of(json.loads(json.dumps(facts, default=str)))


def _recall(options: RunOptions, prepared: _Prepared, sent: Mapping[str, Any]) -> None:
    """Begins with what earlier sessions have learnt of the endpoints."""
    for role, model in options.role_models.items():
        if facts := sent.get(role or "default"):
            prepared.models[model].recall(facts)


def _sent(options: RunOptions, prepared: _Prepared) -> dict[str, Any]:
    """How requests to each role's model differed from what was asked for; only where they did."""
    found = {role or "default": dict(prepared.models[model].sent()) for role, model in options.role_models.items()}
    return {role: differences for role, differences in found.items() if differences}


def _corpus_manifest(corpus: Corpus | None, path: Path | None) -> dict[str, Any] | None:
    if corpus is None or path is None:
        return None
    return {"file": path.name, "content_hash": corpus.content_hash, "passages": len(corpus)}


def _run_columns(options: RunOptions, prepared: _Prepared, run_id: str) -> Mapping[str, Any]:
    """The columns of questions.parquet that are the same in every row of a run."""
    return {
        "run_id": run_id,
        "dataset": prepared.dataset.name,
        "model": options.model,
        "planner_model": options.planner_model or options.model,
        "solver_model": options.solver_model or options.model,
        "seed": options.seed,
        "temperature": options.temperature,
        "tool_failure_rate": options.tool_failure_rate,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
