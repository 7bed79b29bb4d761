"""Which questions of a data set a run asks: `--ids`, `--type`, `--failed-in`, `--wrong-in`, then `--limit`.

    options = with_recorded_ids(options)    # questions that failed or were wrong in an earlier run, by id
    dataset = load_chosen(options)

A question has to fit `--ids`, `--type` and, where they are given, one of `--failed-in` and `--wrong-in`. The order
of the seed stays, and `--limit` counts chosen questions, so a smaller limit still gives a prefix of a larger one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.loaders.sampling import ids_hash, shuffled
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.types import Example

_SHOWN = 5  # ids in an error message


def read_ids(file: Path) -> tuple[str, ...]:
    """The ids of a file, one a line; empty lines don't count. Raises `UsageError`."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()  # Windows editors begin a file with a BOM
    except UnicodeDecodeError:
        raise UsageError(f"--ids: {str(file)!r} isn't UTF-8") from None
    except OSError as error:
        raise UsageError(f"--ids: can't read {str(file)!r}: {error.strerror}") from None
    ids = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not ids:
        raise UsageError(f"--ids: {str(file)!r} has no ids; expected one a line")
    return ids


def with_recorded_ids(options: RunOptions) -> RunOptions:
    """The options with the ids that `failed_in` and `wrong_in` mean, so that a resumed run asks the same questions."""
    if options.resume is not None or (options.failed_in is None and options.wrong_in is None):
        return options
    recorded: dict[str, None] = {}
    if options.failed_in:
        recorded |= _ids_of(options.failed_in, "--failed-in", failed=True)
    if options.wrong_in:
        recorded |= _ids_of(options.wrong_in, "--wrong-in", failed=False)
    ids = tuple(each for each in options.ids if each in recorded) if options.ids else tuple(recorded)
    if not ids:
        raise UsageError("--ids: none of these questions is in --failed-in or --wrong-in")
    return replace(options, ids=ids)


def load_chosen(options: RunOptions) -> Dataset:
    """The questions of a run. Raises `UsageError`, naming unknown ids and types."""
    if not (options.ids or options.question_types):
        return _load(options, options.limit)
    dataset = _load(options, None)
    if "hub" in (source := dataset.manifest.get("source") or {}):
        dataset = _load(options, sys.maxsize)  # the choice is among all rows, beyond the default limit
    elif "generator" in source and options.limit:
        dataset = _load(options, max(options.limit, len(dataset.examples)))
    chosen = _of_types(_of_ids(dataset.examples, options.ids, dataset.name), options.question_types, dataset.name)
    if options.limit is not None:
        chosen = shuffled(chosen, options.seed)[: options.limit]
    if not chosen:
        raise UsageError(f"--ids, --type: no question of {dataset.name!r} fits both")
    digest = ids_hash(example.id for example in chosen)
    facts = {**dataset.manifest, "limit": options.limit, "examples": len(chosen), "ids_hash": digest}
    return replace(dataset, examples=tuple(chosen), ids_hash=digest, manifest=facts)


def _load(options: RunOptions, limit: int | None) -> Dataset:
    return load_dataset_examples(options.dataset, split=options.split, limit=limit, seed=options.seed)


def _of_ids(examples: Sequence[Example], ids: Sequence[str], dataset: str) -> Sequence[Example]:
    if not ids:
        return examples
    known = {example.id for example in examples}
    if strangers := [each for each in ids if each not in known]:
        shown = ", ".join(map(repr, strangers[:_SHOWN]))
        more = f" and {len(strangers) - _SHOWN:,} more" if len(strangers) > _SHOWN else ""
        raise UsageError(f"--ids: {dataset!r} has no question {shown}{more}; its ids are like {examples[0].id!r}")
    wanted = set(ids)
    return [example for example in examples if example.id in wanted]


def _of_types(examples: Sequence[Example], types: Sequence[str], dataset: str) -> Sequence[Example]:
    if not types:
        return examples
    known = {example.kind for example in examples} - {""}
    for each in types:
        if each not in known:
            raise UsageError(
                f"--type: {unknown('type', each, known)}" if known else f"--type: {dataset!r} has no types"
            )
    return [example for example in examples if example.kind in types]


def _ids_of(run: Path, flag: str, *, failed: bool) -> dict[str, None]:
    """Ids of the questions that failed in a run (no score) or were wrong, for any architecture."""
    from rewoo_bench.runs.folder import load_table

    try:
        rows = load_table(run)
    except DataError as error:
        raise UsageError(f"{flag}: {error}") from None
    scores, ids = (rows[name].to_pylist() for name in ("exact_match", "example_id"))
    unwanted = None if failed else False
    chosen = dict.fromkeys(each for each, score in zip(ids, scores, strict=True) if score is unwanted)
    if not chosen:
        raise UsageError(f"{flag}: no question {'failed' if failed else 'was wrong'} in {str(run)!r}")
    return chosen
