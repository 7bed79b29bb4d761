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

_BEGINNING = 200  # characters of a text that tell whether it has words
_MOST_SEARCHES = 200  # of a piece in all lines, so that the time grows with a record's size alone
_NUMBERED = re.compile(r"\.\d+(?=\.|$)")  # attributes such as `gen_ai.prompt.0.content`


def unread_in(record: Any, trajectories: Iterable[RecordedTrajectory]) -> Counter[str]:
    """How many texts of a record none of its trajectories has, by the place of their field."""
    lines = _lines(_texts_of(trajectories))
    whole = "\n".join(lines)
    found: Counter[str] = Counter()
    waiting: list[tuple[str, Any]] = [("", record)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += ((f"{place}.{name}" if place else str(name), each) for name, each in value.items())
        elif isinstance(value, list | tuple):
            waiting += ((f"{place}[]" if place else "", each) for each in value)
        elif isinstance(value, str) and _is_text(value):
            # Its longest line stands for it, since readers join and cut texts; it may be a piece of a line.
            line = max(map(str.strip, value.splitlines()), key=len, default="")
            if line in lines or (found.total() < _MOST_SEARCHES and line in whole):
                continue
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


def _texts_of(trajectories: Iterable[RecordedTrajectory]) -> Iterator[Any]:
    """All values of trajectories that may hold texts; each message and each tool once."""
    seen: set[int] = set()
    for each in trajectories:
        yield [each.question, each.system, each.answer, each.error, each.answers, each.agent, each.notes]
        for event in each.events:
            if isinstance(event, ModelCall):
                yield [event.reply, event.thoughts, event.error, event.model]
                yield [(call.name, call.arguments) for call in event.tool_calls]
                yield [tool for tool in event.tools if id(tool) not in seen]
                seen |= {*map(id, event.tools)}
                for message in reversed(event.messages or ()):
                    if id(message) in seen:  # and all before it, in an earlier prompt
                        break
                    seen.add(id(message))
                    yield [message.content, *((call.name, call.arguments) for call in message.tool_calls)]
            elif isinstance(event, ToolUse):
                yield [event.name, event.arguments, event.result]
            else:
                yield event.text


def _lines(values: Iterable[Any]) -> set[str]:
    """The lines of all texts in values, also of those inside JSON in a text."""
    found: set[str] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        elif isinstance(value, str):
            lines = {line.strip() for line in value.splitlines()}
            found |= lines
            waiting += (inner for each in (value, *lines) if (inner := parsed(each)) is not each)
    return found
