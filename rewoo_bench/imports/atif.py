"""ATIF, the Agent Trajectory Interchange Format of Harbor (schema 1.0 to 1.7).

    {"schema_version": "ATIF-v1.7", "agent": {...}, "steps": [{"step_id": 1, "source": "user", "message": "2 + 2?"}]}

A step of the source `agent` is a model call with its tool calls and their results; one with `llm_call_count` 0 has tool
calls alone. ATIF records no prompts: the prompt of a call is rebuilt from the steps before it. Sub-agents' calls count
for the trajectory that refers to them, also where they stand in a file of their own. A step's timestamp alone is no
duration, so calls have no times.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewoo_bench.imports.messages import text_of, tool_call
from rewoo_bench.imports.record import (
    ModelCall,
    RecordedTrajectory,
    ToolUse,
    Turn,
    Unreadable,
    as_verdict,
    count,
    first_of,
    known,
    number,
    object_at,
    objects_at,
)
from rewoo_bench.system.files import is_file
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.model_output import as_object
from rewoo_bench.text.prompts import Prompt
from rewoo_bench.text.results import says_error
from rewoo_bench.types import Message, Usage

_CONTINUED = "continued_trajectory_ref"
_HARBOR = "harbor"
"""Key of a record that is read, with what Harbor says of its task."""
_LARGEST = 64 * 2**20  # bytes of a file that a trajectory refers to
_REFERENCE = re.compile(rb'"(?:trajectory_path|continued_trajectory_ref)"\s*:\s*"((?:[^"\\]|\\.)*)"')


def is_atif(record: Any) -> bool:
    """Whether a record is a trajectory in ATIF."""
    is_named = isinstance(record, Mapping) and str(record.get("schema_version")).startswith("ATIF-v1.")
    return is_named and "agent" in record


def inner_files(files: Sequence[Path]) -> set[Path]:
    """Those of the files that others refer to: their trajectories count in these."""
    found = set[Path]()
    for file in files:
        found |= {_target(name.decode("utf-8", "replace"), file) for name in _REFERENCE.findall(_content(file))} - {
            file
        }
    return found


def with_files(record: Any, path: Path) -> Any:
    """The trajectory with those that it refers to in other files, and with what Harbor says of its task.

    References become the whole paths of `files`.
    """
    files: dict[str, Any] = {}
    waiting = [(record, path)]
    while waiting:
        one, at = waiting.pop()
        for owner, name in _references(one):
            target = _target(str(owner[name]), at)
            owner[name] = str(target)
            if owner[name] not in files and target != path:
                found = _json(target)
                files[owner[name]] = found if is_atif(found) else {}
                waiting.append((files[owner[name]], target))
    result = _json(path.parent.parent / "result.json")  # of a trial: TRIAL/agent/trajectory.json
    rewards = object_at(object_at(result, "verifier_result"), "rewards")
    harbor = {
        "task": result.get("task_name"),
        "reward": rewards.get("reward", next(iter(rewards.values()), None)),
        "error": object_at(result, "exception_info").get("exception_type"),
    }
    return {**record, "files": files, _HARBOR: known(harbor)}


def _target(reference: str, file: Path) -> Path:
    """The file that another refers to: where it says, in the folder of that one, else one of its name beside it."""
    named = Path(os.path.normpath(file.parent / reference))
    return named if named.is_relative_to(file.parent) and is_file(named) else file.parent / named.name


def _content(file: Path) -> bytes:
    """The bytes of a file; none of what is no file, or a very large one."""
    return file.read_bytes() if is_file(file) and file.stat().st_size <= _LARGEST else b""


def _json(file: Path) -> Mapping[str, Any]:
    """The object in a file; an empty one where there is none."""
    with suppress(ValueError):
        return as_object(load_json(_content(file)))
    return {}


def _references(record: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of a trajectory, and of the sub-agents in it, that name another file, and the field that does."""
    if record.get(_CONTINUED):
        yield record, _CONTINUED
    for step in objects_at(record, "steps"):
        yield from ((ref, "trajectory_path") for ref in _sub_agents(step) if ref.get("trajectory_path"))
    for each in objects_at(record, "subagent_trajectories"):
        yield from _references(each)


def _sub_agents(step: Any) -> Iterator[dict[str, Any]]:
    """The references to sub-agents in a step's results."""
    for result in objects_at(object_at(step, "observation"), "results"):
        yield from objects_at(result, "subagent_trajectory_ref")


def read_atif(record: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectory of a document. Raises `Unreadable`."""
    reader = _Reader(object_at(record, "files"))
    reader.read(record, "")
    extra, harbor = object_at(record, "extra"), object_at(record, _HARBOR)
    agent = record["agent"]
    metrics = object_at(record, "final_metrics")
    calls = [event for event in reader.events if isinstance(event, ModelCall)]
    priced = [call.cost_usd for call in calls]
    named = first_of({**record, **harbor, **extra}, ("task_id", "task", "session_id", "trajectory_id"))
    found = RecordedTrajectory(
        task=default_task if named is None else str(named),
        question=reader.question,
        events=reader.events,
        agent=str(agent.get("name") or "") if isinstance(agent, Mapping) else str(agent),
        system=reader.system,
        answer=reader.answer,
        solved=as_verdict(harbor.get("reward")),
        error=str(harbor["error"]) if harbor.get("error") else None,
        cost_usd=number(metrics.get("total_cost_usd")) if None in priced or not priced else None,
        usage=None if any(call.usage for call in calls) else _total(metrics),
        is_cached_known=number(metrics.get("total_cached_tokens")) is not None,
        notes={"merged_calls": reader.merged} if reader.merged else {},
    )
    yield found if reader.names_cached else found.with_calls(lambda call: replace(call, is_cached_known=False))


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
        self._read: set[int] = set()

    def read(self, record: Any, agent: str) -> None:
        """Adds a trajectory with those that continue it; `agent` is the sub-agent's name, empty for the main one.

        Raises `Unreadable`.
        """
        about = object_at(record, "agent")
        tools = tuple(objects_at(about, "tool_definitions"))
        embedded: list[Any] = []
        prompt = Prompt[Message]()
        for position, step in enumerate(self._steps(record, embedded)):
            source, text = step.get("source"), text_of(step.get("message"))
            if source == "agent":
                prompt = self._agent_step(step, text, prompt, str(about.get("model_name") or ""), tools, agent)
            elif source in ("user", "system"):
                prompt = prompt.with_message(Message(source, text))
            else:
                raise Unreadable(f"step {position + 1} has the source {source!r:.40}, expected user, agent or system")
            if source == "system" and not agent:
                self.system += ("\n\n" if self.system else "") + text
            elif source == "user" and not agent and not self.question:
                self.question = text
            elif source == "user" and not agent:
                self.events.append(Turn(text))
            for ref in _sub_agents(step):
                self._tools_around += 1
                self._sub_agent(self._found(ref, embedded))
                self._tools_around -= 1
        for each in embedded:
            self._sub_agent(each)

    def _steps(self, record: Any, embedded: list[Any]) -> Iterator[Mapping[str, Any]]:
        """The steps of a trajectory and the new ones of those that continue it, whose sub-agents are added."""
        is_first = True
        while record and id(record) not in self._read:
            self._read.add(id(record))
            embedded += objects_at(record, "subagent_trajectories")
            steps = record.get("steps")
            if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
                raise Unreadable("steps isn't a list of objects")
            yield from (step for step in steps if is_first or not step.get("is_copied_context"))
            record, is_first = self._files.get(str(record.get(_CONTINUED))), False

    def _agent_step(
        self, step: Mapping[str, Any], text: str, prompt: Prompt[Message], model: str, tools: Sequence[Any], agent: str
    ) -> Prompt[Message]:
        """Adds what the agent did. Returns the prompt of its next call.

        `model` is that of a step which names none.
        """
        metrics = object_at(step, "metrics")
        calls = [
            tool_call(each.get("tool_call_id"), each.get("function_name"), each.get("arguments"))
            for each in objects_at(step, "tool_calls")
        ]
        self.names_cached |= number(metrics.get("cached_tokens")) is not None
        made = number(step.get("llm_call_count"))
        if made != 0:
            self.merged += int(made) if made is not None and made > 1 else 0
            self.events.append(
                ModelCall(
                    prompt,
                    text,
                    calls,
                    _usage(metrics),
                    str(step.get("model_name") or model),
                    tools,
                    text_of(step.get("reasoning_content")),
                    cost_usd=number(metrics.get("cost_usd")),
                    agent=agent,
                    role="tool" if self._tools_around else "agent",
                )
            )
        prompt = prompt.with_message(Message("assistant", text, tuple(calls)))
        if not agent:
            self.answer = text or self.answer
        results = objects_at(object_at(step, "observation"), "results")
        for call, raw in zip(calls, objects_at(step, "tool_calls"), strict=True):
            mine = next((each for each in results if each.get("source_call_id") == raw.get("tool_call_id")), None)
            if mine is None:  # results without ids belong to the calls in their order
                mine = next((each for each in results if each.get("source_call_id") is None), None)
            results = [each for each in results if each is not mine]
            content = None if mine is None or mine.get("content") is None else text_of(mine["content"])
            failed = content is not None and says_error(content)
            arguments = call.arguments if raw.get("arguments") is not None else None
            self.events.append(ToolUse(call.name, arguments, content, failed, agent=agent, call_id=call.id))
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
        if record and id(record) not in self._read:
            about = record.get("agent")
            name = about.get("name") if isinstance(about, Mapping) else about
            self.read(record, str(name or record.get("trajectory_id") or "sub-agent"))


def _total(metrics: Mapping[str, Any]) -> Usage | None:
    """Tokens of the whole trajectory, which is all that some of Harbor's agents write; None where there are none."""
    given, cached, written = (count(metrics.get(f"total_{name}_tokens")) for name in ("prompt", "cached", "completion"))
    return Usage(given, min(cached, given), written) if given or written else None


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
