"""Rows of several runs -> sets of architectures that may be compared, and the reasons why others may not.

    sets, reasons = run_sets(rows, manifests, intersect=False)
    sets[0].rows                    # {"rewoo": rows, "react": rows}, of the same questions in the same order
    reasons                         # ["run b isn't compared with run a: the model: openai/x (a), openai/y (b)"]

Two runs belong to one set where they have the same data, questions, models, corpus and settings, and no architecture
in common.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rewoo_bench.analysis.compare import aligned, run_names
from rewoo_bench.errors import DataError
from rewoo_bench.runs.comparability import noted_differences, refusals, unfinished, wait
from rewoo_bench.runs.manifest import LOOSE, MANIFEST, Manifest, Manifests, changed_values
from rewoo_bench.runs.options import options_that
from rewoo_bench.runs.rows import check_columns, oracle_rows
from rewoo_bench.text.words import counted, round_up

_MODELS = ("model", "planner_model", "solver_model")
_NEEDED = ("run_id", "architecture", "dataset", "model", "example_id", "trial", "exact_match", "total_tokens")
_MOST_REASONS = 2  # of one pair of runs; the first ones say enough
# Options that runs of one set must share: they change what is asked, answered or scored.
_CONDITIONS = (
    *options_that(lambda role: role.claims or (role.baseline and role.compare == "note")),
    *("tools", "mcp"),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run's rows of one data set and model."""

    run_id: str
    name: str
    rows: pd.DataFrame
    manifest: Manifest | None

    @property
    def architectures(self) -> list[str]:
        """Its architectures, in the order of the rows."""
        return list(map(str, self.rows["architecture"].unique()))


@dataclass(frozen=True, slots=True)
class RunSet:
    """Architectures that answered the same questions with the same model under the same conditions."""

    dataset: str
    model: str
    pieces: tuple[Piece, ...]
    rows: Mapping[str, pd.DataFrame]
    """By architecture, aligned: the same questions and trials in the same order."""
    warnings: tuple[str, ...]
    waits: tuple[str, ...] = ()
    """Runs in which latency includes waiting for a shared model; a sentence each."""

    @property
    def oracle(self) -> bool:
        """Whether an oracle answered: accuracy and latency mean nothing."""
        return any(bool(oracle_rows(piece.rows).any()) for piece in self.pieces)


def run_sets(rows: pd.DataFrame, manifests: Manifests, *, intersect: bool) -> tuple[list[RunSet], list[str]]:
    """The sets, in the order of the runs, and a sentence for each pair of runs that isn't compared."""
    check_columns(rows.columns, _NEEDED)
    if not len(rows):
        raise DataError("no rows: the runs have no finished question")
    groups: list[list[Piece]] = []
    reasons: list[str] = []
    names = run_names(rows)
    by = [name for name in ("run_id", "dataset", *_MODELS) if name in rows.columns]
    for _, own in rows.groupby([rows[name].astype(str) for name in by], sort=False):
        run_id = str(own["run_id"].iloc[0])
        piece = Piece(run_id, names[run_id], own, manifests.get(run_id))
        against = [
            (group, [why for other in group for why in _against(piece, other, intersect=intersect)]) for group in groups
        ]
        fitting = next((group for group, why in against if not why), None)
        if fitting is not None:
            fitting.append(piece)
            continue
        # a reader may have expected a comparison only with runs of the same data set
        expected = [pair for pair in against if set(own["dataset"]) & set(pair[0][0].rows["dataset"])]
        if expected:
            group, why = min(expected, key=lambda pair: len(pair[1]))
            shown = list(dict.fromkeys(why))
            more = f"; and {len(shown) - _MOST_REASONS} more differences" if len(shown) > _MOST_REASONS else ""
            told = "; ".join(shown[:_MOST_REASONS])
            reasons.append(f"{piece.name} isn't compared with {group[0].name}: {told}{more}")
        groups.append([piece])
    return [_set(group, intersect=intersect) for group in groups], reasons


def _against(piece: Piece, other: Piece, *, intersect: bool) -> Iterator[str]:
    """Reasons against comparing two runs."""
    for name in ("dataset", *_MODELS):
        first, second = (_one(each.rows, name) for each in (other, piece))
        if first != second:
            yield f"the {name.replace('_', ' ')}: {first} ({other.name}), {second} ({piece.name})"
            return
    if other.manifest and piece.manifest:
        named = {other.name: other.manifest, piece.name: piece.manifest}
        yield from refusals(named)
        for option in _CONDITIONS:
            a, b = (each.options.get(option) for each in named.values())
            if a != b:
                yield f"--{option.replace('_', '-')}: {a} ({other.name}), {b} ({piece.name})"
        corpora = {each.corpus.content_hash if each.corpus else None for each in named.values()}
        if len(corpora) > 1:
            yield "the corpus of the search tool"
        for difference in changed_values(other.manifest.models, piece.manifest.models, "models", LOOSE):
            yield f"the setting {difference.partition(' was ')[0]}"
    if twice := [name for name in piece.architectures if name in other.architectures]:
        yield f"both have the architecture {twice[0]!r}; `rewoo-bench compare` shows how they differ"
    before, now = (set(zip(each.rows["example_id"], each.rows["trial"], strict=True)) for each in (other, piece))
    if before != now and not intersect:
        shared = len(before & now)
        yield (
            f"{other.name} has {counted(len(before), 'row')} of each architecture, {piece.name} {len(now):,}, "
            f"and {shared:,} are of the same question{'; --intersect compares on those' if shared else ''}"
        )


def _one(rows: pd.DataFrame, column: str) -> str:
    return str(rows[column].iloc[0]) if column in rows.columns else ""


def _set(group: list[Piece], *, intersect: bool) -> RunSet:
    rows = {name: piece.rows[piece.rows["architecture"] == name] for piece in group for name in piece.architectures}
    same, cautions = aligned(rows, [], intersect=intersect or len(group) == 1)
    dataset, model = (_one(group[0].rows, column) for column in ("dataset", "model"))
    manifests = {piece.name: piece.manifest for piece in group if piece.manifest is not None}
    warnings = list(cautions)
    if len(manifests) < len(group):
        warnings.append(f"{group[0].name} has no run.json, so the conditions of the runs aren't checked")
    warnings += unfinished(manifests)
    shown = noted_differences(manifests)
    if len(manifests) > 1 and shown:
        warnings.append(f"the runs also differ in this: {'; '.join(shown)}")
    waits = [f"in {name}, {note}" for name, manifest in manifests.items() if (note := wait(manifest))]
    return RunSet(dataset, model, tuple(group), same, tuple(warnings), tuple(waits))


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
    pieces = [piece for piece in runs.pieces if set(piece.architectures) & set(architectures)]
    first = pieces[0]
    if first.manifest is None or first.run_id not in folders:
        return MoreQuestions(questions, None, "Run the same with that many questions.")
    if first.manifest.options.get("ids"):
        return MoreQuestions(questions, None, "The run asked chosen questions (--ids): choose more.")
    names = []
    for piece in pieces:
        # how `--arch` named the architecture: a folder keeps its path
        given = list(map(str, piece.manifest.options.get("architectures") or [])) if piece.manifest else []
        known = [each.name for each in piece.manifest.architectures] if piece.manifest else []
        by_name = dict(zip(known, given, strict=True)) if len(known) == len(given) else {}
        names += [by_name.get(name, name) for name in piece.architectures if name in architectures]
    words = ["rewoo-bench", "run", "--from", str(folders[first.run_id] / MANIFEST), "--arch", ",".join(names)]
    available = None if first.manifest.dataset.source.get("generator") else first.manifest.dataset.rows
    if available is None or available >= questions:
        return MoreQuestions(questions, shlex.join([*words, "-n", str(questions)]))
    few = f"The data set has only {counted(available, 'question')}: put a larger one in the place of DATASET."
    return MoreQuestions(questions, shlex.join([*words, "--dataset", "DATASET", "-n", str(questions)]), few)
