"""What every architecture does alike: call a tool by its text argument, read an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from rewoo_bench.errors import ActionError, ToolError
from rewoo_bench.runners.plan import closing_bracket, read_argument
from rewoo_bench.types import Completion, StopReason, Tool

NO_RESULTS = "No results."
_ACTION = re.compile(r"Action(?:\s*\d+)?[\s*]*:[\s*`]*([^\W\d]\w*)[\s*`]*\[")  # with or without Markdown's signs
_THOUGHT = re.compile(r"Thought(?:\s*\d+)?[\s*]*:(.*)", re.DOTALL)
_ANSWER = re.compile(r"(?im)^[^\w\n]*(?:final\s+)?answer[^\w\n]*:(.*)$")


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool call brought; `failed` where it was an error."""

    text: str
    failed: bool = False


async def call_tool(tool: Tool, argument: str) -> Observation:
    """The tool's answer to a text argument; a fault of the tool or the argument is an answer too."""
    try:
        text = await tool(read_argument(tool, argument))
    except ValidationError as error:
        return Observation(f"ERROR: {argument[:80]!r} doesn't fit {tool.name}: {error.errors()[0]['msg']}", failed=True)
    except ToolError as error:
        return Observation(f"ERROR: {error}", failed=True)
    return Observation(text.strip() or NO_RESULTS)


@dataclass(frozen=True, slots=True)
class Action:
    """A ReAct turn: `Thought: …` and `Action: tool[argument]`."""

    thought: str
    tool: str
    argument: str

    def render(self) -> str:
        """The turn as it goes into the trace: without what a model may have invented after it."""
        return f"Thought: {self.thought}\nAction: {self.tool}[{self.argument}]"


def parse_action(text: str, actions: Mapping[str, object]) -> Action:
    """The first action of a turn. Raises `ActionError`, told so that the model can mend it.

    >>> parse_action("Thought: I know it.\\nAction: finish[Rome]", {"Search": 0, "Finish": 0})
    Action(thought='I know it.', tool='Finish', argument='Rome')
    """
    names = {name.casefold(): name for name in actions}
    match = _ACTION.search(text)
    if not match:
        raise ActionError(f"No action found. Write one line 'Action: Tool[input]' with one of: {', '.join(actions)}.")
    if match[1].casefold() not in names:
        raise ActionError(f"There is no action {match[1]!r}. The actions are: {', '.join(actions)}.")
    argument = " ".join(text[match.end() : closing_bracket(text, match.end(), len(text))].split())
    if not argument:
        raise ActionError(f"The action {match[1]!r} has no input between its brackets.")
    before = text[: match.start()]  # what comes after the action may be invented
    thought = _THOUGHT.search(before)
    return Action(
        " ".join((thought[1] if thought else before).split()).strip("* "), names[match[1].casefold()], argument
    )


def read_answer(text: str) -> str:
    """The answer in a reply: what follows its last `Answer:`, else the whole reply.

    >>> read_answer("Thought: It is in Denmark.\\nAnswer: Copenhagen")
    'Copenhagen'
    """
    found = _ANSWER.findall(text)
    return str(found[-1] if found else text).strip().strip("*\"'`").strip()


def names_answer(text: str) -> bool:
    """Whether a reply has an `Answer:`, or was cut before it."""
    return _ANSWER.search(text) is not None


def answered(answer: str, completion: Completion) -> tuple[str | None, StopReason]:
    """The answer, or None where it is empty, and the stop reason that goes with it."""
    if answer:
        return answer, "answered"
    return None, "length_limit" if completion.finish_reason == "length" else "empty_answer"
