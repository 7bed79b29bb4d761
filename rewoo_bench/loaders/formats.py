"""The row formats that can be read, recognised by their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.hotpotqa import hotpotqa_example
from rewoo_bench.loaders.musique import musique_example
from rewoo_bench.loaders.parallelqa import parallelqa_example
from rewoo_bench.loaders.row_fields import Row, RowError, encodable
from rewoo_bench.loaders.sample import sample_example
from rewoo_bench.loaders.triviaqa import official_triviaqa_example, triviaqa_example
from rewoo_bench.loaders.wikimultihop import wikimultihop_example
from rewoo_bench.types import Example


@dataclass(frozen=True, slots=True)
class Format:
    """How rows of one shape become examples."""

    name: Literal["hotpotqa", "triviaqa", "sample", "musique", "2wiki", "parallelqa"]
    source: str
    keys: frozenset[str]
    """Keys of every row; a row is of the first format all of whose keys it has."""
    convert: Callable[[Row], Example | None]
    """None is a row that has no answer by design, and is left out."""

    @property
    def style(self) -> Literal["multihop", "trivia"]:
        """Which exemplars fit, where no dataset.toml says so."""
        return "trivia" if self.name == "triviaqa" else "multihop"

    @property
    def scoring(self) -> str:
        """Name of the scorer, where no dataset.toml says so."""
        return _SCORING.get(self.name, "hotpotqa")

    @property
    def repeats(self) -> bool:
        """Whether a question may come in several rows, each with other documents.

        TriviaQA's `rc` rows are its web rows and its Wikipedia rows, one after the other, and
        many questions are in both.
        """
        return self.name == "triviaqa"


_SCORING: Mapping[str, str] = {"triviaqa": "triviaqa", "musique": "musique", "parallelqa": "parallelqa"}

FORMATS = (
    Format("2wiki", "official file", frozenset({"_id", "question", "evidences"}), wikimultihop_example),
    Format("2wiki", "Hugging Face", frozenset({"id", "question", "evidences"}), wikimultihop_example),
    Format("musique", "official file", frozenset({"id", "question", "paragraphs"}), musique_example),
    Format("parallelqa", "official file", frozenset({"id", "question", "answer", "branch"}), parallelqa_example),
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


class Examples:
    """The rows of a source as examples, one at a time, and the number of those left out so far."""

    def __init__(self, rows: Iterable[object], row_format: Format, where: str) -> None:
        self.format = row_format
        self.left_out = 0
        self._rows = rows
        self._where = where

    def __iter__(self) -> Iterator[Example]:
        """Raises `DataError` for a row that lacks something."""
        for number, row in enumerate(self._rows, start=1):
            if not isinstance(row, dict):
                raise DataError(f"{self._where}, row {number}: {row!r:.80}, expected an object")
            if self.format.name == "sample":
                row = {"id": number, **row}
            try:
                example = self.format.convert(row)
                if example is not None:
                    example = encodable(example)
            except RowError as error:
                raise DataError(f"{self._where}, row {number}: {error}") from None
            if example is None:
                self.left_out += 1
            else:
                yield example


def read_examples(rows: Iterable[Row], where: str) -> Examples:
    """The rows as examples, in the format of the first row.

    `where` begins every message. Raises `DataError` where there is no row, a row of an unknown
    format, or (while iterating) a row that lacks something.
    """
    iterator = iter(rows)
    for first in iterator:
        return Examples(chain((first,), iterator), _recognise(first, where), where)
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
