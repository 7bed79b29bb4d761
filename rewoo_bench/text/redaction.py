"""Secrets: what is known as one is taken out of texts exactly.

Known are the variables that are named like one, the keys, headers and addresses that requests are sent with, and what
an agent's own variables and flags hold. Names of the user's own are never guessed at: `pk_order_line_items_2024` is a
table. Only of the traces of other programs (`without_credentials`) some well-known forms of tokens are taken out, too.

redact("no such key: abc-123456", ["abc-123456"])                       # "no such key: [key]"
redact("can't reach http://me:hunter22@host/v1")                        # "can't reach http://***@host/v1"
redact("can't reach http://host/v1?api_key=hunter22")                   # "can't reach http://host/v1?api_key=***"
without("I got Basic bWU6aHVudGVyMjI=", sent_in("http://me:hunter22@host/v1"))   # "I got Basic [key]"
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from rewoo_bench.text.escaping import replace_surrogates
from rewoo_bench.text.json_text import load_json

HIDDEN = "***"
_HIDDEN_KEY = "[key]"
_TOKENS = {
    sign: re.compile(form)
    for sign, form in {
        "sk-": r"\bsk-(?:(?:proj|ant|or|svcacct|admin)-[\w-]{20,}|[^\W_]{32,})",
        "AIza": r"\bAIza[\w-]{35}",
        "gsk_": r"\bgsk_[^\W_]{40,}",
        "hf_": r"\bhf_[^\W_]{30,}",
        "gh": r"\bgh[opsru]_\w{20,}",
        "github_pat_": r"\bgithub_pat_\w{20,}",
        "glpat-": r"\bglpat-[\w-]{20,}",
        "xox": r"\bxox[abeprs]-[\w-]{10,}",
        "k_live_": r"\b[prs]k_live_[^\W_]{10,}",
        "AKIA": r"\bAKIA[A-Z0-9]{16}\b",
        "eyJ": r"\beyJ[\w-]{5,}\.eyJ[\w.-]*",
        "Bearer ": r"(?<=Bearer )[\w.~+/-]{16,}=*",
        "-----BEGIN ": r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?",
    }.items()
}
"""Tokens that say themselves what they are, each by a part of it, which is looked for first: that takes less time."""
_USER_INFO = re.compile(r"""(://)[\w.~%!$*+@-]*(?::(?!\d*[;&|(){}`])[^/\s?#"'<>,\[\]\\]*)?@""")
"""A user, and a password, which isn't the number of a port: `https://a.dev:80;b@c` has none."""
_CREDENTIAL = r"(?:[\w.-]*[_.-])?(?:key|apikey|token|sig|signature|password|secret)"
_IS_CREDENTIAL = re.compile(_CREDENTIAL, re.IGNORECASE)
_ADDRESS = re.compile(r"""://[^\s"'<>]+""")
_CREDENTIAL_PAIR = re.compile(rf"([?&]{_CREDENTIAL}=)(?!\$\w+(?:[&#\s\"'<>]|$))[^&#\s\"'<>,;)\\]+", re.IGNORECASE)
_CREDENTIAL_NAME = re.compile(
    r"""(?:^|_)(?:(?:API|ACCESS|SECRET)?KEYS?\d*(?:_\w+)?|PASS|PAT|AUTH(?:_CONFIG|_HEADER)?)$
    | (?:TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|_PWD|CREDENTIALS?|APIKEY)\d*$
    | WEBHOOK | CONN(?:ECTION)?_?STR(?:ING)?""",
    re.VERBOSE,
)
_CREDENTIAL_HEADERS = ("AUTHORIZATION", "PROXY_AUTHORIZATION", "COOKIE")
_NAME_OF_PLACE = re.compile(r"_(?:FILE|PATH|DIR|ENV|VAR|NAME)$")  # says where a credential is
_SECRET_FIELD = re.compile(
    "(?:api|access|secret|private)[_-]?key|passw|secret|(?:^|[_-])token$|authorization|cookie", re.IGNORECASE
)
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
# A word that is no flag and has a space is code of a shell, unless it is a header.
_NAMED_WORD = re.compile(r"(?=-|[\w-]+:|\S+\Z)-{0,2}([A-Za-z_][\w-]*)(?:=|:\s*)(.+)", re.DOTALL)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_SHORTEST = 8
_SURELY_NO_WORD = 16  # letters


# Texts without secrets.


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """An error's text without the given secrets, those of the environment, and credentials in addresses."""
    return without(hide_credentials(replace_surrogates(text)), {*secrets, *of_environment()})


def without(text: str, secrets: Collection[str]) -> str:
    """`text` with "[key]" instead of each secret."""
    for secret in _longest_first(frozenset(secrets)):
        text = text.replace(secret, _HIDDEN_KEY)
    return text


@lru_cache(maxsize=64)
def _longest_first(secrets: frozenset[str]) -> Sequence[str]:
    """The longest first, since one may be a part of another. A short one is a placeholder, and would eat words."""
    return sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True)


def without_in(value: Any, secrets: Collection[str]) -> Any:
    """The same for all texts in a JSON-like value, including the keys of objects."""
    return _in_texts(value, lambda text: without(text, secrets))


def _in_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_in_texts(name, change): _in_texts(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_in_texts(each, change) for each in value]
    return value


def hide_credentials(text: str) -> str:
    """Addresses without user info and without query parameters that hold a credential.

    `https://me:secret@host/v1?api_key=k` becomes `https://***@host/v1?api_key=***`. The user's name is hidden
    too: it may be the token. The name of a variable (`api_key=$KEY`) stays.
    """
    if "://" not in text:
        return text
    plain = _USER_INFO.sub(rf"\1{HIDDEN}@", text)
    return _ADDRESS.sub(lambda address: _CREDENTIAL_PAIR.sub(rf"\1{HIDDEN}", address[0]), plain)


def redact_settings(value: Any, api_base: str | None = None) -> Any:
    """A JSON-like value of settings without secrets, and without the values of fields that are named like one.

    Secrets are those of the environment, and of the address that the run asks.
    """
    known = of_environment() | sent_in(api_base)

    def walk(value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {key: walk(each, str(key)) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [walk(each, name) for each in value]
        if not isinstance(value, str):
            return value
        if value and _SECRET_FIELD.search(name) and not _VARIABLE.search(value):
            return _HIDDEN_KEY
        flag, brace, rest = value.partition("{")  # of `--extra-body`, also in a command
        try:
            given = load_json(brace + rest)
        except ValueError:
            given = None
        if isinstance(given, dict) and (kept := walk(given, name)) != given:
            return flag + json.dumps(kept)
        return without(hide_credentials(value), known)

    return walk(value, "")


def was_redacted(text: str) -> bool:
    """Whether `redact_settings` has left something out of a text."""
    return any(mark in text for mark in (_HIDDEN_KEY, f"={HIDDEN}", f"{HIDDEN}@"))


def without_credentials(value: Any) -> Any:
    """A JSON-like value of another program without well-known tokens, in the names of its objects, too."""
    known = of_environment()
    return _in_texts(value, lambda text: _without_tokens(text, known))


def _without_tokens(text: str, known: frozenset[str]) -> str:
    text = without(hide_credentials(text), known)
    for sign, form in _TOKENS.items():
        if sign in text:
            text = form.sub(_HIDDEN_KEY, text)
    return text


# What is known as a secret.


def sent_in(api_base: str | None, keys: Iterable[str | None] = ()) -> frozenset[str]:
    """Every form in which a request's credentials can come back.

    Those are the keys, the user info of the address and the header that it is sent in, and the credentials in its
    query; each as it is, in JSON and in an address. A short or wordlike key ("none", "not-needed") is a placeholder; to
    replace it would eat words of answers.
    """
    address = urlsplit(api_base or "")
    user_info = address.netloc.rpartition("@")[0]
    user, _, password = user_info.partition(":")
    queried = [value for name, value in parse_qsl(address.query) if _IS_CREDENTIAL.fullmatch(name)]
    token = "" if password else unquote(user)
    given = (*keys, *queried, user_info, unquote(user_info), password, unquote(password), token)
    secrets = [each for each in given if each and _is_secret(each)]
    if user_info:  # however short the password is: its pair in Base64 is no word
        pair = f"{unquote(user)}:{unquote(password)}"
        secrets.append(b64encode(pair.encode("utf-8", "surrogateescape")).decode())
    forms = {form for each in secrets for form in (each, json.dumps(each)[1:-1], quote(each, safe=""))}
    return frozenset(form for form in forms if len(form) >= _SHORTEST)


def of_environment() -> frozenset[str]:
    """What the environment's variables hold that are named like a secret, and the user info of its proxies."""
    keys = [value for name, value in os.environ.items() if _has_credential(name) and not os.access(value, os.F_OK)]
    proxies = (os.environ.get(name) or os.environ.get(name.lower()) for name in _PROXIES)
    return sent_in(None, keys).union(*map(sent_in, proxies))


def _is_secret(text: str) -> bool:
    return len(text) >= _SURELY_NO_WORD or (len(text) >= _SHORTEST and re.search(r"[^a-z_-]", text) is not None)


def is_credential_name(name: str) -> bool:
    """Whether a variable of that name holds a key, a token or a password."""
    return _CREDENTIAL_NAME.search(name.upper()) is not None


def _has_credential(name: str) -> bool:
    plain = name.lstrip("-").replace("-", "_").upper()
    return plain in _CREDENTIAL_HEADERS or (is_credential_name(plain) and not _NAME_OF_PLACE.search(plain))


def is_plain_credential(name: str, value: str) -> bool:
    """Whether a variable, header or flag of that name has a credential as its value, and not `$NAME` or a placeholder.

    A short word is a placeholder, unless the name says that it is a password.
    """
    is_secret = _is_secret(value) or (len(value) > 1 and "PASS" in name.upper())
    return is_secret and _has_credential(name) and not _VARIABLE.search(value)


def hidden_credential(name: str, value: str) -> str:
    """The value of that name, or "[key]" in the place of a plain credential."""
    return _HIDDEN_KEY if is_plain_credential(name, value) else value


def credentials_of(words: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The values in a command whose names say that they are credentials: the place of the word that ends in one, the
    name and the value.

    `--api-key VALUE`, `--api-key=VALUE`, `API_KEY=VALUE`, `Authorization: VALUE`
    """
    flag = ""  # that the next word is the value of
    for place, word in enumerate(words):
        is_flag, named = word.startswith("-"), _NAMED_WORD.fullmatch(word)
        if flag and not is_flag:
            yield place, flag, word
        elif named and _has_credential(named[1]):
            yield place, named[1], named[2]
        flag = word if is_flag and not named and _has_credential(word) else ""


def with_credentials(words: Sequence[str], change: Callable[[str, str], str]) -> list[str]:
    """A command's words with each of these values as `change` makes it of its name and itself."""
    changed = list(words)
    for place, name, value in credentials_of(words):
        changed[place] = changed[place].removesuffix(value) + change(name, value)
    return changed


# The environment of other programs.


def provider_environment() -> dict[str, str]:
    """The variables with credentials, and those that belong to them by their first word: AWS_REGION to AWS_… keys."""
    owners = tuple({f"{name.partition('_')[0]}_" for name in os.environ if is_credential_name(name) and "_" in name})
    return {name: value for name, value in os.environ.items() if is_credential_name(name) or name.startswith(owners)}


def plain_environment() -> dict[str, str]:
    """The environment without keys, tokens, passwords, webhooks and user info in addresses, for others' programs.

    A variable with an innocent name is left out, too, where its value holds a token or what another one calls a secret.
    """
    known = of_environment()
    return {
        name: value
        for name, value in os.environ.items()
        if not is_credential_name(name) and _without_tokens(value, known) == value
    }
