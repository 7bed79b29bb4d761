"""Removes secrets from text before it is shown or written.

What is known as a secret is removed exactly: variables named like one, keys and headers that are sent, and credentials
in addresses. Names of the user's own are never guessed at: `pk_order_line_items_2024` is a table. Only in the traces of
other programs (`without_credentials`) some well-known forms of tokens are looked for, too.

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
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from rewoo_bench.text.json_text import load_json

HIDDEN = "***"
_HIDDEN_KEY = "[key]"
_LONGEST_NAME = 80  # characters of a field's name that are looked at, from its end
_LONGEST_WORD = 64  # characters of prose or code, without a space
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ISSUED = {
    "sk-": r"\bsk-(?:(?:proj|ant|or|svcacct|admin)-[\w-]{20,}|[^\W_]{32,})",
    "AIza": r"\bAIza[\w-]{35}",
    "gsk_": r"\bgsk_[^\W_]{40,}",
    "xai-": r"\bxai-[^\W_]{60,}",
    "gh": r"\bgh[opsru]_\w{20,}",
    "github_pat_": r"\bgithub_pat_\w{20,}",
    "glpat-": r"\bglpat-[\w-]{20,}",
    "hf_": r"\bhf_[^\W_]{30,}",
    "npm_": r"\bnpm_[^\W_]{30,}",
    "xox": r"\bxox[abeprs]-[\w-]{10,}",
    "ya29.": r"\bya29\.[\w-]{10,}",
    "k_live_": r"\b[prs]k_live_[^\W_]{10,}",
    "k_test_": r"\b[prs]k_test_[^\W_]{10,}",
    "SG.": r"\bSG\.[\w-]{16,}+\.[\w-]{16,}",
    "SK": r"\bSK[0-9a-f]{32}\b",
    "eyJ": r"\beyJ[\w-]{5,}\.eyJ[\w.-]*",
    "pypi-": r"\bpypi-AgE[\w-]{16,}",
    "shp": r"\bshp(?:at|ca|pa|ss)_[0-9a-f]{32}",
    "_v1_": r"\bdo[opr]_v1_[0-9a-f]{64}",
    "lin_api_": r"\blin_api_[^\W_]{30,}",
    "dckr_pat_": r"\bdckr_pat_[\w-]{20,}",
    "AGE-SECRET-KEY-": r"\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
    ":A": r"(?<!\d)\d{8,10}:A[\w-]{34}(?![\w-])",  # Telegram
    ".": r"\.(?:(?<=[MNO][DTjz][\w-]{22}.)|(?<=[MNO][DTjz][\w-]{24}.))[\w-]{6}\.[\w-]{27,}",  # Discord
    "AKIA": r"\bAKIA[A-Z0-9]{16}\b",
    "ASIA": r"\bASIA[A-Z0-9]{16}\b",
    "-----BEGIN ": r"-----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY"
    r"(?:[^-]*-----[^-]*(?:-----END[ ][A-Z ]{0,40}PRIVATE[ ]KEY[^-]*-----)?)?",
}
"""Tokens that say themselves what they are, each by a part of it, which is looked for first: that takes less time."""
_SENT = {
    "Bearer ": r"(?<=Bearer[ ])[\w.~+/-]{16,}=*",
    "Basic ": r"(?<=Basic[ ])(?=[\w+/-]*[0-9=])[\w+/-]{8,}=*",
}
_TOKENS = {sign: re.compile(form) for sign, form in (_ISSUED | _SENT).items()}
_SIGNS_OF_NAMES = (
    "passw", "passphrase", "pwd", "key", "token", "secret", "auth", "cookie", "sessionid", "credential", "bearer",
)  # fmt: skip
_SECRET_NAMES = r"""passw(?:or)?d | passphrase | api[ _-]?key
    | (?:secret|access|account|private|encryption|signing)[ _-]?key
    | (?:access|refresh|auth|session|bearer|api|[cx]srf|security|(?<![a-z0-9])id)[ _-]?token
    | (?<![a-z0-9])(?:pwd|(?-i:j?sessionid|J?SESSIONID))"""
_SECRET_FIELDS = {
    re.compile(form, re.VERBOSE): re.compile(values, re.VERBOSE | re.DOTALL)
    for form, values in {
        r"(?<![a-z0-9])pwd$": r"(?![/~.]|[A-Za-z]:[\\/]).+",  # no working directory
        rf"""(?:(?:{_SECRET_NAMES})(?:(?<=[dy])s)? | (?<![a-z0-9])secret | (?:^|\.)(?:proxy[_-]?)?authorization
        | (?:^|\.)(?:set[_-]?|http[_-]?|session[_-]?)?cookies?)\d{{0,2}}$""": r".+",
        r"(?:^|\.)(?:token|auth|credentials?|bearer)$": r"""(?![/~.{[]|[A-Za-z]:[\\/]|0x)
        (?=.*\d)(?=.*[A-Za-z])[^\s@]{8,}""",  # no word, path, address, e-mail or number
    }.items()
}
"""Names of fields, and what their values look like where they are secret."""
_NAMED = re.compile(
    rf"""(?P<flag>--)?
    (?P<name>{_SECRET_NAMES} | client[_-]?secret | (?<![a-z0-9])(?:secret|authorization|cookies?)
        | (?<![\w.-])(?:token|auth|credentials?|bearer)(?=\\*["']))\d{{0,2}}
    (?P<closing>\\*["'])? (?:\s{{0,8}}(?:=>|:=|[:=])\s{{0,8}} | (?(flag)[ ]+|(?!))) (?P<opening>\\*["'])?""",
    re.IGNORECASE | re.VERBOSE,
)
"""A name and what stands between it and its value."""
_QUOTE_OR_END = re.compile(r"""(?P<slashes>\\*)(?P<quote>["'])|[\r\n]""")
_PLAIN_VALUE = re.compile(r"""(?:[^\s,;&"'<>\\]|\\(?![\\nrtu"'/]))+""")
_AUTHORIZATION = re.compile(r"(?:[A-Za-z][\w-]*[ ]+)?+(?=\S{0,200}?(?:[0-9=]|[a-z][A-Z]))[\w.~+/=:-]{6,}")
_LAST_ON_LINE = re.compile(r"""(?i:bearer|basic|token|apikey)[ ]+[\w.~+/=:-]{6,}+(?=[ ]{0,8}(?:["'\\\r\n]|$))""")
_OTHER_SCHEME = re.compile(r"""(?:Digest|AWS4-HMAC-SHA256)[ ][^'\\\r\n]+""", re.IGNORECASE)
_COOKIE = re.compile(r"""[^\s=;,"'\\]{1,256}=[^"'\\\r\n]+""")
_NO_SECRET = re.compile(
    r"""\$\w+ | \$?\{+[^{}]*\}+ | <[^<>]*> | %\w+% | \*+ | \[key\] | \[?REDACTED\]?
    | str(?:ing)? | int(?:eger)? | number | bool(?:ean)? | bytes | object | null | none | true | false | undefined
    | required | optional | missing | invalid | incorrect | unknown""",
    re.IGNORECASE | re.VERBOSE,
)
"""Variables, placeholders, types, and what error messages say of a field."""
_IS_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[][\w.()\[\]=]*")
_USER_INFO = re.compile(r"""(:(?:\\*/){2})(?:\[key\]|[\w.~%!$*+@-])*(?::(?!\d*[;&|(){}`])[^/\s?#"'<>,\[\]\\]*)?@""")
"""A user, and a password, which isn't the number of a port: `https://a.dev:80;b@c` has none. `[key]` is hidden."""
_CREDENTIAL = r"(?:[\w.-]*[_.-])?(?:key|apikey|token|sig|signature|password|secret)"
_IS_CREDENTIAL = re.compile(_CREDENTIAL, re.IGNORECASE)
_ADDRESS = re.compile(r""":(?:\\*/){2}[^\s"'<>]+""")
_CREDENTIAL_PAIR = re.compile(rf"([?&]{_CREDENTIAL}=)(?!\$\w+(?:[&#\s\"'<>]|$))[^&#\s\"'<>,;)\\]+", re.IGNORECASE)
_OF_ENVIRONMENT = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$")
# Broader, for what isn't passed on to other people's programs.
_CREDENTIAL_NAME = re.compile(
    r"""(?:^|_)(?:(?:API|ACCESS|SECRET)?KEYS?\d*(?:_\w+)?|PASS|PAT|AUTH(?:_CONFIG|_HEADER)?)$
    | (?:TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|_PWD|CREDENTIALS?|APIKEY)\d*$
    | WEBHOOK | CONN(?:ECTION)?_?STR(?:ING)?""",
    re.VERBOSE,
)
_CREDENTIAL_HEADERS = ("AUTHORIZATION", "PROXY_AUTHORIZATION", "COOKIE")
_PASSWORD_NAME = re.compile(r"PASS|PWD")
_NAME_OF_PLACE = re.compile(r"_(?:FILE|PATH|DIR|ENV|VAR|NAME)$")  # says where a credential is
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
# A word that is no flag and has a space is code of a shell, unless it is a header.
_NAMED_WORD = re.compile(r"(?=-|[\w-]+:|\S+\Z)-{0,2}([A-Za-z_][\w-]*)(?:=|:\s*)(.+)", re.DOTALL)
_CREDENTIAL_IN_VALUE = re.compile(
    rf"""{"|".join(_ISSUED.values())} | \b(?:password|pwd|\w*accesskey|accountkey)\s*=
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
    """`text` without the given secrets, those of the environment, and credentials in addresses. For errors."""
    return hide_credentials(without(text, {*secrets, *of_environment()}))


def without(text: str, secrets: Collection[str]) -> str:
    """`text` with "[key]" instead of each secret."""
    for secret in _longest_first(frozenset(secrets)):
        text = text.replace(secret, "[key]")
    return text


@lru_cache(maxsize=64)
def _longest_first(secrets: frozenset[str]) -> Sequence[str]:
    """The longest first, since one may be a part of another. A short one is a placeholder, and would eat words."""
    return sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True)


def without_in(value: Any, secrets: Collection[str]) -> Any:
    """The same for all texts in a JSON-like value, including the keys of objects."""
    return _in_texts(value, lambda text: without(text, secrets))


def _in_texts(
    value: Any, change: Callable[[str], str], *, are_names_kept: bool = False, are_fields_hidden: bool = False
) -> Any:
    """A JSON-like value with each text changed, and without the values of fields whose names say that they are secret.

    Such a name may also be the value of `name` or `key`, beside `value`, as in lists of headers or attributes.
    """

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, Mapping):
            label = (value.get("name") or value.get("key")) if are_fields_hidden and "value" in value else None
            return {
                name if are_names_kept else walk(name): hidden(each, form)
                if are_fields_hidden and (form := _values_of(label if name == "value" and label else name))
                else walk(each)
                for name, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [walk(each) for each in value]
        return value

    def hidden(value: Any, form: re.Pattern[str]) -> Any:
        if isinstance(value, list | tuple):
            return [hidden(each, form) for each in value]
        if isinstance(value, Mapping) and value.keys() == {"stringValue"}:  # of OpenTelemetry
            return {"stringValue": hidden(value["stringValue"], form)}
        is_pin = isinstance(value, int | float) and abs(value) >= 1000
        text = str(value) if is_pin or isinstance(value, str) else ""
        return _HIDDEN_KEY if form.fullmatch(text) and _may_be_secret(text) else walk(value)

    return walk(value)


def _values_of(name: Any) -> re.Pattern[str] | None:
    """What the secrets in a field of that name look like; None for a name that says nothing of them."""
    return _values_of_name(name[-_LONGEST_NAME:]) if isinstance(name, str) else None


@lru_cache(maxsize=4096)
def _values_of_name(name: str) -> re.Pattern[str] | None:
    plain = _CAPITAL.sub("_", name).lower()
    return next((values for form, values in _SECRET_FIELDS.items() if form.search(plain)), None)


def _may_be_secret(value: str) -> bool:
    return bool(value) and not _NO_SECRET.fullmatch(value.removeprefix("Bearer ").removeprefix("Basic "))


def hide_credentials(text: str) -> str:
    """Addresses without user info and without query parameters that hold a credential.

    `https://me:secret@host/v1?api_key=k` becomes `https://***@host/v1?api_key=***`. The user's name is hidden
    too: it may be the token. The name of a variable (`api_key=$KEY`) stays.
    """
    plain = _USER_INFO.sub(rf"\1{HIDDEN}@", text)
    return _ADDRESS.sub(lambda address: _CREDENTIAL_PAIR.sub(rf"\1{HIDDEN}", address[0]), plain)


def redact_settings(value: Any, secrets: Collection[str] = ()) -> Any:
    """A JSON-like value of settings without secrets, and without the values of fields that are named like one."""
    known = {*secrets, *of_environment()}

    def change(text: str) -> str:
        before, brace, behind = hide_credentials(without(text, known)).partition("{")
        return before + _without_fields(brace + behind)  # of `--extra-body`, also in a command

    return _in_texts(value, change, are_names_kept=True, are_fields_hidden=True)


def was_redacted(text: str) -> bool:
    """Whether `redact_settings` has left something out of a text."""
    return any(mark in text for mark in (_HIDDEN_KEY, f"={HIDDEN}", f"{HIDDEN}@"))


def without_credentials(value: Any) -> Any:
    """A JSON-like value of another program without credentials, in the names of its objects, too."""
    known = of_environment()

    def change(text: str) -> str:
        return (_without_tokens if len(text) > _LONGEST_NAME else _short_without_tokens)(text, known)

    return _in_texts(value, change, are_fields_hidden=True)


def _without_tokens(text: str, known: frozenset[str]) -> str:
    text = hide_credentials(without(text, known))
    for sign, form in _TOKENS.items():
        if sign in text:
            text = form.sub(_HIDDEN_KEY, text)
    return _without_named(_without_fields(text)) if _has_names(text) else text


_short_without_tokens = lru_cache(maxsize=4096)(_without_tokens)
"""Most short texts are names of fields, the same again and again."""


def _has_names(text: str) -> bool:
    """Whether a secret's name may stand in a text, with a value behind it: a quick look."""
    if ":" not in text and "=" not in text and "--" not in text:
        return False
    lower = text.lower()
    return any(sign in lower for sign in _SIGNS_OF_NAMES)


def _without_fields(text: str) -> str:
    """A text that is JSON without the values of fields whose names say that they are secret."""
    if text.lstrip()[:1] not in ("{", "[") or not _has_names(text):
        return text
    try:
        value = load_json(text)
        left = _in_texts(value, _without_fields, are_names_kept=True, are_fields_hidden=True)
        separators = None if '": ' in text else (",", ":")
        return text if left == value else json.dumps(left, ensure_ascii=text.isascii(), separators=separators)
    except ValueError:
        return text


def _without_named(text: str) -> str:
    """The text without what stands behind a secret's name: in JSON, also within a text of it, and in other notations.

    `"password":"x"`, `\\"api_key\\": \\"x\\"`, `password: x`, `api_key=x`, `--api-key x`, `Cookie: a=x; b=y`
    """
    parts, done, place = [], 0, 0
    while named := _NAMED.search(text, place):
        start, end = named.end(), _quoted_end(text, named) if named["opening"] else _plain_end(text, named)
        quoted = text[start:end]
        least = 1 if named["closing"] or not named["opening"] else 4
        form = _values_of(named["name"])
        if len(quoted) >= least and _may_be_secret(quoted) and (form is None or form.fullmatch(quoted)):
            parts += [text[done:start], _HIDDEN_KEY]
            done = end
        place = max(end, start)
    return "".join((*parts, text[done:]))


def _quoted_end(text: str, named: re.Match[str]) -> int:
    """Where a value in quotes ends: at the same quote, escaped as often, or at the end of the line."""
    opening = named["opening"]
    level = len(opening)  # 1 for a plain quote, 2 for one within a JSON text, 4 within a text of that one
    for found in _QUOTE_OR_END.finditer(text, named.end()):
        if found["quote"] is None:
            return found.start()
        slashes = len(found["slashes"])
        if found["quote"] == opening[-1] and (slashes + 1) // level % 2:
            return found.end() - 1 - min(slashes, level - 1)
    return len(text)


def _plain_end(text: str, named: re.Match[str]) -> int:
    """Where a value without quotes ends; where it begins if it is none."""
    start, name = named.end(), named["name"].lower()
    if name.startswith(("authorization", "cookie")):
        forms = (_COOKIE,) if name.startswith("cookie") else (_OTHER_SCHEME, _LAST_ON_LINE, _AUTHORIZATION)
        return next((found.end() for form in forms if (found := form.match(text, start))), start)
    if not (found := _PLAIN_VALUE.match(text, start)) or (named["closing"] and found[0][0] in "[{"):
        return start
    if len(found[0]) > _LONGEST_WORD:  # which also keeps the time linear
        return found.end()
    if _IS_CODE.fullmatch(found[0]) or not _may_be_secret(found[0]):
        return start
    value = found[0].rstrip(")]}.:")
    has_digit = any(map(str.isdigit, value))
    if name.startswith("passw") or name == "passphrase":
        is_value = len(value) >= 6 or (len(value) >= 4 and has_digit)
    else:
        is_value = len(value) >= (4 if name == "pwd" else 8) and has_digit
    if not is_value or _values_of(value.rpartition(".")[2]):  # of code: password=self.password
        return start
    return start + len(value)


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
        basic = b64encode(pair.encode("utf-8", "surrogateescape")).decode()
        forms.update(_forms(basic))  # however short the password is: its pair in Base64 is no word
        plain += [pair] if _is_secret(pair) else []
        headers.append(f"Basic {basic}")
    forms.update(form for secret in plain for form in _forms(secret))
    for header in headers:  # whole: with only the secret replaced, its scheme would remain
        forms |= {header, quote(header, safe=""), quote_plus(header)}
    return frozenset(form for form in forms if len(form) >= _SHORTEST)


def is_credential_name(name: str) -> bool:
    """Whether a variable of that name holds a key, a token or a password."""
    return _CREDENTIAL_NAME.search(name.upper()) is not None


def is_plain_credential(name: str, value: str) -> bool:
    """Whether a variable, header or flag of that name has a credential as its value, and not `$NAME` or a placeholder.

    Of a value under eight characters, that is a password with a digit.
    """
    is_secret = _is_secret(value) or (_PASSWORD_NAME.search(name.upper()) and any(map(str.isdigit, value)))
    return bool(is_secret) and _has_credential(name) and not _VARIABLE.search(value)


def hidden_credential(name: str, value: str) -> str:
    """The value of that name, or "[key]" in the place of a plain credential, however short it is."""
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


def _has_credential(name: str) -> bool:
    plain = name.lstrip("-").replace("-", "_").upper()
    return plain in _CREDENTIAL_HEADERS or (is_credential_name(plain) and not _NAME_OF_PLACE.search(plain))


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
        if not (is_credential_name(name) or _CREDENTIAL_IN_VALUE.search(value))
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
    """A secret as it is, and as JSON, Python, addresses and HTML escape it."""
    yield from (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    yield from (quote(secret, safe=""), quote(secret), quote_plus(secret), escape(secret))
