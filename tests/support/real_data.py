"""Rows of public data sets, which aren't part of the project: files in the folder that REWOO_BENCH_DATA names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest


class Rows(NamedTuple):
    """What a test needs, and where it is in the folder."""

    what: str
    path: str


HOTPOTQA = Rows("rows of HotpotQA", "hotpotqa/dev_distractor_sample.json")
TRIVIAQA = Rows("rows of TriviaQA", "triviaqa/validation_sample.jsonl")
WIKIPEDIA = Rows("passages of Wikipedia", "corpus/passages.jsonl.gz")
EXTRA = Rows("rows of the papers' other data sets", "extra")
TAU_BENCH = Rows("trajectories of tau-bench", "traces/tau_bench_gpt4o_airline_100.json")

RealData = Callable[[Rows], Path]  # the type of the fixture `real_data`


def find(rows: Rows) -> Path:
    """The file or folder; where it isn't there, the test is skipped."""
    folder = os.environ.get("REWOO_BENCH_DATA")
    if not folder or not Path(folder, rows.path).exists():
        pytest.skip(f"needs real {rows.what}: set REWOO_BENCH_DATA to a folder with {rows.path}")
    return Path(folder, rows.path)
