"""Trajectories of NeMo Agent Toolkit -> ATIF as its specification means it.

    as_specified({"schema_version": "ATIF-v1.7", "steps": [...]})

NeMo writes what ended, in that order, as one flat list: a step for each model call of any agent, and as the "tool
calls" of that step all that ended before the next one: tools, sub-agents, and nodes of the framework such as
`RunnableSequence`. A tool stands there twice, as the framework saw it, with its times, and as a function of NeMo. What
the model asked for is text at the end of its message. Here a step has the calls that its agent made, once, with their
times, and each sub-agent is a trajectory of its own. Checked with nvidia-nat-core 1.9.0.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any

from rewoo_bench.imports.record import Unreadable, known, object_at, objects_at

_ASKED = "\n\nTool calls: ["
"""Between a model's text and the calls that it asks for, which follow as a list in Python's notation."""


def is_nemo(document: Mapping[str, Any]) -> bool:
    """Whether NeMo wrote a trajectory: its steps say which function they belong to."""
    return any(
        "tool_ancestry" in extra or object_at(extra, "ancestry").get("function_id") == "root"
        for extra in (object_at(step, "extra") for step in document.get("steps") or ())
    )


def as_specified(document: Mapping[str, Any]) -> dict[str, Any]:
    """The trajectory with steps and sub-agents as ATIF means them. Raises `Unreadable` without any model call."""
    return _Document(document).specified()


class _Document:
    """A trajectory of NeMo while its steps are sorted by the agents that made them; the main agent's id is empty."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._steps = objects_at(document, "steps")
        self._parents: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for step in self._steps:
            extra = object_at(step, "extra")
            for ancestry in (object_at(extra, "ancestry"), *objects_at(extra, "tool_ancestry")):
                self._parents[str(ancestry.get("function_id"))] = str(ancestry.get("parent_id") or "root")
                self._names[str(ancestry.get("function_id"))] = str(ancestry.get("function_name"))
        self._parents = self._without_circles()
        self._callers = {_function(step) for step in self._steps if _is_model_call(step)}
        self._agents: dict[str, dict[str, Any]] = {"": {**document, "steps": []}}
        self._systems: dict[str, str] = {}
        self._seen_by_framework: list[tuple[str, Mapping[str, Any], Any, Any]] = []

    def specified(self) -> dict[str, Any]:
        if not self._callers:
            raise Unreadable("it has no model calls: NeMo records them only where nvidia-nat-profiler is installed")
        recorded = [(step, list(_calls(step))) for step in self._steps]
        for _, calls in recorded:
            for call, ancestry, result, invocation in calls:
                if not _is_function(call, ancestry):
                    agent = self._agent_of(str(ancestry.get("function_id")))
                    self._seen_by_framework.append((agent, call, result, invocation))
                    if call.get("function_name") == "SystemPrompt" and agent not in self._systems:
                        self._systems[agent] = _system_of(result)
        self._begin(self._agents[""], "")
        for step, calls in recorded:
            self._add_step(step)
            for call, ancestry, result, _ in calls:
                if _is_function(call, ancestry):
                    self._add_call(call, str(ancestry.get("function_id")), result)
        for agent, record in self._agents.items():
            for step in record["steps"]:
                self._add_times(agent, step)
        return self._agents[""]

    def _agent_of(self, function: str) -> str:
        """The innermost agent that a function is or is part of."""
        while not self._is_main(function) and function not in self._callers:
            function = self._parents[function]
        return "" if self._is_main(function) else function

    def _is_main(self, function: str) -> bool:
        return self._parents.get(function, "root") == "root"

    def _without_circles(self) -> dict[str, str]:
        """The parents; a function that would be its own ancestor is one of the main agent."""
        found: dict[str, str] = {}
        for function, parent in self._parents.items():
            seen, above = {function}, parent
            while above != "root" and above in found and above not in seen:
                seen.add(above)
                above = found[above]
            found[function] = "root" if above in seen else parent
        return found

    def _record(self, agent: str) -> dict[str, Any]:
        """The trajectory of an agent; of a sub-agent it is begun with what it was asked."""
        if agent not in self._agents:
            self._agents[agent] = {
                "trajectory_id": agent, "agent": {**object_at(self._agents[""], "agent"), "name": self._names[agent]},
                "steps": [{"source": "user", "message": self._asked_of(agent)}],
            }  # fmt: skip
            self._begin(self._agents[agent], agent)
            caller = self._record(self._agent_of(self._parents[agent]))
            caller["subagent_trajectories"] = [*(caller.get("subagent_trajectories") or ()), self._agents[agent]]
        return self._agents[agent]

    def _begin(self, record: dict[str, Any], agent: str) -> None:
        if system := self._systems.get(agent):
            record["steps"].insert(0, {"source": "system", "message": system})

    def _asked_of(self, agent: str) -> str:
        """What a sub-agent was called with: its only text, or all of it as JSON."""
        for step in self._steps:
            for call in objects_at(step, "tool_calls"):
                if call.get("tool_call_id") == f"call_{agent}":
                    given = _filled(call.get("arguments"))
                    texts = [value for value in given.values() if isinstance(value, str)]
                    return texts[0] if len(given) == len(texts) == 1 else json.dumps(given, default=str)
        return ""

    def _add_step(self, step: Mapping[str, Any]) -> None:
        if not _is_model_call(step):
            if step.get("source") != "agent" or not objects_at(step, "tool_calls"):
                self._agents[""]["steps"].append({**step, "llm_call_count": 0})  # a user's message, or the answer
            return
        text, asked = _split(str(step.get("message") or ""))
        calls = [
            {"tool_call_id": each.get("id"), "function_name": each.get("name"), "arguments": each.get("args")}
            for each in asked
        ]
        kept = {**step, "message": text, "tool_calls": calls, "observation": {"results": []}}
        self._record(self._agent_of(_function(step)))["steps"].append(kept)

    def _add_call(self, call: Mapping[str, Any], function: str, result: Any) -> None:
        """Adds a function's call and result to the step that asked for it, else to the last one of its agent.

        A function that another one calls, which is no agent, is a part of that one.
        """
        parent = self._parents[function]
        if not self._is_main(parent) and parent not in self._callers:
            return
        record = self._record(self._agent_of(parent))
        given = _filled(call.get("arguments"))
        for is_given in (True, False):  # the frameworks may fill arguments in
            for step in reversed(record["steps"]):
                done = {each["source_call_id"] for each in objects_at(object_at(step, "observation"), "results")}
                for asked in objects_at(step, "tool_calls"):
                    fits = asked["function_name"] == call.get("function_name") and (
                        not is_given or _filled(asked["arguments"]) == given
                    )
                    if fits and asked["tool_call_id"] not in done:
                        self._add_result(step, asked["tool_call_id"], function, result)
                        return
        if not record["steps"] or "observation" not in record["steps"][-1]:
            step = {"source": "agent", "message": "", "tool_calls": [], "llm_call_count": 0}
            record["steps"].append({**step, "observation": {"results": []}})
        record["steps"][-1]["tool_calls"].append({**call, "arguments": given})
        self._add_result(record["steps"][-1], call.get("tool_call_id"), function, result)

    def _add_result(self, step: Mapping[str, Any], call: Any, function: str, result: Any) -> None:
        found = {"source_call_id": call, "content": result}
        if function in self._callers:
            found["subagent_trajectory_ref"] = [{"trajectory_id": function}]
        step["observation"]["results"].append(found)

    def _add_times(self, agent: str, step: Mapping[str, Any]) -> None:
        """Adds the times of a step's calls as the framework saw them, and the results that no function gave."""
        results = objects_at(object_at(step, "observation"), "results")
        for call in objects_at(step, "tool_calls"):
            for seen in self._seen_by_framework:
                of, twin, result, invocation = seen
                named = (of, twin.get("function_name")) == (agent, call["function_name"])
                if named and _filled(twin.get("arguments")) == _filled(call["arguments"]):
                    self._seen_by_framework.remove(seen)
                    call["extra"] = {"invocation": invocation}
                    if not any(each["source_call_id"] == call["tool_call_id"] for each in results):
                        self._add_result(step, call["tool_call_id"], "", result)
                    break


def _is_model_call(step: Mapping[str, Any]) -> bool:
    return step.get("source") == "agent" and bool(step.get("model_name") or step.get("metrics"))


def _function(step: Mapping[str, Any]) -> str:
    return str(object_at(object_at(step, "extra"), "ancestry").get("function_id"))


def _is_function(call: Mapping[str, Any], ancestry: Mapping[str, Any]) -> bool:
    """Whether a record of a call is of a function of NeMo itself, not the framework's."""
    return call.get("tool_call_id") == f"call_{ancestry.get('function_id')}"


def _calls(step: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], Any, Any]]:
    """The records of calls in a step, each with its function, result and invocation."""
    extra, calls = object_at(step, "extra"), objects_at(step, "tool_calls")
    ancestries, invocations = objects_at(extra, "tool_ancestry"), objects_at(extra, "tool_invocations")
    results = {each.get("source_call_id"): each for each in objects_at(object_at(step, "observation"), "results")}
    for place, call in enumerate(calls):
        result = results.get(call.get("tool_call_id"), {}).get("content")
        yield (
            call, ancestries[place] if place < len(ancestries) else {},
            result, invocations[place] if place < len(invocations) else None,
        )  # fmt: skip


def _split(message: str) -> tuple[str, list[Mapping[str, Any]]]:
    """A model's text, and the calls that it asks for."""
    text, mark, calls = message.rpartition(_ASKED)
    try:
        asked = ast.literal_eval(f"[{calls}") if mark else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        asked = None
    return (text, [each for each in asked if isinstance(each, Mapping)]) if asked else (message, [])


def _system_of(messages: Any) -> str:
    """The system prompt of messages in Python's notation, as LangChain's node of that name gives them."""
    try:
        first = ast.literal_eval(str(messages))[0]
        return str(first["content"]) if first["type"] == "system" else ""
    except (ValueError, SyntaxError, LookupError, TypeError, MemoryError, RecursionError):
        return ""


def _filled(arguments: Any) -> dict[str, Any]:
    """Arguments without those that a framework left empty."""
    return known(arguments) if isinstance(arguments, dict) else {}
