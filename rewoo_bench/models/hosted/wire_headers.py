"""Which headers and query parameters pass between an external agent and the provider.

    passed_on({"Idempotency-Key": "7", "Authorization": "Bearer q-…", "Cookie": "…"}.items(), key="q-…")
    # (("Idempotency-Key", "7"),)

An agent chooses no address, no key and no model by them. `OpenAI-Organization` and `OpenAI-Project` are the agent's
own choice under the user's key, unless the user's environment has one. A header that isn't listed doesn't pass.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode

from rewoo_bench.redaction import is_credential_name, without
from rewoo_bench.wire_request import OF_THE_ACCOUNT

_PASSED = re.compile(r"(openai|anthropic|x)-.+|(x-)?idempotency-key|request-id|retry-after(-ms)?")
# Names that hold credentials, name hops, or choose where a request goes.
_WITHHELD = re.compile(
    r"""x-(amz|goog|litellm|portkey|envoy|original)(-.*)? | (.*[-_.])?(
        auth\w* | api-?key | key | token | secret | signature | jwt | csrf
        | passw(or)?d | credentials? | cookie | connection | forward(ed)? | host(name)? | ip | origin | referr?er
        | proxy | url | uri | target | upstream | backend | endpoint | gateway | override | rewrite | rout(e|er|ing)
        | provider | model | deployment | base | api-?base | tenant | account
    )([-_.].*)?""",
    re.VERBOSE,
)
_MAY_PASS = frozenset({"idempotency-key", "x-idempotency-key"})
_OURS = "x-should-retry"  # the gateway says it: it has tried again already


def passed_on(headers: Iterable[tuple[str, str]], *, key: str) -> tuple[tuple[str, str], ...]:
    """The headers of an agent's request that the provider gets. `key` is the question's."""
    given = list(headers)
    hops = {each.strip().lower() for name, value in given if name.lower() == "connection" for each in value.split(",")}
    return tuple(
        (name, value)
        for name, value in given
        if _passes(name.lower()) and name.lower() not in hops and key not in value and _is_plain(value)
    )


def passed_back(headers: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """The headers of a provider's answer that the agent gets: request ids and rate limits, but no account's name."""
    return {
        name.lower(): without(value, secrets)
        for name, value in headers.items()
        if _passes(name.lower()) and name.lower() not in OF_THE_ACCOUNT and _is_plain(value)
    }


def passed_query(query: str, *, key: str) -> str:
    """The query of an agent's request that the provider gets."""
    pairs = parse_qsl(query, keep_blank_values=True)
    return urlencode([(name, value) for name, value in pairs if not _is_withheld(name.lower()) and key not in value])


@lru_cache(maxsize=1024)  # every request of an SDK has the same names
def _passes(name: str) -> bool:
    return name in _MAY_PASS or (_PASSED.fullmatch(name) is not None and not _is_withheld(name) and name != _OURS)


def _is_withheld(name: str) -> bool:
    return _WITHHELD.fullmatch(name) is not None or is_credential_name(re.sub(r"\W", "_", name))


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable()
