"""ReWOO: Planner, Worker, Solver. Xu et al. 2023, arXiv 2305.18323.

plan     = planner(question)                 one model call
evidence = {step: tool(step's argument)}     no model, but for an LLM tool
answer   = solver(question, plan, evidence)  one model call
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import PlanError
from rewoo_bench.place import at
from rewoo_bench.runners.acting import answered, read_answer
from rewoo_bench.runners.grammars import answer_grammar, plan_grammar
from rewoo_bench.runners.plan import Plan, parse_plan, plan_faults
from rewoo_bench.runners.prompts import Prompts, describe_tools
from rewoo_bench.runners.worker import Schedule, Worker
from rewoo_bench.tokens import count_tokens, truncate
from rewoo_bench.types import Completion, Message, Model, Tool, Trajectory


class ReWOOSettings(BaseModel):
    """The `[settings]` table of a ReWOO architecture."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int = Field(default=8, ge=1)
    """Steps of a plan; a longer plan is broken."""
    max_replans: int = Field(default=1, ge=0)
    """New planner calls after a broken plan."""
    schedule: Schedule = "ready"
    failed_input: Literal["skip", "pass"] = "skip"
    """A step whose input failed is not run, or gets the error's text."""
    slot_tokens: int = Field(default=200, ge=1)
    """Evidence of one step is cut to so many tokens."""
    map_tokens: int = Field(default=1500, ge=1)
    """Evidence that the solver sees is cut to so many tokens, shared by all slots."""


class ReWOO:
    """Plans every tool call up front, runs the plan, answers once."""

    Settings = ReWOOSettings

    def __init__(self, prompts: Prompts, settings: ReWOOSettings | None = None) -> None:
        self.prompts = prompts
        self.settings = settings or ReWOOSettings()
        prompts.fill("planner", tools="", max_steps=0)  # a wrong placeholder is found before the first question
        prompts.fill("solver")

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question; a plan that stays broken ends it as `invalid_plan`."""
        drafts: list[dict[str, Any]] = []
        plan = await self._plan(question, model, tools, drafts)
        replans = len(drafts) - 1
        if plan is None:
            return Trajectory(None, "invalid_plan", replans=replans, notes={"drafts": drafts})
        worker = Worker(plan, tools, slot_tokens=self.settings.slot_tokens, failed_input=self.settings.failed_input)
        await worker.run(self.settings.schedule)
        evidence = self._cut_map(worker.evidence)
        completion = await self._solve(question, plan, evidence, model)
        answer, stop_reason = answered(read_answer(completion.text), completion)
        return Trajectory(
            answer,
            stop_reason,
            steps=worker.steps,
            plan=[step.model_dump() for step in plan.steps],
            evidence=evidence,
            replans=replans,
            notes={"drafts": drafts, "cut": sorted(worker.cut), "solver": completion.text},
        )

    async def _plan(
        self, question: str, model: Model, tools: Mapping[str, Tool], drafts: list[dict[str, Any]]
    ) -> Plan | None:
        """The first sound plan of at most 1 + `max_replans` drafts; each draft is noted with its faults."""
        limit = self.settings.max_steps
        messages = [
            self.prompts.system("planner", tools=describe_tools(tools), max_steps=limit),
            *self.prompts.shots(),
            Message("user", f"Question: {question}"),
        ]
        grammar = plan_grammar(tools, limit)
        for attempt in range(1 + self.settings.max_replans):
            with at(f"planner {attempt}"):
                completion = await model.complete(messages, role="planner", stop=["\nQuestion:"], grammar=grammar)
            faults: list[str] = []
            try:
                plan = parse_plan(completion.text)
                faults = plan_faults(plan, tools, max_steps=limit)
            except PlanError as error:
                faults = list(error.faults)
            drafts.append({"text": completion.text, "faults": faults})
            if not faults:
                return plan
            messages += [Message("assistant", completion.text), _complaint(question, faults)]
        return None

    def _cut_map(self, evidence: Mapping[str, str]) -> dict[str, str]:
        """The evidence within `map_tokens`: where it is too much, every slot gets an equal share."""
        sizes = sum(count_tokens(text) for text in evidence.values())
        if sizes <= self.settings.map_tokens:
            return dict(evidence)
        share = max(1, self.settings.map_tokens // len(evidence))
        return {id_: truncate(text, share)[0] for id_, text in evidence.items()}

    async def _solve(self, question: str, plan: Plan, evidence: Mapping[str, str], model: Model) -> Completion:
        first: dict[str, str] = {}  # evidence -> the slot where it stands; what was found twice is sent once
        lines = []
        for step in plan.steps:
            text = evidence[step.id]
            slot = first.setdefault(text, step.id)
            shown = text if slot == step.id else f"the same as #{slot}"
            lines.append(f"Plan: {step.thought}\n#{step.id} = {step.tool}[{step.argument}]\nEvidence: {shown}")
        found = "\n\n".join(lines)
        messages = [
            self.prompts.system("solver"),
            *self.prompts.extra_shots("solver_exemplars"),
            Message("user", f"Question: {question}\n\n{found}\n\nQuestion: {question}"),
        ]
        with at("solver"):
            return await model.complete(messages, role="solver", stop=["\nQuestion:"], grammar=answer_grammar())


def _complaint(question: str, faults: list[str]) -> Message:
    return Message("user", f"The plan can't be run: {'; '.join(faults)}.\nWrite a new plan.\n\nQuestion: {question}")
