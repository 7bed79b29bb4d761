"""Direct prompting and chain of thought: one model call, no tools.

Without them a comparison of agents misleads: in the ReWOO paper direct prompting beats both
on TriviaQA. Chain of thought: Wei et al. 2022, arXiv 2201.11903.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from rewoo_bench.events import at_place
from rewoo_bench.runners.notation.grammars import answer_grammar
from rewoo_bench.runners.notation.replies import answer_in, answered, names_answer
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.types import Model, Request, Tool, Trajectory


class SingleCallSettings(BaseModel):
    """The `[settings]` table of a single-call architecture."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thought: bool = False
    """Whether the reply reasons in a `Thought:` before its `Answer:`."""


class SingleCall:
    """Answers from the model's own knowledge."""

    Settings = SingleCallSettings

    def __init__(self, prompts: Prompts, settings: SingleCallSettings | None = None) -> None:
        self.prompts = prompts
        self.settings = settings or SingleCallSettings()
        prompts.fill("answer")  # a wrong placeholder is found before the first question

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question; `tools` are not used."""
        messages = self.prompts.conversation("answer", f"Question: {question}")
        grammar = answer_grammar(thought=self.settings.thought)
        with at_place("answer"):
            completion = await model.complete(Request(messages, role="agent", stop=["\nQuestion:"], grammar=grammar))
        answer = answer_in(completion.text)
        if self.settings.thought and completion.finish_reason == "length" and not names_answer(completion.text):
            answer = ""  # the reasoning was cut before any answer
        final, stop_reason = answered(answer, completion)
        return Trajectory(final, stop_reason, notes={"text": completion.text})
