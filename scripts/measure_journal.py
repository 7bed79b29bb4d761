"""What the journal costs, and that memory stays flat: a scripted model, questions without end.

    python scripts/measure_journal.py                            # journal on; memory as it goes
    python scripts/measure_journal.py --compare                  # with and without, in turn
    python scripts/measure_journal.py --compare --latency 0.02   # of a model that takes 20 ms
    python scripts/measure_journal.py --compare --dataset hotpot_dev_distractor_v1.json

Without a data set a question has one page of two sentences, and a plan of one search: the least that a
question can be. With one its questions are asked again and again, each with a search and a call of the
LLM tool. The model answers at once, so that all that is measured is the harness, or after a while. Both
ways write the same tables: with the journal from it at the end, without it straight from the results.
Rounds go in turn, so that a machine whose speed changes is fast or slow for both; the fastest round of
each is the one that other work has disturbed least. Resident memory is read from /proc at the half and
at the end.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import anyio
import pyarrow as pa
import pyarrow.parquet as pq

from rewoo_bench.calls.recorder import Recorder
from rewoo_bench.evaluation.evaluator import Evaluator, tasks_of
from rewoo_bench.evaluation.folder import Result, open_run, trace
from rewoo_bench.loaders.load import load_dataset_examples
from rewoo_bench.runners.architecture import Architecture, load_architecture
from rewoo_bench.runs.columns import CALLS, QUESTIONS, call_rows, question_row
from rewoo_bench.runs.journal.records import TaskKey, as_bytes
from rewoo_bench.runs.journal.store import Journal
from rewoo_bench.text.tokens import count_messages, count_tokens
from rewoo_bench.types import CallCost, Completion, Document, Example, Request, Usage

PAGE = Document("Kyiv", "Kyiv is the capital of Ukraine. It lies on the Dnieper.")
LEAST = Example("q", "On which river does Kyiv lie?", ("Dnieper",), (PAGE,))
LEAST_PLAN = "#E1 = Search[Kyiv]"
PLAN = "Plan: Find it.\n#E1 = Search[{question}]\nPlan: Read it.\n#E2 = LLM[{question} #E1]"
CONCURRENCY = 32  # as for a hosted model
ROWS_AT_ONCE = 500
COLUMNS = dict.fromkeys(["run_id", "dataset", "model", "planner_model", "solver_model"], "journal")


class Questions(Sequence[Example]):
    """So many questions, made when they are asked for: those of `examples`, again and again."""

    def __init__(self, count: int, examples: Sequence[Example]) -> None:
        self._count = count
        self._examples = examples

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        if index >= self._count:
            raise IndexError(index)
        again, which = divmod(index, len(self._examples))
        example = self._examples[which]
        return replace(example, id=f"{example.id}-{again}", question=f"{example.question} ({again})")

    def __iter__(self) -> Iterator[Example]:
        return (self[index] for index in range(self._count))


class Model:
    """Plans, then answers; remembers nothing. `latency_s` is what a call takes."""

    name = "scripted"

    def __init__(self, plan: str, latency_s: float) -> None:
        self._plan = plan
        self._latency_s = latency_s

    async def complete(self, request: Request) -> Completion:
        if self._latency_s:
            await anyio.sleep(self._latency_s)
        question = request.messages[-1].content.rpartition("Question: ")[2].partition("\n")[0]
        text = self._plan.replace("{question}", question) if request.role == "planner" else "Answer: Dnieper"
        usage = Usage(input_tokens=count_messages(request.messages), output_tokens=count_tokens(text))
        return Completion(text, usage, call_cost=CallCost(billed=usage, usage_source="estimated"))


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class DirectTables:
    """The files of a run written straight from its results, as a harness without a journal does."""

    def __init__(self, folder: Path) -> None:
        self._tables = (
            pq.ParquetWriter(folder / "questions.parquet", QUESTIONS, compression="zstd"),
            pq.ParquetWriter(folder / "calls.parquet", CALLS, compression="zstd"),
        )
        self._rows: tuple[list[Any], list[Any]] = [], []
        self._traces = (folder / "traces.jsonl").open("wb")

    def __enter__(self) -> DirectTables:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._traces.close()
        for table in self._tables:
            table.close()

    async def store(self, result: Result) -> None:
        self._rows[0].append(question_row(result, COLUMNS))
        self._rows[1].extend(call_rows(result, COLUMNS["run_id"]))
        self._traces.write(as_bytes(trace(result, COLUMNS["run_id"])) + b"\n")
        if len(self._rows[0]) == ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        for table, rows, schema in zip(self._tables, self._rows, (QUESTIONS, CALLS), strict=True):
            table.write_table(pa.Table.from_pylist(rows, schema=schema))
            rows.clear()


def architecture() -> Architecture:
    return load_architecture("rewoo", style="multihop")


def evaluator(model: Model, journal: Journal | None = None) -> Evaluator:
    recorder = Recorder(journal) if journal else None
    return Evaluator({"": model}, "hotpotqa", recorder=recorder, concurrency=CONCURRENCY)


def tasks(questions: Questions) -> Iterator[TaskKey]:
    return (task.key for task in tasks_of(questions, [architecture()], 1))


async def grow(model: Model, questions: Questions, folder: Path) -> None:
    """Prints seconds of a run with a journal, of its export and of finding its place again, and memory on the way."""
    done = 0
    told: dict[str, float] = {"before_mb": resident_mb()}

    def count_result(_: object) -> None:
        nonlocal done
        done += 1
        if done == len(questions) // 2:
            told["half_mb"] = resident_mb()

    start = time.perf_counter()
    async with open_run(folder, COLUMNS) as opened:
        run = evaluator(model, opened.journal)
        await run.run(questions, [architecture()], store=opened.store, on_result=count_result)
        told |= {"run_s": time.perf_counter() - start, "end_mb": resident_mb()}
        start = time.perf_counter()
        await opened.export(tasks(questions))
        told |= {"export_s": time.perf_counter() - start, "exported_mb": resident_mb()}
    start = time.perf_counter()
    async with open_run(folder, COLUMNS) as opened:
        assert len(opened.journal.finished()) == len(questions)
        told["resume_s"] = time.perf_counter() - start
    for name, value in told.items():
        print(f"{name:12} {value:10.1f}")


async def with_journal(model: Model, questions: Questions, folder: Path) -> float:
    async with open_run(folder, COLUMNS) as opened:
        start = time.perf_counter()
        run = evaluator(model, opened.journal)
        await run.run(questions, [architecture()], store=opened.store, on_result=lambda _: None)
        await opened.export(tasks(questions))
        return time.perf_counter() - start


async def without(model: Model, questions: Questions, folder: Path) -> float:
    start = time.perf_counter()
    with DirectTables(folder) as tables:
        await evaluator(model).run(questions, [architecture()], store=tables.store, on_result=lambda _: None)
    return time.perf_counter() - start


async def compare(model: Model, questions: Questions, rounds: int) -> None:
    """Prints what a question took both ways in each round, and the ratio over all of them, export included."""
    taken: dict[str, list[float]] = {"with": [], "without": []}
    ways = {"with": with_journal, "without": without}
    for number in range(rounds):
        for way in sorted(ways, reverse=number % 2 == 1):
            with tempfile.TemporaryDirectory() as folder:
                taken[way].append(await ways[way](model, questions, Path(folder)) / len(questions) * 1000)
        print(", ".join(f"{way} {taken[way][-1]:.3f} ms" for way in taken), flush=True)
    ratios = [one / other for one, other in zip(taken["with"], taken["without"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"ratio: median {middle:.3f} (quartiles {low:.3f}, {high:.3f}), {1 - 1 / middle:.1%} of throughput")
    best = min(taken["with"]) / min(taken["without"])
    print(f"of the fastest rounds {best:.3f}, {1 - 1 / best:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, help="100,000, or 5,000 in each round of --compare")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds a call takes")
    parser.add_argument("--compare", action="store_true", help="with and without a journal, in turn")
    parser.add_argument("--rounds", type=int, default=12, help="of --compare")
    parser.add_argument("--dataset", help="as of rewoo-bench run; with pages of its own, as HotpotQA's")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: at least 2, so that there are quartiles")
    examples = load_dataset_examples(options.dataset).examples if options.dataset else [LEAST]
    questions = Questions(options.questions or (5_000 if options.compare else 100_000), examples)
    model = Model(PLAN if options.dataset else LEAST_PLAN, options.latency)
    if options.compare:
        anyio.run(compare, model, questions, options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(grow, model, questions, Path(folder))


if __name__ == "__main__":
    main()
