"""The caps of a run: kept to one call, however many questions are worked on at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from parts import architecture
from timing import counted_calls

from rewoo_bench.calls.caps import CallEstimate, Caps, Reservation, RunLimits, Totals
from rewoo_bench.calls.live import LiveCalls, LiveModel
from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.errors import ModelError, RunStopped
from rewoo_bench.evaluation.evaluator import Evaluator
from rewoo_bench.evaluation.folder import Result
from rewoo_bench.evaluation.prepare import ModelJudge
from rewoo_bench.runs.journal.store import Spent, open_journal
from rewoo_bench.types import CallCost, Completion, Example, Message, Model, Request, Trajectory, Usage

pytestmark = pytest.mark.anyio

EXAMPLES = [Example(f"q{i}", f"Which river? {i}", ("Neva",)) for i in range(40)]
PRICES = {"input": 1.0, "cached_input": 1.0, "output": 1.0}


class Provider:
    """A model that takes some time and so many tokens, at a dollar a million where there is a price."""

    name = "provider"

    def __init__(self, tokens: int = 1000, *, prices: Any = None, is_priced: bool = True, fails: bool = False) -> None:
        self.calls = self.in_flight = self.most = 0
        self.prices = prices
        self.max_output_tokens = tokens
        self._usage = Usage(input_tokens=tokens - 1, output_tokens=1)
        self._cost = tokens / 1e6 if is_priced else None
        self._fails = fails

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await anyio.sleep(0.005)
        self.in_flight -= 1
        call_cost = CallCost(billed=self._usage, cost_usd=self._cost)
        if self._fails and self.calls % 2:
            raise ModelError("down", status=400, call_cost=call_cost)
        return Completion("Neva", self._usage, call_cost=call_cost)


class ThreeCalls:
    """A runner that asks three times."""

    async def run(self, question: str, *, model: Model, tools: Any) -> Trajectory:
        for _ in range(3):
            await model.complete(Request([Message("user", question)], role="agent"))
        return Trajectory("Neva", "answered")


async def run(provider: Provider, limits: RunLimits, recorder: Recorder | None = None, **settings: Any) -> str:
    """Why the run stopped."""
    evaluator = Evaluator({"": provider}, "hotpotqa", run_limits=limits, recorder=recorder, concurrency=32, **settings)
    with pytest.raises(RunStopped) as stopped:
        await evaluator.run(EXAMPLES, [architecture(runner=ThreeCalls())], on_result=lambda _: None)
    return str(stopped.value)


@pytest.mark.parametrize("fails", [False, True])
async def test_tokens_are_exceeded_by_one_call_at_most(fails: bool) -> None:
    provider = Provider(fails=fails)
    assert await run(provider, RunLimits(run_tokens=20_500)) == ("used 21,000 of 20,500 tokens (--run-tokens)")
    assert provider.calls == 21
    assert provider.most > 5  # it isn't one call at a time


async def test_dollars_are_reserved_at_the_models_prices() -> None:
    provider = Provider(prices=PRICES)
    assert "cost 0.0210 of 0.0205 USD" in await run(provider, RunLimits(run_cost=0.0205))
    assert provider.calls == 21
    assert provider.most > 5


async def test_a_call_larger_than_the_whole_cap_is_made_and_is_the_last() -> None:
    provider = Provider()
    assert await run(provider, RunLimits(run_tokens=10)) == "used 1,000 of 10 tokens (--run-tokens)"
    assert provider.calls == 1


async def test_a_judges_calls_count_too() -> None:
    provider = Provider()
    await run(provider, RunLimits(run_tokens=20_500), judge=ModelJudge())
    assert provider.calls == 21


async def test_a_cap_holds_over_sessions_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    provider = Provider()
    for cap, calls in ((20_500, 21), (20_500, 21), (40_500, 41)):
        async with open_journal(tmp_path / "journal.sqlite") as journal:
            reason = await run(provider, RunLimits(run_tokens=cap), Recorder(journal))
        assert provider.calls == calls
        assert f"used {calls},000 of {cap:,} tokens" in reason


async def test_waiting_for_room_under_a_cap_is_no_work(tmp_path: Path) -> None:
    class Slow(Provider):
        async def complete(self, request: Request) -> Completion:
            await anyio.sleep(0.2)
            return await super().complete(request)

    results: list[Result] = []
    async with open_journal(tmp_path / "journal.sqlite") as journal:
        limits: dict[str, Any] = {"run_limits": RunLimits(run_tokens=10**6), "recorder": Recorder(journal)}
        evaluator = Evaluator({"": Slow()}, "hotpotqa", concurrency=2, **limits)
        await evaluator.run(EXAMPLES[:2], [architecture(runner=ThreeCalls())], on_result=results.append)
        receipts = [record.answer["receipt"] for each in results for record in journal.calls(each.task.key)]
    # The first call is made alone, and the other question's waits for it.
    assert max(result.latency_s - result.working_s for result in results) >= 0.1
    assert all(receipt["ended_at"] - receipt["sent_at"] >= 0.1 for receipt in receipts)


async def test_a_cancelled_call_gives_its_room_back() -> None:
    spent = Spent()
    live = LiveCalls(spent=spent)
    live.caps = Caps(RunLimits(run_tokens=1500), Totals(tasks=9, spent=spent), live.shutdown)
    provider = Provider()

    async def ask() -> None:
        await LiveModel(live, provider).complete(Request([Message("user", "?")], role="agent"))

    for _ in range(3):
        with anyio.move_on_after(0.001):
            await ask()
    with anyio.fail_after(30):
        await ask()
    assert spent.tokens == 1000


async def test_a_cap_holds_where_calls_take_far_more_than_was_reserved() -> None:
    provider = Provider(6000)
    provider.max_output_tokens = 10  # as it says
    reason = await run(provider, RunLimits(run_tokens=60_000))
    used = 6000 * provider.calls
    assert 60_000 <= used <= 66_000
    assert f"used {used:,} of 60,000 tokens" in reason


def caps_of(limits: RunLimits, spent: Spent) -> Caps:
    return Caps(limits, Totals(tasks=9, spent=spent), LiveCalls().shutdown)


async def fits(caps: Caps, estimate: CallEstimate) -> Reservation | None:
    """The reservation of a call that needn't wait; None for one that must."""
    with anyio.move_on_after(0.01):
        return await caps.reserve(estimate)
    return None


async def test_a_call_reserves_its_prompt_and_its_longest_answer_each_at_its_price() -> None:
    caps = caps_of(RunLimits(run_tokens=1000), Spent())
    estimate = CallEstimate(100, 50, {"input": 2.0, "output": 10.0})
    first = await caps.reserve(estimate)
    assert (first.tokens, first.estimate) == (150, 150)
    assert first.cost_usd == pytest.approx(700 / 1e6)
    caps.release(first, CallCost(billed=Usage(input_tokens=200, output_tokens=100)))  # twice what was reserved
    second = await caps.reserve(estimate)
    assert (second.tokens, second.estimate) == (300, 150)
    assert second.cost_usd == pytest.approx(1400 / 1e6)


async def test_without_prices_a_call_reserves_what_the_earlier_ones_cost_on_average() -> None:
    caps = caps_of(RunLimits(run_cost=1.0), Spent())
    for cost_usd in (0.125, 0.375):
        reservation = await caps.reserve(CallEstimate(10, 10, None))
        caps.release(reservation, CallCost(cost_usd=cost_usd))
    assert (await caps.reserve(CallEstimate(10, 10, None))).cost_usd == 0.25


@pytest.mark.parametrize(("spent", "is_room"), [(699, True), (700, False)])
async def test_a_call_waits_where_spent_and_reserved_tokens_reach_the_cap(spent: int, is_room: bool) -> None:
    caps = caps_of(RunLimits(run_tokens=1000), totals := Spent(tokens=spent - 100))
    caps.release(await caps.reserve(CallEstimate(50, 50, None)), CallCost(billed=Usage(input_tokens=100)))
    totals.tokens = spent
    assert await fits(caps, CallEstimate(200, 100, None))
    assert bool(await fits(caps, CallEstimate(1, 1, None))) == is_room


@pytest.mark.parametrize(("cap", "is_room"), [(0.75, False), (0.76, True)])
async def test_a_call_waits_where_spent_and_reserved_dollars_reach_the_cap(cap: float, is_room: bool) -> None:
    caps = caps_of(RunLimits(run_cost=cap), totals := Spent())
    caps.release(await caps.reserve(CallEstimate(50, 50, None)), CallCost(cost_usd=0.25))
    totals.cost_usd = 0.25
    assert await fits(caps, CallEstimate(1, 1, None))
    third = await fits(caps, CallEstimate(1, 1, None))  # 0.25 is spent, and 0.25 reserved
    assert third is not None
    assert bool(await fits(caps, CallEstimate(1, 1, None))) == is_room
    for _ in range(2):
        caps.release(third, None)
    assert await fits(caps, CallEstimate(1, 1, None))


async def test_the_first_reason_for_the_end_of_a_run_counts() -> None:
    shutdown = LiveCalls().shutdown
    shutdown.request(RunStopped("first"))
    shutdown.request(RunStopped("second"))
    assert str(shutdown.reason) == "first"


async def test_the_work_of_keeping_a_cap_grows_with_the_calls_and_not_with_their_square() -> None:
    async def work(calls: int) -> int:
        caps = caps_of(RunLimits(run_tokens=10**6), Spent())
        in_turn = CallEstimate(10**6, 0, None)  # each takes all the room

        async def call() -> None:
            reservation = await caps.reserve(in_turn)
            await anyio.lowlevel.checkpoint()
            caps.release(reservation, CallCost())

        with counted_calls() as count:
            async with anyio.create_task_group() as group:
                for _ in range(calls):
                    group.start_soon(call)
        return count[0]

    await work(1)
    assert await work(200) < 2.5 * await work(100)
