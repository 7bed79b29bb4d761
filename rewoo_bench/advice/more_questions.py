"""The command that asks enough questions to decide.

command_for(runs, ["rewoo", "react"], 640)
    -> MoreQuestions(640, "rewoo-bench run --from results/local/a/run.json --arch rewoo,react -n 640", "")
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rewoo_bench.advice.run_sets import Piece, RunSet
from rewoo_bench.runs.manifest import MANIFEST
from rewoo_bench.text.counts import counted, round_up

TOO_MANY = 100_000  # questions; more than that is "nobody will ask so many"


@dataclass(frozen=True, slots=True)
class MoreQuestions:
    """How many questions decide, in all, and how to ask them."""

    questions: int | None
    """Rounded up to two digits; None where it would be more than `TOO_MANY`."""
    command: str | None
    """None where it isn't known how to ask as many."""
    obstacle: str = ""
    """What else there is to do, or why there is no command."""


def more_questions(
    runs: RunSet, architectures: Sequence[str], needed: float, folders: Mapping[str, Path]
) -> MoreQuestions:
    """The number, and a command with the flags of the first run that has one of these architectures."""
    if not math.isfinite(needed) or needed > TOO_MANY:
        return MoreQuestions(None, None, f"It takes more than {TOO_MANY:,} questions: call it a tie.")
    questions = round_up(needed)
    pieces = [piece for piece in runs.pieces if _names(piece, architectures)]
    first = pieces[0]
    if first.manifest is None or first.run_id not in folders:
        return MoreQuestions(questions, None, "Run the same with that many questions.")
    if first.manifest.options.get("ids"):
        return MoreQuestions(questions, None, "The run asked chosen questions (--ids): choose more.")
    names = [flag for piece in pieces for flag in _flags(piece, architectures)]
    manifest = folders[first.run_id] / MANIFEST
    words = ["rewoo-bench", "run", "--from", str(manifest), "--arch", ",".join(names)]
    available = None if first.manifest.dataset.source.get("generator") else first.manifest.dataset.rows
    if available is None or available >= questions:
        return MoreQuestions(questions, shlex.join([*words, "-n", str(questions)]))
    few = f"The data set has only {counted(available, 'question')}: put a larger one in the place of DATASET."
    return MoreQuestions(questions, shlex.join([*words, "--dataset", "DATASET", "-n", str(questions)]), few)


def _names(piece: Piece, architectures: Sequence[str]) -> list[str]:
    return [name for name in piece.architectures if name in architectures]


def _flags(piece: Piece, architectures: Sequence[str]) -> list[str]:
    """How `--arch` named them: a folder keeps its path."""
    manifest = piece.manifest
    given = list(map(str, manifest.options.get("architectures") or [])) if manifest else []
    names = [each.name for each in manifest.architectures] if manifest else []
    by_name = dict(zip(names, given, strict=True)) if len(names) == len(given) else {}
    return [by_name.get(name, name) for name in _names(piece, architectures)]
