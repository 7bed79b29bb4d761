"""A provider that fails with status 200 has failed: another attempt is made, and what it wrote is no answer."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from answering import KEY, Script
from asking import ASK, model_of
from json_server import serving
from model_server import ModelServer, ServerReply
from open_questions import open_question

from rewoo_bench.models.hosted.dialects import AnswerFacts
from rewoo_bench.models.hosted.http_endpoint import BadAnswer
from rewoo_bench.models.hosted.transport import ReplyStream
from rewoo_bench.types import Request

pytestmark = pytest.mark.anyio

BROKEN = {"code": 502, "message": "the upstream broke"}
PART = {"index": 0, "message": {"role": "assistant", "content": "The Sei"}}
FAILURES: list[dict[str, Any]] = [
    {"choices": [{**PART, "finish_reason": "error"}]},
    {"choices": [{**PART, "finish_reason": "error", "error": BROKEN}]},
    {"choices": [{**PART, "finish_reason": "stop"}], "error": BROKEN},
    {"choices": [{**PART, "finish_reason": "stop", "provider_specific_fields": {"native_finish_reason": "error"}}]},
    {"object": "response", "status": "failed", "error": None, "output": []},
]
FINE = {"choices": [{**PART, "finish_reason": "stop"}], "error": None}


async def test_a_failed_finish_is_tried_again() -> None:
    script = Script(ServerReply("The Sei", finish_reason="error"), "The Seine does.")
    with ModelServer(script) as server:
        async with model_of(server) as model:
            completion = await model.complete(Request(ASK, role="solver"))
    assert completion.text == "The Seine does."
    assert completion.call_cost.attempts == 2


@pytest.mark.parametrize("answer", FAILURES)
def test_a_failure_is_found_wherever_an_answer_says_it(answer: dict[str, Any]) -> None:
    facts = AnswerFacts()
    facts.read(answer)
    assert facts.error


def test_an_answer_without_an_error_is_no_failure() -> None:
    facts = AnswerFacts()
    facts.read(FINE)
    assert facts.error == ""


@pytest.mark.parametrize("end", [{"finish_reason": "error"}, {"finish_reason": "stop", "error": BROKEN}])
def test_a_stream_that_ends_with_a_failure_is_no_answer(end: dict[str, Any]) -> None:
    stream = ReplyStream(lambda _: None)
    stream.add_document({"choices": [{"delta": {"content": "The Sei"}}]})
    with pytest.raises(BadAnswer):
        stream.add_document({"choices": [{"delta": {}, **end}]})


@pytest.mark.parametrize("name", ["openai/x", "mistral/x"])
@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
async def test_an_agent_gets_no_answer_from_a_provider_that_failed(name: str, path: str) -> None:
    """Also where litellm translates: it makes an end by an error one by a stop."""
    failed = {"id": "1", "object": "chat.completion", "created": 1, "model": "x", **FAILURES[0]}
    answers = [(404, {"error": {"message": "no such path"}})] * (name == "openai/x" and path == "/responses")
    with serving(*answers, (200, failed)) as provider:
        async with open_question(f"{provider.address}/v1", name, api_key=KEY) as asked, httpx.AsyncClient() as web:
            body = {"model": "x", "input": "?", "messages": ASK_AS_JSON}
            answer = await web.post(f"{asked.base_url}{path}", json=body, timeout=60)
    assert answer.status_code == 502, answer.text
    assert [call.status for call in asked.meter.calls] == ["error"]


ASK_AS_JSON = [{"role": each.role, "content": each.content} for each in ASK]
