"""The oracle's replies: the next part of the lookup path, in the form that the prompt asks for.

form                  caller                       reply
plan, JSON schema     planner of ReWOO             every step that can be foreseen
action, tools         ReAct, native ReAct          the next search, or the answer
words, step           plan and execute             the steps left, and the first as an action
answer                solver, LLM tool, direct     the value that the prompt shows
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from rewoo_bench.errors import ModelError
from rewoo_bench.models.oracle.lookup_path import UNKNOWN, LookupPath
from rewoo_bench.notation.grammars import Grammar
from rewoo_bench.notation.plan import Plan, PlanStep
from rewoo_bench.notation.plan_formats import Notation, write_plan
from rewoo_bench.text.words import fold
from rewoo_bench.types import CompletionOptions, Message, Tool, ToolCall

_TOOL = re.compile(r"(?m)^(\w+)(?=\[| \{)")  # as the prompts list them
_INPUT = re.compile(r"\[(.*)\]")
_FINDERS = ("Search", "Wikipedia")
_READER = "LLM"


@dataclass(frozen=True, slots=True)
class OracleReply:
    """A completion before it is counted."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """A prompt in its parts: `messages[start:]` are about the question, those before are the same for all."""

    messages: tuple[Message, ...]
    start: int
    question: str

    @classmethod
    def read(cls, messages: Sequence[Message], question: str) -> ParsedPrompt:
        """The part about the question begins at its last mention, else after the instructions."""
        mentions = [i for i, m in enumerate(messages) if m.role == "user" and f"Question: {question}" in m.content]
        instructions = sum(message.role == "system" for message in messages)
        return cls(tuple(messages), mentions[-1] if mentions else instructions, question)

    @property
    def seen(self) -> str:
        """The evidence so far: all text that the oracle didn't write, without the question."""
        shown = [message.content for message in self.messages[self.start :] if message.role != "assistant"]
        return "\n".join(shown).replace(self.question, "")

    @property
    def queries(self) -> set[str]:
        """The arguments of tool calls so far, folded."""
        found = set()
        for message in self.messages[self.start :]:
            if message.role == "assistant":
                found |= {fold(text) for text in _INPUT.findall(message.content)}
                found |= {fold(str(value)) for call in message.tool_calls for value in call.arguments.values()}
        return found

    @property
    def tools(self) -> list[str]:
        """Names of the tools that the prompt lists."""
        listed = "\n".join(message.content for message in self.messages[: self.start] if message.role == "system")
        return _TOOL.findall(listed)

    @property
    def last(self) -> str:
        return self.messages[-1].content


def write_reply(
    prompt: ParsedPrompt, path: LookupPath, options: CompletionOptions, verbosity: float, parallel: bool
) -> OracleReply:
    """The next reply along the path. Raises `ModelError` for an unknown form."""
    writer = OracleWriter(prompt, path, verbosity)
    if tools := options.get("tools"):
        return writer.native(tools, parallel)
    if options.get("schema"):
        return OracleReply(writer.plan("json"))
    grammar = options.get("grammar")
    if options["role"] == "tool":
        return OracleReply(writer.read() if grammar else writer.summary())
    if not isinstance(grammar, Grammar):
        raise ModelError(
            f"the oracle can't answer this call of {options['role']!r}: it knows only the forms of the bundled "
            "architectures. Your own loop needs a language model (local/smollm2-135m), or a ScriptedModel in a test"
        )
    forms = {
        "plan": lambda: writer.plan("text"),
        "action": writer.turn,
        "step": writer.step,
        "words": writer.words,
        "words or answer": lambda: writer.words() if writer.queries else writer.answer(),
        "answer": writer.answer,
        "thought and answer": writer.reasoned,
    }
    return OracleReply(forms[grammar.form]())


class OracleWriter:
    """One reply, in one of the forms."""

    def __init__(self, prompt: ParsedPrompt, path: LookupPath, verbosity: float) -> None:
        self._prompt = prompt
        self._path = path
        self._verbosity = verbosity
        self._seen = prompt.seen
        # Without tools the prompt has no evidence, and the answer comes from memory.
        self._from_memory = not prompt.seen.strip().removeprefix("Question:").strip()
        self.queries = path.next_queries(prompt.queries, self._seen)

    def turn(self) -> str:
        """A turn of ReAct: the next search, or the end."""
        finishing = self._finishing()
        if finishing or not self.queries:
            thought, action = "The question can be answered from what was found.", f"Finish[{self._known_answer()}]"
        else:
            query = self.queries[0]
            thought = f"I need to look at {query} to find what the question asks for."
            action = f"{self._search_tool()}[{query}]"
        return f"Thought: {self._wordy(thought)}\nAction: {action}"

    def native(self, tools: Sequence[Tool], parallel: bool) -> OracleReply:
        """Calls in the provider's form, or the answer in a line."""
        if self._finishing() or not self.queries:
            return OracleReply(f"Answer: {self._known_answer()}")
        search_tool = next((tool for tool in tools if tool.name in _FINDERS), tools[0])
        argument = next(iter(search_tool.arguments.model_fields))
        queries = self.queries if parallel else self.queries[:1]
        taken = len(self._prompt.messages)
        return OracleReply(
            "", tuple(ToolCall(f"call_{taken}_{i}", search_tool.name, {argument: q}) for i, q in enumerate(queries))
        )

    def step(self) -> str:
        """The action of plan-and-execute's step."""
        return f"Action: {self._search_tool()}[{self.queries[0] if self.queries else self._prompt.question}]"

    def words(self) -> str:
        """The remaining steps in words: lookups that are possible now, and those that depend on them."""
        waiting = [
            f"Find {hop.ask or 'what the question asks for'}."
            for number, hop in enumerate(self._path.hops)
            if hop.foreseen and hop.needs and not self._path.found(number, self._seen) and hop.title not in self.queries
        ]
        items = [*(f"Look up {query}." for query in self.queries), *waiting] or ["Look up the question."]
        return "Plan:\n" + "\n".join(f"{n}. {self._wordy(item)}" for n, item in enumerate(items[:8], start=1))

    def plan(self, notation: Notation) -> str:
        """Every step that can be foreseen. An LLM step reads the title of a page that isn't known yet."""
        steps: list[PlanStep] = []
        searched: dict[int, str] = {}
        read: dict[int, str] = {}

        def add(tool: str, args: str, thought: str) -> str:
            steps.append(PlanStep(id=f"E{len(steps) + 1}", tool=tool, args=args, thought=self._wordy(thought)))
            return steps[-1].id

        for number, hop in enumerate(self._path.hops):
            if not hop.foreseen or not set(hop.needs) <= searched.keys():
                continue
            query = self._path.query(number)
            if hop.needs and not self._path.wrong(number):
                source = self._names(number)
                if source not in read and _READER in self._prompt.tools:
                    request = f"{self._path.sub_question(source)} Context: #{searched[source]}"
                    read[source] = add(_READER, request, "Read from that page what leads on.")
                query = f"#{read.get(source, searched[source])}"
            searched[number] = add(self._search_tool(), query, f"Find {hop.ask or 'the page that the question needs'}.")
        for query in self._path.extras:
            add(self._search_tool(), query, "Look at one more page to be sure.")
        if not steps:
            add(self._search_tool(), self._prompt.question[:100], "Look for the question itself.")
        return write_plan(Plan(steps=tuple(steps)), notation)

    def read(self) -> str:
        """The value that the LLM tool has to read, if its context shows it."""
        hops = range(len(self._path.hops))
        wanted = [n for n in hops if self._path.sub_question(n) in self._prompt.last and self._path.hops[n].value]
        shown = [n for n in wanted if self._path.found(n, self._seen)]
        on_page = [n for n in shown if f"{fold(self._path.hops[n].title)}:" in fold(self._seen)] or shown
        return f"Answer: {self._path.hops[on_page[0]].value if on_page else UNKNOWN}"

    def summary(self) -> str:
        """The sentences with a value of the path, else the first."""
        lines = re.split(r"(?<=[.!?])\s+", self._prompt.last)
        values = [fold(hop.value) for hop in self._path.hops if hop.value]
        kept = [line for line in lines if any(value in fold(line) for value in values)]
        return " ".join(kept or lines[:1])

    def answer(self) -> str:
        return f"Answer: {self._known_answer()}"

    def reasoned(self) -> str:
        """A chain of thought along the chain, and the answer."""
        facts = [f"{hop.ask or 'what is asked'} of {hop.title} is {hop.value or 'known'}." for hop in self._path.hops]
        return f"Thought: {self._wordy(' '.join(facts) or 'This is known.')[:600]}\n{self.answer()}"

    def _known_answer(self) -> str:
        return self._path.example.answers[0] if self._from_memory else self._path.answer(self._seen)

    def _finishing(self) -> bool:
        """Whether the prompt says that no turn is left."""
        return "No turn is left" in self._prompt.last

    def _search_tool(self) -> str:
        return next((name for name in _FINDERS if name in self._prompt.tools), _FINDERS[0])

    def _names(self, number: int) -> int:
        """The earlier hop with the name of this hop's page as its value."""
        hop = self._path.hops[number]
        named = [need for need in hop.needs if fold(self._path.hops[need].value) in fold(hop.title)]
        return (named or list(hop.needs))[0]

    def _wordy(self, text: str) -> str:
        """The text, shortened or repeated to `verbosity` times its number of words."""
        words = text.split()
        return (
            text
            if self._verbosity == 1
            else " ".join(islice(cycle(words), max(1, round(len(words) * self._verbosity))))
        )
