"""The row formats that can be read, recognised by their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.hotpotqa import hotpotqa_example
from rewoo_bench.loaders.row_fields import Row, RowError, encodable
from rewoo_bench.loaders.sample import sample_example
from rewoo_bench.loaders.triviaqa import official_triviaqa_example, triviaqa_example
from rewoo_bench.types import Example


@dataclass(frozen=True, slots=True)
class Format:
    """How rows of one shape become examples."""

    name: Literal["hotpotqa", "triviaqa", "sample"]
    source: str
    keys: frozenset[str]
    """Keys of every row; a row is of the first format all of whose keys it has."""
    convert: Callable[[Row], Example]

    @property
    def style(self) -> Literal["multihop", "trivia"]:
        """Which exemplars fit, where no dataset.toml says so."""
        return "trivia" if self.name == "triviaqa" else "multihop"

    @property
    def scoring(self) -> str:
        """Name of the scorer, where no dataset.toml says so."""
        return "triviaqa" if self.name == "triviaqa" else "hotpotqa"

    @property
    def repeats(self) -> bool:
        """Whether a question may come in several rows, each with other documents.

        TriviaQA's `rc` rows are its web rows and its Wikipedia rows, one after the other, and
        many questions are in both.
        """
        return self.name == "triviaqa"


FORMATS = (
    Format("hotpotqa", "official file", frozenset({"_id", "question"}), hotpotqa_example),
    Format("hotpotqa", "Hugging Face", frozenset({"id", "question", "answer", "context"}), hotpotqa_example),
    Format("triviaqa", "official file", frozenset({"QuestionId", "Question"}), official_triviaqa_example),
    Format("triviaqa", "Hugging Face", frozenset({"question_id", "question"}), triviaqa_example),
    Format("sample", "this project", frozenset({"question", "answers"}), sample_example),
    Format("sample", "this project", frozenset({"question", "answer"}), sample_example),
)


def format_named(name: str) -> Format:
    """A format of that name."""
    return next(each for each in FORMATS if each.name == name)


def read_examples(rows: Iterable[Row], where: str) -> tuple[Format, Iterator[Example]]:
    """The format of the first row, and every row as an example, one at a time.

    `where` begins every message. Raises `DataError` where there is no row, a row of an unknown
    format, or (while iterating) a row that lacks something.
    """
    iterator = iter(rows)
    for first in iterator:
        row_format = _recognise(first, where)
        return row_format, _convert(chain((first,), iterator), row_format, where)
    raise DataError(f"{where} has no rows")


def _recognise(row: object, where: str) -> Format:
    if not isinstance(row, dict):
        raise DataError(f"{where}, row 1: {row!r:.80}, expected an object")
    for candidate in FORMATS:
        if candidate.keys <= row.keys():
            return candidate
    known = "; ".join(f"{each.name} ({each.source}): {', '.join(sorted(each.keys))}" for each in FORMATS)
    seen = ", ".join(sorted(map(str, row))) or "none"
    raise DataError(f"{where}: unknown format with the keys {seen}; known formats and their keys: {known}")


def _convert(rows: Iterable[object], row_format: Format, where: str) -> Iterator[Example]:
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise DataError(f"{where}, row {number}: {row!r:.80}, expected an object")
        if row_format.name == "sample":
            row = {"id": number, **row}
        try:
            example = encodable(row_format.convert(row))
        except RowError as error:
            raise DataError(f"{where}, row {number}: {error}") from None
        yield example
