"""The model that a provider says has answered is kept for each call, and said where it isn't the one that was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from json_server import serving

import rewoo_bench
from rewoo_bench import Example

pytestmark = pytest.mark.anyio

QUESTION = [Example("q1", "Which river flows through Paris?", ("Seine",))]


@pytest.mark.parametrize(("answered", "is_said"), [("m-2026-01-31", False), ("another-one", True)])
async def test_the_model_that_answered_is_in_the_calls(
    tmp_path: Path, answered: str, is_said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    message = {"role": "assistant", "content": "Answer: the Seine"}
    answer: dict[str, Any] = {"model": answered, "choices": [{"message": message, "finish_reason": "stop"}]}
    with serving((200, answer)) as provider:
        options: dict[str, Any] = {"api_base": f"{provider.address}/v1", "out": tmp_path / "run", "progress": False}
        await rewoo_bench.evaluate(QUESTION, ["direct"], model="openai/m", **options)
    calls = pd.read_parquet(tmp_path / "run" / "calls.parquet")
    assert list(calls["answered_model"]) == [answered]
    assert any(answered in record.message for record in caplog.records) is is_said
