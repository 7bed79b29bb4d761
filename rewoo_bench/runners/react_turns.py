"""The turns of an agent that acts and observes, shared by the text form and the native form of ReAct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.events import emit
from rewoo_bench.loops import first_repetition
from rewoo_bench.notation.arguments import Arguments, show_call
from rewoo_bench.notation.plan_formats import Notation
from rewoo_bench.runners.evidence_budget import EvidenceBudget, Shorten
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.runners.tool_calls import Observation, call_tool
from rewoo_bench.text.model_output import shown
from rewoo_bench.types import Model, Step, StopReason, Tool, Trajectory

_NUDGE = "\nThese turns repeat themselves and bring nothing new. Do something else, or answer."

RepeatGuard = Literal["none", "nudge", "stop"]


class ReActSettings(BaseModel):
    """The `[settings]` table of a ReAct architecture."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int = Field(default=8, ge=1)
    """Turns, repair turns included."""
    max_repairs: int = Field(default=1, ge=0)
    """Unusable turns that the model may repair; the next one ends the question."""
    answer_at_limit: bool = False
    """Asks for the best answer after the last turn, in one more call; the row says `step_limit` all the same."""
    repeat_guard: RepeatGuard = "none"
    """Once the turns so far end in a loop: nothing, a `nudge` that says so once, or the end of the question."""
    warn_turns: int = Field(default=0, ge=0)
    """Number of turns left from which on every observation states it; 0 never does."""
    shorten: Shorten = "truncate"
    """How an observation that is too long is shortened."""
    observation_tokens: int = Field(default=200, ge=1)
    """Tokens to which an observation is shortened."""


class ReActTurns:
    """The tool calls of one question, observed. `steps` holds them in order."""

    def __init__(
        self,
        settings: ReActSettings,
        tools: Mapping[str, Tool],
        model: Model,
        prompts: Prompts,
        notation: Notation = "text",
    ) -> None:
        self.steps: list[Step] = []
        self._settings = settings
        self._tools = tools
        self._notation: Notation = notation
        self._evidence_budget = EvidenceBudget(settings.shorten, model, prompts)
        self._done: list[tuple[object, ...]] = []  # by each turn
        self._is_nudged = False

    async def act(self, id_: str, tool: str, arguments: Arguments, thought: str = "") -> Step:
        """Calls a tool."""
        argument = show_call(arguments)
        emit("step_started", id_, tool=tool, argument=argument)
        if tool in self._tools:
            observation = await call_tool(self._tools[tool], arguments, self._notation)
        else:
            observation = Observation(
                f"ERROR: no tool {shown(tool)!r}; the tools are: {', '.join(self._tools)}", failed=True
            )
        text = await self._evidence_budget.admit(
            id_, observation.text, query=f"{thought} {argument}", max_tokens=self._settings.observation_tokens
        )
        emit("step_finished", id_, observation=text, failed=observation.failed)
        return Step(id_, thought, tool, argument, text, observation.failed)

    def keep(self, turn: int, *steps: Step) -> list[str]:
        """Adds the steps of a turn; returns their observations as the model is to see them."""
        self.steps += steps
        self._done.append(tuple((step.tool or step.thought, step.argument, step.observation) for step in steps))
        seen = [step.observation for step in steps]
        if self._settings.repeat_guard == "nudge" and self._repeats and not self._is_nudged:
            self._is_nudged = True
            seen[-1] += _NUDGE
        left = self._settings.max_steps - turn
        if 0 < left <= self._settings.warn_turns:
            seen[-1] += f"\n({left} turn{'s' if left > 1 else ''} left.)"
        return seen

    @property
    def _repeats(self) -> bool:
        return first_repetition(self._done) is not None

    @property
    def is_stopped(self) -> bool:
        """Whether the guard ends the question: its turns repeat themselves."""
        return self._settings.repeat_guard == "stop" and self._repeats

    def end(self, answer: str | None, stop_reason: StopReason, replans: int = 0) -> Trajectory:
        """How the question ended; an answer at the step limit is partial."""
        emit("answered", answer=answer)
        partial = stop_reason == "step_limit" and answer is not None
        notes = {"partial_answer": partial, "cuts": self._evidence_budget.cuts}
        return Trajectory(answer, stop_reason, tuple(self.steps), replans=replans, notes=notes)
