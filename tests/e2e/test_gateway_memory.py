"""A question with many calls takes little memory: the gateway keeps no answer, and its last few conversations alone."""

from __future__ import annotations

import tracemalloc

import anyio
import httpx
import pytest
from garbage import collect_without_warnings
from json_server import serving

from rewoo_bench.agents.gateway import Gateway
from rewoo_bench.calls.meter import Meter
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings

TEXT = "word " * 40_000  # 200 KB, of each request and of each answer
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
ANSWER = {"choices": [{"message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}], "usage": USAGE}
CALLS = 60


@pytest.mark.anyio
async def test_an_open_question_keeps_few_requests_and_no_answer() -> None:
    with serving(*[(200, ANSWER)] * (CALLS + 1)) as provider:
        model = HostedModel("openai/x", ModelSettings(api_base=f"{provider.address}/v1"), api_key="k")
        meter = Meter({"": model})
        async with Gateway("x") as gateway, httpx.AsyncClient(timeout=30) as web, anyio.create_task_group() as group:
            with gateway.open_session(meter, {}) as session:
                group.start_soon(session.serve)

                async def ask(number: int) -> None:
                    messages = [{"role": "user", "content": f"{number} {TEXT}"}]
                    address = f"{gateway.address(session)}/v1/chat/completions"
                    answer = await web.post(address, json={"model": "x", "messages": messages})
                    assert answer.json() == ANSWER
                    provider.requests.clear()

                await ask(0)
                tracemalloc.start()
                before, _ = tracemalloc.get_traced_memory()
                for number in range(1, CALLS + 1):
                    await ask(number)
                collect_without_warnings()  # also of agents' threads in earlier tests, which may only end now
                after, _ = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                group.cancel_scope.cancel()
        await model.aclose()
    assert len(meter.calls) == CALLS + 1
    assert after - before < CALLS * len(TEXT) / 2
