"""Wikipedia against a real HTTP server on loopback that answers as the MediaWiki API does."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from rewoo_bench.errors import ToolError
from rewoo_bench.tools import Lookup, LookupArguments, PageState, SearchArguments, Wikipedia
from rewoo_bench.types import Tool

PAGES = {
    "Ada Quill": "Ada Quill was a harbour pilot.\nShe wrote on tides.",
    "Bergen": "Bergen is a city with a harbour.",
    "Mercury (planet)": "Mercury is the planet nearest to the Sun.",
    "Mercury": "Mercury may mean:",
}
REDIRECTS = {"A. Quill": "Ada Quill"}
Reply = tuple[int, dict[str, str], bytes]


def page(title: str, index: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"pageid": 7, "ns": 0, "title": title, "extract": PAGES[title]}
    found |= {"pageprops": {"disambiguation": ""}} if title == "Mercury" else {}
    return found | ({"index": index} if index is not None else {})


def as_mediawiki(query: dict[str, str]) -> dict[str, Any]:
    """The answer of api.php?action=query with formatversion=2."""
    assert query["action"] == "query"
    assert (query["format"], query["formatversion"], query["maxlag"]) == ("json", "2", "5")
    if query.get("generator") == "search":
        words = set(query["gsrsearch"].lower().split())
        found = [title for title, text in PAGES.items() if words & set(re.findall(r"\w+", f"{title} {text}".lower()))]
        ranked = [page(title, index) for index, title in enumerate(found, start=1)]
        return {"batchcomplete": True, **({"query": {"pages": ranked[::-1]}} if ranked else {})}
    title = REDIRECTS.get(query["titles"], query["titles"])
    if query["prop"] == "links":
        return {
            "query": {
                "pages": [
                    {
                        "title": title,
                        "links": [{"ns": 0, "title": "Mercury (planet)"}, {"ns": 0, "title": "Mercury FM"}],
                    }
                ]
            }
        }
    if title not in PAGES:
        return {"query": {"pages": [{"ns": 0, "title": title, "missing": True}]}}
    return {"query": {"pages": [page(title)]}}


@dataclass
class Server:
    """What arrived, and answers to give before the usual ones."""

    url: str
    requests: list[dict[str, str]] = field(default_factory=list)
    user_agents: list[str] = field(default_factory=list)
    first: list[Reply] = field(default_factory=list)
    always: Reply | None = None
    delay_s: float = 0.0


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
            known.requests.append(query)
            known.user_agents.append(self.headers["User-Agent"])
            time.sleep(known.delay_s)
            reply = known.first.pop(0) if known.first else known.always
            status, headers, body = reply or (200, {}, json.dumps(as_mediawiki(query)).encode())
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            with suppress(BrokenPipeError, ConnectionResetError):  # a client that no longer waits
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        known = Server(f"http://127.0.0.1:{http.server_address[1]}/w/api.php")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield known
        http.shutdown()
        thread.join()


def wikipedia(server: Server, **settings: Any) -> Wikipedia:
    return Wikipedia(base_url=server.url, **{"backoff_s": 0.01, "timeout_s": 5.0, **settings})


async def ask(tool: Tool, query: str) -> str:
    return await tool(SearchArguments(query=query))


@pytest.mark.anyio
@pytest.mark.parametrize("asked", ["Ada Quill", "A. Quill", " Ada\nQuill "])
async def test_a_title_or_a_redirect_gives_the_first_paragraph(server: Server, asked: str) -> None:
    assert await ask(wikipedia(server), asked) == "Ada Quill: Ada Quill was a harbour pilot."
    assert len(server.requests) == 1


@pytest.mark.anyio
async def test_no_such_title_gives_the_best_match_of_a_search(server: Server) -> None:
    assert await ask(wikipedia(server), "harbour quill") == "Ada Quill: Ada Quill was a harbour pilot.\nSimilar: Bergen"
    assert (await ask(wikipedia(server), "nearest")).startswith("No page titled 'nearest'. Nearest: Mercury (planet)\n")
    assert await ask(wikipedia(server), "zeppelin") == "No results for 'zeppelin'."


@pytest.mark.anyio
async def test_a_disambiguation_page_gives_its_options_and_the_best_of_them(server: Server) -> None:
    assert (await ask(wikipedia(server), "Mercury")).split("\n") == [
        "'Mercury' may refer to: Mercury (planet); Mercury FM",
        "Mercury (planet): Mercury is the planet nearest to the Sun.",
    ]


@pytest.mark.anyio
async def test_lookup_reads_on_in_the_page_found(server: Server) -> None:
    state = PageState()
    tools: dict[str, Tool] = {"Wikipedia": Wikipedia(base_url=server.url, state=state), "Lookup": Lookup(state)}
    await ask(tools["Wikipedia"], "Ada Quill")
    assert await tools["Lookup"](LookupArguments(keyword="tides")) == "(Result 1 / 1) She wrote on tides."


@pytest.mark.anyio
async def test_every_request_says_who_asks(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    await ask(wikipedia(server, contact="me@example.org"), "nothing of the kind")
    monkeypatch.setenv("REWOO_BENCH_CONTACT", "you@example.org")
    await ask(wikipedia(server), "Bergen")
    assert [agent.startswith("rewoo-bench/") for agent in server.user_agents] == [True] * 3
    assert [agent.split("(")[1] for agent in server.user_agents] == ["me@example.org)"] * 2 + ["you@example.org)"]


LAG = json.dumps({"error": {"code": "maxlag", "info": "Waiting for 10.0.0.1: 6 seconds lagged"}}).encode()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "fault",
    [
        (429, {"Retry-After": "0"}, b""),
        (503, {}, b"busy"),
        (200, {"Retry-After": "0"}, LAG),
        (200, {}, b'{"query": {"pa'),
    ],
)
async def test_a_passing_fault_is_tried_again(server: Server, fault: Reply) -> None:
    server.first = [fault, fault]
    assert (await ask(wikipedia(server), "Bergen")).startswith("Bergen: ")
    assert len(server.requests) == 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "attempts", "message"),
    [
        ((500, {}, b""), 3, "no answer after 3 attempts: HTTP 500"),
        ((429, {"Retry-After": "3600"}, b""), 1, "no answer after 1 attempts: HTTP 429"),
        ((403, {}, b""), 1, "refused: HTTP 403"),
        ((200, {}, b'{"error": {"code": "badvalue", "info": "Unknown"}}'), 1, "refused: badvalue: Unknown"),
    ],
)
async def test_a_lasting_fault_is_a_tool_error(server: Server, fault: Reply, attempts: int, message: str) -> None:
    server.always = fault
    with pytest.raises(ToolError, match=message):
        await ask(wikipedia(server, max_retries=2), "Bergen")
    assert len(server.requests) == attempts


@pytest.mark.anyio
async def test_a_server_that_is_slow_or_gone_is_a_tool_error(server: Server) -> None:
    server.delay_s = 0.5
    with pytest.raises(ToolError, match="after 2 attempts: SocketTimeoutError"):
        await ask(wikipedia(server, timeout_s=0.1, max_retries=1), "Bergen")
    with pytest.raises(ToolError, match="after 1 attempts: ClientConnectorError"):
        await ask(Wikipedia(base_url="http://127.0.0.1:1/w/api.php", max_retries=0), "Bergen")
