"""litellm's own pool of connections, which all models share: it belongs to one event loop, and the last user closes it.

shared_pool.use(self)               # before a call through litellm
await shared_pool.release(self)     # when the model is closed
"""

from __future__ import annotations

from rewoo_bench.models.hosted import providers

_users: set[int] = set()


def use(user: object) -> None:
    """Registers a user of the pool."""
    _users.add(id(user))


async def release(user: object) -> None:
    """Closes the pool where this was its last user: a later event loop couldn't use its connections."""
    if id(user) in _users:
        _users.discard(id(user))
        if not _users:
            await providers.close_shared_pool()
