"""A router: chooses one of two architectures for each question, and runs that one.

rule       the first rule that fits the question's text
model      one short model call, of the role "router"
learned    the weights of a router.json: a sum over the question's words

The router sees the question's text alone: not its type, and no answer. The chosen parent gets its own tools, the same
model and the same limits; places show it: `rewoo/planner`, `react/turn 1`. The column `routed_to` and the notes
say which one was chosen, and why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from rewoo_bench.config.router import RouterFile, RouterSettings, RoutingRule, read_router, rule_for
from rewoo_bench.errors import SpecError
from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.notation.grammars import choice_grammar
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.types import Message, Model, Request, Tool, Trajectory

_CHOICE = re.compile(r"(?i)agent\W{0,8}([12])\b|^\W*([12])\b")
_MAX_TOKENS = 8  # "Agent: 2"


@dataclass(frozen=True, slots=True)
class Choice:
    """The parent for a question, and the reason, JSON-ready."""

    parent: str
    reason: Mapping[str, Any] = field(default_factory=dict)


class Policy(Protocol):
    """How a parent is chosen."""

    async def choose(self, question: str, model: Model) -> Choice: ...


class Router:
    """Chooses an architecture by the question, and runs it."""

    Settings = RouterSettings
    takes_parents = True
    """The class is made with the architectures that `Settings.parents` names, and with its folder."""

    def __init__(
        self, prompts: Prompts, settings: RouterSettings, *, parents: Sequence[Architecture], folder: Path | None
    ) -> None:
        self.settings = settings
        self.parents = {parent.name: parent for parent in parents}
        self.facts: dict[str, Any] = {}
        """More facts for the manifest."""
        self._policy = self._open_policy(prompts, folder)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question as the chosen parent does."""
        choice = await self._policy.choose(question, model)
        emit("routed", to=choice.parent, policy=self.settings.policy)
        parent = self.parents[choice.parent]
        others = {name for other in self.parents.values() for name in other.spec.tools} - parent.spec.tools.keys()
        own = {name: tools[name] for name in (*parent.spec.tools, *tools) if name in tools and name not in others}
        with at_place(parent.name):
            trajectory = await parent.runner.run(question, model=model, tools=own)
        routed = {"policy": self.settings.policy, "to": choice.parent, **choice.reason}
        return replace(trajectory, notes={**trajectory.notes, "routed": routed})

    def _open_policy(self, prompts: Prompts, folder: Path | None) -> Policy:
        """The policy of the settings. Raises `SpecError` where its rules or its file are of other parents."""
        names = tuple(self.parents)
        if self.settings.policy == "rule":
            for number, rule in enumerate(self.settings.rules, start=1):
                if rule.choose not in names:
                    raise SpecError(f"rule {number} chooses {rule.choose!r}; the parents are {' and '.join(names)}")
            return _ByRule(self.settings.rules, names[0])
        if self.settings.policy == "model":
            return _ByModel(prompts, tuple(self.parents.values()))
        path = Path(self.settings.file or "")  # in the working folder, else in that of the architecture
        if folder and not path.exists() and (folder / path).exists():
            path = folder / path
        router = read_router(path)
        if set(router.parents) != set(names):
            raise SpecError(
                f"router file {str(path)!r} is for {' and '.join(router.parents)}, and the parents are "
                f"{' and '.join(names)}; give parents={'+'.join(router.parents)}, or fit another router"
            )
        self.facts["router_file"] = {
            "sha256": sha256(path.read_bytes()).hexdigest(),
            **router.model_dump(mode="json", exclude={"weights", "intercept", "version"}),
        }
        return _Learned(router)


@dataclass(frozen=True)
class _ByRule:
    rules: tuple[RoutingRule, ...]
    otherwise: str

    async def choose(self, question: str, model: Model) -> Choice:
        number = rule_for(self.rules, question)
        if number is None:
            return Choice(self.otherwise, {"rule": None})
        return Choice(self.rules[number].choose, {"rule": number + 1})


@dataclass(frozen=True)
class _Learned:
    router: RouterFile

    async def choose(self, question: str, model: Model) -> Choice:
        chance = self.router.chance(question)
        return Choice(self.router.choose(question), {"chance": chance, "dearer": self.router.dearer})


class _ByModel:
    """Asks the model for a number: 1 is the first parent, 2 the second."""

    def __init__(self, prompts: Prompts, parents: tuple[Architecture, ...]) -> None:
        listed = "\n".join(
            f"{n}. {parent.name}: {parent.spec.description}" for n, parent in enumerate(parents, start=1)
        )
        self._system = replace(prompts.system("router", agents=listed), ends_prefix=True)
        self._parents = parents

    async def choose(self, question: str, model: Model) -> Choice:
        messages = [self._system, Message("user", f"Question: {question}")]
        with at_place("router"):
            completion = await model.complete(
                Request(
                    messages,
                    role="router",
                    stop=["\n"],
                    max_tokens=_MAX_TOKENS,
                    grammar=choice_grammar(len(self._parents)),
                )
            )
        match = _CHOICE.search(completion.text)
        number = int(match[1] or match[2]) if match else 1
        return Choice(self._parents[number - 1].name, {"reply": completion.text, "readable": match is not None})
