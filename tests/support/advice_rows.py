"""Made-up systems for recommendations: rows with a known truth, as a frame or as a run's folder.

rows = frame_of(rewoo=right(60, 100), react=right(40, 100))
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from claim_runs import run_folder
from comparison_rows import system
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


def right(correct: int, n: int) -> str:
    """The first questions right, the others wrong."""
    return "1" * correct + "0" * (n - correct)


def mixed(n: int, both: int, one: int, other: int) -> tuple[str, str]:
    """Two systems: questions that both have right, that the one alone has, that the other alone has; the rest neither.

    >>> mixed(6, 2, 1, 1)
    ('111000', '110100')
    """
    rest = n - both - one - other
    return "1" * (both + one) + "0" * (other + rest), "1" * both + "0" * one + "1" * other + "0" * rest


def folder_of(folder: Path, systems: dict[str, str], *, costs: dict[str, int] | None = None, **options: Any) -> Path:
    """A run's folder with a system for each name; `costs` are tokens, and millionths of a dollar."""
    tokens = {"rewoo": 1000, "react": 4000, "direct": 100, **(costs or {})}
    made = [
        system(name, matches, tokens.get(name, 500), run_id="x", latency_s=tokens.get(name, 500) / 100)
        for name, matches in systems.items()
    ]
    return run_folder(folder, *made, **options)


def drawn(systems: dict[str, Bools], costs: dict[str, float], draw: np.random.Generator) -> pd.DataFrame:
    """Rows of systems that answer these questions rightly, at costs that vary by a fifth."""
    parts = []
    for name, correct in systems.items():
        n = len(correct)
        cost = costs[name] * draw.lognormal(0, 0.2, n)
        columns = {
            "run_id": "r", "architecture": name, "dataset": "made up", "model": "openai/small",
            "example_id": [f"q{i}" for i in range(n)], "trial": 0, "exact_match": correct,
            "stop_reason": "answered", "total_tokens": 1e6 * cost, "cost_usd": cost, "latency_s": 1.0,
        }  # fmt: skip
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def pair_of(difference: float, discordant: float, n: int, draw: np.random.Generator) -> tuple[Bools, Bools]:
    """Two systems on the same questions; the first is right more often by `difference`."""
    lot, both = draw.random(n), draw.random(n) < 0.4
    only_one, only_other = (discordant + difference) / 2, (discordant - difference) / 2
    first = np.where(lot < only_one, True, np.where(lot < only_one + only_other, False, both))
    second = np.where(lot < only_one, False, np.where(lot < only_one + only_other, True, both))
    return first, second
