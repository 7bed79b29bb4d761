"""The client with streamed answers, against a real server whose books say what was asked and what it cost."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from answering import KEY, Script
from asking import ASK, client
from endpoints import THINKING
from model_server import ModelServer, ServerFault, ServerReply
from parts import Billing, Told

from rewoo_bench.calls.retry import RetryingModel
from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.types import Completion, Request, Usage

pytestmark = pytest.mark.anyio

PLAN = '1. Search("Malmö 🙂")\n2. join()'
BEGINNINGS = ["1. ", '1. Search("Malmö ', '1. Search("Malmö 🙂")\n', '1. Search("Malmö 🙂")\n2. ', PLAN]
CUT = ServerFault("cut_stream", message=PLAN, after=3)


async def ask(model: Any, **options: Any) -> tuple[Completion, list[str]]:
    shown: list[str] = []
    return await model.complete(Request(ASK, role="planner", on_text=shown.append, **options)), shown


@pytest.mark.parametrize("style", ["chat", "completion"])
async def test_a_text_is_shown_as_it_arrives_and_counted_as_any_other(style: Any) -> None:
    with ModelServer(Script(PLAN)) as server:
        async with client(server, prompt_form=style) as model:
            completion, shown = await ask(model, stop=["\nQuestion:"])
            whole = await model.complete(Request(ASK, role="planner", stop=["\nQuestion:"]))
        streamed, plain = (entry.request for entry in server.books)
        assert {name: value for name, value in streamed.items() if "stream" not in name} == plain
        assert (streamed["stream"], streamed["stream_options"]) == (True, {"include_usage": True})
        assert server.totals() == completion.usage + whole.usage
    assert shown == BEGINNINGS
    assert (completion.text, completion.finish_reason, completion.call_cost.usage_source) == (PLAN, "stop", "provider")
    assert (completion.text, completion.usage) == (whole.text, whole.usage)


async def test_a_call_with_tools_is_answered_whole(server: ModelServer) -> None:
    async with client(server) as model:
        _, shown = await ask(model, tools=[Told()])
    assert ("stream" in server.books[0].request, shown) == (False, [])


@pytest.mark.parametrize("form", [form for form in THINKING if form != "closing tag alone"])
async def test_thoughts_are_never_shown(form: str) -> None:
    def reply(_: dict[str, Any]) -> Any:
        return THINKING[form]({"messages": [{"content": ""}, {"content": "q00"}]})

    with ModelServer(reply) as server:
        async with client(server) as model:
            completion, shown = await ask(model)
    assert "wrong" in completion.thoughts
    assert not any("wrong" in text for text in shown)
    assert completion.text == shown[-1].strip()


@pytest.mark.parametrize("parameter", ["stream", "stream_options"])
async def test_an_endpoint_without_streams_is_asked_once_more_and_then_never(parameter: str) -> None:
    def reply(request: dict[str, Any]) -> str | ServerFault:
        said = f"Unsupported parameter: '{parameter}' is not supported with this model."
        return ServerFault(status=400, message=said, param=parameter) if parameter in request else PLAN

    with ModelServer(reply) as server:
        async with client(server) as model:
            for _ in range(2):
                completion, shown = await ask(model)
                assert (completion.text, shown) == (PLAN, [])
            assert model.sent() == {"left_out": ["stream"]}
        assert [entry.status for entry in server.books] == [400, 200, 200]
        assert not {"stream", "stream_options"} & server.books[-1].request.keys()


@pytest.mark.parametrize("fault", [CUT, ServerFault("error_event", message=PLAN, after=3)], ids=["cut", "error"])
async def test_a_stream_that_breaks_off_is_a_failed_attempt_and_is_shown_again(fault: ServerFault) -> None:
    with ModelServer(Script(fault, PLAN)) as server:
        async with client(server) as model:
            completion, shown = await ask(Billing(RetryingModel(model, base_delay=0.001)))
        last = server.books[-1].usage
    assert shown == [*BEGINNINGS[:3], *BEGINNINGS]
    assert (completion.text, completion.usage) == (PLAN, last)
    cost = completion.call_cost
    assert (cost.attempts, cost.usage_source) == (2, "provider")  # the answer's
    lost = cost.billed.total_tokens - completion.usage.total_tokens
    assert lost > 0


async def test_a_cancelled_stream_has_the_cost_of_what_arrived() -> None:
    with ModelServer(Script("word " * 200), token_delay_s=0.02) as server:
        async with client(server) as model:
            begun = anyio.Event()
            request = Request(ASK, role="planner", on_text=lambda text: begun.set() if len(text) > 20 else None)
            async with anyio.create_task_group() as group:
                group.start_soon(model.complete, request)
                await begun.wait()
                group.cancel_scope.cancel()
    assert request.bill.total.billed.output_tokens >= 4


async def test_a_key_that_a_server_repeats_is_not_shown() -> None:
    with ModelServer(Script(f"your key is {KEY} indeed")) as server:
        async with client(server) as model:
            completion, shown = await ask(model)
    assert KEY not in " ".join([completion.text, *shown])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of litellm's own use of pydantic
async def test_a_provider_behind_litellm_streams_too() -> None:
    with ModelServer(Script(ServerReply(PLAN, usage=Usage(70, 0, 9)))) as server:
        model = HostedModel("deepseek/deepseek-chat", ModelSettings(api_base=server.api_base), api_key=KEY)
        try:
            completion, shown = await ask(model)
        finally:
            await model.aclose()
        assert server.books[0].request["stream"] is True
    assert shown == BEGINNINGS
    assert (completion.text, completion.usage) == (PLAN, Usage(70, 0, 9))
