"""Which texts of a record its reader left out, found by comparing what it got with what it made of it.

    unread_in({"messages": […], "judge": {"why": "It is too short."}}, trajectories)    # {"judge.why": 1}

No list of known fields: each text of the record has to stand somewhere in its trajectories, whole or in its longest
line. So a field that a new version of a format brings is noticed by itself. Words alone, such as names, ids and
addresses, are no texts here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse, parsed
from rewoo_bench.types import ToolCall

_BEGINNING = 200  # characters of a text that tell whether it has words
_MOST_SEARCHES = 200  # of a piece in all lines, so that the time grows with a record's size alone
_NUMBERED = re.compile(r"\.\d+(?=\.|$)")  # attributes such as `gen_ai.prompt.0.content`


def unread_in(record: Any, trajectories: Iterable[RecordedTrajectory]) -> Counter[str]:
    """How many texts of a record none of its trajectories has, by the place of their field."""
    taken = _Taken(trajectories)
    found: Counter[str] = Counter()
    waiting: list[tuple[str, Any]] = [("", record)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += ((f"{place}.{name}" if place else str(name), each) for name, each in value.items())
        elif isinstance(value, list | tuple):
            waiting += ((f"{place}[]" if place else "", each) for each in value)
        elif isinstance(value, str) and _is_text(value) and not taken.has(value):
            inner = parsed(value)
            if inner is not value:
                waiting.append((place, inner))
            else:
                found[_NUMBERED.sub("[]", place)] += 1
    return found


def _is_text(value: str) -> bool:
    """Whether it has two words, or letters of a script that may be written without blanks between them."""
    beginning = value[:_BEGINNING]
    words = sum(any(map(str.isalpha, word)) for word in beginning.split())
    return words > 1 or (not beginning.isascii() and words > 0)


class _Taken:
    """The lines of all texts of trajectories, also of those inside JSON in a text."""

    def __init__(self, trajectories: Iterable[RecordedTrajectory]) -> None:
        self._lines: set[str] = set()
        self._searches = 0
        seen: set[int] = set()
        for each in trajectories:
            self._add([each.question, each.system, each.answer, each.error, each.answers, each.agent, each.notes])
            for event in each.events:
                if isinstance(event, ModelCall):
                    self._add([event.reply, event.thoughts, event.error, event.model, *_calls(event.tool_calls)])
                    self._add([tool for tool in event.tools if id(tool) not in seen])
                    seen |= {*map(id, event.tools)}
                    for message in reversed(event.messages or ()):
                        if id(message) in seen:  # and all before it, in an earlier prompt
                            break
                        seen.add(id(message))
                        self._add([message.content, *_calls(message.tool_calls)])
                elif isinstance(event, ToolUse):
                    self._add([event.name, event.arguments, event.result])
                else:
                    self._add([event.text])

    def has(self, text: str) -> bool:
        """Whether a text is among them: its longest line stands for it, since readers join and cut texts."""
        line = max(map(str.strip, text.splitlines()), key=len, default="")
        if line in self._lines:
            return True
        self._searches += 1  # it may be a piece of a line
        return self._searches <= _MOST_SEARCHES and any(line in each for each in self._lines)

    def _add(self, values: list[Any]) -> None:
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if isinstance(value, Mapping):
                waiting += value.values()
            elif isinstance(value, list | tuple):
                waiting += value
            elif isinstance(value, str):
                lines = {line.strip() for line in value.splitlines()}
                self._lines |= lines
                waiting += (inner for each in (value, *lines) if (inner := parsed(each)) is not each)


def _calls(calls: Iterable[ToolCall]) -> Iterator[Any]:
    for call in calls:
        yield from (call.name, call.arguments)
