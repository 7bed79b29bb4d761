"""A package index on this machine, served over HTTP as pip would see it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HTML = "text/html"


def page_of(*links: tuple[str, str]) -> bytes:
    """A page of an index: addresses of files, each with its sha256."""
    return "".join(f'<a href="{url}#sha256={sha256}">{url.rpartition("/")[2]}</a>' for url, sha256 in links).encode()


@dataclass
class SimpleIndex:
    """What is served by path, with its content type; `asked` are paths."""

    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    credentials: str | None = None
    asked: list[str] = field(default_factory=list)
    host: str = ""

    @property
    def url(self) -> str:
        return f"http://{self.host}/simple"


@contextmanager
def serving(index: SimpleIndex) -> Iterator[SimpleIndex]:
    """The index, listening on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, index)

        def do_HEAD(self) -> None:  # uv asks for the size of a wheel before it reads a part of it
            _answer(self, index)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.host = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield index
        server.shutdown()
        thread.join()


def _answer(request: BaseHTTPRequestHandler, index: SimpleIndex) -> None:
    index.asked.append(request.path)
    if index.credentials and request.headers["Authorization"] != f"Basic {index.credentials}":
        request.send_error(401)
        return
    if request.path not in index.pages:
        request.send_error(404)
        return
    form, body = index.pages[request.path]
    request.send_response(200)
    request.send_header("Content-Type", form)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command == "GET":
        request.wfile.write(body)
