"""Changes of requests that an endpoint doesn't accept in their first form.

    adaptation = Adaptation()
    body = adaptation.apply({"model": "o4", "messages": […], "stop": ["\\nObservation"], "max_tokens": 512})
    # the endpoint answers 400: "Unsupported parameter: 'stop' is not supported with this model."
    change = refusals.find_change(400, text, body)          # RequestChange("drop", "stop")
    adaptation = adaptation.with_change(change)
    adaptation.apply(…)                                     # the same request without "stop"

No model's name is known here: what an endpoint accepts is learnt from its own errors (refusals.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

ChangeKind = Literal[
    "drop", "max_completion_tokens", "developer", "fold_system", "merge_turns", "chat", "limit", "thoughts"
]
_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
_TOGETHER = {
    **dict.fromkeys(_TOKEN_LIMITS, _TOKEN_LIMITS),
    "tools": ("tools", "tool_choice", "parallel_tool_calls"),
    "stream": ("stream", "stream_options"),
}
"""Parameters that are left out with another one."""


@dataclass(frozen=True, slots=True)
class RequestChange:
    """One difference between a refused request and the next one.

    drop: the parameter `name` is left out. max_completion_tokens: the output limit goes by that name.
    developer, fold_system: the system message becomes a developer message, or the start of the first user message.
    merge_turns: neighbouring turns of one role become one. chat: a transcript is sent as a chat.
    limit: the output limit is at most `value`: the model's own (name "model"), or the rest of this prompt's context.
    thoughts: a model's reasoning is sent back with its tool calls.
    """

    kind: ChangeKind
    name: str = ""
    value: int = 0

    def __str__(self) -> str:
        return {
            "drop": f"requests are sent without {self.name!r}",
            "max_completion_tokens": "the output limit is sent as 'max_completion_tokens'",
            "developer": "the system message is sent as role 'developer'",
            "fold_system": "the system message is sent at the start of the first user message",
            "merge_turns": "neighbouring turns of one role are sent as one",
            "chat": "transcripts are sent to the chat endpoint",
            "limit": f"the output limit is sent as {self.value}",
            "thoughts": "reasoning is sent back with its tool calls",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Adaptation:
    """How requests to one endpoint differ from the settings; by default not at all."""

    dropped: tuple[str, ...] = ()
    max_tokens_as: str = "max_tokens"
    system_as: Literal["system", "developer", "user"] = "system"
    merged_turns: bool = False
    as_chat: bool = False
    sends_thoughts: bool = False
    most_tokens: int | None = None

    @classmethod
    def without(cls, names: Sequence[str]) -> Adaptation:
        """Requests without these parameters; "system" is the role of the system message."""
        plain = cls(dropped=tuple(dict.fromkeys(name for name in names if name != "system")))
        return plain.with_change(RequestChange("fold_system")) if "system" in names else plain

    @classmethod
    def from_manifest(cls, facts: Mapping[str, Any]) -> Adaptation:
        """The adaptation that `as_manifest` returned."""
        return cls(
            dropped=tuple(facts.get("left_out", ())),
            max_tokens_as=facts.get("max_tokens_as") or "max_tokens",
            system_as=facts.get("system_as") or "system",
            merged_turns=bool(facts.get("merged_turns")),
            as_chat=facts.get("style") == "chat",
            sends_thoughts=bool(facts.get("sends_thoughts")),
            most_tokens=facts.get("max_tokens_at_most") or None,
        )

    def with_change(self, change: RequestChange) -> Adaptation:
        """The adaptation with one more change."""
        match change.kind:
            case "drop" if change.name in self.dropped:
                return self
            case "drop":
                return replace(self, dropped=(*self.dropped, change.name))
            case "max_completion_tokens":
                return replace(self, max_tokens_as="max_completion_tokens")
            case "developer" if self.system_as == "user":
                return self
            case "developer":
                return replace(self, system_as="developer")
            case "fold_system":
                return replace(self, system_as="user", merged_turns=True)
            case "merge_turns":
                return replace(self, merged_turns=True)
            case "chat":
                return replace(self, as_chat=True)
            case "thoughts":
                return replace(self, sends_thoughts=True)
            case "limit":
                return replace(self, most_tokens=min(change.value, self.most_tokens or change.value))

    def apply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request as the endpoint accepts it."""
        if self == _UNCHANGED:
            return dict(body)
        changed = dict(body)
        if self.most_tokens is not None and "max_tokens" in changed:
            changed["max_tokens"] = min(changed["max_tokens"], self.most_tokens)
        if self.max_tokens_as != "max_tokens" and "max_tokens" in changed:
            changed[self.max_tokens_as] = changed.pop("max_tokens")
        for name in self.dropped:
            for parameter in _TOGETHER.get(name, (name,)):
                changed.pop(parameter, None)
        if "messages" in changed:
            changed["messages"] = list(self._messages(changed["messages"]))
        return changed

    def as_manifest(self) -> dict[str, Any]:
        """For the manifest: only the differences from the settings."""
        facts = {
            "left_out": list(self.dropped),
            "max_tokens_as": self.max_tokens_as if self.max_tokens_as != "max_tokens" else "",
            "system_as": self.system_as if self.system_as != "system" else "",
            "merged_turns": self.merged_turns,
            "style": "chat" if self.as_chat else "",
            "sends_thoughts": self.sends_thoughts,
            "max_tokens_at_most": self.most_tokens or 0,
        }
        return {name: value for name, value in facts.items() if value}

    def _messages(self, messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        sent = [dict(message) for message in messages]
        if "tools" in self.dropped:
            sent = [_as_text(message) for message in sent]
        if "cache_control" in self.dropped:
            sent = [_without_marks(message) for message in sent]
        if self.system_as == "developer":
            sent = [{**m, "role": "developer"} if m["role"] == "system" else m for m in sent]
        elif self.system_as == "user":
            sent = [{**m, "role": "user"} if m["role"] == "system" else m for m in sent]
        if not self.merged_turns:
            yield from sent
            return
        yield from _merged(sent)


_UNCHANGED = Adaptation()


def _merged(messages: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Messages with neighbours of one role joined by a blank line; tool calls and results stay alone."""
    last: dict[str, Any] | None = None
    for message in messages:
        plain = message["role"] in ("user", "assistant") and "tool_calls" not in message
        if last is not None and plain and last["role"] == message["role"] and "tool_calls" not in last:
            last["content"] = f"{_plain_text(last['content'])}\n\n{_plain_text(message['content'])}"
            continue
        if last is not None:
            yield last
        last = dict(message)
    if last is not None:
        yield last


def _as_text(message: dict[str, Any]) -> dict[str, Any]:
    """A tool call or a tool's result as plain text, for an endpoint without tools."""
    if message["role"] == "tool":
        return {"role": "user", "content": f"Result: {_plain_text(message['content'])}"}
    calls = message.get("tool_calls")
    if not calls:
        return message
    lines = [json.dumps({"name": c["function"]["name"], "arguments": c["function"]["arguments"]}) for c in calls]
    return {"role": "assistant", "content": "\n".join([*filter(None, [_plain_text(message.get("content"))]), *lines])}


def _without_marks(message: dict[str, Any]) -> dict[str, Any]:
    """The message without its cache marks."""
    return {**message, "content": _plain_text(message.get("content"))}


def _plain_text(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
