"""Exceptions that nobody expected: in a runner, a tool's factory, a judge, a parser, and in what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from answering import examples
from asking import RUN, Row, architectures, read

from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.errors import HarnessFault, RunStopped
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder import open_run
from rewoo_bench.evaluation.prepare import ModelJudge
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import Example, Message, Model, Request, Tool, Trajectory

pytestmark = pytest.mark.anyio

Work = Callable[[str, Model], Awaitable[Any]]


class Own:
    """A runner of a user's own."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        answer: Trajectory = await self._work(question, model)
        return answer


async def answered(text: str = "Neva", **values: Any) -> Trajectory:
    return Trajectory(text, "answered", **values)


async def run(
    folder: Path, work: Work, questions: int = 4, model: Any = None, **settings: Any
) -> tuple[list[Row], list[dict[str, Any]]]:
    """The rows and the traces of a run with a runner of one's own; what it raises comes after they are written."""
    (direct,) = architectures("direct")
    asked, own = examples(questions), [Architecture(direct.spec, direct.prompts, {}, None, Own(work))]
    async with open_run(folder, RUN) as opened:
        evaluator = Evaluator(
            {"": model or ScriptedModel(lambda *_: "Neva")}, "hotpotqa", recorder=Recorder(opened.journal), **settings
        )
        try:
            await evaluator.run(asked, own, store=opened.store, on_result=lambda _: None)
        finally:
            await opened.export(task.key for task in tasks_of(asked, own, 1))
    return read(folder)[0], [json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines()]


def failing_on(name: str, error: Callable[[], Exception]) -> Work:
    async def work(question: str, model: Model) -> Trajectory:
        if question.startswith(name):
            raise error()
        return await answered()

    return work


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (lambda: KeyError("x"), "KeyError in Own: 'x'"),
        (lambda: ValueError("key hunter22-0123456789"), "ValueError in Own: key [key]"),
        (lambda: ExceptionGroup("two", [ExceptionGroup("", [KeyError("y")])]), "KeyError in Own: 'y'"),
    ],
)
async def test_an_exception_is_its_questions_error_and_no_others(
    tmp_path: Path, error: Callable[[], Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "hunter22-0123456789")
    rows, traces = await run(tmp_path, failing_on("q01", error))
    assert [row["error"] for row in rows] == [None, said, None, None]
    assert (rows[1]["stop_reason"], rows[1]["exact_match"]) == ("error", None)
    assert ["traceback" in trace for trace in traces] == [False, True, False, False]
    assert "failing_on" in traces[1]["traceback"] or "in work" in traces[1]["traceback"]
    assert "hunter22" not in json.dumps(traces)


async def test_a_runner_that_returns_no_trajectory_is_told(tmp_path: Path) -> None:
    async def work(question: str, model: Model) -> Any:
        return None if question.startswith("q00") else await answered()

    rows, _ = await run(tmp_path, work, 2)
    assert rows[0]["error"] == "TypeError in Own: answered with NoneType, expected a Trajectory"


async def test_the_same_exception_on_three_questions_stops_the_run(tmp_path: Path) -> None:
    message = r"KeyError in test_crashes\.py:\d+ on question 'q02' and 2 others: 'q'"
    with pytest.raises(RunStopped, match=message):
        await run(tmp_path, failing_on("q", lambda: KeyError("q")), 9, concurrency=1)
    rows, _ = read(tmp_path)
    assert [row["error"] for row in rows] == ["KeyError in Own: 'q'"] * 3


async def test_a_judges_exception_is_no_verdict_and_noted(tmp_path: Path) -> None:
    class Judge(ModelJudge):
        async def judge(self, example: Example, prediction: str, model: Model) -> bool | None:
            if example.id == "q00":
                raise ZeroDivisionError("by nothing")
            return True

    async def work(question: str, model: Model) -> Trajectory:
        return await answered()

    rows, traces = await run(tmp_path, work, 2, judge=Judge())
    assert [(row["judged_correct"], row["exact_match"]) for row in rows] == [(None, False), (True, False)]
    assert traces[0]["judge_error"] == "ZeroDivisionError in Judge: by nothing"
    assert "judge_error" not in traces[1]


async def test_crashes_on_recorded_replies_do_not_stop_a_later_session(tmp_path: Path) -> None:
    async def work(question: str, model: Model) -> Trajectory:
        text = (await model.complete(Request([Message("user", question)], role="agent"))).text
        return await answered(json.loads(text))

    model = ScriptedModel(lambda messages, _: '"Neva"' if "q03" in messages[-1].content else "{")
    with pytest.raises(RunStopped, match=r"JSONDecodeError in .* and 2 others"):
        await run(tmp_path, work, 5, model=model, concurrency=1)
    rows, _ = await run(tmp_path, work, 5, model=model, concurrency=1)
    assert [bool(row["error"]) for row in rows] == [True, True, True, False, True]
    assert len(model.requests) == 5


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("note", [nested(600), "half \ud83d", float("nan"), {(1, 2): 3}, object()])
async def test_whatever_a_model_wrote_the_row_is_kept(tmp_path: Path, note: Any) -> None:
    async def work(question: str, model: Model) -> Trajectory:
        return await answered(notes={"said": note})

    rows, traces = await run(tmp_path, work, 1)
    assert (rows[0]["prediction"], rows[0]["error"]) == ("Neva", None)
    assert len(traces) == 1


@pytest.mark.parametrize("error", [OSError(24, "Too many open files"), MemoryError(), ImportError("no numpy")])
async def test_what_this_machine_lacks_stops_the_run_and_fails_no_question(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(HarnessFault, match=f"Own: {type(error).__name__}"):
        await run(tmp_path, failing_on("q02", lambda: error), 9, concurrency=1)
    rows, _ = read(tmp_path)
    assert [row["error"] for row in rows] == [None, None]


async def test_a_cancellation_that_a_runner_raises_is_its_questions_error(tmp_path: Path) -> None:
    rows, _ = await run(tmp_path, failing_on("q01", lambda: asyncio.CancelledError()))  # type: ignore[arg-type, return-value]
    assert [row["stop_reason"] for row in rows] == ["answered", "error", "answered", "answered"]


@pytest.mark.parametrize(
    "trajectory",
    [
        Trajectory("Neva", "bogus"),  # type: ignore[arg-type]
        Trajectory("Neva", "answered", steps=("step",)),  # type: ignore[arg-type]
    ],
)
async def test_a_trajectory_that_no_table_holds_is_its_questions_error(tmp_path: Path, trajectory: Trajectory) -> None:
    async def work(question: str, model: Model) -> Trajectory:
        return trajectory if question.startswith("q01") else await answered()

    rows, _ = await run(tmp_path, work)
    assert [row["stop_reason"] for row in rows] == ["answered", "error", "answered", "answered"]
