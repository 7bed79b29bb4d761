"""Open files: as many as the connections need, or a refusal that says what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("resource")

CODE = """
import resource
from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.run import allow_open_files
try:
    allow_open_files({connections})
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
except UsageError as error:
    print(error)
"""


def limited(connections: int, soft: int, hard: int) -> str:
    """What is said, or the limit that is set, in a process with these limits."""
    script = f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"'
    command = ["bash", "-c", script, "bash", sys.executable, "-c", CODE.format(connections=connections)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_limit_that_is_high_enough_is_left_alone() -> None:
    assert limited(64, 256, 1024) == "256"


def test_a_soft_limit_is_raised_as_far_as_is_needed() -> None:
    assert limited(300, 256, 1024) == "428"


def test_a_hard_limit_that_is_too_low_is_refused_with_what_to_do() -> None:
    assert limited(300, 256, 256) == (
        "--max-connections: 300 connections need 428 open files, and this process may have 256; raise that with "
        "`ulimit -n 428`, or lower --max-connections (and --concurrency)"
    )
