"""What `--engine ray` costs and gives, on this machine.

    python scripts/measure_cluster.py             # over HTTP at 200 ms a call: one process, and 1, 2, 4 workers
    python scripts/measure_cluster.py --driver    # calls a second that one driver can record

The model server is a process of its own. For the driver's limit, the workers make no calls: each of 4 actors keeps 64
finished calls on their way to the driver, which writes them into a real journal and confirms each.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pandas as pd

os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none", "RAY_USAGE_STATS_ENABLED": "0"}

from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.evaluation.cluster.engine import RayEngine
from rewoo_bench.evaluation.cluster.messages import DriverReply, Link, WorkerMessage, WorkerSetup
from rewoo_bench.evaluation.cluster.pool import PoolWorker
from rewoo_bench.evaluation.cluster.start import ray_cluster
from rewoo_bench.evaluation.folder import open_run
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runs.journal.records import CallKey, CallRecord, TaskKey
from rewoo_bench.runs.options import RunOptions

# The command, which writes down its process's CPU time.
RUN = """
import atexit, sys, time
from rewoo_bench.cli.main import main
file = open(sys.argv.pop(1), "w")
atexit.register(lambda: print(time.process_time(), file=file, flush=True))
main()
"""
ON_THEIR_WAY = 64
PROMPT = tuple(f"part {number}: " + "a word " * 120 for number in range(5))
ANSWER = {
    "text": "Plan: look it up.\n#E1 = Search[Kyiv]\n" * 4,
    "usage": {"input_tokens": 600, "output_tokens": 60},
    "finish_reason": "stop",
    "tool_calls": [],
    "receipt": {"attempts": 1, "billed": {"input_tokens": 600, "output_tokens": 60}, "latency_s": 0.2},
}


class Flood:
    """An actor that sends finished calls as fast as the driver confirms them."""

    def __init__(self, number: int, calls: int) -> None:
        self._link = Link()
        self._number = number
        self._left = calls

    async def messages(self) -> AsyncIterator[list[WorkerMessage]]:
        sending = asyncio.gather(*(self._send(sender) for sender in range(ON_THEIR_WAY)))
        sending.add_done_callback(lambda _: self._link.tell("notice", ""))
        async for batch in self._link.batches():
            if sending.done():
                return
            yield batch

    async def receive(self, replies: Sequence[DriverReply]) -> None:
        self._link.receive(replies)

    async def _send(self, sender: int) -> None:
        task = TaskKey("rewoo", f"q{self._number}-{sender}", 0)
        while self._left > 0:
            self._left -= 1
            key = CallKey("planner 0", "model", "planner", self._left.to_bytes(32, "big"))
            prompt = (*PROMPT, f"Question {self._number} {self._left}")
            await self._link.ask("record", CallRecord(task, key, "ok", prompt, ANSWER, 660, 0.001))


async def record_flood(actors: int, calls: int) -> None:
    """Prints calls a second until the driver has confirmed all and until the journal has all, and the driver's CPU."""
    import ray

    setup: Any = WorkerSetup(
        RunOptions(("rewoo",)), load_dataset_examples("sample", limit=1), None, {}, {}, ".", False, False, False
    )
    with tempfile.TemporaryDirectory() as folder, ray_cluster(None):
        async with open_run(Path(folder), {}) as opened:
            engine = RayEngine(setup, Recorder(opened.journal), actors, {}, print, Path(folder, "engine.txt"))
            flood: Any = ray.remote(Flood)
            placed = flood.options(num_cpus=0, max_concurrency=100)
            handles = [placed.remote(number, calls // actors) for number in range(actors)]
            began, cpu = time.perf_counter(), time.process_time()
            async with anyio.create_task_group() as group:
                for number, handle in enumerate(handles):
                    group.start_soon(engine.dispatcher.serve, PoolWorker(number, handle, 1))
            seconds, spent = time.perf_counter() - began, time.process_time() - cpu
            tasks = [TaskKey("rewoo", f"q{n}-{sender}", 0) for n in range(actors) for sender in range(ON_THEIR_WAY)]
            kept = sum(len(opened.journal.calls(task)) for task in tasks)
        print(
            f"{kept:,} of {calls:,} calls in the journal, {actors} actors: {kept / seconds:,.0f} calls/s, "
            f"{1000 * spent / kept:.2f} ms of the driver's CPU a call"
        )


class Measured(NamedTuple):
    """A run over HTTP: model calls a second from the first start to the last end, the command's seconds and its CPU."""

    rate: float
    seconds: float
    cpu_s: float


def run_over_http(api_base: str, questions: int, flags: Sequence[str]) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        cpu_file, out = Path(folder, "cpu"), f"{folder}/run"
        command = (
            f"{sys.executable} -c {shlex.quote(RUN)} {cpu_file} run --arch rewoo --dataset chain?hops=2 --no-report "
            f"--quiet -n {questions} --model openai/test --api-base {api_base} --out {out}"
        )
        began = time.perf_counter()
        subprocess.run([*shlex.split(command), *flags], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        calls = pd.read_parquet(f"{out}/calls.parquet")
        calls = calls[calls["kind"] == "model"]
        ends = calls["started_at"] + pd.to_timedelta(calls["latency_s"], unit="s")
        rate = len(calls) / (ends.max() - calls["started_at"].min()).total_seconds()
        return Measured(rate, seconds, float(cpu_file.read_text()))


def over_http(latency_ms: float, questions: int, at_once: int) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "rewoo_bench.testing.server", "--latency-ms", str(latency_ms), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        api_base = next(word for word in server.stdout.readline().split() if word.startswith("http"))
        same = ("--concurrency", str(at_once), "--max-connections", str(at_once))
        print("| | calls a second | command, s | CPU of its process for a further question, ms |\n|---|---:|---:|---:|")
        for name, flags in [
            ("one process", same),
            *((f"ray, {n} workers", (*same, "--engine", "ray", "--workers", str(n))) for n in (1, 2, 4)),
        ]:
            half, full = (run_over_http(api_base, n, flags) for n in (questions // 2, questions))
            each_ms = 1000 * (full.cpu_s - half.cpu_s) / (questions - questions // 2)
            print(
                f"| {name} | {full.rate:,.0f} | {full.seconds:.1f} | {each_ms:.2f} |",
                flush=True,
            )
    finally:
        server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--driver", action="store_true", help="measure the driver's limit")
    parser.add_argument("--calls", type=int, default=40_000, help="calls for the driver's limit")
    parser.add_argument("--actors", type=int, default=4)
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--at-once", type=int, default=512, help="questions and connections at the same time")
    flags = parser.parse_args()
    if flags.driver:
        anyio.run(record_flood, flags.actors, flags.calls)
    else:
        over_http(flags.latency_ms, flags.questions, flags.at_once)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
