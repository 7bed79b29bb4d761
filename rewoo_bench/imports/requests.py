"""Records with messages -> trajectories: a conversation, or a request with its response, in any provider's form.

    {"task_id": "7", "messages": [user, assistant], "reward": 1.0}
    {"request": {"model": "gpt-4o", "messages": [user]}, "response": {"choices": […], "usage": {…}}}

Requests of one conversation are joined before (conversations.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewoo_bench.imports.message_parts import input_of, messages_of_items, output_of, with_content
from rewoo_bench.imports.messages import USAGE, as_moment, counts_of, read_conversation, role_of
from rewoo_bench.imports.record import (
    ModelCall,
    RecordedTrajectory,
    Times,
    Unreadable,
    as_verdict,
    counted_usage,
    first_of,
    known,
    names_cached,
    number,
    object_at,
    objects_at,
    times_of,
)
from rewoo_bench.imports.replies import with_whole_replies
from rewoo_bench.types import Usage

_CONVERSATION = (*("messages", "contents", "traj", "trajectory", "conversation", "conversations", "history", "turns"),)
_SYSTEM = ("system", "systemInstruction", "system_instruction")
_TASK = ("task_id", "example_id", "sample_id", "question_id", "instance_id", "problem_id", "custom_id")
_SESSION = ("session_id", "conversation_id", "thread_id")
_ID = ("id", "uuid", *_SESSION, "trace_id")
_TRIAL = ("trial", "trial_id", "epoch", "attempt", "run")
_SOLVED = ("reward", "success", "solved", "correct", "is_correct", "passed", "resolved", "score")
_MOST_TRIALS = 1_000_000


def conversation_of(record: Any) -> list[Any] | None:
    """The messages of a record; None where it has none."""
    if isinstance(record, list):
        return record if _is_conversation(record) else None
    if not isinstance(record, Mapping):
        return None
    places = _places(record, "request", "body", "input", "data")
    for place in places:
        for name in _CONVERSATION:
            if _is_conversation(place.get(name)):
                return list(place[name])
    response = _response_of(record)
    return next((found for place in places if (found := input_of({**place, **response})) is not None), None)


def _places(record: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    """The record, and the objects in these fields of it."""
    return [record, *(record[name] for name in names if isinstance(record.get(name), Mapping))]


def _is_conversation(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, Mapping):
        return False
    is_said = "content" in first and role_of(first) is not None
    return "role" in first or isinstance(first.get("parts"), list) or is_said


@dataclass(slots=True)
class LoggedRequest:
    """What a record says of a conversation: `messages` with the system's first, and the reply that a log has beside."""

    facts: Mapping[str, Any]
    messages: list[Any]
    reply: Mapping[str, Any] | None
    model: str
    tools: Sequence[Any]
    record: Any
    """What all this was read from."""

    @property
    def whole(self) -> list[Any]:
        """The messages with the reply."""
        return self.messages if self.reply is None else [*self.messages, self.reply]


def request_of(record: Any) -> LoggedRequest:
    """The messages of a record and what it says of them. Raises `Unreadable`."""
    messages = conversation_of(record)
    if messages is None:
        raise Unreadable(f"no messages: expected a list of them under one of {', '.join(_CONVERSATION)}")
    facts: Mapping[str, Any] = record if isinstance(record, Mapping) else {}
    inner = next((facts[name] for name in ("request", "body") if isinstance(facts.get(name), Mapping)), facts)
    system = first_of(inner, _SYSTEM) or (inner.get("instructions") if "input" in inner else None)
    if system and not (isinstance(messages[0], Mapping) and role_of(messages[0]) == "system"):  # outside the messages
        is_content = isinstance(system, Mapping) and "parts" in system
        messages = [{**(system if is_content else {"content": system}), "role": "system"}, *messages]
    messages = with_whole_replies([plain for each in messages for plain in with_content(each)])
    tools = [tool for each in (inner.get("tools") or inner.get("functions") or ()) for tool in _declared(each)]
    return LoggedRequest(facts, messages, _reply_of(facts), str(inner.get("model") or ""), tools, record)


def _declared(tool: Any) -> list[Any]:
    """The functions of one of Gemini's tools; any other tool as it is."""
    found = objects_at(tool, "functionDeclarations") or objects_at(tool, "function_declarations")
    return found or [tool]


def identity_of(facts: Mapping[str, Any]) -> tuple[Any, ...]:
    """The task, session and trial that a record names; an id of its own may be a request's."""
    return first_of(facts, _TASK), first_of(facts, _SESSION), first_of(facts, _TRIAL)


def trajectory_of(
    request: LoggedRequest, default_task: str, start: int = 0, lacks_reply: bool = False
) -> RecordedTrajectory:
    """The trajectory of a conversation; the other arguments as for `read_conversation`. Raises `Unreadable`."""
    facts = request.facts
    failure = _failure_of(facts) if request.reply is None else None
    read = read_conversation(request.whole, request.tools, start=start, lacks_reply=lacks_reply or failure is not None)
    events = read.events
    if failure is not None and isinstance(events[-1], ModelCall):
        events[-1] = replace(events[-1], error=failure, usage=Usage(), times=_times_of_request(facts))
    calls = [event for event in events if isinstance(event, ModelCall)]
    has_usage = start or lacks_reply or any(call.usage for call in calls)
    recorded = None if has_usage else first_of(facts, USAGE)
    counted = counted_usage(recorded)
    if len(calls) == 1 and counted is not None:
        events[events.index(calls[0])] = replace(calls[0], **counts_of(recorded))
    found = RecordedTrajectory(
        task=default_task if (named := first_of(facts, (*_TASK, *_ID))) is None else str(named),
        question=read.question,
        events=events,
        agent=str(first_of(facts, ("agent", "agent_name", "agent_strategy")) or ""),
        trial=_trial(facts),
        system=read.system,
        answer=read.answer,
        solved=_verdict_of(facts),
        error=failure,
        stop_reason="error" if failure is not None else "answered" if lacks_reply else None,
        notes={"unknown_roles": sorted(read.unknown_roles)} if read.unknown_roles else {},
        usage=counted.usage if counted and len(calls) > 1 else None,
        is_cached_known=names_cached(recorded),
    )
    return found.with_calls(lambda call: replace(call, model=call.model or request.model))


def _response_of(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The response beside a logged request; empty where there is none."""
    response = object_at(facts, "response")
    return response["body"] if isinstance(response.get("body"), Mapping) else response  # of a batch's output


def _reply_of(facts: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reply in a response: OpenAI's `choices` or `output`, Gemini's `candidates`, or Anthropic's message."""
    response = _response_of(facts) or facts
    choices, output = response.get("choices"), output_of(response)
    named = {"usage": first_of(response, USAGE), "model": first_of(response, ("model", "modelVersion"))}
    of_response = known({**named, "cost": facts.get("response_cost"), "times": _times_of_request(facts)})
    if isinstance(response.get("candidates"), list):
        candidate: Mapping[str, Any] = next(iter(objects_at(response, "candidates")), {})
        ended = known({"finish_reason": candidate.get("finishReason")})
        return next(with_content({"role": "model", **object_at(candidate, "content"), **ended, **of_response}), None)
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        if isinstance(message, Mapping):
            reason = choices[0].get("finish_reason")
            return {**({"finish_reason": reason} if reason else {}), **message, **of_response}
    if output is not None:
        said = [each for each in messages_of_items(output) if each.get("role") == "assistant"]
        return {**said[-1], **of_response} if said else None
    return response if response is not facts and response.get("role") == "assistant" else None


def _failure_of(facts: Mapping[str, Any]) -> str | None:
    """What a proxy's log says of a request that the provider refused (LiteLLM's `status` and `error_str`)."""
    if facts.get("status") != "failure":
        return None
    return str(first_of(facts, ("error_str", "exception")) or "the request failed")


def _times_of_request(facts: Mapping[str, Any]) -> Times | None:
    """When a proxy sent the request on and had its answer (LiteLLM's `startTime` and `endTime`)."""
    return times_of(as_moment(facts.get("startTime")), as_moment(facts.get("endTime")))


def ids_of(facts: Mapping[str, Any]) -> tuple[str, str]:
    """The id of a record's response in OpenAI's Responses API, and that of the one which it goes on; else empty."""
    response = _response_of(facts) or facts
    places = [response, *_places(facts, "request", "body")]
    before = next((place["previous_response_id"] for place in places if place.get("previous_response_id")), "")
    return str(response.get("id") or "") if output_of(response) is not None else "", str(before)


def _trial(facts: Mapping[str, Any]) -> int | None:
    found = number(first_of(facts, _TRIAL))
    return int(found) if found is not None and 0 <= found < _MOST_TRIALS and found == int(found) else None


def _verdict_of(facts: Mapping[str, Any]) -> bool | None:
    """Whether the task was solved: of a field such as `reward`, also in `reward_info`."""
    for place in _places(facts, "reward_info", "result", "metrics", "info"):
        for name in _SOLVED:
            if (found := as_verdict(place.get(name))) is not None:
                return found
    return None
