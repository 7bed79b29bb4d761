"""An imported run of two tasks, whose tools are known by what they did, for tests of recordings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewoo_bench.imports.write import import_run

Conversation = list[dict[str, Any]]


def called(name: str, arguments: Mapping[str, Any] | str, result: str | None, **more: Any) -> Conversation:
    """A call of a tool, and its result; None is one that wasn't recorded."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": f"{name}-{text}", "type": "function", "function": {"name": name, "arguments": text}}
    asked = {"role": "assistant", "content": "", "tool_calls": [call]}
    answered = [{"role": "tool", "tool_call_id": call["id"], "content": result, **more}]
    return [asked, *(answered if result is not None else [])]


def said(text: str) -> Conversation:
    """What a user said."""
    return [{"role": "user", "content": text}]


AIRLINE: list[dict[str, Any]] = [
    {
        "task_id": "t1", "trial": 0, "reward": 1.0,
        "messages": [
            {"role": "system", "content": "Be polite."},
            *said("How many seats are left to Oslo?"),
            *called("seats", {"city": "Oslo", "day": 3}, "4 seats"),
            {"role": "assistant", "content": "Four. Shall I book?"},
            *said("Yes, one."),
            *called("book", {"city": "Oslo", "people": [{"name": "Ann", "age": 40}]}, "booked"),
            *called("seats", {"city": "Oslo", "day": 3}, "3 seats"),
            *called("seats", {"city": "Bergen"}, "Error: no such airport"),
            {"role": "assistant", "content": "Done."},
        ],
    },
    {
        "task_id": "t1", "trial": 1, "reward": 0.0,
        "messages": [*said("How many seats are left to Oslo?"), *called("seats", {"city": "Kyiv"}, "9 seats")],
    },
    {
        "task_id": "t2", "trial": 0, "reward": 0.0,
        "messages": [*said("Is it late?"), *called("status", {}, ""), *called("seats", {"city": "Rome"}, None)],
    },
]  # fmt: skip


async def imported(folder: Path, records: Sequence[Mapping[str, Any]] = AIRLINE) -> Path:
    """The run of these records, in a folder `airline`."""
    file = folder / "airline.json"
    file.write_text(json.dumps(records))
    await import_run([file], folder / "airline")
    return folder / "airline"
