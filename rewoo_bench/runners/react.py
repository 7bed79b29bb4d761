"""ReAct: think, act, observe, and call the model again with the whole trace.

Yao et al. 2022, arXiv 2210.03629. The text form, for any model:

    Thought: …
    Action: Search[…]
    Observation: …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.errors import ActionError
from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.arguments import Arguments, show_call
from rewoo_bench.runners.notation.grammars import action_grammar
from rewoo_bench.runners.notation.plan_formats import Notation
from rewoo_bench.runners.notation.replies import FINISH, Action, answer_in, parse_action
from rewoo_bench.runners.notation.tools import Observation, call_tool, describe_tools
from rewoo_bench.runners.prompts import EvidenceBudget, Prompts, Shorten, check_shorten
from rewoo_bench.text.loops import AT_LIMIT, first_repetition
from rewoo_bench.text.model_output import excerpt
from rewoo_bench.types import Hop, Message, Model, Request, Step, StopReason, Tool, Trajectory

_STOP = ["\nObservation"]
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
                f"ERROR: no tool {excerpt(tool)!r}; the tools are: {', '.join(self._tools)}", failed=True
            )
        text = await self._evidence_budget.shortened(
            id_, observation.text, query=f"{thought} {argument}", max_tokens=self._settings.observation_tokens
        )
        emit("step_finished", id_, observation=text, failed=observation.failed)
        return Step(id_, thought, tool, argument, text, observation.failed)

    def add(self, turn: int, *steps: Step) -> list[str]:
        """Adds the steps of a turn; returns their observations as the model is to see them."""
        self.steps += steps
        self._done.append(tuple((step.tool or step.thought, step.argument, step.observation) for step in steps))
        seen = [step.observation for step in steps]
        if self._settings.repeat_guard == "nudge" and not self._is_nudged and first_repetition(self._done) is not None:
            self._is_nudged = True
            seen[-1] += _NUDGE
        left = self._settings.max_steps - turn
        if 0 < left <= self._settings.warn_turns:
            seen[-1] += f"\n({left} turn{'s' if left > 1 else ''} left.)"
        return seen

    @property
    def is_stopped(self) -> bool:
        """Whether the guard ends the question: its turns repeat themselves."""
        return self._settings.repeat_guard == "stop" and first_repetition(self._done) is not None

    def end(self, answer: str | None, stop_reason: StopReason, replans: int = 0) -> Trajectory:
        """How the question ended; an answer at the step limit is partial."""
        emit("answered", answer=answer)
        partial = stop_reason == "step_limit" and answer is not None
        notes = {"partial_answer": partial, "cuts": self._evidence_budget.cuts}
        return Trajectory(answer, stop_reason, tuple(self.steps), replans=replans, notes=notes)


class ReAct:
    """One model call a turn, each with the trace so far."""

    Settings = ReActSettings

    def __init__(self, prompts: Prompts, settings: ReActSettings | None = None) -> None:
        self.prompts = prompts
        self.settings = settings or ReActSettings()
        self.max_steps = self.settings.max_steps
        prompts.fill("agent", tools="", max_steps=0)  # a wrong placeholder is found before the first question
        check_shorten(self.settings.shorten, prompts)

    async def run(
        self, question: str, *, model: Model, tools: Mapping[str, Tool], before: Sequence[Step] = ()
    ) -> Trajectory:
        """Answers a question in at most `max_steps` turns; after them it ends as `step_limit`.

        `before` holds steps of an earlier phase; the model sees them as its own turns.
        """
        actions: dict[str, Tool | None] = {**tools, FINISH: None}
        grammar = action_grammar(actions)
        turns = ReActTurns(self.settings, tools, model, self.prompts)
        messages = self.prompts.conversation(
            "agent", f"Question: {question}", tools=describe_tools(tools), max_steps=self.max_steps
        )
        for step in before:
            turn_before = Action(step.thought, step.tool or "", step.argument).as_turn()
            messages += [Message("assistant", turn_before), Message("user", f"Observation: {step.observation}")]
        repairs = 0
        for turn in range(1, self.settings.max_steps + 1):
            with at_place(f"turn {turn}"):
                completion = await model.complete(Request(messages, role="agent", stop=_STOP, grammar=grammar))
                text = completion.text.strip()
                try:
                    action = parse_action(text, actions)
                except ActionError as error:
                    turns.add(turn, Step(str(turn), thought=text, observation=str(error), failed=True))
                    if repairs == self.settings.max_repairs:
                        return turns.end(None, "unparsable")
                    repairs += 1
                    messages += [Message("assistant", text), Message("user", f"Observation: {error}")]
                    continue
                if action.tool == FINISH:
                    answer = str(action.arguments)
                    turns.add(turn, Step(str(turn), action.thought, FINISH, answer))
                    return turns.end(answer, "answered")
                step = await turns.act(str(turn), action.tool, action.arguments, action.thought)
            [seen] = turns.add(turn, step)
            if turns.is_stopped:
                return turns.end(None, "repeated")
            messages += [Message("assistant", action.as_turn()), Message("user", f"Observation: {seen}")]
        if not self.settings.answer_at_limit:
            return turns.end(None, "step_limit")
        asked = f"{messages.pop().content}\nNo turn is left. Use {FINISH} now, with the best answer there is."
        messages.append(Message("user", asked))
        with at_place(AT_LIMIT):
            request = Request(messages, role="agent", stop=_STOP, grammar=action_grammar([FINISH]))
            completion = await model.complete(request)
        try:
            partial = str(parse_action(completion.text, {FINISH: None}).arguments)
        except ActionError:
            partial = answer_in(completion.text)
        return turns.end(partial or None, "step_limit")

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """A turn for each hop, and one for the answer."""
        return len(chain) + 1
