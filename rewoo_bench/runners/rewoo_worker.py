"""The Worker of ReWOO: runs a plan's steps as a graph, without a model of its own.

A step starts when its last input is there (`ready`); `levels` waits for a whole level and
`sequential` runs one step at a time, as the known systems do, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from rewoo_bench.call_site import call_site
from rewoo_bench.concurrency import Schedule, in_order
from rewoo_bench.events import emit
from rewoo_bench.notation.arguments import show_call
from rewoo_bench.notation.plan import Plan, PlanStep, as_text, substitute
from rewoo_bench.runners.evidence_budget import EvidenceBudget
from rewoo_bench.runners.tool_calls import NO_RESULTS, Observation, call_tool
from rewoo_bench.types import Step, Tool

NO_EVIDENCE = "No evidence found."


class StepRunner:
    """Runs single steps. One with a failed input is skipped, or gets its text (`failed_input` "pass").

    The text of a failed step is its error, or with `show_errors` off `NO_EVIDENCE`; `errors` keeps it.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        evidence_budget: EvidenceBudget,
        *,
        slot_tokens: int,
        failed_input: Literal["skip", "pass"] = "skip",
        show_errors: bool = True,
    ) -> None:
        self.errors: dict[str, str] = {}
        self._tools = tools
        self._evidence_budget = evidence_budget
        self._slot_tokens = slot_tokens
        self._failed_input = failed_input
        self._show_errors = show_errors

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
            if observation.failed and not self._show_errors:
                self.errors[step.id] = observation.text
                observation = Observation(NO_EVIDENCE, failed=True)
            query = f"{step.thought} {show_call(args)}"
            text = await self._evidence_budget.admit(
                step.id, observation.text, query=query, max_tokens=self._slot_tokens
            )
        return Step(step.id, step.thought, step.tool, show_call(args), text, observation.failed)


class Worker:
    """Runs one plan once. `steps` and `evidence` fill up as steps end; the steps `faulty` aren't run."""

    def __init__(
        self,
        plan: Plan,
        runner: StepRunner,
        faulty: Collection[str] = (),
    ) -> None:
        self.plan = plan
        self.done: dict[str, Step] = {}
        self._runner = runner
        self._faulty = faulty
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
        if step.id in self._faulty:
            argument = as_text(show_call(step.args))
            done = Step(step.id, step.thought, step.tool, argument, NO_EVIDENCE, failed=True)
        else:
            done = await self._runner.run(step, self.done, self._levels[step.id])
        self.done[step.id] = done
        emit("step_finished", step.id, observation=done.observation, failed=done.failed)
