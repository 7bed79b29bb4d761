"""ReAct: think, act, observe, and call the model again with the whole trace.

Yao et al. 2022, arXiv 2210.03629. The text form, for any model:

    Thought: …
    Action: Search[…]
    Observation: …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rewoo_bench.call_site import call_site
from rewoo_bench.errors import ActionError
from rewoo_bench.loops import AT_LIMIT
from rewoo_bench.notation.grammars import action_grammar
from rewoo_bench.notation.replies import Action, parse_action, read_answer
from rewoo_bench.notation.tool_forms import describe_tools
from rewoo_bench.runners.evidence_budget import check_shorten
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.runners.react_turns import ReActSettings, ReActTurns
from rewoo_bench.types import Message, Model, Request, Step, Tool, Trajectory

FINISH = "Finish"


class ReAct:
    """One model call a turn, each with the trace so far."""

    Settings = ReActSettings

    def __init__(self, prompts: Prompts, settings: ReActSettings | None = None) -> None:
        self.prompts = prompts
        self.settings = settings or ReActSettings()
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
        messages = [
            self.prompts.system("agent", tools=describe_tools(tools), max_steps=self.settings.max_steps),
            *self.prompts.shots("agent"),
            Message("user", f"Question: {question}"),
            *(message for step in before for message in _as_turn(step)),
        ]
        repairs = 0
        for turn in range(1, self.settings.max_steps + 1):
            with call_site(f"turn {turn}"):
                completion = await model.complete(
                    Request(messages, role="agent", stop=["\nObservation"], grammar=grammar)
                )
                text = completion.text.strip()
                try:
                    action = parse_action(text, actions)
                except ActionError as error:
                    turns.keep(turn, Step(str(turn), thought=text, observation=str(error), failed=True))
                    if repairs == self.settings.max_repairs:
                        return turns.end(None, "unparsable")
                    repairs += 1
                    messages += [Message("assistant", text), Message("user", f"Observation: {error}")]
                    continue
                if action.tool == FINISH:
                    answer = str(action.arguments)
                    turns.keep(turn, Step(str(turn), action.thought, FINISH, answer))
                    return turns.end(answer, "answered")
                step = await turns.act(str(turn), action.tool, action.arguments, action.thought)
            [seen] = turns.keep(turn, step)
            if turns.is_stopped:
                return turns.end(None, "repeated")
            messages += [Message("assistant", action.render()), Message("user", f"Observation: {seen}")]
        partial = await self._partial_answer(messages, model) if self.settings.answer_at_limit else None
        return turns.end(partial, "step_limit")

    async def _partial_answer(self, messages: list[Message], model: Model) -> str | None:
        """The best answer that the trace allows, asked for when no turn is left."""
        last = messages[-1]
        final = f"{last.content}\nNo turn is left. Use {FINISH} now, with the best answer there is."
        with call_site(AT_LIMIT):
            completion = await model.complete(
                Request(
                    [*messages[:-1], replace(last, content=final)],
                    role="agent",
                    stop=["\nObservation"],
                    grammar=action_grammar([FINISH]),
                )
            )
        try:
            return str(parse_action(completion.text, {FINISH: None}).arguments)
        except ActionError:
            return read_answer(completion.text) or None


def _as_turn(step: Step) -> tuple[Message, Message]:
    action = Action(step.thought, step.tool or "", step.argument)
    return Message("assistant", action.render()), Message("user", f"Observation: {step.observation}")
