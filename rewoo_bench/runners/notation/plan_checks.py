"""What keeps a plan from being run, found before anything runs, and all of it at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from rewoo_bench.errors import PlanError
from rewoo_bench.runners.notation import schemas
from rewoo_bench.runners.notation.arguments import Misfit, read_arguments, show_call, to_fields, to_model
from rewoo_bench.runners.notation.plan import Plan, PlanStep, references, spellings_of, with_hash_signs
from rewoo_bench.runners.notation.plan_formats import Notation, read_plan
from rewoo_bench.runners.notation.schemas import inputs
from rewoo_bench.runners.notation.tools import form
from rewoo_bench.text.model_output import excerpt
from rewoo_bench.types import Tool

TooLong = Literal["reject", "truncate"]

_MOST_FAULTS = 20  # reported of one plan


def read_checked(
    text: str,
    notation: Notation,
    tools: Mapping[str, Tool],
    max_steps: int,
    too_long: TooLong = "reject",
    done: Collection[str] = (),
) -> tuple[Plan | None, list[str], int]:
    """The plan in a planner's reply, its faults, and how many steps too many were dropped.

    It can be run where there is a plan and no fault. `done` are the ids of earlier plans' steps, which it may use.
    Where a part of it can't be read, the plan has the other steps.
    """
    try:
        plan = with_tool_names(read_plan(text, notation, tools), tools)
    except PlanError as error:
        rest = with_tool_names(Plan(steps=error.steps), tools) if error.steps else None
        return rest, _first_faults(error.faults), 0
    dropped = max(0, len(plan.steps) - max_steps) if too_long == "truncate" else 0
    plan = Plan(steps=plan.steps[: len(plan.steps) - dropped])
    return plan, _first_faults(plan_faults(plan, tools, max_steps=max_steps, done=done, notation=notation)), dropped


def part_to_run(plan: Plan, tools: Mapping[str, Tool], max_steps: int) -> tuple[Plan, frozenset[str]]:
    """The first `max_steps` steps of a broken plan, and the ids of those that can't be run.

    These are faulty, or wait for each other; they wait for no step here. Of two steps with one id the later counts.
    """
    steps = list({step.id: step for step in plan.steps}.values())[:max_steps]
    ids = {step.id for step in steps}
    faulty = {step.id for step in steps if step_faults(step, ids, tools)}
    ordered = set(faulty)
    while more := {step.id for step in steps if step.id not in ordered and ordered.issuperset(step.depends_on)}:
        ordered |= more
    faulty |= ids - ordered
    loose = (step.model_copy(update={"depends_on": ()}) if step.id in faulty else step for step in steps)
    return Plan(steps=tuple(loose)), frozenset(faulty)


def with_tool_names(plan: Plan, tools: Mapping[str, Tool]) -> Plan:
    """The plan with its tools' names as they are spelt (`search` is meant as `Search`), and their inputs by name."""
    names = spellings_of(tuple(tools))
    steps = []
    for step in plan.steps:
        name, args = names.spelt(step.tool), step.args
        if isinstance(args, str) and name in tools:
            args = read_arguments(args, inputs(tools[name].arguments))
        steps.append(step.model_copy(update={"tool": name, "args": args}))
    return Plan(steps=tuple(steps))


def plan_faults(
    plan: Plan,
    tools: Mapping[str, Tool],
    *,
    max_steps: int | None = None,
    done: Collection[str] = (),
    notation: Notation = "text",
) -> list[str]:
    """Everything that keeps a plan from being run, a sentence each; empty for a sound plan.

    A step that waits for a later one without a circle is only a matter of order, and no fault.
    """
    ids = Counter(step.id for step in plan.steps)
    faults = [f"#{id_} is defined more than once" for id_, count in ids.items() if count > 1]
    faults += [f"#{id_} was done by an earlier plan; number on from there" for id_ in ids if id_ in done]
    if max_steps is not None and len(plan.steps) > max_steps:
        faults.append(f"the plan has {len(plan.steps)} steps, at most {max_steps} are allowed")
    for step in plan.steps:
        faults += step_faults(step, {*ids, *done}, tools, notation)
    try:
        TopologicalSorter(plan.dependencies()).prepare()
    except CycleError as error:
        faults.append(f"steps wait for each other: {' -> '.join(f'#{id_}' for id_ in error.args[1])}")
    return faults


def _first_faults(faults: Sequence[str]) -> list[str]:
    more = len(faults) - _MOST_FAULTS
    return [*faults[:_MOST_FAULTS], f"and {more} more faults"] if more > 0 else list(faults)


def step_faults(
    step: PlanStep, ids: Collection[str], tools: Mapping[str, Tool], notation: Notation = "text"
) -> list[str]:
    """What keeps one step from being run; `ids` are the steps that it may use."""
    faults = [f"#{step.id} uses #{need}, which no step defines" for need in step.depends_on if need not in ids]
    if step.tool not in tools:
        return [*faults, f"#{step.id} uses the unknown tool {excerpt(step.tool)!r}; the tools are: {', '.join(tools)}"]
    tool = tools[step.tool]
    about = inputs(tool.arguments)
    argument = with_hash_signs(show_call(step.args))
    if not argument.strip() and about.is_text and about.required:
        return [*faults, f"#{step.id} has an empty argument"]
    if (misfit := _misfit(step, tool)) is None:
        return faults
    wanted = "" if about.is_text else f"; it is called as {form(tool, notation, details=False)}"
    return [*faults, f"#{step.id}: {argument[:80]!r} doesn't fit {step.tool}: {misfit}{wanted}"]


def _misfit(step: PlanStep, tool: Tool) -> str | None:
    """Why the tool would refuse the arguments, or None; a reference fits everywhere, until its evidence is there."""
    try:
        fields = to_fields(tool, step.args)
        if fault := schemas.fault(inputs(tool.arguments).schema, fields, pending=True):
            return fault.removeprefix(".")
        if not references(step.args):
            to_model(tool, step.args)
    except Misfit as error:
        return str(error)
    return None
