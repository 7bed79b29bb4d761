"""An HTTP server on this machine that answers each POST with the next of its documents, whatever the path."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JSONServer:
    """`answers` are (status, document) pairs; `requests` are (path, document) pairs, as they came."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, Any]] = []
        self.address = ""


@contextmanager
def serving(*answers: tuple[int, Any]) -> Iterator[JSONServer]:
    """A running server."""
    books = JSONServer(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("content-length", 0))
            books.requests.append((self.path, json.loads(self.rfile.read(size))))
            status, document = books.answers.pop(0)
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    books.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield books
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
