"""Whether an architecture may take enough steps for the questions of a generated data set.

    check_step_limits(dataset, architectures)

Questions of a data set such as chain need a given number of look-ups. An architecture with a lower step limit would
end without an answer, after hardly any tool calls: a cost that says nothing about the architecture. So such a run is
refused before the first question. With other data sets the step limit is a part of the measurement, and a note says
which architectures it keeps from an answer, whatever the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewoo_bench.errors import UsageError
from rewoo_bench.loaders.load import Dataset
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.llmcompiler import LLMCompiler
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
    runners = [(architecture.name, runner) for architecture in architectures for runner in _runners(architecture)]
    short = [(needed, allowed, name) for name, runner in runners
             if (allowed := steps_allowed(runner)) is not None
             and (needed := most_steps(runner, dataset)) > allowed]  # fmt: skip
    if short:
        needed, allowed, name = max(short)
        raise UsageError(
            f"{dataset.name} has questions that need {needed} steps of {name!r}, which takes at most {allowed}: "
            f"give --max-steps {needed}"
        )


def step_limit_notes(dataset: Dataset, architectures: Iterable[Architecture]) -> list[str]:
    """A note for each step limit that keeps even a perfect model from answering some of the questions."""
    counted: dict[tuple[int, int, int], list[str]] = {}
    for architecture in architectures:
        runners = [(runner, steps_allowed(runner)) for runner in _runners(architecture)]  # one of them is enough
        needs = [
            [(steps_needed(runner, each.chain), allowed) for runner, allowed in runners]
            for each in dataset.examples
            if each.chain
        ]
        beyond = [
            min((needed, allowed) for needed, allowed in need if allowed is not None)
            for need in needs
            if need and all(allowed is not None and needed > allowed for needed, allowed in need)
        ]
        if beyond:
            counted.setdefault((len(beyond), *max(beyond)), []).append(architecture.name)
    return [
        f"{dataset.name}: {count} of {len(dataset.examples)} questions need{'s' if count == 1 else ''} more steps than "
        f"{', '.join(names)} may take ({allowed}), so no model can answer {'it' if count == 1 else 'them'} "
        f"within that limit; --max-steps {needed} is enough"
        for (count, needed, allowed), names in counted.items()
    ]


def _runners(architecture: Architecture) -> list[Runner]:
    """The loop of an architecture; of one that chooses from others, theirs."""
    return [parent.runner for parent in architecture.parents] or [architecture.runner]


def most_steps(runner: Runner, dataset: Dataset) -> int:
    """The most steps that any question of the data set needs; 0 where no gold chain is known."""
    return max((steps_needed(runner, example.chain) for example in dataset.examples if example.chain), default=0)


def steps_needed(runner: Runner, chain: Sequence[Hop]) -> int:
    """Steps of a plan, or turns, in which a bundled runner answers without a mistake; 0 for any other runner."""
    if isinstance(runner, ReWOO | ReWOOReAct | LLMCompiler):
        return _planned(chain)
    if isinstance(runner, ReAct | PlanExecute):
        return len(chain) + 1  # one hop a turn, and one for the answer
    if isinstance(runner, NativeReAct):
        return _depth(chain) + 1  # independent hops share a turn
    return 0


def steps_allowed(runner: Runner) -> int | None:
    """The step limit of a bundled runner; None without one."""
    if isinstance(runner, ReWOOReAct):
        return runner.rewoo.settings.max_steps
    if isinstance(runner, ReWOO | LLMCompiler | ReAct | NativeReAct | PlanExecute):
        return runner.settings.max_steps
    return None


def _planned(chain: Sequence[Hop]) -> int:
    """One step for each foreseeable hop, and one model step for each look-up that another hop needs."""
    foreseen = [hop for hop in chain if hop.foreseen]
    needed = {need for hop in foreseen for need in _read_for(hop, chain)}
    return len(foreseen) + sum(chain[need].tool == "Search" for need in needed)


def _read_for(hop: Hop, chain: Sequence[Hop]) -> Iterable[int]:
    """The hops whose value is read for a hop: where several give the same page's title, the first of them."""
    return {chain[need].value: need for need in reversed(hop.needs)}.values() if hop.tool == "Search" else hop.needs


def _depth(chain: Sequence[Hop]) -> int:
    """Number of hops on the longest path through the chain; hops need only earlier hops."""
    depths: list[int] = []
    for hop in chain:
        depths.append(1 + max((depths[need] for need in hop.needs), default=0))
    return max(depths, default=0)
