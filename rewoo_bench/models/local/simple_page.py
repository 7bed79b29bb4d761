"""Pages of a package index: the JSON form and the HTML form of the simple API.

    parse_html('<a href="../files/a-1.whl#sha256=0f17…">a-1.whl</a>', "https://example.org/simple/a/")
        -> [WheelLink("https://example.org/simple/files/a-1.whl", "0f17…")]

Source: https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import SplitResult, parse_qs, unquote, urljoin, urlsplit, urlunsplit


@dataclass(frozen=True, slots=True)
class WheelLink:
    """A link to a file. `sha256` is None where the page has none."""

    url: str
    sha256: str | None = None

    @property
    def filename(self) -> str:
        return unquote(urlsplit(self.url).path).rpartition("/")[2]


def parse_json(text: str, url: str) -> list[WheelLink]:
    """The links of a page in the JSON form. Raises `ValueError` for anything else."""
    try:
        files = json.loads(text)["files"]
        return [WheelLink(urljoin(url, file["url"]), (file.get("hashes") or {}).get("sha256")) for file in files]
    except (LookupError, TypeError, AttributeError):
        raise ValueError("no list of files with their URLs") from None


def parse_html(text: str, url: str) -> list[WheelLink]:
    """The links of a page in the HTML form; a hash is in the fragment, `…whl#sha256=…`."""
    page = _Anchors()
    page.feed(text)
    whole = [urlsplit(urljoin(urljoin(url, page.base), anchor)) for anchor in page.anchors]
    return [WheelLink(urlunsplit(link._replace(fragment="")), _sha256(link)) for link in whole]


class _Anchors(HTMLParser):
    """Addresses of a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.anchors: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href")
        if address and tag == "base":
            self.base = address
        elif address and tag == "a":
            self.anchors.append(address)


def _sha256(link: SplitResult) -> str | None:
    hashes = parse_qs(link.fragment).get("sha256")
    return hashes[0] if hashes else None
