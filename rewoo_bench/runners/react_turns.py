"""The turns of an agent that acts and observes, shared by the text form and the native form of ReAct."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.events import emit
from rewoo_bench.notation.arguments import Arguments, show_call
from rewoo_bench.notation.plan_formats import Notation
from rewoo_bench.runners.evidence_budget import EvidenceBudget, Shorten
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.runners.tool_calls import Observation, call_tool
from rewoo_bench.text.model_output import shown
from rewoo_bench.types import Model, Step, StopReason, Tool, Trajectory


class ReActSettings(BaseModel):
    """The `[settings]` table of a ReAct architecture."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int = Field(default=8, ge=1)
    """Turns, repair turns included."""
    max_repairs: int = Field(default=1, ge=0)
    """Unusable turns that the model may repair; the next one ends the question."""
    answer_at_limit: bool = False
    """Asks for the best answer after the last turn, in one more call; the row says `step_limit` all the same."""
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
        self._seen: dict[tuple[str, str], tuple[str, str]] = {}  # action -> (its step, its observation)

    async def act(self, id_: str, tool: str, arguments: Arguments, thought: str = "") -> Step:
        """Calls a tool. A repeated observation is not shown in full again."""
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

    def keep(self, step: Step) -> str:
        """Adds a step; returns its observation as the model is to see it."""
        self.steps.append(step)
        action = (step.tool or "", step.argument)
        before, observation = self._seen.setdefault(action, (step.id, step.observation))
        if before == step.id or observation != step.observation:
            return step.observation
        return f"The same as in turn {before}: this action brings nothing new. Do something else."

    def warning(self, turn: int) -> str:
        """The number of turns left after `turn`, as text for the model; empty where `warn_turns` doesn't ask for it."""
        left = self._settings.max_steps - turn
        if not 0 < left <= self._settings.warn_turns:
            return ""
        return f"\n({left} turn{'s' if left > 1 else ''} left.)"

    def end(self, answer: str | None, stop_reason: StopReason, replans: int = 0) -> Trajectory:
        """How the question ended; an answer at the step limit is partial."""
        emit("answered", answer=answer)
        partial = stop_reason == "step_limit" and answer is not None
        notes = {"partial_answer": partial, "cuts": self._evidence_budget.cuts}
        return Trajectory(answer, stop_reason, tuple(self.steps), replans=replans, notes=notes)
