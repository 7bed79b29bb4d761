"""Files of traces that are compressed, large, or written otherwise: each record is read; damage is an error."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from timing import processor_time

from rewoo_bench.errors import DataError
from rewoo_bench.imports.documents import local_files, records_of
from rewoo_bench.imports.formats import read_files

CHAT = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
MSG = json.dumps(CHAT)
MB = 2**20


def rec(task: str = "t") -> str:
    return json.dumps({"task_id": task, "messages": CHAT})


def read(folder: Path, content: str | bytes, name: str = "a.json") -> tuple[list[str], list[str]]:
    """The tasks that are read of a file, and the faults."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = [*read_files([path])]
    return [each.trajectory.task for each in found if each.trajectory], [each.fault for each in found if each.fault]


@pytest.mark.parametrize(
    ("content", "tasks"),
    [
        (f"{MSG}\n{MSG}\n{MSG}\n", ["a.json, line 1", "a.json, line 2", "a.json, line 3"]),
        (f"{rec('a')},\n{rec('b')}", ["a", "b"]),
        (f"{rec('a')}\n[{rec('b')}, {rec('c')}]\n\n{MSG}", ["a", "b", "c", "a.json, line 4"]),
        (f"[{MSG}, {MSG}]", ["a.json, record 1", "a.json, record 2"]),
        (f"[[{rec('a')}, {rec('b')}], {rec('c')}]", ["a", "b", "c"]),
        (f"{MSG} {MSG}", ["a.json, line 1", "a.json, line 1, value 2"]),
        (json.dumps(json.loads(rec("a")), indent=2) + "\n" + json.dumps(json.loads(rec("b")), indent=2), ["a", "b"]),
    ],
    ids=["lists on lines", "commas", "both", "list of lists", "records of lists", "conversations side by side",
         "objects over lines"],
)  # fmt: skip
def test_all_values_of_a_file_are_read(content: str, tasks: list[str], tmp_path: Path) -> None:
    assert read(tmp_path, content) == (tasks, [])


PRETTY = json.dumps([json.loads(rec(task)) for task in "abc"], indent=2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f'{rec("a")}\n{{"task_id": "t0"\n{rec("b")}\n', "line 2: not valid JSON, or cut off at line 3: Expecting ','"),
        (f'{rec("a")}\n{rec("b")}\n{{"task_id": "t0", "messa', "line 3: not valid JSON, or cut off: Unterminated"),
        (PRETTY.replace('"b",', '"b"'), "line 1: not valid JSON, or cut off at line 17: Expecting ',' delimiter"),
        (f'{rec("a")}\n{{"n": {"9" * 5_000}}}\n', "line 2: Exceeds the limit"),
        (f"{rec('a')}\n" + "[" * 100_000, "line 2: it is nested deeper than 200 levels"),
    ],
    ids=["line without its end", "last line cut", "a record of an indented list", "a long number", "deep"],
)  # fmt: skip
def test_damage_is_an_error_with_its_place(content: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"^a.json, {re.escape(said)}"):
        read(tmp_path, content)


def test_a_record_may_end_where_a_piece_of_the_file_does(tmp_path: Path) -> None:
    size = 1 << 16  # of what is read at once
    tasks, faults = read(tmp_path, f"{rec('a' * (size - len(rec(''))))}\n{rec('b')}\n")
    assert ([len(task) for task in tasks], faults) == ([size - len(rec("")), 1], [])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{rec('ä')}\n{rec('b')}\n".encode(encoding)) == (["ä", "b"], [])


def test_compression_is_recognised_by_what_a_file_holds(tmp_path: Path) -> None:
    packed = gzip.compress(f"{rec('a')}\n{rec('b')}\n".encode())
    assert read(tmp_path, packed, "runs") == (["a", "b"], [])
    assert read(tmp_path, rec("a"), "runs.json.gz") == (["a"], [])
    ended = "a.json: can't be read: Compressed file ended before the end-of-stream marker was reached"
    with pytest.raises(DataError, match=f"^{ended}$"):
        read(tmp_path, gzip.compress(f"{rec(os.urandom(100_000).hex())}\n{rec()}".encode())[:50_000])


def test_a_value_beyond_the_limit_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(rec("a") + '\n{"messages": [{"role": "user", "content": "' + "x" * (130 * MB) + '"}]}\n' + rec("b"))
    with processor_time(20), pytest.raises(DataError, match=r"^a\.jsonl, line 2: a record of more than 128 MB$"):
        list(records_of(path))


HOSTILE = {
    "objects cut": '{"a": 1,\n',
    "lists": "[\n",
    "long lines": '{"a": [' + "{}," * 1000 + "\n",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_take_linear_time(piece: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"x": [' + piece * (MB // len(piece)))
    with processor_time(30), pytest.raises(DataError):
        list(records_of(path))


def test_what_a_shell_offers_as_a_file_is_read() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(rec().encode())
    with local_files([f"/dev/fd/{reading}"]) as paths:
        assert [found.fault for found in read_files(paths)] == [""]
    os.close(reading)


@pytest.mark.parametrize("given", ["-", "/dev/stdin"])
def test_standard_input_is_read(given: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rewoo_bench", "import", given, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, input=rec().encode(), capture_output=True, check=False)
    assert (done.returncode, b"1 trace" in done.stdout) == (0, True)
