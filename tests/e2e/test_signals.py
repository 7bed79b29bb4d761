"""Signals that end a run: Ctrl-C, what CI and schedulers send, a terminal that is closed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_runs import SCRIPT, quiet, start
from model_server import ModelServer, ServerFault, ServerReply

from rewoo_bench.runs.folder import load

pytestmark = pytest.mark.usefixtures("own_folder")

QUESTIONS = 6
ANSWERED = 3


class Waiting:
    """Answers the first requests, and the others once it is told to."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.answers = False
        self._count = 0

    def __call__(self, _: dict[str, Any]) -> ServerReply | ServerFault:
        self._count += 1
        if self._count <= ANSWERED or self.answers:
            return ServerReply("Answer: Neva")
        self.asked.set()
        return ServerFault("hang")


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


@pytest.fixture
def slow(waiting: Waiting) -> Iterator[ModelServer]:
    with ModelServer(waiting) as server:
        yield server


def arguments(server: ModelServer, out: str, grace: float = 0.1) -> list[object]:
    hosted = ("--model", "openai/test", "--api-base", server.api_base, "--concurrency", 1, "--grace", grace)
    return ["--arch", "direct", "-n", QUESTIONS, "--out", out, *hosted, "--no-report"]


def goes_on(waiting: Waiting, server: ModelServer, folder: str) -> None:
    """The run was interrupted, and a resume pays for nothing twice."""
    manifest = json.loads(Path(folder, "run.json").read_text())
    assert (manifest["status"], manifest["reason"], manifest["rows"]) == ("incomplete", "interrupted", ANSWERED)
    waiting.answers = True
    assert quiet("--resume", folder) == 0
    assert len(load(folder)) == QUESTIONS
    assert sum(entry.usage is not None for entry in server.books) == QUESTIONS


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("number", "out"), [(signal.SIGINT, "here"), (signal.SIGTERM, "two words"), (signal.SIGHUP, "here")]
)
def test_a_signal_ends_a_run_and_the_last_line_is_the_command_that_goes_on(
    waiting: Waiting, slow: ModelServer, number: signal.Signals, out: str
) -> None:
    process = start(*arguments(slow, out))
    assert waiting.asked.wait(60)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (3, False), err
    folder = f"'{out}'" if " " in out else out
    assert err.splitlines()[-1] == f"rewoo-bench run --resume {folder}"
    goes_on(waiting, slow, out)


@pytest.mark.parametrize("times", [1, 2])
def test_before_the_first_question_it_is_one_line(times: int) -> None:
    """The run waits for an MCP server that says nothing."""
    Path("server.py").write_text("import pathlib, time\npathlib.Path('started').touch()\ntime.sleep(60)\n")
    server = ("--mcp", f"{sys.executable} {Path('server.py').resolve()}")
    process = start("--arch", "rewoo", "-n", 2, "--model", "oracle", "--no-progress", *server, "--out", "here")
    while not Path("started").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # the latter while the interpreter ends, which shells call 130
    at_once = {"rewoo-bench: interrupted"} if times > 1 else set()  # a second one that arrives after the first is seen
    assert err.strip() in {"rewoo-bench: interrupted while no question was being asked", *at_once}
    assert not Path("here").exists()


def test_after_the_folder_was_made_and_before_the_first_question_it_is_one_line_too() -> None:
    """The signal comes while the run, whose background tasks go on, works out what the questions need."""
    Path("own.py").write_text(
        "import pathlib, signal\n\n\nclass Runner:\n    def __init__(self, prompts): self.max_steps = 9\n\n"
        "    def steps_needed(self, chain):\n"
        f"        if pathlib.Path('here', 'run.json').exists(): signal.raise_signal({int(signal.SIGTERM)})\n"
        "        return 1\n\n    async def run(self, question, *, model, tools): ...\n"
    )
    Path("mine").mkdir()
    Path("mine", "architecture.toml").write_text('name = "mine"\ndescription = "d"\nrunner = "own:Runner"\n')
    process = start("--arch", "./mine", "-n", 2, "--model", "oracle", "--no-progress", "--out", "here")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.strip() == "rewoo-bench: interrupted while no question was being asked"


def test_a_run_under_nohup_outlives_its_terminal(waiting: Waiting, slow: ModelServer) -> None:
    command = ["nohup", sys.executable, str(SCRIPT), *map(str, arguments(slow, "here")), "--no-progress"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert waiting.asked.wait(60)
        process.send_signal(signal.SIGHUP)
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 3
    goes_on(waiting, slow, "here")
