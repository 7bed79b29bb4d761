"""Streamed answers: put together as they arrive, however their bytes are cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewoo_bench.models.hosted.dialects import AnswerFacts
from rewoo_bench.models.hosted.http_endpoint import BadAnswer
from rewoo_bench.models.hosted.responses import visible_so_far
from rewoo_bench.models.hosted.transport import ReplyStream
from rewoo_bench.types import Usage

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def event(document: Any) -> bytes:
    return f"data: {json.dumps(document, ensure_ascii=False)}\n\n".encode()


def delta(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, **more}]}


def streamed(*events: bytes) -> tuple[ReplyStream, list[str]]:
    shown: list[str] = []
    stream = ReplyStream(shown.append)
    for each in events:
        stream.add(each)
    return stream, shown


def test_a_completion_has_its_text_in_the_choice() -> None:
    stream, shown = streamed(
        event({"choices": [{"text": "Par"}]}), event({"choices": [{"text": "is", "finish_reason": "length"}]})
    )
    assert shown == ["Par", "Paris"]
    (choice,) = stream.document()["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("Paris", "length")


def test_thoughts_in_fields_or_parts_are_no_text() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Oslo"}]
    stream, shown = streamed(
        event({"choices": [{"delta": {"reasoning_content": "so "}}]}),
        event({"choices": [{"delta": {"content": parts}, "finish_reason": "stop"}]}),
    )
    assert shown == ["Oslo"]
    assert stream.document()["choices"][0]["message"]["reasoning_content"] == "so hm"


def test_zeros_at_the_end_of_a_stream_replace_no_count() -> None:
    stream, _ = streamed(
        event({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 1}}),
        event({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 3, "total_tokens": None}}),
        b"data: [DONE]\n\n",
    )
    assert stream.document()["usage"] == {"prompt_tokens": 12, "completion_tokens": 3}


@pytest.mark.parametrize(
    "events",
    [
        [event(delta("a"))],
        [event({"error": {"message": "overloaded"}})],
        [event({"choices": ["a"]})],
        [event({"choices": [{"delta": {"content": 7}}]})],
    ],
)
def test_what_broke_off_or_has_another_form_is_a_bad_answer(events: list[bytes]) -> None:
    with pytest.raises(BadAnswer):
        streamed(*events)[0].document()


COUNTS = {"prompt_tokens": 90, "completion_tokens": 3, "total_tokens": 93, "cached_tokens": 64}


@pytest.mark.parametrize("last", [{"choices": [{"delta": {}, "finish_reason": "stop", "usage": COUNTS}]},
                                  {"choices": [], "x_groq": {"id": "r1", "usage": COUNTS}}])  # fmt: skip
def test_a_usage_is_read_wherever_a_provider_puts_it(last: dict[str, Any]) -> None:
    """Moonshot puts it into the choice, and Groq into a field of its own; our runners and agents read the same."""
    facts = AnswerFacts()
    facts.read(last)
    assert streamed(event(delta("a")), event(last))[0].usage == facts.usage == Usage(90, 64, 3)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>1. Search(", ""),
        ("<think>so</think>\n1. Sea", "1. Sea"),
        ("1. Search()\nQuestion: next", "1. Search()"),
        ("<|channel|>analysis<|message|>1. Search", ""),
    ],
)
def test_of_an_unfinished_reply_only_the_visible_part_is_shown(text: str, visible: str) -> None:
    assert visible_so_far(text, ["\nQuestion:"], begins_in_thought=False) == visible
