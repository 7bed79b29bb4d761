"""The question's tools over MCP: JSON-RPC 2.0 in HTTP requests ("streamable HTTP", answers as JSON, no session).

Source: modelcontextprotocol.io, specification of 2025-06-18.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from rewoo_bench.agents.session import AgentSession

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
_NO_JSON, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32601, -32602


async def answer_mcp(message: Any, session: AgentSession) -> dict[str, Any] | list[dict[str, Any]] | None:
    """The answer to a message, or to each of a batch; None for notifications.

    Raises `LimitReached` or `SessionClosed`.
    """
    if isinstance(message, list) and message:
        answers = [await _answer(each, session) for each in message]
        return [answer for answer in answers if answer is not None] or None
    return await _answer(message, session)


async def _answer(message: Any, session: AgentSession) -> dict[str, Any] | None:
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return _error(None, _INVALID_REQUEST, "expected a JSON-RPC request")
    if "id" not in message:
        return None
    number, method = message["id"], message["method"]
    params: dict[str, Any] = message["params"] if isinstance(message.get("params"), dict) else {}
    if method == "initialize":
        return _result(number, _initialized(params))
    if method == "ping":
        return _result(number, {})
    if method == "tools/list":
        return _result(number, {"tools": [_description(tool) for tool in session.tools.values()]})
    if method != "tools/call":
        return _error(number, _NO_METHOD, f"no method {method!r}")
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or name not in session.tools or not isinstance(arguments, dict):
        return _error(number, _INVALID_PARAMS, f"no tool {name!r}; available: {', '.join(session.tools)}")
    observation = await session.call_tool(name, arguments)
    content = [{"type": "text", "text": observation.text}]
    return _result(number, {"content": content, "isError": observation.failed})


def unreadable(message: str) -> dict[str, Any]:
    """The answer to a request that is no JSON."""
    return _error(None, _NO_JSON, message)


def _initialized(params: dict[str, Any]) -> dict[str, Any]:
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "rewoo_bench", "version": version("rewoo-bench")},
    }


def _description(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.arguments.model_json_schema()}


def _result(number: Any, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
