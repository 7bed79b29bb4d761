"""What a model may write, as GBNF grammars for models that can constrain their decoding.

A grammar says nothing that the prompt doesn't: it keeps a small model in the form that every
reader here expects, for all architectures alike. Format: llama.cpp, grammars/README.md.
"""

from __future__ import annotations

from collections.abc import Iterable

# Lengths are bounded, since a small model that can't stop writes until its output limit.
_THOUGHT = "[^\\n#\\[\\]]{1,120}"
_ANSWER = "[^\\n]{1,120}"


def plan_grammar(tools: Iterable[str], max_steps: int) -> str:
    """A plan of 1 to `max_steps` steps; step n refers only to steps before it.

    It may end after any step: a turn of a chat ends there, a transcript goes on with a blank line.
    """
    names = list(tools)
    rules = ["root ::= s1"]
    for number in range(1, max_steps + 1):
        call = _call(names, number)
        more = f"(end | s{number + 1})" if number < max_steps else "end"
        rules.append(f's{number} ::= "Plan: " thought "\\n#E{number} = " {call} ("\\n" {more})?')
        rules.append(f"a{number} ::= {_argument(number)}")
    rules += [f"thought ::= {_THOUGHT}", 'end ::= "\\n"']
    return "\n".join(rules)


def _call(tools: list[str], number: int) -> str:
    return "(" + " | ".join(f'"{tool}["' for tool in tools) + f') a{number} "]"'


def _argument(number: int) -> str:
    """Text without brackets or a hash sign, and from the second step on references to earlier steps."""
    text = "[^\\n#\\[\\]]"
    if number == 1:
        return f"{text}{{1,160}}"
    earlier = " | ".join(f'"#E{n}"' for n in range(1, number))
    return f"( {text} | {earlier} ){{1,160}}"


def action_grammar(actions: Iterable[str]) -> str:
    """One ReAct turn: a thought, and an action with one argument."""
    names = " | ".join(f'"{action}["' for action in actions)
    return (
        f'root ::= "Thought: " thought "\\nAction: " ( {names} ) argument "]"\n'
        f"thought ::= [^\\n]{{1,300}}\n"
        f"argument ::= [^\\n\\[\\]]{{1,160}}"
    )


def answer_grammar(*, thought: bool = False) -> str:
    """`Answer: …` on one line, after a `Thought: …` where wanted."""
    before = '"Thought: " [^\\n]{1,600} "\\n" ' if thought else ""
    return f'root ::= {before}"Answer: " {_ANSWER}'
