"""The LLM tool: a model as a tool, as in the ReWOO paper's plans (`#E2 = LLM[… #E1]`).

Its calls go through the question's meter under the role `tool`, so they are counted with the
rest and can be separated.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from rewoo_bench.notation.grammars import answer_grammar
from rewoo_bench.notation.replies import read_answer
from rewoo_bench.types import Message, Model, Request


class LLMArguments(BaseModel):
    """What is asked of the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str = Field(min_length=1)


class LLM:
    """Asks the question's own model for one fact. Raises `ModelError` where the provider failed."""

    name = "LLM"
    description = "a language model that reads. It answers a question from the text given with it."
    arguments: type[BaseModel] = LLMArguments
    asks_model = True

    def __init__(self, model: Model, instructions: str, max_tokens: int | None = None) -> None:
        self._model = model
        self._instructions = instructions
        self._max_tokens = max_tokens

    async def __call__(self, arguments: LLMArguments) -> str:
        messages = [Message("system", self._instructions), Message("user", f"Question: {arguments.question}")]
        completion = await self._model.complete(
            Request(messages, role="tool", max_tokens=self._max_tokens, stop=["\nQuestion:"], grammar=answer_grammar())
        )
        return read_answer(completion.text)
