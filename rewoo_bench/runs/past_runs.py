"""The runs in a folder, with their status and headline figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewoo_bench.errors import DataError, UsageError

DEFAULT = Path("results/local")
_FILES = ("run.json", "questions.parquet", "journal.sqlite")  # one of them makes a folder a run's


@dataclass(frozen=True)
class PastRun:
    """A run in the list. `exact_match` and `tokens` are means per architecture, None without an answer."""

    folder: str
    status: str
    started_at: str | None = None
    questions: int | None = None
    model: str = ""
    architectures: list[str] = field(default_factory=list)
    exact_match: dict[str, float | None] = field(default_factory=dict)
    tokens: dict[str, float | None] = field(default_factory=dict)
    error: str | None = None
    """Why the folder can't be read."""


def find_runs(folder: Path) -> list[PastRun]:
    """The runs in the subfolders of `folder`, the newest first, unreadable ones at the end. Raises `UsageError`."""
    try:
        subfolders = [path for path in folder.iterdir() if any((path / name).exists() for name in _FILES)]
    except FileNotFoundError:
        if folder != DEFAULT:
            raise UsageError(f"no such folder: {str(folder)!r}") from None
        return []
    except OSError as error:
        raise UsageError(f"can't read the folder {str(folder)!r}: {error.strerror}") from None
    past = sorted((_past_run(path) for path in sorted(subfolders)), key=lambda each: each.folder)
    return sorted(past, key=lambda each: each.started_at or "", reverse=True)


def _past_run(folder: Path) -> PastRun:
    from rewoo_bench.runs.manifest import read_manifest

    try:
        manifest = read_manifest(folder)
        run = PastRun(
            str(folder),
            _status(folder, manifest.status),
            manifest.started_at,
            manifest.dataset.examples,
            str(manifest.options.get("model", "")),
            [each.name for each in manifest.architectures],
        )
        if not (folder / "questions.parquet").exists():
            return run
        means = list(_means(folder))
    except DataError as error:
        return PastRun(str(folder), "damaged", error=str(error))
    return PastRun(
        **{
            **vars(run),
            "exact_match": {name: exact_match for name, exact_match, _ in means},
            "tokens": {name: tokens for name, _, tokens in means},
        }
    )


def _status(folder: Path, status: str) -> str:
    """The manifest's status; `killed` for a run that is no longer running."""
    from rewoo_bench.file_lock import locked
    from rewoo_bench.runs.folder import LOCK

    if status != "running":
        return status
    try:
        with locked(folder / LOCK, "busy"):
            return "killed"
    except UsageError:
        return "running"
    except OSError:  # a folder that can't be written to
        return "unfinished"


def _means(folder: Path) -> Iterator[tuple[str, float | None, float | None]]:
    """Architecture, exact match and tokens per answered question. Raises `DataError`."""
    from rewoo_bench.runs.folder import load_table

    table = load_table(folder)
    names = ("architecture", "exact_match", "total_tokens")
    if missing := [name for name in names if name not in table.column_names]:
        raise DataError(f"{folder / 'questions.parquet'}: the column {missing[0]!r} is missing")
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    for architecture in dict.fromkeys(row[0] for row in rows):
        answered = [(score, tokens) for name, score, tokens in rows if name == architecture and score is not None]
        yield str(architecture), _mean([row[0] for row in answered]), _mean([row[1] for row in answered])


def _mean(values: list[Any]) -> float | None:
    return sum(values) / len(values) if values else None
