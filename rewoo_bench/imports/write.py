"""Recorded trajectories -> the folder of a run: rows, calls, traces, and the prompts in its journal.

    done = await import_run([Path("results.json")], Path("results/local/mine"))

Each trajectory is written as it is read. Tokens that weren't recorded are counted; what else is missing stays null.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate, islice, pairwise, starmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from anyio import to_thread

from rewoo_bench.calls.meter import Call, content_of
from rewoo_bench.errors import DataError
from rewoo_bench.evaluation.folder import RunFolder, open_run, remove_run, taken, trace
from rewoo_bench.evaluation.resume import command_line, environment, new_run_id, now
from rewoo_bench.events import Place
from rewoo_bench.imports.formats import FAULTS, FORMATS, NO_FIELDS, Fields, Found, read_files
from rewoo_bench.imports.lacks import lacks_arguments, lacks_of
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, Times, ToolUse, Turn, are_steps, turns_of
from rewoo_bench.imports.record import known as known_fields
from rewoo_bench.runs.columns import call_rows, question_row
from rewoo_bench.runs.folder import JOURNAL_FILE
from rewoo_bench.runs.journal.database import compact
from rewoo_bench.runs.journal.records import (
    CallKey,
    CallRecord,
    RecordedPrompt,
    TaskKey,
    as_bytes,
    call_fields,
    numbers,
    recorded_prompt,
)
from rewoo_bench.runs.journal.tables import tables_of
from rewoo_bench.runs.manifest import manifest_of, write_manifest
from rewoo_bench.text.model_output import excerpt
from rewoo_bench.text.prompts import Prompts, folded
from rewoo_bench.text.tokens import TOKENIZER, PromptParts, count_call, count_tokens, prompt_parts_of
from rewoo_bench.types import CallCost, Message, Request, Step, StopReason, Trajectory, Usage, UsageSource

_LEAST_OF_ALL = 0.7
"""Of the tokens that are counted for all calls: fewer were recorded of one."""
_TICK_S = 1e-9  # between calls whose times weren't recorded; all of them are in the first second of 1970
_MADE_UP_UNTIL = 1.0  # in seconds since 1970
_NO_REQUEST = b""  # nobody asks for these records by their requests


@dataclass
class Imported:
    """What an import did. `lacks` counts trajectories by `MISSING`, and calls of `NOT_JSON`."""

    folder: Path
    rows: int = 0
    faults: list[str] = field(default_factory=list)
    lacks: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    models: dict[str, None] = field(default_factory=dict)
    """Those of the rows, by their first calls that say it: `unknown` where none is named."""
    unread: Counter[str] = field(default_factory=Counter)
    """Texts that the readers left out, by the place of their field in a record."""
    copies: int = 0
    """Trajectories that were left out, since an earlier file has them, too."""

    @property
    def unreadable(self) -> int:
        return len(self.faults)


@dataclass(frozen=True)
class ImportChoices:
    """What the user says of the files. `dataset` and `agent` are names for the tables."""

    format: str | None = None
    dataset: str | None = None
    agent: str | None = None
    model: str | None = None
    """The model of calls that don't say theirs."""
    fields: Fields = NO_FIELDS


async def import_run(
    paths: Sequence[Path],
    out: Path,
    choices: ImportChoices = ImportChoices(),
    on_trajectory: Callable[[], object] = lambda: None,
) -> Imported:
    """Writes the run. Raises `UsageError` for a wrong folder or format, and `DataError` where nothing can be read."""
    done = Imported(out)
    names = dict.fromkeys(path.name.partition(".")[0] for path in paths)
    writer = _Writer(done, choices, choices.dataset or "+".join(names)[:60] or "imported")
    with taken(out, is_new=True):
        try:
            async with open_run(out, {"run_id": writer.run_id}) as opened:
                for found in read_files(paths, choices.format, choices.fields):
                    if await writer.add(opened, found):
                        on_trajectory()
                if done.rows:
                    opened = replace(opened, shared={"run_id": writer.run_id, "model": writer.main_model})
                    await opened.export(writer.keys)
            await to_thread.run_sync(compact, out / JOURNAL_FILE)
            if not done.rows:
                fault = done.faults[0] if done.faults else f"no trajectory in {', '.join(path.name for path in paths)}"
                raise DataError(f"nothing could be read: {fault}")
            write_manifest(out, manifest_of(writer.facts(paths)))
        except BaseException as error:
            remove_run(out)  # so that the same command can be given again
            if isinstance(error, DataError) and not done.rows:
                known = ", ".join(FORMATS)
                known = f"files are JSON or JSON lines, also compressed by gzip, in the formats {known}"
                raise DataError(f"{error}; {known}") from None
            raise
    return done


_Event = ModelCall | ToolUse | Turn


class _Writer:
    """Writes trajectories, and remembers what the manifest says of all of them."""

    def __init__(self, done: Imported, choices: ImportChoices, dataset: str) -> None:
        self.run_id = new_run_id(["import"])
        self.keys: list[TaskKey] = []
        self._done = done
        self._choices = choices
        self._dataset = dataset
        self._started = now()
        self._trials: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._calls_of: Counter[str] = Counter()  # by model
        self._clock = 0.0

    @property
    def main_model(self) -> str:
        """The model of most calls."""
        return next((name for name, _ in self._calls_of.most_common(1)), "unknown")

    def facts(self, paths: Sequence[Path]) -> dict[str, Any]:
        """Those of the manifest."""
        done, tasks = self._done, {key.example_id for key in self.keys}
        agents = list(dict.fromkeys(key.architecture for key in self.keys))
        trials = 1 + max(key.trial for key in self.keys)
        dataset = {"name": self._dataset, "format": "imported", "scoring": "recorded", "examples": len(tasks)}
        return {
            "run_id": self.run_id,
            "status": "done",
            "started_at": self._started,
            "finished_at": now(),
            "command": command_line(),
            "options": {
                "architectures": agents, "dataset": self._dataset, "model": self.main_model, "trials": trials,
            },
            "dataset": dataset,
            "architectures": [{"name": agent, "runner": "recorded"} for agent in agents],
            "models": {"default": {"name": self.main_model}},
            "tokenizer": TOKENIZER,
            "environment": environment(),
            "rows": done.rows,
            "imported": {
                "files": [path.name for path in paths],
                "formats": dict(done.formats),
                "lacks": dict(done.lacks),
                "models": list(done.models),
                "unreadable": done.unreadable,
                "copies": done.copies,
                "unread": dict(done.unread.most_common()),
            },
        }  # fmt: skip

    async def add(self, opened: RunFolder, found: Found) -> bool:
        """Writes a trajectory into the journal, or notes why it can't be kept. Returns whether it was written."""
        done, fault, recorded = self._done, found.fault, found.trajectory
        done.copies += found.is_copy
        if recorded is not None:
            try:
                await self._add(opened, recorded)
            except FAULTS as error:  # a stranger's values
                why = f"{type(error).__name__}: {excerpt(error)}"
                fault = f"task {excerpt(recorded.task)}: it can't be kept: {why}"
        if fault:
            done.faults.append(fault)
        elif recorded is not None:
            done.rows += 1
            done.formats[found.format] += 1
            done.unread.update(found.unread)
        return recorded is not None and not fault

    async def _add(self, opened: RunFolder, recorded: RecordedTrajectory) -> None:
        recorded = _with_shares(_with_prompts(recorded))
        agent = self._choices.agent or recorded.agent or "agent"
        trial = self._trial(agent, recorded)
        key = TaskKey(agent, recorded.task, trial)
        events = [*self._timed([*_with_turns(_with_loop(recorded).events)])]
        steps, turns, made = _steps(events, recorded.question, self._choices.model or "")
        made.sort(key=lambda pair: pair[0].start)
        result = _result(key, recorded, steps, [call for call, _ in made])
        rows, traced = self._rows(result, recorded, [event for _, event in made]), self._traced(result, recorded, turns)
        tables_of([rows.decode()])  # raises for a value that a table can't hold
        for call, event in made:
            if isinstance(event, ModelCall):
                opened.journal.put_call(_model_record(key, call, event))
                self._calls_of.update([event.model] if event.model else ())
            else:
                opened.journal.put_call(_tool_record(key, call, event))
        self.keys.append(key)
        self._done.models[_model_of(result.calls)] = None
        self._done.lacks.update(lacks_of(recorded))
        await opened.journal.add_question(key, rows, traced, failed=False)

    def _rows(self, result: Any, recorded: RecordedTrajectory, events: Sequence[ModelCall | ToolUse]) -> bytes:
        """The rows of the question and of its calls, as JSON; `events` are those of the calls."""
        run = {"run_id": self.run_id, "dataset": self._dataset, "oracle": False}
        run |= dict.fromkeys(("model", "planner_model", "solver_model"), _model_of(result.calls))
        calls = call_rows(result, self.run_id)
        question = {**question_row(result, run), "exact_match": recorded.solved, "f1": recorded.f1}
        for row, event in zip(calls, events, strict=True):
            if event.times is None:
                row |= {"latency_s": None, "started_at": None, "waiting_s": None}
            else:
                seconds = event.times.end - event.times.start
                row |= {"latency_s": seconds, "started_at": datetime.fromtimestamp(event.times.start, UTC)}
            if isinstance(event, ModelCall) and not (event.usage and event.is_cached_known):
                row["cached_input_tokens"] = question["cached_input_tokens"] = None
        if recorded.usage is not None:
            question |= {**numbers(replace(recorded.usage, cache_write_1h_tokens=0)), "usage_source": "provider"}
            if not recorded.is_cached_known:
                question["cached_input_tokens"] = None
        return as_bytes({"question": question, "calls": calls})

    def _traced(self, result: Any, recorded: RecordedTrajectory, turns: Sequence[Mapping[str, Any]]) -> bytes:
        """The line of traces.jsonl, as JSON."""
        offered = {id(call.tools): call.tools for call in recorded.calls}.values()
        tools = {json.dumps(tool, sort_keys=True): tool for of_call in offered for tool in of_call}
        more = {"system": recorded.system, "turns": turns, "tools": list(tools.values())}
        return as_bytes({**trace(result, self.run_id), **more})

    def _trial(self, agent: str, recorded: RecordedTrajectory) -> int:
        """The recorded trial, or the next one that is free."""
        taken_ = self._trials[agent, recorded.task]
        trial = recorded.trial if recorded.trial is not None and recorded.trial not in taken_ else len(taken_)
        while trial in taken_:
            trial += 1
        taken_.add(trial)
        return trial

    def _timed(self, events: Sequence[_Event]) -> Iterator[tuple[_Event, Times]]:
        """Each event with times, made up where they weren't recorded: a user's turn has none.

        A tool's are those of the moment when the event before it ended. Where a model call has none, or nothing has,
        all of the trajectory's are made up in their order: no age of a prefix follows from them (journal/prefixes.py).
        """
        known = [event.times for event in events if not isinstance(event, Turn) and event.times]
        is_known = bool(known) and all(event.times for event in events if isinstance(event, ModelCall))
        moment = min((times.start for times in known), default=0.0)
        for event in events:
            if isinstance(event, Turn):
                yield event, Times(moment, moment)
                continue
            if is_known:
                times = event.times or Times(moment, moment)
            else:
                times = Times(self._clock, self._clock + _TICK_S)
                self._clock = times.end
            moment = times.end
            yield event, times


def _model_of(calls: Sequence[Call]) -> str:
    """The model of a trajectory's first call that says it."""
    return next((call.name for call in calls if call.kind == "model" and call.name), "unknown")


def _with_turns(events: Sequence[_Event]) -> Iterator[_Event]:
    """The events with the user's later turns, which formats of single calls have only in the prompts."""
    if any(isinstance(event, Turn) for event in events):
        yield from events
        return
    said: int | None = None
    for event in events:
        if isinstance(event, ModelCall) and event.messages and not event.agent:
            texts = folded(event.messages, "said", lambda many, message: many + (message.role == "user"), 0)
            if said is not None and event.messages[-1].role == "user" and texts > said:
                last = (message.content for message in reversed(event.messages) if message.role == "user")
                yield from map(Turn, [*islice(last, texts - said)][::-1])
            said = texts
        yield event


def _with_prompts(recorded: RecordedTrajectory) -> RecordedTrajectory:
    """The trajectory; what is known of a prompt holds for the next one that begins with it."""
    prompts = Prompts[Message]()
    return recorded.with_calls(
        lambda call: call if call.messages is None else replace(call, messages=prompts.of(call.messages))
    )


def _with_shares(recorded: RecordedTrajectory) -> RecordedTrajectory:
    """The trajectory; where tokens of the whole were recorded, each call has a share, by a tokenizer's count.

    Fewer than it counts for all calls are those of one call: programs write these beside a conversation, too.
    """
    if recorded.usage is None:
        return recorded
    parts = (prompt_parts_of(call.messages or (), recorded.question) for call in recorded.calls)
    counted = [_counted(call, own) for call, own in zip(recorded.calls, parts, strict=True)]
    if recorded.usage.input_tokens < _LEAST_OF_ALL * sum(each.input_tokens for each in counted):
        return replace(recorded, usage=None)
    given = _shares(recorded.usage.input_tokens, [each.input_tokens for each in counted])
    written = _shares(recorded.usage.output_tokens, [each.output_tokens for each in counted])
    shares = starmap(Usage, zip(given, _shares(recorded.usage.cached_input_tokens, given), written, strict=True))

    def with_share(call: ModelCall) -> ModelCall:
        return replace(call, usage=next(shares), is_estimated=True, is_cached_known=recorded.is_cached_known)

    return recorded.with_calls(with_share)


def _shares(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers with that sum, in proportion to the weights."""
    ends = [total * part // max(1, sum(weights)) for part in accumulate(weights)]
    ends[-1:] = [total] if ends else []
    return [end - begun for begun, end in pairwise([0, *ends])]


def _with_loop(recorded: RecordedTrajectory) -> RecordedTrajectory:
    """The trajectory; where each model call is inside a tool's, they are the agent's own."""
    if not all(call.role == "tool" for call in recorded.calls):
        return recorded
    return recorded.with_calls(lambda call: replace(call, role="agent"))


def _steps(
    events: Sequence[tuple[_Event, Times]], question: str, default_model: str
) -> tuple[list[Step], list[dict[str, Any]], list[tuple[Call, ModelCall | ToolUse]]]:
    """The steps of a trajectory, the user's turns with the number of steps before, and each call with its event."""
    steps, turns = list[Step](), list[dict[str, Any]]()
    made: list[tuple[Call, ModelCall | ToolUse]] = []
    thoughts: dict[int, str] = {}
    alone = [event for event, _ in events]
    told = zip(events, turns_of(alone), are_steps(alone), strict=True)
    for index, ((event, times), turn, is_step) in enumerate(told):
        if isinstance(event, Turn):
            turns.append({"before_step": len(steps), "text": event.text})
            continue
        place = Place(f"{event.agent}/turn {turn}" if event.agent else f"turn {turn}")
        if isinstance(event, ModelCall):
            event = replace(event, model=event.model or default_model)
            thoughts[turn] = event.reply
            made.append((_model_call(index, place, event, times, question), event))
            steps += [Step(str(turn), event.reply)] if is_step else []
        else:
            argument = "" if event.arguments is None else json.dumps(dict(event.arguments), ensure_ascii=False)
            made.append((_tool_call(index, place, event, times), event))
            if is_step:
                thought = thoughts.pop(turn, "")
                steps.append(Step(str(turn), thought, event.name, argument, event.result or "", event.failed))
    return steps, turns, made


def _result(key: TaskKey, recorded: RecordedTrajectory, steps: Sequence[Step], calls: Sequence[Call]) -> Any:
    """What a row and a trace are made of, as an `evaluation.folder.Result` is; what wasn't recorded is None."""
    whole = recorded.times if all(call.times for call in recorded.calls) else None
    latency_s = whole.end - whole.start if whole else None
    priced = [call.cost_usd for call in recorded.calls]
    cost_usd = sum(cost for cost in priced if cost is not None) if priced and None not in priced else None
    without = {"texts": recorded.is_without_texts, "arguments": lacks_arguments(recorded)}
    notes = {**recorded.notes, **{f"without_{name}": True for name, lacks in without.items() if lacks}}
    architecture = SimpleNamespace(name=key.architecture, parents=())
    return SimpleNamespace(
        task=SimpleNamespace(example=recorded.example, trial=key.trial, architecture=architecture),
        trajectory=Trajectory(recorded.answer, _stop_reason(recorded), tuple(steps), notes=notes),
        calls=calls,
        error=recorded.error,
        cost_usd=cost_usd if recorded.cost_usd is None else recorded.cost_usd,
        latency_s=latency_s,
        working_s=latency_s,
        started_at=datetime.fromtimestamp(whole.start, UTC) if whole else None,
        flags=(),
        exposed=recorded.attack and recorded.attack.exposed,
        attacked=recorded.attack and recorded.attack.succeeded,
        **dict.fromkeys(("score", "judged_correct", "startup_s", "answers_sha256", "traceback", "judge_error")),
    )


def _model_call(index: int, place: Place, event: ModelCall, times: Times, question: str) -> Call:
    parts = PromptParts() if event.messages is None else prompt_parts_of(event.messages, question)
    usage = event.usage or _counted(event, parts)
    reason = event.finish_reason if isinstance(event.finish_reason, str) else None
    counted_by: UsageSource = (
        "estimated" if event.is_counted else "inconsistent" if event.is_inconsistent else "provider"
    )
    cost = CallCost(billed=usage, cost_usd=event.cost_usd, usage_source=counted_by)
    return Call(
        index, "model", event.model or "unknown", event.role, place,
        "error" if event.error else "ok" if event.reply or event.tool_calls else "empty",
        *times, datetime.fromtimestamp(times.start, UTC), usage, reason, cost,
        parts, event.thoughts,
        content=content_of(event.reply, [(each.name, dict(each.arguments)) for each in event.tool_calls]),
    )  # fmt: skip


def _counted(event: ModelCall, parts: PromptParts) -> Usage:
    """The tokens of a call by the pinned tokenizer, those of its prompt by parts; 0 for one that wasn't recorded."""
    prompt = sum(parts)
    if event.messages is not None:
        prompt += sum(count_tokens(json.dumps(tool)) for tool in event.tools)
    reply = count_tokens(event.reply) + sum(count_call(call.name, call.arguments) for call in event.tool_calls)
    return Usage(input_tokens=prompt, output_tokens=reply)


def _tool_call(index: int, place: Place, event: ToolUse, times: Times) -> Call:
    return Call(
        index, "tool", event.name, "tool", place,
        "error" if event.failed else "empty" if event.result == "" else "ok",
        *times, datetime.fromtimestamp(times.start, UTC),
        content=content_of(event.name, event.arguments and dict(event.arguments), event.result),
    )  # fmt: skip


def _model_record(task: TaskKey, call: Call, event: ModelCall) -> CallRecord:
    """The call as the journal has it; without a recorded prompt nothing is known of what calls share.

    Where a cache has to be asked for, it is taken to be asked for as agents do: after the instructions, and at the end.
    """
    request = Request(event.messages or (), call.role)
    prompt = recorded_prompt(request)
    if event.tools:
        prompt = RecordedPrompt(prompt.last, prompt.form + json.dumps({"tools": list(event.tools)}))
    # Made-up times are in the order of the records.
    times = {"sent_at": call.start, "ended_at": call.end} if call.end > _MADE_UP_UNTIL else {}
    receipt = known_fields({"cost_usd": event.cost_usd, **times})
    answer: dict[str, Any] = {
        "text": event.reply,
        "usage": {name: tokens for name, tokens in numbers(call.usage).items() if tokens},
        **({"finish_reason": event.finish_reason} if event.finish_reason else {}),
        **({"tool_calls": [call_fields(each) for each in event.tool_calls]} if event.tool_calls else {}),
        "receipt": {**receipt, "cache_marks": _marks(request.messages)},
    }
    key = CallKey(call.place.name, "model", call.role, _NO_REQUEST, call.index)
    status: Literal["ok", "error"] = "error" if event.error or event.messages is None else "ok"
    return CallRecord(task, key, status, prompt, answer, call.usage.total_tokens, event.cost_usd)


def _marks(messages: Sequence[Message]) -> list[int]:
    """Positions of the messages at which prefixes end: the last instructions, and the end of a prompt with a reply."""

    def with_message(before: tuple[int, int, bool], message: Message) -> tuple[int, int, bool]:
        position, end, has_reply = before
        if message.role == "system" and message.content:
            return position + 1, position, False
        return position + 1, end, has_reply or message.role == "assistant"

    length, end, has_reply = folded(messages, "marks", with_message, (0, -1, False))
    return [*([end] if end >= 0 else []), *([length - 1] if has_reply and messages[-1].content else [])]


def _tool_record(task: TaskKey, call: Call, event: ToolUse) -> CallRecord:
    request = json.dumps(event.arguments)
    result = {"error": event.result or "failed"} if event.failed else {"text": event.result}
    key = CallKey(call.place.name, "tool", event.name, _NO_REQUEST, call.index)
    return CallRecord(task, key, "ok", RecordedPrompt(None, request), {**result, "latency_s": call.latency_s})


def _stop_reason(recorded: RecordedTrajectory) -> StopReason:
    if recorded.stop_reason is not None:
        return recorded.stop_reason
    if recorded.error:
        return "agent_failed"
    return "answered" if recorded.answer else "empty_answer"
