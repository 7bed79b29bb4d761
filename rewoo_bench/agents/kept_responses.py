"""The responses of a question, kept for requests that refer to them (OpenAI's Responses API).

    kept.keep({"input": "Which river?"}, {"id": "resp_1", "output": [{"type": "message", …}]})
    kept.unfold({"previous_response_id": "resp_1", "input": "How long is it?"})
    # {"input": [{"role": "user", …}, {"type": "message", …}, {"role": "user", …}]}

Every request goes on with its whole input, also to a provider that keeps responses itself. So the meter, the limits and
the journal have the whole prompt; a resumed run and a replay don't depend on what a provider still has; no request
refers to another question; and an endpoint that keeps nothing, or has only chats, answers all the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewoo_bench.models.hosted.event_stream import documents_of, load_json

MOST_BYTES = 32 << 20  # of a question's responses with their inputs; the longest unused ones are dropped
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
    """The responses of one question, at most `most_bytes`."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
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
            kept = self._used(previous)
            before = [*kept.input, *kept.output]
        items = [self._item(item["id"]) if _is_reference(item) else item for item in own]
        plain = {name: value for name, value in body.items() if name != "previous_response_id"}
        return {**plain, "input": [*before, *items]}

    def keep(self, request: Mapping[str, Any], answer: str | bytes, previous: Any = None) -> None:
        """Keeps the response in an answer, or in a piece of its stream, unless the request says `store: false`.

        `request` is the unfolded one, `previous` what it referred to.
        """
        if request.get("store") is False:
            return
        for document in _responses(answer if isinstance(answer, bytes) else answer.encode()):
            name, items = str(document.get("id")), _items(request.get("input"))
            document = {**document, **({"previous_response_id": previous} if previous else {})}
            self._drop(name)
            kept = _Kept(document, items, len(json.dumps([document, items])))
            self._kept[name] = kept
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
        kept = self._used(name)
        return _page(name, kept.input, query) if rest else kept.document

    def _used(self, name: str) -> _Kept:
        kept = self._kept[name] = self._kept.pop(name)
        return kept

    def _drop(self, name: str) -> None:
        if (kept := self._kept.pop(name, None)) is not None:
            self._size -= kept.size

    def _item(self, wanted: str) -> Any:
        for name, kept in reversed(self._kept.items()):
            for item in (*kept.output, *_named(name, kept.input)):
                if isinstance(item, Mapping) and item.get("id") == wanted:
                    return item
        raise UnknownResponse(404, f"Item with id {wanted!r} not found in this question.", param="input")


def _items(given: Any) -> list[Any]:
    """The input of a request as a list; a text is a message of the user."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given if isinstance(given, list) else []


def _is_reference(item: Any) -> bool:
    """The type may be left out of a reference, which has nothing but an id then."""
    if not isinstance(item, Mapping) or not isinstance(item.get("id"), str):
        return False
    return item.get("type") == "item_reference" or (item.get("type") is None and item.keys() <= {"id", "type"})


def _responses(answer: bytes) -> Iterator[Mapping[str, Any]]:
    """The whole responses in an answer or in events."""
    if answer.lstrip().startswith(b"{"):
        document = load_json(answer)
        if isinstance(document, dict) and isinstance(document.get("id"), str):
            yield document
        return
    for event in documents_of(answer) if any(end.encode() in answer for end in _ENDS) else ():
        inner = event.get("response")
        if event.get("type") in _ENDS and isinstance(inner, Mapping) and isinstance(inner.get("id"), str):
            yield inner


def _named(response: str, items: Sequence[Any]) -> list[Any]:
    """Input items, each with an id; those that came without one have the same each time."""
    return [
        {"id": f"msg_{response}_{number}", **item} if isinstance(item, Mapping) else item
        for number, item in enumerate(items)
    ]


def _page(name: str, items: Sequence[Any], query: Mapping[str, str]) -> Mapping[str, Any]:
    """A page of a response's input, the last item first unless asked otherwise."""
    named = _named(name, items)
    named = named if query.get("order") == "asc" else named[::-1]
    ids = [item.get("id") if isinstance(item, Mapping) else None for item in named]
    start = ids.index(query["after"]) + 1 if query.get("after") in ids else 0
    limit = query.get("limit", "")
    end = start + (int(limit) if limit.isdecimal() else _PAGE)
    page = ids[start:end]
    first, last = (page[0], page[-1]) if page else (None, None)
    data = named[start:end]
    return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": end < len(named)}
