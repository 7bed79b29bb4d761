"""An agent's own tool calls, read from its requests and their answers: no part of the gateway has seen them run.

    reply = read_reply("/chat/completions", body)       # Reply("I'll look it up.", (ToolUse("call_1", "find", "{…}"),))
    read_results("/chat/completions", request_body)     # {"call_1": Result("Kyiv lies on a river.")}

A model asks for a call in its reply, and the agent's next request has the result. Sources: the API references of OpenAI
(chat completions, responses) and Anthropic (messages).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewoo_bench.escaping import replace_surrogates
from rewoo_bench.models.hosted.dialects import MESSAGES, RESPONSES
from rewoo_bench.models.hosted.event_stream import documents_of, load_json

_RESULTS = ("function_call_output", "custom_tool_call_output")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that a model asked for. `arguments` is JSON, or any text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's visible text, and the calls that it asks for."""

    text: str
    uses: tuple[ToolUse, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result that an agent sent back."""

    text: str
    failed: bool = False


def read_reply(path: str, body: str) -> Reply:
    """A whole answer, or a stream of events. What can't be read is left out."""
    try:
        whole = load_json(body)
    except ValueError:
        whole = None
    documents = [whole] if isinstance(whole, dict) else list(documents_of(body.encode("utf-8", "replace")))
    read = {MESSAGES: _message, RESPONSES: _response}.get(path, _chat)
    texts: list[str] = []
    uses: dict[int | str, list[str]] = {}
    for document in documents:
        read(document, texts, uses)
    found = (ToolUse(*map(replace_surrogates, use)) for use in uses.values() if use[0] and use[1])
    return Reply(replace_surrogates("".join(texts)).strip(), tuple(found))


def read_results(path: str, body: bytes) -> dict[str, Result]:
    """The results in a request, by the id of their call; of several with one id the last."""
    try:
        request = load_json(body)
    except ValueError:
        return {}
    if not isinstance(request, dict):
        return {}
    found: dict[str, Result] = {}
    for turn in _objects(request.get("input" if path == RESPONSES else "messages")):
        if path == RESPONSES and turn.get("type") in _RESULTS:
            found[str(turn.get("call_id"))] = Result(_text(turn.get("output")))
        elif path == MESSAGES:
            for block in _objects(turn.get("content")):
                if block.get("type") == "tool_result":
                    found[str(block.get("tool_use_id"))] = Result(
                        _text(block.get("content")), bool(block.get("is_error"))
                    )
        elif turn.get("role") == "tool":
            found[str(turn.get("tool_call_id"))] = Result(_text(turn.get("content")))
    return found


def by_ids_of_replies(body: bytes, results: Mapping[str, Result], asked: Mapping[str, ToolUse]) -> dict[str, Result]:
    """The results of a chat's request by the ids that its replies gave.

    A request translated from a dialect without ids (Gemini's, Ollama's) has others: there a result belongs to the call
    with the same name and arguments. Of equal calls the last ones are open, since each request repeats those before.
    """
    turns = _objects(json.loads(body).get("messages"))
    calls = [call for turn in turns for call in _objects(turn.get("tool_calls"))]
    made = {call["id"]: (call["function"]["name"], _as_json(call["function"]["arguments"])) for call in calls}
    left = {name: (use.name, _as_json(use.arguments)) for name, use in asked.items() if name not in results}
    found = {name: result for name, result in results.items() if name in asked}
    for name in reversed([name for name in results if name not in asked]):
        use_id = next((each for each in reversed(left) if left[each] == made.get(name)), None)
        if use_id is not None:
            del left[use_id]
            found[use_id] = results[name]
    return {name: found[name] for name in asked if name in found}


def is_same_call(use: ToolUse, name: str, arguments: Mapping[str, Any] | None) -> bool:
    """Whether a call is that of a metered tool: a framework may have given it a prefix, and its call more arguments.

    None for any arguments: an agent may have changed them.
    """
    if use.name != name and not (use.name.endswith(name) and not use.name[-len(name) - 1].isalnum()):
        return False
    if arguments is None:
        return True
    asked = _as_json(use.arguments)
    return isinstance(asked, dict) and all(arguments.get(each, value) == value for each, value in asked.items())


def _chat(document: Mapping[str, Any], texts: list[str], uses: dict[int | str, list[str]]) -> None:
    for choice in _objects(document.get("choices"))[:1]:
        said = choice.get("message") or choice.get("delta")
        if not isinstance(said, Mapping):
            continue
        texts += _strings(said.get("content"))
        for position, call in enumerate(_objects(said.get("tool_calls"))):
            index = call.get("index")
            use = uses.setdefault(index if isinstance(index, int) else position, ["", "", ""])
            function = call.get("function")
            use[0] = use[0] or str(call.get("id") or "")
            if isinstance(function, Mapping):
                use[1] += "".join(_strings(function.get("name")))
                use[2] += "".join(_strings(function.get("arguments")))


def _message(document: Mapping[str, Any], texts: list[str], uses: dict[int | str, list[str]]) -> None:
    blocks = list(enumerate(_objects(document.get("content"))))
    index = document.get("index")
    index = index if isinstance(index, int) else -1
    if isinstance(block := document.get("content_block"), Mapping):
        blocks.append((index, block))
    for position, block in blocks:
        texts += _strings(block.get("text"))
        if block.get("type") == "tool_use":
            given = json.dumps(block["input"]) if block.get("input") else ""
            uses[position] = [str(block.get("id") or ""), str(block.get("name") or ""), given]
    if isinstance(delta := document.get("delta"), Mapping):
        texts += _strings(delta.get("text"))
        if index in uses:
            uses[index][2] += "".join(_strings(delta.get("partial_json")))


def _response(document: Mapping[str, Any], texts: list[str], uses: dict[int | str, list[str]]) -> None:
    """A whole response, or the event of a stream in which an item of its output is done."""
    items = _objects(document.get("output"))
    if document.get("type") == "response.output_item.done" and isinstance(item := document.get("item"), Mapping):
        items = [item]
    for item in items:
        if item.get("type") in ("function_call", "custom_tool_call"):
            given = item.get("arguments", item.get("input"))
            name = str(item.get("call_id") or "")
            uses[name] = [name, str(item.get("name") or ""), "".join(_strings(given))]
        for part in _objects(item.get("content")):
            if part.get("type") == "output_text":
                texts += _strings(part.get("text"))


def _as_json(arguments: str) -> Any:
    """Arguments as a JSON value; None where they are none."""
    try:
        return load_json(arguments or "{}")
    except ValueError:
        return None


def _objects(value: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value


def _text(value: Any) -> str:
    """The text of a result in any form."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return "\n".join(_text(part.get("text", part) if isinstance(part, Mapping) else part) for part in value)
    return "" if value is None else replace_surrogates(json.dumps(value, ensure_ascii=False))
