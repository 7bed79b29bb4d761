"""The process of a llama.cpp server: how it knows that a user's program is ready."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from rewoo_bench.models.local.server_process import is_ready


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 503)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing on standard error."""


def test_a_program_is_asked_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as server:
        thread = Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            assert is_ready(f"{address}/health")
            assert not is_ready(f"{address}/loading")
        finally:
            server.shutdown()
            thread.join()
