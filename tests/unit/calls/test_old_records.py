"""Answers of a journal that can't be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewoo_bench.calls.recorded import RecordedModel
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.errors import ModelError
from rewoo_bench.events import at_place
from rewoo_bench.runs.journal.records import CallKey, CallRecord, TaskKey, recorded_prompt, request_hash
from rewoo_bench.runs.journal.store import open_journal
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import CallCost, Completion, Message, Request, Usage

pytestmark = pytest.mark.anyio

TASK = TaskKey("rewoo", "q1", 0)
ASK = [Message("user", "Which river?")]


async def recorded(folder: Path, answer: dict[str, Any], billed: int) -> None:
    """A journal with one answer of a model."""
    prompt = recorded_prompt(Request(ASK, role="solver"))
    key = CallKey("solver", "model", "solver", request_hash(Request(ASK, role="solver")))
    async with open_journal(folder / "journal.sqlite") as journal:
        await journal.add_call(CallRecord(TASK, key, "ok", prompt, answer, billed, 0.5 if billed else None))


async def asked(folder: Path) -> Completion:
    async with open_journal(folder / "journal.sqlite") as journal:
        recorder = await Recorder(journal).question(TASK)
        with at_place("solver"):
            model = RecordedModel(recorder, ScriptedModel(["asked again"]))
            return await model.complete(Request(ASK, role="solver"))


UNREADABLE: list[dict[str, Any]] = [
    {},
    {"text": "Neva"},
    {"text": None, "usage": {}, "finish_reason": "stop", "tool_calls": [], "receipt": {}},
    {"text": "Neva", "usage": {"in": 3}, "finish_reason": "stop", "tool_calls": [{}], "receipt": {"attempts": 1}},
]


@pytest.mark.parametrize("answer", UNREADABLE)
async def test_an_answer_that_cannot_be_read_and_cost_nothing_is_asked_for_again(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    await recorded(tmp_path, answer, billed=0)
    assert (await asked(tmp_path)).text == "asked again"


@pytest.mark.parametrize("answer", UNREADABLE)
async def test_one_that_was_paid_for_is_its_rows_error(tmp_path: Path, answer: dict[str, Any]) -> None:
    await recorded(tmp_path, answer, billed=12)
    with pytest.raises(ModelError, match="the answer recorded at 'solver' can't be read") as caught:
        await asked(tmp_path)
    assert isinstance(caught.value, ModelError)
    assert caught.value.call_cost == CallCost(billed=Usage(12, 0, 0), cost_usd=0.5)
