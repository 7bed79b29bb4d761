"""ReWOO whose plan is a program: the planner writes Python over the tools, a sandbox runs it, the solver answers.

program = planner(question)                   one model call
output  = run(program, tools)                 no model, but for an LLM tool
answer  = solver(question, program, output)   one model call

Text plans say every call in advance. A program can loop, and look at what a page says before it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from pydantic import Field

from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.grammars import answer_grammar, program_grammar
from rewoo_bench.runners.notation.replies import answer_in, answered
from rewoo_bench.runners.notation.tools import describe_functions
from rewoo_bench.runners.program_calls import ProgramTools
from rewoo_bench.runners.programs import Outcome, Programs, fenced, program_in
from rewoo_bench.runners.prompts import EvidenceBudget, EvidenceSettings, Prompts, checked_prompts
from rewoo_bench.runners.rewoo import NO_EVIDENCE, plan_size
from rewoo_bench.runners.sources import Frozen
from rewoo_bench.types import Hop, Message, Model, Request, StopReason, Tool, Trajectory

_STOP = ["\nQuestion:"]


class ProgramSettings(EvidenceSettings):
    """Settings of every architecture whose model writes programs."""

    timeout_s: float = Field(default=5.0, gt=0)
    """Seconds that a program may compute, without those in which it waits for tools."""
    memory_mb: int = Field(default=32, ge=1)
    """Megabytes that a program may take."""


class ReWOOCodeSettings(ProgramSettings):
    """The `[settings]` table of a ReWOO architecture with programs."""

    max_steps: int = Field(default=30, ge=1)
    """Tool calls of a program. A loop takes many of them in a line, so there may be more than in a plan of text."""
    max_replans: int = Field(default=1, ge=0)
    """New planner calls after a program that can't be parsed."""
    solver: bool = True
    """Whether a solver answers; else the value of the program's last expression is the answer, or its last line."""
    frozen_arguments: Frozen = False
    """Whether a tool that changes state refuses values that don't stand in the program, or in which arguments."""


class ReWOOCode:
    """Plans as a program, runs it, answers once."""

    Settings = ReWOOCodeSettings

    def __init__(self, prompts: Prompts, settings: ReWOOCodeSettings | None = None) -> None:
        self.settings = settings or ReWOOCodeSettings()
        self.max_steps = self.settings.max_steps
        self.programs = Programs(self.settings.timeout_s, self.settings.memory_mb)
        placeholders: dict[str, Sequence[str]] = {"planner": ("tools", "max_steps")}
        placeholders |= {"solver": ()} if self.settings.solver else {}
        self.prompts = checked_prompts(prompts, self.settings, placeholders, ["solver"])

    async def connect(self, stack: AsyncExitStack) -> None:
        """The processes that run programs serve all questions of a run, and end with `stack`."""
        await self.programs.connect(stack)

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """The calls of a plan, and one for each hop that only turns out to be needed: the program goes on to it."""
        return plan_size(chain) + sum(not hop.foreseen for hop in chain)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question; where no program can be parsed it ends as `invalid_plan`."""
        settings = self.settings
        budget = EvidenceBudget(settings.shorten, model, self.prompts, quote=settings.quote_evidence)
        called = ProgramTools(
            tools,
            budget,
            slot_tokens=settings.slot_tokens,
            max_calls=settings.max_steps,
            frozen=settings.frozen_arguments,
        )
        drafts: list[dict[str, Any]] = []
        program, outcome = "", Outcome("", is_readable=False)
        messages = self.prompts.conversation(
            "planner", f"Question: {question}", tools=describe_functions(tools), max_steps=settings.max_steps
        )
        async with self.programs.session(called) as session:
            for attempt in range(1 + settings.max_replans):
                emit("planner_started", attempt=attempt)
                with at_place(f"planner {attempt}"):
                    completion = await model.complete(
                        Request(messages, role="planner", stop=_STOP, grammar=program_grammar())
                    )
                program = program_in(completion.text) or completion.text.strip()
                outcome = await session.run(program)
                faults = [] if outcome.is_readable else [outcome.fault]
                drafts.append({"text": completion.text, "faults": faults})
                if outcome.is_readable:
                    break
                emit("plan_rejected", faults=faults)
                complaint = f"The program can't be run: {outcome.fault}.\nWrite a new program.\n\nQuestion: {question}"
                messages += [Message("assistant", completion.text), Message("user", complaint)]

        def end(answer: str | None, stop_reason: StopReason, **notes: Any) -> Trajectory:
            ran = {"program": program, "output": outcome.output, "fault": outcome.fault} if outcome.is_readable else {}
            return Trajectory(
                answer,
                stop_reason,
                called.steps,
                replans=len(drafts) - 1,
                notes={"drafts": drafts, **ran, "cuts": budget.cuts, **notes},
            )

        if not outcome.is_readable:
            return end(None, "invalid_plan")
        if not settings.solver:
            answer, stop_reason = answered(answer_in(outcome.value or outcome.output.rpartition("\n")[2]), completion)
            emit("answered", answer=answer)
            return end(answer, stop_reason)
        with at_place("map"):
            output = await budget.shortened(
                "output", outcome.shown, query=question, max_tokens=settings.map_tokens, where="map"
            )
        found = f"Program:\n{fenced(program)}\nOutput:\n{budget.shown(output or NO_EVIDENCE)}"
        messages = self.prompts.conversation("solver", f"Question: {question}\n\n{found}\n\nQuestion: {question}")
        emit("solver_started")
        with at_place("solver"):
            completion = await model.complete(Request(messages, role="solver", stop=_STOP, grammar=answer_grammar()))
        answer, stop_reason = answered(answer_in(completion.text), completion)
        emit("answered", answer=answer)
        return end(answer, stop_reason, solver=completion.text)
