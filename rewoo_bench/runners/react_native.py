"""ReAct with the provider's own tool calls, the form that hosted agents have today.

assistant  (calls Search {"query": "Oslo"}, Search {"query": "Bergen"})
tool       Oslo: …
tool       Bergen: …
assistant  Answer: Oslo

The calls of one turn run at once; their results go back in the order of the calls. A reply
without a call is the answer. The loop is that of Yao et al. 2022, arXiv 2210.03629, without the
written thoughts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice

from rewoo_bench.events import at_place
from rewoo_bench.runners.notation.replies import answer_in, answered, names_answer
from rewoo_bench.runners.react import ReActLoop, ReActTurns, longest_path
from rewoo_bench.system.concurrency import in_order
from rewoo_bench.text.loops import AT_LIMIT
from rewoo_bench.text.model_output import decode
from rewoo_bench.types import Hop, Message, Model, Request, Step, Tool, ToolCall, Trajectory

_MOST_BRACES = 100  # looked at in a reply
_NAME = re.compile(r'"name"\s*:')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:')
_NOTHING = "That was neither a tool call nor an answer. Call a tool, or reply with one line 'Answer: …'."
_LAST = "No turn is left. Reply with one line 'Answer: …' and the best answer there is."


class NativeReAct(ReActLoop):
    """One model call a turn, with tools as the provider's API has them."""

    placeholders = ("max_steps",)
    notation = "json"

    async def run(self, question: str, *, model: Model, tools: Mapping[str, Tool]) -> Trajectory:
        """Answers a question in at most `max_steps` turns; after them it ends as `step_limit`."""
        turns = ReActTurns(self, model, tools)
        messages = self.prompts.conversation("agent", f"Question: {question}", max_steps=self.max_steps)
        repairs = 0
        for turn in range(1, self.settings.max_steps + 1):
            with at_place(f"turn {turn}"):
                completion = await model.complete(Request(messages, role="agent", tools=list(tools.values())))
                calls = completion.tool_calls or written_calls(completion.text, tools, len(turns.steps))
                if not calls:
                    answer = read_final(completion.text)
                    if answer or completion.finish_reason == "length" or repairs == self.settings.max_repairs:
                        return turns.end(*answered(answer, completion))
                    repairs += 1
                    turns.add(turn, Step(str(turn), observation=_NOTHING, failed=True))
                    messages.append(Message("user", _NOTHING))
                    continue
                steps = await _act_at_once(turn, calls, turns)
            text = completion.text if completion.tool_calls else ""
            seen = turns.add(turn, *steps)
            if turns.is_stopped:
                return turns.end(None, "repeated")
            results = [Message("tool", each, tool_call_id=call.id) for call, each in zip(calls, seen, strict=True)]
            messages += [Message("assistant", text, tool_calls=calls), *results]
        if not self.settings.answer_at_limit:
            return turns.end(None, "step_limit")
        messages.append(Message("user", _LAST))
        with at_place(AT_LIMIT):  # the tools go along, since some providers refuse a trace of tool calls without them
            completion = await model.complete(Request(messages, role="agent", tools=list(tools.values())))
        return turns.end(read_final(completion.text) or None, "step_limit")

    def steps_needed(self, chain: Sequence[Hop]) -> int:
        """A turn for each hop of the longest path, since independent hops share a turn, and one for the answer."""
        return longest_path(chain) + 1


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
    return "" if is_like_a_call(text) and not names_answer(text) else answer_in(text)


def is_like_a_call(text: str) -> bool:
    """Whether a text looks as if a call was meant."""
    name = _NAME.search(text)
    return name is not None and _ARGUMENTS.search(text, name.end()) is not None


async def _act_at_once(turn: int, calls: Sequence[ToolCall], turns: ReActTurns) -> list[Step]:
    """A step for each call, in the order of the calls."""
    steps: dict[str, Step] = {}
    numbered = {str(number): call for number, call in enumerate(calls, start=1)}

    async def act(number: str) -> None:
        call = numbered[number]
        id_ = str(turn) if len(calls) == 1 else f"{turn}.{number}"
        with at_place(f"call {number}"):
            steps[number] = await turns.act(id_, call.name, dict(call.arguments))

    await in_order({number: set() for number in numbered}, act, "ready")
    return [steps[number] for number in numbered]
