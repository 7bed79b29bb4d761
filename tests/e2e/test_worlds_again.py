"""Worlds that are made again, for a replay: what differs is said, failures on purpose stay, and a check waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rewoo_bench import evaluate

pytestmark = pytest.mark.anyio

SHOP = """
import random, time
from rewoo_bench import changes_state

class Shop:
    def __init__(self, row):
        self.row, self.made, self.cancelled = row, set(), set()

    @changes_state
    def new_order(self) -> int:
        "Makes an order, and says its number."
        number = random.randrange(10**9) if self.row["drawn"] else 17
        self.made.add(number)
        return number

    @changes_state
    def cancel(self, number: int) -> str:
        "Cancels an order."
        time.sleep(self.row.get("takes", 0))
        if number not in self.made:
            raise ValueError("there is no such order")
        self.cancelled.add(number)
        return ""

    def solved(self, answer):
        return bool(self.made) and self.made == self.cancelled
"""


def row(id_: str, **more: object) -> dict[str, object]:
    calls = [{"tool": "new_order"}, {"tool": "cancel", "arguments": {"number": "#1"}}]
    return {"id": id_, "question": f"Order, and cancel it ({id_}).", "calls": calls, "drawn": False, **more}


async def ask(folder: Path, rows: list[dict[str, object]], model: str = "oracle", **options: object) -> pd.DataFrame:
    (folder / "shop.py").write_text(SHOP)
    (folder / "q.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    results = await evaluate(
        str(folder / "q.jsonl"), "react-native,rewoo-json", model=model, world=str(folder / "shop.py"),
        progress=False, **options,  # type: ignore[arg-type]
    )  # fmt: skip
    return results.to_frame().set_index(["architecture", "example_id"]).sort_index()


async def test_a_replay_whose_world_answers_otherwise_says_so(tmp_path: Path) -> None:
    rows = [row("same"), row("drawn", drawn=True)]
    first = await ask(tmp_path, rows, out=tmp_path / "run")
    assert first["exact_match"].all()
    assert first["state_changes"].tolist() == [2] * 4  # also the one that returns nothing
    again = await ask(tmp_path, rows, model=f"replay/{tmp_path / 'run'}")
    flags = again["flags"].map(list)
    for architecture in ("react-native", "rewoo-json"):
        assert flags[architecture, "same"] == []
        assert again["exact_match"][architecture, "same"]
        assert flags[architecture, "drawn"] == ["world_differs"]


@pytest.mark.parametrize("mode", ["empty", "error"])
async def test_a_replay_keeps_the_failures_on_purpose(tmp_path: Path, mode: str) -> None:
    rows = [row(f"q{number}") for number in range(8)]
    failing: Any = {"tool_failure_rate": 0.5, "tool_failure_mode": mode}
    first = await ask(tmp_path, rows, out=tmp_path / "run", **failing)
    assert 0 < first["exact_match"].sum() < 16
    again = await ask(tmp_path, rows, model=f"replay/{tmp_path / 'run'}")
    assert again["exact_match"].tolist() == first["exact_match"].tolist()
    assert again["tool_failure_rate"].unique().tolist() == [0.5]
    assert not again["flags"].map(len).any()


async def test_a_task_that_runs_out_of_time_in_a_call_is_scored(tmp_path: Path) -> None:
    """The check waits for the call that is under way, and the task has no answer but isn't lost."""
    rows = await ask(tmp_path, [row(f"q{number}", takes=1.0) for number in range(3)], question_time=0.4)
    assert rows["stop_reason"].unique().tolist() == ["time_limit"]
    assert rows["exact_match"].notna().all()
