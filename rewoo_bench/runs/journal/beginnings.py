"""The beginnings of recorded prompts: each is a message and the beginning before it.

    beginnings = Beginnings(journal.database)
    [beginnings.text(part.text) for part in beginnings.parts(last)]       # the contents of a prompt's messages

Some are remembered, and so are some texts: prompts share most of theirs.
"""

from __future__ import annotations

from typing import NamedTuple

from rewoo_bench.errors import DataError
from rewoo_bench.runs.journal.database import JournalFile, KnownTexts


class Beginning(NamedTuple):
    """The end of a beginning: its last message. `before` is 0 for the first; `text` and `before` are ids."""

    id: int
    before: int
    text: int
    form: str


class Beginnings:
    """Reads beginnings and texts of a journal."""

    def __init__(self, database: JournalFile) -> None:
        self._database = database
        self._known = KnownTexts[int, Beginning]()
        self._texts = KnownTexts[int, "str | None"]()

    def part(self, id_: int) -> Beginning:
        """The end of a beginning. Raises `DataError` where it is missing or damaged."""
        if (part := self._known.get(id_)) is None:
            rows = self._database.rows("prompts", "WHERE id = ?", (id_,))
            if not rows:
                raise DataError(f"{self._database.path}: messages of its prompts are missing or damaged")
            part = self._known.keep(id_, Beginning(*rows[0]), len(rows[0][3]))
        return part

    def parts(self, last: int) -> list[Beginning]:
        """All messages of a prompt. Raises `DataError`."""
        found: list[Beginning] = []
        while last:
            found.append(self.part(last))
            last = found[-1].before
        return found[::-1]

    def text(self, id_: int) -> str | None:
        """A text by its id, None where it is missing or damaged."""
        if id_ in self._texts:
            return self._texts[id_]
        rows = self._database.rows("texts", "WHERE id = ?", (id_,))
        text = str(rows[0][1]) if rows else None
        return self._texts.keep(id_, text, len(text or ""))
