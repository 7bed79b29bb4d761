"""Models that write a reply piece by piece, and wait in the middle of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.types import Completion, Request

Pieces = Sequence[str | Callable[[], Awaitable[object]]]


class WritingModel:
    """Answers each role's requests with its lines; the planner's are shown as `drafts` says: texts, and waits.

    What is shown of a draft and what the planner answers in the end may differ.
    """

    def __init__(self, lines: Mapping[str, Sequence[Any]], drafts: Sequence[Pieces] = ()) -> None:
        self.script = ScriptedModel(lines)
        self._drafts = list(drafts)

    async def complete(self, request: Request) -> Completion:
        if request.role == "planner" and self._drafts and request.on_text is not None:
            await show(self._drafts.pop(0), request.on_text)
        return await self.script.complete(replace(request, on_text=None))


async def show(pieces: Pieces, on_text: Callable[[str], None]) -> None:
    """Shows the text so far after each piece of it, and awaits what is no text; "" begins again."""
    shown = ""
    for piece in pieces:
        if not isinstance(piece, str):
            await piece()
            continue
        shown = shown + piece if piece else ""
        on_text(shown)
