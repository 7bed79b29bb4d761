"""Before the first question a run says which tasks nothing solves, and which solve themselves."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import rewoo_bench
from rewoo_bench import evaluate
from rewoo_bench.analysis.verdict import verdict

pytestmark = pytest.mark.anyio

LAMP = """
from rewoo_bench import changes_state

class Lamp:
    def __init__(self, row):
        self.on, self.wanted = row["on"], row["wanted"]

    @changes_state
    def switch(self, on: bool) -> str:
        "Switches the lamp."
        if on == self.on:
            raise ValueError("it is so already")
        self.on = on
        return "done"

    def look(self) -> str:
        "Says whether the lamp is on."
        return str(self.on)

    def solved(self, answer):
        return self.on == self.wanted
"""


def task(id_: str, on: bool, wanted: bool, *calls: object) -> dict[str, object]:
    return {"id": id_, "question": f"Task {id_}.", "on": on, "wanted": wanted, "calls": calls}


def call(on: bool, **more: object) -> dict[str, object]:
    return {"tool": "switch", "arguments": {"on": on}, **more}


async def ask(folder: Path, *tasks: dict[str, object], architectures: str = "react-native") -> rewoo_bench.Results:
    (folder / "lamp.py").write_text(LAMP)
    (folder / "q.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in tasks))
    return await evaluate(
        str(folder / "q.jsonl"), architectures, model="oracle", world=str(folder / "lamp.py"), out=folder / "run"
    )


async def test_tasks_that_nothing_or_no_oracle_solves_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await ask(
        tmp_path,
        task("good", False, True, call(True)),
        task("idle", True, True, {"tool": "look"}),
        task("raises", False, True, call(False)),
        task("short", False, True, {"tool": "look"}),
    )
    said = capsys.readouterr().err
    assert "1 of 4 tasks are solved where nothing is done or said: idle" in said
    wanted = "2 of 4 tasks can't be solved by their gold calls, so no oracle can: raises: call 1 raised "
    assert f"{wanted}ToolError: ValueError" in said or f"{wanted}ValueError: it is so already" in said


async def test_costs_are_of_the_tasks_that_both_did(tmp_path: Path) -> None:
    """By hand: the plan does the first alone, so the ratio of tokens is that of the first task."""
    look = {"tool": "look"}
    results = await ask(
        tmp_path,
        task("known", False, True, call(True)),
        task("read", False, True, look, call(True, decided="loop", after=[1])),
        architectures="rewoo-json,react-native",
    )
    (pair,) = rewoo_bench.compare(results).pairs
    assert pair.done == (1, 2)
    tokens = results.to_frame().set_index(["example_id", "architecture"])["total_tokens"]
    by_hand = tokens["known", "react-native"] / tokens["known", "rewoo-json"]
    assert pair["total_tokens"].interval.estimate == pytest.approx(by_hand)
    dollars = rewoo_bench.compare(results, prices=["none", "openai"]).under
    for each in dollars:  # the second task, which the plan leaves undone, is in no ratio of theirs either
        assert [two.ratio.n for two in each.pairs] == [1]
    sentences = verdict(pair, rewoo_bench.compare(results).pricing)
    said = "Without a mistake rewoo-json did 1 of 2 tasks, and react-native 2, by what their gold calls say."
    assert sentences[0] == said
    assert sentences[1].startswith("Where both did, react-native and rewoo-json are too close to call in tokens")


async def test_values_that_no_task_says_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = task("guess", False, True, {"tool": "name", "arguments": {"lamp": "Lumo"}}, call(True))
    name = '    def name(self, lamp: str) -> str:\n        "Names it."\n        return lamp\n\n'
    world = LAMP.replace("    def look", f"{name}    def look")
    (tmp_path / "lamps.py").write_text(world)
    (tmp_path / "q.jsonl").write_text(json.dumps(named) + "\n")
    await evaluate(str(tmp_path / "q.jsonl"), "react-native", model="oracle", world=str(tmp_path / "lamps.py"))
    said = capsys.readouterr().err
    assert "1 values of gold calls stand neither in their tasks nor under 'read'" in said
    assert "guess: name lamp" in said


async def test_a_gold_call_that_hangs_keeps_no_run_from_beginning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewoo_bench.evaluation.with_worlds.REHEARSAL_S", 0.3)
    hanging = LAMP.replace("self.on = on\n", "__import__('time').sleep(30)\n", 1)
    assert hanging != LAMP
    (tmp_path / "slow.py").write_text(hanging)
    (tmp_path / "q.jsonl").write_text(json.dumps(task("slow", False, True, call(True))) + "\n")
    began = time.monotonic()
    asked = {"model": "oracle", "world": str(tmp_path / "slow.py"), "question_time": 1.0}
    await evaluate(str(tmp_path / "q.jsonl"), "react-native", mcp_timeout=1.0, **asked)  # type: ignore[arg-type]
    assert time.monotonic() - began < 20
    assert "gold calls" not in capsys.readouterr().err
