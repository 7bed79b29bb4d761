"""What a user names -> files: a file or a folder, an address, or standard input.

    with local_files(["runs.json", "https://example.org/runs.json.gz", "-"]) as paths:
        ...

A file at an address is fetched from that host alone, over HTTP, within an hour; standard input and what a shell offers
as a file (`<(zcat runs.gz)`) are copied. Neither may have more than 4 GB.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import aiohttp
import anyio

from rewoo_bench.errors import UsageError
from rewoo_bench.system.http_session import open_session
from rewoo_bench.text.escaping import plain_line
from rewoo_bench.text.redaction import hide_credentials

_LARGEST = 4 * 2**30  # bytes of a file that is fetched or copied
_LONGEST_S = 3600
_PATIENCE_S = 60.0
_LEAST = 1 << 16  # bytes that have to come within that time
_MOST_REDIRECTS = 10
_LONGEST_NAME = 80  # characters, of up to three bytes each


def name_of(given: str) -> str:
    """The name of a file that a user names, without characters that can't be shown, and without credentials."""
    name = "stdin" if given == "-" else Path(unquote(urlsplit(given).path) if _is_address(given) else given).name
    return "".join(each if each.isprintable() else "_" for each in name)[-_LONGEST_NAME:]


@contextmanager
def local_files(given: Iterable[str], patience_s: float = _PATIENCE_S) -> Iterator[list[Path]]:
    """The files and folders that are given, those that are no files of this machine copied first. Raises `UsageError`.

    An address has `patience_s` for its answer, and again for each next 64 KB.
    """
    with TemporaryDirectory(prefix="rewoo-bench-") as folder:
        paths = []
        for number, each in enumerate(given):
            own = Path(folder, str(number))
            path = Path(each)
            if _is_address(each):
                path = _new_file(own, each)
                _fetch(each, path, patience_s)
            elif each == "-" or (path.is_fifo() and path.parts[:2] in (("/", "dev"), ("/", "proc"))):
                path = _new_file(own, each)
                with open(0 if each == "-" else each, "rb", closefd=each != "-") as source, path.open("wb") as file:
                    while piece := source.read(1 << 20):
                        _write(file, piece, each)
            elif not path.exists():
                raise UsageError(f"no such file or folder: {each!r}")
            elif not (path.is_file() or path.is_dir()):
                raise UsageError(f"{each!r} is a pipe or a device: give a file, or '-' and write to standard input")
            paths.append(path)
        yield paths


def _is_address(given: str) -> bool:
    return given.lower().startswith(("http://", "https://"))


def _new_file(folder: Path, given: str) -> Path:
    folder.mkdir()
    return folder / (name_of(given) or "fetched.json")


def _write(file: IO[bytes], piece: bytes, shown: str) -> None:
    file.write(piece)
    if file.tell() > _LARGEST:
        raise UsageError(f"{shown}: more than {_LARGEST >> 30} GB; give it as a file")


def _fetch(address: str, path: Path, patience_s: float) -> None:
    """Fetches a file. What the server says chooses no other host."""
    shown = hide_credentials(address)
    try:
        with path.open("wb") as file:
            anyio.run(partial(_download, address, file, patience_s))
    except aiohttp.ClientPayloadError:
        raise UsageError(f"{shown}: can't be fetched: it broke off after {path.stat().st_size:,} bytes") from None
    except TimeoutError as error:
        raise UsageError(f"{shown}: can't be fetched: {error or f'no answer within {patience_s:g} s'}") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        said = plain_line(hide_credentials(str(error))) or type(error).__name__
        raise UsageError(f"{shown}: can't be fetched: {said}") from None


async def _download(address: str, file: IO[bytes], patience_s: float) -> None:
    """Raises as aiohttp does, `TimeoutError`, and `OSError` for an answer that isn't the file."""
    timeout = aiohttp.ClientTimeout(total=_LONGEST_S, sock_connect=patience_s, sock_read=patience_s)
    for _ in range(_MOST_REDIRECTS):
        async with open_session(address, timeout=timeout) as session:
            with anyio.fail_after(patience_s):
                response = await session.get(address, allow_redirects=False)
            async with response:
                if 300 <= response.status < 400 and "Location" in response.headers:
                    address = _redirected(address, response.headers["Location"])
                    continue
                if response.status != 200:
                    raise OSError(f"HTTP {response.status} {response.reason}")
                await _save(response, file, hide_credentials(address), patience_s)
                return
    raise OSError(f"more than {_MOST_REDIRECTS} redirects")


def _redirected(address: str, location: str) -> str:
    """The address that a server leads to. Raises `OSError` for another host, and for one that is less safe."""
    old, new = urlsplit(address), urlsplit(urljoin(address, location))
    host = new.netloc.rpartition("@")[2]
    if host != old.netloc.rpartition("@")[2] or new.scheme not in ("https", old.scheme):
        raise OSError(f"it leads to another address, which you may give yourself: {hide_credentials(new.geturl())}")
    return urlunsplit(new._replace(netloc=old.netloc))


async def _save(response: aiohttp.ClientResponse, file: IO[bytes], shown: str, patience_s: float) -> None:
    since, before = time.monotonic(), 0
    async for piece in response.content.iter_chunked(1 << 16):
        _write(file, piece, shown)
        if time.monotonic() - since > patience_s:
            if file.tell() - before < _LEAST:
                raise TimeoutError(f"fewer than {_LEAST >> 10} KB in {patience_s:g} s")
            since, before = time.monotonic(), file.tell()
