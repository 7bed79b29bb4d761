"""A run on a real Ray cluster: a node that dies, caps, and runs that go from one engine to the other."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from answering import KEY, answer
from model_server import ModelServer, ServerFault, ServerReply
from test_killed import NOT_THE_SAME, by_request, new_run, prompt_of, questions

from rewoo_bench.runs.folder import load
from rewoo_bench.runs.manifest import read_manifest

__all__ = ["questions"]  # a fixture

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(400),
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray (the extra ray)"),
]

WORKERS = 2  # each takes seconds of a core to start
AT_ONCE = 12
FAULTS = [ServerFault(status=429, retry_after=0), ServerFault(status=500), ServerFault("hang")]


class Flaky:
    """Answers well, but for one request in twenty. No faulty answer is charged."""

    def __init__(self) -> None:
        self._random = random.Random(5)

    def __call__(self, request: dict[str, Any]) -> str | ServerReply | ServerFault:
        return self._random.choice(FAULTS) if self._random.random() < 0.05 else answer(request)


class Nodes:
    """A head and two nodes."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("ray_nodes.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()

    def kill(self) -> None:
        """Kills a node."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("kill\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == "done"

    def close(self) -> None:
        self._process.communicate()  # the end of its input is its end


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    started = Nodes()
    yield started
    started.close()


def start(*arguments: object, folder: Path | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rewoo_bench", "run", *map(str, arguments), "--no-report"]
    env = {**os.environ, "OPENAI_API_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=folder)


def ended(run: subprocess.Popen[str], code: int = 0) -> str:
    """Standard error of a run that ends with this code."""
    try:
        out, errors = run.communicate(timeout=240)
    finally:
        run.kill()
    assert run.returncode == code, errors + out
    return errors


def on(nodes: Nodes, workers: int = WORKERS) -> list[object]:
    return ["--ray-address", nodes.address, "--workers", workers, "--concurrency", AT_ONCE]


def compared(folder: Path) -> pd.DataFrame:
    rows: pd.DataFrame = load(folder).drop(columns=NOT_THE_SAME)
    return rows


@pytest.mark.nightly
def test_a_node_that_dies_leaves_no_trace_but_in_the_times(tmp_path: Path, questions: Path, nodes: Nodes) -> None:
    with ModelServer(answer) as steady:
        ended(start(*new_run(steady, questions, tmp_path / "unbroken")))
    whole = int(load(tmp_path / "unbroken")["billed_tokens"].sum())

    # A cap of the whole run: calls in flight may go beyond it, no others. Then the run goes on without Ray.
    with ModelServer(answer, latency_s=0.02) as server:
        run = start(*new_run(server, questions, tmp_path / "capped"), *on(nodes), "--run-tokens", whole // 3)
        ended(run, code=3)
        largest = max(entry.usage.total_tokens for entry in server.books if entry.usage)
        assert server.totals().total_tokens <= whole // 3 + AT_ONCE * largest
        ended(start("--resume", tmp_path / "capped", "--run-tokens", "none", "--no-progress"))
    engine = read_manifest(tmp_path / "capped").engine  # of the first session
    assert engine is not None
    assert engine.workers == WORKERS
    pd.testing.assert_frame_equal(compared(tmp_path / "capped"), compared(tmp_path / "unbroken"))
    assert server.totals().total_tokens == whole

    # A node dies in the middle of a run that began without Ray.
    with ModelServer(Flaky(), latency_s=0.15) as server:
        first = start(*new_run(server, questions, tmp_path / "broken"), "--run-tokens", whole // 8)
        ended(first, code=3)
        again = ["--resume", tmp_path / "broken", "--run-tokens", "none", "--no-progress"]
        run = start(*again, *on(nodes, workers=4))  # as many as both nodes have cores
        deadline = time.monotonic() + 120
        while server.open_connections < AT_ONCE and time.monotonic() < deadline and run.poll() is None:
            time.sleep(0.01)  # until every worker is asking
        nodes.kill()
        killed_at = time.monotonic()
        assert run.poll() is None
        assert "its questions go to others" in ended(run)
    pd.testing.assert_frame_equal(compared(tmp_path / "broken"), compared(tmp_path / "unbroken"))

    answered = by_request(server.books)
    repeated = [entry for entries in answered.values() for entry in entries[:-1]]
    assert all(killed_at - 5 <= entry.time <= killed_at + 5 for entry in repeated)  # in flight at the kill
    assert len(repeated) <= AT_ONCE
    billed = int(load(tmp_path / "broken")["billed_tokens"].sum())
    paid = sum(entries[-1].usage.total_tokens for entries in answered.values() if entries[-1].usage)
    assert paid <= billed <= paid + sum(map(prompt_of, server.books))  # of what hung until its time was over
    assert all(entry.headers["authorization"] == f"Bearer {KEY}" for entry in server.books)
    held = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert not held


POISON = """
import os
from rewoo_bench.types import Message, Request, Trajectory


class Poison:
    def __init__(self, prompts, settings=None):
        pass

    async def run(self, question, *, model, tools):
        reply = await model.complete(Request([Message("user", question)], role="agent"))
        if question.startswith("q03"):
            os._exit(1)
        return Trajectory(reply.text, "answered")
"""


@pytest.mark.nightly
def test_a_question_that_kills_its_workers_fails_alone(tmp_path: Path, questions: Path, nodes: Nodes) -> None:
    folder = tmp_path / "poison"
    folder.mkdir()
    (folder / "poison.py").write_text(POISON)
    (folder / "architecture.toml").write_text('name = "poison"\nrunner = "poison:Poison"\n')
    with ModelServer(lambda _: "Kyiv") as server:
        run = start(
            "--arch", folder, "--dataset", questions, "--model", "openai/test", "--api-base", server.api_base,
            "--out", tmp_path / "run", "--ray-address", nodes.address, "--workers", 1,
            "--concurrency", 4, folder=folder,
        )  # fmt: skip
        ended(run, code=3)
        requests = by_request(server.books)
    rows = load(tmp_path / "run").set_index("example_id")
    assert set(rows.index[rows["error"].notna()]) == {"q03"}
    assert rows.loc["q03", "error"] == "3 workers died while they worked on this question"
    assert len(rows) == len(json.loads(questions.read_text()))
    paid_once = {number: entries[-1].usage.total_tokens for number, entries in requests.items() if entries[-1].usage}
    assert rows["billed_tokens"].loc["q03"] > 0  # its call was answered, and in the journal when the process ended
    assert rows["billed_tokens"].sum() == sum(paid_once.values())


@pytest.mark.nightly
def test_the_connections_are_those_of_the_whole_run(tmp_path: Path, questions: Path, nodes: Nodes) -> None:
    latency_s = 0.1
    with ModelServer(answer, latency_s=latency_s) as server:
        ended(start(*new_run(server, questions, tmp_path / "run"), *on(nodes), "--max-connections", 5))
        times = sorted(entry.time for entry in server.books)
    in_flight = [sum(begun <= other < begun + latency_s - 0.01 for other in times) for begun in times]
    assert max(in_flight) == 4  # two of each worker, since a fifth has no equal share


def test_an_interrupted_run_ends_its_workers(tmp_path: Path, questions: Path, nodes: Nodes) -> None:
    with ModelServer(answer, latency_s=0.3) as server:
        run = start(*new_run(server, questions, tmp_path / "run"), *on(nodes))
        deadline = time.monotonic() + 240  # beside other tests Ray's workers take a minute to start
        while len(server.books) < 60:
            if run.poll() is not None or time.monotonic() > deadline:
                run.kill()
                pytest.fail(f"{len(server.books)} calls: {run.communicate()}")
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        assert "interrupted" in ended(run, code=3)
        asked = len(server.books)
        time.sleep(1.0)
        assert len(server.books) == asked
        paid = server.totals().total_tokens
    finished = load(tmp_path / "run")["billed_tokens"].sum() if (tmp_path / "run/questions.parquet").exists() else 0
    assert 0 < finished <= paid


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--ray-address", "127.0.0.1:9"], "--ray-address: nothing listens at '127.0.0.1:9'"),
        (["--worker-resources", '{"GPU": 8}'], '--worker-resources: no node of the cluster has {"GPU": 8}'),
        (["--answer-cache", "cache"], "--answer-cache: workers of a cluster have none; leave it out, or --workers"),
        (["--worker-resources", "GPU"], "--worker-resources GPU: it should be a JSON object such as"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, nodes: Nodes, flags: list[str], line: str) -> None:
    address = [] if "--ray-address" in flags else ["--ray-address", nodes.address]
    run = start("--arch", "direct", "-n", 1, "--out", tmp_path / "run", *address, *flags)
    errors = ended(run, code=2)
    assert line in errors.splitlines()[-1]
    assert not (tmp_path / "run").exists()


def test_ray_that_is_not_installed_is_one_line(tmp_path: Path) -> None:
    without = "import sys; sys.modules['ray'] = None; from rewoo_bench.cli.main import main; main()"
    arguments = ["run", "--arch", "direct", "-n", "1", "--model", "oracle", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-c", without, *arguments, "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "rewoo-bench: --workers needs the package: pip install 'rewoo-bench[ray]'"


@pytest.mark.nightly
def test_each_question_on_a_worker_has_an_mcp_server_of_its_own(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> str:
        is_told = request["messages"][-1]["content"].startswith("Observation")
        return "Thought: b\nAction: Finish[x]" if is_told else "Thought: a\nAction: note[mine]"

    server = shlex.join([sys.executable, str(Path(__file__).parents[1] / "support" / "mcp_hostile.py")])
    asked = ("--arch", "react", "-n", 4, "--concurrency", 2, "--out", tmp_path / "run")
    with ModelServer(reply) as model:
        where = ("--model", "openai/x", "--api-base", model.api_base, "--workers", 2)
        output, _ = start(*asked, *where, "--mcp", server).communicate(timeout=300)
    lines = (tmp_path / "run" / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["steps"][0]["observation"] for line in lines] == ["mine."] * 4, output
