"""The body of a request in the OpenAI form.

request = ModelRequest([Message("user", "2 + 2?")], stop=("\\n",), budget=512)
to_body(request, RequestSettings(temperature=0.0), route, "chat")
# {"model": "gpt-4o-mini", "temperature": 0.0, "max_tokens": 512, "stop": ["\\n"], "messages": […]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rewoo_bench.models.hosted import openai_format
from rewoo_bench.models.hosted.providers import Route
from rewoo_bench.types import Message, OnText, Tool

Style = Literal["chat", "completion"]
Constrain = Literal["grammar", "schema", "none"]
_STREAM = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model. `budget` is the largest number of output tokens."""

    messages: Sequence[Message]
    stop: tuple[str, ...] = ()
    tools: Sequence[Tool] = ()
    schema: Mapping[str, Any] | None = None
    grammar: str | None = None
    budget: int = 512
    on_text: OnText | None = None

    @property
    def is_streamed(self) -> bool:
        """Whether a stream is asked for; tool calls are read whole."""
        return self.on_text is not None and not self.tools


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """Settings of all requests to a model; None is not sent."""

    temperature: float | None = 0.0
    seed: int | None = None
    reasoning_effort: str | None = None
    constrain: Constrain = "schema"
    prompt_cache: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    thoughts: bool = False
    """Whether reasoning is sent back with its tool calls."""


def to_body(request: ModelRequest, settings: RequestSettings, route: Route, style: Style) -> dict[str, Any]:
    """The request, in a chat's or a completion's form."""
    body: dict[str, Any] = {
        "model": route.bare,
        "temperature": settings.temperature,
        "seed": settings.seed,
        "max_tokens": request.budget,
        "stop": list(request.stop) or None,
        "reasoning_effort": settings.reasoning_effort,
        **_constraint(request, settings.constrain, route, style),
        "tools": openai_format.to_functions(request.tools) or None,
        **(_STREAM if request.is_streamed else {}),
        **settings.extra_body,
    }
    body = {name: value for name, value in body.items() if value is not None}
    if style == "completion":
        return {**body, "prompt": openai_format.to_transcript(request.messages)}
    messages = openai_format.to_chat(request.messages, prompt_cache=settings.prompt_cache, thoughts=settings.thoughts)
    return {**body, "messages": messages}


def _constraint(request: ModelRequest, constrain: Constrain, route: Route, style: Style) -> dict[str, Any]:
    """The constraint on decoding; a grammar before a schema, since servers accept only one."""
    by_grammar = constrain == "grammar"
    if request.grammar is not None and by_grammar:
        return {"grammar": request.grammar}
    if request.schema is not None and by_grammar and style == "completion":
        return {"json_schema": dict(request.schema)}  # llama.cpp's own field: this endpoint has no response_format
    if request.schema is not None and constrain != "none" and (route.takes_schema or by_grammar):
        return {"response_format": openai_format.to_response_format(request.schema)}
    return {}
