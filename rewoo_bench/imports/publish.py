"""A finished run as logs of inspect_ai, which `inspect view` shows.

    publish_logs(Path("results/local/mine"), Path("shared"), texts=False)

A run becomes the trajectories that an import would have read (record.py), and these are written. Without texts, a
trajectory has its numbers, times, names and predictions, as the copy of a published run has (runs/publish.py): prompts,
replies and results of tools may repeat the data set, whose licence may forbid that. With them, it also has what the
journal and the traces hold, such as what the user of an imported conversation said later. A judge's calls belong to no
agent's work and are left out.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path
from typing import Any

from rewoo_bench.config.names import file_name
from rewoo_bench.errors import DataError, UsageError, unknown
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, Times, ToolUse
from rewoo_bench.runs.columns import CALLS, QUESTIONS
from rewoo_bench.runs.folder import CALLS_FILE, JOURNAL_FILE, QUESTIONS_FILE, TRACES_FILE, no_table, read_table
from rewoo_bench.runs.journal.database import connect_to_read
from rewoo_bench.runs.journal.records import SECOND_ATTEMPT, CallRecord, TaskKey
from rewoo_bench.runs.journal.store import JournalReader
from rewoo_bench.runs.manifest import read_manifest
from rewoo_bench.types import Message, ToolCall, Usage

_OF_SUB_AGENT = re.compile(r"(.+)/turn \d+", re.DOTALL)
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "cache_write_tokens")


def publish_logs(run: Path, out: Path, *, texts: bool = False, without: Sequence[str] = ()) -> int:
    """Writes a log of each architecture of a run into a new folder; returns the number of rows in them.

    Raises `UsageError`, and `DataError` where the run can't be read.
    """
    if importlib.util.find_spec("inspect_ai") is None:
        raise UsageError("--format: logs of inspect_ai need it: pip install 'rewoo-bench[inspect]'")
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"--out: {str(out)!r} isn't empty; choose a new folder")
    manifest = read_manifest(run)
    rows = 0
    with ExitStack() as stack:
        recorded = _Run(run, texts, stack)
        if absent := [name for name in without if name not in recorded.architectures]:
            raise UsageError(f"--without: {unknown('architecture', absent[0], recorded.architectures)}")
        chosen = [name for name in recorded.architectures if name not in without]
        for name, short in zip(chosen, _short_names(chosen), strict=True):
            facts = {
                "run_id": manifest.run_id,
                "dataset": file_name(manifest.dataset.name or "unknown"),
                "agent": file_name(name),
                "model": file_name(recorded.models[name]),
                "started_at": manifest.started_at or "1970-01-01T00:00:00+00:00",
                "finished_at": manifest.finished_at,
            }
            trajectories = list(recorded.trajectories(name))
            out.mkdir(parents=True, exist_ok=True)
            from rewoo_bench.imports.inspect_write import write_log  # inspect_ai takes seconds

            write_log(out / f"{short}.eval", facts, trajectories)
            rows += len(trajectories)
    return rows


def _short_names(names: Sequence[str]) -> list[str]:
    """Names of files for architectures, each once: `rewoo?exemplars=0` as `rewoo-exemplars-0`."""
    found: list[str] = []
    for name in names:
        short = re.sub(r"[^\w.-]+", "-", file_name(name)).strip("-.")[:80] or "agent"
        found.append(short if short not in found else f"{short}-{len(found)}")
    return found


class _Run:
    """The trajectories of a run: its tables, and its journal where there is one."""

    def __init__(self, folder: Path, texts: bool, stack: ExitStack) -> None:
        try:
            self._questions = read_table(folder / QUESTIONS_FILE, QUESTIONS).to_pylist()
            calls = read_table(folder / CALLS_FILE, CALLS).to_pylist()
        except FileNotFoundError as error:
            raise no_table(folder, Path(str(error.filename)).name) from None
        self._calls: defaultdict[TaskKey, list[Mapping[str, Any]]] = defaultdict(list)
        for call in sorted(calls, key=lambda call: call["call_index"]):
            self._calls[_key(call)].append(call)
        self._texts = texts
        self._is_imported = read_manifest(folder).imported is not None
        self._journal: JournalReader | None = None
        if (folder / JOURNAL_FILE).is_file():
            self._journal = JournalReader(stack.enter_context(closing(connect_to_read(folder / JOURNAL_FILE))))
        elif texts:
            raise UsageError(f"--texts: {str(folder)!r} has no {JOURNAL_FILE}, which holds the texts of its calls")
        self._traces = _traces(folder / TRACES_FILE) if texts else {}
        self.architectures = list(dict.fromkeys(row["architecture"] for row in self._questions))
        self.models = {row["architecture"]: str(row["model"] or "unknown") for row in self._questions}

    def trajectories(self, architecture: str) -> Iterator[RecordedTrajectory]:
        """Those of an architecture, one after the other."""
        return (self._trajectory(row) for row in self._questions if row["architecture"] == architecture)

    def _trajectory(self, row: Mapping[str, Any]) -> RecordedTrajectory:
        key = _key(row)
        records = _Records(self._journal.calls(key) if self._journal else ())
        trace = self._traces.get(key, {})
        steps = {(step["id"], step["tool"]): step for step in trace.get("steps", ())}
        events: list[ModelCall | ToolUse] = []
        for call in self._calls[key]:
            if call["role"] == "judge":
                continue
            record = records.of(call)
            if call["kind"] == "model":
                events.append(self._model_call(call, record))
            else:
                events.append(self._tool_use(call, record, steps))
        prompt = next((event.messages for event in events if isinstance(event, ModelCall) and event.messages), ())
        told = prompt[0].content if prompt and prompt[0].role == "system" else ""
        return RecordedTrajectory(
            task=row["example_id"],
            question=(row["question"] or "") if self._texts else "",
            events=events,
            agent=file_name(row["architecture"]),
            trial=row["trial"],
            system=trace.get("system", told),
            answer=row["prediction"],
            answers=(row["answers"] or ()) if self._texts else (),
            solved=row["exact_match"],
            error=row["error"] if self._texts else None,
            stop_reason=row["stop_reason"],
            cost_usd=row["cost_usd"],
            f1=row["f1"],
            is_without_texts=not self._texts or bool(trace.get("notes", {}).get("without_texts")),
        )

    def _model_call(self, row: Mapping[str, Any], record: CallRecord | None) -> ModelCall:
        answer: Mapping[str, Any] = record.answer if record else {}
        receipt = answer.get("receipt") or {}
        numbers = {
            "usage": _usage(row),
            "model": file_name(row["name"]),
            "finish_reason": row["finish_reason"],
            "cost_usd": receipt.get("cost_usd"),
            "times": _times(row),
            "error": row["status"] if row["status"] not in ("ok", "empty") else None,
            "is_estimated": row["usage_source"] == "estimated",
            "is_cached_known": row["cached_input_tokens"] is not None,
            "role": row["role"],
            "agent": self._sub_agent(row),
        }
        if not self._texts or record is None or self._journal is None:
            return ModelCall(None, **numbers)
        *texts, form = self._journal.texts(record)
        messages, tools = _request(texts, form)
        return ModelCall(
            messages or None,  # of a call whose prompt wasn't recorded
            str(answer.get("text") or ""),
            [ToolCall(each["id"], each["name"], each["arguments"]) for each in answer.get("tool_calls") or ()],
            tools=tools,
            thoughts=str(answer.get("thoughts") or ""),
            **numbers,
        )

    def _tool_use(
        self, row: Mapping[str, Any], record: CallRecord | None, steps: Mapping[tuple[str, str], Any]
    ) -> ToolUse:
        """A tool's call with what the journal has of it, else the traces: a tool that asks a model isn't in it."""
        arguments: dict[str, Any] | None = {}
        result = None
        if self._texts and self._journal is not None and record is not None:
            (request,) = self._journal.texts(record)
            sent = json.loads(request)
            arguments = sent if isinstance(sent, dict) or sent is None else {"argument": sent}
            result = record.answer.get("error") or record.answer.get("text")
        elif step := steps.get((row["place"], row["name"])):
            arguments, result = {"argument": step["argument"]}, step["observation"]
        failed = row["status"] not in ("ok", "empty")
        return ToolUse(file_name(row["name"]), arguments, result, failed, _times(row), self._sub_agent(row))

    def _sub_agent(self, row: Mapping[str, Any]) -> str:
        """The name of the sub-agent that made a call of an imported run, as an import puts it into the place."""
        found = _OF_SUB_AGENT.fullmatch(row["place"]) if self._is_imported else None
        return found[1] if found else ""


class _Records:
    """The journal's records of a question, each given to one row: those of a place in their order."""

    def __init__(self, records: Sequence[CallRecord]) -> None:
        self._left: defaultdict[tuple[str, str, str], list[CallRecord]] = defaultdict(list)
        for record in records:
            if record.answer and SECOND_ATTEMPT not in record.answer:
                self._left[record.key.kind, record.key.place, record.status].append(record)

    def of(self, row: Mapping[str, Any]) -> CallRecord | None:
        """The record of a row of calls.parquet; a tool that asks a model has none."""
        failed = row["kind"] == "model" and row["status"] not in ("ok", "empty")
        place = self._left[row["kind"], row["place"], "error" if failed else "ok"]
        name = row["role"] if row["kind"] == "model" else row["name"]
        # An imported call without a prompt is in the journal as an error, though it was answered.
        place = place or self._left[row["kind"], row["place"], "error"]
        found = next((record for record in place if record.key.name == name), None)
        if found is not None:
            place.remove(found)
        return found


def _request(texts: Sequence[str], form: str) -> tuple[list[Message], list[Any]]:
    """The messages of a recorded request and the tools that it offered (runs/journal/records.py)."""
    decoder, position, facts = json.JSONDecoder(), 0, dict[str, Any]()
    while position < len(form):
        part, position = decoder.raw_decode(form, position)
        facts |= part if isinstance(part, dict) else {}
    roles: list[Any] = str(facts.get("roles", "")).split()
    calls = facts.get("calls") or [[[], None]] * len(texts)
    if not len(roles) == len(texts) == len(calls):
        raise DataError("a prompt in the journal is damaged: its roles don't fit its texts")
    messages = [
        Message(role, text, tuple(ToolCall(c["id"], c["name"], c["arguments"]) for c in of_message), id_)
        for role, text, (of_message, id_) in zip(roles, texts, calls, strict=True)
    ]
    return messages, facts.get("tools") or []


def _usage(row: Mapping[str, Any]) -> Usage:
    return Usage(**{name: row[name] or 0 for name in _TOKENS})


def _times(row: Mapping[str, Any]) -> Times | None:
    begun: datetime | None = row["started_at"]
    if begun is None or row["latency_s"] is None:
        return None
    return Times(begun.timestamp(), begun.timestamp() + row["latency_s"])


def _traces(path: Path) -> dict[TaskKey, dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return {_key(each): each for each in found}


def _key(row: Mapping[str, Any]) -> TaskKey:
    return TaskKey(row["architecture"], row["example_id"], row["trial"])
