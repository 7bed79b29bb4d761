"""What a request costs the gateway doesn't grow with the conversation that it repeats: functions called are counted."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import httpx
import pytest
from json_server import serving
from open_questions import open_question

from rewoo_bench.calls.meter import Limits

CALLS = 80
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def asks(number: int) -> dict[str, Any]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "find", "arguments": '{"q": "Kyiv"}'}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.mark.anyio
async def test_a_late_request_calls_as_many_functions_as_an_early_one() -> None:
    answers = [
        (200, {"choices": [{"message": asks(n), "finish_reason": "tool_calls"}], "usage": USAGE}) for n in range(CALLS)
    ]
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Which river?"}]
    called = [0] * CALLS

    with serving(*answers) as provider:
        limits = Limits(tokens=10**9)
        async with open_question(f"{provider.address}/v1", limits=limits) as question, httpx.AsyncClient() as web:
            for number in range(CALLS):

                def count(frame: FrameType, event: str, _: object, number: int = number) -> None:
                    called[number] += event == "call" and "rewoo_bench" in frame.f_code.co_filename

                sys.setprofile(count)
                answer = await web.post(
                    f"{question.base_url}/chat/completions", json={"model": "gpt-x", "messages": turns}
                )
                sys.setprofile(None)
                reply = answer.json()["choices"][0]["message"]
                turns += [reply, {"role": "tool", "tool_call_id": f"c{number}", "content": f"Result {number}"}]
    assert called[-1] < 1.2 * called[5]
