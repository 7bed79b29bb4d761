"""A router: chooses one of two architectures for each question, and runs that one.

rule       the first rule that fits the question's text
model      one short model call, of the role "router"

The router sees the question's text alone: not its type, and no answer. The chosen parent gets its own tools, the same
model and the same limits; places show it: `rewoo/planner`, `react/turn 1`. The column `routed_to` and the notes
say which one was chosen, and why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewoo_bench.config.router import RouterSettings, rule_for
from rewoo_bench.errors import SpecError
from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.architecture import Architecture
from rewoo_bench.runners.notation.grammars import choice_grammar
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.types import Message, Model, Request, Tool, Trajectory

_CHOICE = re.compile(r"(?i)agent\W{0,8}([12])\b|^\W*([12])\b")
_MAX_TOKENS = 8  # "Agent: 2"


class Router:
    """Chooses an architecture by the question, and runs it."""

    Settings = RouterSettings
    takes_parents = True
    """The class is made with the architectures that `Settings.parents` names."""

    def __init__(self, prompts: Prompts, settings: RouterSettings, *, parents: Sequence[Architecture]) -> None:
        self.settings = settings
        self.parents = {parent.name: parent for parent in parents}
        if settings.policy == "rule":
            for number, rule in enumerate(settings.rules, start=1):
                if rule.choose not in self.parents:
                    there = " and ".join(self.parents)
                    raise SpecError(f"rule {number} chooses {rule.choose!r}; the parents are {there}")
        else:
            listed = (f"{n}. {each.name}: {each.spec.description}" for n, each in enumerate(parents, start=1))
            self._system = replace(prompts.system("router", agents="\n".join(listed)), ends_prefix=True)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question as the chosen parent does."""
        name, reason = await self._choose(question, model)
        emit("routed", to=name, policy=self.settings.policy)
        parent = self.parents[name]
        others = {tool for other in self.parents.values() for tool in other.spec.tools} - parent.spec.tools.keys()
        own = {tool: tools[tool] for tool in (*parent.spec.tools, *tools) if tool in tools and tool not in others}
        with at_place(name):
            trajectory = await parent.runner.run(question, model=model, tools=own)
        routed = {"policy": self.settings.policy, "to": name, **reason}
        return replace(trajectory, notes={**trajectory.notes, "routed": routed})

    async def _choose(self, question: str, model: Model) -> tuple[str, dict[str, Any]]:
        """The parent for a question, and the reason, JSON-ready."""
        names = list(self.parents)
        if self.settings.policy == "rule":
            rule = rule_for(self.settings.rules, question)
            return (
                (names[0], {"rule": None}) if rule is None else (self.settings.rules[rule].choose, {"rule": rule + 1})
            )
        request = Request(
            [self._system, Message("user", f"Question: {question}")],
            role="router",
            stop=["\n"],
            max_tokens=_MAX_TOKENS,
            grammar=choice_grammar(len(names)),
        )
        with at_place("router"):
            completion = await model.complete(request)
        match = _CHOICE.search(completion.text)
        number = int(match[1] or match[2]) if match else 1
        return names[number - 1], {"reply": completion.text, "readable": match is not None}
