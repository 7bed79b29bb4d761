"""A model on servers that this run started: one for each architecture.

    model = PerArchitectureModel(servers, {server: HostedModel(…) for server in servers.all})
    await model.complete(request)       # raises ModelGone once the server has ended

A provider that can't be reached may be back in a minute. Our own server that ran out of memory or crashed
won't: every further question would fail after all its retries, so the run ends with the reason and can be
resumed.
"""

from __future__ import annotations

from collections.abc import Mapping

from anyio import to_thread

from rewoo_bench.call_site import current_architecture
from rewoo_bench.errors import ModelError, ModelGone
from rewoo_bench.models.local.server import LocalServer, Servers
from rewoo_bench.types import Completion, Model, Request


class PerArchitectureModel:
    """The servers, and the client of each."""

    def __init__(self, servers: Servers, clients: Mapping[LocalServer, Model]) -> None:
        self._servers = servers
        self._clients = clients

    async def complete(self, request: Request) -> Completion:
        """The model's completion. Raises `ModelError`, as `ModelGone` where the server has ended."""
        server = self._servers.of(current_architecture())
        try:
            return await self._clients[server].complete(request)
        except ModelError as error:
            if error.status is None and (end := await to_thread.run_sync(server.how_it_ended)):
                name = server.path.name
                raise ModelGone(f"the server of {name!r} has ended ({end})", call_cost=error.call_cost) from error
            raise
