"""Whether the questions of a generated data set fit the steps that an architecture may take.

    check_step_limits(dataset, architectures)

A data set such as chain is made to need so many look-ups. An architecture that may not take as many steps
ends without an answer, after next to no tool calls: a cost that says nothing about the architecture. So a run
of it is refused before the first question. Questions of other sets are what they are: there a step limit is a
part of what is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewoo_bench.errors import UsageError
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.plan_execute import PlanExecute
from rewoo_bench.runners.react import ReAct
from rewoo_bench.runners.react_native import NativeReAct
from rewoo_bench.runners.rewoo import ReWOO
from rewoo_bench.runners.rewoo_react import ReWOOReAct
from rewoo_bench.types import Hop, Runner


def check_step_limits(dataset: Dataset, architectures: Iterable[Architecture]) -> None:
    """Raises `UsageError` where a question of a generated set needs more steps than an architecture may take."""
    if "generator" not in (dataset.manifest.get("source") or {}):
        return
    short = [(needed, allowed, architecture.name) for architecture in architectures
             if (allowed := steps_allowed(architecture.runner)) is not None
             and (needed := most_steps(architecture.runner, dataset)) > allowed]  # fmt: skip
    if short:
        needed, allowed, name = max(short)
        raise UsageError(
            f"{dataset.name} has questions that need {needed} steps of {name!r}, which takes at most {allowed}: "
            f"give --max-steps {needed}"
        )


def most_steps(runner: Runner, dataset: Dataset) -> int:
    """The most steps that any question of the data set needs; 0 where no gold chain is known."""
    return max((steps_needed(runner, example.chain) for example in dataset.examples if example.chain), default=0)


def steps_needed(runner: Runner, chain: Sequence[Hop]) -> int:
    """The steps (of a plan, or turns) in which a runner of ours answers without a mistake; 0 for any other runner."""
    if isinstance(runner, ReWOO | ReWOOReAct):
        return _planned(chain)
    if isinstance(runner, ReAct | PlanExecute):
        return len(chain) + 1  # a look-up a turn; at the last one a limit ends the question, whatever it answers
    if isinstance(runner, NativeReAct):
        return _depth(chain) + 1  # look-ups that don't wait for each other share a turn
    return 0


def steps_allowed(runner: Runner) -> int | None:
    """The step limit of a runner of ours that has one."""
    if isinstance(runner, ReWOOReAct):
        return runner.rewoo.settings.max_steps
    return runner.settings.max_steps if isinstance(runner, ReWOO | ReAct | NativeReAct | PlanExecute) else None


def _planned(chain: Sequence[Hop]) -> int:
    """A search for each look-up that can be foreseen, and a model's step for each that another one waits for."""
    foreseen = [hop for hop in chain if hop.foreseen]
    return len(foreseen) + len({need for hop in foreseen for need in hop.needs})


def _depth(chain: Sequence[Hop]) -> int:
    """The look-ups of the longest way through the chain; hops need only hops before them."""
    depths: list[int] = []
    for hop in chain:
        depths.append(1 + max((depths[need] for need in hop.needs), default=0))
    return max(depths, default=0)
