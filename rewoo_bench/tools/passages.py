"""Reads a file of passages: objects as jsonl, json or parquet, or the paragraphs of a text file; also as .gz.

    {"title": "Shirley Temple", "text": "Shirley Temple Black was an American actress."}

`contents` or `content` may take the place of `text`, as in StrategyQA's paragraphs and in Pyserini's corpora; other
keys are ignored. A .json file is a list of such objects, or an object whose values they are. Empty lines separate the
paragraphs of a .txt file; their titles are `Paragraph 1`, `Paragraph 2`, …
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from rewoo_bench.errors import DataError
from rewoo_bench.escaping import replace_surrogates
from rewoo_bench.text.data_files import BoundedFile, TooLarge, open_bounded, parse_json
from rewoo_bench.types import Document

EXPECTED = 'an object with the strings "title" and "text"'
SUFFIXES = (".jsonl", ".json", ".txt")  # each also as .gz; and .parquet
TEXTS = ("text", "contents", "content")


def check_passages(path: Path) -> None:
    """Raises `DataError` where a file is missing, empty or of another format, without reading it."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected a corpus in jsonl, json, txt or parquet")
    if not _plain_name(path).endswith(SUFFIXES) and path.suffix.lower() != ".parquet":
        raise DataError(f"{path}: unknown extension {path.suffix!r}; expected {', '.join(SUFFIXES)} (or .gz), .parquet")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty; expected {EXPECTED} on each line")


def read_passages(path: Path) -> Iterator[Document]:
    """The passages of a file, in order, those without a text left out.

    Raises `DataError` as `check_passages` does, and for a damaged file, naming the line (the row, in
    parquet).
    """
    check_passages(path)
    if path.suffix.lower() == ".parquet":
        yield from _read_parquet(path)
        return
    place = _Place(path)
    try:
        with open_bounded(path) as file:
            yield from _READERS[Path(_plain_name(path)).suffix](file, place)
    except json.JSONDecodeError as error:
        place.line += error.lineno - 1
        raise DataError(f"{place}: not JSON ({error.msg}, column {error.colno}); expected {EXPECTED}") from None
    except UnicodeDecodeError:
        raise DataError(f"{place}: not UTF-8; expected {EXPECTED}") from None
    except TooLarge as error:
        raise DataError(f"{place.next}: larger than a corpus may be: {error}; expected {EXPECTED}") from None
    except ValueError as error:
        raise DataError(f"{place}: not JSON ({error}); expected {EXPECTED}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{place.next}: damaged or cut off gzip data ({error}); expected a whole file") from None


def is_plain_text(path: Path) -> bool:
    """Whether a file is a text whose paragraphs are the passages."""
    return _plain_name(path).endswith(".txt")


@dataclass
class _Place:
    """The file and the line that is read, for messages."""

    path: Path
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def next(self) -> str:
        """The line after it, which couldn't be read."""
        return f"{self.path}:{self.line + 1}"


def _plain_name(path: Path) -> str:
    return path.name.lower().removesuffix(".gz")


def _lines(file: BoundedFile, place: _Place) -> Iterator[str]:
    for place.line, line in enumerate(file.lines(), start=1):
        yield line.decode()


def _read_jsonl(file: BoundedFile, place: _Place) -> Iterator[Document]:
    for line in _lines(file, place):
        if line.strip():
            yield from _passage(parse_json(line), str(place))


def _read_json(file: BoundedFile, place: _Place) -> Iterator[Document]:
    place.line = 1
    rows = parse_json(file.rest().decode("utf-8-sig"))
    if not isinstance(rows, list | dict):
        raise DataError(f"{place.path}: found {rows!r:.60}; expected a list of passages, {EXPECTED} each")
    for number, row in enumerate(rows.values() if isinstance(rows, dict) else rows, start=1):
        yield from _passage(row, f"{place.path}: passage {number}")


def _read_text(file: BoundedFile, place: _Place) -> Iterator[Document]:
    """The paragraphs of a plain text, each on one line."""
    number, lines = 0, list[str]()
    for line in chain(_lines(file, place), [""]):
        if words := line.split():
            lines += words
        elif lines:
            number += 1
            yield Document(f"Paragraph {number}", " ".join(lines))
            lines = []


_READERS = {".jsonl": _read_jsonl, ".json": _read_json, ".txt": _read_text}


def _read_parquet(path: Path) -> Iterator[Document]:
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            key = next((key for key in TEXTS if key in names), TEXTS[0])
            missing = {"title", key} - set(names)
            if missing:
                raise DataError(
                    f"{path}: no column {min(missing)!r} (found: {', '.join(names)}); expected title and text"
                )
            for batch in file.iter_batches(columns=["title", key]):
                for row in batch.to_pylist():
                    number += 1
                    yield from _passage(row, f"{path}: row {number}")
    except (pyarrow.ArrowException, OSError) as error:
        what = str(error).splitlines()[0]
        raise DataError(f"{path}: can't be read as parquet ({what}); expected columns title and text") from None


def _passage(row: Any, where: str) -> Iterator[Document]:
    """The row as a passage, or nothing where its text is blank."""
    if not isinstance(row, dict):
        raise DataError(f"{where}: found {row!r:.60}; expected {EXPECTED}")
    text = next((key for key in TEXTS if key in row), TEXTS[0])
    for key in ("title", text):
        if not isinstance(row.get(key), str):
            found = f"{key!r} is {row[key]!r:.60}" if key in row else f"no {key!r} among {', '.join(map(repr, row))}"
            raise DataError(f"{where}: {found[:200]}; expected {EXPECTED}")
    if row[text].strip():
        yield Document(replace_surrogates(row["title"]), replace_surrogates(row[text].strip()))
