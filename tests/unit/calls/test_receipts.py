"""What calls cost, whatever a model says it was; and what a cancelled call has cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from parts import Billing, architecture

from rewoo_bench.calls.meter import Limits
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.calls.retry import RetryingModel
from rewoo_bench.errors import ModelError
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Result
from rewoo_bench.runs.columns import question_row
from rewoo_bench.runs.journal.store import open_journal
from rewoo_bench.testing.scripted_model import ScriptedModel, ScriptLine
from rewoo_bench.types import CallCost, Completion, Example, Message, Model, Request, Trajectory, Usage

pytestmark = pytest.mark.anyio

ASK = [Message("user", "Which river?")]
EXAMPLE = Example("q", "Which river?", ("Neva",))
SENT = CallCost(billed=Usage(100, 0, 0, 0), cost_usd=0.5, usage_source="estimated")
RUN = {"run_id": "r", "dataset": "d", "model": "m", "planner_model": "m", "solver_model": "m"}


class Asking:
    """A runner that asks once."""

    async def run(self, question: str, *, model: Model, tools: Any) -> Trajectory:
        text = (await model.complete(Request([Message("user", question)], role="agent"))).text
        return Trajectory(text, "answered")


class Hanging(ScriptedModel):
    """Never answers; once its request is sent, a cancellation has what it cost, as the client's has."""

    async def complete(self, request: Request) -> Completion:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            request.bill.add(SENT)
            raise
        raise AssertionError("unreachable")


async def results_of(model: Model, recorder: Recorder | None = None, **settings: Any) -> list[Result]:
    results: list[Result] = []
    evaluator = Evaluator({"": model}, "hotpotqa", recorder=recorder, **settings)
    await evaluator.run([EXAMPLE], [architecture(runner=Asking())], on_result=results.append)
    return results


async def test_a_call_that_a_time_limit_cancelled_is_paid_for(tmp_path: Path) -> None:
    async with open_journal(tmp_path / "journal.sqlite") as journal:
        (result,) = await results_of(Hanging([]), Recorder(journal), limits=Limits(time_s=0.05))
        row = question_row(result, RUN)
        assert (journal.spent.tokens, journal.spent.cost_usd) == (100, 0.5)
    assert (row["stop_reason"], row["billed_tokens"], row["total_tokens"]) == ("time_limit", 100, 0)
    assert (row["usage_source"], row["cost_usd"]) == ("estimated", 0.5)
    assert [call.status for call in result.calls] == ["cancelled"]


async def test_a_call_that_the_end_of_a_run_cancelled_is_paid_for_and_made_again(tmp_path: Path) -> None:
    async with open_journal(tmp_path / "journal.sqlite") as journal:
        with anyio.move_on_after(0.05):
            await results_of(Hanging([]), Recorder(journal))
    async with open_journal(tmp_path / "journal.sqlite") as journal:
        assert journal.spent.tokens == 100
        usage = Usage(10, 0, 2)
        answer = Completion("Neva", usage, call_cost=CallCost(billed=usage, cost_usd=0.25))
        (result,) = await results_of(ScriptedModel([answer]), Recorder(journal))
        row = question_row(result, RUN)
    assert (row["billed_tokens"], row["cost_usd"], row["usage_source"]) == (112, 0.75, "provider")
    assert (row["retries"], row["prediction"]) == (1, "Neva")


async def test_a_retried_call_that_is_cancelled_has_all_its_attempts_on_its_receipt() -> None:
    lost = CallCost(attempts=2, billed=Usage(7, 0, 0), cost_usd=0.25)

    class FailingOnce(Hanging):
        async def complete(self, request: Request) -> Completion:
            self.requests.append(request)
            if len(self.requests) == 1:
                raise ModelError("busy", retryable=True, call_cost=lost)
            return await super().complete(request)

    (result,) = await results_of(RetryingModel(FailingOnce([]), base_delay=0.0), limits=Limits(time_s=0.05))
    call_cost = result.calls[0].call_cost
    assert (call_cost.attempts, call_cost.billed, call_cost.cost_usd) == (3, Usage(107, 0, 0), 0.75)


async def test_attempts_inside_one_call_of_a_model_count() -> None:
    usage = Usage(10, 0, 2)
    lines: list[ScriptLine] = [
        ModelError("busy", retryable=True),
        Completion("Neva", usage, call_cost=CallCost(attempts=3, billed=usage)),
    ]
    model = Billing(RetryingModel(ScriptedModel(lines), base_delay=0.0))
    completion = await model.complete(Request(ASK, role="agent"))
    assert completion.call_cost.attempts == 4


async def test_a_call_cancelled_before_it_was_sent_costs_nothing() -> None:
    class Waiting(ScriptedModel):
        async def complete(self, request: Request) -> Completion:
            await anyio.sleep_forever()
            raise AssertionError("unreachable")

    (result,) = await results_of(RetryingModel(Waiting([])), limits=Limits(time_s=0.05))
    assert (result.calls[0].status, result.calls[0].call_cost) == ("cancelled", CallCost())
    assert question_row(result, RUN)["usage_source"] is None
