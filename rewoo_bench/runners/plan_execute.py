"""Plan and execute: a plan in words, one step at a time by a model call, a new plan after each.

plan      = planner(question)                          one model call
action    = executor(plan's first step)                one model call a step
plan      = planner(question, observations so far)     one model call a step, or the answer

As in LangGraph's plan-and-execute tutorial, after Wang et al. 2023, arXiv 2305.04091 (plan and solve), whose plan isn't
written anew. All calls of a question share one growing trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from rewoo_bench.errors import ActionError
from rewoo_bench.events import at_place
from rewoo_bench.runners.notation.grammars import action_grammar, answer_grammar, words_grammar
from rewoo_bench.runners.notation.replies import answer_in, answered, names_answer, parse_action
from rewoo_bench.runners.notation.tools import describe_tools
from rewoo_bench.runners.react import ReActLoop, ReActTurns
from rewoo_bench.text.loops import AT_LIMIT
from rewoo_bench.types import Completion, Message, Model, Request, Tool, Trajectory

_T = TypeVar("_T")
_ITEM = re.compile(r"^(?:[^\S\n]|[*`-])*\d{1,3}[.):][\s*`]*(.+)$", re.MULTILINE)
_WHAT_NEXT = "Make a new plan from what is known now, or answer."
_LAST = "No step is left: answer now."
_FAULT = "Write a plan as numbered lines under 'Plan:', or one line 'Answer:' and the answer."


class PlanExecute(ReActLoop):
    """Plans, does one step, plans anew from the observation."""

    prompt = "planner"

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question with at most `max_steps` executed steps; after them it ends as `step_limit`."""
        limit = self.settings.max_steps
        turns = ReActTurns(self, model, tools)
        opening = self.prompts.conversation(
            "planner", f"Question: {question}", tools=describe_tools(tools), max_steps=limit
        )
        conversation = _Conversation(model, opening, self.settings.max_repairs)
        with at_place("planner 0"):
            intent = await conversation.ask("planner", words_grammar(limit, answer=False), _read_intent)
        plans = 1
        for number in range(1, limit + 1):
            if not isinstance(intent, list):
                break
            conversation.say(f"Step: {intent[0]}")
            with at_place(f"step {number}"):
                action = await conversation.ask(
                    "agent", action_grammar(tools, thought=False), lambda text: parse_action(text, tools)
                )
                if action is None:
                    return turns.end(None, "unparsable", replans=plans - 1)
                step = await turns.act(str(number), action.tool, action.arguments, intent[0])
            [seen] = turns.add(number, step)
            if turns.is_stopped:
                return turns.end(None, "repeated", replans=plans - 1)
            last = number == limit
            if last and not self.settings.answer_at_limit:
                return turns.end(None, "step_limit", replans=plans - 1)
            conversation.say(f"Observation: {seen}\n{_LAST if last else _WHAT_NEXT}")
            with at_place(AT_LIMIT if last else f"planner {number}"):
                grammar = answer_grammar() if last else words_grammar(limit, answer=True)
                intent = await conversation.ask("planner", grammar, _read_intent)
            plans += isinstance(intent, list)
            if last:
                answer = intent if isinstance(intent, str) and intent else None
                return turns.end(answer, "step_limit", replans=plans - 1)
        if intent is None:
            return turns.end(None, "unparsable", replans=plans - 1)
        return turns.end(*answered(str(intent), conversation.last), replans=plans - 1)


def read_items(text: str) -> list[str]:
    """The steps of a plan in words: its numbered lines, each on one line."""
    return [" ".join(item.split()) for item in _ITEM.findall(text)]


def _read_intent(text: str) -> list[str] | str:
    """Steps in words, or an answer, whichever comes first. Raises `ActionError` where a reply has neither."""
    first = _ITEM.search(text)
    if names_answer(text[: first.start()] if first else text) and ((answer := answer_in(text)) or not first):
        return answer
    if first:
        return read_items(text)
    raise ActionError(_FAULT)


class _Conversation:
    """The one growing trace of a question, and the calls made on it."""

    def __init__(self, model: Model, messages: list[Message], max_repairs: int) -> None:
        self.messages = messages
        self.last = Completion("")
        self._model = model
        self._repairs_left = max_repairs

    def say(self, text: str) -> None:
        self.messages.append(Message("user", text))

    async def ask(self, role: str, grammar: str, read: Callable[[str], _T]) -> _T | None:
        """What `read` finds in a reply; None where it raises `ActionError`, also after the repairs."""
        stop = ["\nObservation", "\nStep:", "\nQuestion:"]
        while True:
            self.last = await self._model.complete(Request(self.messages, role=role, stop=stop, grammar=grammar))
            text = self.last.text.strip()
            self.messages.append(Message("assistant", text))
            try:
                return read(text)
            except ActionError as error:
                if not self._repairs_left:
                    return None
                self._repairs_left -= 1
                self.say(str(error))
