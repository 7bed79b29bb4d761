"""A failed call as a `ModelError`: one line without secrets, and whether to try again.

    litellm.RateLimitError(…)   ->  ModelError("'openai/x' answered 429: slow down", status=429, retryable=True)
    openai.APITimeoutError(…)   ->  ModelError("'openai/x': no answer within 120 s", retryable=True)

litellm reports a broken connection and an unreadable body as status 500, so the causes of its exceptions
are examined: `status` is set only where a provider sent one.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Collection, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from rewoo_bench.errors import ModelError, causes
from rewoo_bench.models.hosted.http_endpoint import BadAnswer, HTTPFailure, Redirected, Unreachable
from rewoo_bench.text.redaction import redact

# Timeout, conflict (a lock), too early, too many requests; and every 5xx.
_RETRYABLE = frozenset({408, 409, 425, 429})
_LONGEST = 300

_PREFIXES = re.compile(r"^(?:(?:litellm\.)?[\w-]*(?:Error|Exception|Timeout)\b[\s:-]*)+")
# llama.cpp's "exceeds the available context size" is one that litellm doesn't know.
_CONTEXT = re.compile(r"context (?:length|size|window)", re.IGNORECASE)


def expected() -> tuple[type[Exception], ...]:
    """All exceptions of a call: ours, aiohttp's, and the base class of litellm's."""
    ours = (HTTPFailure, Redirected, Unreachable, BadAnswer, OSError)
    return (*ours, *_loaded("aiohttp", "ClientError"), *_loaded("openai", "OpenAIError"))


def refusal(error: BaseException) -> tuple[int | None, str]:
    """The HTTP status of a failed call, and the whole text of the endpoint's error."""
    chain = list(causes(error, suppressed=True))
    bodies = (getattr(getattr(cause, "response", None), "text", None) for cause in chain)
    body = next((text for text in bodies if isinstance(text, str) and text.lstrip().startswith("{")), None)
    return _status(chain), body or str(chain[0])


def to_model_error(error: Exception, name: str, *, timeout: float, secrets: Collection[str] = ()) -> ModelError:
    """The error of a failed call of the model `name`. `timeout` (seconds) is for the message."""
    chain = list(causes(error, suppressed=True))
    ours = [cause for cause in chain if not type(cause).__module__.startswith("litellm")]
    for cause in chain:
        if isinstance(cause, Redirected):
            return _model_error(f"{name!r} answered {cause.status_code}: {cause}", secrets, cause.status_code)
    status = _status(chain)
    if type(error).__name__ == "ContextWindowExceededError" or (
        status in (400, 413) and _CONTEXT.search(_provider_message(chain))
    ):
        return _model_error(
            f"{name!r}: the prompt is longer than the model's context: {_provider_message(chain)}", secrets, status
        )
    if any(isinstance(cause, (Unreachable, *_loaded("httpx", "ConnectTimeout"))) for cause in ours):
        return ModelError(f"{name!r}: the server can't be reached", retryable=True, unreachable=True)
    for cause in ours:
        if isinstance(cause, (HTTPFailure, *_loaded("openai", "APIStatusError"), *_loaded("httpx", "HTTPStatusError"))):
            break
        if isinstance(cause, _loaded("aiohttp", "ClientConnectorError")):
            text = str(cause).replace(" ssl:default", "")
            return _model_error(f"{name!r}: the connection failed: {text}", secrets, retryable=True, unreachable=True)
        if isinstance(
            cause, (TimeoutError, *_loaded("openai", "APITimeoutError"), *_loaded("httpx", "TimeoutException"))
        ):
            return no_answer(name, timeout)
        if isinstance(cause, (OSError, *_broken_connections())):
            text = " ".join(str(ours[-1]).split()) or type(ours[-1]).__name__
            return _model_error(f"{name!r}: the connection failed or broke off: {text}", secrets, retryable=True)
    # An error without a status came inside a 200, or from litellm: another attempt may succeed.
    retryable = status is None or status in _RETRYABLE or status >= 500
    answered = f"answered {status}" if status else "failed"
    retry_after = _retry_after(chain)
    return _model_error(
        f"{name!r} {answered}: {_provider_message(chain)}",
        secrets,
        status,
        retryable=retryable,
        retry_after=retry_after,
    )


def is_untranslatable(error: Exception) -> bool:
    """Whether litellm failed with a request before it was sent, for a reason of its own: it calls that a status 500."""
    if not isinstance(error, expected()):
        return True
    others = [cause for cause in causes(error, suppressed=True) if not type(cause).__module__.startswith("litellm")]
    is_sent = any(isinstance(cause, (HTTPFailure, Unreachable, OSError, *_broken_connections())) for cause in others)
    return not is_sent and getattr(error, "status_code", None) == 500


def _broken_connections() -> tuple[type[Exception], ...]:
    return (
        *_loaded("aiohttp", "ClientError"),
        *_loaded("openai", "APIConnectionError"),
        *_loaded("httpx", "TransportError"),
    )


def _loaded(package: str, error: str) -> tuple[type[Exception], ...]:
    """An exception of a package, if the package was imported; else it can't have raised anything."""
    module = sys.modules.get(package)
    return (getattr(module, error),) if module else ()


def no_answer(name: str, timeout: float) -> ModelError:
    """The error for a call that took longer than `timeout` seconds."""
    return ModelError(f"{name!r}: no answer within {timeout:g} s", retryable=True)


def unreadable_answer(error: BaseException) -> BadAnswer | None:
    """The unreadable response that made a call fail, read by us or by litellm; else None."""
    for cause in causes(error, suppressed=True):
        if isinstance(cause, BadAnswer):
            return cause
        if isinstance(cause, json.JSONDecodeError):
            return BadAnswer(f"an answer that isn't JSON: {cause}", cause.doc)
    return None


def bad_answer(name: str, error: BadAnswer, secrets: Collection[str]) -> ModelError:
    """The error for a response that can't be read. Another attempt may succeed."""
    return _model_error(f"{name!r} sent {error}", secrets, retryable=True)


def _model_error(
    message: str,
    secrets: Collection[str],
    status: int | None = None,
    *,
    retryable: bool = False,
    retry_after: float | None = None,
    unreachable: bool = False,
) -> ModelError:
    line = redact(" ".join(message.split()), secrets)
    shown = line if len(line) <= _LONGEST else line[:_LONGEST] + " …"
    return ModelError(shown, status=status, retryable=retryable, retry_after=retry_after, unreachable=unreachable)


def _status(chain: Sequence[BaseException]) -> int | None:
    for cause in chain:
        status = getattr(cause, "status_code", None)
        if isinstance(status, int) and status >= 400:
            return status
    return None


def _provider_message(chain: Sequence[BaseException]) -> str:
    """The provider's message: that of its error object, else litellm's without its labels."""
    for cause in chain:
        body = getattr(cause, "body", None)
        if isinstance(body, dict) and isinstance(body.get("message"), str):
            return str(body["message"])
    text = _PREFIXES.sub("", str(chain[0])) or type(chain[0]).__name__
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return text


def _retry_after(chain: Sequence[BaseException]) -> float | None:
    """The wait that the provider asks for, in seconds: `retry-after-ms`, or `Retry-After` as seconds or a date."""
    for cause in chain:
        headers: Any = (
            getattr(cause, "litellm_response_headers", None)
            or getattr(getattr(cause, "response", None), "headers", None)
            or getattr(cause, "headers", None)
        )
        if not headers:
            continue
        if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
            return milliseconds / 1000
        if wait := headers.get("retry-after"):
            seconds = _number(wait)
            return _until(wait) if seconds is None else seconds
    return None


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\s*\d+(\.\d+)?\s*", text) else None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, OSError):  # no date, or one outside of all calendars
        return None
