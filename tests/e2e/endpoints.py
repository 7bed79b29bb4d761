"""Endpoints as they are today: strict ones, which refuse parameters, and ones that think, each in a form of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from answering import answer as plain_answer
from answering import asked_about
from model_server import ServerFault, ServerReply

from rewoo_bench.types import ToolCall, Usage

ARCHITECTURES = (
    *("rewoo", "rewoo-json", "react", "react-native", "rewoo-react", "llmcompiler", "plan-execute", "direct", "cot"),
    *("rewoo-lazy", "react-json"),
    "router?policy=model",
)

THOUGHT = 'The user wants a fact. Answer: wrong. Action: Search[wrong] #E1 = Search[wrong]\n1. Search("wrong")\nok'
Answer = str | ServerReply | ServerFault

# A part of the system prompt that tells an architecture from all others.
_PROMPTS = {
    "rewoo-lazy": "The last step is Finish",
    "rewoo-json": "The plan is JSON",
    "react-json": 'with one "action"',
    "react-native": "Call a tool for every fact",
    "plan-execute": "by a plan that is done step by step",
    "llmcompiler": "The last line is join()",
    "router": "Two agents can answer the question",
}


def answer(request: dict[str, Any]) -> Answer:
    """What a good model would write, for all bundled architectures."""
    system = str(request["messages"][0]["content"])
    asking = next((name for name, start in _PROMPTS.items() if start in system), None)
    name = asked_about(request)
    if asking is None:
        return plain_answer(request)
    if asking == "router":
        return "Agent: 2"
    if asking == "rewoo-json":
        step = {"id": "E1", "thought": "find it", "tool": "Search", "args": {"query": f"Kyiv {name}"}}
        return json.dumps({"steps": [{**step, "depends_on": []}]})
    if asking == "rewoo-lazy":  # no page is there, and a search that finds nothing would end its plan
        read = {"id": "E1", "tool": "LLM", "args": {"question": f"{name}?"}}
        return json.dumps({"steps": [read, {"id": "E2", "tool": "Finish", "args": {"answer": "{{E1}}"}}]})
    if asking == "react-json":
        done = "Result of" in str(request["messages"][-1]["content"])
        tool, args = ("Finish", {"answer": f"the river of {name}"}) if done else ("Search", {"query": f"Kyiv {name}"})
        return json.dumps({"action": {"tool": tool, "args": args}})
    if asking == "llmcompiler":
        return f'1. Search("Kyiv {name}")\n2. join()'
    last = str(request["messages"][-1]["content"])
    if asking == "react-native":
        if "Question:" not in last:
            return f"Answer: the river of {name}"
        call = ToolCall("c1", "Search", {"query": f"Kyiv {name}"})
        if "tools" in request:
            return ServerReply("", tool_calls=[call])
        return json.dumps({"name": call.name, "arguments": dict(call.arguments)})
    if "Observation:" in last:
        return f"Answer: the river of {name}"
    return f"Action: Search[Kyiv {name}]" if "Step:" in last else f"Plan:\n1. find {name}"


def refusal(name: str) -> ServerFault:
    """OpenAI's own words."""
    code = "unsupported_parameter"
    return ServerFault(status=400, message=f"Unsupported parameter: '{name}' is not supported.", code=code, param=name)


@dataclass
class Strict:
    """Refuses what it is told to refuse, one thing in each error, and answers everything else.

    `words` has the error for a parameter in the place of OpenAI's; `no_system` and `no_developer` the words for a role.
    `trailing` is what the model writes on, where no stop string ends it.
    """

    refuses: tuple[str, ...] = ()
    words: Mapping[str, ServerFault] = field(default_factory=dict)
    no_system: ServerFault | None = None
    no_developer: ServerFault | None = None
    trailing: str = ""
    reply: Callable[[dict[str, Any]], Answer] = answer

    def __call__(self, request: dict[str, Any]) -> Answer:
        for name in self.refuses:
            if name in request:
                return self.words.get(name) or refusal(name)
        roles = {message["role"] for message in request.get("messages", ())}
        if self.no_system and "system" in roles:
            return self.no_system
        if self.no_developer and "developer" in roles:
            return self.no_developer
        replied = self.reply(request)
        if isinstance(replied, str) and "stop" not in request:
            return replied + self.trailing
        return replied


def plain(request: dict[str, Any]) -> ServerReply:
    """The answer with the tokens that a thought took, but without the thought."""
    found = answer(request)
    return replace(found if isinstance(found, ServerReply) else ServerReply(str(found)), usage=Usage(100, 0, 40, 30))


def in_field(name: str) -> Callable[[dict[str, Any]], Answer]:
    """Thoughts in a field of the message."""
    return lambda request: replace(plain(request), message={name: THOUGHT})


def in_text(before: str, after: str) -> Callable[[dict[str, Any]], Answer]:
    """Thoughts in the text, between marks."""

    def reply(request: dict[str, Any]) -> Answer:
        found = plain(request)
        return replace(found, text=f"{before}{THOUGHT}{after}{found.text}")

    return reply


def in_parts(request: dict[str, Any]) -> Answer:
    """A content of parts."""
    found = plain(request)
    parts = [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": found.text}]
    return replace(found, message={"content": parts})


THINKING: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "reasoning_content": in_field("reasoning_content"),
    "reasoning": in_field("reasoning"),
    "think": in_text("<think>", "</think>\n\n"),
    "closing tag alone": in_text("", "</think>\n"),
    "harmony": in_text("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "parts": in_parts,
}


@dataclass
class Thinker:
    """Thinks for so many tokens before it writes, within `max_tokens` or `max_completion_tokens`.

    With `hidden` the thoughts are only counted, as by OpenAI's endpoint; else they stand before a closing mark.
    """

    tokens: int
    hidden: bool = False
    most: int | None = None

    def __call__(self, request: dict[str, Any]) -> Answer:
        budget = request.get("max_completion_tokens") or request["max_tokens"]
        if self.most is not None and budget > self.most:
            said = f"max_tokens is too large: {budget}. This model supports at most {self.most} completion tokens."
            return ServerFault(status=400, message=said, param="max_tokens")
        if budget <= self.tokens:
            text = "" if self.hidden else f"<think>{THOUGHT}"
            return ServerReply(text, finish_reason="length", usage=Usage(100, 0, budget, budget))
        found = answer(request)
        reply = found if isinstance(found, ServerReply) else ServerReply(str(found))
        text = reply.text if self.hidden else f"<think>{THOUGHT}</think>{reply.text}"
        return replace(reply, text=text, usage=Usage(100, 0, self.tokens + 20, self.tokens))
