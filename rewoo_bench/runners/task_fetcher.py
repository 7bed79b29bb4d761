"""LLMCompiler's task fetching unit and executor: starts each task as soon as its line and its inputs are there.

    async with background_tasks() as start:
        fetcher = TaskFetcher(start, step_runner, tools, done, max_steps=8)
        fetcher.read('1. Search("Oslo")\\n2. Sea')         # starts task 1; line 2 hasn't ended
        await fetcher.finish(plan)                          # the plan as it is in the end: starts and awaits the rest

A stream may begin again with other lines, and a plan may turn out to be broken. So a task that was started early counts
only if the plan has the same task, with the same inputs, in the end. It isn't run twice then; any other one is
discarded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from rewoo_bench.concurrency import TaskStarter
from rewoo_bench.events import emit
from rewoo_bench.notation.arguments import show_call
from rewoo_bench.notation.numbered import complete_steps
from rewoo_bench.notation.plan import Plan, PlanStep
from rewoo_bench.notation.plan_checks import step_faults, with_tool_names
from rewoo_bench.runners.rewoo_worker import StepRunner
from rewoo_bench.types import Step, Tool


@dataclass(frozen=True, slots=True)
class _Task:
    step: PlanStep
    level: int
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class TaskFetcher:
    """The tasks of one plan. `done` has the results of earlier plans, and gets those of this one.

    `early` counts tasks that were started before their plan was whole, and `discarded` lists those that didn't count.
    """

    def __init__(
        self,
        start: TaskStarter,
        runner: StepRunner,
        tools: Mapping[str, Tool],
        done: dict[str, Step],
        *,
        max_steps: int,
    ) -> None:
        self.done = done
        self.early = 0
        self.discarded: list[dict[str, Any]] = []
        self._start = start
        self._runner = runner
        self._tools = tools
        self._max_steps = max_steps
        self._earlier = frozenset(done)
        self._tasks: dict[str, _Task] = {}
        self._lines = ""

    def read(self, text: str) -> None:
        """Starts the tasks in a plan that is still being written."""
        lines = text[: text.rfind("\n") + 1]
        if lines == self._lines:
            return
        self._lines = lines
        plan = with_tool_names(Plan(steps=tuple(complete_steps(lines, self._tools))), self._tools)
        first: dict[str, PlanStep] = {}
        for step in plan.steps[: self._max_steps]:
            first.setdefault(step.id, step)
        self._discard([id_ for id_, step in first.items() if id_ in self._tasks and self._tasks[id_].step != step])
        self.early += self._start_ready(list(first.values()))

    async def finish(self, plan: Plan) -> None:
        """Runs every step of a sound plan, except those that are running or done."""
        steps = {step.id: step for step in plan.steps}
        self._discard([i for i, task in self._tasks.items() if task.step != steps.get(i)])
        self._start_ready(plan.steps)
        for task in list(self._tasks.values()):
            await task.ended.wait()

    def discard_all(self) -> None:
        """Ends the tasks of a plan that can't be run."""
        self._discard(list(self._tasks))

    def _start_ready(self, steps: Sequence[PlanStep]) -> int:
        """Starts the sound tasks whose inputs were started before, in any order of the lines. Returns their number."""
        before, known = len(self._tasks), -1
        while known < len(self._tasks):
            known = len(self._tasks)
            for step in steps:
                if self._is_ready(step):
                    self._launch(step)
        return len(self._tasks) - before

    def _is_ready(self, step: PlanStep) -> bool:
        known = {*self._tasks, *self._earlier}
        return step.id not in known and not step_faults(step, known, self._tools)

    def _launch(self, step: PlanStep) -> None:
        levels = [self._tasks[need].level if need in self._tasks else 0 for need in step.depends_on]
        task = _Task(step, 1 + max(levels) if levels else 0)
        self._tasks[step.id] = task
        self._start(self._run, task)

    async def _run(self, task: _Task) -> None:
        inputs = [self._tasks[need] for need in task.step.depends_on if need in self._tasks]
        with task.scope:
            for each in inputs:
                await each.ended.wait()
            if self._tasks.get(task.step.id) is not task:
                return  # discarded with an input that ended at that moment, before its cancellation reached it
            result = await self._runner.run(task.step, self.done, task.level)
        if self._tasks.get(task.step.id) is task:  # it may have ended before its cancellation reached it
            self.done[task.step.id] = result
            task.ended.set()
            emit("step_finished", task.step.id, observation=result.observation, failed=result.failed)

    def _discard(self, ids: Sequence[str]) -> None:
        """Ends tasks, and all that wait for them."""
        gone = set(ids)
        while more := {i for i, task in self._tasks.items() if i not in gone and gone & set(task.step.depends_on)}:
            gone |= more
        for id_ in [id_ for id_ in self._tasks if id_ in gone]:
            task = self._tasks.pop(id_)
            task.scope.cancel()
            has_ended = self.done.pop(id_, None) is not None
            call = {"id": id_, "tool": task.step.tool, "args": show_call(task.step.args), "ended": has_ended}
            self.discarded.append(call)
            emit("step_discarded", id_, ended=has_ended)
