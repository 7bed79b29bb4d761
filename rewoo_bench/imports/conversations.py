"""What a file has of a conversation one by one, messages or requests, joined -> whole conversations.

    {"session_id": "a", "role": "user", …}  {"session_id": "b", "role": "user", …}      two conversations
    {"messages": [user]}  {"messages": [user, assistant, tool]}                         two calls of one conversation

Conversations may be interleaved. Messages are kept on disk until all are there. Of requests a bounded number of
conversations goes on at once: those longest without anything new are closed first.

The messages of a conversation, such as a message a line, have one value of a field such as `session_id`, which all
messages of the file have. Where there is no such field, a system's message after others begins the next one.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewoo_bench.errors import DataError
from rewoo_bench.imports.messages import (
    USAGE,
    LoggedRequest,
    compared,
    conversation_of,
    first_of,
    identity_of,
    ids_of,
    request_of,
    role_of,
    trajectory_of,
)
from rewoo_bench.imports.record import Parts, RecordedTrajectory
from rewoo_bench.text.redaction import without_credentials

_MOST_MESSAGES = 20_000  # of one conversation, and those that tell what identifies one
_OF_A_MESSAGE = {
    *("role", "from", "type", "content", "value", "name", "usage", "cost"),
    *("tool_calls", "tool_call_id", "function_call"),
}
"""Fields that say nothing of the conversation, also where all its messages have the same."""

_Place = tuple[str, Any]
_Key = Callable[[Mapping[str, Any]], Any]
"""What of a message identifies its conversation; None where nothing does."""


def with_conversations(name: str, records: Iterator[_Place], named: _Key) -> Iterator[_Place]:
    """The records of a file, or its conversations where each record is a message.

    `named` gives what the user says identifies a task. Raises `DataError` for a conversation that is too large.
    """
    first: list[_Place] = []
    for each in records:
        first.append(each)
        if not _is_message(each[1]) or len(first) == _MOST_MESSAGES:
            break
    every = chain(first, records)
    messages = [record for _, record in first]
    if not messages or not all(map(_is_message, messages)):
        yield from every
        return
    key = _key_of(messages, named)
    yield from _grouped(name, _by_system(every) if key is None else _by_key(every, key))


def conversations_in(name: str, place: str, messages: Sequence[Any]) -> Iterator[_Place]:
    """The conversations of a list of messages: one, unless they have a field that tells them apart."""
    key = _key_of(messages, lambda message: None) if all(map(_is_message, messages)) else None
    if key is None or len({*map(key, messages)}) == 1:
        yield place, messages
    else:
        yield from _grouped(name, _by_key(((f"{name}, record {n}", each) for n, each in enumerate(messages, 1)), key))


def _is_message(record: Any) -> bool:
    return isinstance(record, Mapping) and isinstance(record.get("role"), str) and conversation_of(record) is None


def _plain(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int | float) else None


def _task_of(message: Mapping[str, Any]) -> str | None:
    task, _, trial = identity_of(message)
    return None if _plain(task) is None else f"{task}, trial {_plain(trial)}"


def _own_id(message: Mapping[str, Any]) -> str | None:
    return _plain(first_of(message, ("id", "uuid")))


_KEYS: tuple[_Key, ...] = (
    lambda message: _plain(identity_of(message)[1]),
    lambda message: _plain(message.get("trace_id")),
    _task_of,
    _own_id,
)


def _key_of(messages: Sequence[Mapping[str, Any]], named: _Key) -> _Key | None:
    """What tells the conversations of messages apart: a field that all have, and that isn't each message's own."""
    if all(_plain(named(message)) is not None for message in messages):
        return lambda message: _plain(named(message))
    for key in _KEYS:
        values = {key(message) for message in messages}
        if None in values or 2 * len(values) > len(messages):
            continue
        said = {key(message) for message in messages if role_of(message) != "assistant"}
        if key is not _own_id or said == values:  # else each is one message's, or the parts of one reply have it
            return key
    return None


_Keyed = Iterator[tuple[str, str, Any]]
"""What identifies the conversation of a message, its place, and the message."""


def _by_key(records: Iterable[_Place], key: _Key) -> _Keyed:
    return ((str(key(each)) if _is_message(each) else "", where, each) for where, each in records)


def _by_system(records: Iterable[_Place]) -> _Keyed:
    """The number of the conversation: in a file that begins with a message of the system, each does."""
    number, first, before = 0, None, None
    for where, message in records:
        role = role_of(message) if _is_message(message) else None
        first = first or role
        number += first == role == "system" != before
        before = role or before
        yield str(number), where, message


def _grouped(name: str, keyed: _Keyed) -> Iterator[_Place]:
    """The conversations of messages, in the order of their first ones, after the other records. Raises `DataError`."""
    sizes: Counter[str] = Counter()
    with TemporaryDirectory(prefix="rewoo-bench-") as folder, closing(Parts(Path(folder) / "parts.sqlite")) as parts:
        for id_, where, message in keyed:
            if not _is_message(message):
                yield where, message
                continue
            sizes[id_] += 1
            if sizes[id_] > _MOST_MESSAGES:
                raise DataError(f"{where}: a conversation of more than {_MOST_MESSAGES:,} messages")
            try:
                parts.add("messages", id_, Path(name), where, message)
            except RecursionError:
                raise DataError(f"{where}: nested too deeply") from None
        for *_, begun, messages in parts.whole():
            yield name if len(sizes) == 1 else begun, _conversation(messages)


def _conversation(messages: Sequence[Mapping[str, Any]]) -> Any:
    """The messages, with what all of them say of the conversation."""
    first, *others = messages
    facts = {
        name: value
        for name, value in first.items()
        if name not in _OF_A_MESSAGE and all(name in each and each[name] == value for each in others)
    }
    return {**facts, "messages": messages}


# Requests of one conversation, as a proxy logs them one by one: each repeats what the one before had.
#
# A record goes on with an earlier one of its file where its messages begin with all of that one's and, where that one
# has a response, go on with its reply; or where it names that response (`previous_response_id`). Of several records
# that go on with one, the first one does; another is a conversation of its own, whose calls begin where it departs.
# Open conversations are bounded by number and size: one that goes on after it was closed is another row, with a note,
# and none of its calls is in both. A request that has a response only when it is made again is one call.


_MOST_OPEN = 256
_LARGEST = 64 * 2**20  # characters of all open conversations
_MOST_PASSED = 100_000  # beginnings that are remembered, for conversations that depart from another one or go on late


@dataclass(eq=False)
class Logged:
    """A conversation of a log. `where` is the place of its first record, and `request` is the last one."""

    where: str
    request: LoggedRequest
    start: int = 0
    """Number of messages before its own: their calls are another conversation's."""
    replies: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """What the log has of replies to its earlier requests, by their places in the messages."""
    goes_on: bool = False
    """Whether that one was closed before, since too many were open."""
    are_whole: bool = False
    """Whether a record was no request, but a conversation with its last reply."""
    last_reply: bytes | None = None
    """Digest of the messages up to the last reply of its own."""
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
        """All its calls. Raises `Unreadable`.

        Credentials are taken out here: in every record, that would take most of the time that a log takes.
        """
        known = self.known()
        parts = {name: without_credentials(getattr(known, name)) for name in ("messages", "reply", "model", "tools")}
        found = trajectory_of(replace(known, **parts), default_task, self.start, self.lacks_reply)
        notes = {"goes_on": True} if self.goes_on else {}
        return replace(found, agent=without_credentials(found.agent), notes={**found.notes, **notes})

    def known(self) -> LoggedRequest:
        """The last request, whose messages have what the log knows of each reply."""
        messages = list(self.request.messages)
        for place, reply in self.replies.items():
            if role_of(messages[place]) == "assistant":
                messages[place] = {**messages[place], **reply}
        return replace(self.request, messages=messages)


class RequestLog:
    """The conversations of a file that may still go on. Of each record `named` says what else identifies its task."""

    def __init__(self, named: Callable[[Any], Any] = lambda record: None) -> None:
        self._named = named
        self._open: OrderedDict[Logged, None] = OrderedDict()  # the one longest without a new request first
        self._by_end: defaultdict[bytes, list[Logged]] = defaultdict(list)
        self._by_response: dict[str, tuple[Logged, int]] = {}
        self._passed: OrderedDict[bytes, bool] = OrderedDict()  # whether a conversation was closed there
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
            begun, goes_on = (start, False) if start else self._begun(request.whole, digests)
            logged = Logged(where, request, begun, goes_on=goes_on)
        else:
            logged = self._joined(earlier, request, digests)
        places = range(len(request.whole), logged.start, -1)
        last = next((at for at in places if role_of(request.whole[at - 1]) == "assistant"), None)
        logged.last_reply = None if last is None else digests[last]
        logged.end, logged.size = digests[-1], size
        self._size += size
        self._open[logged] = None
        self._by_end[logged.end].append(logged)
        if id_:
            logged.answered.append(id_)
            self._by_response[id_] = logged, len(request.whole)
        while len(self._open) > _MOST_OPEN or (self._size > _LARGEST and len(self._open) > 1):
            longest = next(iter(self._open))
            if (counted := longest.end if longest.lacks_reply else longest.last_reply) is not None:
                self._remember(counted, is_end=True)
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
        for length, message in enumerate(request.messages, 1):
            if role_of(message) == "assistant":
                self._remember(digests[length], is_end=False)
        return logged

    def _remember(self, beginning: bytes, is_end: bool) -> None:
        """Notes that the calls up to there are counted."""
        self._passed[beginning] = is_end or self._passed.get(beginning, False)
        self._passed.move_to_end(beginning)
        if len(self._passed) > _MOST_PASSED:
            self._passed.popitem(last=False)

    def _begun(self, messages: Sequence[Any], digests: Sequence[bytes]) -> tuple[int, bool]:
        """How many of these messages are another conversation's, and whether that one was closed there.

        Where it lacked its last reply, the reply is the next message, and its call is counted already.
        """
        for at in range(len(messages) - 1, 0, -1):
            if (is_end := self._passed.get(digests[at])) is not None:
                return at + (role_of(messages[at - 1]) != "assistant" == role_of(messages[at])), is_end
        return 0, False

    def _sent_again(self, failed: Sequence[Logged], request: LoggedRequest) -> Logged:
        """The conversation whose last request had no response until it was made again."""
        logged, *others = failed
        self._take_out(logged)
        for each in others:
            self._closed(each)
        request.facts = {**logged.request.facts, **request.facts}
        logged.request = request
        return logged

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
