"""Reads the rows of a data file: JSON, JSON lines, parquet or CSV, each also as `.gz`.

JSON is a list of rows or TriviaQA's `{"Data": [rows]}`. Whether a file is JSON or JSON lines is
seen from its first line, since both are published under either ending. CSV has a line of column names:
`question` and `answers` (or `answer`), several answers with ` | ` between them, and `id` if there are ids.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Any, TextIO

from rewoo_bench.errors import DataError
from rewoo_bench.loaders.row_fields import Row

SUFFIXES = (".json", ".jsonl", ".parquet", ".csv")
BATCH_ROWS = 256


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of `path`, one at a time. Raises `DataError` where it is missing or damaged."""
    if not path.is_file():
        raise DataError(f"no such data file: {str(path)!r}")
    name = plain_name(path)
    if name.endswith(".csv"):
        return _csv_rows(path)
    return _parquet_rows(path) if name.endswith(".parquet") else _json_rows(path)


def plain_name(path: Path) -> str:
    """The file's name in lower case, without `.gz`."""
    return path.name.lower().removesuffix(".gz")


def file_sha256(path: Path) -> str:
    """sha256 of the file as it is on disk."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _json_rows(path: Path) -> Iterator[Any]:
    with _faults(path), _open(path) as file:
        first = next((line for line in file if line.strip()), "")
        if not first:
            raise DataError(f"{path} is empty")
        try:
            start = json.loads(first)
        except json.JSONDecodeError:
            start = json.loads(first + file.read())  # the value goes on over the next lines
        if isinstance(start, dict) and not isinstance(start.get("Data"), list):
            yield start
            yield from _lines(file, path)
        else:
            yield from start["Data"] if isinstance(start, dict) else start if isinstance(start, list) else [start]


def _lines(file: TextIO, path: Path) -> Iterator[Any]:
    """The rows after the first of a file of JSON lines."""
    for number, line in enumerate(file, start=2):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{path}, row {number}: not valid JSON, or cut off: {error}") from None
        yield row


def _csv_rows(path: Path) -> Iterator[Any]:
    """Rows in the form of this project's own; the row's number is its id where it has none."""
    with _faults(path), _open(path) as file:
        try:
            for number, row in enumerate(csv.DictReader(file), start=1):
                cells = {(name or "").strip().lower(): (value or "") for name, value in row.items() if name}
                given = cells.pop("answers", None) or cells.pop("answer", "")
                golds = [answer.strip() for answer in given.split(" | ")]
                yield {"id": str(number), **cells, "answers": golds}
        except csv.Error as error:
            raise DataError(f"{path}: not valid CSV: {error}") from None


def _parquet_rows(path: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    if not path.stat().st_size:
        raise DataError(f"{path} is empty")
    with _faults(path):
        source = io.BytesIO(gzip.decompress(path.read_bytes())) if path.suffix == ".gz" else path
        try:
            with pyarrow.parquet.ParquetFile(source) as table:
                for batch in table.iter_batches(batch_size=BATCH_ROWS):
                    yield from batch.to_pylist()
        except pyarrow.ArrowException as error:
            raise DataError(f"{path}: not valid parquet, or cut off: {error}") from None


def _open(path: Path) -> TextIO:
    # utf-8-sig: files that went through Windows tools begin with a byte order mark
    return gzip.open(path, "rt", encoding="utf-8-sig") if path.suffix == ".gz" else path.open(encoding="utf-8-sig")


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Turns whatever a damaged file raises into one line."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: not valid JSON, or cut off: {error}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged gzip, or cut off: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror or error}") from None
