"""Recorded calls: found by where they stand, given back as they were, paid for once."""

from __future__ import annotations

import resource
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from parts import Query, Told

from rewoo_bench.calls.recorded import RecordedModel, recorded_tools
from rewoo_bench.calls.recorder import QuestionRecorder, Recorder
from rewoo_bench.calls.retry import RetryingModel
from rewoo_bench.errors import JournalError, ModelError, ToolError
from rewoo_bench.events import at_place
from rewoo_bench.runs.journal.records import CallKey, CallRecord, RecordedPrompt, TaskKey
from rewoo_bench.runs.journal.response_cache import ResponseCache
from rewoo_bench.runs.journal.store import open_journal, read_journal
from rewoo_bench.testing.scripted_model import Script, ScriptedModel
from rewoo_bench.tools.guards import Faults, FaultyTool
from rewoo_bench.types import CallCost, Completion, Message, Request, ToolCall, Usage, WireRequest

pytestmark = pytest.mark.anyio

TASK = TaskKey("rewoo", "q1", 0)
ASK = [Message("system", "Be brief."), Message("user", "Which river?")]


@asynccontextmanager
async def session(folder: Path, **recorder: Any) -> AsyncIterator[QuestionRecorder]:
    """One session of a run: the journal is opened, the question is put, the journal is closed."""
    async with open_journal(folder / "journal.sqlite") as journal:
        yield await Recorder(journal, **recorder).question(TASK)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A file that would become larger can't be written, by this process and those it starts."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


async def ask(recorder: QuestionRecorder, lines: Script, place: str = "solver", **request: Any) -> Completion:
    asked = Request(ASK, role="solver", **request)
    with at_place(place):
        completion = await RecordedModel(recorder, ScriptedModel(lines)).complete(asked)
    return replace(completion, call_cost=asked.bill.with_outcome(completion.call_cost))


async def test_a_finished_call_is_given_back_whole_and_not_made_again(tmp_path: Path) -> None:
    call = ToolCall("1", "Search", {"query": "Île"})
    usage = Usage(10, 4, 3, 1)
    made = Completion("Neva", usage, "length", (call,), CallCost(2, ((0.0, 1.0),), usage + usage, 0.25, "estimated"))
    async with session(tmp_path) as recorder:
        first = await ask(recorder, [made])
    async with session(tmp_path) as recorder:
        again = await ask(recorder, [ModelError("asked again")])
    assert replace(first, call_cost=made.call_cost) == made
    assert made.call_cost.waiting[0] in first.call_cost.waiting  # and the journal, if that took a while
    assert (again.text, again.usage, again.finish_reason, again.tool_calls) == ("Neva", usage, "length", (call,))
    assert (again.call_cost.attempts, again.call_cost.billed, again.call_cost.cost_usd) == (2, usage + usage, 0.25)
    assert again.call_cost.usage_source == "estimated"
    assert again.call_cost.measured_s is not None
    assert not again.call_cost.replayed


@pytest.mark.parametrize(
    "other",
    [{"place": "E1"}, {"stop": ["\n"]}, {"max_tokens": 5}, {"grammar": "root ::= x"}, {"schema": {"type": "object"}},
     {"tools": [Told()]}],
)  # fmt: skip
async def test_another_place_or_request_is_another_call(tmp_path: Path, other: dict[str, Any]) -> None:
    async with session(tmp_path) as recorder:
        await ask(recorder, ["first"])
    async with session(tmp_path) as recorder:
        assert (await ask(recorder, ["second"], **other)).text == "second"


async def test_the_same_asked_twice_in_one_place_is_two_calls(tmp_path: Path) -> None:
    async with session(tmp_path) as recorder:
        assert [(await ask(recorder, [text])).text for text in ("a", "b")] == ["a", "b"]
    async with session(tmp_path) as recorder:
        assert [(await ask(recorder, [])).text for _ in range(2)] == ["a", "b"]


async def test_parallel_calls_are_found_by_their_places_in_any_order(tmp_path: Path) -> None:
    async def put(recorder: QuestionRecorder, number: int, pause: float, answers: dict[int, str]) -> None:
        await anyio.sleep(pause)
        answers[number] = (await ask(recorder, [f"answer {number}"], place=f"E{number}")).text

    for order in ([0.0, 0.01, 0.02], [0.02, 0.01, 0.0]):
        answers: dict[int, str] = {}
        async with session(tmp_path) as recorder, anyio.create_task_group() as group:
            for number, pause in enumerate(order):
                group.start_soon(put, recorder, number, pause, answers)
        assert answers == {0: "answer 0", 1: "answer 1", 2: "answer 2"}


async def test_what_failed_attempts_took_is_added_to_the_call_that_answered(tmp_path: Path) -> None:
    lost = Usage(7, 0, 0, 0)
    async with session(tmp_path) as recorder:
        with pytest.raises(ModelError):
            await ask(recorder, [ModelError("down", call_cost=CallCost(3, (), lost, 0.5))])
    usage = Usage(10, 0, 2, 0)
    async with session(tmp_path) as recorder:
        answered = await ask(recorder, [Completion("Neva", usage, call_cost=CallCost(1, (), usage, 1.0))])
    assert (answered.call_cost.attempts, answered.call_cost.billed) == (4, usage + lost)
    assert answered.call_cost.cost_usd == 1.5
    async with session(tmp_path) as recorder:  # and a third session, which makes the call no more
        recalled = await ask(recorder, [])
    assert (recalled.call_cost.attempts, recalled.call_cost.billed) == (4, usage + lost)
    async with open_journal(tmp_path / "journal.sqlite") as journal:
        assert (journal.spent.tokens, journal.spent.cost_usd) == ((usage + lost).total_tokens, 1.5)


async def test_a_tool_is_not_called_again_unless_it_has_a_state(tmp_path: Path) -> None:
    plain, stateful = Told(), Told(lambda query: f"now {query}", name="Lookup")
    stateful.stateful = True  # type: ignore[attr-defined]
    for said in ("first", "again"):
        async with session(tmp_path) as recorder:
            tools = recorded_tools(recorder, {"Search": plain, "Lookup": stateful})
            with at_place("turn 1"):
                results = [await tools[name](Query(query="a")) for name in ("Search", "Lookup")]
        assert results == ["page of a", "now a"], said
    assert (plain.asked, stateful.asked) == (["a"], ["a", "a"])


async def test_a_tools_failure_is_remembered_too(tmp_path: Path) -> None:
    def fail(query: str) -> str:
        raise ToolError("no page")

    for tool in (Told(fail), Told()):
        async with session(tmp_path) as recorder:
            with pytest.raises(ToolError, match="no page"):
                await recorded_tools(recorder, {"Search": tool})["Search"](Query(query="a"))


@pytest.mark.parametrize("is_stateful", [False, True])
async def test_a_resumed_question_meets_the_faults_that_it_would_have_met(tmp_path: Path, is_stateful: bool) -> None:
    async def struck(folder: Path, calls: int) -> list[bool]:
        told = Told()
        told.stateful = is_stateful  # type: ignore[attr-defined]
        async with session(folder) as recorder:
            tools = recorded_tools(recorder, {"Search": FaultyTool(told, Faults(0.5), "q7")})
            with at_place("agent"):  # which has no number, so that of the call decides
                return [await tools["Search"](Query(query="a")) == "" for _ in range(calls)]

    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    whole.mkdir()
    resumed.mkdir()
    expected = await struck(whole, 9)
    assert await struck(resumed, 4) == expected[:4]
    assert await struck(resumed, 9) == expected
    assert expected[4:] != expected[:5]  # as if it were counted from 1 again


async def test_a_replay_answers_what_was_recorded_and_nothing_else(tmp_path: Path) -> None:
    async with session(tmp_path) as recorder:
        await ask(recorder, ["Neva"])
    (tmp_path / "replay").mkdir()
    async with read_journal(tmp_path / "journal.sqlite") as recorded:
        async with session(tmp_path / "replay", replay=recorded) as recorder:
            answer = await ask(recorder, [])
            with pytest.raises(ModelError, match="nothing is recorded at 'planner 0'"):
                await ask(recorder, ["x"], place="planner 0")
        assert (answer.text, answer.call_cost.replayed, answer.call_cost.billed) == ("Neva", True, Usage())
        async with session(tmp_path / "replay", replay=recorded) as recorder:
            model = RecordedModel(recorder, ScriptedModel(["x"]))
            with at_place("solver"), pytest.raises(ModelError) as difference:
                await model.complete(Request([ASK[0], Message("user", "Which lake?")], role="solver"))
    assert "has 'river?' where this has 'lake?'" in str(difference.value)


async def test_a_cache_pays_for_an_answer_once_over_runs(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "cache")
    usage = Usage(10, 0, 2, 0)
    for run, lines in (("a", [Completion("Neva", usage, call_cost=CallCost(billed=usage))]), ("b", [])):
        (tmp_path / run).mkdir()
        async with session(tmp_path / run, cache=cache) as recorder:
            answer = await ask(recorder, lines)
        assert (answer.text, answer.usage) == ("Neva", usage)
    assert (answer.call_cost.replayed, answer.call_cost.billed) == (True, Usage())
    async with session(tmp_path / "b") as recorder:  # a session without the cache knows it too
        assert (await ask(recorder, [])).call_cost.replayed
    cache.close()


async def test_an_answer_of_the_cache_has_the_times_of_the_run_that_takes_it(tmp_path: Path) -> None:
    """By them a prefix has its age: those of the other run would make it as old as that run."""
    cache = ResponseCache(tmp_path / "cache")
    receipts = []
    for run in ("a", "b"):
        (tmp_path / run).mkdir()
        async with session(tmp_path / run, cache=cache) as recorder:
            begin = time.time()
            await ask(recorder, ["Neva"])
        async with read_journal(tmp_path / run / "journal.sqlite") as journal:
            receipts += [record.answer["receipt"] for record in journal.calls(TASK)]
        assert begin <= receipts[-1]["sent_at"] <= receipts[-1]["ended_at"] <= time.time()
    cache.close()
    assert receipts[0]["latency_s"] == receipts[1]["latency_s"]


async def test_the_same_text_is_stored_once(tmp_path: Path) -> None:
    long = Message("system", "exemplars " * 10_000)
    async with session(tmp_path) as recorder:
        for number in range(50):
            with at_place(f"turn {number}"):
                await RecordedModel(recorder, ScriptedModel(["x"])).complete(
                    Request([long, Message("user", str(number))], role="agent")
                )
    assert (tmp_path / "journal.sqlite").stat().st_size < 300_000


async def test_a_journal_that_cannot_be_written_ends_in_its_own_error_and_stays_whole(tmp_path: Path) -> None:
    full = pytest.raises(JournalError, match=r"can't write .*journal\.sqlite.*: (disk I/O error|database or disk is)")
    with files_of_at_most(150_000), full:
        async with session(tmp_path) as recorder:
            await ask(recorder, ["kept"])
            await ask(recorder, ["x" * 200_000], place="E1")
    async with session(tmp_path) as recorder:
        assert (await ask(recorder, [])).text == "kept"


async def test_what_a_killed_run_has_written_is_there_to_be_read_and_gone_on_from(tmp_path: Path) -> None:
    path, copy = tmp_path / "journal.sqlite", tmp_path / "killed"
    async with open_journal(path) as journal:
        await ask(await Recorder(journal).question(TASK), ["Neva"])
        shutil.copytree(tmp_path, copy)
    async with read_journal(copy / path.name) as recorded:
        assert [record.answer["text"] for record in recorded.calls(TASK)] == ["Neva"]
    async with session(copy) as recorder:
        assert (await ask(recorder, [])).text == "Neva"
    assert files_in(copy) == ["journal.sqlite"]


async def test_a_tools_call_is_on_disk_though_no_model_is_asked_after_it(tmp_path: Path) -> None:
    async with open_journal(tmp_path / "journal.sqlite") as journal:
        for number in range(3):
            record = CallRecord(
                TASK, CallKey(f"E{number}", "tool", "Find", b"hash"), "ok", RecordedPrompt(None, "p"), {"text": "x"}
            )
            await journal.add_call(record)
        with anyio.fail_after(30):
            while len(journal.calls(TASK)) < 3:  # noqa: ASYNC110 - read by another connection than the one that writes
                await anyio.sleep(0.01)


async def test_a_failed_call_that_its_caller_made_again_is_recalled_at_once(tmp_path: Path) -> None:
    """As an external agent does: the new session makes one request, and a second one is a sample of its own."""
    async with session(tmp_path) as recorder:
        with pytest.raises(ModelError):
            await ask(recorder, [ModelError("down")])
        assert (await ask(recorder, ["first"])).text == "first"
        assert (await ask(recorder, ["second"])).text == "second"
    async with session(tmp_path) as recorder:
        assert [(await ask(recorder, [])).text for _ in range(2)] == ["first", "second"]
        assert (await ask(recorder, ["third"])).text == "third"


async def test_the_record_of_a_call_has_its_times_and_the_marks_of_its_prefixes(tmp_path: Path) -> None:
    """What a price takes: when it was sent and answered, and where a provider is asked to end a cached prefix."""
    fixed, grown = Message("system", "Be brief.", ends_prefix=True), Message("assistant", "I look.")
    wire = WireRequest("/messages", b"{}")
    before = time.time()
    async with session(tmp_path) as recorder:
        model = RecordedModel(recorder, ScriptedModel(["Neva"] * 3))
        for messages, sent in (
            ([fixed, ASK[1]], None),
            ([fixed, ASK[1], grown, ASK[1]], None),
            ([fixed, ASK[1]], wire),
        ):
            await model.complete(Request(messages, role="agent", wire=sent))
    async with read_journal(tmp_path / "journal.sqlite") as journal:
        receipts = [record.answer["receipt"] for record in journal.calls(TASK)]
    assert [receipt["cache_marks"] for receipt in receipts] == [[0], [0, 3], [0]]
    for receipt in receipts:
        assert before <= receipt["sent_at"] <= receipt["ended_at"] <= time.time()


async def test_queueing_and_back_off_are_no_part_of_the_time_at_which_a_request_was_sent(tmp_path: Path) -> None:
    lines: Script = [ModelError("busy", retryable=True), "Neva"]
    async with session(tmp_path) as recorder:
        retrying = RetryingModel(ScriptedModel(lines), base_delay=0.0, sleep=lambda _: anyio.sleep(0.1))
        await RecordedModel(recorder, retrying).complete(Request(ASK, role="solver"))
    async with read_journal(tmp_path / "journal.sqlite") as journal:
        (receipt,) = [record.answer["receipt"] for record in journal.calls(TASK)]
    assert receipt["latency_s"] >= 0.1
    assert 0 <= receipt["ended_at"] - receipt["sent_at"] <= receipt["latency_s"] - 0.09


async def test_calls_that_were_paid_for_and_are_not_made_again_are_abandoned(tmp_path: Path) -> None:
    usage = Usage(10, 0, 2)
    paid = Completion("Neva", usage, call_cost=CallCost(billed=usage))
    async with session(tmp_path) as recorder:
        await ask(recorder, [paid], place="turn 1")
        await ask(recorder, [paid], place="turn 2")
        await ask(recorder, [Completion("Ob", Usage())], place="turn 3")
        await recorded_tools(recorder, {"Search": Told()})["Search"](Query(query="a"))
        assert recorder.abandoned() == []
    async with session(tmp_path) as recorder:
        await ask(recorder, [], place="turn 1")
        assert [(call.key.kind, call.key.place) for call in recorder.abandoned()] == [("model", "turn 2")]
