"""The embedded model streams: the same text and the same counts as whole, held to a grammar."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Literal

import pytest

from rewoo_bench.models.hosted.client import HostedModel, ModelSettings
from rewoo_bench.models.hosted.providers import route_to_ours
from rewoo_bench.models.local.catalogue import fetch, find_local_model
from rewoo_bench.models.local.server import ServerSettings, serve
from rewoo_bench.runners.notation.grammars import numbered_grammar
from rewoo_bench.runners.notation.plan_formats import complete_steps, read_plan
from rewoo_bench.types import Message, Request

pytestmark = [pytest.mark.model, pytest.mark.anyio, pytest.mark.timeout(600)]
ASK = [Message("system", "Write a plan of tasks."), Message("user", "Question: How high is Mont Blanc?")]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("style", ["completion"])
async def test_a_streamed_plan_is_the_same_plan_whole(style: Literal["completion", "chat"]) -> None:
    shown: list[str] = []
    grammar = numbered_grammar(["Search", "LLM"], 2)
    async with serve(fetch(find_local_model("smollm2-135m")), ServerSettings(context=1024)) as servers:
        route = partial(route_to_ours, "tiny", servers.all[0].api_base)
        model = HostedModel(
            "local/tiny",
            ModelSettings(api_base=servers.all[0].api_base, prompt_form=style, constrain="grammar"),
            api_key="none",
            find_route=route,
        )
        try:
            streamed = await model.complete(Request(ASK, role="planner", grammar=grammar, on_text=shown.append))
            whole = await model.complete(Request(ASK, role="planner", grammar=grammar))
        finally:
            await model.aclose()
    assert streamed.text == whole.text == shown[-1]
    assert len(shown) > 5
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))
    assert (streamed.usage.input_tokens, streamed.usage.output_tokens) == (
        whole.usage.input_tokens, whole.usage.output_tokens
    )  # fmt: skip
    assert streamed.call_cost.usage_source == "provider"
    plan = read_plan(streamed.text, "numbered")
    assert complete_steps(next(text for text in shown if "\n" in text)) == list(plan.steps[:1])
