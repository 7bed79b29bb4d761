"""Messages that stand one by one in a file, such as a message a line -> conversations.

    {"session_id": "a", "role": "user", …}  {"session_id": "b", "role": "user", …}      two conversations

The messages of a conversation have one value of a field such as `session_id`, which all messages of the file have;
conversations may be interleaved. Where there is no such field, a system's message after others begins the next one.
What is kept is bounded: conversations longest without a new message are closed first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from rewoo_bench.imports.messages import conversation_of, first_of, identity_of, role_of
from rewoo_bench.imports.record import Unreadable

_MOST = 20_000  # messages of one conversation, and of all that are kept
_OF_A_MESSAGE = {
    *("role", "from", "type", "content", "value", "name", "usage", "cost"),
    *("tool_calls", "tool_call_id", "function_call"),
}
"""Fields that say nothing of the conversation, also where all its messages have the same."""

_Place = tuple[str, Any]
_Key = Callable[[Mapping[str, Any]], Any]
"""What of a message identifies its conversation; None where nothing does."""


def with_conversations(name: str, records: Iterator[_Place], named: _Key = lambda message: None) -> Iterator[_Place]:
    """The records of a file, or its conversations where each record is a message.

    `named` gives what the user says identifies a task.
    """
    first: list[_Place] = []
    for each in records:
        first.append(each)
        if not _is_message(each[1]):
            yield from first
            yield from records
            return
        if len(first) == _MOST:
            break
    every = chain(first, records)
    key = _key_of([message for _, message in first], named)
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


_KEYS: tuple[_Key, ...] = (
    lambda message: _plain(identity_of(message)[1]),
    lambda message: _plain(message.get("trace_id")),
    _task_of,
    lambda message: _plain(first_of(message, ("id", "uuid"))),
)


def _key_of(messages: Sequence[Mapping[str, Any]], named: _Key) -> _Key | None:
    """What tells the conversations of messages apart: a field that all have, and that isn't each message's own."""
    if all(_plain(named(message)) is not None for message in messages):
        return lambda message: _plain(named(message))
    for key in _KEYS:
        values = {key(message) for message in messages}
        if None not in values and 2 * len(values) <= len(messages):
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
    """The conversations of messages; other records as they are."""
    kept: OrderedDict[str, tuple[str, list[Any]]] = OrderedDict()
    too_long: set[str] = set()
    size = closed = 0
    for id_, where, message in keyed:
        if not _is_message(message):
            yield where, message
            continue
        if id_ in too_long:
            continue
        kept.setdefault(id_, (where, []))[1].append(message)
        kept.move_to_end(id_)
        size += 1
        while size > _MOST:
            id_, (begun, messages) = kept.popitem(last=False)
            size, closed = size - len(messages), closed + 1
            if len(messages) > _MOST:
                too_long.add(id_)
                yield begun, Unreadable(f"a conversation of more than {_MOST:,} messages")
            else:
                yield begun, _conversation(messages)
    for begun, messages in kept.values():
        yield name if len(kept) == 1 and not closed else begun, _conversation(messages)


def _conversation(messages: Sequence[Mapping[str, Any]]) -> Any:
    """The messages, with what all of them say of the conversation."""
    first, *others = messages
    facts = {
        name: value
        for name, value in first.items()
        if name not in _OF_A_MESSAGE and all(name in each and each[name] == value for each in others)
    }
    return {**facts, "messages": messages}
