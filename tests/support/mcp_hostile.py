"""A hostile MCP server for tests, without the SDK: `python mcp_hostile.py MODE…`, over pipes or (`port=…`) over HTTP.

A mode is a way to start (`silent`, `garbage`, `dies`), to list tools (`names`), to live (`deaf_child`), or to answer
over HTTP (`redirect=URL`). The tools of any mode are named by what they answer with.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

MODES = dict(mode.partition("=")[::2] for mode in sys.argv[1:])
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
CONTENTS: dict[str, list[dict[str, Any]]] = {
    "image": [{"type": "image", "data": "AAA=", "mimeType": "image/png"}],
    "text_resource": [{"type": "resource", "resource": {"uri": "file:///a.md", "text": "of a"}}],
    "blob": [{"type": "resource", "resource": {"uri": "file:///b", "blob": "AAA=", "mimeType": "x/y"}}],
    "echo": [{"type": "text", "text": "ECHO"}],
}
ANSWERS: dict[str, Any] = {
    **{name: {"result": {"content": content}} for name, content in CONTENTS.items()},
    "tells_key": {"result": {"content": [{"type": "text", "text": f"it is {os.environ.get('SECRET')}"}]}},
}
OWN = ["note", "notes", "sleeps", "exits"]
NOTES: list[str] = []
LONG = "long" * 30
NAMES = ["a.b", "a/b", "files/read it", LONG + "1", LONG + "2", "поиск", "plain"]


def listed() -> dict[str, Any]:
    if "tools" in MODES:  # tools=,echo: one without a name; tools alone: none
        return {"tools": [tool(name) for name in MODES["tools"].split(",")] if "," in MODES["tools"] else []}
    names = NAMES if "names" in MODES else [*sorted(ANSWERS), *OWN]
    return {"tools": [tool(name, description=f"number {number}") for number, name in enumerate(names)]}


def tool(name: str, **more: Any) -> dict[str, Any]:
    hints = {"annotations": {"readOnlyHint": True}} if "read_only" in MODES or name == "notes" else {}
    return {"name": name, "inputSchema": SCHEMA, **hints, **more}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        info = {"name": "hostile", "version": "1"}
        about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        return {"result": about}
    if method == "tools/list":
        return {"result": listed()}
    if method != "tools/call":
        return {"error": {"code": -32601, "message": "no such method"}}
    name, said = params["name"], (params.get("arguments") or {}).get("text", "")
    if name not in OWN:
        return dict(json.loads(json.dumps(ANSWERS.get(name, ANSWERS["echo"])).replace("ECHO", json.dumps(said)[1:-1])))
    return {"result": {"content": [{"type": "text", "text": own(name, said)}]}}


def own(name: str, said: str) -> str:
    if name == "note":
        NOTES.append(said)
        if path := os.environ.get("NOTES"):
            with Path(path).open("a") as file:
                file.write(said + "\n")
    if name == "exits":
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "sleeps":
        time.sleep(float(said or 3600))
    kept = Path(os.environ.get("NOTES", "/nowhere"))
    written = kept.read_text().split() if kept.exists() else NOTES
    return f"{' '.join(written)}."


def start() -> None:
    if started := os.environ.get("STARTED"):
        with Path(started).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if "slow" in MODES:
        time.sleep(float(MODES["slow"]))
    if "deaf_child" in MODES:
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)  # has the server's pipes
        subprocess.Popen([sys.executable, "-c", code])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "dies" in MODES:
        print("first line\nno licence for the 13th floor", file=sys.stderr)
        sys.exit(1)
    if "silent" in MODES:
        print("waiting for a database", file=sys.stderr, flush=True)
        time.sleep(3600)
    while "garbage" in MODES:
        print("Welcome to the server!", flush=True)
        time.sleep(0.01)


def over_pipes() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}).encode()
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.buffer.flush()
    while "deaf_child" in MODES:
        time.sleep(3600)


class Handler(BaseHTTPRequestHandler):
    """Streamable HTTP: JSON answers; notes of each session apart. `GET /seen` shows the headers of all requests."""

    seen: ClassVar[list[dict[str, str]]] = []
    sessions: ClassVar[dict[str, list[str]]] = {}

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.reply(200, json.dumps({"seen": self.seen, "sessions": list(self.sessions)}).encode()) if (
            self.path == "/seen"
        ) else self.reply(405, b"")

    def do_DELETE(self) -> None:
        self.sessions.pop(self.headers.get("mcp-session-id", ""), None)
        self.reply(200, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
        if target := MODES.get("redirect"):
            return self.reply(307, b"", location=target)
        if (key := MODES.get("key")) and self.headers.get("authorization") != f"Bearer {key}":
            return self.reply(401, f"not your key: {self.headers.get('authorization')}".encode())
        message = json.loads(body)
        if "id" not in message:
            return self.reply(202, b"")
        session = self.headers.get("mcp-session-id")
        more = {}
        if message["method"] == "initialize":
            more["mcp-session-id"] = session = f"s{len(self.seen)}"
            self.sessions[session] = []
        NOTES[:] = self.sessions.get(session or "", [])
        answered = answer(message)
        if session:
            self.sessions[session] = list(NOTES)
        return self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answered}).encode(), **more)

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    start()
    if "port" in MODES:
        server = ThreadingHTTPServer(("127.0.0.1", int(MODES["port"])), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
    else:
        over_pipes()
