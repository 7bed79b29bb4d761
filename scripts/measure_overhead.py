"""What the harness costs beyond the model calls, measured against bare litellm in turn, in one run.

    python scripts/measure_overhead.py                     # 200 ms a call, 64 questions at once
    python scripts/measure_overhead.py --latency-ms 0      # CPU time of a call

A local OpenAI-compatible server in a process of its own answers after the given latency. `bare`
is litellm.acompletion with the messages of ReWOO's two calls, one after the other; `harness` is
the same questions through evaluator, meter, retries and parquet, all recording on. Rounds take
turns, so that a noisy machine is noisy for both; medians are printed, and the ratio of pairs.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or litellm asks the network for prices at its import

from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.calls.retry import AdaptiveLimiter, RetryingModel
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder import open_run
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.models.open import open_model
from rewoo_bench.models.own import ModelSettings
from rewoo_bench.runners.architecture import Architecture, load_architecture
from rewoo_bench.tools import Corpus
from rewoo_bench.types import Example

CALLS = 2  # of a ReWOO question without an LLM step
# One reply that reads as a plan, as an action and as an answer.
REPLY = "Plan: Find the page.\n#E1 = Search[Paris]\nThought: It is known.\nAction: Finish[Paris]\nAnswer: Paris"


@contextmanager
def server(latency_ms: float) -> Iterator[str]:
    """The address of a model server in its own process."""
    command = [sys.executable, "-m", "rewoo_bench.testing.server", "--latency-ms", str(latency_ms), "--reply", REPLY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


async def bare(api_base: str, prompts: Sequence[list[dict[str, str]]], questions: int, concurrency: int) -> None:
    """litellm alone: the same number of calls with prompts of the same length, two in a row a question."""
    import litellm

    waiting = iter(range(questions))

    async def work() -> None:
        for _ in waiting:
            for messages in prompts:
                await litellm.acompletion(
                    "openai/test", messages=messages, api_base=api_base, api_key="none", temperature=0, num_retries=0
                )

    async with anyio.create_task_group() as group:
        for _ in range(concurrency):
            group.start_soon(work)


async def harness(
    api_base: str, examples: Sequence[Example], architecture: Architecture, toolbox: Toolbox, concurrency: int
) -> None:
    """The evaluator with everything recorded into a run folder."""
    settings = ModelSettings(api_base=api_base)
    with tempfile.TemporaryDirectory() as folder:
        async with open_model("openai/test", settings) as opened:
            model = RetryingModel(opened.model, limiter=AdaptiveLimiter(concurrency))
            run = dict.fromkeys(["run_id", "dataset", "model", "planner_model", "solver_model"], "overhead")
            async with open_run(Path(folder), run) as kept:
                recorder = Recorder(kept.journal)
                evaluator = Evaluator({"": model}, "hotpotqa", toolbox, recorder=recorder, concurrency=concurrency)
                await evaluator.run(examples, [architecture], keep=kept.keep, on_result=lambda result: None)
                await kept.export([task.key for task in tasks_of(examples, [architecture], 1)])


async def timed(work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Wall and CPU seconds of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return time.perf_counter() - wall, time.process_time() - cpu


async def measure(options: argparse.Namespace) -> None:
    data = load_dataset_examples("sample")
    assert data.corpus is not None
    toolbox, architecture = Toolbox(Corpus.open(data.corpus)), load_architecture("rewoo", style="multihop")
    examples = [replace(data.examples[i % len(data.examples)], id=f"q{i}") for i in range(options.questions)]
    prompts = same_prompts(architecture, examples[0])
    with server(options.latency_ms) as api_base:
        works: dict[str, Callable[[], Awaitable[None]]] = {
            "bare": lambda: bare(api_base, prompts, options.questions, options.concurrency),
            "harness": lambda: harness(api_base, examples, architecture, toolbox, options.concurrency),
        }
        figures: dict[str, list[tuple[float, float]]] = {"bare": [], "harness": []}
        for round_ in range(options.rounds + 1):
            for name, work in works.items():
                figure = await timed(work)
                if round_:  # the first is a warm-up
                    figures[name].append(figure)
    report(options, figures)


def same_prompts(architecture: Architecture, example: Example) -> list[list[dict[str, str]]]:
    """The planner's and, near enough, the solver's messages."""
    question = {"role": "user", "content": f"Question: {example.question}"}
    shots = [{"role": message.role, "content": message.content} for message in architecture.prompts.shots("planner")]
    solver = architecture.prompts.texts["solver"]
    evidence = f"{example.question}\nPlan: Find the page.\n#E1 = Search[Paris]\nEvidence: {'word ' * 60}"
    return [
        [{"role": "system", "content": architecture.prompts.texts["planner"]}, *shots, question],
        [{"role": "system", "content": solver}, shots[0], shots[1], {"role": "user", "content": evidence}],
    ]


def report(options: argparse.Namespace, figures: dict[str, list[tuple[float, float]]]) -> None:
    calls = CALLS * options.questions
    ideal = options.concurrency / (options.latency_ms / 1000) if options.latency_ms else None
    print(
        f"{options.questions} questions, {CALLS} calls each, {options.latency_ms:g} ms a call, "
        f"{options.concurrency} at once, median of {options.rounds} rounds, load {os.getloadavg()[0]:.1f}"
    )
    for name, rounds in figures.items():
        rate = calls / statistics.median(wall for wall, _ in rounds)
        cpu = 1000 * statistics.median(cpu for _, cpu in rounds) / calls
        share = f", {rate / ideal:.1%} of the ideal" if ideal else ""
        print(f"{name:8} {rate:7.1f} calls/s{share}, {cpu:.2f} ms CPU a call")
    pairs = list(zip(figures["bare"], figures["harness"], strict=True))
    speed = statistics.median(b[0] / h[0] for b, h in pairs)
    beyond = 1000 * statistics.median(h[1] - b[1] for b, h in pairs) / calls
    peak: Any = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"harness/bare throughput {speed:.3f}, CPU beyond bare {beyond:+.2f} ms a call, peak {peak / 1024:.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--questions", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=3)
    anyio.run(measure, parser.parse_args())
