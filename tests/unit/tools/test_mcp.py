"""MCP servers: their notation, and the arguments that the schemas of their tools allow."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rewoo_bench.errors import UsageError
from rewoo_bench.tools.mcp import McpAddress, ToolSchema

ANY_OF = {"type": "object", "anyOf": [{"properties": {"q": {"type": "string"}}}, {"properties": {"r": {}}}]}
OPEN = {"type": "object", "properties": {"q": {"type": "string"}}, "additionalProperties": True}
CLOSED = {**OPEN, "additionalProperties": False}


def sent(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the server gets."""
    made = ToolSchema("find", None, schema).arguments.model_validate(arguments)
    return made.model_dump()


@pytest.mark.parametrize("schema", [ANY_OF, OPEN, {"type": "object"}])
def test_properties_that_a_schema_does_not_name_are_sent(schema: dict[str, Any]) -> None:
    assert sent(schema, {"q": "hi", "other": [1]}) == {"q": "hi", "other": [1]}


def test_a_closed_schema_refuses_them() -> None:
    assert sent(CLOSED, {"q": "hi"}) == {"q": "hi"}
    with pytest.raises(ValidationError, match="other"):
        sent(CLOSED, {"q": "hi", "other": 1})


def test_a_property_may_have_any_name() -> None:
    names = ["time-zone", "city", "copy", "model_name", "class", "read", "_x"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": ["city"]}
    assert sent(schema, {name: name for name in names}) == {name: name for name in names}


@pytest.mark.parametrize("flag", ["--api-key tk-12345678", "-e API_KEY=tk-12345678", "--header 'Cookie: tk-12345678'"])
def test_a_credential_behind_a_flag_is_refused(flag: str) -> None:
    with pytest.raises(UsageError, match=r"--mcp: .*: its value would stand in run\.json") as raised:
        McpAddress.read(f"some-server {flag}")
    assert "tk-1234" not in str(raised.value)


def test_a_variable_behind_a_flag_has_its_value_unless_the_server_has_one_of_that_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OF_MINE", "tk-12345678")
    address = McpAddress.read("HEADER='Bearer $OF_MINE' some-server --token=$OF_MINE 'Authorization: ${HEADER}'")
    words, values = address.filled("")
    assert words == ["some-server", "--token=tk-12345678", "Authorization: ${HEADER}"]
    assert values == {"HEADER": "Bearer tk-12345678"}
    assert "tk-12345678" in address.secrets
    with pytest.raises(UsageError, match="the variable OF_NOBODY isn't set"):
        McpAddress.read("some-server --token $OF_NOBODY").filled("")
