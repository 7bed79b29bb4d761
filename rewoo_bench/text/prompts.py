"""Prompts that begin alike: what is known of a beginning isn't worked out again.

    prompts = Prompts()
    first = prompts.of([Message("user", "2 + 2?")])
    second = prompts.of([Message("user", "2 + 2?"), Message("assistant", "4"), Message("user", "And 3?")])
    second.folded("characters", lambda sum_, message: sum_ + len(message.content), 0)     # reads the last two alone

An agent sends all it has said with each call, so work on whole prompts grows with the square of a conversation. Here a
value of a prompt is a function folded over its messages, and the value of each beginning is kept. Messages are ours,
or the parts of a request as an agent has sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import eq
from typing import Any, Generic, TypeVar, cast, overload

_MOST_CONVERSATIONS = 6  # of a question: of sub-agents, and of an agent that rewrites beginnings; their texts are kept
Item = TypeVar("Item")  # a message
Value = TypeVar("Value")


class _Conversation(Generic[Item]):
    """Messages that only grow, and for each fold its values after the first 0, 1, 2, … of them."""

    def __init__(self, messages: Sequence[Item] = ()) -> None:
        self.messages = list(messages)
        self.values: dict[object, list[Any]] = {}

    def branch(self, length: int, rest: Sequence[Item]) -> _Conversation[Item]:
        """A conversation that has the first `length` messages of this one, and others after them."""
        other = _Conversation[Item]([*self.messages[:length], *rest])
        other.values = {key: values[: length + 1] for key, values in self.values.items()}
        return other

    def common(self, messages: Sequence[Item]) -> int:
        """How many of the first messages are the same."""
        if self.messages == messages[: len(self.messages)]:  # also the quickest where they are the same objects
            return len(self.messages)
        same = map(eq, self.messages, messages)
        return next((place for place, is_same in enumerate(same) if not is_same), len(messages))


class Prompt(Sequence[Item]):
    """The messages of a request, as they were given; those of one conversation share what is known of them."""

    __slots__ = ("_conversation", "_given", "_length")

    def __init__(
        self, conversation: _Conversation[Item] | None = None, length: int = 0, given: Sequence[Item] | None = None
    ) -> None:
        self._conversation: _Conversation[Item] = conversation or _Conversation()
        self._length = length
        self._given = self._conversation.messages if given is None else given

    def with_message(self, message: Item) -> Prompt[Item]:
        """This prompt and one more message."""
        conversation = self._conversation
        if len(conversation.messages) == self._length:
            conversation.messages.append(message)
        elif conversation.messages[self._length] != message:
            conversation = conversation.branch(self._length, [message])
        return Prompt(conversation, self._length + 1)

    def beginning(self, length: int) -> Prompt[Item]:
        """The prompt of the first messages, of all where it hasn't so many."""
        return Prompt(self._conversation, min(length, self._length))

    def folded(self, key: object, step: Callable[[Value, Item], Value], first: Value) -> Value:
        """`step` applied to the value so far, from `first` on, and each message; `key` names the fold."""
        return self.values(key, step, first)[self._length]

    def values(self, key: object, step: Callable[[Value, Item], Value], first: Value) -> list[Value]:
        """The fold's values after the first 0, 1, 2, … messages; there may be more than this prompt has."""
        conversation = self._conversation
        values: list[Value] = conversation.values.setdefault(key, [first])
        for message in islice(conversation.messages, len(values) - 1, self._length):
            values.append(step(values[-1], message))
        return values

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Item: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Item]: ...

    def __getitem__(self, place: int | slice) -> Item | Sequence[Item]:
        if isinstance(place, slice):
            return [self._given[each] for each in range(*place.indices(self._length))]
        return self._given[range(self._length)[place]]

    def __iter__(self) -> Iterator[Item]:
        return islice(self._given, self._length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self),)


class Prompts(Generic[Item]):
    """The prompts of a question."""

    def __init__(self) -> None:
        self._conversations: list[_Conversation[Item]] = []  # the one that was used last at the end

    def of(self, messages: Sequence[Item]) -> Prompt[Item]:
        """The prompt with these messages."""
        if isinstance(messages, Prompt):
            return messages
        given = list(messages)
        best, length = None, 0
        for conversation in reversed(self._conversations):
            if (common := conversation.common(given)) > length:
                best, length = conversation, common
            if length == len(given) or (best is conversation and length == len(best.messages)):
                break
        if best is None:
            best = _Conversation(given)
        elif length == len(best.messages):
            best.messages.extend(given[length:])
            self._conversations.remove(best)
        elif length < len(given):
            best = best.branch(length, given[length:])
        else:
            self._conversations.remove(best)
        self._conversations = [*self._conversations[1 - _MOST_CONVERSATIONS :], best]
        return Prompt(best, len(given), given)


def folded(messages: Sequence[Item], key: object, step: Callable[[Value, Item], Value], first: Value) -> Value:
    """The fold of any messages; of a `Prompt` from what is known of its beginning."""
    return messages.folded(key, step, first) if isinstance(messages, Prompt) else reduce(step, messages, first)


def of_each(messages: Sequence[Item], key: object, value: Callable[[Item], Value]) -> list[Value]:
    """A value of each message; of a `Prompt` those that aren't known yet are worked out."""
    if not isinstance(messages, Prompt):
        return [*map(value, messages)]
    return messages.values(key, lambda _, message: value(message), cast(Value, None))[1 : len(messages) + 1]
