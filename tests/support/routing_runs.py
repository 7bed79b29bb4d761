"""Made-up runs of two architectures on questions with texts, to learn a router from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from claim_runs import run_folder
from comparison_rows import system

from rewoo_bench.analysis.routing import Outcomes, read_outcomes
from rewoo_bench.runs.folder import load

PARENTS = ("rewoo", "react")
_PLACES = ("Aldmoor", "Brinhold", "Carvik", "Dunmere", "Eskdal", "Farholt")


def comparison(number: int) -> str:
    """A question that compares two places."""
    first, second = _PLACES[number % 6], _PLACES[(number + 1 + number // 6 % 5) % 6]
    return f"Which is older, the bridge of {first} or the bridge of {second}?"


def description(number: int) -> str:
    """A question about something that is described."""
    return f"In which country was the architect born who built the tower of {_PLACES[number % 6]} number {number}?"


def parent(
    name: str, texts: Sequence[str], right: Sequence[bool], *, trial: int = 0, **values: Any
) -> list[dict[str, Any]]:
    """The rows of a parent, by question."""
    tokens = 1000 if name in ("rewoo", "direct") else 3000
    rows = system(name, "".join("01"[int(each)] for each in right), tokens, trial=trial, **values)
    return [{**row, "question": text, "total_tokens": tokens} for row, text in zip(rows, texts, strict=True)]


def write_run(
    folder: Path,
    texts: Sequence[str],
    first: Sequence[bool],
    second: Sequence[bool],
    parents: tuple[str, str] = PARENTS,
    **options: Any,
) -> Path:
    """A run of both parents."""
    return run_folder(folder, parent(parents[0], texts, first), parent(parents[1], texts, second), **options)


def outcomes_of(folder: Path) -> Outcomes:
    return read_outcomes(load(folder), PARENTS, {})[0]


def where_text_decides(folder: Path, count: int = 80, parents: tuple[str, str] = PARENTS) -> Path:
    """Comparisons are won by the first parent, descriptions by the second, about nine times in ten."""
    turned = np.random.default_rng(0).random(count) < 0.1
    texts = [comparison(i) if i % 2 else description(i) for i in range(count)]
    first = [(i % 2 == 1) != bool(turned[i]) for i in range(count)]
    return write_run(folder, texts, first, [not each for each in first], parents)


def where_chance_decides(folder: Path, seed: int, count: int = 150) -> Path:
    """Each parent is right on each question with the toss of a coin."""
    draw = np.random.default_rng(seed)
    texts = [comparison(i) if draw.random() < 0.5 else description(i) for i in range(count)]
    return write_run(folder, texts, list(draw.random(count) < 0.5), list(draw.random(count) < 0.5))
