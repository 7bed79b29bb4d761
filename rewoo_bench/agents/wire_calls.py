"""An agent's own tool calls, read from its requests and their answers: no part of the gateway has seen them run.

    read_reply("/chat/completions", body)            # ModelReply("I'll see.", (ToolUse("call_1", "find", "{…}"),))
    read_results("/chat/completions", request)       # {"call_1": Observation("Kyiv lies on a river.")}

A model asks for a call in its reply, and the agent's next request has the result. Sources: the API references of OpenAI
(chat completions, responses) and Anthropic (messages).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewoo_bench.agents.chat_forms import ChatAnswer, ToolUse, text_or_empty
from rewoo_bench.models.hosted.dialects import MESSAGES, RESPONSES, text_in
from rewoo_bench.models.hosted.http_endpoint import documents_of
from rewoo_bench.runners.notation.tools import Observation
from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.model_output import objects_in


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's visible text, and the calls that it asks for."""

    text: str
    uses: tuple[ToolUse, ...]


def read_reply(path: str, body: str) -> ModelReply:
    """A whole answer, or a stream of events. What can't be read is left out."""
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
                    uses[name] = ToolUse(name, str(item.get("name") or ""), text_or_empty(given))
                parts = [part for part in objects_in(item.get("content")) if part.get("type") == "output_text"]
                texts += [text_or_empty(part.get("text")) for part in parts]
        else:
            texts.append(answer.read(document)[0])
    found = (
        ToolUse(*map(replace_surrogates, (use.id, use.name, use.arguments)))
        for use in (uses | answer.calls).values()
        if use.id and use.name
    )
    return ModelReply(replace_surrogates("".join(texts)).strip(), tuple(found))


def _read_message(document: Mapping[str, Any], texts: list[str], uses: dict[Any, ToolUse]) -> None:
    """Adds what a message of Anthropic's, or an event of its stream, has."""
    index = document.get("index") if isinstance(document.get("index"), int) else -1
    blocks: list[tuple[Any, Mapping[str, Any]]] = list(enumerate(objects_in(document.get("content"))))
    blocks += [(index, block) for block in objects_in([document.get("content_block")])]
    for position, block in blocks:
        texts.append(text_or_empty(block.get("text")))
        if block.get("type") == "tool_use":
            given = json.dumps(block["input"]) if block.get("input") else ""
            uses[position] = ToolUse(str(block.get("id") or ""), str(block.get("name") or ""), given)
    for delta in objects_in([document.get("delta")]):
        texts.append(text_or_empty(delta.get("text")))
        if index in uses:
            uses[index].arguments += text_or_empty(delta.get("partial_json"))


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

    A request translated from a dialect without ids (Gemini's, Ollama's) has others: there a result belongs to the call
    with the same name and arguments. Of equal calls the last ones are open, since each request repeats those before.
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


_MOST_BYTES = 32 << 20  # of a question's responses with their inputs; the longest unused ones are dropped
_ENDS = ("response.completed", "response.incomplete")
_PAGE = 20


class UnknownResponse(Exception):
    """A reference to what isn't kept; `fields` are those of OpenAI's error object."""

    def __init__(self, status: int, message: str, **fields: str) -> None:
        super().__init__(message)
        self.status = status
        self.fields = fields


@dataclass(frozen=True, slots=True)
class _Kept:
    document: Mapping[str, Any]
    input: Sequence[Any]
    size: int

    @property
    def output(self) -> Sequence[Any]:
        output = self.document.get("output")
        return output if isinstance(output, list) else ()


class KeptResponses:
    """The responses of one question, at most `most_bytes`, for requests that refer to them (OpenAI's Responses API).

        kept.add({"input": "Which river?"}, {"id": "resp_1", "output": [{"type": "message", …}]})
        kept.unfold({"previous_response_id": "resp_1", "input": "How long is it?"})
        # {"input": [{"role": "user", …}, {"type": "message", …}, {"role": "user", …}]}

    Every request goes on with its whole input, also to a provider that keeps responses itself. So the meter, the
    limits and the journal have the whole prompt, and no request refers to another question or to a run before.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[str, _Kept] = {}  # the last used one at the end
        self._size = 0

    def unfold(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The request with items in the place of references to earlier ones. Raises `UnknownResponse`."""
        if body.get("background") is True:
            raise UnknownResponse(400, "background responses can't be metered; leave `background` out")
        previous, own = body.get("previous_response_id"), _items(body.get("input"))
        if not isinstance(previous, str) and not any(map(_is_reference, own)):
            return body
        before: list[Any] = []
        if isinstance(previous, str):
            if previous not in self._kept:
                message = f"Previous response with id {previous!r} not found in this question."
                code = "previous_response_not_found"
                raise UnknownResponse(400, message, param="previous_response_id", code=code)
            kept = self._use(previous)
            before = [*kept.input, *kept.output]
        for place, reference in enumerate(own):
            if _is_reference(reference):
                wanted = reference["id"]
                known = (
                    item
                    for name, kept in reversed(self._kept.items())
                    for item in (*kept.output, *_with_ids(name, kept.input))
                )
                found = next((item for item in known if isinstance(item, Mapping) and item.get("id") == wanted), None)
                if found is None:
                    raise UnknownResponse(404, f"Item with id {wanted!r} not found in this question.", param="input")
                own[place] = found
        plain = {name: value for name, value in body.items() if name != "previous_response_id"}
        return {**plain, "input": [*before, *own]}

    def add(self, request: Mapping[str, Any], answer: str | bytes, previous: Any = None) -> None:
        """Keeps the response in an answer, or in a piece of its stream, unless the request says `store: false`.

        `request` is the unfolded one, `previous` what it referred to.
        """
        if request.get("store") is False:
            return
        answer = answer if isinstance(answer, bytes) else answer.encode()
        documents: list[Any] = []
        if answer.lstrip().startswith(b"{"):
            documents = [load_json(answer)]
        elif any(end.encode() in answer for end in _ENDS):
            documents = [event.get("response") for event in documents_of(answer) if event.get("type") in _ENDS]
        for document in objects_in(documents):
            if not isinstance(name := document.get("id"), str):
                continue
            items = _items(request.get("input"))
            document = {**document, **({"previous_response_id": previous} if previous else {})}
            self._drop(name)
            kept = self._kept[name] = _Kept(document, items, len(json.dumps([document, items])))
            self._size += kept.size
            while self._size > self._most_bytes:
                self._drop(next(iter(self._kept)))

    def answer(self, method: str, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        """The answer to a request below `/responses/`. Raises `UnknownResponse`."""
        name, _, rest = path.removeprefix("/responses/").partition("/")
        if (method, rest) not in (("GET", ""), ("DELETE", ""), ("GET", "input_items")):
            raise UnknownResponse(404, f"there is no {method} {path}")
        if name not in self._kept:
            raise UnknownResponse(404, f"Response with id {name!r} not found in this question.")
        if query.get("stream") == "true":
            raise UnknownResponse(400, "a kept response can't be streamed; leave `stream` out", param="stream")
        if method == "DELETE":
            self._drop(name)
            return {"id": name, "object": "response", "deleted": True}
        kept = self._use(name)
        if not rest:
            return kept.document
        # A page of its input, the last item first unless asked otherwise.
        items = _with_ids(name, kept.input)[:: 1 if query.get("order") == "asc" else -1]
        ids = [item.get("id") if isinstance(item, Mapping) else None for item in items]
        start = ids.index(query["after"]) + 1 if query.get("after") in ids else 0
        limit = query.get("limit", "")
        end = start + (int(limit) if limit.isdecimal() else _PAGE)
        first, last = (ids[start:end][0], ids[start:end][-1]) if ids[start:end] else (None, None)
        more = {"first_id": first, "last_id": last, "has_more": end < len(items)}
        return {"object": "list", "data": items[start:end], **more}

    def _use(self, name: str) -> _Kept:
        """The response, which is the last used one now."""
        kept = self._kept[name] = self._kept.pop(name)
        return kept

    def _drop(self, name: str) -> None:
        if (kept := self._kept.pop(name, None)) is not None:
            self._size -= kept.size


def _items(given: Any) -> list[Any]:
    """The input of a request as a new list; a text is a message of the user."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return [*given] if isinstance(given, list) else []


def _is_reference(item: Any) -> bool:
    """The type may be left out of a reference, which has nothing but an id then."""
    if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
        return False
    return item.get("type") == "item_reference" or (item.get("type") is None and item.keys() <= {"id", "type"})


def _with_ids(response: str, items: Sequence[Any]) -> list[Any]:
    """Input items, each with an id; those that came without one have the same each time."""
    return [
        {"id": f"msg_{response}_{number}", **item} if isinstance(item, Mapping) else item
        for number, item in enumerate(items)
    ]
