"""The scripted model: its answers, its memory of what it was asked, and how it runs dry."""

from __future__ import annotations

import pytest

from rewoo_bench.errors import ModelError
from rewoo_bench.testing.scripted_model import ScriptedModel
from rewoo_bench.text.tokens import count_messages
from rewoo_bench.types import Completion, Message, Request, Usage

pytestmark = pytest.mark.anyio

ASK = Request([Message("user", "Which river?")], role="solver")


async def test_it_answers_in_order_counts_and_remembers() -> None:
    given = Completion("Rhine", Usage(7, 3, 1), finish_reason="length")
    model = ScriptedModel(["Seine", given, ModelError("busy")])
    completion = await model.complete(ASK)
    assert (completion.text, completion.usage) == ("Seine", Usage(count_messages(ASK.messages), output_tokens=2))
    assert completion.call_cost.usage_source == "estimated"
    assert await model.complete(ASK) is given
    with pytest.raises(ModelError, match="busy"):
        await model.complete(ASK)
    assert [request.messages for request in model.requests] == [tuple(ASK.messages)] * 3


async def test_each_role_has_its_own_lines_and_the_end_of_them_is_said() -> None:
    model = ScriptedModel({"planner": ["a plan"], "solver": ["an answer"]})
    assert (await model.complete(ASK)).text == "an answer"
    with pytest.raises(ModelError, match=r"1 replies for 'solver'.*'Which river\?'"):
        await model.complete(ASK)
