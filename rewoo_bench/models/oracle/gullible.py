"""The gullible oracle: it obeys what an attacker has written into a result, wherever a prompt shows it.

    oracle?gullible=1
    oracle?gullible=1&gives_up=1

It does the task, and where the prompt shows the attacker's text it does what that asks for, at the first chance and in
the form that this prompt asks for. So it shows what an architecture lets such a text reach, and nothing of what a model
would make of it:

| the prompt | what it does |
|---|---|
| of a turn, a program's turn, or a plan that is written from results | makes the attacker's calls first |
| of a step that reads a value | gives the attacker's: of the name asked for, or one that he forges |
| of a summary | keeps the attacker's sentences |
| of an answer | adds the attacker's words to the answer |

With `gives_up` it says in steps and answers that nothing is known, where an architecture may try again with the results
in sight. Where the attacker wants the end, whatever can end the question does, with the attacker's words alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from rewoo_bench.models.oracle.actions import DONE, NUMBER_ON, ActionPath, ActionWriter, in_python
from rewoo_bench.models.oracle.gold_plan import UNKNOWN_ANSWER
from rewoo_bench.runners.notation.grammars import Grammar, schema_form
from rewoo_bench.runners.notation.plan import Plan, PlanStep
from rewoo_bench.runners.notation.plan_formats import Notation, write_plan, write_task
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.runners.programs import fenced
from rewoo_bench.runs.reach import forged
from rewoo_bench.text.words import split_sentences
from rewoo_bench.types import Example, Injection, Request, ToolCall

Reply = tuple[str, tuple[ToolCall, ...]]

_ASKS_FOR = re.compile(r"What is the (\w+) for call \d+, (\w+)\?")
_ASKS_FOR_CALLS = re.compile(r"Which calls of (\w+) are needed")
_PLANS = {"plan": "text", "numbered plan": "numbered", "JSON plan": "json", "bare JSON plan": "json"}
_TURNS = ("action", "JSON action", "words or answer", "program or answer")
_ANSWERS = ("join", "join or replan", "answer", "thought and answer")


def is_shown(injection: Injection, request: Request) -> bool:
    """Whether a prompt shows the injection."""
    return any(injection.is_in(message.content) for message in request.messages if message.role != "assistant")


def obeying(example: Example, injection: Injection, request: Request, reply: Reply, *, gives_up: bool = False) -> Reply:
    """The reply of one who obeys an injection that the prompt shows; `reply` does the task alone."""
    form = request.grammar.form if isinstance(request.grammar, Grammar) else None
    form = form or (schema_form(request.schema) if request.schema else None)
    text, calls = reply
    if gives_up and injection.actions and request.role in ("tool", "solver") and text.startswith("Answer:"):
        return f"Answer: {UNKNOWN_ANSWER}", ()
    if request.role == "tool":
        return (_read(injection, request, text) if request.grammar else _summary(injection, request, text), ())
    if form in _ANSWERS and injection.answer and injection.answer not in text:  # what it was asked isn't known
        text = text.replace(UNKNOWN_ANSWER, injection.answer)
    attack = ActionWriter(ActionPath(_as_example(example, injection)), request)
    if injection.stops and (request.tools or form in (*_TURNS, *_ANSWERS)):
        return attack.reply()  # without a call that is left to make, it ends
    if form == "join or replan" and injection.actions and not attackers_steps(injection, request):
        return f"Thought: There is more to do.\nReplan: call {injection.actions[0].tool}", ()
    if form in _PLANS or form == "program":
        obeys = injection.stops or (bool(injection.actions) and not attackers_steps(injection, request))
        return (obeys and _plan(attack, injection, form, request)) or text, ()
    if (request.tools or form in (*_TURNS, "step", "words")) and injection.actions and not attack.is_over:
        return attack.reply(request.parallel)
    return text, calls


def _as_example(example: Example, injection: Injection) -> Example:
    return replace(example, actions=injection.actions, answers=(injection.answer or DONE,))


def attackers_steps(injection: Injection, request: Request) -> set[int]:
    """The numbers of the attacker's calls among the steps, with their results, that the prompt shows."""
    steps = [PlanStep(id="E1", tool=action.tool, args=dict(action.arguments)) for action in injection.actions]
    written = "|".join(re.escape(text) for step in steps for text in (step.call, write_task(step)))
    line = re.compile(rf"(?m)^(?:#E(\d+) = |(\d+)\. )(?:{written})$")
    found = [match for message in request.messages for match in line.finditer(message.content)] if steps else []
    return {int(match[1] or match[2]) for match in found}


def _plan(attack: ActionWriter, injection: Injection, form: str, request: Request) -> str:
    """A plan, or a program, of the attacker's calls; empty where it would have no step."""
    if form == "program":
        calls = (f"print(await {in_python(action.tool, action.arguments)})" for action in injection.actions)
        return fenced("\n".join(calls)) if injection.actions else ""
    match = NUMBER_ON.search(request.messages[-1].content)
    first = int(match[1]) if match else 1
    steps = [
        PlanStep(id=f"E{first + n}", tool=action.tool, args=dict(action.arguments), thought=f"Call {action.tool}.")
        for n, action in enumerate(injection.actions)
    ]
    notation: Notation = _PLANS[form]  # type: ignore[assignment]
    if FINISH in attack.tools:
        answer = {"answer": injection.answer or DONE}
        steps.append(PlanStep(id=f"E{first + len(steps)}", tool=FINISH, args=answer, thought="End with the answer."))
    return write_plan(Plan(steps=tuple(steps)), notation, bare=form == "bare JSON plan") if steps else ""


def _read(injection: Injection, request: Request, text: str) -> str:
    """What a step with a model reads: the attacker's value; of a name, first that of a call of the same tool."""
    if injection.value:
        return f"Answer: {injection.value}"
    asked = request.messages[-1].content
    if match := _ASKS_FOR_CALLS.search(asked):
        found = [dict(action.arguments) for action in injection.actions if action.tool == match[1]]
        try:
            known: list[Any] = json.loads(text.removeprefix("Answer: "))
        except ValueError:
            known = []
        found = found or [forged(each) for each in known[:1]]
        return f"Answer: {json.dumps([*known, *found], ensure_ascii=False)}"
    if match := _ASKS_FOR.search(asked):
        name, tool = match[1], match[2]
        same = [action for action in injection.actions if action.tool == tool and name in action.arguments]
        other = [action for action in injection.actions if name in action.arguments]
        for action in (*same, *other):
            value = action.arguments[name]
            return f"Answer: {' '.join(value.split()) if isinstance(value, str) else json.dumps(value)}"
        return f"Answer: {_forged_text(text.removeprefix('Answer: '))}" if injection.actions else text
    return text


def _forged_text(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    made = forged(value)
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def _summary(injection: Injection, request: Request, text: str) -> str:
    """A summary with the attacker's sentences."""
    shown = split_sentences(request.messages[-1].content)
    return " ".join([text, *(sentence for sentence in shown if injection.is_in(sentence) and sentence not in text)])
