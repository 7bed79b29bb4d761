"""Which questions of a data set a run asks: `--ids`, `--type`, `--failed-in`, `--wrong-in`, then `--questions`.

    options = with_recorded_ids(options)    # questions that failed or were wrong in an earlier run, by id
    options = with_first_questions(options) # eight for a first run: the sample and the embedded model
    dataset = load_chosen(options)

A question has to fit `--ids`, `--type` and, where they are given, one of `--failed-in` and `--wrong-in`. The order
of the seed stays, and `--questions` counts chosen questions, so a smaller limit still gives a prefix of a larger one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rewoo_bench.config.names import REPLAY, dataset_heading, is_oracle
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.loaders.load import Dataset, load_dataset_examples, split_options
from rewoo_bench.loaders.sampling import ids_hash, shuffled
from rewoo_bench.runs.folder import load_table
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.runs.options import DEFAULT_MODEL, OPTIONS, RunOptions
from rewoo_bench.text.words import counted, duration
from rewoo_bench.types import Example

FIRST_QUESTIONS = 8
"""Questions of a first run: with two architectures about a minute of the embedded model on two cores."""
_SECONDS_OF_AN_ANSWER = 3.75  # of the embedded model to a question of the sample, on two idle cores
_SECONDS_OF_AN_ORACLES_ANSWER = 0.01
_MOST_MADE = 5_000  # generated questions, until an id counts as unknown
_CHOSEN: Mapping[str, str] = {"--failed-in": "failed", "--wrong-in": "was wrong"}


def read_ids(file: Path) -> tuple[str, ...]:
    """The ids of a file, one a line; empty lines don't count. Raises `UsageError`."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()  # Windows editors begin a file with a BOM
    except UnicodeDecodeError:
        raise UsageError(f"--ids: {str(file)!r} isn't UTF-8") from None
    ids = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not ids:
        raise UsageError(f"--ids: {str(file)!r} has no ids; expected one a line")
    return ids


def with_recorded_ids(options: RunOptions) -> RunOptions:
    """The options with the ids that `failed_in` and `wrong_in` mean, so that a resumed run asks the same questions."""
    if options.resume is not None:
        return options
    options, runs = _as_replayed(options), _recorded_runs(options)
    if not runs:
        return options
    recorded = dict.fromkeys(each for flag, run in runs.items() for each in _ids_of(run, flag))
    if not recorded:
        raise UsageError("; ".join(f"{flag}: no question {_CHOSEN[flag]} in {str(runs[flag])!r}" for flag in runs))
    ids = tuple(each for each in options.ids if each in recorded) if options.ids else tuple(recorded)
    if not ids:
        raise UsageError(f"--ids: none of these questions is in {' or '.join(runs)}")
    return replace(options, ids=ids)


def _as_replayed(options: RunOptions) -> RunOptions:
    """Of a replay, the options with the recorded run's failures on purpose, which its worlds are the outcome of.

    And with its choice of questions, where the options have none of their own.
    """
    if not options.model.startswith(REPLAY):
        return options
    try:
        recorded = read_manifest(Path(options.model.removeprefix(REPLAY))).options
    except DataError:  # the replay itself says what is wrong with the folder
        return options
    if not options.tool_failure_rate:
        faults = ("tool_failure_rate", "tool_failure_mode")
        options = replace(options, **{name: recorded.get(name) or getattr(options, name) for name in faults})
    chooses = options.questions is not None or options.ids or options.question_types or _recorded_runs(options)
    seed = recorded.get("seed") or 0
    if chooses or recorded.get("dataset") != options.dataset or options.seed not in (0, seed):
        return options
    ids, types = (tuple(recorded.get(name) or ()) for name in ("ids", "question_types"))
    return replace(options, questions=recorded.get("questions"), seed=seed, ids=ids, question_types=types)


def with_first_questions(options: RunOptions) -> RunOptions:
    """The options with `FIRST_QUESTIONS` where the embedded model is asked the sample and nobody chose questions."""
    is_chosen = options.resume or options.questions or options.ids or options.question_types
    return options if is_chosen or not _is_first(options) else replace(options, questions=FIRST_QUESTIONS)


def first_line(options: RunOptions, dataset: Dataset, folder: Path, done: int = 0, *, plain: bool = True) -> str:
    """What a run will do, and how long it takes where that is known: of plain tools, and a model that was timed.

    `done` answers are finished already, by earlier sessions.
    """
    questions, architectures = len(dataset.examples), len(options.architectures)
    left = questions * architectures * options.trials - done
    rows = dataset.manifest.get("rows") or questions
    of_all = f"{questions} of the {counted(rows, 'question')}" if rows > questions else counted(questions, "question")
    source = str((dataset.manifest.get("source") or {}).get("file", ""))
    trials = f", {options.trials} times each" if options.trials > 1 else ""
    said = f"asking {of_all} of {dataset_heading(dataset.name, source)}{trials}"
    parts = [f"{said}, {counted(architectures, 'architecture')}, with {options.model}"]
    if done:
        parts.append(f"{counted(left, 'answer')} left")
    if plain and {role.name for role in options.role_models.values()} == {options.model} and left:
        if is_oracle(options.model):
            parts.append(f"about {duration(1 + left * _SECONDS_OF_AN_ORACLES_ANSWER)}")
        elif _is_first(options):
            parts.append(f"about {duration(left * _SECONDS_OF_AN_ANSWER)}")
    if options.questions == FIRST_QUESTIONS and _is_first(options):
        parts.append(f"-n {rows} asks all")
    return "; ".join([*parts, f"writing to {folder}"])


def _is_first(options: RunOptions) -> bool:
    return (options.model, options.dataset) == (DEFAULT_MODEL, OPTIONS["dataset"].default)


def load_chosen(options: RunOptions) -> Dataset:
    """The questions of a run. Raises `UsageError`, naming unknown ids and types."""
    if not (options.ids or options.question_types):
        return _load(options, options.questions)
    dataset = _load(options, None)
    if "hub" in (source := dataset.manifest.get("source") or {}):
        dataset = _load(options, sys.maxsize)  # the choice is among all rows, beyond the default limit
    elif "generator" in source:
        dataset = _with_ids(options, dataset)
    chosen: Sequence[Example] = dataset.examples
    if options.ids:
        known = {example.id for example in chosen}
        if strangers := [each for each in options.ids if each not in known]:
            flags = [f"{flag} {run}" for flag, run in _recorded_runs(options).items()]
            hint = "; give the --dataset of that run" if flags else ""
            raise UsageError(
                f"{', '.join(flags) or '--ids'}: {dataset.name!r} has no question {strangers[0]!r}; "
                f"its ids are like {chosen[0].id!r}{hint}"
            )
        wanted = set(options.ids)
        chosen = [example for example in chosen if example.id in wanted]
    if options.question_types:
        known = {example.kind for example in chosen} - {""}
        for each in options.question_types:
            if each not in known:
                what = unknown("type", each, known) if known else f"{dataset.name!r} has no types"
                raise UsageError(f"--type: {what}")
        chosen = [example for example in chosen if example.kind in options.question_types]
    if options.questions is not None:
        chosen = shuffled(chosen, options.seed)[: options.questions]
    if not chosen:
        raise UsageError(f"--ids, --type: no question of {dataset.name!r} fits both")
    digest = ids_hash(example.id for example in chosen)
    facts = {**dataset.manifest, "limit": options.questions, "examples": len(chosen), "ids_hash": digest}
    return replace(dataset, examples=tuple(chosen), ids_hash=digest, manifest=facts)


def _with_ids(options: RunOptions, dataset: Dataset) -> Dataset:
    """As many questions of a generator, which may be endless, as the ids need; their number depends on nothing else."""
    limit = len(dataset.examples)
    while limit < _MOST_MADE and not {example.id for example in dataset.examples}.issuperset(options.ids):
        limit *= 4
        dataset = _load(options, limit)
    return dataset


def _load(options: RunOptions, limit: int | None) -> Dataset:
    in_world = options.world is not None
    if options.corpus and split_options(options.dataset)[2]:
        raise UsageError("--corpus: ?inject puts lines into the questions' own documents; leave one of the two out")
    return load_dataset_examples(
        options.dataset, split=options.split, limit=limit, seed=options.seed, in_world=in_world
    )


def _recorded_runs(options: RunOptions) -> dict[str, Path]:
    """Flag -> the earlier run that it takes questions from."""
    runs = {"--failed-in": options.failed_in, "--wrong-in": options.wrong_in}
    return {flag: run for flag, run in runs.items() if run is not None}


def _ids_of(run: Path, flag: str) -> list[str]:
    """Ids of the questions that failed in a run or were wrong, for any architecture.

    With the stop reason `agent_failed` a question is a wrong answer, and has failed too.
    """
    try:
        rows = load_table(run)
    except DataError as error:
        raise UsageError(f"{flag}: {error}") from None
    scores, ids, stops = (rows[name].to_pylist() for name in ("exact_match", "example_id", "stop_reason"))
    if flag == "--failed-in":
        return [each for each, stop in zip(ids, stops, strict=True) if stop in ("error", "agent_failed")]
    return [each for each, score in zip(ids, scores, strict=True) if score is False]
