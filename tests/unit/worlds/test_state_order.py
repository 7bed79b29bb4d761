"""Calls that change state, in a world that notices: which call began and ended when, under every kind of plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

import rewoo_bench
from rewoo_bench import ScriptedModel
from rewoo_bench.types import Completion, Request, ToolCall

pytestmark = pytest.mark.anyio

# Reads take longer than changes: one that overtook them would be in the log.
LOG = """
import asyncio
from rewoo_bench import changes_state

class Log:
    def __init__(self, row):
        self.log = []
        self.expected = row["log"]

    async def read(self, key: str) -> str:
        self.log.append(f"{key}+")
        await asyncio.sleep(0.03)
        self.log.append(f"{key}-")
        return key

    @changes_state
    async def change(self, key: str) -> str:
        self.log.append(f"{key}+")
        await asyncio.sleep(0.01)
        self.log.append(f"{key}-")
        return key

    def solved(self, answer):
        assert " ".join(self.log) == self.expected, self.log
        return True
"""
CALLS = (("read", "a"), ("read", "b"), ("change", "C"), ("read", "d"), ("change", "E"), ("change", "F"), ("read", "g"))
AT_ONCE = "a+ b+ a- b- C+ C- d+ d- E+ E- F+ F- g+ g-"
ONE_BY_ONE = "a+ a- b+ b- C+ C- d+ d- E+ E- F+ F- g+ g-"
LINES = "\n".join(f"Plan: next\n#E{n} = {tool}[{key}]" for n, (tool, key) in enumerate(CALLS, start=1))
STEPS = json.dumps(
    {"steps": [{"id": f"E{n}", "tool": tool, "args": {"key": key}} for n, (tool, key) in enumerate(CALLS, start=1)]}
)
TASKS = "\n".join(f'{n}. {tool}("{key}")' for n, (tool, key) in enumerate(CALLS, start=1))
NATIVE = Completion("", tool_calls=tuple(ToolCall(key, tool, {"key": key}) for tool, key in CALLS))
REFERRING = tuple(
    ToolCall(str(n), tool, {"key": key})
    for n, (tool, key) in enumerate([("read", "a"), ("change", "C"), ("read", "b"), ("change", "#3"), ("read", "#1")])
)
GATHERED = f"import asyncio\nprint(await asyncio.gather({', '.join(f'{tool}({key!r})' for tool, key in CALLS)}))"
SCRIPTS: Mapping[str, tuple[Sequence[str | Completion], str]] = {
    "rewoo": ([LINES, "Answer: done"], AT_ONCE),
    "rewoo?schedule=sequential": ([LINES, "Answer: done"], ONE_BY_ONE),
    "rewoo?schedule=levels": ([LINES, "Answer: done"], AT_ONCE),
    "rewoo-json": ([STEPS, "Answer: done"], AT_ONCE),
    "rewoo-json?schedule=levels": ([STEPS, "Answer: done"], AT_ONCE),
    "rewoo-json?schedule=sequential": ([STEPS, "Answer: done"], ONE_BY_ONE),
    "rewoo-react": ([LINES, "Answer: done"], AT_ONCE),
    "llmcompiler": ([f"{TASKS}\n{len(CALLS) + 1}. join()", "Thought: x\nAnswer: done"], AT_ONCE),
    "react-native": ([NATIVE, "Answer: done"], AT_ONCE),
    "react-native?references=true": (
        [Completion("", tool_calls=REFERRING), "Answer: done"],
        "a+ a- C+ C- b+ b- b+ b- a+ a-",
    ),
    "rewoo-code": ([f"```python\n{GATHERED}\n```", "Answer: done"], AT_ONCE),
    "react-code": ([f"Thought: a\n```python\n{GATHERED}\n```", "Thought: b\nAnswer: done"], AT_ONCE),
}


def _write(log: str, world: str = LOG) -> dict[str, Any]:
    Path("log.py").write_text(world)
    Path("tasks.jsonl").write_text(json.dumps({"id": "q", "question": "Do it.", "log": log}))
    return {"dataset": "tasks.jsonl", "world": "log.py"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_change_waits_for_every_call_before_it_and_keeps_those_behind_it_waiting(name: str) -> None:
    if "code" in name and find_spec("pydantic_monty") is None:
        pytest.skip("needs the extra code")
    script, log = SCRIPTS[name]
    (result,) = await rewoo_bench.evaluate(architectures=[name], model=ScriptedModel(script), **_write(log))
    assert result.error is None
    assert result.score is not None
    assert result.score.exact_match == 1
    assert sum(call.kind == "tool" for call in result.calls) == log.count("+")


UNSOUND = '1. read("a")\n2. change("C")\n3. reed("b")\n'
SOUND = '1. read("a")\n2. join()'


class Slow(ScriptedModel):
    """Writes so slowly that what the first lines start has ended before the reply has."""

    async def complete(self, request: Request) -> Completion:
        if request.on_text is not None and len(self.requests) == 0:
            request.on_text(UNSOUND)
            await anyio.sleep(0.1)
        return await super().complete(request)


async def test_a_plan_that_is_still_being_written_changes_nothing() -> None:
    """The first plan turns out to be unsound at its end, and the next one has no change."""
    model = Slow([UNSOUND, SOUND, "Thought: x\nAnswer: done"])
    flags = _write("a+ a-")
    (result,) = await rewoo_bench.evaluate(architectures=["llmcompiler?max_replans=1"], model=model, **flags)
    assert result.error is None
    assert result.trajectory.answer == "done"
    assert [call.name for call in result.calls if call.kind == "tool"] == ["read"]


@pytest.mark.parametrize("name", ["rewoo", "llmcompiler", "react-native"])
async def test_a_change_that_fails_lets_the_calls_behind_it_run(name: str) -> None:
    script, log = SCRIPTS[name]
    files = _write(log.replace(" C-", ""), LOG.replace("await asyncio.sleep(0.01)", 'assert key != "C", "no"'))
    (result,) = await rewoo_bench.evaluate(architectures=[name], model=ScriptedModel(script), **files)
    assert result.error is None
    assert [call.name for call in result.calls if call.kind == "tool" and call.status == "error"] == ["change"]
