"""ReWOO first, and a short ReAct where that left a gap.

rewoo    plan, evidence                        as ReWOO
react    at most k turns, from that evidence   where the plan was broken or a slot stayed empty
solver   answer                                where neither happened

A slot counts as empty where its step failed, was skipped or found nothing. Only slots that no other
step uses are checked: they are the aim of the plan. A solver's answer "unknown" is a gap too. Call
sites show the phase of a call: `rewoo/…` and `react/…`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.config.names import TOOLS
from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.replies import gives_up
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.runners.react import ReAct, ReActSettings, RepeatGuard
from rewoo_bench.runners.rewoo import ReWOO, ReWOOSettings
from rewoo_bench.types import Hop, Model, Tool, Trajectory

Gap = Literal["invalid_plan", "empty_slot", "unknown"]


class ReWOOReActSettings(BaseModel):
    """The `[settings]` table, with a table for each of the two."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int | None = Field(default=None, ge=1)
    """Steps of a plan, in place of `rewoo.max_steps`."""
    map_tokens: int | None = Field(default=None, ge=1)
    """Tokens to which all evidence is shortened, in place of `rewoo.map_tokens`."""
    slot_tokens: int | None = Field(default=None, ge=1)
    """Tokens to which the evidence of a step is shortened, in place of `rewoo.slot_tokens`."""
    observation_tokens: int | None = Field(default=None, ge=1)
    """Tokens to which an observation of ReAct is shortened, in place of `react.observation_tokens`."""
    plan_tools: tuple[str, ...] = ()
    """Bundled tools that a plan may use; none named is all. A plan has all other tools, and ReAct has all tools."""
    rewoo: ReWOOSettings = ReWOOSettings()
    react: ReActSettings = ReActSettings(max_steps=4)
    repeat_guard: RepeatGuard | None = None
    """The guard of ReAct's turns, in place of `react.repeat_guard`."""
    gaps: tuple[Gap, ...] = ("invalid_plan", "empty_slot", "unknown")
    """The gaps that ReAct is called for."""
    quote_evidence: bool = False
    """Whether results in prompts of both are marked as data that gives no orders."""


class ReWOOReAct:
    """Plans ahead, and adapts only where the plan didn't hold."""

    Settings = ReWOOReActSettings

    def __init__(self, prompts: Prompts, settings: ReWOOReActSettings | None = None) -> None:
        self.settings = settings or ReWOOReActSettings()
        both = {"quote_evidence": True} if self.settings.quote_evidence else {}
        given = self.settings.model_dump(include={"max_steps", "map_tokens", "slot_tokens"}, exclude_none=True) | both
        self.rewoo = ReWOO(prompts, self.settings.rewoo.model_copy(update=given))
        self.max_steps = self.rewoo.max_steps
        guard = self.settings.model_dump(include={"repeat_guard", "observation_tokens"}, exclude_none=True) | both
        self.react = ReAct(prompts, self.settings.react.model_copy(update=guard))

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question; where ReAct was called, the stop reason is its own, and its turns are `R1`, `R2`, …"""
        with at_place("rewoo"):
            wanted = self.settings.plan_tools or tools
            plan_tools = {name: tool for name, tool in tools.items() if name in wanted or name not in TOOLS}
            planned = await self.rewoo.gather(question, model, plan_tools)
            gap: Gap | None = None
            if not planned.plan.steps:
                gap = "invalid_plan"
                if gap not in self.settings.gaps:
                    return planned.end(None, gap)
            elif "empty_slot" in self.settings.gaps and planned.empty_leaves:
                gap = "empty_slot"
            first = None if gap else await self.rewoo.solve(question, planned, model)
        if first is not None:
            if "unknown" not in self.settings.gaps or not gives_up(first.answer or ""):
                return first
            gap = "unknown"
        emit("fallback_started", reason=gap)
        with at_place("react"):
            second = await self.react.run(question, model=model, tools=tools, before=planned.steps)
        ended = planned.end(second.answer, second.stop_reason, fallback=gap, react=second.notes)
        return replace(ended, steps=(*planned.steps, *(replace(step, id=f"R{step.id}") for step in second.steps)))

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """Steps of ReWOO's plan without a mistake."""
        return self.rewoo.steps_needed(chain)
