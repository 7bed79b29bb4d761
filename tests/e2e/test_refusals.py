"""A provider that refuses a request, or isn't there: one question's error, or the end of the run; and the time that
calls in flight get, whatever ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from answering import Trouble, answer, asked_about, examples
from asking import architectures, read, run
from model_server import ModelServer, ServerFault

from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.calls.retry import AdaptiveLimiter, RetryingModel
from rewoo_bench.errors import HarnessFault, ModelError, ModelGone, ProviderRefused, RewooBenchError, UsageError
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Result
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runs.journal.store import open_journal
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import Completion, Message, Model, Request, Tool, Trajectory

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("status", [400, 404])
async def test_a_prompt_that_is_refused_is_its_questions_error(tmp_path: Path, status: int, concurrency: int) -> None:
    for name in ("q00", "q03"):
        (tmp_path / name).mkdir()
        with ModelServer(Trouble(always={name: ServerFault(status=status, message="blocked")})) as server:
            rows, _ = await run(tmp_path / name, server, examples(6), ["direct"], concurrency=concurrency)
        assert [row["example_id"] for row in rows if row["error"]] == [name]
        assert [row["stop_reason"] for row in rows].count("answered") == 5
        assert len(server.books) == 6


@pytest.mark.parametrize("concurrency", [1, 3, 8])
async def test_where_all_first_calls_are_refused_the_run_stops(tmp_path: Path, concurrency: int) -> None:
    with (
        ModelServer(lambda _: ServerFault(status=404, message="no such model"), latency_s=0.02) as server,
        pytest.raises(ProviderRefused, match="answered 404: no such model"),
    ):
        await run(tmp_path, server, examples(40), ["direct"], concurrency=concurrency)
    assert len(server.books) <= max(3, concurrency) + concurrency
    assert len(read(tmp_path)[0]) <= 2


async def test_a_key_that_is_refused_later_stops_the_run_and_calls_in_flight_are_kept(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        return ServerFault(status=401, message="revoked") if asked_about(request) == "q04" else answer(request)

    with ModelServer(reply, latency_s=0.1) as server, pytest.raises(ProviderRefused, match="revoked"):
        await run(tmp_path, server, examples(20), ["direct"], concurrency=6)
    rows, _ = read(tmp_path)
    assert len(rows) == sum(entry.status == 200 for entry in server.books) >= 5


class Endings:
    """A runner whose first question ends the run, while the others' calls are in flight."""

    def __init__(self, error: RewooBenchError) -> None:
        self._error = error

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        if question.startswith("q00"):
            await anyio.sleep(0.05)
            raise self._error
        text = (await model.complete(Request([Message("user", question)], role="agent"))).text
        return Trajectory(text, "answered")


class Slow(ScriptedModel):
    """Answers after a while."""

    async def complete(self, request: Request) -> Completion:
        await anyio.sleep(0.2)
        return await super().complete(request)


@pytest.mark.parametrize("error", [UsageError("no"), HarnessFault("no"), ModelGone("no"), ProviderRefused("no")])
@pytest.mark.parametrize("recorded", [True, False])
async def test_calls_in_flight_end_whatever_ends_the_run(
    tmp_path: Path, error: RewooBenchError, recorded: bool
) -> None:
    (direct,) = architectures("direct")
    ending = Architecture(direct.spec, direct.prompts, {}, None, Endings(error))
    results: list[Result] = []
    model = Slow(lambda *_: "Neva")
    async with open_journal(tmp_path / "journal.sqlite") as journal:
        recorder = Recorder(journal) if recorded else None
        evaluator = Evaluator({"": model}, "hotpotqa", recorder=recorder, concurrency=4)
        started = time.monotonic()
        with pytest.raises(type(error), match="no"):
            await evaluator.run(examples(20), [ending], on_result=results.append)
        assert time.monotonic() - started < 60
        await journal.flush()
        assert journal.has_answers() is recorded
    assert len(results) == len(model.requests) == 3


def unreachable(*_: object) -> ModelError:
    return ModelError("'openai/x': the server can't be reached", retryable=True, unreachable=True)


async def asked_of(model: RetryingModel, concurrency: int, on_result: Callable[[Result], None]) -> None:
    evaluator = Evaluator({"": model}, "hotpotqa", concurrency=concurrency)
    await evaluator.run(examples(30), architectures("direct"), on_result=on_result)


async def test_a_server_that_disappears_later_is_waited_for() -> None:
    lines: list[Any] = ["Neva", *[unreachable() for _ in range(6)]]
    inner = ScriptedModel(lambda *_: lines.pop(0) if lines else "Neva")
    model = RetryingModel(inner, max_retries=9, limiter=AdaptiveLimiter(1), base_delay=0.0)
    results: list[Result] = []
    await asked_of(model, 1, results.append)
    assert [result.error for result in results] == [None] * 30
    assert results[1].calls[0].call_cost.attempts == 7
