"""The row formats that can be read. They are recognised by their keys, or named by a data set.

Some sets have the same keys. Their rows are read in such a format only where the data set is named:
`--dataset physics=FILE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from rewoo_bench.config.specs import QuestionStyle
from rewoo_bench.errors import DataError
from rewoo_bench.loaders.multihop import hotpotqa_example, musique_example, wikimultihop_example
from rewoo_bench.loaders.row_fields import RawRow, RowError
from rewoo_bench.loaders.short_answers import (
    gsm8k_example,
    is_gsm8k,
    kilt_example,
    parallelqa_example,
    physics_example,
    sample_example,
    sports_example,
    strategyqa_example,
    task_example,
    triviaqa_example,
)
from rewoo_bench.types import Example


@dataclass(frozen=True, slots=True)
class Defaults:
    """Exemplars, scorer and tools that fit the questions of a format; no tools are those of the architecture."""

    style: QuestionStyle = "multihop"
    scoring: str = "hotpotqa"
    tools: tuple[str, ...] = ()


def _never(_: RawRow) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How rows of one shape become examples."""

    name: str
    source: str
    keys: str
    """Keys of every row, with spaces between; a row is of the first format all of whose keys it has."""
    convert: Callable[[RawRow], Example | None]
    """None is a row that can't be answered, and is left out."""
    defaults: Defaults = Defaults()
    """What its questions need, where no dataset.toml says so."""
    is_evident: Callable[[RawRow], bool] = lambda _: True
    """Whether a row with these keys is surely of this format, though nobody names the data set."""
    numbered: bool = False
    """Whether a row without an id has its number for one."""
    repeats: bool = False
    """Whether a question may come in several rows, each with other documents."""


_TRIVIA = Defaults("trivia", "triviaqa")
_YES_NO = Defaults("yes_no", "yes_no", ("Search", "LLM"))
_MUSIQUE = Defaults("multihop", "musique")
_PARALLELQA = Defaults("multihop", "parallelqa", ("Calculator", "Search", "LLM"))
_GSM8K = Defaults("arithmetic", "gsm8k", ("Calculator", "LLM"))
_PHYSICS = Defaults("arithmetic", "physics", ("Calculator", "Search", "LLM"))
_SOTU = Defaults("trivia", "triviaqa", ("Search",))

ANY_QUESTION = "sample"
"""The format of any row that has a question, unless its keys say more."""

TASK = "task"
"""The format of tasks in a world: rows of any form that have a question."""

ROW_FORMATS = (
    RowFormat("2wiki", "official file", "_id question evidences", wikimultihop_example),
    RowFormat("2wiki", "Hugging Face", "id question evidences", wikimultihop_example),
    RowFormat("musique", "official file", "id question paragraphs", musique_example, _MUSIQUE),
    RowFormat("parallelqa", "official file", "id question answer branch", parallelqa_example, _PARALLELQA),
    RowFormat("hotpotqa", "official file", "_id question", hotpotqa_example),
    RowFormat("hotpotqa", "Hugging Face", "id question answer context", hotpotqa_example),
    # TriviaQA's `rc` rows are its web rows and its Wikipedia rows, one after the other; many questions are in both.
    RowFormat("triviaqa", "official file", "QuestionId Question", triviaqa_example, _TRIVIA, repeats=True),
    RowFormat("triviaqa", "Hugging Face", "question_id question", triviaqa_example, _TRIVIA, repeats=True),
    RowFormat("strategyqa", "official file, Hugging Face", "qid question", strategyqa_example, _YES_NO),
    RowFormat("kilt", "official file, Hugging Face", "id input output", kilt_example),
    RowFormat("strategyqa", "ReWOO's file", "input target", strategyqa_example, _YES_NO, _never, numbered=True),
    RowFormat("gsm8k", "answers with ####", "question", gsm8k_example, _GSM8K, is_gsm8k, numbered=True),
    RowFormat("physics", "ReWOO's file", "input target", physics_example, _PHYSICS, _never, numbered=True),
    RowFormat("sports", "ReWOO's file", "input target", sports_example, _YES_NO, _never, numbered=True),
    RowFormat("sotu", "ReWOO's file", "question", sample_example, _SOTU, _never, numbered=True),
    RowFormat(ANY_QUESTION, "this project", "question", sample_example, numbered=True),
    RowFormat(TASK, "this project", "question", task_example, is_evident=_never, numbered=True),
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
            except RowError as error:
                raise DataError(f"{self._where}, row {number}: {error}") from None
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                what = f"not in the form of {self.format.name}: {type(error).__name__}: {error}"
                raise DataError(f"{self._where}, row {number}: {what}") from None
            if example is None:
                self.left_out += 1
            else:
                yield example


def read_examples(rows: Iterable[RawRow], where: str, name: str | None = None) -> Examples:
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
    if name == TASK and "question" in row:
        return format_named(TASK)
    keys = ", ".join(sorted(map(str, row))) or "none"
    fitting = [each for each in ROW_FORMATS if row.keys() >= {*each.keys.split()}]
    evident = next((each for each in fitting if each.is_evident(row)), None)
    named = next((each for each in fitting if each.name == name), None)
    if named and (evident is None or evident.name in (name, ANY_QUESTION)):
        return named
    if evident and name is None:
        return evident
    if name is not None:
        expected = " or ".join(", ".join(sorted(each.keys.split())) for each in ROW_FORMATS if each.name == name)
        are = f"; they are {evident.name!r}" if evident else ""
        raise DataError(f"{where}: rows with the keys {keys} aren't of the format {name!r}, which has {expected}{are}")
    names = ", ".join(each.name for each in fitting)
    hint = f"; name the data set that they are of, as in --dataset {fitting[0].name}=FILE ({names})" if fitting else ""
    raise DataError(
        f"{where}: name the keys, or the columns, 'question' and 'answers'; found {keys}, which is no known "
        f"format{hint} (docs/compare.md)"
    )
