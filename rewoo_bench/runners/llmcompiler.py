"""LLMCompiler: a plan that runs while it is being written, and a joiner that answers, or asks for another one.

plan     = planner(question, results so far)      one model call, streamed: a task starts when its line has ended
results  = {task: tool(task's argument)}          as soon as its inputs are there, many at the same time
decision = joiner(question, plans, results)       one model call: an answer; with replans, or what one has to find

Kim et al. 2023, arXiv 2312.04511.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.arguments import show_call
from rewoo_bench.runners.notation.grammars import join_grammar, numbered_grammar
from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.notation.plan_checks import TooLong, read_checked, step_faults, with_tool_names
from rewoo_bench.runners.notation.plan_formats import as_numbered, complete_steps, write_task
from rewoo_bench.runners.notation.replies import Joined, answered, read_joined
from rewoo_bench.runners.notation.tools import describe_tools
from rewoo_bench.runners.prompts import EvidenceBudget, Prompts, Shorten, check_shorten
from rewoo_bench.runners.rewoo import StepRunner, plan_size
from rewoo_bench.system.concurrency import TaskStarter, background_tasks
from rewoo_bench.types import Completion, Hop, Message, Model, Request, Step, StopReason, Tool, Trajectory

# A stream may begin again with other lines, and a plan may turn out to be broken. So a task that was started early
# counts only if the plan has the same task, with the same inputs, in the end; it isn't run twice then. Any other is
# discarded.


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
                started = {*self._tasks, *self._earlier}
                if step.id in started or step_faults(step, started, self._tools):
                    continue
                levels = [self._tasks[need].level if need in self._tasks else 0 for need in step.depends_on]
                self._tasks[step.id] = task = _Task(step, 1 + max(levels) if levels else 0)
                self._start(self._run, task)
        return len(self._tasks) - before

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


_STOP = ["\nQuestion:"]


class LLMCompilerSettings(BaseModel):
    """The `[settings]` table of an LLMCompiler architecture."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stream: bool = True
    """Whether a task starts when its line has ended; else when the plan is whole."""
    max_steps: int = Field(default=8, ge=1)
    """Tasks of a plan, without `join()`."""
    too_long: TooLong = "reject"
    """A longer plan is broken, or loses its last tasks."""
    max_replans: int = Field(default=0, ge=0)
    """Planner calls after the first one: after a broken plan, or where the joiner asks for a new plan."""
    failed_input: Literal["skip", "pass"] = "skip"
    """A task with a failed input is skipped, or gets the error's text."""
    shorten: Shorten = "truncate"
    """How a result that is too long is shortened."""
    slot_tokens: int = Field(default=200, ge=1)
    """Tokens to which the result of a task is shortened."""
    map_tokens: int = Field(default=1500, ge=1)
    """Tokens to which all results are shortened for joiner and planner, shared by the tasks."""


@dataclass
class _Course:
    """One question so far: the planner's conversation, all plans, and the results of their tasks."""

    question: str
    messages: list[Message]
    evidence_budget: EvidenceBudget
    runner: StepRunner
    done: dict[str, Step] = field(default_factory=dict)
    planned: list[PlanStep] = field(default_factory=list)
    evidence: dict[str, str] = field(default_factory=dict)
    drafts: list[dict[str, Any]] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    discarded: list[dict[str, Any]] = field(default_factory=list)
    dropped_steps: int = 0
    early_steps: int = 0

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self.done[step.id] for step in self.planned)

    @property
    def next_number(self) -> int:
        return 1 + max((int(step.id.removeprefix("E")) for step in self.planned), default=0)

    def results(self) -> str:
        """The tasks and what they found, as joiner and planner see them; the same text is sent once."""
        first: dict[str, str] = {}  # result -> its first task
        lines = []
        for step in self.planned:
            number = step.id.removeprefix("E")
            text = self.evidence[step.id]
            same_as = first.setdefault(text, number)
            shown = text if same_as == number else f"the same as ${same_as}"
            lines.append(f"{number}. {write_task(step)}\nResult: {shown}")
        return "\n\n".join(lines)

    def notes(self) -> dict[str, Any]:
        """Notes for the trace."""
        return {
            "drafts": self.drafts,
            "dropped_steps": self.dropped_steps,
            "early_steps": self.early_steps,
            "discarded": self.discarded,
            "cuts": self.evidence_budget.cuts,
            "joiner": self.joined,
        }


class LLMCompiler:
    """Plans, runs the plan in parallel while it is being written, and answers, or plans again."""

    Settings = LLMCompilerSettings

    def __init__(self, prompts: Prompts, settings: LLMCompilerSettings | None = None) -> None:
        self.prompts = prompts
        self.settings = settings or LLMCompilerSettings()
        self.max_steps = self.settings.max_steps
        prompts.fill("planner", tools="", max_steps=0)  # a wrong placeholder is found before the first question
        prompts.fill("joiner")
        if self.settings.max_replans:
            prompts.fill("joiner_replan")
        check_shorten(self.settings.shorten, prompts)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question; without any sound plan it ends as `invalid_plan`, without an answer as `step_limit`."""
        course = self._course(question, model, tools)
        while await self._plan_and_run(course, model, tools):
            joined, completion = await self._join(course, model, may_replan=self._may_plan(course))
            if joined.missing is None:
                answer, stop_reason = answered(joined.answer, completion)
                emit("answered", answer=answer)
                return self._end(course, answer, stop_reason)
            if not self._may_plan(course):
                return self._end(course, None, "step_limit")
            emit("replan_asked", missing=joined.missing)
            wanted = (
                f"Still missing: {joined.missing}\nWrite a plan of the tasks that are still needed, with numbers from"
            )
            task = f"{course.results()}\n\n{wanted} {course.next_number}.\n\nQuestion: {question}"
            course.messages.append(Message("user", task))
        return self._end(course, None, "invalid_plan")

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """Tasks of a plan without a mistake."""
        return plan_size(chain)

    def _course(self, question: str, model: Model, tools: Mapping[str, Tool]) -> _Course:
        """The planner's prompt; the part that is the same for every question comes first."""
        messages = [
            self.prompts.system("planner", tools=describe_tools(tools, "numbered"), max_steps=self.settings.max_steps),
            *self.prompts.shots("planner"),
            Message("user", f"Question: {question}"),
        ]
        budget = EvidenceBudget(self.settings.shorten, model, self.prompts)
        runner = StepRunner(
            tools, budget, slot_tokens=self.settings.slot_tokens, failed_input=self.settings.failed_input
        )
        return _Course(question, messages, budget, runner)

    def _may_plan(self, course: _Course) -> bool:
        return len(course.drafts) <= self.settings.max_replans

    async def _plan_and_run(self, course: _Course, model: Model, tools: Mapping[str, Tool]) -> bool:
        """Runs the next sound plan, if one is written. Returns whether there is any result for the joiner."""
        async with background_tasks() as start:
            fetcher = TaskFetcher(start, course.runner, tools, course.done, max_steps=self.settings.max_steps)
            plan = await self._plan(course, fetcher, model, tools)
            if plan is None:
                fetcher.discard_all()
            else:
                await fetcher.finish(plan)
                course.planned += plan.steps
            course.early_steps += fetcher.early
            course.discarded += fetcher.discarded
        if plan is not None:
            queries = {step.id: f"{step.thought} {step.argument}" for step in course.steps}
            found = {step.id: step.observation for step in course.steps}
            with at_place(f"map {len(course.joined)}"):
                course.evidence = await course.evidence_budget.admit_map(found, queries, self.settings.map_tokens)
        return bool(course.planned)

    async def _plan(
        self, course: _Course, fetcher: TaskFetcher, model: Model, tools: Mapping[str, Tool]
    ) -> Plan | None:
        """The first sound plan of the planner calls that are left. Its tasks are started while it is written."""
        while self._may_plan(course):
            attempt = len(course.drafts)
            emit("planner_started", attempt=attempt)
            shown = fetcher.read if self.settings.stream else None
            grammar = numbered_grammar(tools, self.settings.max_steps, course.next_number)
            request = Request(course.messages, role="planner", stop=_STOP, grammar=grammar, on_text=shown)
            with at_place(f"planner {attempt}"):
                completion = await model.complete(request)
            plan, faults, course.dropped_steps = read_checked(
                completion.text,
                "numbered",
                tools,
                self.settings.max_steps,
                self.settings.too_long,
                [step.id for step in course.planned],
            )
            course.drafts.append({"text": completion.text, "faults": faults})
            course.messages.append(Message("assistant", completion.text))
            if plan is not None and not faults:
                emit("plan_created", plan=[step.model_dump(mode="json") for step in plan.steps])
                return plan
            emit("plan_rejected", faults=faults)
            listed = as_numbered("; ".join(faults))
            complaint = f"The plan can't be run: {listed}.\nWrite a new plan.\n\nQuestion: {course.question}"
            course.messages.append(Message("user", complaint))
        return None

    async def _join(self, course: _Course, model: Model, *, may_replan: bool) -> tuple[Joined, Completion]:
        """The joiner: question, plans and results in one call."""
        prompt = "joiner_replan" if may_replan else "joiner"
        shown = f"Question: {course.question}\n\n{course.results()}\n\nQuestion: {course.question}"
        messages = [self.prompts.system(prompt), *self.prompts.shots(prompt), Message("user", shown)]
        emit("solver_started")
        with at_place(f"joiner {len(course.joined)}"):
            completion = await model.complete(
                Request(messages, role="solver", stop=_STOP, grammar=join_grammar(replan=may_replan))
            )
        course.joined.append(completion.text)
        return read_joined(completion.text), completion

    def _end(self, course: _Course, answer: str | None, stop_reason: StopReason) -> Trajectory:
        return Trajectory(
            answer,
            stop_reason,
            course.steps,
            plan=[step.model_dump(mode="json") for step in course.planned] or None,
            evidence=course.evidence if course.planned else None,
            replans=len(course.drafts) - 1,
            notes=course.notes(),
        )
