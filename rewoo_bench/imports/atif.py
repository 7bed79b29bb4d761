"""ATIF, the Agent Trajectory Interchange Format of Harbor, which NeMo Agent Toolkit writes, too (schema 1.0 to 1.7).

    {"schema_version": "ATIF-v1.7", "agent": {...}, "steps": [{"step_id": 1, "source": "user", "message": "2 + 2?"}]}

A step of the source `agent` is a model call with its tool calls and their results; one with `llm_call_count` 0 has tool
calls alone. ATIF records no prompts: the prompt of a call is rebuilt from the steps before it. Sub-agents' calls count
for the trajectory that refers to them, also where they stand in a file of their own. NeMo puts a trajectory into a
sample of its data set, and means other things by its steps: nemo.py.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

from rewoo_bench.imports.messages import as_verdict, text_of, tool_call
from rewoo_bench.imports.nemo import as_specified, is_nemo
from rewoo_bench.imports.record import (
    ModelCall,
    RecordedTrajectory,
    Times,
    ToolUse,
    Turn,
    Unreadable,
    as_time,
    count,
    known,
    number,
    object_at,
    objects_at,
    role_of,
    share,
    times_of,
    turns_of,
)
from rewoo_bench.system.files import is_file
from rewoo_bench.text.prompts import Prompt
from rewoo_bench.text.results import says_error
from rewoo_bench.types import Message, StopReason, Usage

VERSION = "ATIF-v1.7"
_OURS = "rewoo_bench"
"""Key of `extra` that holds what ATIF has no field for."""
_DEEPEST = 20  # levels of sub-agents
_ROLES = ("system", "user", "assistant", "tool")
_LARGEST = 64 * 2**20  # bytes of the files that a trajectory refers to
_REFERENCE = re.compile(rb'"(?:trajectory_path|continued_trajectory_ref)"\s*:\s*"((?:[^"\\]|\\.)*)"')


def is_atif(record: Any) -> bool:
    """Whether a record is a trajectory in ATIF, or a sample of NeMo with one."""
    found = record.get("trajectory", record) if isinstance(record, Mapping) else None
    return isinstance(found, Mapping) and str(found.get("schema_version")).startswith("ATIF-v1.") and "agent" in found


def with_files(record: Any, path: Path, folder: Path) -> Any:
    """The trajectory with those that it refers to in other files, and with what Harbor says of its task.

    None for a trajectory that another file refers to, in `folder`, which the user gave: it counts in that one.
    """
    path, folder = (Path(os.path.normpath(each.absolute())) for each in (path, folder))
    above = [each for each in path.parents if each.is_relative_to(folder)]
    if any(path in _referred(each, each.stat().st_mtime_ns) for each in above):
        return None
    if not isinstance(record.get("steps"), list):
        return record  # its reader says what is wrong
    others = _Others(path)
    waiting = [whole := others.continued(_located(record, path), path)]
    files: dict[str, Any] = {}
    while waiting:
        for name in [ref["trajectory_path"] for ref in _references_in(waiting.pop()) if ref.get("trajectory_path")]:
            if (found := others.read(Path(name))) is not None:
                waiting.append(others.continued(found, Path(name)))
                files[name] = waiting[-1]
    return whole | {"files": files, _OURS: _of_harbor(path)}


@lru_cache(maxsize=8)
def _referred(folder: Path, _changed: int) -> frozenset[Path]:
    """The files that others right in a folder refer to; remembered until it changes."""
    found = set[Path]()
    for file in folder.glob("*.json"):
        names = _REFERENCE.findall(_content(file, _LARGEST))
        found |= {_target(name.decode("utf-8", "replace"), file) for name in names} - {file}
    return frozenset(found)


def _target(reference: str, file: Path) -> Path:
    """The file that another refers to: where it says, in the folder of that one, else one of its name beside it."""
    named = Path(os.path.normpath(file.parent / reference))
    return named if named.is_relative_to(file.parent) and is_file(named) else file.parent / named.name


def _content(file: Path, most: int) -> bytes:
    """The bytes of a file; none of what is no file, can't be read, or has more than `most`."""
    try:
        return file.read_bytes() if file.is_file() and file.stat().st_size <= most else b""
    except OSError:
        return b""


class _Others:
    """The trajectories in other files, each read once, and of a bounded size together."""

    def __init__(self, path: Path) -> None:
        self._seen = {path}
        self._left = _LARGEST

    def read(self, path: Path) -> Mapping[str, Any] | None:
        """The trajectory in a file; None where there is none, and where it was read before."""
        if path in self._seen:
            return None
        self._seen.add(path)
        content = _content(path, self._left)
        self._left -= len(content)
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            return None
        return _located(found, path) if is_atif(found) and isinstance(found.get("steps"), list) else None

    def continued(self, record: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """The trajectory with the new steps of those that continue it."""
        steps, embedded = list(record["steps"]), objects_at(record, "subagent_trajectories")
        following = record
        while name := following.get("continued_trajectory_ref"):
            path = _target(str(name), path)
            if (found := self.read(path)) is None:
                break
            following = found
            steps += [
                each for each in found["steps"] if not (isinstance(each, Mapping) and each.get("is_copied_context"))
            ]
            embedded += objects_at(found, "subagent_trajectories")
        return {**record, "steps": steps, **({"subagent_trajectories": embedded} if embedded else {})}


def _located(record: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The trajectory of a file, with the whole paths of the files that it refers to."""
    for ref in _references_in(record):
        if ref.get("trajectory_path"):
            ref["trajectory_path"] = str(_target(str(ref["trajectory_path"]), path))
    return record


def _of_harbor(path: Path) -> dict[str, Any]:
    """Task and reward of a trial's folder (`TRIAL/result.json`, `TRIAL/agent/trajectory.json`); empty elsewhere."""
    file = path.parent.parent / "result.json"
    try:
        result = json.loads(_content(file, _LARGEST))
        rewards = (result.get("verifier_result") or {}).get("rewards") or {}
        error = (result.get("exception_info") or {}).get("exception_type")
        reward = rewards.get("reward", next(iter(rewards.values()), None))
        return known({"task": result.get("task_name"), "reward": reward, "error": error})
    except (ValueError, AttributeError, RecursionError):
        return {}


def _references_in(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Those of a trajectory, and of the sub-agents in it."""
    for step in objects_at(record, "steps"):
        yield from _references(step)
    for each in objects_at(record, "subagent_trajectories"):
        yield from _references_in(each)


def _references(step: Any) -> Iterator[dict[str, Any]]:
    """The sub-agents that a step's results refer to."""
    for result in objects_at(object_at(step, "observation"), "results"):
        yield from objects_at(result, "subagent_trajectory_ref")


def read_atif(record: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectory of a document. Raises `Unreadable`."""
    sample: Mapping[str, Any] = {}
    if "trajectory" in record:
        sample, record = record, record["trajectory"]
    reader = _Reader(object_at(record, "files"))
    reader.read(as_specified(record) if is_nemo(record) else record, "")
    extra, ours = object_at(record, "extra"), _extra(record, _OURS)
    harbor = record.get(_OURS) or {}
    agent = record["agent"]
    metrics = object_at(record, "final_metrics")
    calls = [event for event in reader.events if isinstance(event, ModelCall)]
    priced = [call.cost_usd for call in calls]
    task = next(
        (
            str(each)
            for each in (ours.get("task"), extra.get("task_id"), sample.get("item_id"), harbor.get("task"),
                         record.get("session_id"), record.get("trajectory_id"))
            if each is not None
        ),
        default_task,
    )  # fmt: skip
    stop_reason = ours.get("stop_reason")
    marked = [_extra(step, _OURS).get("without_texts") for step in record["steps"] if step.get("source") == "agent"]
    is_marked = not reader.question and any(marked) and not any(call.reply for call in calls)
    trial = number(ours.get("trial"))
    expected = sample.get("expected_output_obj")
    answers = ours.get("answers", None if expected in (None, "") else [expected])
    found = RecordedTrajectory(
        task=task,
        question=reader.question,
        events=reader.events,
        agent=str(agent.get("name") or "") if isinstance(agent, Mapping) else str(agent),
        trial=int(trial) if trial is not None and trial >= 0 else None,
        system=reader.system,
        answer=reader.answer if "answer" not in ours else None if ours["answer"] is None else text_of(ours["answer"]),
        answers=[text_of(each) for each in answers] if isinstance(answers, list) else [],
        solved=as_verdict(ours.get("solved", harbor.get("reward"))),
        error=str(error) if (error := ours.get("error", harbor.get("error"))) else None,
        stop_reason=stop_reason if stop_reason in get_args(StopReason) else None,
        cost_usd=number(metrics.get("total_cost_usd")) if None in priced or not priced else None,
        is_without_texts=bool(ours.get("without_texts")) or is_marked,
        f1=share(ours.get("f1")),
        usage=None if any(call.usage for call in calls) else _total(metrics),
        is_cached_known=number(metrics.get("total_cached_tokens")) is not None,
        notes={"merged_calls": reader.merged} if reader.merged else {},
    )
    yield found if reader.names_cached else found.with_calls(lambda call: replace(call, is_cached_known=False))


_Prompts = defaultdict[str, Prompt[Message]]


class _Reader:
    """Collects the events of a trajectory and of its sub-agents; `files` are those of other files, by their paths."""

    def __init__(self, files: Mapping[str, Any]) -> None:
        self.events: list[ModelCall | ToolUse | Turn] = []
        self.question = ""
        self.system = ""
        self.answer: str | None = None
        self.merged = 0
        """Calls that were recorded as one step with others."""
        self.names_cached = False
        """Whether a step has its cached tokens; others without them then have none."""
        self._files = files
        self._tools_around = 0  # whose calls the trajectory that is being read is inside
        self._open: list[int] = []  # the trajectories that are being read
        self._read: set[int] = set()

    def read(self, record: Any, agent: str) -> None:
        """Adds a trajectory; `agent` is the name of the sub-agent, empty for the main one. Raises `Unreadable`."""
        steps = record.get("steps")
        if not isinstance(steps, list):
            raise Unreadable(f"steps is {type(steps).__name__}, expected a list")
        if len(self._open) >= _DEEPEST or id(record) in self._open:
            raise Unreadable(f"sub-agents are nested deeper than {_DEEPEST} levels")
        self._open.append(id(record))
        self._read.add(id(record))
        about = object_at(record, "agent")
        tools = tuple(objects_at(about, "tool_definitions"))
        embedded = objects_at(record, "subagent_trajectories")
        prompts: _Prompts = defaultdict(Prompt)
        for position, step in enumerate(steps):
            if not isinstance(step, Mapping):
                raise Unreadable(f"step {position + 1} is {type(step).__name__}, expected an object")
            if step.get("source") not in ("user", "system", "agent"):
                source = f"{step.get('source')!r:.40}"
                raise Unreadable(f"step {position + 1} has the source {source}, expected user, agent or system")
            self.add(step, prompts, str(about.get("model_name") or ""), tools, agent)
            for ref in _references(step):
                self._tools_around += 1
                self._sub_agent(self._found(ref, embedded))
                self._tools_around -= 1
        for each in embedded:
            if id(each) not in self._read:
                self._sub_agent(each)
        self._open.pop()

    def _said(self, source: str, text: str, agent: str) -> None:
        if agent:
            return
        if source == "system":
            self.system += ("\n\n" if self.system else "") + text
        elif not self.question:
            self.question = text
        else:
            self.events.append(Turn(text))

    def add(self, step: Mapping[str, Any], prompts: _Prompts, model: str, tools: Sequence[Any], agent: str) -> None:
        """Adds a step of a trajectory whose calls have these tools, and this model where they don't say theirs.

        `prompts` has the messages so far, of each agent of the trajectory; the main one's name is empty.
        """
        source, text = step.get("source"), text_of(step.get("message"))
        if source == "agent":
            name = str(_extra(step, _OURS).get("agent") or "")
            prompts[name] = self._agent_step(step, text, prompts[name], model, tools, agent)
        else:
            self._said(str(source), text, agent)
            prompts[""] = prompts[""].with_message(Message("user" if source == "user" else "system", text))

    def _agent_step(
        self, step: Mapping[str, Any], text: str, prompt: Prompt[Message], model: str, tools: Sequence[Any], agent: str
    ) -> Prompt[Message]:
        """Adds what the agent did. Returns the prompt of its next call."""
        metrics = object_at(step, "metrics")
        ours = _extra(step, _OURS)
        agent = str(ours.get("agent") or agent)
        calls = [
            tool_call(each.get("tool_call_id"), each.get("function_name"), each.get("arguments"))
            for each in objects_at(step, "tool_calls")
        ]
        self.names_cached |= number(metrics.get("cached_tokens")) is not None
        made, is_side = number(step.get("llm_call_count")), bool(ours.get("is_side_call"))
        sent = _sent(prompt, ours.get("prompt"))
        if made != 0:
            self.merged += int(made) if made is not None and made > 1 else 0
            self.events.append(
                ModelCall(
                    None if ours.get("without_texts") else sent,
                    text,
                    calls,
                    _usage(metrics),
                    str(step.get("model_name") or model),
                    _offered(tools, ours.get("tools")),
                    text_of(step.get("reasoning_content")),
                    text_of(ours.get("finish_reason")) or None,
                    number(metrics.get("cost_usd")),
                    _times(step),
                    text_of(ours.get("error")) or None,
                    agent,
                    bool(ours.get("is_estimated")),
                    not ours.get("without_cached"),
                    "tool" if self._tools_around else role_of(ours),
                )
            )
        if not is_side:
            prompt = sent.with_message(Message("assistant", text, tuple(calls)))
            if not agent:
                self.answer = text or self.answer
        results = objects_at(object_at(step, "observation"), "results")
        for call, raw in zip(calls, objects_at(step, "tool_calls"), strict=True):
            mine = next((each for each in results if each.get("source_call_id") == raw.get("tool_call_id")), None)
            if mine is None:  # results without ids belong to the calls in their order
                mine = next((each for each in results if each.get("source_call_id") is None), None)
            results = [each for each in results if each is not mine]
            content = None if mine is None or mine.get("content") is None else text_of(mine["content"])
            failed = bool(_extra(raw, _OURS).get("failed")) or (content is not None and says_error(content))
            is_known = raw.get("arguments") is not None and not _extra(raw, _OURS).get("without_arguments")
            arguments = call.arguments if is_known else None
            self.events.append(ToolUse(call.name, arguments, content, failed, _times(raw), agent, call.id))
            if not is_side:
                prompt = prompt.with_message(Message("tool", content or "", tool_call_id=call.id))
        for each in results:  # of actions that were no tool calls
            prompt = prompt.with_message(Message("user", text_of(each.get("content"))))
        return prompt

    def _found(self, ref: Mapping[str, Any], embedded: Sequence[Any]) -> Any:
        """The sub-agent's trajectory of a reference; None where it isn't there."""
        for name in ("trajectory_id", "session_id"):  # the second one until 1.6
            if (wanted := ref.get(name)) is not None:
                for each in embedded:
                    if each.get(name) == wanted:
                        return each
        return self._files.get(str(ref.get("trajectory_path")))

    def _sub_agent(self, record: Any) -> None:
        if record is None or (id(record) in self._read and id(record) not in self._open):
            return
        about = record.get("agent")
        name = about.get("name") if isinstance(about, Mapping) else about
        self.read(record, str(name or record.get("trajectory_id") or "sub-agent"))


def _total(metrics: Mapping[str, Any]) -> Usage | None:
    """Tokens of the whole trajectory, which is all that some of Harbor's agents write; None where there are none."""
    given, cached, written = (count(metrics.get(f"total_{name}_tokens")) for name in ("prompt", "cached", "completion"))
    return Usage(given, min(cached, given), written) if given or written else None


def _sent(prompt: Prompt[Message], ours: Any) -> Prompt[Message]:
    """The messages of a call: those so far, or as many of them as `ours` keeps, and others."""
    if not isinstance(ours, Mapping):
        return prompt
    prompt = prompt.beginning(count(ours.get("kept")))
    for each in objects_at(ours, "messages"):
        role: Any = each["role"] if each.get("role") in _ROLES else "user"
        calls = [
            tool_call(call.get("id"), call.get("name"), call.get("arguments"))
            for call in objects_at(each, "tool_calls")
        ]
        prompt = prompt.with_message(
            Message(role, text_of(each.get("content")), tuple(calls), each.get("tool_call_id"))
        )
    return prompt


def _offered(tools: Sequence[Any], ours: Any) -> Sequence[Any]:
    """The tools of a call: all, or those at the positions that `ours` has."""
    return [tools[at] for at in ours if at in range(len(tools))] if isinstance(ours, list) else tools


def _extra(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return object_at(object_at(part, "extra"), name)


def _times(part: Mapping[str, Any]) -> Times | None:
    """When a step or tool call began and ended, where NeMo's `invocation` says it: a timestamp alone is no duration."""
    invocation = _extra(part, "invocation")
    return times_of(as_time(invocation.get("start_timestamp")), as_time(invocation.get("end_timestamp")))


def _usage(metrics: Mapping[str, Any]) -> Usage | None:
    """Tokens of a step; `prompt_tokens` has the cached ones in it. None where neither side was recorded."""
    if number(metrics.get("prompt_tokens")) is None and number(metrics.get("completion_tokens")) is None:
        return None
    extra = object_at(metrics, "extra")
    given, output = count(metrics.get("prompt_tokens")), count(metrics.get("completion_tokens"))
    written = count(extra.get("cache_creation_input_tokens"))
    return Usage(
        given, min(given, count(metrics.get("cached_tokens"))), output,
        min(output, count(extra.get("reasoning_tokens"))), min(given, written),
    )  # fmt: skip


# The other way.


def as_atif(trajectory: RecordedTrajectory, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A trajectory as a document in ATIF. `facts`: run_id, agent, model and version.

    A tool call that the model asked for stands in the step of that call, and any other in a step of its own. A call
    that isn't the end of the conversation before it, such as a planner's, is marked as `is_side_call`.
    """
    steps: list[dict[str, Any]] = []
    if trajectory.system:
        steps.append({"source": "system", "message": trajectory.system})
    steps.append({"source": "user", "message": trajectory.question})
    asked: dict[int, tuple[dict[str, Any], list[dict[str, Any]]]] = {}  # by turn: step, and calls without their result
    tools = {_key(tool): tool for call in trajectory.calls for tool in call.tools if isinstance(tool, Mapping)}
    of_steps: dict[int, ModelCall] = {}
    for event, turn in zip(trajectory.events, turns_of(trajectory.events), strict=True):
        if isinstance(event, Turn):
            steps.append({"source": "user", "message": event.text})
        elif isinstance(event, ModelCall):
            of_steps[len(steps)] = event
            step, calls = _step(event, len(steps))
            steps.append(step)
            asked[turn] = step, list(calls)
        else:
            _add_use(event, asked.get(turn), steps)
    for number_, step in enumerate(steps, 1):
        step["step_id"] = number_
    _add_prompts(steps, of_steps, list(tools))
    ours = {
        "task": trajectory.task, "trial": trajectory.trial, "solved": trajectory.solved, "f1": trajectory.f1,
        "stop_reason": trajectory.stop_reason, "error": trajectory.error, "answers": list(trajectory.answers) or None,
        "without_texts": trajectory.is_without_texts or None,
    }  # fmt: skip
    usages = [call.usage for call in trajectory.calls if call.usage]
    return {
        "schema_version": VERSION,
        "session_id": facts["run_id"],
        "trajectory_id": f"{facts['agent']}/{trajectory.task}/{trajectory.trial or 0}",
        "agent": known(
            {
                "name": facts["agent"], "version": facts["version"], "model_name": facts["model"],
                "tool_definitions": list(tools.values()) or None,
            }
        ),
        "steps": steps,
        "final_metrics": known(
            {
                "total_prompt_tokens": sum(each.input_tokens for each in usages),
                "total_completion_tokens": sum(each.output_tokens for each in usages),
                "total_cached_tokens": sum(each.cached_input_tokens for each in usages),
                "total_cost_usd": trajectory.cost_usd,
                "total_steps": len(steps),
            }
        ),
        "extra": {_OURS: {**known(ours), "answer": trajectory.answer}},
    }  # fmt: skip


def _more(times: Times | None, ours: Mapping[str, Any]) -> dict[str, Any] | None:
    """The `extra` of a step or a tool call; None where there is nothing in it."""
    invocation = {"start_timestamp": times.start, "end_timestamp": times.end} if times else None
    return known({"invocation": invocation, _OURS: known(ours) or None}) or None


def _stamp(times: Times | None) -> str | None:
    return datetime.fromtimestamp(times.start, UTC).isoformat() if times else None


def _step(event: ModelCall, position: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The step of a model call, and the tool calls in it."""
    usage = event.usage or Usage()
    is_side = event.messages is not None and len(event.messages) < position and not event.tool_calls
    ours = {
        "finish_reason": event.finish_reason, "error": event.error, "agent": event.agent or None,
        "is_estimated": event.is_estimated or None, "without_texts": event.messages is None or None,
        "is_side_call": is_side or None, "without_cached": not event.is_cached_known or None,
        "role": event.role if event.role != "agent" else None,
    }  # fmt: skip
    calls = [
        {"tool_call_id": each.id or f"call_{position}_{place}", "function_name": each.name,
         "arguments": dict(each.arguments)}
        for place, each in enumerate(event.tool_calls)
    ]  # fmt: skip
    parts = {"reasoning_tokens": usage.reasoning_tokens, "cache_creation_input_tokens": usage.cache_write_tokens}
    step = {
        "timestamp": _stamp(event.times),
        "source": "agent",
        "model_name": event.model or None,
        "message": event.reply,
        "reasoning_content": event.thoughts or None,
        "tool_calls": calls or None,
        "metrics": known(
            {
                "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_input_tokens, "cost_usd": event.cost_usd,
                "extra": {name: value for name, value in parts.items() if value} or None,
            }
        ),
        "llm_call_count": 1,
        "extra": _more(event.times, ours),
    }  # fmt: skip
    return known(step), calls


def _key(tool: Any) -> str:
    return json.dumps(tool, sort_keys=True, default=str)


def _add_use(
    event: ToolUse, asked: tuple[dict[str, Any], list[dict[str, Any]]] | None, steps: list[dict[str, Any]]
) -> None:
    """Adds a tool's call and result to the step that asked for it, or as a step of its own."""
    step, waiting = asked or ({}, [])
    named = [call for call in waiting if call["function_name"] == event.name]
    arguments = dict(event.arguments or {})
    same = [call for call in named if call["arguments"] == arguments]
    by_id = [call for call in same if event.call_id and call["tool_call_id"] == event.call_id]
    call = next(iter(by_id or same), None)
    if call is None:
        id_ = f"call_{len(steps)}"
        call = {"tool_call_id": id_, "function_name": event.name, "arguments": arguments}
        ours = {"is_side_call": True, **({"agent": event.agent} if event.agent else {})}
        step = known({"timestamp": _stamp(event.times), "source": "agent", "message": ""})
        step |= {"tool_calls": [call], "llm_call_count": 0, "extra": {_OURS: ours}}
        steps.append(step)
    else:
        waiting.remove(call)
    ours = {"failed": event.failed or None, "without_arguments": event.arguments is None or None}
    if extra := _more(event.times, ours):
        call["extra"] = extra
    if event.result is not None:
        results = step.setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": call["tool_call_id"], "content": event.result})


def _add_prompts(steps: Sequence[dict[str, Any]], of_steps: Mapping[int, ModelCall], tools: Sequence[str]) -> None:
    """Adds to each step what differs from the prompt that its reader rebuilds, and from all tools, given as keys."""
    reader, prompts = _Reader({}), _Prompts(Prompt)
    for position, step in enumerate(steps):
        call = of_steps.get(position)
        if call is not None and call.messages is not None:
            ours: dict[str, Any] = {}
            rebuilt = prompts[call.agent]
            if rebuilt != list(call.messages):
                pairs = zip(rebuilt, call.messages, strict=False)
                kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
                ours["prompt"] = {"kept": kept, "messages": [_shown(each) for each in call.messages[kept:]]}
            offered = [tools.index(_key(tool)) for tool in call.tools if isinstance(tool, Mapping)]
            if offered != list(range(len(tools))):
                ours["tools"] = offered
            if ours:
                extra = step.setdefault("extra", {})
                extra[_OURS] = {**extra.get(_OURS, {}), **ours}
        reader.add(step, prompts, "", (), "")


def _shown(message: Message) -> dict[str, Any]:
    calls = [{"id": each.id, "name": each.name, "arguments": dict(each.arguments)} for each in message.tool_calls]
    return known(
        {
            "role": message.role, "content": message.content, "tool_calls": calls or None,
            "tool_call_id": message.tool_call_id,
        }
    )  # fmt: skip
