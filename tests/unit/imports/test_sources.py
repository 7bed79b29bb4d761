"""What is given as a file and isn't one: pipes and standard input; and names that are shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewoo_bench.imports.documents import local_files
from rewoo_bench.imports.formats import read_files

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
