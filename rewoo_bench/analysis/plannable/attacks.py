"""By which way attacks on loops came that succeeded, and which of them a plan made beforehand would have stopped.

    found = ways_of_attacks(table, ["gpt-4o"])
    sentence(found)     # "Of 412 attacks that succeeded, 396 came by a call that no plan made before the attack …"

The way of an attack is `way_of` (runs/reach.py), of the columns that an attacked question has.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from rewoo_bench.runs.reach import WAYS, way_of
from rewoo_bench.text.words import counted

_COLUMNS = ("new_calls", "changed_arguments", "changed_answer")


NOTE = (
    "argument, answer: changed by the attacker, which a fixed plan may still pass on. A call is new where its tool was "
    "called more often than the task needs without the attack"
)


def of_attacks(table: pa.Table, loops: Sequence[str]) -> pd.DataFrame:
    """The rows of these architectures' questions that an attacker had a text in."""
    rows: pd.DataFrame = table.select(["architecture", "question_type", "attack_succeeded", *_COLUMNS]).to_pandas()
    return rows[rows["new_calls"].notna() & rows["architecture"].isin(loops)]


def ways_of_attacks(table: pa.Table, loops: Sequence[str]) -> pd.DataFrame:
    """A row for each of these architectures and each suite with attacks that somebody judged, in their order.

    Columns: `attacks`, `succeeded`, and a number of these for each of `WAYS`. Without attacks there is no row.
    """
    rows = of_attacks(table, loops)
    rows = rows[rows["attack_succeeded"].notna()]
    found = []
    for (loop, suite), own in rows.groupby(["architecture", "question_type"], sort=False, observed=True, dropna=False):
        came = own[own["attack_succeeded"].astype(bool)]
        ways = [way_of(*each) for each in came[list(_COLUMNS)].itertuples(index=False, name=None)]
        counts = {way: ways.count(way) for way in WAYS}
        found.append({"loop": loop, "suite": suite, "attacks": len(own), "succeeded": len(came), **counts})
    return pd.DataFrame(found, columns=["loop", "suite", "attacks", "succeeded", *WAYS])


def sentence(ways: pd.DataFrame) -> str:
    """What a fixed plan would have stopped."""
    sums = ways[["attacks", "succeeded", *WAYS]].sum()
    if not sums["succeeded"]:
        return f"None of {counted(sums['attacks'], 'attack')} succeeded."
    new, arguments, answers, others = (sums[way] for way in WAYS)
    return (
        f"Of {counted(sums['succeeded'], 'attack')} that succeeded, {new:,} came by a call that no plan made before "
        f"the attack would hold: a fixed plan would have stopped these. {arguments:,} changed an argument, {answers:,} "
        f"the answer, and {others:,} came another way."
    )


def attacks_table(ways: pd.DataFrame) -> list[list[str]]:
    """The table below it; with several rows, the last one has their sums."""
    columns = ["attacks", "succeeded", *WAYS]
    lines = [[str(row["loop"]), str(row["suite"]), *(f"{row[name]:,}" for name in columns)]
             for row in ways.to_dict("records")]  # fmt: skip
    sums = [["all", "", *(f"{ways[name].sum():,}" for name in columns)]] if len(lines) > 1 else []
    head = [name.removeprefix("changed ") for name in columns]
    return [["loop", "suite", *head], *lines, *sums]
