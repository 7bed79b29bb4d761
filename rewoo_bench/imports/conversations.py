"""What a file has of a conversation one by one, messages or requests, joined -> whole conversations.

    {"session_id": "a", "role": "user", …}  {"session_id": "b", "role": "user", …}      two conversations
    {"messages": [user]}  {"messages": [user, assistant, tool]}                         two calls of one conversation

Conversations may be interleaved.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from rewoo_bench.imports.messages import USAGE, compared, role_of
from rewoo_bench.imports.record import RecordedTrajectory
from rewoo_bench.imports.requests import LoggedRequest, conversation_of, identity_of, ids_of, request_of, trajectory_of

# Messages one by one. Those are a conversation that have one value of a field such as `session_id`, which all messages
# of the file have. Where there is no such field, a system's message after others begins the next one.

_OF_A_MESSAGE = {
    *("role", "type", "content", "name", "usage", "cost", "tool_calls", "tool_call_id", "function_call"),
}
"""Fields that say nothing of the conversation, also where all its messages have the same."""

Named = Callable[[Any], Any]
"""What the user says identifies the task of a message or a record; None where he says nothing."""


def is_message(record: Any) -> bool:
    """Whether a record is a single message."""
    return isinstance(record, Mapping) and isinstance(record.get("role"), str) and conversation_of(record) is None


def conversations_of(
    name: str, messages: Sequence[tuple[str, Any]], named: Named, *, are_lines: bool
) -> Iterator[tuple[str, Any]]:
    """The conversations of messages with their places: a record each; a single one is named `name`."""
    alone = [message for _, message in messages]
    key = _key_of(alone, named) if all(map(is_message, alone)) else None
    ids = map(key, alone) if key else _by_system(alone) if are_lines else [0] * len(alone)
    groups: dict[Any, list[tuple[str, Any]]] = {}
    for id_, each in zip(ids, messages, strict=True):
        groups.setdefault(id_, []).append(each)
    for group in groups.values():
        yield name if len(groups) == 1 else group[0][0], _conversation([message for _, message in group])


def _plain(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int | float) else None


def _task_of(message: Mapping[str, Any]) -> str | None:
    task, _, trial = identity_of(message)
    return None if _plain(task) is None else f"{task}, trial {_plain(trial)}"


def _key_of(messages: Sequence[Mapping[str, Any]], named: Named) -> Named | None:
    """What tells the conversations of messages apart: a field that all have, and that isn't each message's own."""
    keys: tuple[Named, ...] = (
        named,
        lambda message: _plain(identity_of(message)[1]),
        lambda message: _plain(message.get("trace_id")),
        _task_of,
    )
    for key in keys:
        values = {_plain(key(message)) for message in messages}
        if None not in values and (key is named or 2 * len(values) <= len(messages)):
            return key
    return None


def _by_system(messages: Iterable[Any]) -> Iterator[int]:
    """The number of each message's conversation: in a file that begins with a message of the system, each does."""
    number, first, before = 0, None, None
    for message in messages:
        role = role_of(message)
        first = first or role
        number += first == role == "system" != before
        before = role or before
        yield number


def _conversation(messages: list[Any]) -> Any:
    """The messages, with what all of them say of the conversation."""
    first, *others = messages
    facts = {
        name: value
        for name, value in first.items()
        if name not in _OF_A_MESSAGE
        and all(isinstance(each, Mapping) and name in each and each[name] == value for each in others)
    }
    return {**facts, "messages": messages}


# Requests of one conversation, as a proxy logs them one by one: each repeats what the one before had.
#
# A record goes on with an earlier one of its file where its messages begin with all of that one's and, where that one
# has a response, go on with its reply; or where it names that response (`previous_response_id`). Of several records
# that go on with one, the first one does; another is a conversation of its own, whose calls begin where it departs.
# A request that has a response only when it is made again is one call.


@dataclass(eq=False)
class Logged:
    """A conversation of a log. `where` is the place of its first record, and `request` is the last one."""

    where: str
    request: LoggedRequest
    start: int = 0
    """Number of messages before its own: their calls are another conversation's."""
    replies: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """What the log has of replies to its earlier requests, by their places in the messages."""
    are_whole: bool = False
    """Whether a record was no request, but a conversation with its last reply."""
    end: bytes = b""
    """Digest of all its messages."""

    @property
    def is_answered(self) -> bool:
        """Whether the log has a reply to the last request."""
        return bool(role_of(self.request.whole[-1]) == "assistant")

    def trajectories(self) -> Iterator[RecordedTrajectory]:
        """Its trajectory, with all its calls. Raises `Unreadable`."""
        # The last request was answered, as the earlier ones of its log were, and the log hasn't the reply.
        lacks_reply = (self.start > 0 or bool(self.replies)) and not self.are_whole and not self.is_answered
        yield trajectory_of(self.known(), self.where, self.start, lacks_reply)

    def known(self) -> LoggedRequest:
        """The last request, whose messages have what the log knows of each reply."""
        messages = list(self.request.messages)
        for place, reply in self.replies.items():
            if role_of(messages[place]) == "assistant":
                messages[place] = {**messages[place], **reply}
        return replace(self.request, messages=messages)


class RequestLog:
    """The conversations of a file. Of each record `named` says what else identifies its task."""

    def __init__(self, named: Named = lambda record: None) -> None:
        self.conversations: list[Logged] = []
        self._named = named
        self._by_end: defaultdict[bytes, list[Logged]] = defaultdict(list)
        self._by_response: dict[str, tuple[Logged, int]] = {}
        self._counted: set[bytes] = set()
        """Digests of beginnings whose calls are counted, for conversations that depart from another."""

    def add(self, where: str, record: Any) -> None:
        """Takes a record. Raises `Unreadable`."""
        request = request_of(record)
        identity = (*identity_of(request.facts), self._named(record))
        id_, before = ids_of(request.facts)
        digests = _digests(identity, request.whole)
        earlier, start = self._extended(request.messages, digests), 0
        if earlier is None and before in self._by_response:
            of, length = self._by_response[before]
            is_said = role_of(request.messages[0]) == role_of(of.request.messages[0]) == "system"
            request.messages = [*of.known().whole[:length], *request.messages[is_said:]]
            digests = _digests(identity, request.whole)
            earlier, start = (of, 0) if length == len(of.request.whole) else (None, length)
        same = self._by_end[digests[len(request.messages)]]
        failed = [each for each in same if request.reply is not None and not each.is_answered]
        if failed:  # the last request of a conversation had no response until it was made again
            logged = failed[0]
            for each in failed[1:]:
                self.conversations.remove(each)
                same.remove(each)
            request.facts = {**logged.request.facts, **request.facts}
            logged.request = request
        elif earlier is None:
            logged = Logged(where, request, start or self._begun(request.whole, digests))
            self.conversations.append(logged)
        else:
            logged = earlier
            self._join(logged, request, digests)
        if logged in self._by_end[logged.end]:
            self._by_end[logged.end].remove(logged)
        logged.end = digests[-1]
        self._by_end[logged.end].append(logged)
        if id_:
            self._by_response[id_] = logged, len(request.whole)

    def _extended(self, messages: Sequence[Any], digests: Sequence[bytes]) -> Logged | None:
        """The conversation that has the most of these messages, and that they go on with."""
        for length in range(len(messages) - 1, 0, -1):
            for logged in self._by_end.get(digests[length], ()):
                if "assistant" in (role_of(messages[length - 1]), role_of(messages[length])):
                    return logged
        return None

    def _join(self, logged: Logged, request: LoggedRequest, digests: Sequence[bytes]) -> None:
        """Adds a further request to a conversation."""
        last = logged.request
        if request.tools == last.tools:
            request.tools = last.tools  # kept once
        is_whole = last.reply is None and role_of(last.messages[-1]) == "assistant"
        logged.are_whole |= is_whole
        known = {"model": last.model, **(last.reply or {}), "tools": last.tools}
        logged.replies[len(last.messages) - is_whole] = known
        first = {name: last.facts[name] for name in ("id", "uuid") if name in last.facts}
        facts = {**last.facts, **request.facts, **first}
        request.facts = {name: value for name, value in facts.items() if name not in USAGE}  # of one request
        logged.request = request
        self._counted.update(
            digests[length] for length, message in enumerate(request.messages, 1) if role_of(message) == "assistant"
        )

    def _begun(self, messages: Sequence[Any], digests: Sequence[bytes]) -> int:
        """How many of these messages are another conversation's."""
        return next((at for at in range(len(messages) - 1, 0, -1) if digests[at] in self._counted), 0)


def _digests(identity: Sequence[Any], messages: Sequence[Any]) -> list[bytes]:
    """A hash of the first 0, 1, 2, … messages of a task. Raises `Unreadable`."""
    found = [sha256(json.dumps(identity, default=str).encode()).digest()]
    for position, message in enumerate(messages):
        found.append(sha256(found[-1] + compared(position, message).encode()).digest())
    return found
