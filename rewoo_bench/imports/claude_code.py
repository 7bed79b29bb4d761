"""Sessions of Claude Code, and what its SDK streams -> trajectories.

    ~/.claude/projects/PROJECT/SESSION.jsonl                        a line for each part of a reply, under `message`
    ~/.claude/projects/PROJECT/SESSION/subagents/agent-ID.jsonl     a sub-agent's, which name their session, too
    claude -p … --output-format stream-json                         the same with `session_id`, and a line `result`

A session is a trajectory. What its sub-agents did follows the tool's call that asked for them. After a compaction a
prompt begins anew; where the user went back to an earlier message, it goes on from there. A session that goes on with
another one begins with its lines: they are its prompt, and their replies count where they were given. Lines that are
neither a message nor the result are the program's own, and are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rewoo_bench.imports.messages import read_conversation, text_of
from rewoo_bench.imports.record import ModelCall, RecordedTrajectory, ToolUse, Turn, number, object_at, objects_at
from rewoo_bench.imports.replies import with_whole_replies

_Line = Mapping[str, Any]
_MESSAGES = ("user", "assistant")
_OWN = ("sessionId", "session_id", "leafUuid", "snapshot", "isSidechain")  # a line of another type has one of these
_HISTORY = "rewoo_bench_history"
_SYNTHETIC = "<synthetic>"  # the model of what the program itself says in a reply's place


def is_claude_code(record: Any) -> bool:
    """Whether it is a line of a session."""
    if not isinstance(record, Mapping) or "role" in record or not isinstance(record.get("type"), str):
        return False
    if record["type"] in _MESSAGES:
        return "role" in object_at(record, "message")
    return any(name in record for name in _OWN)


def session_parts(record: Any) -> Iterator[tuple[str, Any]]:
    """A line with the id of its session. One that is no message and names none says nothing of a session."""
    key = str(record.get("sessionId") or record.get("session_id") or "")
    if key or record["type"] in _MESSAGES:
        yield key, record


def with_history(lines: Sequence[_Line], told: set[str]) -> Sequence[_Line]:
    """The lines of a session, those marked that an earlier one has; `told` has these, and then its own, too.

    No lines where all of its messages are an earlier one's.
    """
    names = [str(object_at(line, "message").get("id") or line.get("uuid") or "") for line in lines]
    marked: list[_Line] = [{**line, _HISTORY: name in told} for line, name in zip(lines, names, strict=True)]
    told.update(filter(None, names))  # a line without a name is nobody else's
    is_new = any(_message(line) is not None and not line[_HISTORY] for line in marked)
    return marked if is_new else []


def read_session(parts: Any, default_task: str) -> Iterator[RecordedTrajectory]:
    """The trajectory of a session."""
    lines = list({str(line.get("uuid") or place): line for place, line in enumerate(parts)}.values())
    yield _Session(lines).trajectory(default_task)


@dataclass
class _Agent:
    """What one agent of a session did."""

    lines: list[_Line] = field(default_factory=list)
    events: list[ModelCall | ToolUse | Turn] = field(default_factory=list)
    question: str = ""
    answer: str | None = None
    error: str | None = None


class _Session:
    """The agents of a session by their ids, the main one apart, and which tool's call asked for which."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self.main = _Agent()
        self.agents: defaultdict[str, _Agent] = defaultdict(_Agent)
        self.result: _Line = next((line for line in reversed(lines) if line["type"] == "result"), {})
        roots: dict[str, str] = {}  # of a sub-agent's line, the first one above it
        for line in lines:
            id_ = str(line.get("uuid"))
            roots[id_] = roots.get(str(line.get("parentUuid")), id_)
            is_side = line.get("isSidechain") or line.get("parent_tool_use_id")
            name = str(line.get("parent_tool_use_id") or line.get("agentId") or roots[id_])
            (self.agents[name] if is_side else self.main).lines.append(line)
        for agent in (self.main, *self.agents.values()):
            _read(agent)
        self._asked = dict(self._askers())
        self._told: set[str] = set()

    def _askers(self) -> Iterator[tuple[str, str]]:
        """The id of each tool's call that asked for an agent, and the agent's."""
        tasks = {agent.question: name for name, agent in self.agents.items() if agent.question}
        for agent in (self.main, *self.agents.values()):
            for event in agent.events:
                if isinstance(event, ToolUse) and (told := (event.arguments or {}).get("prompt")) in tasks:
                    yield event.call_id, tasks[told]
            for line in agent.lines:
                name = str(object_at(line, "toolUseResult").get("agentId") or line.get("agentId"))
                for part in objects_at(line.get("message"), "content"):
                    if part.get("type") == "tool_result" and name in self.agents and agent is not self.agents[name]:
                        yield str(part.get("tool_use_id")), name
        yield from ((name, name) for name in self.agents)  # of a stream, whose lines name the call

    def _events(self, agent: _Agent) -> Iterator[ModelCall | ToolUse | Turn]:
        """What an agent did, with what those did whom it asked."""
        for event in agent.events:
            yield event
            name = self._asked.get(event.call_id) if isinstance(event, ToolUse) else None
            if isinstance(event, ToolUse) and name is not None and name not in self._told:
                yield from self._asked_of(name, str((event.arguments or {}).get("subagent_type") or "sub-agent"))

    def _asked_of(self, name: str, shown: str) -> Iterator[ModelCall | ToolUse | Turn]:
        self._told.add(name)
        for event in self._events(self.agents[name]):
            if isinstance(event, ModelCall):
                yield replace(event, agent=event.agent or shown, role="tool")
            elif isinstance(event, ToolUse):
                yield replace(event, agent=event.agent or shown)

    def trajectory(self, task: str) -> RecordedTrajectory:
        """What the main agent and those below it did, and at the end those whose asker isn't known."""
        events = list(self._events(self.main))
        for name in [each for each in self.agents if each not in self._told]:
            events += self._asked_of(name, "sub-agent")
        said = text_of(self.result.get("result") or self.result.get("subtype"))
        return RecordedTrajectory(
            task=task,
            question=self.main.question,
            events=events,
            agent="claude-code",
            answer=self.main.answer,
            error=self.main.error or (said if self.result.get("is_error") else None),
            cost_usd=number(self.result.get("total_cost_usd")),
        )


def _read(agent: _Agent) -> None:
    """Reads an agent's lines: each prompt is what stands before its reply, and since the last compaction."""
    messages: list[Any] = []
    start = 0  # messages before it were read
    places: dict[str, int] = {}  # how many messages there were with a line
    for line in agent.lines:
        parent = places.get(str(line.get("parentUuid")), len(messages))
        place = parent
        if line.get("subtype") == "compact_boundary":
            _add(agent, messages, start)
            messages, start, place = [], 0, 0
        elif (message := _message(line)) is not None:
            went_back = _is_said(message) and any(each["role"] == "assistant" for each in messages[parent:])
            if went_back:
                _add(agent, messages, start)
                messages, start = messages[:parent], parent
            messages.append(message)
            agent.error, place = None, len(messages)
            start = place if line.get(_HISTORY) else start
        elif line.get("isApiErrorMessage"):
            agent.error = text_of(object_at(line, "message").get("content"))
        places[str(line.get("uuid"))] = place
    _add(agent, messages, start)


def _add(agent: _Agent, messages: Sequence[Any], start: int) -> None:
    """Adds what messages from `start` on say."""
    before = with_whole_replies(messages[:start])
    found = read_conversation([*before, *with_whole_replies(messages[start:])], start=len(before))
    if agent.question and found.question not in ("", agent.question):
        agent.events.append(Turn(found.question))  # the first message after a compaction, or an edited one
    agent.events += found.events
    agent.question = agent.question or found.question
    agent.answer = found.answer or agent.answer


def _message(line: _Line) -> dict[str, Any] | None:
    """The message of a line; None where it has none, or one that no model wrote or saw."""
    message = object_at(line, "message")
    if line["type"] not in _MESSAGES or not message or message.get("model") == _SYNTHETIC:
        return None
    is_meta = bool(line.get("isMeta") or line.get("isCompactSummary"))
    named = {"timestamp": line.get("timestamp"), "id": message.get("id") or line.get("requestId"), "is_meta": is_meta}
    return {**message, "role": message.get("role") or line["type"], **named}


def _is_said(message: Mapping[str, Any]) -> bool:
    """Whether a user said it: neither a tool's result nor the program's own."""
    are_results = any(part.get("type") == "tool_result" for part in objects_at(message, "content"))
    return message["role"] == "user" and not message["is_meta"] and not are_results
