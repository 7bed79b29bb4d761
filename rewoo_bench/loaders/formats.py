"""The row formats that can be read. They are recognised by their keys, or named by a data set.

Some sets have the same keys. Their rows are read in such a format only where the data set is named:
`--dataset physics=FILE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from rewoo_bench.config.specs import Style
from rewoo_bench.errors import DataError
from rewoo_bench.loaders.multihop import hotpotqa_example, musique_example, wikimultihop_example
from rewoo_bench.loaders.row_fields import Row, RowError, encodable
from rewoo_bench.loaders.short_answers import (
    gsm8k_example,
    is_gsm8k,
    parallelqa_example,
    physics_example,
    sample_example,
    sports_example,
    strategyqa_example,
    triviaqa_example,
)
from rewoo_bench.types import Example


@dataclass(frozen=True, slots=True)
class Defaults:
    """Exemplars, scorer and tools that fit the questions of a format; no tools are those of the architecture."""

    style: Style = "multihop"
    scoring: str = "hotpotqa"
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How rows of one shape become examples."""

    name: str
    source: str
    keys: frozenset[str]
    """Keys of every row; a row is of the first format all of whose keys it has."""
    convert: Callable[[Row], Example | None]
    """None is a row that can't be answered, and is left out."""
    is_evident: Callable[[Row], bool] = lambda row: True
    """Whether a row with these keys is surely of this format, though nobody names the data set."""
    numbered: bool = False
    """Whether a row without an id has its number for one."""

    @property
    def defaults(self) -> Defaults:
        """What its questions need, where no dataset.toml says so."""
        return _DEFAULTS.get(self.name, Defaults())

    @property
    def repeats(self) -> bool:
        """Whether a question may come in several rows, each with other documents.

        TriviaQA's `rc` rows are its web rows and its Wikipedia rows, one after the other, and
        many questions are in both.
        """
        return self.name == "triviaqa"


def _never(_: Row) -> bool:
    return False


_DEFAULTS: Mapping[str, Defaults] = {
    "triviaqa": Defaults("trivia", "triviaqa"),
    "musique": Defaults("multihop", "musique"),
    "parallelqa": Defaults("multihop", "parallelqa", ("Calculator", "Search", "LLM")),
    "strategyqa": Defaults("yes_no", "yes_no", ("Search", "LLM")),
    "gsm8k": Defaults("arithmetic", "gsm8k", ("Calculator", "LLM")),
    "physics": Defaults("arithmetic", "physics", ("Calculator", "Search", "LLM")),
    "sports": Defaults("yes_no", "yes_no", ("Search", "LLM")),
    "sotu": Defaults("trivia", "triviaqa", ("Search",)),
}
_QUESTION, _INPUT = frozenset({"question"}), frozenset({"input"})

ANY_QUESTION = "sample"
"""The format of any row that has a question, unless its keys say more."""

ROW_FORMATS = (
    RowFormat("2wiki", "official file", frozenset({"_id", "question", "evidences"}), wikimultihop_example),
    RowFormat("2wiki", "Hugging Face", frozenset({"id", "question", "evidences"}), wikimultihop_example),
    RowFormat("musique", "official file", frozenset({"id", "question", "paragraphs"}), musique_example),
    RowFormat("parallelqa", "official file", frozenset({"id", "question", "answer", "branch"}), parallelqa_example),
    RowFormat("hotpotqa", "official file", frozenset({"_id", "question"}), hotpotqa_example),
    RowFormat("hotpotqa", "Hugging Face", frozenset({"id", "question", "answer", "context"}), hotpotqa_example),
    RowFormat("triviaqa", "official file", frozenset({"QuestionId", "Question"}), triviaqa_example),
    RowFormat("triviaqa", "Hugging Face", frozenset({"question_id", "question"}), triviaqa_example),
    RowFormat("strategyqa", "official file, Hugging Face", frozenset({"qid", "question"}), strategyqa_example),
    RowFormat("strategyqa", "ReWOO's file", _INPUT, strategyqa_example, _never, numbered=True),
    RowFormat("gsm8k", "answers with ####", _QUESTION, gsm8k_example, is_gsm8k, numbered=True),
    RowFormat("physics", "ReWOO's file", _INPUT, physics_example, _never, numbered=True),
    RowFormat("sports", "ReWOO's file", _INPUT, sports_example, _never, numbered=True),
    RowFormat("sotu", "ReWOO's file", _QUESTION, sample_example, _never, numbered=True),
    RowFormat(ANY_QUESTION, "this project", _QUESTION, sample_example, numbered=True),
)


def format_named(name: str) -> RowFormat:
    """A format of that name."""
    return next(each for each in ROW_FORMATS if each.name == name)


class Examples:
    """The rows of a source as examples, one at a time, and how many were left out so far."""

    def __init__(self, rows: Iterable[object], row_format: RowFormat, where: str) -> None:
        self.format = row_format
        self.left_out = 0
        self._rows = rows
        self._where = where

    def __iter__(self) -> Iterator[Example]:
        """Raises `DataError` for a row that lacks something."""
        for number, row in enumerate(self._rows, start=1):
            if not isinstance(row, dict):
                raise DataError(f"{self._where}, row {number}: {row!r:.80}, expected an object")
            if self.format.numbered:
                row = {"id": number, **row}
            try:
                example = self.format.convert(row)
                if example is None:
                    self.left_out += 1
                    continue
                example = encodable(example)
            except RowError as error:
                raise DataError(f"{self._where}, row {number}: {error}") from None
            yield example


def read_examples(rows: Iterable[Row], where: str, name: str | None = None) -> Examples:
    """The rows as examples, in the format of the first row.

    `name` is the format that the rows must have; None recognises it. `where` begins every message. Raises
    `DataError` where there is no row, a row of an unknown format, or (while iterating) a row that lacks something.
    """
    iterator = iter(rows)
    for first in iterator:
        return Examples(chain((first,), iterator), _format_of(first, name, where), where)
    raise DataError(f"{where} has no rows")


def _format_of(row: object, name: str | None, where: str) -> RowFormat:
    """The format of a row: the one of that name, else the one that its keys make evident."""
    if not isinstance(row, dict):
        raise DataError(f"{where}, row 1: {row!r:.80}, expected an object")
    keys = ", ".join(sorted(map(str, row))) or "none"
    fitting = [each for each in ROW_FORMATS if each.keys <= row.keys()]
    evident = next((each for each in fitting if each.is_evident(row)), None)
    named = next((each for each in fitting if each.name == name), None)
    if named and (evident is None or evident.name in (name, ANY_QUESTION)):
        return named
    if name is not None:
        if evident:
            raise DataError(f"{where}: dataset.toml says format = {name!r}, but the rows are {evident.name!r}")
        expected = " or ".join(", ".join(sorted(each.keys)) for each in ROW_FORMATS if each.name == name)
        raise DataError(f"{where}: rows with the keys {keys} aren't of the format {name!r}, which has {expected}")
    if evident:
        return evident
    known = ", ".join(dict.fromkeys(each.name for each in ROW_FORMATS if each.is_evident is not _never))
    names = ", ".join(each.name for each in fitting)
    hint = f"; name the data set that they are of, as in --dataset {fitting[0].name}=FILE ({names})" if fitting else ""
    raise DataError(
        f"{where}: name the keys, or the columns, 'question' and 'answers'; found {keys}, which is no known "
        f"format{hint}; known by their keys: {known} (datasets/README.md)"
    )
