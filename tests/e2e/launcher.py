"""Starts runs without their start-up: everything is imported once, and each run is a fork.

    python launcher.py      # a line of JSON on standard input is a command; its process's number comes back

A killed run is a killed process, as if it had been started afresh, but it began in milliseconds.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyarrow.parquet  # noqa: F401 - imported here once, and not in each run

import rewoo_bench.evaluation.run  # noqa: F401 - the same
from rewoo_bench.cli.main import main


def launch(arguments: list[str], errors: str) -> int:
    """A process of its own that runs a command; its number."""
    number = os.fork()
    if number:
        return number
    with Path(os.devnull).open("w") as nowhere, Path(errors).open("a") as told:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(told.fileno(), 2)
    try:
        main(arguments)
    except SystemExit as ended:
        os._exit(int(ended.code or 0))
    finally:
        os._exit(99)


for line in sys.stdin:
    command = json.loads(line)
    number = launch(command["arguments"], command["errors"])
    print(json.dumps({"pid": number}), flush=True)
    _, status = os.waitpid(number, 0)
    print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)
