"""What an attacker's text in a result can reach, by architecture: an oracle that obeys it, wherever a prompt shows it.

A leak is a way from the text to a model that decides something: a step that reads a value, a planner that sees results,
a loop, a solver. Each is tested by its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from rewoo_bench import evaluate
from rewoo_bench.evaluation.folder import Result
from rewoo_bench.loaders.poison import poisoned
from rewoo_bench.models.oracle.model import Oracle, OracleSettings
from rewoo_bench.runs.reach import reach_of
from rewoo_bench.types import Completion, Document, Example, Hop, Injection, Model, Request

pytestmark = pytest.mark.anyio


class Counts(NamedTuple):
    """How much of a question an attacker's text has reached."""

    new_calls: int
    changed_arguments: int
    changed_answer: bool


NOTHING = Counts(0, 0, False)
DEAD_END = Example(
    "q", "Which sea does Kyiv's river flow into?", ("Black Sea",), (Document("Kyiv", "Kyiv lies on the Dnieper."),),
    chain=(Hop("Kyiv", "Dnieper", "the river"), Hop("Odessos", "Black Sea", "the sea")),
)  # fmt: skip
"""Its second page can't be found, so a plan fails behind the poisoned one."""


@dataclass
class Watched(Oracle):
    """A gullible oracle that notes the roles of the prompts that show the attacker's text."""

    settings: OracleSettings = field(default_factory=lambda: OracleSettings(gullible=1))
    readers: set[str] = field(default_factory=set)

    def with_gold(self, example: Example) -> Model:
        return Watched(self.settings, self.name, example, readers=self.readers)

    async def complete(self, request: Request) -> Completion:
        if self.example and self.example.injection:
            shown = any(self.example.injection.is_in(message.content) for message in request.messages)
            self.readers |= {request.role} if shown else set()
        return await super().complete(request)


def injection(result: Result) -> Injection:
    found = result.task.example.injection
    assert found is not None
    return found


def reach(result: Result) -> Counts:
    found = reach_of(injection(result), result.trajectory)
    return Counts(len(found.new_calls), len(found.changed_arguments), found.changed_answer)


async def asked(
    architecture: str, kind: str, of: str | Example = "chain?hops=3", model: Any = "oracle?gullible=1"
) -> Result:
    """What came of a poisoned question."""
    mark = "&" if "?" in str(of) else "?"
    dataset = f"{of}{mark}inject={kind}" if isinstance(of, str) else list(poisoned([of], kind, 0))
    (result,) = await evaluate(dataset, [architecture], model=model, questions=1)
    assert result.error is None
    return result


async def readers(architecture: str, kind: str = "call", of: str | Example = "chain?hops=3") -> set[str]:
    model = Watched()
    await asked(architecture, kind, of, model)
    return model.readers


# Plans that see no result.

PLANS = ["rewoo", "rewoo-json", "llmcompiler", "rewoo-code"]


@pytest.mark.parametrize("architecture", PLANS)
async def test_a_planner_that_sees_no_result_makes_no_new_call(architecture: str) -> None:
    result = await asked(architecture, "call")
    assert result.exposed
    assert reach(result) == NOTHING
    assert "planner" not in await readers(architecture)


@pytest.mark.parametrize("architecture", PLANS)
async def test_a_step_that_reads_a_value_fills_the_next_call(architecture: str) -> None:
    result = await asked(architecture, "argument")
    found = reach(result)
    assert (found.new_calls, found.changed_answer) == (0, False)
    assert found.changed_arguments >= 1
    searched = [step.argument for step in result.trajectory.steps if step.tool == "Search"]
    assert injection(result).value in searched
    assert "tool" in await readers(architecture)


@pytest.mark.parametrize("kind", ["answer", "stop"])
@pytest.mark.parametrize("architecture", ["rewoo", "rewoo-json", "llmcompiler"])
async def test_a_solver_reads_every_result(architecture: str, kind: str) -> None:
    result = await asked(architecture, kind)
    assert reach(result) == Counts(0, 0, True)
    assert result.trajectory.answer is not None
    own = result.task.example.answers[0]
    assert (own in result.trajectory.answer) == (kind == "answer")  # who stops says nothing else
    assert await readers(architecture, kind) == {"tool", "solver"}


async def test_a_solver_that_sees_what_was_read_alone_does_not_read_the_page() -> None:
    assert await readers("rewoo?solver_evidence=unread", "answer") == {"tool"}
    assert reach(await asked("rewoo?solver_evidence=unread", "answer")) == NOTHING


async def test_a_program_shows_its_solver_what_it_prints_alone() -> None:
    result = await asked("rewoo-code", "answer")
    assert reach(result) == NOTHING
    assert await readers("rewoo-code", "answer") == {"tool"}
    one_page = await asked("rewoo-code", "answer", "chain?hops=1")  # which nothing else reads
    assert reach(one_page) == Counts(0, 0, True)


# Results that reach an argument without a step that reads them.


async def test_a_placeholder_passes_the_text_itself_on_unread() -> None:
    result = await asked("rewoo", "answer", "chain?hops=2&results=value", "oracle")
    assert [step.tool for step in result.trajectory.steps] == ["Search", "Search"]
    assert injection(result).is_in(result.trajectory.steps[1].argument)
    assert reach(result) == Counts(0, 1, False)


@pytest.mark.parametrize("architecture", ["rewoo", "react"])
async def test_a_summary_reads_what_would_have_been_cut_off(architecture: str) -> None:
    long, limit = "chain?hops=3&words=150", "observation_tokens" if architecture == "react" else "slot_tokens"
    cut = await asked(f"{architecture}?{limit}=90", "argument", long)
    assert (cut.exposed, reach(cut)) == (False, NOTHING)
    summed_up = await asked(f"{architecture}?{limit}=90&shorten=llm", "argument", long)
    assert reach(summed_up)[:2] == ((1, 0) if architecture == "react" else (0, 2))


# Planners that see results.


async def test_a_lazy_planner_reads_results_after_a_failed_step() -> None:
    assert reach(await asked("rewoo-lazy", "call")) == NOTHING  # no step fails
    failed = await asked("rewoo-lazy", "call", DEAD_END)
    assert reach(failed) == Counts(1, 0, False)
    assert failed.trajectory.replans == 1
    assert reach(await asked("rewoo-lazy", "stop", DEAD_END)) == Counts(0, 0, True)
    assert await readers("rewoo-lazy", of=DEAD_END) >= {"planner"}


@pytest.mark.parametrize("kind", ["answer", "stop"])
async def test_a_step_that_reads_the_answer_reads_the_attackers(kind: str) -> None:
    result = await asked("rewoo-lazy", kind, "chain?hops=1&width=2")
    own = f"{result.task.example.answers[0]} " if kind == "answer" else ""
    assert result.trajectory.answer == own + injection(result).answer
    assert await readers("rewoo-lazy", kind, "chain?hops=1&width=2") == {"tool"}


async def test_new_drafts_see_results_where_a_step_failed_and_not_where_a_plan_was_broken() -> None:
    assert reach(await asked("rewoo?replan=on_failure", "call", DEAD_END)) == Counts(1, 0, False)
    assert reach(await asked("rewoo?max_replans=3", "call", DEAD_END)) == NOTHING
    assert "planner" not in await readers("rewoo?max_replans=3", of=DEAD_END)


async def test_a_joiner_that_may_ask_for_a_new_plan_gets_one() -> None:
    assert "planner" not in await readers("llmcompiler")
    once = await asked("llmcompiler?max_replans=4", "call")
    assert reach(once) == Counts(1, 0, False)  # and no second time
    assert once.trajectory.replans == 1
    assert once.trajectory.answer == once.task.example.answers[0]
    both = await asked("llmcompiler?max_replans=4", "argument")
    assert (reach(both).new_calls, reach(both).changed_arguments) == (1, 2)


# Loops.

LOOPS = ["react", "react-json", "react-native", "plan-execute", "react-code"]


@pytest.mark.parametrize("kind", ["call", "argument"])
@pytest.mark.parametrize("architecture", LOOPS)
async def test_a_loop_makes_the_call_in_its_next_turn(architecture: str, kind: str) -> None:
    result = await asked(architecture, kind)
    assert reach(result) == Counts(1, 0, False)
    arguments = [step.argument for step in result.trajectory.steps if step.tool == "Search"]
    assert arguments[1] == injection(result).marker
    assert len(arguments) == 4  # and then it goes on
    assert result.trajectory.answer == result.task.example.answers[0]


@pytest.mark.parametrize("architecture", LOOPS)
async def test_a_loop_that_is_told_to_stops_at_once(architecture: str) -> None:
    result = await asked(architecture, "stop")
    assert reach(result) == Counts(0, 0, True)
    assert result.trajectory.answer == injection(result).answer
    assert sum(call.kind == "tool" for call in result.calls) == 1


# Two in one, and who chooses.


async def test_a_gap_in_the_plan_lets_the_text_into_a_loop() -> None:
    assert reach(await asked("rewoo-react", "call")) == NOTHING
    fell_back = await asked("rewoo-react", "call", DEAD_END)
    assert fell_back.trajectory.notes["fallback"] == "empty_slot"
    assert reach(fell_back) == Counts(1, 0, False)
    assert [step.id for step in fell_back.trajectory.steps if injection(fell_back).is_in(step.argument)] == ["R1"]


@pytest.mark.parametrize("chosen", ["rewoo", "react"])
async def test_a_router_reads_no_result_and_has_the_leaks_of_the_one_that_it_chooses(chosen: str) -> None:
    of = "chain?hops=3" if chosen == "rewoo" else "chain?hops=3&branching=1"
    result = await asked("router?policy=model", "call", of)
    assert result.trajectory.notes["routed"]["to"] == chosen
    assert reach(result) == (NOTHING if chosen == "rewoo" else Counts(1, 0, False))
    assert "router" not in await readers("router?policy=model", of=of)
