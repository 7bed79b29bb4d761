"""The forms of replies, for models that can constrain their decoding: GBNF grammars and a JSON Schema.

They say nothing that the prompt doesn't: they keep a small model in the form that every reader
here expects, for all architectures alike. Format of grammars: llama.cpp, grammars/README.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel

from rewoo_bench.runners.notation.schemas import Part, choices, has_choices, inputs, kinds
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
_MOST_OPTIONAL = 20  # inputs that may be left out of a call
_STEP = "\N{SECTION SIGN}"  # in the names of rules, for the number of a step
_RULE = re.compile(r"(?<![\w\"])(?:str|int|num|flat|near|ref)(?![\w\"])")
_CallForm = tuple[str, str | None]
"""A tool's name, and its named inputs where it takes more than a text."""


def plan_grammar(tools: Iterable[str] | Mapping[str, Tool | None], max_steps: int, first: int = 1) -> Grammar:
    """A plan of 1 to `max_steps` steps; step n refers only to steps before it. `first` is the number of its first step.

    It may end after any step: a turn of a chat ends there, a transcript goes on with a blank line. The inputs of tools
    that take more than a text are named; those of tools that are only names are texts.
    """
    return _plan_grammar("plan", _forms(tools), first, first + max_steps - 1)


def numbered_grammar(tools: Iterable[str] | Mapping[str, Tool | None], max_steps: int, first: int = 1) -> Grammar:
    """A plan of 1 to `max_steps` numbered tasks and `join()`, as `plan_grammar`."""
    return _plan_grammar("numbered plan", _forms(tools), first, first + max_steps - 1)


@lru_cache(maxsize=128)
def _plan_grammar(form: ReplyForm, forms: tuple[_CallForm, ...], first: int, last: int) -> Grammar:
    rules = [f"root ::= s{first}"]
    for number in range(first, last + 1):
        more = f"s{number + 1}" if number < last else ""
        if form == "plan":
            text, sign = "[^\\n#\\[\\]]", "#"  # without brackets
            call = _calls(forms, number, f'(%s) a{number} "]"', ("[", "[", "]"))
            step = f'"Plan: " thought "\\n#E{number} = " {call} ("\\n" {f"(end | {more})" if more else "end"})?'
        else:
            text, sign = '[^\\n$"\\\\]', "$"
            call = _calls(forms, number, f'( %s ) a{number} "\\")\\n"', ('("', "(", ")\n"))
            join = f'"{number + 1}. join()" end?'
            step = f'"{number}. " {call} {f"( {more} | {join} )" if more else join}'
        earlier = [f"#E{n}" if form == "plan" else f"${n}" for n in range(1, number)]
        either = "".join(f' | "{each}"' for each in earlier)
        is_plain = form == "plan" and not earlier
        rules += [f"s{number} ::= {step}", f"a{number} ::= {text if is_plain else f'( {text}{either} )'}{{1,160}}"]
        rules += _values(forms, number, earlier, sign)
    rules += [f"thought ::= {_THOUGHT}"] if form == "plan" else []
    return Grammar("\n".join([*rules, 'end ::= "\\n"']), form)


def _calls(forms: Iterable[_CallForm], number: int, texts: str, brackets: tuple[str, str, str]) -> str:
    """A call in the step `number`: one with a text, where `texts` has the names in the place of `%s`, or with inputs.

    `brackets` are what opens a text, what opens inputs, and what ends them.
    """
    text_opening, opening, closing = brackets
    names = " | ".join(_literal(f"{name}{text_opening}") for name, inputs_ in forms if inputs_ is None)
    calls = [texts.replace("%s", names)] if names else []
    for name, inputs_ in forms:
        if inputs_ is not None:
            values = inputs_ if number > 1 else inputs_.replace(f" | ref{_STEP}", "")  # there is no earlier step
            parts = [_literal(f"{name}{opening}"), values.replace(_STEP, str(number)), _literal(closing)]
            calls.append(" ".join(filter(None, parts)))
    return calls[0] if len(calls) == 1 and names else f"( {' | '.join(calls)} )"


def _forms(tools: Iterable[str] | Mapping[str, Tool | None]) -> tuple[_CallForm, ...]:
    """Each tool's name, with its inputs where it takes more than a text."""
    known = tools if isinstance(tools, Mapping) else {}
    return tuple((name, _named_inputs(tool.arguments) if (tool := known.get(name)) else None) for name in tools)


@lru_cache(maxsize=512)
def _named_inputs(arguments: type[BaseModel]) -> str | None:
    """Inputs by name, the required ones first; None for a single text. A rule's name ends with a sign for its step."""
    about = inputs(arguments)
    if about.is_text:
        return None
    values = [(f"{each.name}=", _value_rule(each.schema), each.required) for each in about]
    return _sequence(values)


def _sequence(values: Sequence[tuple[str, str, bool]]) -> str:
    """Values with commas between them: the required ones, and any of the others, in their order."""
    needed = [f"{_literal(name)} {rule}" for name, rule, required in values if required]
    others = [f"{_literal(name)} {rule}" for name, rule, required in values if not required][:_MOST_OPTIONAL]
    if needed:
        return ' ", " '.join(needed) + "".join(f' (", " {each})?' for each in others)
    starts = [
        each + "".join(f' (", " {later})?' for later in others[number + 1 :]) for number, each in enumerate(others)
    ]
    return f"( {' | '.join(starts)} )?" if starts else ""


def _value_rule(part: Part, depth: int = 3) -> str:
    """A value as JSON, or a reference to an earlier step."""
    if listed := choices(part):
        return f"( {' | '.join(_literal(json.dumps(each, ensure_ascii=False)) for each in listed)} | ref{_STEP} )"
    named = (kinds(part) or set()) - {"null"}
    if len(named) != 1 or not depth or "anyOf" in part or "oneOf" in part:
        return f"json{_STEP}"
    (kind,) = named
    if kind == "array" and (items := part.get("items")):
        each = _value_rule(items, depth - 1)
        return f'( "[" ( {each} (", " {each}){{0,8}} )? "]" | ref{_STEP} )'
    if kind == "object" and (properties := part.get("properties")):
        required = part.get("required", ())
        values = [(f'"{name}": ', _value_rule(each, depth - 1), name in required) for name, each in properties.items()]
        values.sort(key=lambda value: not value[2])
        return f'( "{{" {_sequence(values)} "}}" | ref{_STEP} )'
    rules = {"string": "str", "number": "num", "integer": "int", "boolean": "bool"}
    return f"{rules.get(kind, 'json')}{_STEP}"


def _values(forms: Iterable[_CallForm], number: int, earlier: Sequence[str], sign: str) -> list[str]:
    """The rules of the values in one step; none where no tool needs them."""
    if all(inputs_ is None for _, inputs_ in forms):
        return []
    ref = " | ref" if earlier else ""
    rules = {
        "str": f'"\\"" ( [^"\\\\\\n{sign}] | "\\\\" ["\\\\/bfnrt]{ref} ){{0,160}} "\\""',
        "int": f'"-"? [0-9]{{1,15}}{ref}',
        "num": f'"-"? [0-9]{{1,15}} ("." [0-9]{{1,15}})?{ref}',
        "bool": f'"true" | "false"{ref}',
        "flat": 'str | num | "true" | "false" | "null"',
    }
    for name, inner in (("near", "flat"), ("json", "near")):  # lists and objects, two deep
        pair = f'str ": " {inner}'
        several = f'( {inner} (", " {inner}){{0,8}} )?', f'( {pair} (", " {pair}){{0,8}} )?'
        rules[name] = f'{inner} | "[" {several[0]} "]" | "{{" {several[1]} "}}"'
    if earlier:
        rules["ref"] = " | ".join(map(_literal, earlier))
    return [
        f"{name}{number} ::= " + _RULE.sub(lambda found: f"{found[0]}{number}", rule) for name, rule in rules.items()
    ]


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
    call = _calls(forms, 0, '( %s ) argument "]"', ("[", "[", "]"))
    before = '"Thought: " [^\\n]{1,300} "\\n" ' if thought else ""
    rules = [f'root ::= {before}"Action: " {call}', "argument ::= [^\\n\\[\\]]{1,160}", *_values(forms, 0, [], "")]
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
