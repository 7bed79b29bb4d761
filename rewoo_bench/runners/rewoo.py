"""ReWOO: Planner, Worker, Solver. Xu et al. 2023, arXiv 2305.18323.

plan     = planner(question)                 one model call
evidence = {step: tool(step's argument)}     no model, but for an LLM tool
answer   = solver(question, plan, evidence)  one model call

With `replan = "on_failure"` the plan runs until a step fails, and the planner writes the rest from the results so far;
with `solver = false` the plan ends with the answer. Both are as in Otani et al. 2026, arXiv 2605.08477.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import Field, model_validator

from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.arguments import show_call
from rewoo_bench.runners.notation.grammars import answer_grammar, plan_grammar, plan_schema
from rewoo_bench.runners.notation.plan import (
    Plan,
    PlanStep,
    in_state_order,
    levels_of,
    references,
    substitute,
    with_hash_signs,
)
from rewoo_bench.runners.notation.plan_checks import TooLong, part_to_run, read_checked
from rewoo_bench.runners.notation.replies import FINISH, answer_in, answered, citations, gives_up
from rewoo_bench.runners.notation.tools import Finish, Observation, call_tool, describe_tools, found_nothing
from rewoo_bench.runners.prompts import EvidenceBudget, EvidenceSettings, Prompts, checked_prompts
from rewoo_bench.runners.sources import Frozen, Sources
from rewoo_bench.system.concurrency import Schedule, in_order
from rewoo_bench.text.tokens import truncate
from rewoo_bench.types import Hop, Message, Model, Request, Step, StopReason, Tool, Trajectory

NO_EVIDENCE = "No evidence found."


@dataclass(eq=False)
class StepCaller:
    """Makes the calls of steps. One with a failed input is skipped, or gets its text (`failed_input` "pass").

    The text of a failed step is its error, or with `show_errors` off `NO_EVIDENCE`; `errors` keeps its beginning.
    """

    tools: Mapping[str, Tool]
    evidence_budget: EvidenceBudget
    slot_tokens: int
    failed_input: Literal["skip", "pass"] = "skip"
    show_errors: bool = True
    errors: dict[str, str] = field(default_factory=dict)
    sources: Sources = field(default_factory=Sources)
    refused: set[str] = field(default_factory=set)
    """Steps that a tool has refused the arguments of (sources.py)."""

    def failed_inputs(self, step: PlanStep, done: Mapping[str, Step]) -> list[str]:
        """The failed inputs that a step is skipped for."""
        return [need for need in step.depends_on if done[need].failed] if self.failed_input == "skip" else []

    async def call(self, step: PlanStep, done: Mapping[str, Step], level: int) -> Step:
        """The step's result; `done` has its inputs, `level` is its depth in the plan."""
        tool, budget = self.tools[step.tool], self.evidence_budget
        args = budget.fill(step.args, {need: done[need].observation for need in step.depends_on}, tool)
        refusal = self.sources.refusal(step, tool)
        argument = with_hash_signs(show_call(step.args)) if refusal else show_call(args)
        emit("step_started", step.id, tool=step.tool, argument=argument)
        with at_place(step.id, level):
            if failed := self.failed_inputs(step, done):
                observation = Observation(f"ERROR: not run, since #{failed[0]} failed", failed=True)
            elif refusal:
                self.refused.add(step.id)
                observation = Observation(f"ERROR: {refusal}", failed=True)
            else:
                observation = await call_tool(tool, args)
            if observation.failed and not self.show_errors:
                self.errors[step.id], _ = truncate(observation.text, self.slot_tokens)
                observation = Observation(NO_EVIDENCE, failed=True)
            text = await budget.shortened(
                step.id, observation.text, query=f"{step.thought} {argument}", max_tokens=self.slot_tokens
            )
        self.sources.add(step, tool, is_summary=budget.shorten == "llm" and text != observation.text)
        return Step(step.id, step.thought, step.tool, argument, text, observation.failed)


def plan_size(chain: Sequence[Hop]) -> int:
    """Steps of a plan for a gold chain: one for each foreseeable hop, and a model step for each page that is read.

    A page is read where another hop needs its value; of several pages that give the same title, the first is.
    """
    foreseen = [hop for hop in chain if hop.foreseen]
    read = set[int]()
    for hop in foreseen:
        if hop.tool == "Search":
            read |= set({chain[need].value: need for need in reversed(hop.needs)}.values())
        else:
            read |= set(hop.needs)
    return len(foreseen) + sum(not chain[need].passes_on for need in read)


class ReWOOSettings(EvidenceSettings):
    """The `[settings]` table of a ReWOO architecture."""

    notation: Literal["text", "json"] = "text"
    """How the planner writes."""
    bare_steps: bool = False
    """Whether a step in JSON is its id, tool and args alone, without a thought and `depends_on`."""
    max_steps: int = Field(default=8, ge=1)
    """Steps of a plan; with `replan` of all plans together."""
    too_long: TooLong = "reject"
    """A longer plan is broken, or loses its last steps."""
    max_replans: int = Field(default=0, ge=0)
    """New planner calls after a broken plan, and with `replan` after a failed step; there the default is 8."""
    replan: Literal["never", "on_failure"] = "never"
    """Whether the planner writes the rest anew, from the results so far, once a step fails or finds nothing."""
    solver: bool = True
    """Whether a solver answers; else the plan ends with `Finish`, whose input is the answer."""
    invalid_plan: Literal["run", "stop"] = "run"
    """Where every plan was broken: the sound steps of the last one run, or the question ends."""
    schedule: Schedule = "ready"
    """A step starts when its last input is there, `levels` waits for a whole level, `sequential` runs one at a time."""
    failed_input: Literal["pass", "skip"] = "pass"
    """A step with a failed input gets its text, or is skipped."""
    show_errors: bool = False
    """Whether the evidence of a failed step is its error; else it is "No evidence found."."""
    solver_evidence: Literal["all", "unread"] = "all"
    """What the solver sees: every result, or those that no `LLM` step has read, and of the others what was read."""
    frozen_arguments: Frozen = False
    """Whether a tool that changes state refuses values that a model has read from results, or in which arguments."""

    @model_validator(mode="before")
    @classmethod
    def _replans_on_failure(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("replan") == "on_failure":
            return {"max_replans": 8, **values}
        return values


@dataclass
class PlanAndEvidence:
    """The results of planner and worker: every draft with its faults, the plan that ran, and its evidence."""

    caller: StepCaller
    plan: Plan = field(default_factory=lambda: Plan(steps=()))
    """Without steps where no plan was sound enough to run."""
    faulty: Collection[str] = ()
    """Steps of the plan that can't be run."""
    stops_on_failure: bool = False
    """Whether no step starts once one has failed or found nothing."""
    has_failed: bool = False
    done: dict[str, Step] = field(default_factory=dict)
    drafts: list[dict[str, Any]] = field(default_factory=list)
    dropped_steps: int = 0

    async def work(self, schedule: Schedule = "ready") -> None:
        """The Worker: runs every step once, after all its inputs. `done` fills up as steps end.

        Where it stops on a failure, the plan loses the steps that weren't run.
        """
        by_id = {step.id: step for step in self.plan.steps}
        called = {step.id: self.caller.tools.get(step.tool) for step in self.plan.steps}
        waits_for = in_state_order(self.plan.dependencies(), called)
        levels = levels_of(waits_for)

        async def run_step(id_: str) -> None:
            if id_ in self.done or self.has_failed:
                return
            step = by_id[id_]
            if step.tool == FINISH and id_ not in self.faulty and not self.caller.failed_inputs(step, self.done):
                known = {need: self.done[need].observation for need in step.depends_on}
                self.done[id_] = Step(id_, step.thought, FINISH, show_call(substitute(step.args, known)))
                return
            if id_ in self.faulty:
                argument = with_hash_signs(show_call(step.args))
                done = Step(id_, step.thought, step.tool, argument, NO_EVIDENCE, failed=True)
            else:
                done = await self.caller.call(step, self.done, levels[id_])
            self.done[id_] = done
            is_to_mend = id_ not in self.caller.refused  # another plan's call would be refused too
            self.has_failed |= self.stops_on_failure and is_to_mend and (done.failed or found_nothing(done.observation))
            emit("step_finished", id_, observation=done.observation, failed=done.failed)

        await in_order(waits_for, run_step, schedule)
        self.plan = Plan(steps=tuple(step for step in self.plan.steps if step.id in self.done))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps done, in the order of the plan."""
        return tuple(self.done[step.id] for step in self.plan.steps)

    @property
    def evidence(self) -> dict[str, str]:
        """Slot -> text, in the order of the plan."""
        return {step.id: step.observation for step in self.steps}

    @property
    def read_in(self) -> dict[str, str]:
        """Slots that a step with a model has read, and the first such step; one that found no answer has read none."""
        found: dict[str, str] = {}
        for step in self.plan.steps:
            done = self.done[step.id]
            if not getattr(self.caller.tools.get(step.tool), "asks_model", False) or done.failed:
                continue
            if not found_nothing(done.observation) and not gives_up(done.observation):
                for slot in references(step.args):
                    found.setdefault(slot, step.id)
        return found

    @property
    def empty_leaves(self) -> list[str]:
        """Slots that no other step uses and that have nothing for the solver."""
        return [id_ for id_ in self.plan.leaves() if self.done[id_].failed or found_nothing(self.done[id_].observation)]

    def end(self, answer: str | None, stop_reason: StopReason, **notes: Any) -> Trajectory:
        """How the question ended."""
        errors = {"errors": self.caller.errors} if self.caller.errors else {}
        cuts = self.caller.evidence_budget.cuts
        return Trajectory(
            answer,
            stop_reason,
            self.steps,
            plan=self.plan.as_json() or None,
            evidence=self.evidence if self.plan.steps else None,
            replans=len(self.drafts) - 1,
            notes={"drafts": self.drafts, "dropped_steps": self.dropped_steps, "cuts": cuts, **errors, **notes},
        )


class ReWOO:
    """Plans every tool call up front, runs the plan, answers once."""

    Settings = ReWOOSettings

    def __init__(self, prompts: Prompts, settings: ReWOOSettings | None = None) -> None:
        self.settings = settings or ReWOOSettings()
        self.max_steps = self.settings.max_steps
        replans = self.settings.replan == "on_failure"
        placeholders: dict[str, Sequence[str]] = {"planner": ("tools", "max_steps")}
        placeholders |= {"replan": ("results", "next")} if replans else {}
        placeholders |= {"solver": ()} if self.settings.solver else {}
        quoting = ["solver", "planner"] if replans else ["solver"]
        self.prompts = checked_prompts(prompts, self.settings, placeholders, quoting)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question; where every plan was broken it ends as `invalid_plan`, or as the settings say.

        Without a solver it ends as `step_limit` where no plan came to its end.
        """
        planned = await self.gather(question, model, tools)
        if not planned.plan.steps and (self.settings.invalid_plan == "stop" or not self.settings.solver):
            return planned.end(None, "invalid_plan")
        if self.settings.solver:
            return await self.solve(question, planned, model)
        last = planned.steps[-1]
        if last.tool != FINISH or last.failed:
            return planned.end(None, "step_limit")
        emit("answered", answer=last.argument)
        return planned.end(last.argument, "answered")

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """Steps of a plan without a mistake (`plan_size`); without a solver one gives the answer, and one reads it."""
        if self.settings.solver:
            return plan_size(chain)
        is_worked_out = chain[-1].tool == "Calculator"
        return plan_size(chain) + (1 if is_worked_out else 2)

    async def gather(self, question: str, model: Model, tools: Mapping[str, Tool]) -> PlanAndEvidence:
        """Planner and Worker: the first sound plan of at most 1 + `max_replans` drafts, and its evidence.

        Where no draft is sound, the settings say whether the sound steps of the last one run. With `replan` further
        drafts go on where a plan failed.
        """
        settings = self.settings
        tools = tools if settings.solver else {**tools, FINISH: Finish()}
        budget = EvidenceBudget(settings.shorten, model, self.prompts, quote=settings.quote_evidence)
        sources = Sources(settings.frozen_arguments)
        caller = StepCaller(
            tools, budget, settings.slot_tokens, settings.failed_input, settings.show_errors, sources=sources
        )
        planned = PlanAndEvidence(caller, stops_on_failure=settings.replan == "on_failure")
        described = describe_tools(tools, settings.notation)
        messages = self.prompts.conversation(
            "planner", f"Question: {question}", tools=described, max_steps=settings.max_steps
        )
        for attempt in range(1 + settings.max_replans):
            left = settings.max_steps - len(planned.done)
            if not left:
                break
            form: dict[str, Any] = {"schema": plan_schema(tools, left, bare=settings.bare_steps)}
            if settings.notation == "text":
                form = {"grammar": plan_grammar(tools, left, planned.plan.next_number)}
            emit("planner_started", attempt=attempt)
            with at_place(f"planner {attempt}"):
                completion = await model.complete(Request(messages, role="planner", stop=["\nQuestion:"], **form))
            plan, faults, dropped = read_checked(
                completion.text, settings.notation, tools, left, settings.too_long, planned.done
            )
            if plan is not None:
                faults += self._own_faults(plan, planned)
            planned.drafts.append({"text": completion.text, "faults": faults})
            if plan is None or faults:
                emit("plan_rejected", faults=faults)
                asked = f"The plan can't be run: {'; '.join(faults)}.\nWrite a new plan.\n\nQuestion: {question}"
            else:
                planned.plan = planned.plan.then(plan)
                planned.dropped_steps += dropped
                emit("plan_created", plan=plan.as_json())
                await planned.work(settings.schedule)
                if not planned.has_failed or attempt == settings.max_replans:
                    break
                planned.has_failed = False
                sources.seen = list(planned.done)
                asked = f"{await self._results(planned)}\n\nQuestion: {question}"
            messages += [Message("assistant", completion.text), Message("user", asked)]
        if not planned.plan.steps and plan is not None and settings.invalid_plan == "run":
            whole = len({step.id for step in plan.steps})
            planned.plan, planned.faulty = part_to_run(plan, tools, settings.max_steps)
            planned.dropped_steps += dropped + whole - len(planned.plan.steps)
            if planned.plan.steps:
                emit("plan_created", plan=planned.plan.as_json())
                await planned.work(settings.schedule)
        return planned

    def _own_faults(self, plan: Plan, planned: PlanAndEvidence) -> list[str]:
        """Faults of a plan that only these settings know: a place of `Finish`, a result that there isn't."""
        faults = []
        if not self.settings.solver:
            faults += [
                f"#{step.id}: {FINISH} has to be the last step" for step in plan.steps[:-1] if step.tool == FINISH
            ]
            if plan.steps[-1].tool != FINISH:
                faults.append(f"the plan has to end with {FINISH}")
        without = [id_ for id_, step in planned.done.items() if step.failed]
        faults += [
            f"#{step.id} uses #{id_}, which failed" for step in plan.steps for id_ in without if id_ in step.depends_on
        ]
        return faults

    async def _results(self, planned: PlanAndEvidence) -> str:
        """What a new plan is written from: the steps so far, with their results, the last one failed or empty."""
        errors, budget = planned.caller.errors, planned.caller.evidence_budget  # also where the solver sees no errors
        with at_place(f"replan {len(planned.drafts)}"):
            steps = [replace(step, observation=errors.get(step.id, step.observation)) for step in planned.steps]
            shown = await budget.all_shortened(steps, self.settings.map_tokens)
        lines = [f"#{step.id} = {step.call}\nResult: {budget.shown(shown[step.id])}" for step in planned.plan.steps]
        return self.prompts.fill("replan", results="\n\n".join(lines), next=f"E{planned.plan.next_number}")

    async def solve(self, question: str, planned: PlanAndEvidence, model: Model) -> Trajectory:
        """The Solver: question, plan and evidence in one call."""
        read_in = planned.read_in if self.settings.solver_evidence == "unread" else {}
        with at_place("map"):
            budget = planned.caller.evidence_budget
            shown_steps = [step for step in planned.steps if step.id not in read_in]
            evidence = await budget.all_shortened(shown_steps, self.settings.map_tokens)
            quoted = {slot: budget.shown(text) for slot, text in evidence.items()}
            instead = {slot: f"read in #{reader}" for slot, reader in read_in.items()}
            evidence |= instead
            quoted |= instead
        first: dict[str, str] = {}  # evidence -> its first slot; the same text is sent once
        parts = []
        for step in planned.plan.steps:
            text = evidence[step.id]
            slot = first.setdefault(text, step.id)
            shown = quoted[step.id] if slot == step.id or text == NO_EVIDENCE else f"the same as #{slot}"
            parts.append(f"Plan: {step.thought}\n#{step.id} = {step.call}\nEvidence: {shown}")
        found = "\n\n".join(parts) or NO_EVIDENCE
        messages = self.prompts.conversation("solver", f"Question: {question}\n\n{found}\n\nQuestion: {question}")
        emit("solver_started")
        with at_place("solver"):
            completion = await model.complete(
                Request(messages, role="solver", stop=["\nQuestion:"], grammar=answer_grammar())
            )
        text, cited = citations(answer_in(completion.text), evidence)
        answer, stop_reason = answered(text, completion)
        emit("answered", answer=answer)
        ended = planned.end(answer, stop_reason, citations=cited, solver=completion.text)
        return replace(ended, evidence=evidence)
