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
from collections.abc import Collection, Sequence
from typing import Any

from rewoo_bench.errors import ModelError, causes
from rewoo_bench.models.hosted.http_endpoint import BadAnswer, HTTPFailure, Redirected, Unreachable
from rewoo_bench.system.http_session import NUMBER, retry_after_s
from rewoo_bench.text.json_text import load_json
from rewoo_bench.text.redaction import redact

# Timeout, conflict (a lock), too early, too many requests; and every 5xx.
_RETRYABLE = frozenset({408, 409, 425, 429})
_LONGEST = 300

_PREFIXES = re.compile(r"^(?:(?:litellm\.)?[\w-]*(?:Error|Exception|Timeout)\b[\s:-]*)+")
# llama.cpp's "exceeds the available context size" is one that litellm doesn't know.
_CONTEXT = re.compile(r"context (?:length|size|window)", re.IGNORECASE)
_UNREAD_REPLY = re.compile(r"model produced output that does not match")  # llama-server's 500, of a bad tool call
_BROKEN = "aiohttp.ClientError openai.APIConnectionError httpx.TransportError"  # connections


def expected() -> tuple[type[Exception], ...]:
    """All exceptions of a call: ours, aiohttp's, and the base class of litellm's."""
    return (
        HTTPFailure,
        Redirected,
        Unreachable,
        BadAnswer,
        OSError,
        *_loaded("aiohttp.ClientError openai.OpenAIError"),
    )


def refusal(error: BaseException) -> tuple[int | None, str]:
    """The HTTP status of a failed call, and the whole text of the endpoint's error."""
    chain = list(causes(error, suppressed=True))
    bodies = (getattr(getattr(cause, "response", None), "text", None) for cause in chain)
    body = next((text for text in bodies if isinstance(text, str) and text.lstrip().startswith("{")), None)
    return _status(chain), body or str(chain[0])


def to_model_error(error: Exception, name: str, *, timeout: float, secrets: Collection[str] = ()) -> ModelError:
    """The error of a failed call of the model `name`. `timeout` (seconds) is for the message.

    It is not to be chained: a provider's message may repeat the key.
    """

    def failed(message: str, status: int | None = None, **facts: Any) -> ModelError:
        line = redact(" ".join(message.split()), secrets)
        return ModelError(line if len(line) <= _LONGEST else line[:_LONGEST] + " …", status=status, **facts)

    if (bad := unreadable_answer(error)) is not None:
        return failed(f"{name!r} sent {bad}", retryable=True)
    chain = list(causes(error, suppressed=True))
    ours = [cause for cause in chain if not type(cause).__module__.startswith("litellm")]
    for cause in chain:
        if isinstance(cause, Redirected):
            return failed(f"{name!r} answered {cause.status_code}: {cause}", cause.status_code)
    status, said = _status(chain), _provider_message(chain)
    if type(error).__name__ == "ContextWindowExceededError" or (status in (400, 413) and _CONTEXT.search(said)):
        return failed(f"{name!r}: the prompt is longer than the model's context: {said}", status)
    if any(isinstance(cause, (Unreachable, *_loaded("httpx.ConnectTimeout"))) for cause in ours):
        return failed(f"{name!r}: the server can't be reached", retryable=True, unreachable=True)
    for cause in ours:
        if isinstance(cause, (HTTPFailure, *_loaded("openai.APIStatusError httpx.HTTPStatusError"))):
            break
        if isinstance(cause, _loaded("aiohttp.ClientConnectorError")):
            text = str(cause).replace(" ssl:default", "")
            return failed(f"{name!r}: the connection failed: {text}", retryable=True, unreachable=True)
        if isinstance(cause, (TimeoutError, *_loaded("openai.APITimeoutError httpx.TimeoutException"))):
            return failed(f"{name!r}: no answer within {timeout:g} s", retryable=True, timed_out=True)
        if isinstance(cause, (OSError, *_loaded(_BROKEN))):
            text = " ".join(str(ours[-1]).split()) or type(ours[-1]).__name__
            return failed(f"{name!r}: the connection failed or broke off: {text}", retryable=True)
    # An error without a status came inside a 200, or from litellm: another attempt may succeed.
    retryable = status is None or status in _RETRYABLE or status >= 500
    answered = f"answered {status}" if status else "failed"
    facts = {
        "retryable": retryable,
        "retry_after": _retry_after(chain),
        "unread_reply": _UNREAD_REPLY.search(said) is not None,
    }
    return failed(f"{name!r} {answered}: {said}", status, **facts)


def is_untranslatable(error: Exception) -> bool:
    """Whether litellm failed with a request before it was sent, for a reason of its own: it calls that a status 500."""
    if not isinstance(error, expected()):
        return True
    others = [cause for cause in causes(error, suppressed=True) if not type(cause).__module__.startswith("litellm")]
    is_sent = any(isinstance(cause, (HTTPFailure, Unreachable, OSError, *_loaded(_BROKEN))) for cause in others)
    return not is_sent and getattr(error, "status_code", None) == 500


def _loaded(names: str) -> tuple[type[Exception], ...]:
    """Exceptions such as "httpx.TransportError", of packages that were imported: no other can have raised anything.

    Of a package that another thread is importing, an exception may not be there yet.
    """
    pairs = (name.split(".") for name in names.split())
    found = (getattr(sys.modules.get(package), error, None) for package, error in pairs)
    return tuple(each for each in found if each is not None)


def unreadable_answer(error: BaseException) -> BadAnswer | None:
    """The unreadable response that made a call fail, read by us or by litellm; else None."""
    for cause in causes(error, suppressed=True):
        if isinstance(cause, BadAnswer):
            return cause
        if isinstance(cause, json.JSONDecodeError):
            return BadAnswer(f"an answer that isn't JSON: {cause}", cause.doc)
    return None


def _status(chain: Sequence[BaseException]) -> int | None:
    given = (getattr(cause, "status_code", None) for cause in chain)
    return next((status for status in given if isinstance(status, int) and status >= 400), None)


def _provider_message(chain: Sequence[BaseException]) -> str:
    """The provider's message: that of its error object, else litellm's without its labels."""
    for cause in chain:
        body = getattr(cause, "body", None)
        if isinstance(body, dict) and isinstance(body.get("message"), str):
            return str(body["message"])
    text = _PREFIXES.sub("", str(chain[0])) or type(chain[0]).__name__
    try:
        return str(load_json(text)["error"]["message"])
    except (ValueError, TypeError, LookupError):
        return text


def _retry_after(chain: Sequence[BaseException]) -> float | None:
    """The wait that the provider asks for, in seconds: `retry-after-ms`, or `Retry-After` as seconds or a date."""
    for cause in chain:
        headers: Any = (
            getattr(cause, "litellm_response_headers", None)
            or getattr(getattr(cause, "response", None), "headers", None)
            or getattr(cause, "headers", None)
        )
        if headers and (wait := headers.get("retry-after-ms")) and NUMBER.fullmatch(wait):
            return float(wait) / 1000
        if headers and (wait := headers.get("retry-after")):
            return retry_after_s(wait)
    return None
