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

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.config.specs import validated
from rewoo_bench.errors import ModelError, UsageError
from rewoo_bench.model_names import ORACLE, read_options
from rewoo_bench.models.oracle.lookup_path import LookupPath
from rewoo_bench.models.oracle.replies import OracleReply, ParsedPrompt, write_reply
from rewoo_bench.text.prompt_parts import count_prompt
from rewoo_bench.text.tokens import TOKENIZER, count_call, count_tokens
from rewoo_bench.types import CallCost, Completion, Example, Message, Model, Request, Tool, Usage


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
        usage = Usage(
            input_tokens=count_prompt(messages, tools),
            cached_input_tokens=self._cached(messages, prompt, tools),
            output_tokens=_count_reply(answer),
        )
        self._sent.append(list(messages))
        await request.show_lines(answer.text)
        call_cost = CallCost(billed=usage, usage_source="estimated")
        return Completion(answer.text, usage, "tool_calls" if answer.calls else "stop", answer.calls, call_cost)

    def _cached(self, messages: Sequence[Message], prompt: ParsedPrompt, tools: Sequence[Tool]) -> int:
        """Tokens that a prefix cache would have: the part before the question, and the part that was sent before.

        The former is taken to be the same for every question, so that counts don't depend on the order of questions.
        Whether it is, `shared_run_tokens` of calls.parquet says.
        """
        known = max([prompt.start, *(_shared(before, messages) for before in self._sent)])
        return count_prompt(messages[:known], tools) if known else 0


def _count_reply(answer: OracleReply) -> int:
    return count_tokens(answer.text) + sum(count_call(call.name, call.arguments) for call in answer.calls)


def _shared(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Number of equal messages at the beginning."""
    same = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            break
        same += 1
    return same
