"""The Worker of ReWOO: runs a plan's steps as a graph, without a model of its own.

A step starts when its last input is there (`ready`); `levels` waits for a whole level and
`sequential` runs one step at a time, as the known systems do, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rewoo_bench.call_site import call_site
from rewoo_bench.concurrency import Schedule, in_order
from rewoo_bench.events import emit
from rewoo_bench.notation.arguments import show_call
from rewoo_bench.notation.plan import Plan, PlanStep, substitute
from rewoo_bench.runners.evidence_budget import EvidenceBudget
from rewoo_bench.runners.tool_calls import NO_RESULTS, Observation, call_tool
from rewoo_bench.types import Step, Tool


class StepRunner:
    """Runs single steps. One with a failed input is skipped, or gets the error's text (`failed_input` "pass")."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        evidence_budget: EvidenceBudget,
        *,
        slot_tokens: int,
        failed_input: Literal["skip", "pass"] = "skip",
    ) -> None:
        self._tools = tools
        self._evidence_budget = evidence_budget
        self._slot_tokens = slot_tokens
        self._failed_input = failed_input

    async def run(self, step: PlanStep, done: Mapping[str, Step], level: int) -> Step:
        """The step's result; `done` has its inputs, `level` is its depth in the plan."""
        args = substitute(step.args, {need: done[need].observation for need in step.depends_on})
        emit("step_started", step.id, tool=step.tool, argument=show_call(args))
        failed = [need for need in step.depends_on if done[need].failed]
        with call_site(step.id, level):
            if failed and self._failed_input == "skip":
                observation = Observation(f"ERROR: not run, since #{failed[0]} failed", failed=True)
            else:
                observation = await call_tool(self._tools[step.tool], args)
            query = f"{step.thought} {show_call(args)}"
            text = await self._evidence_budget.admit(
                step.id, observation.text, query=query, max_tokens=self._slot_tokens
            )
        return Step(step.id, step.thought, step.tool, show_call(args), text, observation.failed)


class Worker:
    """Runs one plan once. `steps` and `evidence` fill up as steps end."""

    def __init__(
        self,
        plan: Plan,
        tools: Mapping[str, Tool],
        evidence_budget: EvidenceBudget,
        *,
        slot_tokens: int,
        failed_input: Literal["skip", "pass"] = "skip",
    ) -> None:
        self.plan = plan
        self.done: dict[str, Step] = {}
        self._runner = StepRunner(tools, evidence_budget, slot_tokens=slot_tokens, failed_input=failed_input)
        self._levels = plan.levels()

    async def run(self, schedule: Schedule = "ready") -> None:
        """Runs every step once, after all its inputs."""
        by_id = {step.id: step for step in self.plan.steps}
        await in_order(self.plan.dependencies(), lambda id_: self._run_step(by_id[id_]), schedule)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps done, in the order of the plan."""
        return tuple(self.done[step.id] for step in self.plan.steps)

    @property
    def evidence(self) -> dict[str, str]:
        """Slot -> text, in the order of the plan."""
        return {step.id: step.observation for step in self.steps}

    def empty_leaves(self) -> list[str]:
        """Slots that no other step uses and that have nothing for the solver."""
        return [id_ for id_ in self.plan.leaves() if self.done[id_].failed or self.done[id_].observation == NO_RESULTS]

    async def _run_step(self, step: PlanStep) -> None:
        done = self.done[step.id] = await self._runner.run(step, self.done, self._levels[step.id])
        emit("step_finished", step.id, observation=done.observation, failed=done.failed)
