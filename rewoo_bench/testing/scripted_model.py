"""A model with scripted replies, for tests of runners, tools and whole runs.

    model = ScriptedModel(["Plan: look it up\\n#E1 = Search[Paris]", "Seine"])
    model = ScriptedModel({"planner": [plan], "solver": ["Seine"], "tool": ["a river"]})
    model = ScriptedModel(lambda messages, role: "yes" if "Paris" in messages[-1].content else "no")

    (await model.complete(Request([Message("user", "…")], role="planner"))).text
    model.requests[0].messages, model.requests[0].stop      # the request

Usage is counted with the pinned tokenizer, so a conversation costs the same on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rewoo_bench.errors import ModelError
from rewoo_bench.text.tokens import count_messages, count_tokens
from rewoo_bench.types import CallCost, Completion, Message, Request, Usage

ScriptLine = str | Completion | Exception
Script = Sequence[ScriptLine] | Mapping[str, Sequence[ScriptLine]] | Callable[[Sequence[Message], str], ScriptLine]


class ScriptedModel:
    """Answers with the next of `lines`, the next of its role's lines, or the function's result.

    A `Completion` is returned unchanged; an exception is raised; the tokens of a text are counted. A text is shown
    line by line to a caller that wants to see it (`on_text`). Raises `ModelError` when the lines run out.
    """

    def __init__(self, lines: Script) -> None:
        self._lines = lines
        self._taken: Counter[str] = Counter()  # replies used up, by role
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        messages, stop, tools = tuple(request.messages), tuple(request.stop), tuple(request.tools)
        self.requests.append(replace(request, messages=messages, stop=stop, tools=tools))
        line = self._next(self.requests[-1])
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Completion):
            return line
        await request.show_lines(line)
        usage = Usage(input_tokens=count_messages(request.messages), output_tokens=count_tokens(line))
        return Completion(line, usage, call_cost=CallCost(billed=usage, usage_source="estimated"))

    def _next(self, request: Request) -> ScriptLine:
        if callable(self._lines):
            return self._lines(request.messages, request.role)
        role, lines = "", self._lines
        if isinstance(lines, Mapping):
            role, lines = request.role, lines.get(request.role, ())
        if self._taken[role] >= len(lines):
            of_role = f" for {role!r}" if role else ""
            last = request.messages[-1].content if request.messages else ""
            raise ModelError(f"the script has {len(lines)} replies{of_role}; no reply is left for {last!r}")
        self._taken[role] += 1
        return lines[self._taken[role] - 1]
