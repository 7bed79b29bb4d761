"""Takes secrets out of text that is shown or written down.

redact("key sk-proj-abcdef123456")                                      # "key [key]"
redact("can't reach http://me:hunter22@host/v1")                        # "can't reach http://***@host/v1"
without("I got Basic bWU6aHVudGVyMjI=", sent_in("http://me:hunter22@host/v1"))   # "I got Basic [key]"
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

HIDDEN = "***"
_KEYS = re.compile(
    r"\b(?:Bearer\s+\S+|Basic\s+(?=\S*[A-Z0-9=])[\w+/-]{6,}=*|(?:sk|pk|gsk|xai|AIza)[-_][\w*.-]{6,}|AIza[\w*-]{8,})"
)
_SURE_KEYS = re.compile(r"\b(?:(?:sk|pk|gsk|xai)[-_](?=[\w-]*\d)[\w-]{20,}|AIza[\w-]{30,})")
_USER_INFO = re.compile(r"(://)[^/\s?#]*@")
_OF_ENVIRONMENT = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_SHORTEST = 8
_SURELY_NO_WORD = 16  # letters


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """`text` without the given secrets, those of the environment, user info in addresses, and what looks like a key.

    For errors and settings. A model's answer is read by `without`, which guesses nothing.
    """
    return _KEYS.sub("[key]", hide_user_info(without(text, {*secrets, *of_environment()})))


def without(text: str, secrets: Collection[str]) -> str:
    """`text` with "[key]" in the place of each secret, the longest first, since one may be a part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:  # a placeholder such as "none" isn't one, and would eat words
            text = text.replace(secret, "[key]")
    return text


def without_in(value: Any, secrets: Collection[str]) -> Any:
    """The same for all texts in a JSON-like value, the keys of objects included."""
    if isinstance(value, str):
        return without(value, secrets)
    if isinstance(value, Mapping):
        return {without_in(name, secrets): without_in(each, secrets) for name, each in value.items()}
    return [without_in(each, secrets) for each in value] if isinstance(value, list | tuple) else value


def hide_user_info(text: str) -> str:
    """`https://me:secret@host` as `https://***@host`. All of it: a user's name may be the token."""
    return _USER_INFO.sub(rf"\1{HIDDEN}@", text)


def redact_settings(value: Any, secrets: Collection[str] = ()) -> Any:
    """A JSON-like value of settings without secrets. It is compared later, so only what is surely a key goes."""
    known = {*secrets, *of_environment()}

    def shown(value: Any) -> Any:
        if isinstance(value, str):
            return _SURE_KEYS.sub("[key]", hide_user_info(without(value, known)))
        if isinstance(value, Mapping):
            return {name: shown(each) for name, each in value.items()}
        return [shown(each) for each in value] if isinstance(value, list | tuple) else value

    return shown(value)


def sent_in(api_base: str | None, keys: Iterable[str | None] = ()) -> frozenset[str]:
    """Every form in which a request's credentials can come back: of the keys, and of the user info of its address.

    A short or wordlike key ("none", "not-needed") is a placeholder; to replace it would eat words of answers.
    """
    user_info = urlsplit(api_base).netloc.rpartition("@")[0] if api_base else ""
    user, _, password = user_info.partition(":")
    plain = [key for key in (*keys, user_info, password, unquote(password)) if key and _is_secret(key)]
    if not password and _is_secret(unquote(user)):
        plain.append(unquote(user))  # a bare token
    pairs = [f"{unquote(user)}:{unquote(password)}"] if user_info else []
    # However short the password is: its pair in Base64 is no word.
    return frozenset(form for pair in pairs for form in _in_base64(pair) if len(form) >= _SHORTEST) | frozenset(
        form for secret in (*plain, *filter(_is_secret, pairs)) for form in _forms(secret)
    )


def of_environment() -> frozenset[str]:
    """Keys, tokens and passwords in the environment's variables, and the user info of its proxies, in every form."""
    keys = [value for name, value in os.environ.items() if _OF_ENVIRONMENT.search(name.upper())]
    proxies = [os.environ.get(name) or os.environ.get(name.lower()) for name in _PROXIES]
    return sent_in(None, keys).union(*(sent_in(proxy) for proxy in proxies))


def _is_secret(text: str) -> bool:
    return len(text) >= _SURELY_NO_WORD or (len(text) >= _SHORTEST and re.search(r"[^a-z_-]", text) is not None)


def _forms(secret: str) -> Sequence[str]:
    escaped = [json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]]
    addresses = [quote(secret, safe=""), quote(secret), quote_plus(secret)]
    return [secret, *escaped, *addresses, escape(secret), *_in_base64(secret)]


def _in_base64(text: str) -> Sequence[str]:
    data = text.encode("utf-8", "surrogateescape")
    both = [b64encode(data).decode(), urlsafe_b64encode(data).decode()]
    return [form for each in both for form in (each, each.rstrip("="), quote(each, safe=""), each.replace("/", "\\/"))]
