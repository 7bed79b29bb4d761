"""The runs in a folder, with their status and headline figures."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from rewoo_bench.config.names import SOLVED
from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.runs.folder import JOURNAL_FILE, LOCK, QUESTIONS_FILE, load_table
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.runs.rows import Rows, mean_over_questions
from rewoo_bench.system.files import is_locked

RESULTS = Path("results/local")
_FILES = (MANIFEST, QUESTIONS_FILE, JOURNAL_FILE)  # one of them makes a folder a run's
_UNFINISHED = ("running", "killed", "unfinished")  # statuses of runs that have no tables yet


@dataclass(frozen=True)
class PastRun:
    """A run in the list. `exact_match` and `tokens` are an architecture's means over questions, without the rows of
    `left_out`."""

    folder: str
    status: str
    started_at: str | None = None
    questions: int | None = None
    tasks: int | None = None
    """Rows of the whole run: its questions times trials times architectures."""
    dataset: str = ""
    model: str = ""
    architectures: list[str] = field(default_factory=list)
    exact_match: dict[str, float | None] = field(default_factory=dict)
    tokens: dict[str, float | None] = field(default_factory=dict)
    oracle: bool = False
    """Whether an oracle answered, or a replay of one."""
    checked: bool = False
    """Whether a world's check is the score."""
    error: str | None = None
    """Why the run can't be read."""

    @property
    def is_meaningless(self) -> bool:
        """Whether exact match means nothing: an oracle's, unless a world's check is the score."""
        return self.oracle and not self.checked


def find_runs(folder: Path) -> list[PastRun]:
    """`folder` if it is a run, and the runs in its subfolders: the newest first, unreadable ones at the end.

    Raises `UsageError`.
    """
    try:
        known = [
            path for path in (folder, *folder.iterdir()) if os.access(path, os.X_OK)
        ]  # others can't be looked into
        folders = [path for path in known if any((path / name).exists() for name in _FILES)]
    except FileNotFoundError:
        if folder != RESULTS:
            raise UsageError(
                f"no such folder: {str(folder)!r}; expected a folder of runs, by default {RESULTS}"
            ) from None
        return []
    past = sorted((past_run(path) for path in folders), key=lambda each: each.folder)
    return sorted(past, key=lambda each: each.started_at or "", reverse=True)


def past_run(folder: Path) -> PastRun:
    """The run in a folder, as it is listed."""
    try:
        manifest = read_manifest(folder)
    except DataError as error:
        return PastRun(str(folder), "damaged", error=str(error))
    questions, architectures = manifest.dataset.examples, [each.name for each in manifest.architectures]
    run = PastRun(
        str(folder),
        current_status(folder, manifest.status),
        manifest.started_at,
        questions,
        questions and questions * int(manifest.options.get("trials") or 1) * len(architectures),
        manifest.dataset.name,
        str(manifest.options.get("model", "")),
        architectures,
    )
    if run.status in _UNFINISHED and not (folder / QUESTIONS_FILE).exists():
        return run
    try:
        rows = Rows(load_table(folder))
    except DataError as error:
        return replace(run, status="damaged", error=str(error))
    systems, checked = rows.groups("architecture"), manifest.dataset.scoring == SOLVED
    exact_match, tokens = (
        {name: _mean(own.where(~own.left_out), column) for (name,), own in systems.items()}
        for column in ("exact_match", "total_tokens")
    )
    return replace(run, exact_match=exact_match, tokens=tokens, oracle=bool(rows.oracle.any()), checked=checked)


def current_status(folder: Path, status: str) -> str:
    """The manifest's status; `killed` for a run that is no longer running."""
    if status != "running":
        return status
    try:
        return "running" if is_locked(folder / LOCK) else "killed"
    except OSError:  # a folder that can't be written to
        return "unfinished"


def _mean(rows: Rows, column: str) -> float | None:
    """The mean over the questions of these rows; None where no value is known."""
    mean = mean_over_questions(rows[column], rows.question)
    return None if math.isnan(mean) else mean
