"""What is given as a file and isn't one: pipes and standard input; and names that are shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewoo_bench.imports.formats import read_files
from rewoo_bench.imports.sources import local_files, name_of

RECORD = json.dumps({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}).encode()


def test_what_a_shell_offers_as_a_file_is_read() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(RECORD)
    with local_files([f"/dev/fd/{reading}"]) as paths:
        assert [found.fault for found in read_files(paths)] == [""]
    os.close(reading)


@pytest.mark.parametrize("given", ["-", "/dev/stdin"])
def test_standard_input_is_read(given: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rewoo_bench", "import", given, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, input=RECORD, capture_output=True, check=False)
    assert (done.returncode, b"1 trace" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("runs/a b.json", "a b.json"),
        ("runs/an\x1b[31mred\nname.jsonl", "an_[31mred_name.jsonl"),
        ("-", "stdin"),
    ],
)
def test_the_name_of_what_is_given_can_be_shown(given: str, name: str) -> None:
    assert name_of(given) == name
