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
from rewoo_bench.imports.record import RecordedTrajectory, first_of
from rewoo_bench.imports.requests import LoggedRequest, conversation_of, identity_of, ids_of, request_of, trajectory_of

# Messages one by one. Those are a conversation that have one value of a field such as `session_id`, which all messages
# of the file have. Where there is no such field, a system's message after others begins the next one.

_OF_A_MESSAGE = {
    *("role", "from", "type", "content", "value", "name", "usage", "cost"),
    *("tool_calls", "tool_call_id", "function_call"),
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


def _own_id(message: Mapping[str, Any]) -> str | None:
    return _plain(first_of(message, ("id", "uuid")))


_KEYS: tuple[Named, ...] = (
    lambda message: _plain(identity_of(message)[1]),
    lambda message: _plain(message.get("trace_id")),
    _task_of,
    _own_id,
)


def _key_of(messages: Sequence[Mapping[str, Any]], named: Named) -> Named | None:
    """What tells the conversations of messages apart: a field that all have, and that isn't each message's own."""
    if all(_plain(named(message)) is not None for message in messages):
        return named
    for key in _KEYS:
        values = {key(message) for message in messages}
        if None in values or 2 * len(values) > len(messages):
            continue
        said = {key(message) for message in messages if role_of(message) != "assistant"}
        if key is not _own_id or said == values:  # else each is one message's, or the parts of one reply have it
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
# Open conversations are bounded in size: one that goes on after it was closed is another row, and none of its calls is
# in both. A request that has a response only when it is made again is one call.

_LARGEST = 64 * 2**20  # characters of all open conversations


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
    counted: bytes | None = None
    """Digest of the messages up to its last call."""
    end: bytes = b""
    size: int = 0
    answered: list[str] = field(default_factory=list)
    """Ids of its responses."""

    @property
    def is_answered(self) -> bool:
        """Whether the log has a reply to the last request."""
        return bool(role_of(self.request.whole[-1]) == "assistant")

    @property
    def lacks_reply(self) -> bool:
        """Whether the last request was answered, as the earlier ones of its log were, and the log hasn't the reply."""
        is_log = (self.start > 0 or bool(self.replies)) and not self.are_whole
        return is_log and not self.is_answered

    def trajectory(self, default_task: str) -> RecordedTrajectory:
        """All its calls. Raises `Unreadable`."""
        return trajectory_of(self.known(), default_task, self.start, self.lacks_reply)

    def known(self) -> LoggedRequest:
        """The last request, whose messages have what the log knows of each reply."""
        messages = list(self.request.messages)
        for place, reply in self.replies.items():
            if role_of(messages[place]) == "assistant":
                messages[place] = {**messages[place], **reply}
        return replace(self.request, messages=messages)


class RequestLog:
    """The conversations of a file that may still go on. Of each record `named` says what else identifies its task."""

    def __init__(self, named: Named = lambda record: None) -> None:
        self._named = named
        self._open: dict[Logged, None] = {}  # the one longest without a new request first
        self._by_end: defaultdict[bytes, list[Logged]] = defaultdict(list)
        self._by_response: dict[str, tuple[Logged, int]] = {}
        self._counted: set[bytes] = set()
        """Digests of beginnings whose calls are counted, for conversations that depart from another or go on late."""
        self._size = 0

    def add(self, where: str, record: Any) -> Iterator[Logged]:
        """Takes a record; yields the conversations that are closed for it. Raises `Unreadable`."""
        request = request_of(record)
        identity = (*identity_of(request.facts), self._named(record))
        id_, before = ids_of(request.facts)
        digests, size = _digests(identity, request.whole)
        earlier, start = self._extended(request.messages, digests), 0
        if earlier is None and before in self._by_response:
            of, length = self._by_response[before]
            is_said = role_of(request.messages[0]) == role_of(of.request.messages[0]) == "system"
            request.messages = [*of.known().whole[:length], *request.messages[is_said:]]
            digests, size = _digests(identity, request.whole)
            earlier, start = (of, 0) if length == len(of.request.whole) else (None, length)
        same = self._by_end.get(digests[len(request.messages)], ())
        failed = [each for each in same if request.reply is not None and not each.is_answered]
        if failed:
            logged = self._sent_again(failed, request)
        elif earlier is None:
            logged = Logged(where, request, start or self._begun(request.whole, digests))
        else:
            logged = self._joined(earlier, request, digests)
        places = range(len(request.whole), logged.start, -1)
        last = next((at for at in places if role_of(request.whole[at - 1]) == "assistant"), None)
        logged.counted = digests[-1] if logged.lacks_reply else None if last is None else digests[last]
        logged.end, logged.size = digests[-1], size
        self._size += size
        self._open[logged] = None
        self._by_end[logged.end].append(logged)
        if id_:
            logged.answered.append(id_)
            self._by_response[id_] = logged, len(request.whole)
        while self._size > _LARGEST and len(self._open) > 1:
            longest = next(iter(self._open))
            self._counted |= {longest.counted} if longest.counted else set()
            yield self._closed(longest)

    def rest(self) -> Iterator[Logged]:
        """Closes all."""
        while self._open:
            yield self._closed(next(iter(self._open)))

    def _extended(self, messages: Sequence[Any], digests: Sequence[bytes]) -> Logged | None:
        """The open conversation that has the most of these messages, and that they go on with."""
        for length in range(len(messages) - 1, 0, -1):
            for logged in self._by_end.get(digests[length], ()):
                if "assistant" in (role_of(messages[length - 1]), role_of(messages[length])):
                    return logged
        return None

    def _joined(self, logged: Logged, request: LoggedRequest, digests: Sequence[bytes]) -> Logged:
        """The conversation with a further request."""
        self._take_out(logged)
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
        return logged

    def _begun(self, messages: Sequence[Any], digests: Sequence[bytes]) -> int:
        """How many of these messages are another conversation's.

        Where it lacked its last reply, the reply is the next message, and its call is counted already.
        """
        at = next((at for at in range(len(messages) - 1, 0, -1) if digests[at] in self._counted), 0)
        return at + (at > 0 and role_of(messages[at - 1]) != "assistant" == role_of(messages[at]))

    def _sent_again(self, failed: Sequence[Logged], request: LoggedRequest) -> Logged:
        """The conversation whose last request had no response until it was made again."""
        for each in failed:
            self._take_out(each)
        request.facts = {**failed[0].request.facts, **request.facts}
        failed[0].request = request
        return failed[0]

    def _closed(self, logged: Logged) -> Logged:
        self._take_out(logged)
        for id_ in logged.answered:
            self._by_response.pop(id_, None)
        return logged

    def _take_out(self, logged: Logged) -> None:
        del self._open[logged]
        self._size -= logged.size
        self._by_end[logged.end].remove(logged)
        if not self._by_end[logged.end]:
            del self._by_end[logged.end]


def _digests(identity: Sequence[Any], messages: Sequence[Any]) -> tuple[list[bytes], int]:
    """A hash of the first 0, 1, 2, … messages of a task, and the size of all in characters. Raises `Unreadable`."""
    found, size = [sha256(json.dumps(identity, default=str).encode()).digest()], 0
    for position, message in enumerate(messages):
        text = compared(position, message)
        size += len(text)
        found.append(sha256(found[-1] + text.encode()).digest())
    return found, size
