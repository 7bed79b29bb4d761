"""Traces in the form of Langfuse's export, in which prompts, tokens, times and models may each be missing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any


def langfuse_trace(task: str, observations: Sequence[dict[str, Any]], solved: bool | None = None) -> dict[str, Any]:
    """A trace with its observations; `solved` is a score of it."""
    scores = [] if solved is None else [{"name": "correctness", "value": int(solved)}]
    numbered = [{"id": f"{task} {place}", **each} for place, each in enumerate(observations)]
    return {"id": task, "observations": numbered, "scores": scores}


def observation(kind: str, times: tuple[float, float] | None, **fields: Any) -> dict[str, Any]:
    """An observation of a kind such as `GENERATION` or `TOOL`; `times` are seconds since 1970."""
    start, end = (datetime.fromtimestamp(each, UTC).isoformat() for each in times) if times else (None, None)
    return {"type": kind, "startTime": start, "endTime": end, **fields}


def asks(tool: str, arguments: str) -> dict[str, Any]:
    """A reply that calls a tool with arguments, given as JSON."""
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "function": {"name": tool, "arguments": arguments}}],
    }
