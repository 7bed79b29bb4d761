"""The oracle: not a language model, it knows the gold chain and writes replies in every architecture's form.

    oracle                                             a perfect plan, perfect turns, the answer
    oracle?extra_steps=2&wrong_title=0.1&verbosity=1.5  an imperfect one, the same every time

It separates the cost of an architecture from the quality of a model: its tokens are counted with one pinned
tokenizer and are the same on every machine. It follows the question's gold chain (`Example.chain`), and
answers only from the part of it that the prompt shows, else "unknown". Its accuracy says nothing about any
model. Of a task in a world it follows the gold actions (actions.py).

The evaluator gives it each question's gold through `with_gold`; no runner sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import takewhile
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.config.names import ORACLE_MODEL, read_options
from rewoo_bench.config.specs import validated
from rewoo_bench.errors import ModelError, UsageError
from rewoo_bench.models.oracle.actions import DONE, ActionPath, ActionWriter
from rewoo_bench.models.oracle.forms import Writer, in_text
from rewoo_bench.models.oracle.gold_plan import (
    CALCULATOR,
    UNKNOWN_ANSWER,
    Evidence,
    GoldCall,
    LookupPath,
    gold_plan,
    gold_program,
    is_calculation,
    program_of,
    shown_numbers,
)
from rewoo_bench.models.oracle.gullible import attackers_steps, is_shown, obeying
from rewoo_bench.runners.notation.plan import Plan
from rewoo_bench.runners.notation.plan_formats import Notation, write_plan
from rewoo_bench.runners.notation.quoting import QUOTED, without_marks
from rewoo_bench.runners.notation.schemas import inputs
from rewoo_bench.runners.programs import fenced
from rewoo_bench.text.tokens import TOKENIZER, count_call, count_prompt, count_tokens
from rewoo_bench.text.words import fold
from rewoo_bench.types import CallCost, Completion, Example, Message, Model, Request, ToolCall, Usage

_INPUT = re.compile(r'\[(.*)\]|"args": \{"\w+": "(.*)"\}')
_TASK_INPUT = re.compile(r'(?m)^(?:\d+\. \w+\("(.*)"\)|#E\d+ = \w+\[(.*)\])$')  # in the prompts of later calls
_NUMBER_ON = re.compile(r"(?:with numbers from |beginning with step E)(\d+)\.")
_CALL_INPUT = re.compile(r'\w\(("(?:[^"\\]|\\.)*")\)')  # in a program
_FINDERS = ("Search", "Wikipedia")
_REASONS = ("agent", "planner", "solver")
_IN_PLAN = re.compile(rf"(?m)^(?:#E\d+ = |\d+\. |.*await .*){CALCULATOR}[\[(]")


class OracleWriter(Writer):
    """Writes the next reply to a request along the path to the answer, in the form that the request wants."""

    def __init__(self, path: LookupPath, request: Request, verbosity: float = 1.0, *, tools_fail: bool = False) -> None:
        super().__init__(path.example, request, verbosity)
        self._path = path
        self._tools_fail = tools_fail
        self._search_tool = next((name for name in _FINDERS if name in self.tools), _FINDERS[0])
        self._called = set[str]()  # the arguments of tool calls so far, folded
        for message in request.messages[self.start :]:
            if message.role == "assistant":
                self._called |= {fold(text) for texts in _INPUT.findall(message.content) for text in texts if text}
                self._called |= {fold(json.loads(text)) for text in _CALL_INPUT.findall(message.content)}
                self._called |= {fold(str(value)) for call in message.tool_calls for value in call.arguments.values()}
            else:
                self._called |= {fold(text) for texts in _TASK_INPUT.findall(message.content) for text in texts if text}
        # A solver's prompt lists no tools, but the plan that ran.
        offered = [*self.tools, *(tool.name for tool in request.tools)]
        has_calculator = CALCULATOR in offered or bool(_IN_PLAN.search(self._evidence))
        shown = [message for message in request.messages[self.start :] if message.role != "assistant"]
        self._seen = Evidence(self._evidence, shown_numbers(shown), has_calculator)
        self._found = path.found(self._seen)
        refers = bool(request.tools) and "#1 stands for the result" in self._listed
        calls = (path.calls_of_turn if refers else path.next_calls)(self._called, self._found)
        self._calls = [call for call in calls if call.tool != CALCULATOR or self._seen.calculator]

    @property
    def is_over(self) -> bool:
        return "No turn is left" in self._last or not self._calls

    def _thought(self) -> str:
        if self.is_over:
            return "The question can be answered from what was found."
        does = "work out" if self._calls[0].tool == CALCULATOR else "look at"
        return f"I need to {does} {self._calls[0].argument} to find what the question asks for."

    def _next_call(self) -> tuple[str, str]:
        return self._tool(self._calls[0]), self._calls[0].argument

    def _tool(self, call: GoldCall) -> str:
        return CALCULATOR if call.tool == CALCULATOR else self._search_tool

    def _native_calls(self, parallel: bool) -> tuple[ToolCall, ...]:
        """Calls in the provider's form."""
        calls = []
        tools = self._request.tools
        for i, call in enumerate(self._calls if parallel else self._calls[:1]):
            names = (CALCULATOR,) if call.tool == CALCULATOR else _FINDERS
            tool = next((tool for tool in tools if tool.name in names), tools[0])
            arguments = {each.name: call.argument for each in inputs(tool.arguments).items[:1]}  # some have none
            calls.append(ToolCall(f"call_{len(self._request.messages)}_{i}", tool.name, arguments))
        return tuple(calls)

    def _step(self) -> str:
        """The action of plan-and-execute's step."""
        look_up = self._search_tool, self._path.example.question
        return f"Action: {in_text(*(self._next_call() if self._calls else look_up))}"

    def _items(self) -> list[str]:
        """The steps that are possible now, and those that depend on them."""
        items = [f"{'Work out' if call.tool == CALCULATOR else 'Look up'} {call.argument}." for call in self._calls]
        arguments = {call.argument for call in self._calls}
        for number, hop in enumerate(self._path.hops):
            argument = self._path.expression(number) if is_calculation(hop) else hop.title
            if hop.foreseen and hop.needs and argument not in arguments and not self._found[number]:
                if not is_calculation(hop):
                    items.append(f"Find {hop.ask or 'what the question asks for'}.")
                elif self._seen.calculator:
                    items.append(f"Work out {hop.ask or 'what the question asks for'}.")
        return items[:8] or ["Look up the question."]

    def _plan(self, notation: Notation, bare: bool = False) -> str:
        """Every step that can be foreseen. An LLM step reads the value of a page that a later step needs.

        A second plan has the steps that are still missing.
        """
        match = _NUMBER_ON.search(self._last)  # a second plan goes on from there
        first = int(match[1]) if match else 1
        hops = enumerate(self._path.hops)
        known = {n: hop.value for n, hop in hops if self._found[n]} if first > 1 else {}
        plan, _ = gold_plan(self._path, self.tools, self._search_tool, self._wordy, known, self._called, first)
        if notation == "json":
            plan = Plan(steps=tuple(self._with_fields(step) for step in plan.steps))
        return write_plan(plan, notation, bare=bare)

    def _program(self) -> str:
        """Every step that can be foreseen, and those that a page leads to, as a program."""
        plan, found_by = gold_plan(self._path, self.tools, self._search_tool, self._wordy, {}, self._called, 1)
        program = gold_program(self._path, plan, found_by, self._search_tool, tools_fail=self._tools_fail)
        return fenced(program)

    def _program_turn(self) -> str:
        """A turn of ReAct with programs: the calls that are possible now, or the end."""
        if self.is_over:
            return self._think(self._thought(), self._answer())
        needed = " and ".join(call.argument for call in self._calls)
        thought = self._wordy(f"I need to look at {needed} to find what the question asks for.")
        return f"Thought: {thought[:300]}\n{fenced(program_of(self._calls, self._search_tool))}"

    def _read(self) -> str:
        """The value that the LLM tool has to read, if its context shows it."""
        if self._path.example.question in self._last:
            return self._answer()
        hops, text = self._path.hops, fold(self._seen.text)
        looked_up = [n for n, hop in enumerate(hops) if hop.value and not is_calculation(hop)]
        wanted = [n for n in looked_up if self._path.sub_question(n) in self._last]
        shown = [n for n in wanted if self._found[n]]
        on_page = [n for n in shown if f"{fold(hops[n].title)}:" in text] or shown
        return f"Answer: {hops[on_page[0]].value if on_page else UNKNOWN_ANSWER}"

    def _summary(self) -> str:
        """The sentences with a value of the path, else the first."""
        lines = re.split(r"(?<=[.!?])\s+", self._last)
        values = [fold(hop.value) for hop in self._path.hops if hop.value]
        kept = [line for line in lines if any(value in fold(line) for value in values)]
        return " ".join(kept or lines[:1])

    def _answer(self) -> str:
        is_known = self._from_memory or all(self._found)
        return f"Answer: {self._path.example.answers[0] if is_known else UNKNOWN_ANSWER}"

    def _missing(self) -> tuple[str, str] | None:
        return ("A fact that the answer needs is missing.", self._calls[0].argument) if self._calls else None

    def _reasoned(self) -> str:
        """A chain of thought along the chain, and the answer."""
        facts = [
            f"{hop.ask or 'The next number'} is {self._path.expression(number)} = {hop.value}."
            if is_calculation(hop)
            else f"{hop.ask or 'what is asked'} of {hop.title} is {hop.value or 'known'}."
            for number, hop in enumerate(self._path.hops)
        ]
        return f"Thought: {self._wordy(' '.join(facts) or 'This is known.')[:600]}\n{self._answer()}"

    def _choice(self) -> str:
        """The agent of a router: the first is taken for one that plans ahead, the second for one that adapts."""
        return f"Agent: {1 if all(hop.foreseen for hop in self._path.hops) else 2}"


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
    reasoning: int = Field(default=0, ge=0)
    """Reasoning tokens of every reply of a loop, a planner and a solver: counted and billed, with no text."""
    gullible: float = Field(default=0.0, ge=0, le=1)
    """The share of questions in which it obeys what an attacker has written into a result; `seed` chooses them."""
    gives_up: bool = False
    """Whether it then says that nothing is known, so that an architecture may try again with the results in sight."""
    seed: int = 0

    def obeys(self, example_id: str) -> bool:
        """Whether it obeys in this question."""
        drawn = sha256(f"{self.seed}:{example_id}:gullible".encode()).digest()
        return int.from_bytes(drawn[:8], "big") < self.gullible * 2**64


def open_oracle(name: str) -> Oracle:
    """The oracle of that name. Raises `UsageError` for an unknown or invalid option."""
    try:
        options = read_options(name.partition("?")[2])
    except ValueError as error:
        raise UsageError(f"--model: {error}") from None
    return Oracle(validated(OracleSettings, options, f"--model: {name!r}"), name)


@dataclass
class Oracle:
    """The oracle, of one question if it has an `example`. It keeps the requests, to count what a cache would have."""

    settings: OracleSettings = field(default_factory=OracleSettings)
    name: str = ORACLE_MODEL
    example: Example | None = None
    tools_fail: bool = False
    """Whether the run has tools that raise errors: then its programs catch them."""
    _sent: list[Sequence[Message]] = field(default_factory=list)

    def with_gold(self, example: Example) -> Model:
        """The oracle of one question."""
        return Oracle(self.settings, self.name, example, self.tools_fail)

    @property
    def manifest(self) -> dict[str, Any]:
        """The exact description, JSON-ready."""
        left_out = {
            name for name in ("reasoning", "gullible", "gives_up") if not getattr(self.settings, name)
        }  # as earlier runs
        return {"name": self.name, **self.settings.model_dump(exclude=left_out), "tokenizer": TOKENIZER}

    async def complete(self, request: Request) -> Completion:
        """The next reply along the gold chain, shown line by line.

        Raises `ModelError` for an unknown form, and without a question's gold.
        """
        if self.example is None:
            raise ModelError("the oracle has no gold chain; the evaluator has to give it each question's")
        settings, messages = self.settings, request.messages
        if any(QUOTED in message.content for message in messages):
            plain = [replace(message, content=without_marks(message.content)) for message in messages]
            request = replace(request, messages=plain)
        example, injection = self.example, self.example.injection
        obeys = injection is not None and settings.obeys(example.id) and is_shown(injection, request)
        if obeys and injection is not None and injection.answer:
            own = "" if injection.stops else f"{(example.answers or (DONE,))[0]} "
            example = replace(example, answers=(f"{own}{injection.answer}",))
        writer: Writer
        if example.actions:
            others = attackers_steps(injection, request) if obeys and injection is not None else ()
            writer = ActionWriter(ActionPath(example), request, settings.verbosity, others)
        else:
            path = LookupPath(example, settings.extra_steps, settings.wrong_title, settings.seed)
            writer = OracleWriter(path, request, settings.verbosity, tools_fail=self.tools_fail)
        text, calls = writer.reply(settings.parallel and request.parallel)
        if obeys and injection is not None:
            text, calls = obeying(example, injection, request, (text, calls), gives_up=settings.gives_up)
        # Tokens that a prefix cache would have: the part before the question, and the part that was sent before. The
        # former is taken to be the same for every question, so that counts don't depend on the order of questions.
        # Whether it is, `shared_run_tokens` of calls.parquet says.
        equal = (takewhile(lambda pair: pair[0] == pair[1], zip(sent, messages, strict=False)) for sent in self._sent)
        known = max([writer.start, *(sum(1 for _ in pairs) for pairs in equal)])
        reasoning = settings.reasoning if request.role in _REASONS else 0
        usage = Usage(
            reasoning_tokens=reasoning,
            input_tokens=count_prompt(messages, request.tools),
            cached_input_tokens=count_prompt(messages[:known], request.tools) if known else 0,
            output_tokens=reasoning + count_tokens(text) + sum(count_call(call.name, call.arguments) for call in calls),
        )
        self._sent.append(list(messages))
        await request.show_lines(text)
        call_cost = CallCost(billed=usage, usage_source="estimated")
        return Completion(text, usage, "tool_calls" if calls else "stop", calls, call_cost)
