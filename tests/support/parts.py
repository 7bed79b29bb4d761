"""Small tools, plans and results for the tests of the core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import anyio
from pydantic import BaseModel

from rewoo_bench.calls.meter import Call
from rewoo_bench.config.specs import ArchitectureSpec
from rewoo_bench.errors import ModelError
from rewoo_bench.evaluation.folder import Result, Task
from rewoo_bench.events import Place
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.text.scoring import Score
from rewoo_bench.types import Bill, CallCost, Completion, Example, Message, Model, Request, Tool, Trajectory, Usage

MOMENT = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)


class Query(BaseModel):
    query: str


class Year(BaseModel):
    year: int


class Told:
    """A tool that answers with a function of its argument, and remembers what it was asked."""

    def __init__(
        self,
        answer: Callable[[str], str | Awaitable[str]] = lambda query: f"page of {query}",
        name: str = "Search",
        arguments: type[BaseModel] = Query,
    ) -> None:
        self.name = name
        self.description = "finds a page."
        self.arguments = arguments
        self.asked: list[str] = []
        self._answer = answer

    async def __call__(self, arguments: Any) -> str:
        query = str(next(iter(arguments.model_dump().values())))
        self.asked.append(query)
        answer = self._answer(query)
        return answer if isinstance(answer, str) else await answer


async def billed(complete: Callable[[Request], Awaitable[Completion]], request: Request) -> Completion:
    """A reply, or its failure, with the cost of the whole call instead of its last attempt."""
    bill = Bill()
    try:
        completion = await complete(replace(request, bill=bill))
    except ModelError as error:
        error.call_cost = bill.with_outcome(error.call_cost)
        raise
    except anyio.get_cancelled_exc_class():
        request.bill.total = bill.total.after(request.bill.total)
        raise
    return replace(completion, call_cost=bill.with_outcome(completion.call_cost))


class Billing:
    """A model whose replies and failures have the cost of their whole call."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:  # its name, its prices
        return getattr(self._model, name)

    async def complete(self, request: Request) -> Completion:
        return await billed(self._model.complete, request)


def toolbox(*tools: Tool) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools or (Told(),)}


def plan_of(*calls: str) -> Plan:
    """`plan_of("Search[a]", "Search[#E1]")` is a plan of the steps E1 and E2."""
    steps = []
    for number, call in enumerate(calls, start=1):
        tool, _, argument = call.removesuffix("]").partition("[")
        steps.append(PlanStep(id=f"E{number}", tool=tool, args=argument, thought=f"step {number}"))
    return Plan(steps=tuple(steps))


class Silent:
    """A runner that does nothing."""

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        return Trajectory(None, "empty_answer")


def architecture(name: str = "rewoo", runner: Any = None, **spec: Any) -> Architecture:
    """An architecture around a runner of the test's own."""
    described = ArchitectureSpec(name=name, description="for a test", runner="tests:Own", **spec)
    return Architecture(described, Prompts(), {}, None, runner or Silent())


def model_call(index: int = 0, start: float = 0.0, end: float = 1.0, **values: Any) -> Call:
    """A call of a model that was answered, with 10 + 2 tokens."""
    usage = values.pop("usage", Usage(input_tokens=10, output_tokens=2))
    call_cost = values.pop("call_cost", CallCost(billed=usage))
    filled = {"kind": "model", "name": "m", "role": "agent", "place": Place("answer"), "status": "ok", **values}
    return Call(index=index, start=start, end=end, started_at=MOMENT, usage=usage, call_cost=call_cost, **filled)


def result(index: int = 0, answer: str | None = "Seine", **values: Any) -> Result:
    """What came of question `index`: a right answer, unless said otherwise."""
    example = values.pop("example", Example(f"q{index}", f"Which river? ({index})", ("Seine",), kind="bridge"))
    filled: dict[str, Any] = {
        "task": Task(index, example, values.pop("trial", 0), architecture(values.pop("arch", "rewoo"))),
        "trajectory": Trajectory(answer, "answered" if answer else "error"),
        "calls": [model_call()],
        "score": Score(exact_match=answer == "Seine", f1=float(answer == "Seine")) if answer else None,
        "error": None if answer else "the provider failed",
        "judged_correct": None,
        "latency_s": 1.0,
        "working_s": 1.0,
        "started_at": MOMENT,
        "cost_usd": 0.001,
        **values,
    }
    return Result(**filled)


def said(messages: Sequence[Message]) -> str:
    """Everything that stands in a conversation."""
    return "\n".join(message.content for message in messages)
