"""Where a value of a tool call comes from: matching values as people and programs write them.

    Index("Fly on May 20th with 3 bags").find("2024-05-20")        # "part"
    Index('{"user": {"id": "mia_li_1"}}').find("mia_li_1")         # "field", at user.id

Two values are the same where their form is:

    number    1500, 1500.0, "1,500", "$1,500.00"; 02134 isn't 2134; in a text also 20GB, 3rd, 2x, and one to twelve
    date      2024-05-20, "May 20, 2024", "20 May 2024", "May 20th", 5/20/2024, 20.5.2024, 5月20日; 20/5/2024, since no
              month is 20; a day without a year is the same in each year
    time      15:00, 15:00:00, "3 PM", "3:00 pm"
    sum       152 + 103, with its signs; 555-1234 without spaces is none
    words     letters and digits in their order, whatever the case, the accents and what stands between them

A list or an object is its single values; a text that is JSON is read as such. A number is never a part of a longer one,
of a date, a time or the mark of a list; a word never a part of a longer word, but in scripts that don't part words as
others do, such as Chinese or Thai: there two letters or more may stand anywhere. Two to four capitals, such as the code
of an airport, stand in a longer text as they are, or in small letters where they are three or four: LAS is in "las",
not in "Las Vegas".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.words import normalized

How = Literal["whole", "field", "choice", "part"]
"""A text is the value; or has it as a field of its JSON; in one of several items, where others have another value; or
somewhere in it."""

Form = tuple[str, str]
"""A kind of form and its canonical text: `("number", "1500")`."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u0e00-\U0003ffff]")  # Thai and what comes behind it, up to Hangul and Han
_DIGITS = r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_NUMBER = re.compile(rf"{_DIGITS}(?!\w|\.\d)")
_UNIT = r"(?i:st|nd|rd|th|x|[kmgt]?b|[kcm]?m|k?g|lbs?|hrs?|mins?|usd|eur)"
_NUMBER_OR_AMOUNT = re.compile(rf"({_DIGITS})(?:{_UNIT})?(?!\w|\.\d)")
_CODE = re.compile(r"[A-Z]{2,4}")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|(?-i:May)|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = (
    re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<number>\d{1,2})-(?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?<![\d/])(?P<number>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})(?![\d/])"),
    re.compile(r"(?<![\d.])(?P<day>\d{1,2})\.(?P<number>\d{1,2})\.(?P<year>\d{4})(?!\d)"),
    re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?:,?\s+(?P<year>\d{{4}})\b)?", re.IGNORECASE),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}\b(?:,?\s+(?P<year>\d{{4}})\b)?", re.IGNORECASE),
    re.compile(r"(?:(?<!\d)(?P<year>\d{4})年)?(?<!\d)(?P<number>\d{1,2})月(?P<day>\d{1,2})日"),
)
_TIME = re.compile(
    r"(?<![\d:])(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::\d{2})?)?(?:\s?(?P<half>[ap])\.?m\b\.?)?(?![\d:])",
    re.IGNORECASE,
)
_SUMMAND = r"[\s(]*\$?\d[\d,]*(?:\.\d+)?%?[\s)]*"
_SUM = re.compile(rf"{_SUMMAND}(?:(?:[+*/]|(?<=\s)-(?=\s)){_SUMMAND})+")
_MARK = re.compile(r"^[ \t]*\d{1,9}[.)](?=\s)", re.MULTILINE)
_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBER_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(_NUMBERS[1:])})(?![\w-])")
_POSITION = re.compile(r"\[\d+\]")
_NAME, _NAMES = " (its name)", " names"
_VOICING = 8  # class of the marks that tell は from ば


class Leaf(NamedTuple):
    """A single value of an argument, and its path: `flights[0].date`."""

    path: str
    value: Any


def leaves(value: Any, path: str = "") -> Iterator[Leaf]:
    """The single values in a JSON value, those in texts that are JSON included; an empty list or object is one."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):  # it only begins like one
            value = load_json(value)
    if isinstance(value, Mapping) and value:
        for name, each in value.items():
            yield from leaves(each, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value:
        for place, each in enumerate(value):
            yield from leaves(each, f"{path}[{place}]")
    else:
        yield Leaf(path, value)


def is_empty(value: Any) -> bool:
    """Whether there is nothing to look for: null, true, false, an empty text, list or object."""
    return value is None or isinstance(value, bool) or value in ([], {}) or not str(value).strip()


def numbers_in(value: Any) -> list[str]:
    """The numbers of a sum, `["152", "103"]` of `152 + 103`; none of any other value."""
    found = forms(value)
    return _NUMBER.findall(re.sub(r"[^\d.,]", " ", str(value))) if found and found[0][0] == "sum" else []


def is_weak(value: Any) -> bool:
    """Whether a value is so short that it stands in many texts: a number below 1,000, yes or no."""
    found = forms(value)
    if not found:
        return True
    kind, text = found[0]
    return text in ("yes", "no") or (kind == "number" and len(text.partition(".")[0]) <= 3)


def forms(value: Any) -> tuple[Form, ...]:
    """The forms of a single value; none for null, true, false, and what is empty."""
    if is_empty(value) or isinstance(value, list | Mapping):
        return ()
    return _forms(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=50_000)
def _forms(text: str) -> tuple[Form, ...]:
    stripped = _plain(text).strip()
    if _NUMBER.fullmatch(bare := stripped.strip("$€£% ")):
        return (("number", _canonical(bare)),)
    for pattern in _DATES:
        if (found := pattern.fullmatch(stripped)) and (date := _date(found)):
            return (("date", date),)
    if (found := _TIME.fullmatch(stripped)) and (moment := _time(found)):
        return (("time", moment),)
    if _SUM.fullmatch(stripped):
        return (("sum", "".join(stripped.split())),)
    words = _words(stripped)
    return (("words", words),) if words else ()


def _plain(text: str) -> str:
    """The text with the plain forms of digits, letters and spaces: full-width digits become 0 to 9."""
    return text if text.isascii() else normalized("NFKC", text)


def _canonical(number: str) -> str:
    """`1,500.00` as `1500`."""
    text = number.replace(",", "")
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, rest = digits.partition(".")
    is_code = whole.startswith("0") and len(whole) > 2
    whole, rest = whole if is_code else whole.lstrip("0") or "0", rest.rstrip("0")
    found = f"{whole}.{rest}" if rest else whole
    return found if found == "0" else sign + found


def _date(found: re.Match[str]) -> str:
    """`2024-05-20`, or `-05-20` without a year; empty for a day that doesn't exist."""
    parts = found.groupdict()
    month = int(parts["number"]) if parts.get("number") else _MONTHS.index(parts["month"][:3].lower()) + 1
    day, year = int(parts["day"]), parts.get("year") or ""
    if month > 12 and "/" in found[0]:
        month, day = day, month
    return f"{year}-{month:02}-{day:02}" if 1 <= month <= 12 and 1 <= day <= 31 else ""


def _time(found: re.Match[str]) -> str:
    """`15:00`; empty where it is only a number, or no time of the day."""
    hour, minute, half = int(found["hour"]), int(found["minute"] or 0), (found["half"] or "").lower()
    if not (found["minute"] or half) or hour > (12 if half else 24) or minute > 59:
        return ""
    return f"{hour % 12 + 12 * (half == 'p') if half else hour:02}:{minute:02}"


def _words(text: str) -> str:
    """The letters and digits of a text, in lower case and without accents, with single spaces between words."""
    if not text.isascii():
        kept = [c for c in normalized("NFKD", text) if unicodedata.combining(c) in (0, _VOICING)]
        text = unicodedata.normalize("NFC", "".join(kept))
    return " ".join(_WORD.findall(text.casefold()))


@lru_cache(maxsize=256)
def index_of(text: str) -> Index:
    """The index of a text; those of the last texts are remembered."""
    return Index(text)


class Index:
    """A text in which values are looked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._whole = forms(text)
        self._words = f" {_words(text)} "
        plain = _plain(text)
        self._dates, rest = set[str](), _MARK.sub(" ", plain)
        for pattern in _DATES:
            self._dates |= {date for found in pattern.finditer(plain) if (date := _date(found))}
            rest = pattern.sub(lambda found: " " if _date(found) else found[0], rest)
        self._days = {date[-6:] for date in self._dates}
        rest = _UNSPACED.sub(" ", rest)
        self._times = {moment for found in _TIME.finditer(rest) if (moment := _time(found))}
        rest = _TIME.sub(lambda found: " " if _time(found) else found[0], rest)
        self._numbers = {_canonical(each) for each in _NUMBER_OR_AMOUNT.findall(rest)}
        self._numbers |= {str(_NUMBERS.index(word)) for word in _NUMBER_WORD.findall(rest.lower())}
        self._fields: dict[Form, str] = {}
        self._values: dict[str, set[Form]] = {}  # at each place, over all items of lists
        if text.lstrip()[:1] in ("{", "["):
            for leaf in leaves(text):
                self._add(leaf.path, leaf.path, leaf.value)
                before = ""
                for name in leaf.path.split("."):  # names may be ids, too
                    plain = name.partition("[")[0]
                    self._add(f"{before}{plain}{_NAME}", f"{before}{_NAMES}", plain)
                    before += f"{name}."

    def find(self, value: Any) -> tuple[How, str] | None:
        """How the text has a value, and the path of its field; None where it doesn't have it."""
        for form in forms(value):
            kind, text = form
            if form in self._whole:
                return "whole", ""
            if (path := self._fields.get(form)) is not None:
                return "choice" if self._is_choice(path) else "field", path
            if self._has(kind, text, value):
                return "part", ""
        return None

    def _add(self, path: str, place: str, value: Any) -> None:
        for form in forms(value):
            self._fields.setdefault(form, path)
            self._values.setdefault(_POSITION.sub("[]", place), set()).add(form)

    def _is_choice(self, path: str) -> bool:
        """Whether there are other values at the same place, in another item of a list, or under another name."""
        if path.endswith(_NAME):
            before, dot, _ = path.removesuffix(_NAME).rpartition(".")
            return len(self._values[_POSITION.sub("[]", f"{before}{dot}{_NAMES}")]) > 1
        place = _POSITION.sub("[]", path)
        return "[]" in place and len(self._values[place]) > 1

    def _has(self, kind: str, text: str, value: Any) -> bool:
        """Whether a form stands somewhere in the text."""
        if kind == "number":
            return text in self._numbers
        if kind == "date":
            return text in self._dates or text[-6:] in self._dates or text in self._days
        if kind == "time":
            return text in self._times
        if kind == "sum":
            return re.search(rf"(?<![\d.,]){re.escape(text)}(?!\d|[.,]\d)", "".join(self._text.split())) is not None
        if isinstance(value, str) and _CODE.fullmatch(code := value.strip()):
            written = rf"(?:{code}|{code.lower()})" if len(code) > 2 else code
            return re.search(rf"(?<![^\W_]){written}(?![^\W_])", self._text) is not None
        is_unspaced = len(text) > 1 and _UNSPACED.search(text)
        return text in self._words if is_unspaced else f" {text} " in self._words
