"""Models that show a reply while it is being written.

    completion = await complete(model, messages, role="planner", on_text=print)

    on_text('1. Search("Os')                            # the visible text so far, each time that more has arrived
    on_text('1. Search("Oslo")\\n2. jo')
    completion.text     # '1. Search("Oslo")\\n2. join()'

The text may begin again, or differ from what was shown before: the first attempt broke off, or the text was a thought.
Only the completion is final. Nothing is shown of a reply that comes whole: a recorded one, a cached one, or one of a
model or server that doesn't stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeGuard, Unpack, cast, runtime_checkable

from anyio.lowlevel import checkpoint

from rewoo_bench.types import Completion, CompletionOptions, Message, Model, OnText, Tool


@runtime_checkable
class StreamingModel(Protocol):
    """A `Model` whose `complete` takes `on_text` too, if `streams` is true."""

    @property
    def streams(self) -> bool: ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        role: str,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
        tools: Sequence[Tool] | None = None,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        on_text: OnText | None = None,
    ) -> Completion: ...


class _WholeModel(Protocol):
    """A `Model` that is given `CompletionOptions`, from which `on_text` was removed."""

    async def complete(self, messages: Sequence[Message], **options: Unpack[CompletionOptions]) -> Completion: ...


async def complete(model: Model, messages: Sequence[Message], **options: Unpack[CompletionOptions]) -> Completion:
    """The model's completion. One that doesn't stream is called without `on_text`."""
    if _streams(model):
        return await model.complete(messages, **options)
    options.pop("on_text", None)
    return await cast(_WholeModel, model).complete(messages, **options)


async def show_lines(text: str, on_text: OnText) -> None:
    """Shows a text line by line, as a model that writes it; other tasks run after each line."""
    shown = ""
    for line in text.splitlines(keepends=True):
        shown += line
        on_text(shown)
        await checkpoint()


def _streams(model: object) -> TypeGuard[StreamingModel]:
    return bool(getattr(model, "streams", False))
