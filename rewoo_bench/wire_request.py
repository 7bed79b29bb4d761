"""A request of an external agent on its way to the provider.

    wire = WireRequest("/chat/completions", body)
    completion = await model.complete(Request([Message("user", "2 + 2?")], role="agent", wire=wire))

A model with an HTTP endpoint sends the request as it is; any other one answers the messages.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

BAD_GATEWAY = 502
_CHANGE_ANSWERS = frozenset({"anthropic-beta", "openai-beta"})  # other headers may differ each time a request is made
OF_THE_ACCOUNT = frozenset({"openai-organization", "openai-project", "anthropic-organization-id"})
_WHO_ASKS = re.compile(
    r"(openai|anthropic|x)-(.*-)?(access|customer|login|org\w*|project|session|subscription|team|user)(-.*)?"
)
NO_FIELDS: Mapping[str, str | int] = {}


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request of an external agent, which the provider gets as it is.

    `path` is below the provider's address (`/chat/completions`). `on_headers` gets the answer's headers, and `on_bytes`
    a streamed answer as it arrives. `is_translated`: the agent's own dialect is another one, and `dropped` are the
    fields that have no place in this one.
    """

    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    query: str = ""
    on_headers: Callable[[Mapping[str, str]], None] | None = field(default=None, compare=False)
    on_bytes: Callable[[bytes], Awaitable[None]] | None = field(default=None, compare=False)
    is_translated: bool = False
    dropped: tuple[str, ...] = ()

    @property
    def identity(self) -> dict[str, Any]:
        """What two requests that are the same have in common, JSON-ready."""
        headers = {name.lower(): value for name, value in self.headers if name.lower() in _CHANGE_ANSWERS}
        more = {"query": self.query, "headers": headers}
        facts = {"wire": self.path, "sha256": sha256(self.body).hexdigest()}
        return {**facts, **{name: value for name, value in more.items() if value}}

    @property
    def chooses_account(self) -> bool:
        """Whether the agent says who asks: an organisation, a project, a user or a subscription of its own choice."""
        return any(name.lower() in OF_THE_ACCOUNT or _WHO_ASKS.fullmatch(name.lower()) for name, _ in self.headers)


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """What an external agent gets where its call failed, beside the message.

    `fields` are `type`, `param` and `code` of the provider's error object. `begun` is the part of a stream that came
    before it broke off.
    """

    status: int = BAD_GATEWAY
    fields: Mapping[str, str | int] = field(default_factory=dict)
    begun: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
