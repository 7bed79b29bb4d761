"""ReAct whose actions are programs, as CodeAct has them: Wang et al. 2024, arXiv 2402.01030.

    Thought: …
    ```python
    page = await Search("Kyiv")
    print(page)
    ```
    Output: …

A turn is a program, and its printed output is what the model sees next. Variables live on within a question. A turn
with `Answer: …` in the place of a program ends it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from pydantic import Field

from rewoo_bench.events import at_place, emit
from rewoo_bench.runners.notation.grammars import answer_grammar, program_grammar
from rewoo_bench.runners.notation.replies import answer_in, answered, names_answer
from rewoo_bench.runners.notation.tools import describe_functions
from rewoo_bench.runners.program_calls import ProgramTools
from rewoo_bench.runners.programs import Programs, fenced, read_turn
from rewoo_bench.runners.prompts import EvidenceBudget, Prompts, checked_prompts
from rewoo_bench.runners.react import NUDGE, RepeatGuard, longest_path
from rewoo_bench.runners.rewoo_code import ProgramSettings
from rewoo_bench.text.loops import AT_LIMIT, first_repetition
from rewoo_bench.types import Hop, Message, Model, Request, StopReason, Tool, Trajectory

_STOP = ["\nOutput:"]
_UNREADABLE = "No program found. Write one in a block that begins with ```python, or a line 'Answer: '."
_NOTHING = "Nothing was printed."


class ReActCodeSettings(ProgramSettings):
    """The `[settings]` table of a ReAct architecture with programs."""

    max_steps: int = Field(default=8, ge=1)
    """Turns, repair turns included."""
    max_calls: int = Field(default=30, ge=1)
    """Tool calls of a question; one that needs more ends as `step_limit`."""
    max_repairs: int = Field(default=1, ge=0)
    """Turns with neither a program nor an answer that the model may repair; the next one ends the question."""
    answer_at_limit: bool = False
    """Asks for the best answer after the last turn, in one more call; the row says `step_limit` all the same."""
    repeat_guard: RepeatGuard = "none"
    """Once the turns so far end in a loop: nothing, a `nudge` that says so once, or the end of the question."""


class ReActCode:
    """One model call and one program a turn, each with the trace so far."""

    Settings = ReActCodeSettings

    def __init__(self, prompts: Prompts, settings: ReActCodeSettings | None = None) -> None:
        self.settings = settings or ReActCodeSettings()
        self.max_steps = self.settings.max_steps
        self.programs = Programs(self.settings.timeout_s, self.settings.memory_mb)
        self.prompts = checked_prompts(prompts, self.settings, {"agent": ("tools", "max_steps")}, ["agent"])

    async def connect(self, stack: AsyncExitStack) -> None:
        """The processes that run programs serve all questions of a run, and end with `stack`."""
        await self.programs.connect(stack)

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """A turn for all hops that need no other, one for those that need only these, and so on; one for the answer."""
        return 1 + longest_path(chain)

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question in at most `max_steps` turns; after them it ends as `step_limit`."""
        settings = self.settings
        budget = EvidenceBudget(settings.shorten, model, self.prompts, quote=settings.quote_evidence)
        called = ProgramTools(tools, budget, slot_tokens=settings.slot_tokens, max_calls=settings.max_calls)
        turns: list[dict[str, str]] = []
        messages = self.prompts.conversation(
            "agent", f"Question: {question}", tools=describe_functions(tools), max_steps=self.max_steps
        )

        def end(answer: str | None, stop_reason: StopReason) -> Trajectory:
            emit("answered", answer=answer)
            partial = stop_reason == "step_limit" and answer is not None
            notes: dict[str, Any] = {"turns": turns, "partial_answer": partial, "cuts": budget.cuts}
            return Trajectory(answer, stop_reason, called.steps, notes=notes)

        done: list[tuple[str, str]] = []  # of each turn the program and its output
        repairs, is_nudged = 0, False
        async with self.programs.session(called) as session:
            for turn in range(1, settings.max_steps + 1):
                with at_place(f"turn {turn}"):
                    completion = await model.complete(
                        Request(messages, role="agent", stop=_STOP, grammar=program_grammar(answer=True))
                    )
                    text = completion.text.strip()
                    thought, program = read_turn(text)
                    if program is None and names_answer(text):
                        turns.append({"text": text})
                        return end(*answered(answer_in(text), completion))
                    if program is None:
                        turns.append({"text": text, "output": _UNREADABLE})
                        if repairs == settings.max_repairs:
                            return end(None, "unparsable")
                        repairs += 1
                        messages += [Message("assistant", text), Message("user", f"Output:\n{_UNREADABLE}")]
                        continue
                    called.thought = thought
                    outcome = await session.run(program, f"turn {turn}")
                    seen = await budget.shortened(
                        f"turn {turn}", outcome.shown or _NOTHING, query=question, max_tokens=settings.map_tokens
                    )
                turns.append({"text": text, "output": outcome.output, "fault": outcome.fault})
                done.append((program, seen))
                seen = budget.shown(seen)
                is_repeated = first_repetition(done) is not None
                if is_repeated and settings.repeat_guard == "stop":
                    return end(None, "repeated")
                if is_repeated and settings.repeat_guard == "nudge" and not is_nudged:
                    is_nudged = True
                    seen += NUDGE
                said = f"Thought: {thought}\n{fenced(program)}" if thought else fenced(program)
                messages += [Message("assistant", said), Message("user", f"Output:\n{seen}")]
                if outcome.is_over:
                    break
        if not settings.answer_at_limit:
            return end(None, "step_limit")
        asked = f"{messages.pop().content}\nNo turn is left. Write a line 'Answer: ' with the best answer there is."
        messages.append(Message("user", asked))
        with at_place(AT_LIMIT):
            completion = await model.complete(Request(messages, role="agent", stop=_STOP, grammar=answer_grammar()))
        return end(answer_in(completion.text) or None, "step_limit")
