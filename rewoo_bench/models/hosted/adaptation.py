"""Changes of requests that an endpoint doesn't accept in their first form.

    adaptation = Adaptation()
    body = adaptation.apply({"model": "o4", "messages": […], "stop": ["\\nObservation"], "max_tokens": 512})
    # the endpoint answers 400: "Unsupported parameter: 'stop' is not supported with this model."
    change = find_change(400, text, body)          # RequestChange("drop", "stop")
    adaptation = adaptation.with_change(change)
    adaptation.apply(…)                                     # the same request without "stop"

No model's name is known here: what an endpoint accepts is learnt from its own errors (`find_change`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from rewoo_bench.text.json_text import load_json

_CHANGES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "drop": ("requests are sent without {name!r}", {}),
    "max_completion_tokens": (
        "the output limit is sent as 'max_completion_tokens'",
        {"max_tokens_as": "max_completion_tokens"},
    ),
    "developer": ("the system message is sent as role 'developer'", {"system_as": "developer"}),
    "fold_system": (
        "the system message is sent at the start of the first user message",
        {"system_as": "user", "merged_turns": True},
    ),
    "merge_turns": ("neighbouring turns of one role are sent as one", {"merged_turns": True}),
    "chat": ("transcripts are sent to the chat endpoint", {"style": "chat"}),
    "limit": ("the output limit is sent as {value}", {}),
    "thoughts": ("reasoning is sent back with its tool calls", {"sends_thoughts": True}),
}
"""Each kind of change in words, and the fields of `Adaptation` that it sets."""
_OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens")
_TOGETHER = {
    **dict.fromkeys(_OUTPUT_LIMITS, _OUTPUT_LIMITS),
    "tools": ("tools", "tool_choice", "parallel_tool_calls"),
    "stream": ("stream", "stream_options"),
}
"""Parameters that are left out with another one."""


@dataclass(frozen=True, slots=True)
class RequestChange:
    """One difference between a refused request and the next one, of a kind in `_CHANGES`.

    drop: the parameter `name` is left out.
    limit: the output limit is at most `value`: the model's own (name "model"), or the rest of this prompt's context.
    """

    kind: str
    name: str = ""
    value: int = 0

    def __str__(self) -> str:
        return _CHANGES[self.kind][0].format(name=self.name, value=self.value)


@dataclass(frozen=True, slots=True)
class Adaptation:
    """How requests to one endpoint differ from the settings; by default not at all. The manifest has these names.

    `style` "chat": transcripts are sent as chats. `sends_thoughts`: a model's reasoning is sent back with its tool
    calls.
    """

    left_out: tuple[str, ...] = ()
    max_tokens_as: str = "max_tokens"
    system_as: Literal["system", "developer", "user"] = "system"
    merged_turns: bool = False
    style: str = ""
    sends_thoughts: bool = False
    max_tokens_at_most: int | None = None

    @classmethod
    def from_manifest(cls, facts: Mapping[str, Any]) -> Adaptation:
        """The adaptation that `as_manifest` returned."""
        known = {name: facts[name] for name in asdict(_UNCHANGED) if name in facts}
        return cls(**{**known, "left_out": tuple(facts.get("left_out", ()))})

    def as_manifest(self) -> dict[str, Any]:
        """For the manifest: only the differences from the settings."""
        changed = {name: value for name, value in asdict(self).items() if value != getattr(_UNCHANGED, name)}
        return {**changed, "left_out": list(self.left_out)} if self.left_out else changed

    def with_change(self, change: RequestChange) -> Adaptation:
        """The adaptation with one more change."""
        if change.kind == "drop":
            return replace(self, left_out=tuple(dict.fromkeys((*self.left_out, change.name))))
        if change.kind == "limit":
            return replace(self, max_tokens_at_most=min(change.value, self.max_tokens_at_most or change.value))
        if change.kind == "developer" and self.system_as == "user":
            return self
        return replace(self, **_CHANGES[change.kind][1])

    def apply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request as the endpoint accepts it."""
        changed = dict(body)
        if self == _UNCHANGED:
            return changed
        if "max_tokens" in changed:
            limit = changed.pop("max_tokens")
            changed[self.max_tokens_as] = min(limit, self.max_tokens_at_most or limit)
        for name in self.left_out:
            for parameter in _TOGETHER.get(name, (name,)):
                changed.pop(parameter, None)
        if "messages" in changed:
            sent = [dict(message) for message in changed["messages"]]
            if "tools" in self.left_out:
                sent = [_as_text(message) for message in sent]
            if self.system_as != "system":
                sent = [{**m, "role": self.system_as} if m["role"] == "system" else m for m in sent]
            changed["messages"] = _merged(sent) if self.merged_turns else sent
        return changed


_UNCHANGED = Adaptation()


def _merged(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with neighbours of one role joined by a blank line; tool calls and results stay alone."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        plain = message["role"] in ("user", "assistant") and "tool_calls" not in message
        if merged and plain and (last := merged[-1])["role"] == message["role"] and "tool_calls" not in last:
            last["content"] = f"{_plain_text(last['content'])}\n\n{_plain_text(message['content'])}"
        else:
            merged.append(dict(message))
    return merged


def _as_text(message: dict[str, Any]) -> dict[str, Any]:
    """A tool call or a tool's result as plain text, for an endpoint without tools."""
    if message["role"] == "tool":
        return {"role": "user", "content": f"Result: {_plain_text(message['content'])}"}
    calls = message.get("tool_calls")
    if not calls:
        return message
    lines = [json.dumps({"name": c["function"]["name"], "arguments": c["function"]["arguments"]}) for c in calls]
    return {"role": "assistant", "content": "\n".join([*filter(None, [_plain_text(message.get("content"))]), *lines])}


def _plain_text(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


_STATUSES = frozenset({400, 404, 405, 406, 415, 422, 500, 501})
_LONGEST = 8_000  # characters of an error that are read
_NEVER = frozenset({"model", "messages", "prompt", "input"})
_NO = re.compile(
    r"unsupported|unrecogni[sz]ed|extra (?:inputs|fields)|extra_forbidden|additional propert|deprecated|cannot both be"
    r"|(?:\bnot|n't|cannot|unable to|only) (?:\w+ ){0,2}(?:support|permit|allow|accept|recogni|enabl|set|use|specif)"
    r"|(?:unknown|unexpected) (?:\w+ )?(?:param|arg|field|name|key|propert|role)|invalid (?:role|param)"
    r"|only the default|no endpoints found that support|requires? --\w"
    r"|must be verified to stream",  # OpenAI's organisations, for some models
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[ _]?(?:filter|policy|management)|moderation|flagged|safety|jailbreak", re.IGNORECASE)
# Parts of the request in an error: long quotations, and pydantic's `input`.
_QUOTED = re.compile(
    r"""(?<!\w)(['"`])(?:(?!\1).){40,}?\1(?!\w)|(?<=input['"]:)\s?(['"]).*?\2|(?<=input_value=)(['"]).*?\3""", re.DOTALL
)
_A_ROLE = re.compile(r"messages\W{1,3}\d+\W{1,3}role")
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+")
# Other names of parameters in sentences.
_ALIASES = {
    "tools": r"tools?|tool[ _](?:use|calls?|calling|choice)|function[ _]call(?:s|ing)?|functions",
    "response_format": r"response[_ ]format|json[_ ]schema|structured outputs?|json mode|guided[_ ]\w+",
    "stop": r"stop|stop[_ ]sequences?",
    "reasoning_effort": r"reasoning[_. ]effort|thinking",
    "stream": r"stream(?:ing)?|stream_options",
}
_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s?|developer (?:role|message|instruction)s?"
    r"|role:?\W{0,4}(?:system|developer)|\W(?:system|developer)\W{1,3}(?:role|with this model)|unexpected role",
    re.IGNORECASE,
)
_ALTERNATE = re.compile(
    r"roles? must alternate|alternate between|(?:con|suc)\w+ive (?:user|assistant|messages)", re.IGNORECASE
)
_THOUGHTS_WANTED = re.compile(
    r"reasoning_content\W.{0,80}(?:must be passed|missing|required)|missing .{0,20}reasoning_content", re.I
)
_NOT_COMPLETIONS = re.compile(r"chat model|chat/completions|completions api", re.IGNORECASE)

_TOO_LARGE = re.compile(
    r"too (?:large|high|big)|at most|less than or equal|maximum|exceed|\d > \d|above", re.IGNORECASE
)
_CONTEXT = re.compile(r"maximum context length (?:is|of) (\d{1,9})", re.IGNORECASE)
_PROMPT_SIZE = re.compile(
    r"(\d{1,9}) (?:in the messages|input tokens|in your prompt|tokens from the input)", re.IGNORECASE
)
_LEAST_OUTPUT = 16


def find_change(status: int | None, text: str, body: Mapping[str, Any]) -> RequestChange | None:
    """The change of the request `body` that an error's `text` asks for; None where no change helps.

        find_change(400, '{"error": {"message": "Unsupported parameter: \'stop\' …", "param": "stop"}}', body)
        # RequestChange("drop", "stop")

    It reads OpenAI's and Azure's `param` and `code`, pydantic's `loc` (vLLM, Mistral, any FastAPI server), and the
    sentences with which these and Anthropic, llama.cpp, Ollama, Groq, xAI and OpenRouter refuse a parameter. A
    parameter counts as refused only if the request has it and the same sentence says that it isn't supported: a value
    out of range, a prompt that is too long or a filtered prompt is an error of the request itself.
    """
    if status not in _STATUSES:
        return None
    message = _said(text[:_LONGEST])
    if _FILTERED.search(message):
        return None
    if "prompt" in body and (status in (404, 405, 501) or _NOT_COMPLETIONS.search(message)):
        return RequestChange("chat")
    if status == 500:  # a chat template that raises
        return _turn_change(message, body) or (_sentence_change(message, body) if "jinja" in message else None)
    if change := _limit_change(message, body):
        return change
    return _turn_change(message, body) or _sentence_change(message, body)


def _said(text: str) -> str:
    """What an error says, without what it repeats of the request: a line for each of its texts."""
    error = _error_object(text)
    return _QUOTED.sub("…", "\n".join(_texts(error)) if error is not None else text[:_LONGEST])


def _limit_change(message: str, body: Mapping[str, Any]) -> RequestChange | None:
    """A smaller output limit, where the one that was sent is too large."""
    sent = next((body[name] for name in _OUTPUT_LIMITS if isinstance(body.get(name), int)), None)
    if sent is None:
        return None
    if (context := _CONTEXT.search(message)) and (prompt := _PROMPT_SIZE.search(message)):
        left = int(context[1]) - int(prompt[1])
        return RequestChange("limit", value=left) if _LEAST_OUTPUT <= left < sent else None
    names = (*_OUTPUT_LIMITS, "completion tokens", "output tokens")
    if not any(name in message for name in names) or not _TOO_LARGE.search(message):
        return None
    limits = map(int, re.findall(r"\b\d{2,9}\b", message))
    largest = max((limit for limit in limits if _LEAST_OUTPUT <= limit < sent), default=0)
    return RequestChange("limit", "model", largest) if largest else None


def _turn_change(message: str, body: Mapping[str, Any]) -> RequestChange | None:
    """Another form of the turns: other roles, another order, or other contents."""
    messages = body.get("messages") or ()
    roles = {turn["role"] for turn in messages}
    if _THOUGHTS_WANTED.search(message) and "assistant" in roles:
        return RequestChange("thoughts")
    if _ALTERNATE.search(message):
        merged = all(a["role"] != b["role"] for a, b in pairwise(messages))
        if not merged:
            return RequestChange("merge_turns")
        return RequestChange("fold_system") if roles & {"system", "developer"} else None
    about_roles = _A_ROLE.search(message) is not None
    if not (about_roles or any(_SYSTEM.search(s) and _NO.search(s) for s in _SENTENCE.split(message))):
        return None
    if "system" in roles:
        openai = about_roles or "developer" in message.casefold().replace("developer instruction", "")
        return RequestChange("developer") if openai else RequestChange("fold_system")
    return RequestChange("fold_system") if "developer" in roles else None


def _sentence_change(message: str, body: Mapping[str, Any]) -> RequestChange | None:
    """The parameter that a sentence refuses; one in quotes before any other."""
    names = [name for name in body if name not in _NEVER]
    forms = {name: rf"(?<![\w-])(?:{_ALIASES.get(name, re.escape(name))})(?![\w-])" for name in names}
    for sentence in _SENTENCE.split(message):
        if not _NO.search(sentence):
            continue
        at = {name: match.start() for name, form in forms.items() if (match := re.search(form, sentence, re.I))}
        quoted = [name for name, start in at.items() if sentence[start - 1 : start] in ("'", '"', "`")]
        if at:
            return _dropping(min(quoted or at, key=at.__getitem__), body)
    return None


def _dropping(name: str, body: Mapping[str, Any]) -> RequestChange | None:
    """The change for a refused parameter, by its name in the request."""
    name = "tools" if name in ("tool_choice", "functions") and "tools" in body else name
    name = "stream" if name == "stream_options" else name  # without its usage, a stream's cost would be an estimate
    if name in _NEVER or name not in body:
        return None
    return RequestChange("max_completion_tokens") if name == "max_tokens" else RequestChange("drop", name)


def _error_object(text: str) -> Any:
    """The JSON document in an error's text, which may have words around it; None where there is none."""
    for start in (0, text.find("{")):
        try:
            return load_json(text[start:]) if start >= 0 else None
        except ValueError:
            continue
    return None


def _texts(document: Any) -> Iterator[str]:
    """The texts of an error object, without those that repeat the request.

    The field that OpenAI (`param`) or pydantic (`loc`) names stands before its message: `body.seed: Extra inputs …`.
    """
    if isinstance(document, str):
        inner = _error_object(document) if document.lstrip().startswith("{") else None
        yield from _texts(inner) if inner is not None else (document,)
    elif isinstance(document, Mapping):
        place = document.get("param") or document.get("loc") or ""
        place = ".".join(map(str, place)) if isinstance(place, list) else str(place)
        for key, value in document.items():
            if key in ("message", "msg") and place and isinstance(value, str):
                yield f"{place}: {value}"
            elif key not in ("input", "ctx", "url", "request_id", "loc", "param"):
                yield from _texts(value)
    elif isinstance(document, list):
        for value in document:
            yield from _texts(value)
