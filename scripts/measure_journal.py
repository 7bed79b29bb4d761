"""What the journal costs, and that memory stays flat: a scripted model, questions without end.

    python scripts/measure_journal.py --questions 100000        # journal on; memory as it goes
    python scripts/measure_journal.py --questions 1000 --compare # with and without, in turn

The model answers at once, so nearly all that is measured is the harness. Both ways write the same
tables: with the journal from it at the end, without it straight from the results. They are compared
by wall time and by CPU time, which other work on the machine disturbs less: many short rounds in
turn, so that a machine whose speed changes is fast or slow for both, and the fastest round of each,
which other work has disturbed least. Resident memory is read from /proc at the half and at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, overload

import anyio

from rewoo_bench.architecture import load_architecture
from rewoo_bench.evaluator import Evaluator, Result, tasks_of
from rewoo_bench.recording import Recorder
from rewoo_bench.results import Table, open_run
from rewoo_bench.rows import CALLS, QUESTIONS, call_rows, question_row, trace
from rewoo_bench.tokens import count_messages, count_tokens
from rewoo_bench.types import Completion, Document, Example, Message, Receipt, Usage

PAGE = (Document("Kyiv", "Kyiv is the capital of Ukraine. It lies on the Dnieper."),)
CONCURRENCY = 32  # as for a hosted model
COLUMNS = dict.fromkeys(["run_id", "dataset", "model", "planner_model", "solver_model"], "journal")


class Questions(Sequence[Example]):
    """So many questions, made when they are asked for."""

    def __init__(self, count: int) -> None:
        self._count = count

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
        return Example(f"q{index}", f"Question {index}: on which river does Kyiv lie?", ("Dnieper",), PAGE)

    def __iter__(self) -> Iterator[Example]:
        return (self[index] for index in range(self._count))


class Model:
    """Plans one search, then answers; remembers nothing."""

    name = "scripted"

    async def complete(self, messages: Sequence[Message], *, role: str, **_: Any) -> Completion:
        text = "#E1 = Search[Kyiv]" if role == "planner" else "Answer: Dnieper"
        usage = Usage(input_tokens=count_messages(messages), output_tokens=count_tokens(text))
        return Completion(text, usage, receipt=Receipt(billed=usage, usage_source="estimated"))


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds() -> float:
    """Of this process, and of those it started that have ended: the journal's."""
    return sum(os.times()[:4])


class DirectTables:
    """The files of a run written straight from its results, as a harness without a journal does."""

    def __init__(self, folder: Path) -> None:
        self._questions = Table(folder / "questions.parquet", QUESTIONS)
        self._calls = Table(folder / "calls.parquet", CALLS)
        self._traces = (folder / "traces.jsonl").open("w", encoding="utf-8")

    def __enter__(self) -> DirectTables:
        self._questions.__enter__()
        self._calls.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._traces.close()
        self._calls.__exit__(*error)
        self._questions.__exit__(*error)

    async def keep(self, result: Result) -> None:
        self._questions.add([question_row(result, COLUMNS)])
        self._calls.add(call_rows(result, COLUMNS["run_id"]))
        self._traces.write(json.dumps(trace(result, COLUMNS["run_id"]), ensure_ascii=False) + "\n")


async def run(count: int, folder: Path, *, journal: bool) -> dict[str, float]:
    """Seconds of the evaluation and of the export, and memory on the way (MB)."""
    architecture = load_architecture("rewoo", style="multihop")
    questions = Questions(count)
    told: dict[str, float] = {"before_mb": resident_mb()}
    done = 0

    def count_result(_: object) -> None:
        nonlocal done
        done += 1
        if done == count // 2:
            told["half_mb"] = resident_mb()

    start, cpu = time.perf_counter(), cpu_seconds()
    if not journal:
        with DirectTables(folder) as tables:
            await Evaluator({"": Model()}, "hotpotqa", concurrency=CONCURRENCY).run(
                questions, [architecture], on_result=count_result, keep=tables.keep
            )
        return {**told, "run_s": time.perf_counter() - start, "cpu_s": cpu_seconds() - cpu}
    async with open_run(folder, COLUMNS) as opened:
        evaluator = Evaluator({"": Model()}, "hotpotqa", recorder=Recorder(opened.journal), concurrency=CONCURRENCY)
        await evaluator.run(questions, [architecture], keep=opened.keep, on_result=count_result)
        told |= {"run_s": time.perf_counter() - start, "end_mb": resident_mb()}
        start = time.perf_counter()
        await opened.export(task.key for task in tasks_of(questions, [architecture], 1))
        told |= {"export_s": time.perf_counter() - start, "exported_mb": resident_mb()}
    told["cpu_s"] = cpu_seconds() - cpu
    start = time.perf_counter()
    async with open_run(folder, COLUMNS) as opened:
        assert len(opened.journal.finished()) == count
        told["resume_s"] = time.perf_counter() - start
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--compare", action="store_true", help="with and without a journal, in turn")
    parser.add_argument("--rounds", type=int, default=15, help="of --compare")
    options = parser.parse_args()
    if not options.compare:
        with tempfile.TemporaryDirectory() as folder:
            for name, value in anyio.run(partial(run, options.questions, Path(folder), journal=True)).items():
                print(f"{name:12} {value:10.1f}")
        return
    ratios: dict[str, list[float]] = {"wall": [], "cpu": []}
    fastest = {clock: {True: math.inf, False: math.inf} for clock in ratios}
    for _ in range(options.rounds):
        taken: dict[bool, dict[str, float]] = {}
        for journal in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                told = anyio.run(partial(run, options.questions, Path(folder), journal=journal))
                taken[journal] = {"wall": told["run_s"] + told.get("export_s", 0.0), "cpu": told["cpu_s"]}
        for clock, found in ratios.items():
            found.append(taken[True][clock] / taken[False][clock])
            fastest[clock] = {way: min(fastest[clock][way], taken[way][clock]) for way in (True, False)}
            print(
                f"{clock}: with {taken[True][clock]:.2f} s, without {taken[False][clock]:.2f} s, ratio {found[-1]:.2f}",
                flush=True,
            )
    for clock, found in ratios.items():
        low, middle, high = statistics.quantiles(found, n=4)
        best = fastest[clock][True] / fastest[clock][False]
        print(
            f"{clock}: median ratio {middle:.3f} (quartiles {low:.3f}, {high:.3f}), {1 - 1 / middle:.1%} of throughput;"
            f" the fastest rounds {best:.3f}, {1 - 1 / best:.1%}"
        )


if __name__ == "__main__":
    main()
