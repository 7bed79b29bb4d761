"""Connections over HTTP with the proxies and the certificates that this machine is set up for.

    async with open_session("https://en.wikipedia.org/w/api.php") as session, session.get(…) as response:
        ...

aiohttp is loaded on first use. Proxies come from HTTP_PROXY, HTTPS_PROXY and NO_PROXY; certificates from SSL_CERT_FILE
and SSL_CERT_DIR, else from the system and certifi.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import time
from base64 import b64encode
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from rewoo_bench.text.escaping import plain_line

if TYPE_CHECKING:
    import aiohttp


NUMBER = re.compile(r"\s*\d+(\.\d+)?\s*")


def open_session(url: str, *, connections: int = 100, trust_env: bool = True, **settings: Any) -> aiohttp.ClientSession:
    """A session for the host of `url`, with at most `connections` connections (0: no limit).

    `settings` are those of `aiohttp.ClientSession`; without `trust_env` no proxy is used.
    """
    import aiohttp

    checked_by = certificates() if url.startswith("https:") else True
    connector = aiohttp.TCPConnector(limit=connections, ssl=checked_by)
    return aiohttp.ClientSession(connector=connector, trust_env=trust_env, **settings)


def certificates() -> ssl.SSLContext:
    """What a server's certificate is checked by."""
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def basic_authorization(user: str, password: str) -> str:
    """The value of an Authorization header."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def retry_after_s(value: str | None) -> float | None:
    """Seconds from now in a Retry-After header, which has seconds or a date (RFC 9110, 10.2.3); None without either."""
    try:
        if value is None or NUMBER.fullmatch(value):
            return None if value is None else float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, OSError):  # no date, or one outside of all calendars
        return None


def server_log(name: str) -> logging.Logger:
    """A logger for a server of aiohttp: a request that can't be read is a line, without a traceback or controls."""
    logger = logging.getLogger(name)
    logger.addFilter(_one_line_of_a_request)
    return logger


def _one_line_of_a_request(record: logging.LogRecord) -> bool:
    from aiohttp.http_exceptions import HttpProcessingError

    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.msg, record.args, record.exc_info = plain_line(f"{record.getMessage()}: {error.message}"), (), None
    return True
