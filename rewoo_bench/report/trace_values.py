"""A line of traces.jsonl in the form that the page and the terminal show.

Steps, plans and notes come from people's own runners, which may write other values into them: a text where a list
is expected, or a number where a text is. What can be shown is shown as text, and the rest is left out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

UNKNOWN_TOOL = "unknown tool"
_FINISH = "Finish"  # an action of every ReAct, which no manifest lists


def trajectory_of(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Steps, plan, answer and notes of a trace, each in one form."""
    notes = _object(trace.get("notes"))
    drafts = [_draft(each) for each in _listed(notes.get("drafts"))]
    return {
        "steps": [_step(each, number) for number, each in enumerate(_listed(trace.get("steps")), start=1)],
        "plan": [_planned(each, number) for number, each in enumerate(_listed(trace.get("plan")), start=1)] or None,
        "answer": _text_or_none(trace.get("answer")),
        "error": _text_or_none(trace.get("error")),
        "replans": max(0, len(drafts) - 1),
        "drafts": drafts,
        "notes": {name: value for name, value in _notes(notes).items() if value},
    }


def without_texts(trajectory: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any]:
    """A trajectory without texts of a data set, a tool or a model: tools, outcomes and counts stay.

    A tool that isn't one of `tools` is a text of the model, which made up its name.
    """

    def shown(tool: str | None) -> str | None:
        return tool if tool is None or tool == _FINISH or tool in tools else UNKNOWN_TOOL

    kept = {name: trajectory[name] for name in ("rows", "replans", "calls")}
    steps = [{"id": step["id"], "tool": shown(step["tool"]), "failed": step["failed"]} for step in trajectory["steps"]]
    plan = [
        {"id": step["id"], "tool": shown(step["tool"]), "depends_on": step["depends_on"]}
        for step in trajectory["plan"] or ()
    ]
    return {**kept, "steps": steps, "plan": plan or None, "answer": None, "error": None, "drafts": [], "notes": {}}


def _step(value: Any, number: int) -> dict[str, Any]:
    """A step; one that isn't an object is its observation."""
    step = value if isinstance(value, dict) else {"observation": value}
    return {
        "id": _text(step.get("id", number)),
        "thought": _text(step.get("thought")),
        "tool": _text_or_none(step.get("tool")),
        "argument": _text(step.get("argument")),
        "observation": _text(step.get("observation")),
        "failed": bool(step.get("failed")),
    }


def _planned(value: Any, number: int) -> dict[str, Any]:
    """A step of a plan; one that isn't an object is shown in the place of the tool's name."""
    step = value if isinstance(value, dict) else {"tool": value}
    return {
        "id": _text(step.get("id", number)),
        "tool": _text(step.get("tool")),
        "args": _text(step.get("args")),
        "depends_on": _texts(step.get("depends_on")),
    }


def _draft(value: Any) -> dict[str, Any]:
    draft = value if isinstance(value, dict) else {"text": value}
    return {"text": _text(draft.get("text")), "faults": _texts(draft.get("faults"))}


def _notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    citations = {name: _texts(_object(notes.get("citations")).get(name)) for name in ("cited", "unknown")}
    dropped = notes.get("dropped_steps")
    return {
        "citations": citations if any(citations.values()) else None,
        "partial_answer": bool(notes.get("partial_answer")),
        "fallback": _text(notes.get("fallback") or None),
        "dropped_steps": dropped if isinstance(dropped, int) else None,
        "repaired": _texts(notes.get("repaired")),
        "gateway": [f"{name}: {count}" for name, count in _object(notes.get("gateway")).items()],
        "stderr": _text(notes.get("stderr")),
    }


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    """A list as it is; nothing is an empty one, and any other value is alone in it."""
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _texts(value: Any) -> list[str]:
    return [_text(each) for each in _listed(value)]


def _text(value: Any) -> str:
    return _text_or_none(value) or ""


def _text_or_none(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
