"""The forms of a reply, and what of a request says which one is wanted; what they are filled with, a path knows.

`Writer` is filled by `OracleWriter` (model.py) along a chain of look-ups, and by `ActionWriter` (actions.py) along a
task's gold actions.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

from rewoo_bench.errors import ModelError
from rewoo_bench.runners.notation.arguments import write_call
from rewoo_bench.runners.notation.grammars import Grammar, schema_form
from rewoo_bench.runners.notation.plan import PlanStep
from rewoo_bench.runners.notation.plan_formats import Notation, write_action
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.types import Example, Request, ToolCall

_TOOL = re.compile(r"(?m)^(?:async def )?(\w+)(?=\[|\(| \{)")  # as the prompts list them
_FIELD = re.compile(r'(?m)^(\w+) \{"(\w+)"')  # a tool's first input, as prompts list it for JSON


class Writer(ABC):
    """Writes the next reply to a request, in the form that the request wants.

    `request.messages[start:]` are about the question, those before are the same for all: the part about the question
    begins at its last mention, else after the instructions.
    """

    def __init__(self, example: Example, request: Request, verbosity: float = 1.0) -> None:
        messages, question = request.messages, example.question
        mentions = [i for i, m in enumerate(messages) if m.role == "user" and f"Question: {question}" in m.content]
        self.start = mentions[-1] if mentions else sum(message.role == "system" for message in messages)
        self._request = request
        self._verbosity = verbosity
        self._last = messages[-1].content
        self._listed = "\n".join(message.content for message in messages[: self.start] if message.role == "system")
        self.tools = _TOOL.findall(self._listed)
        self._fields = dict(_FIELD.findall(self._listed))
        # The evidence so far: all text that the oracle didn't write, without the question.
        shown = [message.content for message in messages[self.start :] if message.role != "assistant"]
        self._evidence = "\n".join(shown).replace(question, "")
        # Without tools the prompt has no evidence, and the answer comes from memory.
        self._from_memory = not self._evidence.strip().removeprefix("Question:").strip()

    def reply(self, parallel: bool = True) -> tuple[str, tuple[ToolCall, ...]]:
        """Text and native tool calls, several in one turn if `parallel`. Raises `ModelError` for an unknown form."""
        request, grammar = self._request, self._request.grammar
        if request.tools:
            return (self._answer(), ()) if self.is_over else ("", self._native_calls(parallel))
        if request.schema:
            form = schema_form(request.schema)
            if form is None:
                raise self._unknown_form()
            return (self._json_turn() if form == "JSON action" else self._plan("json", form == "bare JSON plan")), ()
        if request.role == "tool":
            return self._read() if grammar else self._summary(), ()
        if not isinstance(grammar, Grammar):
            raise self._unknown_form()
        forms = {
            "plan": lambda: self._plan("text"),
            "numbered plan": lambda: re.sub(r"(?m)^Thought: .*\n", "", self._plan("numbered")),  # as in the exemplars
            "join": self._joined,
            "join or replan": lambda: self._joined(may_replan=True),
            "action": self._turn,
            "step": self._step,
            "words": self._words,
            "words or answer": lambda: self._answer() if self.is_over else self._words(),
            "answer": self._answer,
            "thought and answer": self._reasoned,
            "choice": self._choice,
            "program": self._program,
            "program or answer": self._program_turn,
        }
        return forms[grammar.form](), ()

    def _unknown_form(self) -> ModelError:
        return ModelError(
            f"the oracle can't answer this call of {self._request.role!r}: it knows only the forms of the bundled "
            "architectures. Your own loop needs a language model (local/smollm2-135m), or a ScriptedModel in a test"
        )

    def _with_fields(self, step: PlanStep) -> PlanStep:
        """A step with its input by name."""
        if isinstance(step.args, dict):
            return step
        return step.model_copy(update={"args": {self._fields.get(step.tool, "input"): step.args}})

    def _wordy(self, text: str) -> str:
        """The text, shortened or repeated to `verbosity` times its number of words."""
        if self._verbosity == 1:
            return text
        words = text.split()
        return " ".join(islice(cycle(words), max(1, round(len(words) * self._verbosity))))

    def _think(self, thought: str, then: str) -> str:
        return f"Thought: {self._wordy(thought)}\n{then}"

    @property
    def _next_step(self) -> tuple[str, Any]:
        """The tool and the input of a turn: those of the next call, or of the end."""
        return (FINISH, self._answer().removeprefix("Answer: ")) if self.is_over else self._next_call()

    def _turn(self) -> str:
        """A turn of ReAct."""
        return self._think(self._thought(), f"Action: {in_text(*self._next_step)}")

    def _json_turn(self) -> str:
        tool, args = self._next_step
        return write_action(self._with_fields(PlanStep(id="E1", tool=tool, args=args)))

    def _joined(self, *, may_replan: bool = False) -> str:
        """The decision of LLMCompiler's joiner."""
        if may_replan and (missing := self._missing()):
            return self._think(missing[0], f"Replan: {missing[1]}")
        return self._think("The results tell the answer.", self._answer())

    def _words(self) -> str:
        """The remaining steps in words."""
        return "Plan:\n" + "\n".join(f"{n}. {self._wordy(item)}" for n, item in enumerate(self._items(), start=1))

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether the loop has only its answer left."""

    @abstractmethod
    def _thought(self) -> str:
        """The thought of a turn, before `_next_step`."""

    @abstractmethod
    def _next_call(self) -> tuple[str, Any]:
        """The tool and the input of the next call."""

    @abstractmethod
    def _missing(self) -> tuple[str, str] | None:
        """Why another plan is needed, and for what."""

    @abstractmethod
    def _items(self) -> Sequence[str]:
        """The remaining steps."""

    @abstractmethod
    def _native_calls(self, parallel: bool) -> tuple[ToolCall, ...]: ...

    @abstractmethod
    def _plan(self, notation: Notation, bare: bool = False) -> str: ...

    @abstractmethod
    def _step(self) -> str: ...

    @abstractmethod
    def _program(self) -> str: ...

    @abstractmethod
    def _program_turn(self) -> str: ...

    @abstractmethod
    def _read(self) -> str: ...

    @abstractmethod
    def _summary(self) -> str: ...

    @abstractmethod
    def _answer(self) -> str: ...

    @abstractmethod
    def _reasoned(self) -> str: ...

    @abstractmethod
    def _choice(self) -> str: ...


def in_text(tool: str, args: Any) -> str:
    """A call as text: `Search[Kyiv]`."""
    return f"{tool}[{write_call(args) if args and isinstance(args, dict) else args or ''}]"
