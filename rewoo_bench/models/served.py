"""A model behind a server that this run started: where that has ended, calls say so.

    model = ServedModel(LiteLLMModel(…), server)
    await model.complete(messages, role="solver")       # raises ModelGone once the server has ended

A provider that can't be reached may be there again in a minute. A server of our own that was killed
for want of memory, or died of a fault, won't: each further question would fail after all its
retries, so the run ends with the reason and can be resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from anyio import to_thread

from rewoo_bench.errors import ModelError, ModelGone
from rewoo_bench.models.local import LocalServer
from rewoo_bench.types import Asked, Completion, Message, Model


class ServedModel:
    """The model, and the server that it is asked at."""

    def __init__(self, model: Model, server: LocalServer) -> None:
        self._model = model
        self._server = server

    async def complete(self, messages: Sequence[Message], **asked: Unpack[Asked]) -> Completion:
        """The model's completion. Raises `ModelError`, as `ModelGone` where the server has ended."""
        try:
            return await self._model.complete(messages, **asked)
        except ModelError as error:
            if error.status is None and (end := await to_thread.run_sync(self._server.how_it_ended)):
                name = self._server.path.name
                raise ModelGone(f"what served {name!r} has ended ({end})", receipt=error.receipt) from error
            raise
