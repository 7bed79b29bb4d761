"""The worlds of a run: those of `--world shop.py`, or of a data set whose tasks happen in one; and what they change.

worlds = worlds_of(options, dataset)
dataset = await with_checked_world(dataset, worlds, 60)   # the world's check is its scorer
architectures = with_world_tools(architectures, worlds)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from pydantic import ValidationError

from rewoo_bench.config.names import is_oracle
from rewoo_bench.config.specs import ToolSettings
from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.loaders.sources import no_score
from rewoo_bench.models.oracle.actions import DONE, filled, whole
from rewoo_bench.models.oracle.model import open_oracle
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.notation.arguments import to_model
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.runners.notation.schemas import convert, inputs
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.text.scoring import Scorer
from rewoo_bench.text.words import counted
from rewoo_bench.types import Example, GoldAction
from rewoo_bench.worlds.world import CHECK, World, WorldFault, WorldFile, Worlds, opened_in_time

LIMITS_IN_WORLDS = {
    "max_steps": 40,
    "observation_tokens": 8000,
    "slot_tokens": 8000,
    "map_tokens": 32_000,
    "show_errors": True,
}
"""Settings of architectures in a world, unless an option says otherwise: results are records, of which none may be cut
off as a paragraph of a page may, tasks take more calls than questions, and an error says something of the state."""


def worlds_of(options: RunOptions, dataset: Dataset) -> Worlds | None:
    """What makes the worlds of a run; None where its questions have none. Raises `UsageError`."""
    if options.world is None and dataset.worlds is None:
        return None
    for role in options.role_models.values():
        settings = open_oracle(role.name).settings if is_oracle(role.name) else None
        if settings and (settings.extra_steps or settings.wrong_title):
            raise UsageError(f"--model {role.name}: extra_steps and wrong_title are of look-ups; leave them out")
    if options.world is None:
        return dataset.worlds
    if dataset.worlds is not None:
        raise UsageError(f"--world: the tasks of {dataset.name!r} have worlds of their own; leave it out")
    if "?objectives=" in options.dataset:
        raise UsageError("--world: each task has a world of its own, so several can't be one; leave ?objectives out")
    return WorldFile.read(options.world)


async def with_checked_world(dataset: Dataset, worlds: Worlds, timeout_s: float) -> Dataset:
    """The data set with the world's check as its scorer, if it has one; the first question's world is made once.

    Raises `UsageError` for a world that can't be made in that time, and where nothing says what is right.
    """
    try:
        async with opened_in_time(worlds, dataset.examples[0], timeout_s):
            pass
    except WorldFault as error:
        where = f"--world {worlds.name}.py" if dataset.worlds is None else dataset.name
        raise UsageError(f"{where}: the world of question {dataset.examples[0].id!r}: {error}") from error
    facts = {**dataset.manifest, "world": worlds.manifest}
    if not worlds.has_check:
        if any(example.answers for example in dataset.examples):
            return replace(dataset, manifest=facts)
        raise UsageError(
            f"--world: nothing says what is right: the class has no method {CHECK}(self, answer), and the questions "
            "have no answers"
        )
    return replace(dataset, scorer=Scorer(CHECK, no_score), manifest={**facts, "scoring": CHECK})


REHEARSAL_S = 5.0
"""How long a run looks at its worlds before the first question."""


async def rehearsed(dataset: Dataset, worlds: Worlds, timeout_s: float, *, with_gold: bool) -> list[str]:
    """Notes on tasks that are solved before anything is done, and `with_gold` on those that their gold calls don't.

    After `REHEARSAL_S` seconds it looks at no further task, and a call that takes longer than that says nothing.
    """
    if not worlds.has_check:
        return []
    timeout_s = min(timeout_s, REHEARSAL_S)
    end, looked, nothing, wrong = time.monotonic() + REHEARSAL_S, 0, list[str](), list[str]()
    for example in dataset.examples:
        if time.monotonic() > end:
            break
        looked += 1
        with suppress(WorldFault):  # the question's own row says it
            async with opened_in_time(worlds, example, timeout_s) as world:
                if await world.solved("", timeout_s):
                    nothing.append(example.id)
            if with_gold and example.actions:
                async with opened_in_time(worlds, example, timeout_s) as world:
                    fault = await _played(world, example, timeout_s)
                    wrong += [f"{example.id}: {fault}"] if fault else []
    notes = []
    if with_gold and dataset.worlds is None and (unknown_to_plans := _unexplained(dataset)):
        what = "values of gold calls stand neither in their tasks nor under 'read', and a plan is taken to know them"
        notes.append(f"{len(unknown_to_plans)} {what}: {unknown_to_plans[0]}")
    if nothing:
        few = ", ".join(nothing[:3]) + (", …" if len(nothing) > 3 else "")
        notes.append(f"{len(nothing)} of {counted(looked, 'task')} are solved where nothing is done or said: {few}")
    if wrong:
        what = f"{len(wrong)} of {counted(looked, 'task')} can't be solved by their gold calls"
        notes.append(f"{what}, so no oracle can: {wrong[0]}{', …' if len(wrong) > 1 else ''}")
    return notes


async def _played(world: World, example: Example, timeout_s: float) -> str:
    """Why a task's gold calls and answer don't solve it; empty where they do, and where one takes too long."""
    results: dict[int, str] = {}
    raised = ""
    for number, action in enumerate(example.actions):
        tool = world.tools[action.tool]
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                results[number] = await tool(to_model(tool, filled(action, results)))
        except Exception as error:  # of the user's own code, or of arguments that don't fit; it may be meant
            if limit.expired():
                return ""
            results[number] = f"ERROR: {error}"
            raised = raised or f"call {number + 1} raised {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    answer = example.answers[0] if example.answers else DONE
    is_solved = await world.solved(answer, timeout_s)
    return "" if is_solved else raised or f"{CHECK} says no after them, with the answer {answer!r:.80}"


def _unexplained(dataset: Dataset) -> list[str]:
    """Arguments of gold calls whose values stand neither in their task nor under `read`, as `r8: cancel number`."""
    return [
        f"{example.id}: {action.tool} {name}"
        for example in dataset.examples
        for action in example.actions
        for name, value in action.arguments.items()
        if action.decided == "task" and name not in action.read and not whole(action)
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        if str(value).casefold() not in example.question.casefold()
    ]


def with_world_tools(architectures: Sequence[Architecture], worlds: Worlds) -> list[Architecture]:
    """The architectures with the tools of every world.

    Raises `UsageError` for two tools of one name, and for a name in `frozen_arguments` that no tool has which changes
    state.
    """
    own = {
        name: ToolSettings(world=True, changes_state=schema.changes_state, schema_sha256=schema.sha256)
        for name, schema in worlds.schemas.items()
    }
    extended = []
    for each in architectures:
        if taken := [name for name in own if name in each.spec.tools or name.lower() == FINISH.lower()]:
            raise UsageError(f"--world: {each.name!r} has {taken[0]!r} already; give the world's method another name")
        if isinstance(names := getattr(each.settings, "frozen_arguments", ()), tuple):
            changing = [schema.arguments.model_fields for schema in worlds.schemas.values() if schema.changes_state]
            known = sorted({name for fields in changing for name in fields})
            if wrong := [name for name in names if name not in known]:
                raise UsageError(f"{each.name!r}: frozen_arguments: {unknown('argument', wrong[0], known)}")
        tools = {**own, **each.spec.tools} if each.uses_tools else each.spec.tools
        extended.append(replace(each, spec=each.spec.model_copy(update={"tools": tools})))
    return extended


def with_checked_actions(dataset: Dataset, worlds: Worlds) -> Dataset:
    """The data set, whose gold actions say which change state. Raises `UsageError` for one that no world could make."""
    examples = []
    for example in dataset.examples:
        actions = tuple(
            _checked_action(action, number, worlds, f"question {example.id!r}: call {number + 1} of 'calls'")
            for number, action in enumerate(example.actions)
        )
        examples.append(replace(example, actions=actions))
    return replace(dataset, examples=tuple(examples))


def shared_state_notes(architectures: Iterable[Architecture]) -> list[str]:
    """A note on functions of `--tools FILE.py` that change something: no question has a state of its own."""
    changing = {
        name for each in architectures for name, tool in each.spec.tools.items() if tool.function and tool.changes_state
    }
    if not changing:
        return []
    return [
        f"{', '.join(sorted(changing))}: all questions share what these functions change, and nothing takes it back; "
        "in a world (--world FILE.py) each question has a state of its own"
    ]


def _checked_action(action: GoldAction, number: int, worlds: Worlds, where: str) -> GoldAction:
    """The action, which says whether it changes state. Raises `UsageError` that begins with `where`."""
    if (schema := worlds.schemas.get(action.tool)) is None:
        raise UsageError(f"{where}: {unknown('tool', action.tool, worlds.schemas)}")
    names = schema.arguments.model_fields
    # Parquet has every key in every row.
    given = {name: value for name, value in action.arguments.items() if value is not None or name in names}
    if strange := [name for name in given if name not in names]:
        raise UsageError(f"{where}: {unknown(f'argument of {action.tool}', strange[0], names)}")
    taken = whole(action)
    if later := [each + 1 for each in sorted(taken) if not 0 <= each < number]:
        raise UsageError(f"{where}: '#{later[0]}' names no earlier call, counted from 1")
    if not taken:  # else what fits is known when the results are
        try:
            schema.arguments.model_validate(convert(inputs(schema.arguments).schema, given))
        except ValidationError as error:
            fault = error.errors()[0]
            raise UsageError(f"{where}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
    return replace(action, arguments=given, changes_state=schema.changes_state)
