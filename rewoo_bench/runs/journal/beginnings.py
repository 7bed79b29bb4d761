"""The beginnings of recorded prompts: each is a message and the beginning before it.

    beginnings = Beginnings(journal.database)
    [beginnings.text(part.text) for part in beginnings.parts(last)]       # the contents of a prompt's messages

Some are remembered, and so are some texts: prompts share most of theirs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rewoo_bench.errors import DataError
from rewoo_bench.runs.journal.database import JournalFile, KnownTexts


class Beginning(NamedTuple):
    """The end of a beginning: its last message. `before` is 0 for the first; `text` and `before` are ids."""

    id: int
    before: int
    text: int
    form: str


class Beginnings:
    """Reads beginnings and texts of a journal, where a prompt's stand before the call that has their ids."""

    def __init__(self, database: JournalFile) -> None:
        self._database = database
        self._known = KnownTexts[int, Beginning]()
        self._texts = KnownTexts[int, str]()

    def part(self, id_: int) -> Beginning:
        """The end of a beginning."""
        if (part := self._known.get(id_)) is None:
            part = Beginning(*self._row("prompts", id_))
            self._known.keep(id_, part, len(part.form))
        return part

    def parts(self, last: int) -> list[Beginning]:
        """All messages of a prompt."""
        found: list[Beginning] = []
        while last:
            found.append(self.part(last))
            last = found[-1].before
        return found[::-1]

    def text(self, id_: int) -> str:
        """A text by its id."""
        if (text := self._texts.get(id_)) is None:
            text = str(self._row("texts", id_)[1])
            self._texts.keep(id_, text, len(text))
        return text

    def _row(self, table: str, id_: int) -> tuple[Any, ...]:
        """Raises `DataError` for an id that no journal of ours lacks."""
        if not (rows := self._database.rows(table, "WHERE id = ?", (id_,))):
            raise DataError(f"{self._database.path}: it isn't whole: {table} has no {id_}")
        return tuple(rows[0])
