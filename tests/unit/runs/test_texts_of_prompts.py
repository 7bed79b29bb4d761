"""Reading recorded prompts: each text once, and a finished question's prefixes are forgotten."""

from __future__ import annotations

import json
import sys
import tracemalloc
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio

from rewoo_bench.imports.write import import_run
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.prefixes import common_prefixes, shared_prefixes


def test_prefixes_of_finished_questions_take_no_memory(tmp_path: Path) -> None:
    """300 conversations more, each with 157 prefixes twice, take the numbers of their calls alone."""
    system = {"role": "system", "content": "Answer well. " * 1_550}
    peaks = []
    for many in (100, 400):
        file, run = tmp_path / f"{many}.jsonl", tmp_path / str(many)
        with file.open("w") as lines:
            for number in range(many):
                said = [{"role": role, "content": f"{role} {number}"} for role in ("user", "assistant") * 2]
                lines.write(json.dumps({"messages": [system, *said]}) + "\n")
        anyio.run(partial(import_run, [file], run))
        with closing(connect_to_read(run / "journal.sqlite")) as database:
            tracemalloc.start()
            shared_prefixes(database, {"": "openai/a"})
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 300 * 2_500


def test_what_a_runs_prompts_share_is_found_in_the_time_of_what_is_new_in_each(tmp_path: Path) -> None:
    """Functions that are called, for two conversations of n and of 2 n turns."""
    counted = []
    for turns in (50, 100):
        file, run = tmp_path / f"{turns}.jsonl", tmp_path / str(turns)
        with file.open("w") as lines:
            for question in ("Which river?", "Which town?"):
                said = [
                    {"role": role, "content": f"{role} {n}"} for n in range(turns) for role in ("assistant", "user")
                ]
                asked = [{"role": "system", "content": "Answer well."}, {"role": "user", "content": question}]
                lines.write(json.dumps({"messages": [*asked, *said[:-1]]}) + "\n")
        anyio.run(partial(import_run, [file], run))
        with closing(connect_to_read(run / "journal.sqlite")) as database:
            tasks = [json.loads(task) for (task,) in database.each("SELECT task FROM calls WHERE kind = 'model'")]
            questions = {example_id: "Which" for _, example_id, _ in tasks}
            called = [0]

            def count(frame: object, event: str, argument: object, called: list[int] = called) -> None:
                called[0] += event in ("call", "c_call")

            sys.setprofile(count)
            found = common_prefixes(database, questions, {tasks[0][0]: []})
            sys.setprofile(None)
            assert len(tasks) == 2 * turns
            (facts,) = found[tasks[0][0]].values()
            assert facts["ends_in"] == "question"
            counted.append(called[0])
    assert counted[1] < 2.5 * counted[0]
