"""What the harness costs beyond the model calls, measured against bare litellm in turn, in one run.

    python scripts/measure_overhead.py                     # 200 ms a call, 64 questions at once
    python scripts/measure_overhead.py --latency-ms 0      # CPU time of a call
    python scripts/measure_overhead.py throughput          # share of the ideal, CPU of a question; --profile

`throughput` asks 1,024 questions of rewoo-json (a plan of two searches, an answer), of rewoo-code (a program of the
same) and of react-native (a search, an answer): two calls each. The ideal is a machine that does nothing between a
question's calls. CPU is that of this process; programs run in others, whose share is shown beside it.

A local OpenAI-compatible server in a process of its own answers after the given latency. `bare`
is litellm.acompletion with the messages of ReWOO's two calls, one after the other; `harness` is
the same questions through evaluator, meter, retries and parquet, all recording on. Rounds take
turns, so that a noisy machine is noisy for both; medians are printed, and the ratio of pairs.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import os
import pstats
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or litellm asks the network for prices at its import

from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.calls.retry import AdaptiveLimiter, RetryingModel
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder import RunFolder, open_run
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.models.hosted.client import ModelSettings
from rewoo_bench.models.open import open_model
from rewoo_bench.runners.architecture import Architecture, load_architecture
from rewoo_bench.testing.server import ModelServer, ServerReply
from rewoo_bench.tools import Corpus
from rewoo_bench.types import Connects, Example, ToolCall

CALLS = 2  # of a ReWOO question without an LLM step
# One reply that reads as a plan, as an action and as an answer.
REPLY = "Plan: Find the page.\n#E1 = Search[Paris]\nThought: It is known.\nAction: Finish[Paris]\nAnswer: Paris"

PLAN = json.dumps(
    {
        "steps": [
            {"id": f"E{number}", "thought": "Find it.", "tool": "Search", "args": {"query": title}, "depends_on": []}
            for number, title in enumerate(("Paris", "Oslo"), start=1)
        ]
    }
)


PROGRAM = '```python\nfor page in await gather(Search("Paris"), Search("Oslo")):\n    print(page)\n```'


def reply_of(request: dict[str, Any]) -> str | ServerReply:
    """What a model would say: a plan, a program, a search, or an answer."""
    system = str(request["messages"][0]["content"])
    if system.startswith("Write one Python program"):
        return PROGRAM
    if "response_format" in request or "The plan is JSON" in system:
        return PLAN
    if "tools" in request and request["messages"][-1]["role"] != "tool":
        return ServerReply("", tool_calls=[ToolCall("call_1", "Search", {"query": "Paris"})])
    return REPLY.rpartition("\n")[2]


def serve(latency_ms: float) -> None:
    """Answers until the process is ended."""
    with ModelServer(reply_of, latency_s=latency_ms / 1000) as running:
        print(running.api_base, flush=True)
        while True:
            time.sleep(0.1)
            running.books.clear()


@contextmanager
def server(*command: str) -> Iterator[str]:
    """The address of a model server in its own process, started by `python` and these arguments."""
    command = (sys.executable, *command)
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
    """The evaluator with everything recorded into a run folder, and its tables."""
    async with recorded_run(api_base, toolbox, concurrency) as (evaluator, kept):
        await evaluator.run(examples, [architecture], store=kept.store, on_result=lambda result: None)
        await kept.export([task.key for task in tasks_of(examples, [architecture], 1)])


@asynccontextmanager
async def recorded_run(api_base: str, toolbox: Toolbox, concurrency: int) -> AsyncIterator[tuple[Evaluator, RunFolder]]:
    """The evaluator of a run in a temporary folder, with all recording on."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_model("openai/test", ModelSettings(api_base=api_base)) as opened:
            model = RetryingModel(opened.model, limiter=AdaptiveLimiter(concurrency))
            run = dict.fromkeys(["run_id", "dataset", "model", "planner_model", "solver_model"], "overhead")
            async with open_run(Path(folder), run) as kept:
                recorder = Recorder(kept.journal)
                evaluator = Evaluator({"": model}, "hotpotqa", toolbox, recorder=recorder, concurrency=concurrency)
                yield evaluator, kept


async def throughput(options: argparse.Namespace) -> None:
    """From the first request to the last of each architecture, in turn: share of the ideal, and CPU."""
    data = load_dataset_examples("sample")
    assert data.corpus is not None
    toolbox = Toolbox(Corpus.open(data.corpus))
    examples = [replace(data.examples[i % len(data.examples)], id=f"q{i}") for i in range(options.questions)]
    figures: dict[str, list[tuple[float, ...]]] = {}
    with server(__file__, "serve", "--latency-ms", str(options.latency_ms)) as api_base:
        for round_ in range(options.rounds + 1):  # the first is a warm-up
            for name in options.architectures.split(","):
                architecture = load_architecture(name, style="multihop")
                profile = cProfile.Profile() if options.profile and round_ else None
                before = others_s()
                async with recorded_run(api_base, toolbox, options.concurrency) as (evaluator, kept):
                    gc.collect()
                    async with AsyncExitStack() as stack:
                        if isinstance(architecture.runner, Connects):
                            await architecture.runner.connect(stack)
                        figure = await timed(partial(asked, evaluator, kept, examples, architecture, profile))
                if round_:
                    figures.setdefault(name, []).append((*figure, others_s() - before))
                if profile is not None:
                    pstats.Stats(profile).sort_stats("tottime").print_stats(options.profile)
    ideal_s = CALLS * options.latency_ms / 1000 * -(-options.questions // options.concurrency)
    print(
        f"{options.questions} questions, {options.latency_ms:g} ms a call, {options.concurrency} at once, "
        f"median of {options.rounds} rounds, load {os.getloadavg()[0]:.1f}"
    )
    for name, rounds in figures.items():
        wall_s, cpu_s, more_s = (statistics.median(values) for values in zip(*rounds, strict=True))
        a_question, more = (f"{1000 * seconds / options.questions:.2f} ms" for seconds in (cpu_s, more_s))
        beside = f", {more} in processes of its own" if more_s else ""
        print(f"{name:14} {ideal_s / wall_s:6.1%} of the ideal, {a_question} CPU a question{beside}")


async def asked(
    evaluator: Evaluator,
    kept: RunFolder,
    examples: Sequence[Example],
    architecture: Architecture,
    profile: cProfile.Profile | None,
) -> None:
    """Asks every question. Raises `AssertionError` where one wasn't answered."""
    stops: list[str] = []
    if profile is not None:
        profile.enable()
    await evaluator.run(
        examples,
        [architecture],
        store=kept.store,
        on_result=lambda result: stops.append(result.trajectory.stop_reason),
    )
    if profile is not None:
        profile.disable()
    assert set(stops) == {"answered"}, set(stops)


def others_s() -> float:
    """CPU seconds of the processes that have ended, of those that this one began."""
    return sum(os.times()[2:4])


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
    with server(
        "-m", "rewoo_bench.testing.server", "--latency-ms", str(options.latency_ms), "--reply", REPLY
    ) as api_base:
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


MODES = {"compare": measure, "throughput": throughput}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("mode", nargs="?", choices=(*MODES, "serve"), default="compare")
    parser.add_argument("--latency-ms", type=float, default=200.0)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--questions", type=int, help="default 640, for throughput 1024")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--architectures", default="rewoo-json,rewoo-code,react-native", help="of throughput, with commas between"
    )
    parser.add_argument("--profile", type=int, help="of throughput: show so many functions by their own time")
    given = parser.parse_args()
    given.questions = given.questions or (1024 if given.mode == "throughput" else 640)
    if given.mode == "serve":
        serve(given.latency_ms)
    else:
        anyio.run(MODES[given.mode], given)
