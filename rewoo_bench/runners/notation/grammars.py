"""The forms of replies, for models that can constrain their decoding: GBNF grammars and a JSON Schema.

They say nothing that the prompt doesn't: they keep a small model in the form that every reader
here expects, for all architectures alike. Format of grammars: llama.cpp, grammars/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel

from rewoo_bench.runners.notation.schemas import Part, has_choices, inputs, kinds
from rewoo_bench.types import Tool

ReplyForm = (
    Literal["plan", "numbered plan", "join", "join or replan", "action", "step"]
    | Literal["words", "words or answer", "answer", "thought and answer", "choice"]
    | Literal["JSON plan", "bare JSON plan", "JSON action"]
    | Literal["program", "program or answer"]
)


class Grammar(str):
    """A grammar with the name of its form, for models that ignore grammars."""

    form: ReplyForm

    def __new__(cls, text: str, form: ReplyForm) -> Grammar:
        grammar = super().__new__(cls, text)
        grammar.form = form
        return grammar


# Lengths are bounded, since a small model that can't stop writes until its output limit.
_THOUGHT = "[^\\n#\\[\\]]{1,120}"
_ANSWER = "[^\\n]{1,120}"
_LONGEST_THOUGHT, _LONGEST_ARGUMENT = 120, 160
_Forms = tuple[tuple[str, bool], ...]
"""The name of each tool, and whether its input is a single text."""


def plan_grammar(tools: Iterable[str] | Mapping[str, Tool | None], max_steps: int, first: int = 1) -> Grammar:
    """A plan of 1 to `max_steps` steps; step n refers only to steps before it. `first` is the number of its first step.

    It may end after any step: a turn of a chat ends there, a transcript goes on with a blank line. What stands in the
    brackets of a tool that takes more than a text is left to the model; tools that are only names take a text.
    """
    return _plan_grammar("plan", _forms(tools), first, first + max_steps - 1)


def numbered_grammar(tools: Iterable[str] | Mapping[str, Tool | None], max_steps: int, first: int = 1) -> Grammar:
    """A plan of 1 to `max_steps` numbered tasks and `join()`, as `plan_grammar`."""
    return _plan_grammar("numbered plan", _forms(tools), first, first + max_steps - 1)


@lru_cache(maxsize=128)
def _plan_grammar(form: ReplyForm, forms: _Forms, first: int, last: int) -> Grammar:
    rules = [f"root ::= s{first}"]
    for number in range(first, last + 1):
        more = f"s{number + 1}" if number < last else ""
        if form == "plan":
            text, sign = "[^\\n#\\[\\]]", "#"  # without brackets
            call = _calls(forms, f'(%s) a{number} "]"', f'(%s) i{number} "]"', ("[", "["))
            step = f'"Plan: " thought "\\n#E{number} = " {call} ("\\n" {f"(end | {more})" if more else "end"})?'
        else:
            text, sign = '[^\\n$"\\\\]', "$"
            call = _calls(forms, f'( %s ) a{number} "\\")\\n"', f'( %s ) i{number} ")\\n"', ('("', "("))
            join = f'"{number + 1}. join()" end?'
            step = f'"{number}. " {call} {f"( {more} | {join} )" if more else join}'
        earlier = [f"#E{n}" if form == "plan" else f"${n}" for n in range(1, number)]
        either = "".join(f' | "{each}"' for each in earlier)
        is_plain = form == "plan" and not earlier
        rules += [f"s{number} ::= {step}", f"a{number} ::= {text if is_plain else f'( {text}{either} )'}{{1,160}}"]
        if not all(is_text for _, is_text in forms):
            rules.append(f"i{number} ::= ( [^\\n{sign}]{either} ){{0,320}}")
    rules += [f"thought ::= {_THOUGHT}"] if form == "plan" else []
    return Grammar("\n".join([*rules, 'end ::= "\\n"']), form)


def _calls(forms: _Forms, texts: str, inputs_: str, openings: tuple[str, str]) -> str:
    """A call with a text or with inputs, each with the names of its tools, and what opens it, in the place of `%s`."""
    calls = []
    for call, opening, of_text in ((texts, openings[0], True), (inputs_, openings[1], False)):
        if names := [_literal(f"{name}{opening}") for name, is_text in forms if is_text is of_text]:
            calls.append(call.replace("%s", " | ".join(names)))
    return calls[0] if len(calls) == 1 else f"( {' | '.join(calls)} )"


def _forms(tools: Iterable[str] | Mapping[str, Tool | None]) -> _Forms:
    known = tools if isinstance(tools, Mapping) else {}
    return tuple((name, not (tool := known.get(name)) or inputs(tool.arguments).is_text) for name in tools)


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def join_grammar(*, replan: bool) -> Grammar:
    """A thought, and an answer or, where `replan` allows it, what a new plan has to find."""
    either = f'( "Answer: " | "Replan: " ) {_ANSWER}' if replan else f'"Answer: " {_ANSWER}'
    return Grammar(
        f'root ::= "Thought: " [^\\n]{{1,300}} "\\n" {either} "\\n"?', "join or replan" if replan else "join"
    )


def action_grammar(actions: Iterable[str] | Mapping[str, Tool | None], *, thought: bool = True) -> Grammar:
    """One turn of an agent: a thought where wanted, and an action with its input or inputs."""
    forms = _forms(actions)
    call = _calls(forms, '( %s ) argument "]"', '( %s ) inputs "]"', ("[", "["))
    before = '"Thought: " [^\\n]{1,300} "\\n" ' if thought else ""
    rules = [f'root ::= {before}"Action: " {call}', "argument ::= [^\\n\\[\\]]{1,160}"]
    rules += [] if all(is_text for _, is_text in forms) else ["inputs ::= [^\\n]{0,320}"]
    return Grammar("\n".join(rules), "action" if thought else "step")


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


def program_grammar(*, answer: bool = False) -> Grammar:
    """A program in a fenced block; where an answer may come in its place, after a thought.

    What is in the lines is left to the model: a grammar of Python would keep nobody from a wrong name.
    """
    rules = [
        r'block ::= "```python\n" line{1,40} "```"',
        r'line ::= [^`\n]{0,160} "\n"',
    ]
    root = f'"Thought: " [^\\n]{{1,300}} "\\n" ( block | "Answer: " {_ANSWER} )' if answer else "block"
    return Grammar("\n".join([f'root ::= {root} "\\n"?', *rules]), "program or answer" if answer else "program")


def choice_grammar(agents: int) -> Grammar:
    """`Agent: ` and a number from 1 to that of the agents."""
    numbers = " | ".join(f'"{number}"' for number in range(1, agents + 1))
    return Grammar(f'root ::= "Agent: " ({numbers}) "\\n"?', "choice")


_PLAN, _BARE_PLAN, _ACTION = "Plan", "BarePlan", "Action"
_STEP_FIELDS = {_PLAN: ("id", "thought", "tool", "args", "depends_on"), _BARE_PLAN: ("id", "tool", "args")}


def plan_schema(tools: Mapping[str, Tool], max_steps: int, *, bare: bool = False) -> dict[str, Any]:
    """A plan in the JSON notation, each step with the arguments of its tool; `bare` without thoughts and `depends_on`.

    The list is in an object, since providers' structured outputs want an object at the root.
    """
    return _json_schema(_BARE_PLAN if bare else _PLAN, _known(tools), max_steps)


def action_schema(tools: Mapping[str, Tool]) -> dict[str, Any]:
    """One action in the JSON notation: a tool and its arguments, as in the step of a plan."""
    return _json_schema(_ACTION, _known(tools), 1)


def schema_form(schema: Mapping[str, Any]) -> ReplyForm | None:
    """The form that a schema of this module describes; None for any other schema."""
    forms: dict[str, ReplyForm] = {_PLAN: "JSON plan", _BARE_PLAN: "bare JSON plan", _ACTION: "JSON action"}
    return forms.get(str(schema.get("title")))


def _known(tools: Mapping[str, Tool]) -> tuple[tuple[str, type[BaseModel]], ...]:
    return tuple((tool.name, tool.arguments) for tool in tools.values())


@lru_cache(maxsize=256)
def _json_schema(title: str, tools: tuple[tuple[str, type[BaseModel]], ...], max_steps: int) -> dict[str, Any]:
    fields = _STEP_FIELDS.get(title, ("tool", "args"))
    steps = {"anyOf": [_step_schema(name, arguments, fields) for name, arguments in tools]}
    listed: dict[str, Any] = {"type": "array", "minItems": 1, "maxItems": max_steps, "items": steps}
    name, value = ("action", steps) if title == _ACTION else ("steps", listed)
    return {
        "title": title,
        "type": "object",
        "properties": {name: value},
        "required": [name],
        "additionalProperties": False,
    }


def _step_schema(tool: str, arguments: type[BaseModel], names: Sequence[str]) -> dict[str, Any]:
    """A step with these fields, and the tool's own schema for its arguments."""
    about = inputs(arguments)
    id_ = {"type": "string", "pattern": "^E[1-9][0-9]?$"}
    fields = {
        "id": id_,
        "thought": {"type": "string", "maxLength": _LONGEST_THOUGHT},
        "tool": {"const": tool},
        "args": {
            "type": "object",
            "properties": {each.name: _input_schema(each.schema) for each in about},
            "required": about.required,
            "additionalProperties": False,
        },
        "depends_on": {"type": "array", "items": id_},
    }
    chosen = {name: fields[name] for name in names}
    return {"type": "object", "properties": chosen, "required": list(chosen), "additionalProperties": False}


def _input_schema(part: Part) -> dict[str, Any]:
    """An input's own schema, or text that names an earlier step."""
    text: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": _LONGEST_ARGUMENT}
    if kinds(part) == {"string"}:
        if not has_choices(part):
            return text
        text = {"type": "string", "pattern": "^[{][{]E[1-9][0-9]?[}][}]$"}
    return {"anyOf": [_for_engines(part), text]}


def _for_engines(part: Part) -> dict[str, Any]:
    """The schema in the keywords that engines of structured output share."""
    made = {key: value for key, value in part.items() if key not in ("pattern", "format", "multipleOf")}
    if "oneOf" in made:  # refused where an engine can't see that its parts differ
        made["anyOf"] = made.pop("oneOf")
    for key in ("anyOf", "prefixItems"):
        if key in made:
            made[key] = [_for_engines(each) for each in made[key]]
    if "properties" in made:
        made["properties"] = {name: _for_engines(each) for name, each in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if made.get(key):
            made[key] = _for_engines(made[key])
    if len(named := made.get("type", ())) == 1:
        (made["type"],) = named
    return made
