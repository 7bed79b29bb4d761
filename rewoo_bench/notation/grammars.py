"""The forms of replies, for models that can constrain their decoding: GBNF grammars and a JSON Schema.

They say nothing that the prompt doesn't: they keep a small model in the form that every reader
here expects, for all architectures alike. Format of grammars: llama.cpp, grammars/README.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from rewoo_bench.types import Tool

Form = Literal[
    "plan",
    "numbered plan",
    "join",
    "join or replan",
    "action",
    "step",
    "words",
    "words or answer",
    "answer",
    "thought and answer",
    "choice",
]


class Grammar(str):
    """A grammar with the name of its form, for models that ignore grammars."""

    form: Form

    def __new__(cls, text: str, form: Form) -> Grammar:
        grammar = super().__new__(cls, text)
        grammar.form = form
        return grammar


# Lengths are bounded, since a small model that can't stop writes until its output limit.
_THOUGHT = "[^\\n#\\[\\]]{1,120}"
_ANSWER = "[^\\n]{1,120}"
_LONGEST_THOUGHT, _LONGEST_ARGUMENT = 120, 160


def plan_grammar(tools: Iterable[str], max_steps: int) -> Grammar:
    """A plan of 1 to `max_steps` steps; step n refers only to steps before it.

    It may end after any step: a turn of a chat ends there, a transcript goes on with a blank line.
    """
    return _plan_grammar(tuple(tools), max_steps)


@lru_cache(maxsize=64)
def _plan_grammar(names: tuple[str, ...], max_steps: int) -> Grammar:
    rules = ["root ::= s1"]
    for number in range(1, max_steps + 1):
        call = _call(names, number)
        more = f"(end | s{number + 1})" if number < max_steps else "end"
        rules.append(f's{number} ::= "Plan: " thought "\\n#E{number} = " {call} ("\\n" {more})?')
        rules.append(f"a{number} ::= {_argument(number)}")
    rules += [f"thought ::= {_THOUGHT}", 'end ::= "\\n"']
    return Grammar("\n".join(rules), "plan")


def _call(tools: tuple[str, ...], number: int) -> str:
    return "(" + " | ".join(f'"{tool}["' for tool in tools) + f') a{number} "]"'


def _argument(number: int) -> str:
    """Text without brackets or a hash sign, and from the second step on references to earlier steps."""
    text = "[^\\n#\\[\\]]"
    if number == 1:
        return f"{text}{{1,160}}"
    earlier = " | ".join(f'"#E{n}"' for n in range(1, number))
    return f"( {text} | {earlier} ){{1,160}}"


def numbered_grammar(tools: Iterable[str], max_steps: int, first: int = 1) -> Grammar:
    """A plan of 1 to `max_steps` numbered tasks and `join()`; a task refers only to tasks before it.

    `first` is the number of its first task: those before it are of earlier plans.
    """
    return _numbered_grammar(tuple(tools), max_steps, first)


@lru_cache(maxsize=64)
def _numbered_grammar(names: tuple[str, ...], max_steps: int, first: int) -> Grammar:
    rules = [f"root ::= s{first}"]
    calls = " | ".join(f'"{name}(\\""' for name in names)
    text = '[^\\n$"\\\\]'
    for number in range(first, first + max_steps):
        join = f'"{number + 1}. join()" end?'
        more = f"( s{number + 1} | {join} )" if number + 1 < first + max_steps else join
        earlier = "".join(f' | "${n}"' for n in range(1, number))
        rules.append(f's{number} ::= "{number}. " ( {calls} ) a{number} "\\")\\n" {more}')
        rules.append(f"a{number} ::= ( {text}{earlier} ){{1,160}}")
    return Grammar("\n".join([*rules, 'end ::= "\\n"']), "numbered plan")


def join_grammar(*, replan: bool) -> Grammar:
    """A thought, and an answer or, where `replan` allows it, what a new plan has to find."""
    either = f'( "Answer: " | "Replan: " ) {_ANSWER}' if replan else f'"Answer: " {_ANSWER}'
    return Grammar(
        f'root ::= "Thought: " [^\\n]{{1,300}} "\\n" {either} "\\n"?', "join or replan" if replan else "join"
    )


def action_grammar(actions: Iterable[str], *, thought: bool = True) -> Grammar:
    """One turn of an agent: a thought where wanted, and an action with one argument."""
    names = " | ".join(f'"{action}["' for action in actions)
    before = '"Thought: " [^\\n]{1,300} "\\n" ' if thought else ""
    text = f'root ::= {before}"Action: " ( {names} ) argument "]"\nargument ::= [^\\n\\[\\]]{{1,160}}'
    return Grammar(text, "action" if thought else "step")


def words_grammar(max_steps: int, *, answer: bool) -> Grammar:
    """`Plan:` and numbered lines in words, or `Answer: …` where that is wanted too."""
    item = "[^\\n]{1,120}"
    rules = [(f'root ::= "Answer: " {_ANSWER} "\\n"? | ' if answer else "root ::= ") + '"Plan:\\n" i1 "\\n"?']
    for number in range(1, max_steps + 1):
        more = f' ("\\n" i{number + 1})?' if number < max_steps else ""
        rules.append(f'i{number} ::= "{number}. " {item}{more}')
    return Grammar("\n".join(rules), "words or answer" if answer else "words")


def answer_grammar(*, thought: bool = False) -> Grammar:
    """`Answer: …` on one line, after a `Thought: …` where wanted.

    The line may end with its line end: a model that goes on with a transcript wants to write that
    next, and where it may not, it writes on instead.
    """
    before = '"Thought: " [^\\n]{1,600} "\\n" ' if thought else ""
    return Grammar(f'root ::= {before}"Answer: " {_ANSWER} "\\n"?', "thought and answer" if thought else "answer")


def choice_grammar(agents: int) -> Grammar:
    """`Agent: ` and a number from 1 to that of the agents."""
    numbers = " | ".join(f'"{number}"' for number in range(1, agents + 1))
    return Grammar(f'root ::= "Agent: " ({numbers}) "\\n"?', "choice")


def plan_schema(tools: Mapping[str, Tool], max_steps: int) -> dict[str, Any]:
    """A plan in the JSON notation, each step with the arguments of its tool.

    The list is in an object, since providers' structured outputs want an object at the root.
    """
    steps = {
        "type": "array",
        "minItems": 1,
        "maxItems": max_steps,
        "items": {"anyOf": [_step(t) for t in tools.values()]},
    }
    shared: dict[str, Any] = {}
    for tool in tools.values():
        shared |= tool.arguments.model_json_schema().get("$defs", {})
    return {
        **({"$defs": shared} if shared else {}),
        "title": "Plan",
        "type": "object",
        "properties": {"steps": steps},
        "required": ["steps"],
        "additionalProperties": False,
    }


def _step(tool: Tool) -> dict[str, Any]:
    arguments = tool.arguments.model_json_schema()
    args = {
        "type": "object",
        "properties": {name: _value(about) for name, about in arguments.get("properties", {}).items()},
        "required": arguments.get("required", []),
        "additionalProperties": False,
    }
    id_ = {"type": "string", "pattern": "^E[1-9][0-9]?$"}
    fields = {
        "id": id_,
        "thought": {"type": "string", "maxLength": _LONGEST_THOUGHT},
        "tool": {"const": tool.name},
        "args": args,
        "depends_on": {"type": "array", "items": id_},
    }
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _value(about: Mapping[str, Any]) -> dict[str, Any]:
    """A field's own schema, or text that names an earlier step."""
    text = {"type": "string", "minLength": 1, "maxLength": _LONGEST_ARGUMENT}
    return text if about.get("type") == "string" else {"anyOf": [dict(about), text]}
