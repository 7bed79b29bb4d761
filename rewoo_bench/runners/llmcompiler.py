"""LLMCompiler: a plan that runs while it is being written, and a joiner that answers, or asks for another one.

plan     = planner(question, results so far)      one model call, streamed: a task starts when its line has ended
results  = {task: tool(task's argument)}          as soon as its inputs are there, many at the same time
decision = joiner(question, plans, results)       one model call: an answer; with replans, or what one has to find

Kim et al. 2023, arXiv 2312.04511.

A stream may begin again with other lines, and a plan may turn out to be broken. So a task that was started early
counts only if the plan has the same task, with the same inputs, in the end; it isn't run twice then. Any other is
discarded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
from pydantic import Field

from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.arguments import show_call
from rewoo_bench.runners.notation.grammars import join_grammar, numbered_grammar
from rewoo_bench.runners.notation.plan import Plan, PlanStep, in_state_order
from rewoo_bench.runners.notation.plan_checks import TooLong, read_checked, step_faults, with_tool_names
from rewoo_bench.runners.notation.plan_formats import as_numbered, complete_steps, write_task
from rewoo_bench.runners.notation.replies import Joined, answered, read_joined
from rewoo_bench.runners.notation.tools import describe_tools
from rewoo_bench.runners.prompts import EvidenceBudget, EvidenceSettings, Prompts, checked_prompts
from rewoo_bench.runners.rewoo import StepCaller, plan_size
from rewoo_bench.runners.sources import Frozen, Sources
from rewoo_bench.system.concurrency import TaskStarter, background_tasks
from rewoo_bench.types import Completion, Hop, Message, Model, Request, Step, StopReason, Tool, Trajectory

_STOP = ["\nQuestion:"]


class LLMCompilerSettings(EvidenceSettings):
    """The `[settings]` table of an LLMCompiler architecture."""

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
    frozen_arguments: Frozen = False
    """Whether a tool that changes state refuses values that a model has read from results, or in which arguments."""


class LLMCompiler:
    """Plans, runs the plan in parallel while it is being written, and answers, or plans again."""

    Settings = LLMCompilerSettings

    def __init__(self, prompts: Prompts, settings: LLMCompilerSettings | None = None) -> None:
        self.settings = settings or LLMCompilerSettings()
        self.max_steps = self.settings.max_steps
        replans = self.settings.max_replans > 0
        placeholders: dict[str, Sequence[str]] = {"planner": ("tools", "max_steps"), "joiner": ()}
        placeholders |= {"joiner_replan": ()} if replans else {}
        quoting = ["joiner", "joiner_replan", *(["planner"] if replans else [])]
        self.prompts = checked_prompts(prompts, self.settings, placeholders, quoting)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question; without any sound plan it ends as `invalid_plan`, without an answer as `step_limit`."""
        return await _Course(self, question, model, tools).run()

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """Tasks of a plan without a mistake."""
        return plan_size(chain)


class _Course:
    """One question: the planner's conversation, all plans, and the results of their tasks."""

    def __init__(self, compiler: LLMCompiler, question: str, model: Model, tools: Mapping[str, Tool]) -> None:
        self.question, self.model, self.tools = question, model, tools
        self.prompts, self.settings = compiler.prompts, compiler.settings
        described = describe_tools(tools, "numbered")
        self.messages = self.prompts.conversation(
            "planner", f"Question: {question}", tools=described, max_steps=self.settings.max_steps
        )
        settings = self.settings
        self.evidence_budget = EvidenceBudget(settings.shorten, model, self.prompts, quote=settings.quote_evidence)
        self.sources = Sources(settings.frozen_arguments)
        self.caller = StepCaller(
            tools, self.evidence_budget, settings.slot_tokens, settings.failed_input, sources=self.sources
        )
        self.done: dict[str, Step] = {}
        self.planned = Plan(steps=())
        self.evidence: dict[str, str] = {}
        self.drafts: list[dict[str, Any]] = []
        self.joined: list[str] = []
        self.discarded: list[dict[str, Any]] = []
        self.dropped_steps = self.early_steps = 0

    async def run(self) -> Trajectory:
        while await self.plan_and_run():
            joined, completion = await self.join()
            if joined.missing is None:
                answer, stop_reason = answered(joined.answer, completion)
                emit("answered", answer=answer)
                return self.end(answer, stop_reason)
            if not self.may_plan:
                return self.end(None, "step_limit")
            emit("replan_asked", missing=joined.missing)
            wanted = (
                f"Still missing: {joined.missing}\nWrite a plan of the tasks that are still needed, with numbers from"
            )
            task = f"{self.results()}\n\n{wanted} {self.planned.next_number}.\n\nQuestion: {self.question}"
            self.messages.append(Message("user", task))
        return self.end(None, "invalid_plan")

    @property
    def may_plan(self) -> bool:
        return len(self.drafts) <= self.settings.max_replans

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(self.done[step.id] for step in self.planned.steps)

    async def plan_and_run(self) -> bool:
        """Runs the next sound plan, if one is written. Returns whether there is any result for the joiner."""
        self.sources.seen = list(self.evidence)
        async with background_tasks() as start:
            fetcher = TaskFetcher(start, self.caller, self.done, self.settings.max_steps)
            plan = await self.plan(fetcher)
            await fetcher.finish(plan.steps if plan else ())
            self.early_steps += fetcher.early
            self.discarded += fetcher.discarded
        if plan is not None:
            self.planned = self.planned.then(plan)
            with at_place(f"map {len(self.joined)}"):
                self.evidence = await self.evidence_budget.all_shortened(self.steps, self.settings.map_tokens)
        return bool(self.planned.steps)

    async def plan(self, fetcher: TaskFetcher) -> Plan | None:
        """The first sound plan of the planner calls that are left. Its tasks are started while it is written."""
        while self.may_plan:
            attempt = len(self.drafts)
            emit("planner_started", attempt=attempt)
            request = Request(
                self.messages,
                role="planner",
                stop=_STOP,
                grammar=numbered_grammar(self.tools, self.settings.max_steps, self.planned.next_number),
                on_text=fetcher.read if self.settings.stream else None,
            )
            with at_place(f"planner {attempt}"):
                completion = await self.model.complete(request)
            plan, faults, dropped = read_checked(
                completion.text,
                "numbered",
                self.tools,
                self.settings.max_steps,
                self.settings.too_long,
                [step.id for step in self.planned.steps],
            )
            self.drafts.append({"text": completion.text, "faults": faults})
            self.messages.append(Message("assistant", completion.text))
            if plan is not None and not faults:
                emit("plan_created", plan=plan.as_json())
                self.dropped_steps += dropped
                return plan
            emit("plan_rejected", faults=faults)
            listed = as_numbered("; ".join(faults))
            complaint = f"The plan can't be run: {listed}.\nWrite a new plan.\n\nQuestion: {self.question}"
            self.messages.append(Message("user", complaint))
        return None

    async def join(self) -> tuple[Joined, Completion]:
        """The joiner: question, plans and results in one call."""
        prompt = "joiner_replan" if self.may_plan else "joiner"
        shown = f"Question: {self.question}\n\n{self.results()}\n\nQuestion: {self.question}"
        messages = self.prompts.conversation(prompt, shown)
        emit("solver_started")
        with at_place(f"joiner {len(self.joined)}"):
            completion = await self.model.complete(
                Request(messages, role="solver", stop=_STOP, grammar=join_grammar(replan=self.may_plan))
            )
        self.joined.append(completion.text)
        return read_joined(completion.text), completion

    def results(self) -> str:
        """The tasks and what they found, as joiner and planner see them; the same text is sent once."""
        first: dict[str, int] = {}  # result -> its first task
        lines = []
        for step in self.planned.steps:
            text = self.evidence[step.id]
            same_as = first.setdefault(text, step.number)
            shown = self.evidence_budget.shown(text) if same_as == step.number else f"the same as ${same_as}"
            lines.append(f"{step.number}. {write_task(step)}\nResult: {shown}")
        return "\n\n".join(lines)

    def end(self, answer: str | None, stop_reason: StopReason) -> Trajectory:
        notes = {
            "drafts": self.drafts,
            "dropped_steps": self.dropped_steps,
            "early_steps": self.early_steps,
            "discarded": self.discarded,
            "cuts": self.evidence_budget.cuts,
            "joiner": self.joined,
        }
        return Trajectory(
            answer,
            stop_reason,
            self.steps,
            plan=self.planned.as_json() or None,
            evidence=self.evidence if self.planned.steps else None,
            replans=len(self.drafts) - 1,
            notes=notes,
        )


@dataclass(frozen=True, slots=True)
class _Task:
    step: PlanStep
    level: int
    after: frozenset[str] = frozenset()
    """The tasks that it waits for: its inputs, and those that come before it where one of them changes state."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class TaskFetcher:
    """The tasks of one plan. `done` has the results of earlier plans, and gets those of this one.

    `early` counts tasks that were started before their plan was whole, and `discarded` lists those that didn't count.
    """

    def __init__(self, start: TaskStarter, caller: StepCaller, done: dict[str, Step], max_steps: int) -> None:
        self.early = 0
        self.discarded: list[dict[str, Any]] = []
        self._start, self._caller, self._done, self._max_steps = start, caller, done, max_steps
        self._earlier = frozenset(done)
        self._tasks: dict[str, _Task] = {}
        self._lines = ""

    def read(self, text: str) -> None:
        """Starts the tasks in a plan that is still being written."""
        lines = text[: text.rfind("\n") + 1]
        if lines == self._lines:
            return
        self._lines = lines
        plan = with_tool_names(Plan(steps=tuple(complete_steps(lines, self._caller.tools))), self._caller.tools)
        first: dict[str, PlanStep] = {}
        for step in plan.steps[: self._max_steps]:
            first.setdefault(step.id, step)
        self._discard({id_ for id_, task in self._tasks.items() if id_ in first and task.step != first[id_]})
        self.early += self._start_ready(first.values(), is_whole=False)

    async def finish(self, steps: Sequence[PlanStep]) -> None:
        """Runs every step of a sound plan, except those that are running or done; without a plan, ends its tasks."""
        wanted = {step.id: step for step in steps}
        self._discard({id_ for id_, task in self._tasks.items() if task.step != wanted.get(id_)})
        self._start_ready(steps, is_whole=True)
        for task in list(self._tasks.values()):
            await task.ended.wait()

    def _start_ready(self, steps: Collection[PlanStep], *, is_whole: bool) -> int:
        """Starts the sound tasks whose inputs were started before, in any order of the lines. Returns their number.

        One that changes state, and those that come after it, wait for the plan to be whole: it can't be discarded.
        """
        before, known, waits_for = len(self._tasks), -1, self._order(steps)
        while known < len(self._tasks):
            known = len(self._tasks)
            for step in steps:
                started, after = {*self._tasks, *self._earlier}, waits_for[step.id]
                if step.id in started or not after <= started or step_faults(step, started, self._caller.tools):
                    continue
                if not is_whole and getattr(self._caller.tools[step.tool], "changes_state", False):
                    continue
                levels = [self._tasks[need].level if need in self._tasks else 0 for need in after]
                self._tasks[step.id] = task = _Task(step, 1 + max(levels) if levels else 0, frozenset(after))
                self._start(self._run, task)
        return len(self._tasks) - before

    def _order(self, steps: Collection[PlanStep]) -> dict[str, set[str]]:
        """What each of the steps waits for."""
        called = {step.id: self._caller.tools.get(step.tool) for step in steps}
        return in_state_order({step.id: set(step.depends_on) for step in steps}, called)

    async def _run(self, task: _Task) -> None:
        before = [self._tasks[id_] for id_ in task.after if id_ in self._tasks]
        with task.scope:
            for each in before:
                await each.ended.wait()
            if self._tasks.get(task.step.id) is not task:
                return  # discarded with an input that ended at that moment, before its cancellation reached it
            result = await self._caller.call(task.step, self._done, task.level)
        if self._tasks.get(task.step.id) is task:  # it may have ended before its cancellation reached it
            self._done[task.step.id] = result
            task.ended.set()
            emit("step_finished", task.step.id, observation=result.observation, failed=result.failed)

    def _discard(self, gone: set[str]) -> None:
        """Ends tasks, and all that wait for them."""
        while more := {i for i, task in self._tasks.items() if i not in gone and gone & task.after}:
            gone |= more
        for id_ in [id_ for id_ in self._tasks if id_ in gone]:
            task = self._tasks.pop(id_)
            task.scope.cancel()
            has_ended = self._done.pop(id_, None) is not None
            call = {"id": id_, "tool": task.step.tool, "args": show_call(task.step.args), "ended": has_ended}
            self.discarded.append(call)
            emit("step_discarded", id_, ended=has_ended)
