"""Removes secrets from text before it is shown or written.

redact("key sk-proj-abcdef123456")                                      # "key [key]"
redact("can't reach http://me:hunter22@host/v1")                        # "can't reach http://***@host/v1"
redact("can't reach http://host/v1?api_key=hunter22")                   # "can't reach http://host/v1?api_key=***"
without("I got Basic bWU6aHVudGVyMjI=", sent_in("http://me:hunter22@host/v1"))   # "I got Basic [key]"
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

HIDDEN = "***"
_KEYS = re.compile(
    r"\b(?:Bearer\s+[^\s\x22\x27]+|Basic\s+(?=\S*[A-Z0-9=])[\w+/-]{6,}=*|(?:sk|pk|gsk|xai|AIza)[-_][\w*.-]{6,}|AIza[\w*-]{8,})"
)
_SURE_KEYS = re.compile(r"\b(?:(?:sk|pk|gsk|xai)[-_][\w-]{20,}|AIza[\w-]{30,})")  # with a digit
_ISSUED = r"""
    \b(?:gh[opsru]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{20,} | (?:hf|npm)_[^\W_]{30,})
    | \b(?:xox[abeprs]-|ya29\.)[\w-]{10,} | \beyJ[\w-]{5,}\.eyJ[\w.-]* | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | -----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY(?:[^-]*-----[^-]*(?:-----END[ ][A-Z ]{0,40}PRIVATE[ ]KEY[^-]*-----)?)?
"""  # tokens that say themselves what they are
_TOKENS = re.compile(
    rf"""{_ISSUED} | (?<=Bearer[ ])[\w.~+/-]{{16,}}=* | (?i:(?<=aws_secret_access_key=)\S+)
    | (?i:(?<=password:[ ])[^\s,;]{{6,}}) | (?i:(?<=password=)[^\s,;&]{{6,}}) | (?i:(?<="password":[ ]")[^"]{{4,}})""",
    re.VERBOSE,
)
_USER_INFO = re.compile(r"(://)[^/\s?#]*@")
_CREDENTIAL = r"(?:[\w.-]*[_.-])?(?:key|apikey|token|sig|signature|password|secret)"
_IS_CREDENTIAL = re.compile(_CREDENTIAL, re.IGNORECASE)
_CREDENTIAL_PAIR = re.compile(rf"([?&]{_CREDENTIAL}=)(?!\$\w+(?:[&#\s\"'<>]|$))[^&#\s\"'<>]+", re.IGNORECASE)
_OF_ENVIRONMENT = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$")
# Broader, for what isn't passed on to other people's programs.
_CREDENTIAL_NAME = re.compile(
    r"""(?:^|_)(?:(?:API|ACCESS|SECRET)?KEYS?\d*(?:_\w+)?|PASS|PAT|AUTH(?:_CONFIG|_HEADER)?)$
    | (?:TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|_PWD|CREDENTIALS?|APIKEY)\d*$
    | WEBHOOK | CONN(?:ECTION)?_?STR(?:ING)?""",
    re.VERBOSE,
)
_CREDENTIAL_IN_VALUE = re.compile(
    rf"""{_ISSUED} | \b(?:password|pwd|\w*accesskey|accountkey)\s*=
    | ["']?\b(?:api[_-]?key|password|client_?secret|access_?token|refresh_?token|private_?key)["']?\s*[:=]
    | \b(?:authorization|x-api-key)["']?\s*[:=] | \bbearer\s+\S{{8}}
    | (?-i:\bBasic\s+(?=[\w+/-]*[0-9=])[\w+/-]{{8,}})
    | //hooks\.slack\.com/ | /api/webhooks/""",
    re.IGNORECASE | re.VERBOSE,
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_SHORTEST = 8
_SURELY_NO_WORD = 16  # letters


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """`text` without the given secrets, those of the environment, credentials in addresses, and likely keys.

    For errors and settings. For a model's answer use `without`, which guesses nothing.
    """
    return _KEYS.sub("[key]", hide_credentials(without(text, {*secrets, *of_environment()})))


def without(text: str, secrets: Collection[str]) -> str:
    """`text` with "[key]" instead of each secret."""
    for secret in _longest_first(frozenset(secrets)):
        text = text.replace(secret, "[key]")
    return text


@lru_cache(maxsize=64)
def _longest_first(secrets: frozenset[str]) -> Sequence[str]:
    """The longest first, since one may be a part of another. A short one is a placeholder, and would eat words."""
    return sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True)


def ends_within(text: str, secrets: Collection[str]) -> bool:
    """Whether the end of `text` is the beginning of a secret, four characters of it or more."""
    beginnings, longest = _beginnings(frozenset(secrets))
    return any(text[-size:] in beginnings for size in range(4, min(longest, len(text)) + 1))


@lru_cache(maxsize=64)
def _beginnings(secrets: frozenset[str]) -> tuple[frozenset[str], int]:
    """The beginnings of secrets, and the length of the longest one."""
    found = frozenset(each[:size] for each in _longest_first(secrets) for size in range(4, len(each)))
    return found, max(map(len, found), default=0)


def without_in(value: Any, secrets: Collection[str]) -> Any:
    """The same for all texts in a JSON-like value, including the keys of objects."""
    return _in_texts(value, lambda text: without(text, secrets))


def _in_texts(value: Any, change: Callable[[str], str], *, are_names_kept: bool = False) -> Any:
    """A JSON-like value with each text changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {
            name if are_names_kept else _in_texts(name, change): _in_texts(each, change, are_names_kept=are_names_kept)
            for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_in_texts(each, change, are_names_kept=are_names_kept) for each in value]
    return value


def hide_credentials(text: str) -> str:
    """Addresses without user info and without query parameters that hold a credential.

    `https://me:secret@host/v1?api_key=k` becomes `https://***@host/v1?api_key=***`. The user's name is hidden
    too: it may be the token. The name of a variable (`api_key=$KEY`) stays.
    """
    return _CREDENTIAL_PAIR.sub(rf"\1{HIDDEN}", _USER_INFO.sub(rf"\1{HIDDEN}@", text))


def redact_settings(value: Any, secrets: Collection[str] = ()) -> Any:
    """A JSON-like value of settings without secrets. It is compared later, so only certain keys are replaced."""
    known = {*secrets, *of_environment()}
    return _in_texts(value, lambda text: _without_sure(text, known), are_names_kept=True)


def without_credentials(value: Any) -> Any:
    """A JSON-like value of another program without credentials, in the names of its objects, too."""
    known = of_environment()
    return _in_texts(value, lambda text: _TOKENS.sub("[key]", _without_sure(text, known)))


def _without_sure(text: str, known: Collection[str]) -> str:
    return _without_sure_keys(hide_credentials(without(text, known)))


def _without_sure_keys(text: str) -> str:
    return _SURE_KEYS.sub(lambda found: "[key]" if any(map(str.isdigit, found[0])) else found[0], text)


def sent_in(api_base: str | None, keys: Iterable[str | None] = ()) -> frozenset[str]:
    """Every form in which a request's credentials can come back.

    Those are the keys, the user info of the address, the credentials in its query, and the header that they
    are sent in. A short or wordlike key ("none", "not-needed") is a placeholder; to replace it would eat words
    of answers.
    """
    address = urlsplit(api_base or "")
    user_info = address.netloc.rpartition("@")[0]
    user, _, password = user_info.partition(":")
    sent_keys = [key for key in keys if key and _is_secret(key)]
    queried = [value for name, value in parse_qsl(address.query) if _IS_CREDENTIAL.fullmatch(name)]
    token = "" if password else unquote(user)
    plain = [*sent_keys, *filter(_is_secret, (*queried, user_info, password, unquote(password), token))]
    headers = [f"Bearer {key}" for key in sent_keys]
    forms: set[str] = set()
    if user_info:
        pair = f"{unquote(user)}:{unquote(password)}"
        basic = b64encode(_bytes(pair)).decode()
        # However short the password is: its pair in Base64 is no word.
        forms |= {*_in_base64(_bytes(pair)), *_forms(basic)}
        plain += [pair] if _is_secret(pair) else []
        headers.append(f"Basic {basic}")
    forms.update(form for secret in plain for form in _forms(secret))
    for header in headers:  # whole: with only the secret replaced, its scheme would remain
        forms |= {header, quote(header, safe=""), quote_plus(header), *_in_base64(_bytes(header))}
    return frozenset(form for form in forms if len(form) >= _SHORTEST)


def is_credential_name(name: str) -> bool:
    """Whether a variable of that name holds a key, a token or a password."""
    return _CREDENTIAL_NAME.search(name.upper()) is not None


def provider_environment() -> dict[str, str]:
    """The variables with credentials, and those that belong to them by their first word: AWS_REGION to AWS_… keys."""
    owners = tuple({f"{name.partition('_')[0]}_" for name in os.environ if is_credential_name(name) and "_" in name})
    return {name: value for name, value in os.environ.items() if is_credential_name(name) or name.startswith(owners)}


def plain_environment() -> dict[str, str]:
    """The environment without keys, tokens, passwords, webhooks and user info in addresses, for others' programs.

    A variable with an innocent name is left out, too, where its value holds what another one calls a secret.
    """
    named = (value for name, value in os.environ.items() if is_credential_name(name))
    secrets = sent_in(None, named) | of_environment()
    return {
        name: value
        for name, value in os.environ.items()
        if not (is_credential_name(name) or _CREDENTIAL_IN_VALUE.search(value) or _without_sure_keys(value) != value)
        and hide_credentials(value) == without(value, secrets) == value
    }


def of_environment() -> frozenset[str]:
    """Keys, tokens and passwords in the environment's variables, and the user info of its proxies, in every form."""
    keys = tuple(value for name, value in os.environ.items() if _OF_ENVIRONMENT.search(name.upper()))
    return _sent_with(keys, tuple(os.environ.get(name) or os.environ.get(name.lower()) for name in _PROXIES))


@lru_cache(maxsize=4)
def _sent_with(keys: Sequence[str], proxies: Sequence[str | None]) -> frozenset[str]:
    """Every tool call asks for it, and a secret's forms take half a millisecond."""
    return sent_in(None, keys).union(*map(sent_in, proxies))


def _is_secret(text: str) -> bool:
    return len(text) >= _SURELY_NO_WORD or (len(text) >= _SHORTEST and re.search(r"[^a-z_-]", text) is not None)


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, escaped, in hexadecimal digits, and in Base64, also as a part of a longer text."""
    data = _bytes(secret)
    yield from (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    yield from (quote(secret, safe=""), quote(secret), quote_plus(secret), escape(secret))
    yield from (data.hex(), data.hex().upper())
    yield from _in_base64(data)
    # Of a longer Base64 text, the characters that depend on the secret alone. Each has six bits, so there are three
    # ways in which the secret may begin in a group of three bytes.
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        whole = b64encode(bytes(before) + data).decode().rstrip("=")
        own = whole[shared:] if (before + len(data)) % 3 == 0 else whole[shared:-1]
        for form in (own, own.replace("+", "-").replace("/", "_")):
            yield from (form, quote(form, safe=""), form.replace("/", "\\/"))


def _in_base64(data: bytes) -> Iterator[str]:
    """The whole of a Base64 text, in both alphabets, with padding and without."""
    for form in (b64encode(data).decode(), urlsafe_b64encode(data).decode()):
        yield from (form, form.rstrip("="), quote(form, safe=""), form.replace("/", "\\/"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
