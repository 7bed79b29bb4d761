"""Compares the rows of a study's runs that were asked again with the published ones.

python scripts/reproduced.py results/local/study results/study > results/study/reproduced.csv

A row differs where a call, a token, the score, the end or the answer does. `ratio` is ReAct's tokens divided by ReWOO's
on the same questions, as published and again. `processor` is the one that answered again, where its run names it; the
published runs' isn't known.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

KEY = ["example_id", "trial", "architecture"]
COMPARED = ["llm_calls", "tool_calls", "input_tokens", "output_tokens", "exact_match", "stop_reason", "prediction"]


def compared(again: Path, published: Path) -> Iterator[dict[str, Any]]:
    """For each run that both folders have: its questions and rows that both have, and how many of these rows differ."""
    for file in sorted(again.glob("*/questions.parquet")):
        other = published / "runs" / file.parent.name / file.name
        if not other.exists():
            continue
        new, old = (pd.read_parquet(each, columns=[*KEY, *COMPARED]).set_index(KEY) for each in (file, other))
        both = new.index.intersection(old.index)
        new, old = (table.loc[both].astype(object).where(table.loc[both].notna(), None) for table in (new, old))
        differ = (new != old).to_numpy() & ~(new.isna() & old.isna()).to_numpy()
        questions = both.get_level_values("example_id").nunique()
        ratios = [_ratio(table) for table in (old, new)]
        models = json.loads(file.with_name("run.json").read_text(encoding="utf-8")).get("models") or {}
        yield {
            "run": file.parent.name, "questions": questions, "rows": len(both), "differ": int(differ.any(1).sum()),
            "ratio_published": ratios[0], "ratio_again": ratios[1],
            "processor": (models.get("default") or {}).get("processor"),
        }  # fmt: skip


def _ratio(rows: pd.DataFrame) -> float | None:
    """ReAct's tokens divided by ReWOO's, where both were asked as they are."""
    tokens = (rows["input_tokens"] + rows["output_tokens"]).groupby("architecture").sum()
    return round(tokens["react"] / tokens["rewoo"], 2) if {"react", "rewoo"} <= {*tokens.index} else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("again", type=Path, help="folder of the runs that were asked again")
    parser.add_argument("study", type=Path, help="folder of the published study")
    options = parser.parse_args(arguments)
    rows = list(compared(options.again, options.study))
    if not rows:
        parser.error(f"{options.again} and {options.study / 'runs'} have no run of the same name")
    sys.stdout.write(pd.DataFrame(rows).to_csv(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
