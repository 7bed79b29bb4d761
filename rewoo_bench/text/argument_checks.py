"""Arguments from Python and of commands: one of a wrong type is a `UsageError` with the argument's name.

check_kind("exemplars", 5, (str,), "a style such as 'multihop'")    # exemplars: expected a style …, got 5
as_path("out", "results")                                   # Path("results")
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.text.redaction import credentials_of, is_plain_credential

_VALUES = re.compile(r"[A-Za-z_][\w-]*=")


def check_kind(name: str, value: object, kinds: tuple[type, ...], expected: str) -> None:
    """Raises `UsageError` for a value of another type."""
    if not isinstance(value, kinds):
        raise UsageError(f"{name}: expected {expected}, got {abridged(value)}")


def check_names(**values: object) -> None:
    """Raises `UsageError` for one that is no list of texts; a single text would be taken for its letters."""
    for name, value in values.items():
        if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(n, str) for n in value):
            raise UsageError(f"{name}: expected a list of names, got {abridged(value)}")


def check_known(what: str, names: Iterable[str], known: Collection[str], flag: str = "") -> None:
    """Raises `UsageError` for the first name that isn't known, with its `flag` where it has one."""
    for name in names:
        if name not in known:
            raise UsageError(f"{flag}: {unknown(what, name, known)}" if flag else unknown(what, name, known))


def as_path(name: str, value: object, expected: str = "a path") -> Path:
    """A path given as a text or a path. Raises `UsageError`."""
    if not isinstance(value, str | Path):
        raise UsageError(f"{name}: expected {expected}, got {abridged(value)}")
    return Path(value)


def abridged(value: object) -> str:
    """A value as a message has it, at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def take_values(words: list[str], flag: str) -> dict[str, str]:
    """Takes `NAME=VALUE` from the front of a command's words.

    Raises `UsageError` for a credential as it is, there or behind a flag of the command.
    """
    values: dict[str, str] = {}
    while words and _VALUES.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        values[name] = value
    for name, value in (*values.items(), *((name, value) for _, name, value in credentials_of(words))):
        if is_plain_credential(name, value):
            what = "its value would stand in run.json; put it into a variable and write $NAME, in single quotes"
            raise UsageError(f"{flag}: {name}: {what}")
    return values
