"""Prompts and raw completions of a run, from its journal, for the page (`rewoo-bench report --with-prompts`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from rewoo_bench.journal.database import connect_to_read
from rewoo_bench.journal.records import CallRecord, TaskKey
from rewoo_bench.journal.store import JOURNAL, JournalReader
from rewoo_bench.report.trajectories import Prompts, TraceKey
from rewoo_bench.runs.manifest import read_manifest


@contextmanager
def journal_prompts(runs: Sequence[Path]) -> Iterator[Prompts]:
    """A function from a run's question to its model calls; a run without a journal has none. Raises `DataError`."""
    journals: dict[str, JournalReader] = {}
    with ExitStack() as stack:
        for folder in runs:
            if (folder / JOURNAL).is_file():
                database = stack.enter_context(closing(connect_to_read(folder / JOURNAL)))
                journals[read_manifest(folder).run_id] = JournalReader(database)

        def prompts(key: TraceKey) -> list[dict[str, Any]]:
            run, architecture, example_id, trial = key
            if run not in journals:
                return []
            records = journals[run].calls(TaskKey(architecture, example_id, trial))
            return [_shown(journals[run], record) for record in records if record.key.kind == "model"]

        yield prompts


def _shown(journal: JournalReader, record: CallRecord) -> dict[str, Any]:
    answer = record.answer
    completion = answer.get("text") if record.status == "ok" else answer.get("message")
    *texts, _ = journal.texts(record)  # the last one is the request's form: roles, grammar, tools
    return {"place": record.key.call_site, "prompt": texts, "completion": str(completion or "")}
