"""Reads a file of passages: `{"title": …, "text": …}` as jsonl, jsonl.gz or parquet; other keys are ignored.

{"title": "Shirley Temple", "text": "Shirley Temple Black was an American actress."}
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewoo_bench.errors import DataError
from rewoo_bench.escaping import replace_surrogates
from rewoo_bench.text.data_files import TooLarge, open_bounded, parse_json
from rewoo_bench.types import Document

EXPECTED = 'an object with the strings "title" and "text"'


def check_passages(path: Path) -> None:
    """Raises `DataError` where a file is missing, empty or of another format, without reading it."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected a corpus in jsonl, jsonl.gz or parquet")
    if not path.name.lower().endswith((".jsonl", ".jsonl.gz", ".parquet")):
        raise DataError(f"{path}: unknown extension {path.suffix!r}; expected .jsonl, .jsonl.gz or .parquet")
    if path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty; expected {EXPECTED} on each line")


def read_passages(path: Path) -> Iterator[Document]:
    """The passages of a file, in order, those without a text left out.

    Raises `DataError` as `check_passages` does, and for a damaged file, naming the line (the row, in
    parquet).
    """
    check_passages(path)
    yield from _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_jsonl(path)


def _read_jsonl(path: Path) -> Iterator[Document]:
    number = 0
    try:
        with open_bounded(path) as file:
            for number, line in enumerate(file.lines(), start=1):
                if line.strip():
                    yield from _passage(parse_json(line.decode()), f"{path}:{number}")
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{number}: not JSON ({error.msg}, column {error.colno}); expected {EXPECTED}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}:{number}: not UTF-8; expected {EXPECTED}") from None
    except TooLarge as error:
        raise DataError(f"{path}:{number + 1}: larger than a corpus may be: {error}; expected {EXPECTED}") from None
    except ValueError as error:
        raise DataError(f"{path}:{number}: not JSON ({error}); expected {EXPECTED}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}:{number + 1}: damaged or cut off gzip data ({error}); expected a whole file") from None


def _read_parquet(path: Path) -> Iterator[Document]:
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            missing = {"title", "text"} - set(file.schema_arrow.names)
            if missing:
                found = ", ".join(file.schema_arrow.names)
                raise DataError(f"{path}: no column {min(missing)!r} (found: {found}); expected title and text")
            for batch in file.iter_batches(columns=["title", "text"]):
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
    for key in ("title", "text"):
        if not isinstance(row.get(key), str):
            found = f"{key!r} is {row[key]!r:.60}" if key in row else f"no {key!r} among {', '.join(map(repr, row))}"
            raise DataError(f"{where}: {found[:200]}; expected {EXPECTED}")
    if row["text"].strip():
        yield Document(replace_surrogates(row["title"]), replace_surrogates(row["text"].strip()))
