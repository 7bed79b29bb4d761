"""The Worker of ReWOO: runs a plan's steps as a graph, without a model of its own.

A step starts when its last input is there (`ready`); `levels` waits for a whole level and
`sequential` runs one step at a time, as the known systems do, so that they can be compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from graphlib import TopologicalSorter
from typing import Literal

import anyio

from rewoo_bench.errors import LimitReached, ModelError
from rewoo_bench.place import at
from rewoo_bench.runners.acting import Observation, call_tool
from rewoo_bench.runners.plan import Plan, PlanStep, substitute
from rewoo_bench.tokens import truncate
from rewoo_bench.types import Step, Tool

Schedule = Literal["ready", "levels", "sequential"]


class Worker:
    """Runs one plan once. `evidence` and `steps` fill up as steps end; `cut` names shortened slots."""

    def __init__(
        self, plan: Plan, tools: Mapping[str, Tool], *, slot_tokens: int, failed_input: Literal["skip", "pass"] = "skip"
    ) -> None:
        self.plan = plan
        self.tools = tools
        self.slot_tokens = slot_tokens
        self.failed_input = failed_input
        self.done: dict[str, Step] = {}
        self.cut: list[str] = []
        self._levels = levels(plan)

    async def run(self, schedule: Schedule = "ready") -> None:
        """Runs every step once, after all its inputs."""
        by_id = {step.id: step for step in self.plan.steps}
        await in_order(self.plan.dependencies(), lambda id_: self._run_step(by_id[id_]), schedule)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was done, in the order of the plan."""
        return tuple(self.done[step.id] for step in self.plan.steps)

    @property
    def evidence(self) -> dict[str, str]:
        """Slot -> text, in the order of the plan."""
        return {step.id: step.observation for step in self.steps}

    async def _run_step(self, step: PlanStep) -> None:
        argument = substitute(step.argument, {ref: self.done[ref].observation for ref in step.references})
        failed = [ref for ref in step.references if self.done[ref].failed]
        if failed and self.failed_input == "skip":
            observation = Observation(f"ERROR: not run, since #{failed[0]} failed", failed=True)
        else:
            with at(step.id, self._levels[step.id]):
                observation = await call_tool(self.tools[step.tool], argument)
        text, was_cut = truncate(observation.text, self.slot_tokens)
        if was_cut:
            self.cut.append(step.id)
        self.done[step.id] = Step(step.id, step.thought, step.tool, argument, text, observation.failed)


def levels(plan: Plan) -> dict[str, int]:
    """Step id -> length of the longest chain of steps that it waits for."""
    dependencies = plan.dependencies()
    depth: dict[str, int] = {}
    for id_ in TopologicalSorter(dependencies).static_order():
        depth[id_] = max((depth[before] + 1 for before in dependencies[id_]), default=0)
    return depth


async def in_order(
    dependencies: Mapping[str, set[str]], work: Callable[[str], Awaitable[None]], schedule: Schedule
) -> None:
    """Does the work of every node once, after that of all its dependencies.

    A provider's failure or a limit ends the others and is raised as it is, not in a group.
    """
    sorter = TopologicalSorter(dependencies)
    sorter.prepare()
    send, receive = anyio.create_memory_object_stream[str](len(dependencies))
    failures: list[ModelError | LimitReached] = []

    async def run(node: str) -> None:
        try:
            await work(node)
        except (ModelError, LimitReached) as error:
            failures.append(error)
            group.cancel_scope.cancel()
        else:
            send.send_nowait(node)

    width = 1 if schedule == "sequential" else len(dependencies)
    waiting: deque[str] = deque()
    running = 0
    with send, receive:
        async with anyio.create_task_group() as group:
            while sorter.is_active():
                if schedule != "levels" or not running:
                    waiting.extend(sorter.get_ready())
                while waiting and running < width:
                    group.start_soon(run, waiting.popleft())
                    running += 1
                sorter.done(await receive.receive())
                running -= 1
    if failures:
        raise failures[0]
