"""What a user names -> files -> records, each with its place: what a file of traces consists of, whatever its format.

    with local_files(["runs.json", "-"]) as paths:            # also a folder, a pipe, standard input
        for where, record in records_of(paths[0]):            # "runs.json, record 3"

A file is a log of inspect_ai, or JSON: objects and lists of them one after the other, so one document, or a record or a
message a line. It may be compressed by gzip, and be in UTF-8, UTF-16 or UTF-32. One value at a time is in memory. A
file that is damaged is an error that names the place. Well-known tokens of other programs are taken out here.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rewoo_bench.errors import DataError, UsageError
from rewoo_bench.imports.inspect_log import is_inspect_log, samples_of
from rewoo_bench.imports.record import Unreadable, object_at
from rewoo_bench.imports.requests import conversation_of
from rewoo_bench.runs.folder import JOURNAL_FILE, QUESTIONS_FILE
from rewoo_bench.runs.manifest import MANIFEST
from rewoo_bench.text.json_text import TOO_DEEP, is_too_deep
from rewoo_bench.text.redaction import without_credentials

_LARGEST = 128 * 2**20  # characters of a value
_PIECE = 1 << 16  # characters that are read at once
_BETWEEN = re.compile(r"[ \t\r\n,\ufeff]*")
_DECODER = json.JSONDecoder()
_CONTAINERS = ("simulations", "trajectories", "traces", "samples", "results", "examples", "items", "data", "runs")
_NAMES = (".json", ".jsonl", ".ndjson", ".eval", ".json.gz", ".jsonl.gz")


def is_trace_name(name: str) -> bool:
    return name.lower().endswith(_NAMES)


def are_traces(path: Path) -> bool:
    """Whether a file or folder holds what other programs recorded, and no run of this one."""
    if not path.is_dir():
        return path.is_file() and path.suffix != ".parquet"
    names = {each.name for each in path.rglob("*")}
    return not names & {MANIFEST, QUESTIONS_FILE, JOURNAL_FILE} and any(map(is_trace_name, names))


def name_of(given: str) -> str:
    """The name of what a user names."""
    return "stdin" if given == "-" else Path(given).name


@contextmanager
def local_files(given: Iterable[str]) -> Iterator[list[Path]]:
    """The files and folders that are given, those that can be read only once copied first. Raises `UsageError`."""
    with TemporaryDirectory(prefix="rewoo-bench-") as folder:
        paths = []
        for number, each in enumerate(given):
            path = Path(each)
            if each == "-" or path.is_fifo():
                path = Path(folder, str(number), name_of(each))
                path.parent.mkdir()
                with open(0 if each == "-" else each, "rb", closefd=each != "-") as source, path.open("wb") as file:
                    shutil.copyfileobj(source, file)
            elif not (path.is_file() or path.is_dir()):
                raise UsageError(f"no such file or folder: {each!r}")
            paths.append(path)
        yield paths


def files_of(path: Path) -> Iterator[Path]:
    """The file, or those of a folder whose names end as traces do."""
    if not path.is_dir():
        yield path
        return
    found = sorted(each for each in path.rglob("*") if is_trace_name(each.name) and each.is_file())
    if not found:
        raise UsageError(f"{str(path)!r} has no files of traces: expected names that end in {', '.join(_NAMES)}")
    yield from found


def records_of(path: Path) -> Iterator[tuple[str, Any]]:
    """The records of a file, each with its place: `runs.jsonl, line 3`. Raises `DataError` where it can't be read."""
    try:
        with path.open("rb") as file:
            is_log = is_inspect_log(path, file.read(4096))
        for where, record in samples_of(path) if is_log else _json_records(path):
            yield where, without_credentials(record)
    except Unreadable as fault:
        raise DataError(f"{path.name}, {fault}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name}: can't be read: {getattr(error, 'strerror', None) or error}") from None


def _json_records(path: Path) -> Iterator[tuple[str, Any]]:
    """The records of all values of a file. A single one is named by the file, others by the lines they begin on."""
    values = _values(path)
    first = [each for _, each in zip(range(2), values, strict=False)]
    if len(first) == 1:
        yield from _expanded(path.name, first[0][1])
        return
    before = 0
    for number, (line, value) in enumerate(chain(first, values), 1):
        yield from _expanded(f"{path.name}, line {line}" + (f", value {number}" if line == before else ""), value)
        before = line


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a file, each with its line. Raises `Unreadable`, `OSError` and as `gzip` does.

    Libraries that stream JSON take time with the square of its depth, which a stranger's file may choose.
    """
    with path.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
        encoding = json.detect_encoding(file.read(4))
        file.seek(0)
        stream = TextIOWrapper(file, encoding, "replace", newline="\n")
        text, at, line = "", 0, 1
        while True:
            begun = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches anything
            line, at = line + text.count("\n", at, begun), begun
            if at == len(text):
                text, at = stream.read(_PIECE), 0
                if not text:
                    return
                continue
            try:
                value, end = _value(text, at)
            except json.JSONDecodeError as error:
                length = len(text) - at
                if length > _LARGEST:
                    raise Unreadable(f"line {line}: a record of more than {_LARGEST >> 20} MB") from None
                if further := stream.read(min(max(length, _PIECE), _LARGEST + 1 - length)):
                    text, at = text[at:] + further, 0
                    continue
                lines = text.count("\n", at, error.pos)
                where = f" at line {line + lines}" if lines else ""
                raise Unreadable(f"line {line}: not valid JSON, or cut off{where}: {error.msg}") from None
            except ValueError as error:
                raise Unreadable(f"line {line}: {error}") from None
            yield line, value
            line, at = line + text.count("\n", at, end), end


def _value(text: str, at: int) -> tuple[Any, int]:
    """The object or list at a place of a text, and where it ends. Raises `ValueError`."""
    if text[at] not in "[{":
        raise ValueError("not valid JSON, or cut off: expected an object or a list")
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if is_too_deep(value):
        raise ValueError(TOO_DEEP)
    return value, end


def _expanded(where: str, record: Any) -> Iterator[tuple[str, Any]]:
    """A record, or those of the list in it."""
    if conversation_of(record) is None:
        if isinstance(record, list) and record and all(isinstance(each, Mapping | list) for each in record):
            for number, each in enumerate(record, 1):
                yield from _expanded(f"{where}, record {number}", each)
            return
        for name in _CONTAINERS if isinstance(record, Mapping) else ():
            inner = record.get(name)
            if isinstance(inner, list) and inner and all(isinstance(each, Mapping) for each in inner):
                shared = _shared(record) if name == "simulations" else {}
                for number, each in enumerate(inner, 1):
                    yield f"{where}, {name} {number}", {**shared, **each}
                return
    yield where, record


def _shared(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the simulations of a tau2-bench file have in common: policy, agent and model."""
    info = object_at(record, "info")
    agent, environment = object_at(info, "agent_info"), object_at(info, "environment_info")
    found = {"system": environment.get("policy"), "agent": agent.get("implementation"), "model": agent.get("llm")}
    return {name: value for name, value in found.items() if value}
