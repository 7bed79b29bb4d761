"""Calls that form a tree, as spans do -> trajectories.

    trajectories_of([Node("1", "", "agent"), Node("2", "1", "model", …)], "trace 7")

A trace is a trajectory. One call that several packages recorded, in parts that nest or overlap, is counted once. A tool
call without a part of its own is known from the model's reply, and its result from the next prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Literal

from rewoo_bench.imports.message_forms import result_text
from rewoo_bench.imports.messages import Conversation, read_conversation, tool_call
from rewoo_bench.imports.record import (
    ModelCall,
    RecordedTrajectory,
    Times,
    ToolUse,
    Turn,
    asked_for,
    count,
    counted_usage,
    number,
    parsed,
)
from rewoo_bench.models.hosted.responses import CountedUsage
from rewoo_bench.text.model_output import RAW_ARGUMENTS
from rewoo_bench.text.results import says_error
from rewoo_bench.types import ToolCall, Usage

Kind = Literal["model", "tool", "agent", ""]
NO_FACTS: Mapping[str, Any] = {}
_NEAR = 100  # calls among which another record of a call, or the result of a tool call, is looked for


@dataclass(eq=False)
class Node:
    """A part of a trace. `messages` and `reply` are a model's prompt and answer, as recorded; None: not recorded."""

    id: str
    parent: str
    kind: Kind
    name: str = ""
    scope: str = ""
    """Name of the package that recorded it; where none is known, how it names such parts."""
    times: Times | None = None
    messages: list[Any] | None = None
    reply: Any = None
    counted: CountedUsage | None = None
    is_cached_known: bool = False
    """Whether it has a field for cached tokens; in a trace where none has, nobody knows them."""
    model: str = ""
    tools: Sequence[Any] = ()
    finish_reason: str | None = None
    cost_usd: float | None = None
    error: str | None = None
    arguments: Any = None
    result: Any = None
    call_id: str = ""
    """Of a tool's call, or of a model's response."""
    is_in_tool: bool = False
    """Whether it is a model's call inside a tool's call."""
    text_in: str = ""
    text_out: str = ""
    conversation: Conversation = field(default_factory=Conversation)

    @property
    def usage(self) -> Usage | None:
        return self.counted.usage if self.counted else None


def trajectories_of(
    nodes: Sequence[Node], task: str, facts: Mapping[str, Any] = NO_FACTS
) -> Iterator[RecordedTrajectory]:
    """The trajectories of a trace; none where no model and no tool was called. `facts` replace fields of them."""
    nodes = sorted(nodes, key=lambda node: node.times.start if node.times else 0.0)
    by_id = {node.id: node for node in nodes}
    agents = {node.id: _agents_above(node, by_id) for node in nodes}
    calls = _once(nodes, by_id)
    is_cached_known = any(node.is_cached_known for node in nodes)
    for node in calls:
        node.is_cached_known = is_cached_known
        node.is_in_tool = node.kind == "model" and any(above.kind == "tool" for above in _above(node, by_id))
        if node.kind == "model" and (node.messages is not None or node.reply is not None):
            node.conversation = _conversation(node)
    roots = [node for node in nodes if node.parent not in by_id]
    tops = [node for node in nodes if node.kind == "agent" and not agents[node.id]]
    groups = [[call for call in calls if top in agents[call.id]] for top in tops]
    if len(tops) < 2 or not _are_apart(tops, groups) or sum(map(len, groups)) < len(calls):
        tops, groups = [next(iter(tops or roots), Node("", "", ""))], [calls]
    for position, (top, group) in enumerate(zip(tops, groups, strict=True)):
        if group:
            name = task if len(groups) == 1 else f"{task}#{position + 1}"
            found = _trajectory(group, top, roots if len(groups) == 1 else [top], agents, name)
            yield replace(found, **facts)


def _above(node: Node, by_id: Mapping[str, Node]) -> Iterator[Node]:
    """The nodes around a node, from the innermost."""
    seen = {node.id}
    above = by_id.get(node.parent)
    while above is not None and above.id not in seen:
        yield above
        seen.add(above.id)
        above = by_id.get(above.parent)


def _agents_above(node: Node, by_id: Mapping[str, Node]) -> list[Node]:
    """The agents around a node, from the outermost; a tool with no agent between is one, too."""
    found: list[Node] = []
    for above in _above(node, by_id):
        if above.name and (above.kind == "agent" or (above.kind == "tool" and not found)):
            found.append(above)
    return found[::-1]


def _are_apart(tops: Sequence[Node], groups: Sequence[Sequence[Node]]) -> bool:
    """Whether one agent was asked several times, each time anew: that is a trajectory each."""
    if len({top.name for top in tops}) > 1:
        return False
    questions = [next((call.conversation.question for call in group if call.kind == "model"), "") for group in groups]
    return len(set(questions)) == len(questions)


def _once(nodes: Sequence[Node], by_id: Mapping[str, Node]) -> list[Node]:
    """The calls, each once: of spans that nest, the inner ones; of spans of two packages at the same time, one."""
    inner: dict[str, list[Node]] = {}
    for node in nodes:
        if node.kind in ("model", "tool"):
            around = next((above for above in _above(node, by_id) if above.kind), None)
            if around is not None and around.kind == node.kind:  # and no tool that asks a model, or agent
                inner.setdefault(around.id, []).append(node)
    found: list[Node] = []
    dropped = {id_ for id_ in inner if by_id[id_].kind == "model"}
    for id_ in [*dropped]:
        if _are_attempts(inner[id_]) and by_id[id_].usage:
            dropped.remove(id_)
            dropped |= {each.id for each in inner[id_]}
            _take(by_id[id_], inner[id_][-1])
    merged: dict[str, Node] = {}
    for node in reversed(nodes):  # the innermost take what the outer ones know
        below = inner.get(node.id, [])
        if node.kind == "model" and len(below) == 1:
            merged[below[0].id] = node
        if node.kind == "tool":
            same = [each for each in below if each.name == node.name or not each.name]
            dropped |= {each.id for each in same}
    for node in nodes:
        if node.kind not in ("model", "tool") or node.id in dropped:
            continue
        outer: Node | None = merged.get(node.id)
        while outer is not None:
            _take(node, outer)
            outer = merged.get(outer.id)
        twin = next((each for each in found[-_NEAR:] if _is_twin(each, node)), None)
        if twin is None:
            found.append(node)
        else:
            twin.scope = f"{twin.scope}+{node.scope}"
            _take(twin, node)
    return found


def _are_attempts(inner: Sequence[Node]) -> bool:
    """Whether parts of a model's call are its attempts: several, of which none has tokens, and but one was answered."""
    return len(inner) > 1 and not any(each.usage or (each.reply and each is not inner[-1]) for each in inner)


def _is_twin(one: Node, other: Node) -> bool:
    """Whether two packages recorded a model's call: one's time lies in the other's, and what both know is equal."""
    if other.kind != "model" or one.kind != "model" or not one.scope or other.scope in one.scope.split("+"):
        return False
    if not (one.times and other.times):
        return False
    (start, end), (begun, ended) = one.times, other.times
    if not ((start <= begun and ended <= end) or (begun <= start and end <= ended)):
        return False
    if one.call_id and other.call_id:
        return one.call_id == other.call_id
    if one.usage and other.usage:
        is_same_input = one.usage.input_tokens == other.usage.input_tokens
        return is_same_input and one.usage.output_tokens == other.usage.output_tokens
    return one.model == other.model


def _take(node: Node, other: Node) -> None:
    """What a node doesn't know of its call, from another record of it."""
    for name in ("messages", "reply", "finish_reason", "cost_usd", "error", "arguments", "result", "model", "times"):
        if getattr(node, name) in (None, ""):
            setattr(node, name, getattr(other, name))
    node.tools = node.tools or other.tools
    node.call_id = node.call_id or other.call_id
    if other.usage and (node.usage is None or _details(other.usage) > _details(node.usage)):
        node.counted = other.counted


def _details(usage: Usage) -> int:
    return usage.cached_input_tokens + usage.reasoning_tokens + usage.cache_write_tokens


def _conversation(node: Node) -> Conversation:
    """The prompt and the reply of a call, read as one conversation whose only call is this one."""
    reply = node.reply if isinstance(node.reply, Mapping) else {"content": ""}
    prompt = node.messages or ()
    return read_conversation([*prompt, {**reply, "role": "assistant"}], node.tools, start=len(prompt))


def _trajectory(
    calls: Sequence[Node], top: Node, roots: Sequence[Node], agents: Mapping[str, list[Node]], task: str
) -> RecordedTrajectory:
    places = {node.id: "/".join(agent.name for agent in agents[node.id] if agent is not top) for node in calls}
    made = [(_model_call if node.kind == "model" else _tool_use)(node, places[node.id]) for node in calls]
    asked = asked_for(made)
    taken = {id(entry.call) for entry in asked if entry is not None}
    events: list[ModelCall | ToolUse | Turn] = []
    for position, (event, entry) in enumerate(zip(made, asked, strict=True)):
        later = made[position + 1 :]
        if isinstance(event, ToolUse):
            events.append(event if entry is None else _as_asked(event, entry.call, later))
            continue
        events.append(event)
        for call in event.tool_calls:
            if id(call) not in taken:
                use = ToolUse(call.name, call.arguments, None, agent=event.agent)
                events.append(_as_asked(use, call, later))
    models = [node for node in calls if node.kind == "model"]
    own = [node for node in models if not places[node.id]] or models
    read = [node.conversation for node in own if node.messages is not None]
    last = made[calls.index(own[-1])] if own else None
    assert last is None or isinstance(last, ModelCall)
    failed = next((node.error for node in (top, *roots) if node.error), last.error if last else None)
    said = last.reply if last and not last.tool_calls else ""
    answer = said or _first([top, *roots], "text_out") or None
    is_reply_unknown = bool(own) and own[-1].reply is None and isinstance(events[-1], ModelCall)
    return RecordedTrajectory(
        task=task,
        question=next((each.question for each in read if each.question), "") or _first([top, *roots], "text_in"),
        events=events,
        agent=top.name if top.kind == "agent" else "",
        system=next((each.system for each in read if each.system), ""),
        answer=answer,
        error=failed,
        stop_reason="answered" if is_reply_unknown and not (answer or failed) else None,
    )


def _first(nodes: Sequence[Node], name: str) -> str:
    return next((str(getattr(node, name)) for node in nodes if getattr(node, name)), "")


def _model_call(node: Node, agent: str) -> ModelCall:
    """The call, its prompt and reply read from the node's conversation."""
    call = next((event for event in node.conversation.events if isinstance(event, ModelCall)), ModelCall(None))
    return replace(
        call,
        messages=call.messages if node.messages is not None else None,
        usage=node.usage or call.usage,
        is_inconsistent=node.counted.source == "inconsistent" if node.counted else call.is_inconsistent,
        model=node.model or call.model,
        tools=tuple(node.tools),
        finish_reason=node.finish_reason or call.finish_reason,
        cost_usd=node.cost_usd if node.cost_usd is not None else call.cost_usd,
        times=node.times,
        error=node.error,
        agent=agent,
        is_cached_known=node.is_cached_known if node.usage else call.is_cached_known,
        role="tool" if node.is_in_tool else "agent",
    )


def _tool_use(node: Node, agent: str) -> ToolUse:
    """A tool's call, also with its arguments in the form that decorators of functions record."""
    value = parsed(node.arguments)
    if isinstance(value, Mapping) and set(value) == {"args", "kwargs"}:
        value = value["kwargs"] or ({"args": value["args"]} if value["args"] else {})
    call = tool_call(node.call_id, node.name, value)
    result = node.error if node.result is None else result_text(node.result)
    failed = node.error is not None or (result is not None and says_error(result))
    arguments = None if node.arguments is None else call.arguments
    return ToolUse(node.name or call.name, arguments, result, failed, node.times, agent, node.call_id)


def _as_asked(use: ToolUse, call: ToolCall, later: Sequence[ModelCall | ToolUse]) -> ToolUse:
    """A tool's call with what the reply that asked for it knows, and the next prompt of the agent with its result."""
    arguments = use.arguments
    if arguments is None or RAW_ARGUMENTS in arguments:  # not recorded, or LangChain's bare text
        arguments = call.arguments
    result, failed = use.result, use.failed
    prompts = (each.messages or () for each in later if isinstance(each, ModelCall) and each.agent == use.agent)
    for message in chain.from_iterable(map(reversed, islice(prompts, _NEAR))) if result is None and call.id else ():
        if message.role == "tool" and message.tool_call_id == call.id:
            result, failed = message.content, says_error(message.content)
            break
    return replace(use, arguments=arguments, result=result, failed=failed, call_id=call.id)


_SPAN_KINDS: Mapping[str, Kind] = {"llm": "model", "generation": "model", "tool": "tool", "agent": "agent"}


def kind_of(word: Any) -> Kind:
    """The kind that a word of OpenInference, Traceloop or Langfuse names."""
    return _SPAN_KINDS.get(str(word).casefold(), "")


def details_usage(details: Mapping[str, Any]) -> CountedUsage | None:
    """Tokens by kind, as Langfuse has them: each kind apart, or cached ones within the input; the total tells which."""
    kinds = {name: count(value) for name, value in details.items() if number(value) is not None}
    total = kinds.pop("total", None)
    given = sum(value for name, value in kinds.items() if name.startswith("input") or "cache" in name)
    written = sum(value for name, value in kinds.items() if name.startswith("output") or "reasoning" in name)
    is_apart = "input" in kinds and total is not None and given + written == total and len(kinds) > 2
    if not is_apart:
        return counted_usage(details)
    cached = sum(
        value for name, value in kinds.items() if "cache" in name and "creat" not in name and "write" not in name
    )
    stored = sum(value for name, value in kinds.items() if "cache" in name) - cached
    reasoned = sum(value for name, value in kinds.items() if "reasoning" in name)
    return CountedUsage(Usage(given, cached, written, reasoned, stored))
