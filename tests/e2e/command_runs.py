"""`rewoo-bench run` as tests give it: in this process or in one of its own, asking a server of theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from model_server import ModelServer

from rewoo_bench.cli.main import main

SCRIPT = Path(__file__).parents[2] / "scripts" / "run_bench.py"


def run(*arguments: object) -> int:
    """`rewoo-bench run …` in this process; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *map(str, arguments)])
    return int(ended.value.code or 0)


def quiet(*arguments: object) -> int:
    """The same, without a line of progress and without the report's page, which takes longer than a short run."""
    return run("--no-progress", "--no-report", *arguments)


def hosted(server: ModelServer, *arguments: object) -> int:
    """A run of direct and cot over three questions, answered by the test's server."""
    model = ("--model", "openai/test", "--api-base", server.api_base)
    return quiet("--arch", "direct,cot", "-n", 3, *model, *arguments)


def new(server: ModelServer, *arguments: object) -> int:
    """The same over four, to go on with or to replay."""
    return hosted(server, "-n", 4, *arguments)


def start(*arguments: object, env: Mapping[str, str | None] | None = None) -> subprocess.Popen[str]:
    """`python scripts/run_bench.py …` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, SCRIPT, *map(str, arguments)],
        env={name: value for name, value in {**os.environ, **(env or {})}.items() if value is not None},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
