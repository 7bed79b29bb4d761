"""A run that is killed again and again ends as if it had never been, and pays for every answer once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from answering import answer, asked_about
from model_server import BookEntry, ModelServer, ServerFault, ServerReply
from processes import under

from rewoo_bench.runs.folder import load
from rewoo_bench.text.tokens import count_messages
from rewoo_bench.types import Message, Usage

pytestmark = pytest.mark.timeout(900)

LATENCY_S = 0.02
TIMEOUT_S = 3
KILLS = 100
QUESTIONS = 90
SHORT = ("--no-progress", "--no-report")
NOT_THE_SAME = ["run_id", "run_folder", "started_at", "latency_s", "working_s", "startup_s", "retries", "billed_tokens"]
HANGS, BREAKS = ServerFault("hang"), ServerFault("truncated")
FAULTS = [ServerFault(status=429, retry_after=0), ServerFault(status=500), HANGS, BREAKS]


class Flaky:
    """Answers well, but for one request in twenty, drawn with a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, request: dict[str, Any]) -> str | ServerReply | ServerFault:
        return self._random.choice(FAULTS) if self._random.random() < 0.05 else answer(request)


class Launcher:
    """Runs of `rewoo-bench`, forked from one process that has imported everything."""

    def __init__(self, errors: Path) -> None:
        self.errors = errors
        command = [sys.executable, str(Path(__file__).with_name("launcher.py"))]
        env, pipe = {**os.environ, "OPENAI_API_KEY": "none"}, subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env)

    def start(self, *arguments: object) -> int:
        assert self._process.stdin is not None
        command = {"arguments": ["run", *map(str, arguments)], "errors": str(self.errors)}
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._told()["pid"])

    def code(self) -> int:
        """The exit code of the run that was started, once it ended; negative for a signal."""
        return int(self._told()["code"])

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    launched = Launcher(tmp_path_factory.mktemp("launcher") / "errors.txt")
    yield launched
    launched.close()


@pytest.fixture
def questions(tmp_path: Path, repeats: Callable[[int], int]) -> Path:
    """Questions in HotpotQA's form, each with its name in it and a page to find; more where there are more kills."""
    rows = [
        {
            "_id": f"q{number:02}",
            "question": f"q{number:02}: Which river?",
            "answer": f"the river of q{number:02}" if number % 2 else "another",
            "type": "bridge",
            "level": "hard",
            "supporting_facts": [["Kyiv", 0]],
            "context": [["Kyiv", ["Kyiv lies on a river.", " It is old."]], ["Oslo", ["Oslo lies on a fjord."]]],
        }
        for number in range(repeats(QUESTIONS))
    ]
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(rows))
    return path


def new_run(server: ModelServer, questions: Path, out: Path) -> list[object]:
    return [
        "--arch", "rewoo,react", "--dataset", questions, "--model", "openai/test", "--api-base", server.api_base,
        "--out", out, "--concurrency", 3, "--timeout", TIMEOUT_S, "--max-retries", 12, *SHORT,
    ]  # fmt: skip


def kill_after(pid: int, server: ModelServer, more: int, seconds: float, *, alone: bool) -> None:
    """Kills the process when the server was asked so many times more, or after a while without.

    Where it isn't killed `alone`, those it started are killed before it, as when a container is ended.
    """
    wanted, deadline = len(server.books) + more, time.monotonic() + 3
    while len(server.books) < wanted and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(seconds)
    with suppress(ProcessLookupError, FileNotFoundError):  # it has ended
        for each in [*([] if alone else under(pid)), pid]:
            os.kill(each, signal.SIGKILL)


def compared(folder: Path) -> pd.DataFrame:
    rows: pd.DataFrame = load(folder).drop(columns=NOT_THE_SAME)
    return rows


def by_request(entries: list[BookEntry]) -> dict[str, list[BookEntry]]:
    """The answers to each request that cost anything: good ones, and such as can't be read."""
    found: dict[str, list[BookEntry]] = defaultdict(list)
    for entry in entries:
        if entry.usage is not None:
            found[json.dumps(entry.request, sort_keys=True)].append(entry)
    return found


def paid_for(entries: list[BookEntry], kills: list[float]) -> tuple[int, list[int]]:
    """Tokens of the call that was finished: those of its good answer and of the others that no kill came after, and
    those of each failed attempt before a kill, which are billed where they had been written down by then."""
    begun = max((kill for kill in kills if kill < entries[-1].time), default=0.0)
    costs = [(entry.usage.total_tokens, entry) for entry in entries if entry.usage]
    failed = [tokens for tokens, entry in costs if entry.time <= begun and isinstance(entry.answer, ServerFault)]
    return sum(tokens for tokens, entry in costs if entry.time > begun), failed


def prompt_of(entry: BookEntry) -> int:
    """Tokens of the prompt of a request that hung; 0 of others."""
    messages = [Message(each["role"], each["content"]) for each in entry.request["messages"]]
    return count_messages(messages) if entry.answer == HANGS else 0


def test_kills_at_any_moment_leave_no_trace_but_in_the_times(
    tmp_path: Path, questions: Path, launcher: Launcher, repeats: Callable[[int], int]
) -> None:
    moments = random.Random(7)
    with ModelServer(answer) as steady:
        launcher.start(*new_run(steady, questions, tmp_path / "unbroken"))
        assert launcher.code() == 0, launcher.errors.read_text()
    kills: list[float] = []
    wanted = repeats(KILLS)
    with ModelServer(Flaky(seed=3), latency_s=LATENCY_S) as server:
        arguments = new_run(server, questions, tmp_path / "broken")
        code = -signal.SIGKILL
        while code == -signal.SIGKILL:
            pid = launcher.start(*arguments)
            moment = (moments.randrange(6), moments.random() * 0.03)
            killer = threading.Thread(
                target=kill_after, args=(pid, server, *moment), kwargs={"alone": len(kills) % 2 == 0}
            )
            if len(kills) < wanted:
                killer.start()
            code = launcher.code()
            if len(kills) < wanted:
                killer.join()
            if code == -signal.SIGKILL:
                kills.append(time.monotonic())
            began = (tmp_path / "broken" / "run.json").exists()
            arguments = ["--resume", tmp_path / "broken", *SHORT] if began else arguments
        assert code == 0, launcher.errors.read_text()[-2000:]
    assert len(kills) == wanted

    pd.testing.assert_frame_equal(compared(tmp_path / "broken"), compared(tmp_path / "unbroken"))

    answered = by_request(server.books)
    for entries in answered.values():
        assert not isinstance(entries[-1].answer, ServerFault)
        for entry in entries[:-1]:  # what was answered well and asked for again was in flight at a kill
            assert isinstance(entry.answer, ServerFault) or any(
                entry.time <= kill <= entry.time + LATENCY_S + TIMEOUT_S for kill in kills
            )

    billed = load(tmp_path / "broken")["billed_tokens"].sum()
    paid = [paid_for(entries, kills) for entries in answered.values()]
    kept = {0}  # some of the failed attempts, and of those that were given up and are billed at their prompts
    for tokens in [*(tokens for _, each in paid for tokens in each), *map(prompt_of, server.books)]:
        kept |= {some + tokens for some in kept}
    assert billed - sum(tokens for tokens, _ in paid) in kept


def test_a_kill_in_the_middle_of_a_plan_pays_twice_for_what_was_in_flight_alone(
    tmp_path: Path, questions: Path, launcher: Launcher
) -> None:
    """LLMCompiler's tasks end before the plan that they are from: their records come before the planner's."""

    def reply(request: dict[str, Any]) -> str:
        system = request["messages"][0]["content"]
        if "The last line is join()" not in system:
            return answer(request)
        name = asked_about(request)
        return f'1. LLM("First of {name}?")\n2. LLM("Then $1 of {name}?")\n3. Search("{"so " * 400}")\n4. join()'

    def asked() -> list[str]:
        last = [str(entry.request["messages"][-1]["content"]) for entry in server.books]
        marks = {"Result:": "joiner", "First of": "first task", "Then": "second task"}
        return [next((name for mark, name in marks.items() if mark in text), "planner") for text in last]

    with ModelServer(reply, token_delay_s=0.02) as server:
        arguments = new_run(server, questions, tmp_path / "broken")
        arguments[1] = "llmcompiler"
        pid = launcher.start(*arguments, "-n", 1, "--timeout", 60)
        deadline = time.monotonic() + 60
        while "second task" not in asked() and time.monotonic() < deadline:
            time.sleep(0.001)  # it uses the result of the first, which is in the journal then
        for each in [*under(pid), pid]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        assert launcher.code() == -signal.SIGKILL
        before = asked()
        assert before == ["planner", "first task", "second task"]
        server.token_delay_s = 0.0
        launcher.start("--resume", tmp_path / "broken", *SHORT)
        assert launcher.code() == 0, launcher.errors.read_text()[-2000:]
        assert sorted(asked()[3:]) == ["joiner", "planner", "second task"]
        paid = [server.books[1], *server.books[3:]]
    assert load(tmp_path / "broken")["billed_tokens"].sum() == sum(
        entry.usage.total_tokens for entry in paid if entry.usage
    )


def test_what_a_failed_attempt_cost_is_kept_before_the_next_one(
    tmp_path: Path, questions: Path, launcher: Launcher
) -> None:
    """The first attempt has usage and no answer; the process is killed while the second one waits for its answer."""
    usage = {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520}
    body = json.dumps({"object": "chat.completion", "choices": [], "usage": usage}).encode()
    faults = [ServerFault("body", 200, body=body, usage=Usage(500, 0, 20)), ServerFault("hang")]

    def reply(request: dict[str, Any]) -> str | ServerFault:
        return faults.pop(0) if faults else answer(request)

    with ModelServer(reply) as server:
        arguments = new_run(server, questions, tmp_path / "broken")
        arguments[1] = "direct"
        pid = launcher.start(*arguments, "-n", 1, "--timeout", 60, "--concurrency", 1)
        deadline = time.monotonic() + 60
        while faults and time.monotonic() < deadline:  # until the second attempt is asked
            time.sleep(0.01)
        for each in [*under(pid), pid]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        assert launcher.code() == -signal.SIGKILL
        launcher.start("--resume", tmp_path / "broken", *SHORT)
        assert launcher.code() == 0, launcher.errors.read_text()[-2000:]
        paid = sum(entry.usage.total_tokens for entry in server.books if entry.usage)
    rows = load(tmp_path / "broken")
    assert rows["billed_tokens"].sum() == paid
    assert rows["total_tokens"].sum() == paid - 520
