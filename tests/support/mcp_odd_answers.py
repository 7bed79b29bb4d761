"""An MCP server for tests that answers in JSON that the SDK doesn't write: `python mcp_odd_answers.py`, over pipes.

Its tools are named by what they answer with.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
ANSWERS: dict[str, Any] = {
    "half_a_pair": {"content": [{"type": "text", "text": "half \ud83d of a pair"}]},
    "raw_bytes": {"content": [{"type": "text", "text": "bytes RAW"}]},
    "echo": {"content": [{"type": "text", "text": "ECHO"}]},
    "cut": {"content": [{"type": "text", "text": "CUT"}]},
    "misfit": {"content": "no list"},
}
NAMES = sorted(ANSWERS)


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "odd", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": SCHEMA} for name in NAMES]}
    return ANSWERS[params["name"]] if method == "tools/call" else None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = result_of(message["method"], message.get("params") or {})
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        said = ((message.get("params") or {}).get("arguments") or {}).get("text", "")
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).replace("ECHO", said)
        data = text.encode().replace(b"RAW", b"\xff\xfe")
        sys.stdout.buffer.write(data.partition(b"CUT")[0] + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
