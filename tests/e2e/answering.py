"""A model server that answers every architecture's prompts in form, question by question.

Every question's text holds a name of its own (`q07`), which goes through plans, tool calls and
answers, so that each request in the server's books belongs to one question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from model_server import BookEntry, ModelServer, ServerFault, ServerReply

from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runners.architecture import load_architecture
from rewoo_bench.types import Example, Usage

KEY = "sk-live-0123456789abcdef"  # what clients show the server, and show nobody else
_NAME = re.compile(r"\bq\d\d\b")


def examples(count: int) -> list[Example]:
    """Sample questions with their names put in: `q00: On the delta of which river …?`."""
    chosen = load_dataset_examples("sample", limit=count).examples
    return [replace(e, id=f"q{i:02}", question=f"q{i:02}: {e.question}") for i, e in enumerate(chosen)]


def asked_about(request: Mapping[str, Any]) -> str:
    """The name of the one question that a request belongs to."""
    name: str
    (name,) = set(_NAME.findall(json.dumps(request["messages"])))
    return name


def prompts() -> dict[str, str]:
    """How each system prompt begins -> whose it is."""
    rewoo, react = (load_architecture(name, style="multihop") for name in ("rewoo", "react"))
    texts = {
        "planner": rewoo.prompts.texts["planner"],
        "solver": rewoo.prompts.texts["solver"],
        "tool": rewoo.tool_prompts["LLM"],
        "agent": react.prompts.texts["agent"],
    }
    return {text.partition("$")[0][:60]: role for role, text in texts.items()}


PROMPTS = prompts()


def role_of(request: Mapping[str, Any]) -> str:
    """planner, solver, tool, agent, or answer for direct and cot."""
    system = request["messages"][0]["content"]
    return next((role for start, role in PROMPTS.items() if system.startswith(start)), "answer")


def answer(request: Mapping[str, Any]) -> str:
    """What a good model would write: a plan of two steps, three turns of ReAct, or an answer."""
    name, role = asked_about(request), role_of(request)
    if role == "planner":
        return f"Plan: find it\n#E1 = Search[Kyiv {name}]\nPlan: read it\n#E2 = LLM[Which is it, {name}? Context: #E1]"
    if role != "agent":
        return f"Thought: known\nAnswer: the river of {name}"
    contents = [message["content"] for message in request["messages"]]
    asked = next(i for i, content in enumerate(contents) if content.startswith(f"Question: {name}"))
    turns = [f"Search[Kyiv {name}]", "Lookup[river]", f"Finish[the river of {name}]"]
    return f"Thought: go on\nAction: {turns[min(len(contents[asked:]) // 2, 2)]}"


def spent(server: ModelServer, name: str) -> Usage:
    """What the server's own books say that a question took."""
    entries = [entry for entry in server.books if asked_about(entry.request) == name]
    return sum((entry.usage for entry in entries if entry.usage), Usage())


class Script:
    """What the server answers next; the last answer stays."""

    def __init__(self, *answers: str | ServerReply | ServerFault) -> None:
        self.answers = list(answers)

    def __call__(self, request: dict[str, Any]) -> str | ServerReply | ServerFault:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Trouble:
    """Answers, but for faults: `once` at a question's first request, `always` at each of them."""

    def __init__(
        self, once: Mapping[str, ServerFault] | None = None, always: Mapping[str, ServerFault] | None = None
    ) -> None:
        self.once = dict(once or {})
        self.always = dict(always or {})

    def __call__(self, request: dict[str, Any]) -> str | ServerReply | ServerFault:
        name = asked_about(request)
        return self.always.get(name) or self.once.pop(name, None) or answer(request)


def priced(tokens: int) -> Callable[[dict[str, Any]], ServerReply]:
    """Every answer takes so many tokens."""
    return lambda request: ServerReply(answer(request), usage=Usage(input_tokens=tokens - 1, output_tokens=1))


def seen(entries: list[BookEntry]) -> str:
    """All that a server was told."""
    return json.dumps([entry.request for entry in entries], ensure_ascii=False)
