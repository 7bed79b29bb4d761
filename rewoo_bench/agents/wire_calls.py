"""An agent's own tool calls, read from its requests and their answers: no part of the gateway has seen them run.

    read_reply("/chat/completions", body)            # "I'll see.", [ToolUse("call_1", "find", "{…}")]
    read_results("/chat/completions", request)       # {"call_1": Observation("Kyiv lies on a river.")}

A model asks for a call in its reply, and the agent's next request has the result. Sources: the API references of OpenAI
(chat completions, responses) and Anthropic (messages).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rewoo_bench.models.hosted.dialects import MESSAGES, RESPONSES, text_in
from rewoo_bench.models.hosted.http_endpoint import documents_of
from rewoo_bench.models.hosted.responses import read_usage, usages_in
from rewoo_bench.runners.notation.tools import Observation
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.model_output import as_object, objects_in
from rewoo_bench.types import Usage


@dataclass(slots=True)
class ToolUse:
    """A call that a model asks for; a stream gives its `arguments`, which are JSON or any text, in parts."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The arguments as an object; text that isn't one stands under `raw`."""
        try:
            fields = load_json(self.arguments or "{}")
        except ValueError:
            return {"raw": self.arguments}
        return fields if isinstance(fields, dict) else {"raw": self.arguments}


@dataclass(slots=True)
class ChatAnswer:
    """The calls, end and usage of a chat's first choice, or of the part of its stream that was read."""

    calls: dict[int, ToolUse] = field(default_factory=dict)
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Adds a whole answer or an event; the text and the thoughts in it. What can't be read is left out."""
        for usage in usages_in(document):
            self.usage = read_usage(usage) or self.usage
        choices = document.get("choices")
        choice = as_object(choices[0]) if isinstance(choices, list) and choices else {}
        if choice.get("index") or not choice:
            return "", ""
        self.finish_reason = _text_or_empty(choice.get("finish_reason")) or self.finish_reason
        said = as_object(choice.get("message") or choice.get("delta"))
        earlier = {known.id: number for number, known in self.calls.items()}
        for place, call in enumerate(objects_in(said.get("tool_calls"))):
            number, id_, function = call.get("index"), _text_or_empty(call.get("id")), as_object(call.get("function"))
            if not isinstance(number, int):  # some servers send whole calls without it, one in each event
                number = earlier.get(id_, len(self.calls)) if id_ else place
            known = self.calls.setdefault(number, ToolUse())
            known.id = known.id or id_
            known.name += _text_or_empty(function.get("name"))
            known.arguments += _text_or_empty(function.get("arguments"))
        text = _text_or_empty(said.get("content"))
        return text, _text_or_empty(said.get("reasoning_content")) or _text_or_empty(said.get("reasoning"))


def _text_or_empty(value: Any) -> str:
    """A JSON value that may be a text; anything else is none."""
    return value if isinstance(value, str) else ""


def read_reply(path: str, body: str) -> tuple[str, list[ToolUse]]:
    """The visible text of a whole answer, or of a stream of events, and the calls that it asks for.

    What can't be read is left out.
    """
    try:
        whole = load_json(body)
    except ValueError:
        whole = None
    documents = [whole] if isinstance(whole, dict) else list(documents_of(body.encode("utf-8", "replace")))
    texts: list[str] = []
    uses: dict[Any, ToolUse] = {}  # by the place in the answer, or by the id
    answer = ChatAnswer()
    for document in documents:
        if path == MESSAGES:
            _read_message(document, texts, uses)
        elif path == RESPONSES:
            items = objects_in(document.get("output"))
            if document.get("type") == "response.output_item.done":  # an event of a stream
                items = objects_in([document.get("item")])
            for item in items:
                if item.get("type") in ("function_call", "custom_tool_call"):
                    name, given = str(item.get("call_id") or ""), item.get("arguments", item.get("input"))
                    uses[name] = ToolUse(name, str(item.get("name") or ""), _text_or_empty(given))
                parts = [part for part in objects_in(item.get("content")) if part.get("type") == "output_text"]
                texts += [_text_or_empty(part.get("text")) for part in parts]
        else:
            texts.append(answer.read(document)[0])
    return "".join(texts).strip(), [use for use in (uses | answer.calls).values() if use.id and use.name]


def _read_message(document: Mapping[str, Any], texts: list[str], uses: dict[Any, ToolUse]) -> None:
    """Adds what a message of Anthropic's, or an event of its stream, has."""
    index = document.get("index") if isinstance(document.get("index"), int) else -1
    blocks: list[tuple[Any, Mapping[str, Any]]] = list(enumerate(objects_in(document.get("content"))))
    blocks += [(index, block) for block in objects_in([document.get("content_block")])]
    for position, block in blocks:
        texts.append(_text_or_empty(block.get("text")))
        if block.get("type") == "tool_use":
            given = json.dumps(block["input"]) if block.get("input") else ""
            uses[position] = ToolUse(str(block.get("id") or ""), str(block.get("name") or ""), given)
    for delta in objects_in([document.get("delta")]):
        texts.append(_text_or_empty(delta.get("text")))
        if index in uses:
            uses[index].arguments += _text_or_empty(delta.get("partial_json"))


def read_results(path: str, request: Mapping[str, Any], asked: Collection[str] | None = None) -> dict[str, Observation]:
    """The results in a request, by the id of their call; of several with one id the last.

    Of the calls that are `asked` for: these are looked for from the request's end, where an agent adds them.
    """
    turns = request.get("input" if path == RESPONSES else "messages")
    found: dict[str, Observation] = {}
    for turn in reversed(turns) if isinstance(turns, list) else ():
        if asked is not None and len(found) == len(asked):
            break
        for name, part in reversed(_results_of(path, turn)):
            if name not in found and (asked is None or name in asked):
                text = text_in(part.get("output" if path == RESPONSES else "content"))
                found[name] = Observation(text, path == MESSAGES and bool(part.get("is_error")))
    return dict(reversed(found.items()))


def _results_of(path: str, turn: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """The parts of a turn that are results, with the ids of their calls."""
    if not isinstance(turn, Mapping):
        return []
    if path == RESPONSES:
        is_result = turn.get("type") in ("function_call_output", "custom_tool_call_output")
        return [(str(turn.get("call_id")), turn)] if is_result else []
    if path == MESSAGES:
        blocks = [block for block in objects_in(turn.get("content")) if block.get("type") == "tool_result"]
        return [(str(block.get("tool_use_id")), block) for block in blocks]
    return [(str(turn.get("tool_call_id")), turn)] if turn.get("role") == "tool" else []


def by_ids_of_replies(
    body: Mapping[str, Any], results: Mapping[str, Observation], asked: Mapping[str, ToolUse]
) -> dict[str, Observation]:
    """The results of a chat's request by the ids that its replies gave.

    A request translated from Gemini's dialect has others: there a result belongs to the call with the same name and
    arguments. Of equal calls the last ones are open, since each request repeats those before.
    """
    turns = objects_in(body.get("messages"))
    calls = [call for turn in turns for call in objects_in(turn.get("tool_calls"))]
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


def _as_json(arguments: str) -> Any:
    """Arguments as a JSON value; None where they are none."""
    try:
        return load_json(arguments or "{}")
    except ValueError:
        return None
