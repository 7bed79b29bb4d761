"""The meter: every call in the books, limits before each call, and time that was only waited."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import Query, Told, model_call, toolbox
from timing import counted_calls

from rewoo_bench.calls.meter import Limits, Meter, not_working
from rewoo_bench.errors import LimitReached, ModelError, ToolError, UsageError
from rewoo_bench.events import Place, at_place, current_place, flag, noting, starting
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.tools.factories import LLM, LLMArguments
from rewoo_bench.types import CallCost, Completion, Message, Model, Request, Tool, Usage

ASK = [Message("user", "Which river?")]
TWELVE = Usage(input_tokens=10, cached_input_tokens=4, output_tokens=2, reasoning_tokens=1)


def priced(cost: float | None, usage: Usage = TWELVE, **call_cost: Any) -> Completion:
    return Completion("Neva", usage, call_cost=CallCost(billed=usage, cost_usd=cost, **call_cost))


def metered(*lines: Any, **limits: Any) -> Meter:
    return Meter({"": ScriptedModel(lines)}, Limits(**limits))


@pytest.mark.anyio
async def test_a_row_is_the_sum_of_its_calls() -> None:
    meter = metered(priced(0.5), priced(0.25))
    assert isinstance(meter, Model)
    for role in ("planner", "solver"):
        with at_place(role):
            await meter.complete(Request(ASK, role=role))
    assert sum((call.usage for call in meter.calls), Usage()) == Usage(20, 8, 4, 2)
    assert meter.cost_usd == 0.75
    assert [(call.index, call.kind, call.role, call.place, call.status) for call in meter.calls] == [
        (0, "model", "planner", Place("planner"), "ok"),
        (1, "model", "solver", Place("solver"), "ok"),
    ]


@pytest.mark.anyio
async def test_a_role_has_its_own_model_or_that_of_all_others() -> None:
    planner, other = ScriptedModel(["plan"]), ScriptedModel(["answer"])
    meter = Meter({"planner": planner, "": other})
    assert (await meter.complete(Request(ASK, role="planner", max_tokens=7, stop=["x"], grammar="g"))).text == "plan"
    assert (await meter.complete(Request(ASK, role="solver"))).text == "answer"
    asked = planner.requests[0]
    assert (asked.max_tokens, asked.stop, asked.grammar) == (7, ("x",), "g")


@pytest.mark.anyio
async def test_an_unknown_price_makes_the_sum_unknown_and_never_nothing() -> None:
    meter = metered(priced(0.5), priced(None))
    assert meter.cost_usd == 0.0
    await meter.complete(Request(ASK, role="agent"))
    await meter.complete(Request(ASK, role="agent"))
    assert meter.cost_usd is None


@pytest.mark.anyio
async def test_a_failed_call_is_in_the_books_with_what_it_cost() -> None:
    paid = CallCost(attempts=3, billed=TWELVE, cost_usd=0.5)
    meter = metered(ModelError("down", call_cost=paid), ModelError("down"))
    for _ in range(2):
        with pytest.raises(ModelError):
            await meter.complete(Request(ASK, role="agent"))
    first, second = meter.calls
    assert (first.status, first.usage, first.call_cost) == ("error", Usage(), paid)
    assert (second.status, second.call_cost) == ("error", CallCost())
    assert meter.cost_usd == 0.5


@pytest.mark.anyio
async def test_a_cancelled_call_is_in_the_books() -> None:
    meter = metered()
    tool = meter.wrap(toolbox(Told(lambda _: anyio.sleep(60))))["Search"]  # type: ignore[arg-type, return-value]
    with anyio.move_on_after(0.05):
        await tool(Query(query="a"))
    (call,) = meter.calls
    assert (call.kind, call.status) == ("tool", "cancelled")
    assert call.end - call.start >= 0.04


@pytest.mark.anyio
async def test_tools_are_counted_as_they_ended() -> None:
    def answer(query: str) -> str:
        if query == "lost":
            raise ToolError("no page")
        return "" if query == "blank" else "page"

    meter = metered()
    search = meter.wrap(toolbox(Told(answer)))["Search"]
    assert isinstance(search, Tool)
    await search(Query(query="a"))
    await search(Query(query="blank"))
    with pytest.raises(ToolError):
        await search(Query(query="lost"))
    assert [(call.kind, call.name, call.status) for call in meter.calls] == [
        ("tool", "Search", "ok"),
        ("tool", "Search", "empty"),
        ("tool", "Search", "error"),
    ]
    assert all(call.usage == Usage() for call in meter.calls)


@pytest.mark.anyio
async def test_the_llm_tools_own_calls_are_counted_and_can_be_told_apart() -> None:
    meter = metered(priced(None), ModelError("down"))
    tool = meter.wrap({"LLM": LLM(meter, "Read.")})["LLM"]
    with at_place("E2", level=1):
        await tool(LLMArguments(question="Which city?"))
        with pytest.raises(ModelError):
            await tool(LLMArguments(question="Which city?"))
    assert [(c.kind, c.role, c.place.name, c.place.level, c.status) for c in meter.calls] == [
        ("model", "tool", "E2", 1, "ok"),
        ("tool", "tool", "E2", 1, "ok"),
        ("model", "tool", "E2", 1, "error"),
        ("tool", "tool", "E2", 1, "error"),
    ]
    assert [call.usage.total_tokens for call in meter.calls] == [12, 0, 0, 0]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("limits", "stop_reason", "message"),
    [
        ({"tokens": 12}, "token_limit", "used 12 of 12 tokens"),
        ({"cost_usd": 0.5}, "cost_limit", "cost 0.5000 of 0.5 USD"),
    ],
)
async def test_a_limit_is_seen_before_the_next_call(limits: dict[str, Any], stop_reason: str, message: str) -> None:
    meter = metered(priced(0.5), priced(0.5), **limits)
    await meter.complete(Request(ASK, role="agent"))
    with pytest.raises(LimitReached, match=message) as caught:
        await meter.complete(Request(ASK, role="agent"))
    assert caught.value.stop_reason == stop_reason
    with pytest.raises(LimitReached):
        await meter.wrap(toolbox())["Search"](Query(query="a"))
    assert len(meter.calls) == 1


@pytest.mark.anyio
async def test_time_is_a_limit_too() -> None:
    now = 100.0
    meter = Meter({"": ScriptedModel(["a", "b"])}, Limits(time_s=5.0), clock=lambda: now)
    await meter.complete(Request(ASK, role="agent"))
    now = 105.0
    with pytest.raises(LimitReached, match=r"took 5\.0 of 5\.0 s") as caught:
        await meter.complete(Request(ASK, role="agent"))
    assert caught.value.stop_reason == "time_limit"


@pytest.mark.anyio
async def test_a_cost_limit_that_cannot_be_kept_for_want_of_a_price_is_a_wrong_command() -> None:
    meter = metered(priced(None), priced(None), cost_usd=0.01)
    await meter.complete(Request(ASK, role="agent"))
    with pytest.raises(UsageError, match="price of the model isn't known"):
        await meter.complete(Request(ASK, role="agent"))


def waits(start: float, end: float, *waiting: tuple[float, float], **values: Any) -> Any:
    return model_call(start=start, end=end, call_cost=CallCost(waiting=waiting), **values)


def test_an_llm_tool_that_waits_for_its_model_is_not_working() -> None:
    inside = waits(1, 4, (1, 3), role="tool", place=Place("E2"))
    around = model_call(kind="tool", start=0.9, end=4.1, role="tool", place=Place("E2"), call_cost=CallCost())
    assert not_working([inside, around]).idle_s == pytest.approx(2.0)


def test_another_tool_meanwhile_is() -> None:
    inside = waits(1, 4, (1, 3), role="tool", place=Place("E2"))
    search = model_call(kind="tool", start=2, end=9, role="tool", place=Place("E3"), call_cost=CallCost())
    assert not_working([inside, search]).idle_s == pytest.approx(1.0)


SECONDS = st.lists(st.integers(0, 12), min_size=2, max_size=2, unique=True).map(lambda pair: (min(pair), max(pair)))


@st.composite
def timed_call(draw: st.DrawFn) -> Any:
    """A call of whole seconds, which waits at its beginning and then for a start."""
    start, end = draw(SECONDS)
    waited, begun, ready = sorted(draw(st.lists(st.integers(start, end), min_size=3, max_size=3)))
    waiting = (start, waited) if waited > start else None
    startup = (begun, ready) if ready > begun else None
    return waits(start, end, *filter(None, [waiting]), startups=tuple(filter(None, [startup])))


@given(st.lists(timed_call(), max_size=4), st.lists(SECONDS, max_size=2))
def test_each_second_without_work_is_idle_or_a_start(calls: list[Any], outside: list[tuple[int, int]]) -> None:
    def at(second: int, intervals: Any) -> int:
        return sum(start <= second < end for start, end in intervals)

    startups = {interval for call in calls for interval in call.startups}
    idle = startup = 0
    for second in range(12):
        waiting = sum(at(second, call.call_cost.waiting) for call in calls)
        starting = sum(at(second, call.startups) for call in calls)
        if waiting + starting >= at(second, [(call.start, call.end) for call in calls]):
            is_start = starting or at(second, set(outside) - startups)
            startup += bool(is_start)
            idle += bool(waiting and not is_start)
    assert not_working(calls, [*outside, *startups]) == (idle, startup)


@pytest.mark.anyio
async def test_a_call_knows_what_it_waited_for_and_so_does_its_question() -> None:
    def reply(messages: Any, role: str) -> str:
        with starting():
            flag("dropped_fields")
        return "Neva"

    meter = Meter({"": ScriptedModel(reply)})
    with noting(meter.notes):
        await meter.complete(Request(ASK, role="agent"))
        with starting():
            pass
    assert list(meter.calls[0].startups) == meter.notes.startups[:1]
    assert len(meter.notes.startups) == 2
    assert meter.notes.flags == {"dropped_fields"}


def test_places_nest() -> None:
    with at_place("E3", level=2), at_place("summary"):
        assert current_place() == Place("E3/summary")
    assert current_place() == Place()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("limits", "most"),
    [(Limits(), 3), (Limits(tokens=10_000), 3), (Limits(tokens=1_000), 1), (Limits(cost_usd=9.0), 1)],
)
async def test_calls_of_a_question_wait_where_those_in_flight_may_use_up_the_rest(limits: Limits, most: int) -> None:
    in_flight, peak = 0, 0

    class Slow:
        async def complete(self, request: Request) -> Completion:
            nonlocal in_flight, peak
            in_flight += 1
            peak = max(peak, in_flight)
            await anyio.sleep(0.01)
            in_flight -= 1
            return priced(0.5)

    meter = Meter({"": Slow()}, limits)
    for calls in (3, 6):  # and again, when they have given their room back
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(meter.complete, Request(ASK, role="agent"))
        assert (peak, len(meter.calls)) == (most, calls)


@pytest.mark.anyio
@pytest.mark.parametrize("limits", [Limits(tokens=10**9), Limits(tokens=10_000), Limits(cost_usd=10**6)])
async def test_the_work_of_keeping_a_limit_grows_with_the_calls_and_not_with_their_square(limits: Limits) -> None:
    """Also where most of them wait for room."""

    class Slow(ScriptedModel):
        async def complete(self, request: Request) -> Completion:
            await anyio.lowlevel.checkpoint()
            return await super().complete(request)

    async def work(calls: int) -> int:
        meter = Meter({"": Slow([priced(0.5)] * calls)}, limits)
        with counted_calls() as count:
            async with anyio.create_task_group() as group:
                for _ in range(calls):
                    group.start_soon(meter.complete, Request(ASK, role="agent"))
        assert len(meter.calls) == calls
        return count[0]

    await work(1)
    assert await work(200) < 2.5 * await work(100)
