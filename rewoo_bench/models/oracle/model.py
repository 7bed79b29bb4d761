"""The oracle: not a language model, it knows the gold chain and writes replies in every architecture's form.

    oracle                                             a perfect plan, perfect turns, the answer
    oracle?extra_steps=2&wrong_title=0.1&verbosity=1.5  an imperfect one, the same every time

It separates the cost of an architecture from the quality of a model: its tokens are counted with one pinned
tokenizer and are the same on every machine. It follows the question's gold chain (`Example.chain`), and
answers only from the part of it that the prompt shows, else "unknown". Its accuracy says nothing about any
model.

The evaluator gives it each question's gold through `with_gold`; no runner sees it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, takewhile
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.config.names import ORACLE, read_options
from rewoo_bench.config.specs import validated
from rewoo_bench.errors import ModelError, UsageError
from rewoo_bench.models.oracle.gold_plan import (
    CALCULATOR,
    UNKNOWN,
    Evidence,
    GoldCall,
    GoldPlan,
    LookupPath,
    is_calculation,
    shown_numbers,
)
from rewoo_bench.runners.notation.grammars import Grammar
from rewoo_bench.runners.notation.plan_formats import Notation, write_plan
from rewoo_bench.text.prompt_parts import count_prompt
from rewoo_bench.text.tokens import TOKENIZER, count_call, count_tokens
from rewoo_bench.text.words import fold
from rewoo_bench.types import CallCost, Completion, Example, Hop, Message, Model, Request, Tool, ToolCall, Usage

_TOOL = re.compile(r"(?m)^(\w+)(?=\[|\(| \{)")  # as the prompts list them
_INPUT = re.compile(r"\[(.*)\]")
_TASK_INPUT = re.compile(r'(?m)^\d+\. \w+\("(.*)"\)$')  # in the prompts of LLMCompiler's joiner and second planner
_NUMBER_ON = re.compile(r"with numbers from (\d+)\.")
_FINDERS = ("Search", "Wikipedia")
_IN_PLAN = re.compile(rf"(?m)^(?:#E\d+ = |\d+\. ){CALCULATOR}[\[(]")


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

    def seen(self, tools: Sequence[Tool]) -> Evidence:
        """The evidence so far: all text that the oracle didn't write, without the question.

        `tools` are those that the request offers natively. A solver's prompt lists no tools, but the plan that ran.
        """
        shown = [message for message in self.messages[self.start :] if message.role != "assistant"]
        text = "\n".join(message.content for message in shown).replace(self.question, "")
        calculator = (
            CALCULATOR in self.tools or any(tool.name == CALCULATOR for tool in tools) or bool(_IN_PLAN.search(text))
        )
        return Evidence(text, shown_numbers(shown), calculator)

    @property
    def called(self) -> set[str]:
        """The arguments of tool calls so far, folded."""
        found = set()
        for message in self.messages[self.start :]:
            if message.role == "assistant":
                found |= {fold(text) for text in _INPUT.findall(message.content)}
                found |= {fold(str(value)) for call in message.tool_calls for value in call.arguments.values()}
            else:
                found |= {fold(text) for text in _TASK_INPUT.findall(message.content)}
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
    prompt: ParsedPrompt, path: LookupPath, request: Request, verbosity: float, parallel: bool
) -> OracleReply:
    """The next reply along the path. Raises `ModelError` for an unknown form."""
    tools = request.tools
    writer = OracleWriter(prompt, path, verbosity, tools)
    if tools:
        return writer.native(tools, parallel)
    if request.schema:
        return OracleReply(writer.plan("json"))
    grammar = request.grammar
    if request.role == "tool":
        return OracleReply(writer.read() if grammar else writer.summary())
    if not isinstance(grammar, Grammar):
        raise ModelError(
            f"the oracle can't answer this call of {request.role!r}: it knows only the forms of the bundled "
            "architectures. Your own loop needs a language model (local/smollm2-135m), or a ScriptedModel in a test"
        )
    forms = {
        "plan": lambda: writer.plan("text"),
        "numbered plan": lambda: re.sub(r"(?m)^Thought: .*\n", "", writer.plan("numbered")),  # as the exemplars have it
        "join": writer.joined,
        "join or replan": lambda: writer.joined(may_replan=True),
        "action": writer.turn,
        "step": writer.step,
        "words": writer.words,
        "words or answer": lambda: writer.words() if writer.calls else writer.answer(),
        "answer": writer.answer,
        "thought and answer": writer.reasoned,
        "choice": writer.choice,
    }
    return OracleReply(forms[grammar.form]())


class OracleWriter:
    """One reply, in one of the forms."""

    def __init__(self, prompt: ParsedPrompt, path: LookupPath, verbosity: float, tools: Sequence[Tool] = ()) -> None:
        self._prompt = prompt
        self._path = path
        self._verbosity = verbosity
        self._seen = prompt.seen(tools)
        self._finishing = "No turn is left" in prompt.last
        # Without tools the prompt has no evidence, and the answer comes from memory.
        self._from_memory = not self._seen.text.strip().removeprefix("Question:").strip()
        calls = path.next_calls(prompt.called, self._seen)
        self.calls = [call for call in calls if call.tool != CALCULATOR or self._seen.calculator]

    def turn(self) -> str:
        """A turn of ReAct: the next call, or the end."""
        if self._finishing or not self.calls:
            thought, action = (
                "The question can be answered from what was found.",
                f"Finish[{self.answer().removeprefix('Answer: ')}]",
            )
        else:
            call = self.calls[0]
            does = "work out" if call.tool == CALCULATOR else "look at"
            thought = f"I need to {does} {call.argument} to find what the question asks for."
            action = self._action(call)
        return f"Thought: {self._wordy(thought)}\nAction: {action}"

    def native(self, tools: Sequence[Tool], parallel: bool) -> OracleReply:
        """Calls in the provider's form, or the answer in a line."""
        if self._finishing or not self.calls:
            return OracleReply(self.answer())
        calls = []
        for i, call in enumerate(self.calls if parallel else self.calls[:1]):
            names = (CALCULATOR,) if call.tool == CALCULATOR else _FINDERS
            tool = next((tool for tool in tools if tool.name in names), tools[0])
            arguments = {next(iter(tool.arguments.model_fields)): call.argument}
            calls.append(ToolCall(f"call_{len(self._prompt.messages)}_{i}", tool.name, arguments))
        return OracleReply("", tuple(calls))

    def step(self) -> str:
        """The action of plan-and-execute's step."""
        return f"Action: {self._action((*self.calls, GoldCall('Search', self._prompt.question))[0])}"

    def words(self) -> str:
        """The remaining steps in words: those that are possible now, and those that depend on them."""
        possible = [f"{'Work out' if call.tool == CALCULATOR else 'Look up'} {call.argument}." for call in self.calls]
        arguments = {call.argument for call in self.calls}
        waiting = []
        for number, hop in enumerate(self._path.hops):
            argument = self._path.expression(number) if is_calculation(hop) else hop.title
            if hop.foreseen and hop.needs and argument not in arguments and not self._path.found(number, self._seen):
                waiting.append(self._in_words(hop))
        items = [*possible, *filter(None, waiting)] or ["Look up the question."]
        return "Plan:\n" + "\n".join(f"{n}. {self._wordy(item)}" for n, item in enumerate(items[:8], start=1))

    def plan(self, notation: Notation) -> str:
        """Every step that can be foreseen. An LLM step reads the value of a page that a later step needs.

        LLMCompiler's second plan has the steps that are still missing.
        """
        prompt = self._prompt
        match = _NUMBER_ON.search(prompt.last)  # a second plan goes on from there
        first = int(match[1]) if match else 1
        hops = enumerate(self._path.hops)
        known = {n: hop.value for n, hop in hops if self._path.found(n, self._seen)} if first > 1 else {}
        plan = GoldPlan(self._path, prompt.tools, self._search_tool(), self._wordy, known, prompt.called, first)
        return write_plan(plan.plan(prompt.question), notation)

    def read(self) -> str:
        """The value that the LLM tool has to read, if its context shows it."""
        hops = range(len(self._path.hops))
        looked_up = [n for n in hops if self._path.hops[n].value and not is_calculation(self._path.hops[n])]
        wanted = [n for n in looked_up if self._path.sub_question(n) in self._prompt.last]
        shown = [n for n in wanted if self._path.found(n, self._seen)]
        text = fold(self._seen.text)
        on_page = [n for n in shown if f"{fold(self._path.hops[n].title)}:" in text] or shown
        return f"Answer: {self._path.hops[on_page[0]].value if on_page else UNKNOWN}"

    def summary(self) -> str:
        """The sentences with a value of the path, else the first."""
        lines = re.split(r"(?<=[.!?])\s+", self._prompt.last)
        values = [fold(hop.value) for hop in self._path.hops if hop.value]
        kept = [line for line in lines if any(value in fold(line) for value in values)]
        return " ".join(kept or lines[:1])

    def answer(self) -> str:
        known = self._path.example.answers[0] if self._from_memory else self._path.answer(self._seen)
        return f"Answer: {known}"

    def joined(self, *, may_replan: bool = False) -> str:
        """The decision of LLMCompiler's joiner."""
        if may_replan and self.calls:
            thought = self._wordy("A fact that the answer needs is missing.")
            return f"Thought: {thought}\nReplan: {self.calls[0].argument}"
        return f"Thought: {self._wordy('The results tell the answer.')}\n{self.answer()}"

    def reasoned(self) -> str:
        """A chain of thought along the chain, and the answer."""
        facts = [self._fact(number) for number in range(len(self._path.hops))]
        return f"Thought: {self._wordy(' '.join(facts) or 'This is known.')[:600]}\n{self.answer()}"

    def choice(self) -> str:
        """The agent of a router: the first is taken for one that plans ahead, the second for one that adapts."""
        return f"Agent: {1 if all(hop.foreseen for hop in self._path.hops) else 2}"

    def _action(self, call: GoldCall) -> str:
        tool = CALCULATOR if call.tool == CALCULATOR else self._search_tool()
        return f"{tool}[{call.argument}]"

    def _in_words(self, hop: Hop) -> str:
        """A step that has to wait, in words; empty for a calculation without a calculator."""
        if not is_calculation(hop):
            return f"Find {hop.ask or 'what the question asks for'}."
        return f"Work out {hop.ask or 'what the question asks for'}." if self._seen.calculator else ""

    def _fact(self, number: int) -> str:
        hop = self._path.hops[number]
        if is_calculation(hop):
            return f"{hop.ask or 'The next number'} is {self._path.expression(number)} = {hop.value}."
        return f"{hop.ask or 'what is asked'} of {hop.title} is {hop.value or 'known'}."

    def _search_tool(self) -> str:
        return next((name for name in _FINDERS if name in self._prompt.tools), _FINDERS[0])

    def _wordy(self, text: str) -> str:
        """The text, shortened or repeated to `verbosity` times its number of words."""
        if self._verbosity == 1:
            return text
        words = text.split()
        return " ".join(islice(cycle(words), max(1, round(len(words) * self._verbosity))))


class OracleSettings(BaseModel):
    """The options after `oracle?`: deviations from the perfect oracle."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    extra_steps: int = Field(default=0, ge=0)
    """Searches beyond those that are needed; sums, in a chain of nothing but calculations."""
    wrong_title: float = Field(default=0.0, ge=0, le=1)
    """The share of pages that are first searched for under a wrong title; `seed` chooses them."""
    verbosity: float = Field(default=1.0, gt=0)
    """The length of thoughts, as a multiple."""
    parallel: bool = True
    """Whether independent native calls are made in one turn."""
    seed: int = 0


def open_oracle(name: str) -> Oracle:
    """The oracle of that name. Raises `UsageError` for an unknown or invalid option."""
    try:
        options = read_options(name.partition("?")[2])
    except ValueError as error:
        raise UsageError(f"--model: {error}") from None
    return Oracle(validated(OracleSettings, options, f"--model: {name!r}"), name)


@dataclass(frozen=True)
class Oracle:
    """The oracle without a question."""

    settings: OracleSettings = OracleSettings()  # noqa: RUF009 - frozen
    name: str = ORACLE

    def with_gold(self, example: Example) -> Model:
        """The oracle of one question."""
        return _QuestionOracle(example, self.settings, self.name)

    async def complete(self, request: Request) -> Completion:
        """Raises `ModelError`: without a question's gold there is no answer."""
        raise ModelError("the oracle has no gold chain; the evaluator has to give it each question's")

    @property
    def manifest(self) -> dict[str, Any]:
        """The exact description, JSON-ready."""
        return {"name": self.name, **self.settings.model_dump(), "tokenizer": TOKENIZER}


@dataclass
class _QuestionOracle:
    """The oracle of one question. It keeps the requests, to count the tokens that a prefix cache would have."""

    example: Example
    settings: OracleSettings
    name: str
    _sent: list[Sequence[Message]] = field(default_factory=list)

    async def complete(self, request: Request) -> Completion:
        """The next reply along the gold chain, shown line by line. Raises `ModelError` for an unknown form."""
        settings, messages, tools = self.settings, request.messages, request.tools
        path = LookupPath(self.example, settings.extra_steps, settings.wrong_title, settings.seed)
        prompt = ParsedPrompt.read(messages, self.example.question)
        answer = write_reply(prompt, path, request, settings.verbosity, settings.parallel)
        # Tokens that a prefix cache would have: the part before the question, and the part that was sent before. The
        # former is taken to be the same for every question, so that counts don't depend on the order of questions.
        # Whether it is, `shared_run_tokens` of calls.parquet says.
        equal = (takewhile(lambda pair: pair[0] == pair[1], zip(sent, messages, strict=False)) for sent in self._sent)
        known = max([prompt.start, *(sum(1 for _ in pairs) for pairs in equal)])
        usage = Usage(
            input_tokens=count_prompt(messages, tools),
            cached_input_tokens=count_prompt(messages[:known], tools) if known else 0,
            output_tokens=count_tokens(answer.text) + sum(count_call(c.name, c.arguments) for c in answer.calls),
        )
        self._sent.append(list(messages))
        await request.show_lines(answer.text)
        call_cost = CallCost(billed=usage, usage_source="estimated")
        return Completion(answer.text, usage, "tool_calls" if answer.calls else "stop", answer.calls, call_cost)
