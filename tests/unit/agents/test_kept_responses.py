"""The responses that the gateway keeps: as many as there is room for, the longest unused ones given up first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewoo_bench.agents.wire_calls import KeptResponses, UnknownResponse


def document(name: str, size: int = 1000) -> Any:
    return {"id": name, "output": [{"type": "message", "id": f"msg_{name}", "content": "x" * size}]}


def keep(kept: KeptResponses, request: Any, answer: Any) -> None:
    kept.add(request, json.dumps(answer))


def test_the_longest_unused_responses_are_given_up() -> None:
    kept = KeptResponses(most_bytes=3500)
    for name in ("r1", "r2", "r3"):
        keep(kept, {"input": "a"}, document(name))
    kept.unfold({"previous_response_id": "r1", "input": "b"})
    keep(kept, {"input": "a"}, document("r4"))
    assert kept.answer("GET", "/responses/r1", {})["id"] == "r1"
    with pytest.raises(UnknownResponse, match="'r2' not found"):
        kept.unfold({"previous_response_id": "r2", "input": "b"})


def test_a_response_that_is_larger_than_the_room_is_not_kept() -> None:
    kept = KeptResponses(most_bytes=500)
    keep(kept, {"input": "a"}, document("r1"))
    with pytest.raises(UnknownResponse):
        kept.answer("GET", "/responses/r1", {})


def test_a_request_without_references_stays_as_it_is() -> None:
    body = {"input": [{"role": "user", "content": "a"}, {"type": "reasoning", "id": "rs_1"}], "store": True}
    assert KeptResponses().unfold(body) is body


def test_pages_of_a_responses_input_follow_one_another() -> None:
    kept = KeptResponses()
    keep(kept, {"input": [{"role": "user", "content": str(number)} for number in range(5)]}, document("r1"))
    first = kept.answer("GET", "/responses/r1/input_items", {"limit": "3", "order": "asc"})
    after = {"limit": "3", "order": "asc", "after": first["last_id"]}
    second = kept.answer("GET", "/responses/r1/input_items", after)
    assert [item["content"] for page in (first, second) for item in page["data"]] == list("01234")
    assert (first["has_more"], second["has_more"]) == (True, False)


@pytest.mark.parametrize("answer", ["[]", "7", '{"id": 7}', "{}", "data: [1]\n\n", "data: {\n\n"])
def test_an_answer_that_is_no_response_is_not_kept(answer: str) -> None:
    kept = KeptResponses()
    kept.add({"input": "a"}, answer)
    with pytest.raises(UnknownResponse):
        kept.answer("GET", "/responses/7", {})
