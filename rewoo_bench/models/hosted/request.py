"""The body of a request in the OpenAI form.

request = Request([Message("user", "2 + 2?")], role="solver", stop=("\\n",), max_tokens=512)
to_body(request, RequestSettings(temperature=0.0), route, "chat")
# {"model": "gpt-4o-mini", "temperature": 0.0, "max_tokens": 512, "stop": ["\\n"], "messages": […]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rewoo_bench.models.hosted import openai_format
from rewoo_bench.models.hosted.providers import Route
from rewoo_bench.types import Request

Style = Literal["chat", "completion"]
Constrain = Literal["grammar", "schema", "none"]
_STREAM = {"stream": True, "stream_options": {"include_usage": True}}


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


def to_body(request: Request, settings: RequestSettings, route: Route, style: Style) -> dict[str, Any]:
    """The request, in a chat's or a completion's form."""
    body: dict[str, Any] = {
        "model": route.bare,
        "temperature": settings.temperature,
        "seed": settings.seed,
        "max_tokens": request.max_tokens,
        "stop": list(request.stop) or None,
        "reasoning_effort": settings.reasoning_effort,
        **_constraint(request, settings.constrain, route, style),
        "tools": openai_format.to_functions(request.tools) or None,
        **(_STREAM if request.on_text is not None and not request.tools else {}),  # tool calls are read whole
        **settings.extra_body,
    }
    body = {name: value for name, value in body.items() if value is not None}
    if style == "completion":
        return {**body, "prompt": openai_format.to_transcript(request.messages)}
    messages = openai_format.to_chat(request.messages, prompt_cache=settings.prompt_cache, thoughts=settings.thoughts)
    return {**body, "messages": messages}


def _constraint(request: Request, constrain: Constrain, route: Route, style: Style) -> dict[str, Any]:
    """The constraint on decoding; a grammar before a schema, since servers accept only one."""
    by_grammar = constrain == "grammar"
    if request.grammar is not None and by_grammar:
        return {"grammar": request.grammar}
    if request.schema is not None and by_grammar and style == "completion":
        return {"json_schema": dict(request.schema)}  # llama.cpp's own field: this endpoint has no response_format
    if request.schema is not None and constrain != "none" and (route.takes_schema or by_grammar):
        return {"response_format": openai_format.to_response_format(request.schema)}
    return {}
