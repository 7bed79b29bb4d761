"""What all readers of recordings share: numbers, and which reply asked for a tool's call."""

from __future__ import annotations

from typing import Any

import pytest

from rewoo_bench.imports.record import ModelCall, ToolUse, asked_for, counted_usage
from rewoo_bench.imports.spans import span_parts
from rewoo_bench.types import ToolCall, Usage


@pytest.mark.parametrize("written", [lambda number: number, str])
def test_tokens_may_be_written_as_text(written: Any) -> None:
    given = {"prompt_tokens": written(120), "completion_tokens": written(7)}
    found = counted_usage({**given, "prompt_tokens_details": {"cached_tokens": written(64)}})
    assert found
    assert found.usage == Usage(120, 64, 7)


def test_a_tools_call_is_the_one_with_its_id_whatever_its_name() -> None:
    calls = [ToolCall("c1", "weather", {}), ToolCall("c2", "weather", {})]
    asked = ModelCall(None, tool_calls=calls)
    uses = [ToolUse("get_weather", None, "sun", call_id="c2"), ToolUse("weather", {}, "rain", agent="other")]
    assert [entry and entry.call.id for entry in asked_for([asked, *uses])] == [None, "c2", "c1"]


def test_a_span_that_cannot_be_read_costs_no_other_span() -> None:
    def span(number: int, value: str) -> dict[str, Any]:
        attribute = {"key": "gen_ai.usage.input_tokens", "value": {"intValue": value}}
        return {"traceId": "t", "spanId": f"s{number}", "name": "chat", "attributes": [attribute]}

    found: list[str] = []
    with pytest.raises(ValueError, match="span 2: "):
        found.extend(part["id"] for _, part in span_parts({"spans": [span(1, "5"), span(2, "x"), span(3, "6")]}))
    assert found == ["s1", "s3"]
