"""Where a value of a tool call comes from: matching values as people and programs write them.

    Index("Fly on May 20th with 3 bags").find("2024-05-20")        # "part"
    Index('{"user": {"id": "mia_li_1"}}').find("mia_li_1")         # "field", at user.id

Two values are the same where one of these forms is:

    number    1500, 1500.0, "1,500", "$1,500.00"; words from zero to twenty in a text
    date      2024-05-20, "May 20, 2024", "20 May 2024", "May 20th"; a text without the year is the same in each year
    words     letters and digits in their order, whatever the case, the accents and what stands between them

A list or an object is its single values; a text that is JSON is read as such. A number is never a part of a longer one,
a word never a part of a longer word.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

How = Literal["whole", "field", "part"]
"""A text is the value, has it as a field of its JSON, or has it somewhere in it."""

Form = tuple[str, str]
"""A kind of form and its canonical text: `("number", "1500")`."""

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w]|\.\d)")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(?P<month>" + "|".join(_MONTHS) + r")[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = (
    re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<number>\d{1,2})-(?P<day>\d{1,2})(?!\d)"),
    re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?:,?\s+(?P<year>\d{{4}})\b)?", re.IGNORECASE),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+(?P<year>\d{{4}})\b)?", re.IGNORECASE),
)
_NUMBERS = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
]
_DEEPEST = 30  # levels of JSON
_MOST_LEAVES = 20_000  # of one text


class Leaf(NamedTuple):
    """A single value of an argument, and its path: `flights[0].date`."""

    path: str
    value: Any


def leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[Leaf]:
    """The single values in a JSON value, those in texts that are JSON included; an empty list or object is one."""
    if isinstance(value, str) and depth < _DEEPEST and value.lstrip()[:1] in ("{", "["):
        try:
            inner = json.loads(value)
        except (ValueError, RecursionError):
            inner = None
        value = inner if isinstance(inner, list | Mapping) else value
    if isinstance(value, Mapping) and value and depth < _DEEPEST:
        for name, each in value.items():
            yield from leaves(each, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, list) and value and depth < _DEEPEST:
        for place, each in enumerate(value):
            yield from leaves(each, f"{path}[{place}]", depth + 1)
    else:
        yield Leaf(path, value)


def is_empty(value: Any) -> bool:
    """Whether there is nothing to look for: null, true, false, an empty text, list or object."""
    return value is None or isinstance(value, bool) or (isinstance(value, str | list | Mapping) and not forms(value))


def forms(value: Any) -> tuple[Form, ...]:
    """The forms of a single value; none for one without letters and digits."""
    if isinstance(value, bool) or value is None or isinstance(value, list | Mapping):
        return ()
    return _forms(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=50_000)
def _forms(text: str) -> tuple[Form, ...]:
    stripped = text.strip()
    bare = stripped.strip("$€£% ")
    if _NUMBER.fullmatch(bare):
        return (("number", _canonical(bare)),)
    for pattern in _DATES:
        if (found := pattern.fullmatch(stripped)) and (date := _date(found)):
            return (("date", date),)
    words = _words(stripped)
    return (("words", words),) if words else ()


def _canonical(number: str) -> str:
    """`1,500.00` as `1500`."""
    text = number.replace(",", "")
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, rest = digits.partition(".")
    whole, rest = whole.lstrip("0") or "0", rest.rstrip("0")
    found = f"{whole}.{rest}" if rest else whole
    return found if found == "0" else sign + found


def _date(found: re.Match[str]) -> str:
    """`2024-05-20`, or `-05-20` without a year; empty for a day that doesn't exist."""
    parts = found.groupdict()
    month = int(parts["number"]) if parts.get("number") else _MONTHS.index(parts["month"].lower()) + 1
    day = int(parts["day"])
    return f"{parts.get('year') or ''}-{month:02}-{day:02}" if 1 <= month <= 12 and 1 <= day <= 31 else ""


def _words(text: str) -> str:
    """The letters and digits of a text, in lower case and without accents, with single spaces between words."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(_WORD.findall(text.casefold()))


class Index:
    """A text in which values are looked for."""

    def __init__(self, text: str) -> None:
        self._whole = forms(text)
        self._words = f" {_words(text)} "
        self._numbers = {_canonical(each) for each in _NUMBER.findall(text)}
        self._numbers |= {str(_NUMBERS.index(word)) for word in self._words.split() if word in _NUMBERS}
        self._dates = {date for pattern in _DATES for found in pattern.finditer(text) if (date := _date(found))}
        self._fields: dict[Form, str] = {}
        start = text.lstrip()[:1]
        if start in ("{", "["):
            for count, leaf in enumerate(leaves(text)):
                if count > _MOST_LEAVES:
                    break
                for form in forms(leaf.value):
                    self._fields.setdefault(form, leaf.path)
                for name in leaf.path.replace("[", ".").split("."):  # names may be ids, too
                    for form in forms(name):
                        self._fields.setdefault(form, f"{leaf.path.partition(name)[0]}{name} (its name)")

    def find(self, value: Any) -> tuple[How, str] | None:
        """How the text has a value, and the path of its field; None where it doesn't have it."""
        for form in forms(value):
            kind, text = form
            if form in self._whole:
                return "whole", ""
            if (path := self._field(kind, text)) is not None:
                return "field", path
            if (
                (kind == "words" and f" {text} " in self._words)
                or (kind == "number" and text in self._numbers)
                or (kind == "date" and (text in self._dates or text[-6:] in self._dates))
            ):
                return "part", ""
        return None

    def _field(self, kind: str, text: str) -> str | None:
        return self._fields.get((kind, text))
