"""ReAct with the provider's own tool calls, the form that hosted agents have today.

assistant  (calls Search {"query": "Oslo"}, Search {"query": "Bergen"})
tool       Oslo: …
tool       Bergen: …
assistant  Answer: Oslo

The calls of one turn run at once; their results go back in the order of the calls. A reply
without a call is the answer. The loop is that of Yao et al. 2022, arXiv 2210.03629, without the
written thoughts.

With `references` a call may use the results of others of its turn, so that what can be passed on unread takes no turn:

assistant  (calls geocode {"city": "Oslo"}, weather {"place": "#1"})

With `parallel` off there is one call a turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from pydantic import model_validator

from rewoo_bench.events import at_place
from rewoo_bench.runners.notation.arguments import Arguments, map_strings, show_call
from rewoo_bench.runners.notation.plan import in_state_order
from rewoo_bench.runners.notation.plan import references as named_in
from rewoo_bench.runners.notation.replies import answer_in, answered, names_answer
from rewoo_bench.runners.react import ReActLoop, ReActSettings, ReActTurns, longest_path
from rewoo_bench.system.concurrency import in_order
from rewoo_bench.text.loops import AT_LIMIT
from rewoo_bench.text.model_output import decode
from rewoo_bench.types import Hop, Message, Model, Request, Step, Tool, ToolCall, Trajectory

_MOST_BRACES = 100  # looked at in a reply
_NAME = re.compile(r'"name"\s*:')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:')
_NOTHING = "That was neither a tool call nor an answer. Call a tool, or reply with one line 'Answer: …'."
_LAST = "No turn is left. Reply with one line 'Answer: …' and the best answer there is."
_SEVERAL = "calls that don't need each other's results go in one turn, so that they run at once"
_ONE = "make one call a turn"
_WITH_REFERENCES = (
    "calls go in one turn, unless you have to read a result before you can write the next one. "
    "In any argument #1 stands for the result of the first call of the same turn, #2 for that of the second"
)
_REFERENCE = re.compile(r"#(\d{1,3})(?![\d\w])", re.ASCII)


class NativeReActSettings(ReActSettings):
    """The `[settings]` table of a ReAct architecture with the provider's tool calls."""

    parallel: bool = True
    """Whether a turn may have several calls; else the provider is asked for one, and of several the first is made."""
    references: bool = False
    """Whether a call may use the result of another one of its turn, as `#1` in any argument."""

    @model_validator(mode="after")
    def _several_calls(self) -> NativeReActSettings:
        if self.references and not self.parallel:
            raise ValueError("references=true needs several calls a turn: leave out parallel=no")
        return self


class NativeReAct(ReActLoop):
    """One model call a turn, with tools as the provider's API has them."""

    Settings = NativeReActSettings
    settings: NativeReActSettings
    placeholders = ("max_steps", "calls")
    notation = "json"

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question in at most `max_steps` turns; after them it ends as `step_limit`."""
        turns, settings = ReActTurns(self, model, tools), self.settings
        calls_in_words = _WITH_REFERENCES if settings.references else _SEVERAL if settings.parallel else _ONE
        messages = self.prompts.conversation(
            "agent", f"Question: {question}", max_steps=self.max_steps, calls=calls_in_words
        )
        repairs = 0
        for turn in range(1, settings.max_steps + 1):
            with at_place(f"turn {turn}"):
                completion = await model.complete(
                    Request(messages, role="agent", tools=list(tools.values()), parallel=settings.parallel)
                )
                calls = completion.tool_calls or written_calls(completion.text, tools, len(turns.steps))
                calls = calls if settings.parallel else calls[:1]
                if not calls:
                    answer = read_final(completion.text)
                    if answer or completion.finish_reason == "length" or repairs == settings.max_repairs:
                        return turns.end(*answered(answer, completion))
                    repairs += 1
                    turns.add(turn, Step(str(turn), observation=_NOTHING, failed=True))
                    messages.append(Message("user", _NOTHING))
                    continue
                steps = await _act_at_once(turn, calls, turns, references=settings.references)
            text = completion.text if completion.tool_calls else ""
            seen = turns.add(turn, *steps)
            if turns.is_stopped:
                return turns.end(None, "repeated")
            results = [Message("tool", each, tool_call_id=call.id) for call, each in zip(calls, seen, strict=True)]
            messages += [Message("assistant", text, tool_calls=calls), *results]
        if not settings.answer_at_limit:
            return turns.end(None, "step_limit")
        messages.append(Message("user", _LAST))
        with at_place(AT_LIMIT):  # the tools go along, since some providers refuse a trace of tool calls without them
            completion = await model.complete(Request(messages, role="agent", tools=list(tools.values())))
        return turns.end(read_final(completion.text) or None, "step_limit")

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """A turn for each hop of the longest path, since independent hops share a turn, and one for the answer.

        With references a hop shares the turn of those whose whole results it takes. Without `parallel` none share one.
        """
        if not self.settings.parallel:
            return super().steps_needed(chain)
        return longest_path(chain, passes_on=self.settings.references) + 1


def written_calls(text: str, tools: Mapping[str, Tool], first: int = 0) -> tuple[ToolCall, ...]:
    """Calls that a model wrote into its reply as JSON, where its server didn't take them for calls.

    Small models trained on tool calls often leave out the marks that a server looks for, or write one
    brace too many: `{"name": "Search", "arguments": {"query": "Oslo"}}`, one or several, alone or in a
    list. Only known tools count, and only arguments that are valid (model_output.py). Ids are numbered from `first`.
    """
    calls: list[ToolCall] = []
    end = 0
    for brace in islice(re.finditer("{", text), _MOST_BRACES):
        if brace.start() < end:
            continue  # inside the last object
        with suppress(ValueError):
            item, end = decode(text, brace.start())
            name, given = item.get("name"), item.get("arguments", item.get("parameters"))
            if isinstance(name, str) and name in tools and isinstance(given, dict):
                calls.append(ToolCall(f"written_{first + len(calls)}", name, given))
    return tuple(calls)


def read_final(text: str) -> str:
    """The answer in a reply; a call that can't be read is none."""
    name = _NAME.search(text)
    is_like_a_call = name is not None and _ARGUMENTS.search(text, name.end()) is not None
    return "" if is_like_a_call and not names_answer(text) else answer_in(text)


async def _act_at_once(
    turn: int, calls: Sequence[ToolCall], turns: ReActTurns, *, references: bool = False
) -> list[Step]:
    """A step for each call, in the order of the calls; with `references` each runs after those that it uses."""
    steps: dict[str, Step] = {}
    numbered = {f"E{number}": call for number, call in enumerate(calls, start=1)}
    arguments: dict[str, dict[str, Any]] = {id_: dict(call.arguments) for id_, call in numbered.items()}
    needs: dict[str, set[str]] = {id_: set() for id_ in numbered}
    if references and len(calls) > 1:
        arguments = {
            id_: map_strings(given, lambda text: _REFERENCE.sub(r"{{E\1}}", text)) for id_, given in arguments.items()
        }
        needs = {id_: set(named_in(given)) for id_, given in arguments.items()}
    faults = {id_: fault for id_, needed in needs.items() if (fault := _fault(id_, needed))}

    async def act(id_: str) -> None:
        number, fault = id_.removeprefix("E"), faults.get(id_, "")
        given: Arguments = dict(numbered[id_].arguments)
        if not fault:
            known = {need: steps[need] for need in needs[id_]}
            results = {need: step.observation for need, step in known.items()}
            given = turns.evidence_budget.fill(arguments[id_], results, called[id_])
            if failed := [need for need, step in known.items() if step.failed]:
                fault = f"not run, since {_signs(failed)} failed"
        name = str(turn) if len(calls) == 1 else f"{turn}.{number}"
        with at_place(f"call {number}"):
            step = await turns.act(name, numbered[id_].name, given, fault=fault)
            written = show_call(dict(numbered[id_].arguments)) if needs[id_] else ""
            steps[id_] = replace(step, written=written)

    waited_for = {id_: set[str]() if id_ in faults else needed for id_, needed in needs.items()}
    called = {id_: turns.tools.get(call.name) for id_, call in numbered.items()}
    await in_order(in_state_order(waited_for, called), act, "ready")
    return [steps[id_] for id_ in numbered]


def _fault(id_: str, needed: set[str]) -> str:
    """What keeps a call from being made: it uses one that doesn't come before it in the turn."""
    wrong = sorted(need for need in needed if not 0 < int(need[1:]) < int(id_[1:]))
    return f"{_signs(wrong)} is no earlier call of this turn" if wrong else ""


def _signs(ids: Sequence[str]) -> str:
    return ", ".join(id_.replace("E", "#") for id_ in ids)
