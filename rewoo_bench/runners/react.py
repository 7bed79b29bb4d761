"""ReAct: think, act, observe, and call the model again with the whole trace.

Yao et al. 2022, arXiv 2210.03629. The text form, for any model:

    Thought: …
    Action: Search[…]
    Observation: …
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import ActionError
from rewoo_bench.place import at
from rewoo_bench.runners.acting import call_tool, parse_action
from rewoo_bench.runners.grammars import action_grammar
from rewoo_bench.runners.prompts import Prompts, describe_tools
from rewoo_bench.tokens import truncate
from rewoo_bench.types import Message, Model, Step, Tool, Trajectory

FINISH = "Finish"


class ReActSettings(BaseModel):
    """The `[settings]` table of a ReAct architecture."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int = Field(default=8, ge=1)
    """Turns, repair turns included."""
    max_repairs: int = Field(default=1, ge=0)
    """Unparsable turns that are told so; the next one ends the question."""
    observation_tokens: int = Field(default=200, ge=1)
    """An observation is cut to so many tokens."""


class ReAct:
    """One model call a turn, each with the trace so far."""

    Settings = ReActSettings

    def __init__(self, prompts: Prompts, settings: ReActSettings | None = None) -> None:
        self.prompts = prompts
        self.settings = settings or ReActSettings()
        prompts.fill("agent", tools="", max_steps=0)  # a wrong placeholder is found before the first question

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question in at most `max_steps` turns; after them it ends as `step_limit`."""
        messages = [
            self.prompts.system("agent", tools=describe_tools(tools), max_steps=self.settings.max_steps),
            *self.prompts.shots(),
            Message("user", f"Question: {question}"),
        ]
        actions = [*tools, FINISH]
        grammar = action_grammar(actions)
        steps: list[Step] = []
        repairs = 0
        for turn in range(1, self.settings.max_steps + 1):
            with at(f"turn {turn}"):
                completion = await model.complete(messages, role="agent", stop=["\nObservation"], grammar=grammar)
                text = completion.text.strip()
                try:
                    action = parse_action(text, dict.fromkeys(actions))
                except ActionError as error:
                    steps.append(Step(str(turn), thought=text, observation=str(error), failed=True))
                    if repairs == self.settings.max_repairs:
                        return Trajectory(None, "unparsable", tuple(steps))
                    repairs += 1
                    messages += [Message("assistant", text), Message("user", f"Observation: {error}")]
                    continue
                if action.tool == FINISH:
                    steps.append(Step(str(turn), action.thought, FINISH, action.argument))
                    return Trajectory(action.argument, "answered", tuple(steps))
                observation = await call_tool(tools[action.tool], action.argument)
            seen, _ = truncate(observation.text, self.settings.observation_tokens)
            steps.append(Step(str(turn), action.thought, action.tool, action.argument, seen, observation.failed))
            messages += [Message("assistant", action.render()), Message("user", f"Observation: {seen}")]
        return Trajectory(None, "step_limit", tuple(steps))
