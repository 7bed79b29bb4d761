"""Reads replies: the action of a turn, the answer, and its citations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from rewoo_bench.errors import ActionError
from rewoo_bench.runners.notation.arguments import Arguments, read_call, read_input, write_call
from rewoo_bench.runners.notation.plan import spellings_of
from rewoo_bench.runners.notation.schemas import inputs
from rewoo_bench.text.model_output import excerpt, note
from rewoo_bench.types import Completion, StopReason, Tool

FINISH = "Finish"
"""The action that ends a question of ReAct; no tool may have this name."""
_THOUGHT = re.compile(r"Thought(?:\s*\d+)?[\s*]*:(.*)", re.DOTALL)
_ACTION = r"Action(?:\s*\d+)?[\s*]*:[\s*`]*"
_INPUT = re.compile(r"[\s*`]*\n[ *`]*Action Input(?:[ ]*\d+)?[ *`]*:[ *]*")
_FINAL_ANSWER = re.compile(r"(?im)^[ *`]*final answer[ *`]*:[ *]*")
_NEXT_PART = re.compile(r"(?m)^[ *`]*(?:Thought|Action|Observation|Question|Final Answer)\b[^\w\n]*:")
_ANSWER = re.compile(r"(?im)^[^\w\n]*(?:final\s+)?answer[^\w\n]*:(.*)$")

_REPLAN = re.compile(r"(?im)^[^\w\n]*+replan[^\w\n]*:(.*)$")
_THOUGHT_LINE = re.compile(r"(?im)^[^\w\n]*+thought[^\w\n]*:.*$")
_OTHER_PART = re.compile(
    r"(?i)\W*(?:thought|action|observation|plan|replan|evidence|output|answer|question)\b[^\w\n]*:|\W*```"
)

_UNKNOWN = re.compile(r"\W*unknown\W*(?:$|[.,;:(]\s)", re.IGNORECASE)  # and not "Unknown Pleasures"
_CITATION = re.compile(r"(?<!\s)\s*\[(?:#E\d{1,9}[\s,;]*)+\]", re.ASCII)
_CITED = re.compile(r"#E(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Action:
    """A ReAct turn: `Thought: …` and `Action: tool[argument]`."""

    thought: str
    tool: str
    arguments: Arguments

    def as_turn(self) -> str:
        """The turn as it goes into the trace: without any text that the model invented after it."""
        return f"Thought: {self.thought}\nAction: {self.tool}[{write_call(self.arguments)}]"


def parse_action(text: str, actions: Mapping[str, object]) -> Action:
    """The first action of a turn. Raises `ActionError` with a message for the model.

    >>> parse_action("Thought: I know it.\\nAction: finish[Rome]", {"Search": 0, "Finish": 0})
    Action(thought='I know it.', tool='Finish', arguments='Rome')
    """
    names = spellings_of(tuple(actions))
    # With or without Markdown's signs. A line without `Action:` is one too where its name is known.
    match = re.search(rf"{_ACTION}({names.pattern})[\s*`]*\[", text)
    if not match:
        lines = re.finditer(rf"^[ *`]*({names.pattern})[*`]*\[", text, re.MULTILINE)
        match = next((line for line in lines if names.spelt(line[1]) in actions), None)
    given = ""
    if match:
        start, written = match.start(), match[1]
    elif other := _in_other_form(text, names.pattern):
        start, written, given = other
    else:
        raise ActionError(f"No action found. Write one line 'Action: Tool[input]' with one of: {', '.join(actions)}.")
    name = names.spelt(written)
    if name not in actions:
        raise ActionError(f"There is no action {excerpt(written)!r}. The actions are: {', '.join(actions)}.")
    meant = actions[name]
    tool = cast(Tool, meant) if hasattr(meant, "arguments") else None
    arguments = read_call(text, match.end(), len(text), tool)[0] if match else read_input(given, tool)
    if not arguments and not (tool and not inputs(tool.arguments).required):
        raise ActionError(f"The action {written!r} has no input between its brackets.")
    if not match:
        note("the action was written in another form")
    before = text[:start]  # text after the action may be invented
    thought = _THOUGHT.search(before)
    return Action(" ".join((thought[1] if thought else before).split()).strip("* "), name, arguments)


def _in_other_form(text: str, names: str) -> tuple[int, str, str] | None:
    """The first action in another form, if any: where it begins, its name and its input.

    Action: Search          Action: Search("Oslo")          Final Answer: Oslo
    Action Input: Oslo
    """
    found: list[tuple[int, str, str]] = []
    for match in re.finditer(rf"{_ACTION}({names})", text):
        if given := _INPUT.match(text, match.end()):
            found.append((match.start(), match[1], _part(text, given.end())))
            break
        if text.startswith("(", match.end()):
            found.append((match.start(), match[1], text[match.end() + 1 :]))
            break
    if answer := _FINAL_ANSWER.search(text):
        found.append((answer.start(), FINISH, _part(text, answer.end())))
    return min(found, default=None)


def _part(text: str, start: int) -> str:
    """The text from there to the next part of a turn, without Markdown's signs around it."""
    following = _NEXT_PART.search(text, start)
    return text[start : following.start() if following else len(text)].strip().strip("*`").strip()


def answer_in(text: str) -> str:
    """The answer in a reply: what follows its last `Answer:`, else the whole reply.

    >>> answer_in("Thought: It is in Denmark.\\nAnswer: Copenhagen")
    'Copenhagen'
    """
    headings = list(_ANSWER.finditer(text))
    return _answer(headings[-1]) if headings else _bare(text)


def _answer(heading: re.Match[str]) -> str:
    """What follows an `Answer:`, on its line or else on the next."""
    return _bare(heading[1]) or _bare(_line_below(heading))


def _bare(text: str) -> str:
    return text.strip().strip("*\"'`").strip()


def _line_below(heading: re.Match[str]) -> str:
    """The next line that isn't blank; empty where another part of the reply begins there."""
    line = heading.string[heading.end() :].lstrip().partition("\n")[0]
    return "" if _OTHER_PART.match(line) else line.strip()


@dataclass(frozen=True, slots=True)
class Joined:
    """What LLMCompiler's joiner decided: the answer, or what a new plan has to find."""

    answer: str
    missing: str | None = None


def read_joined(text: str) -> Joined:
    """The first `Answer:` or `Replan:` of a joiner's reply; without either, all but its thought is the answer.

    >>> read_joined("Thought: The page names no city.\\nReplan: Utzon's place of birth")
    Joined(answer='', missing="Utzon's place of birth")
    """
    answer, replan = _ANSWER.search(text), _REPLAN.search(text)
    if replan and (answer is None or replan.start() < answer.start()):
        return Joined("", replan[1].strip().strip("*").strip() or _line_below(replan))
    if answer:
        return Joined(_answer(answer))
    return Joined(answer_in(_THOUGHT_LINE.sub("", text)))


def names_answer(text: str) -> bool:
    """Whether a reply has an `Answer:`, or was cut before it."""
    return _ANSWER.search(text) is not None


def citations(answer: str, evidence: Mapping[str, str]) -> tuple[str, dict[str, list[str]]]:
    """The answer without its citations `[#E2]`, and which slots they named: those there are, and others.

    >>> citations("Copenhagen [#E4] [#E9]", {"E4": "Born in Copenhagen."})
    ('Copenhagen', {'cited': ['E4'], 'unknown': ['E9']})
    """
    named = [f"E{int(number)}" for number in _CITED.findall(" ".join(_CITATION.findall(answer)))]
    slots = list(dict.fromkeys(named))
    cited = [slot for slot in slots if slot in evidence]
    unknown = [slot for slot in slots if slot not in evidence]
    return _CITATION.sub("", answer).strip(), {"cited": cited, "unknown": unknown}


def gives_up(answer: str) -> bool:
    """Whether a solver answers "unknown", as its prompt asks where evidence is missing."""
    return _UNKNOWN.match(answer) is not None


def answered(answer: str, completion: Completion) -> tuple[str | None, StopReason]:
    """The answer, or None where it is empty, and the stop reason that goes with it."""
    if answer:
        return answer, "answered"
    return None, "length_limit" if completion.finish_reason == "length" else "empty_answer"
