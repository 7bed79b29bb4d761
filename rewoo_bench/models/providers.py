"""litellm itself: loaded once, quiet and offline, and asked who serves a name and at what price.

find_route("openai/gpt-4o-mini")                                 # provider "openai", priced
find_route("openai/mine", "http://127.0.0.1:8080/v1", None, "completion").model
                                                                 # "text-completion-openai/mine"
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from rewoo_bench.errors import MissingKey, ModelNotFound
from rewoo_bench.types import Usage

# Providers whose endpoints we ask directly: to them litellm would send what we do.
OPENAI_FORM = ("openai", "text-completion-openai")
_ADDRESSES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")


@dataclass(frozen=True, slots=True)
class Route:
    """Where litellm takes a name.

    `model` is what to call it by, `bare` the same without the provider. `price_name` is the entry
    of litellm's price map, None where there is none or where the address is somebody else's: a
    server of one's own may well call its model gpt-4o. `is_ours` is a server that we started, of
    which litellm knows nothing.
    """

    model: str
    bare: str
    provider: str
    api_key: str | None
    api_base: str | None
    takes_schema: bool
    price_name: str | None
    is_ours: bool = False


@cache
def load_litellm() -> Any:
    """The module, imported on first use (two seconds), kept from the network and from the terminal."""
    # Before the import: litellm would fetch a newer price map at once.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.turn_off_message_logging = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def find_route(
    name: str,
    api_base: str | None = None,
    api_key: str | None = None,
    style: Literal["chat", "completion"] = "chat",
) -> Route:
    """The route of a litellm name. Raises `ModelNotFound` where litellm can't place it."""
    litellm = load_litellm()
    try:
        bare, provider, key, base = litellm.get_llm_provider(name, api_base=api_base, api_key=api_key)
    except litellm.exceptions.BadRequestError:
        raise ModelNotFound(
            f"unknown model {name!r}: litellm knows no provider of that name; "
            "put the provider first, as in 'openai/gpt-4o-mini', or 'openai/<name>' with an api_base of your own"
        ) from None
    base = api_base or base
    if provider in OPENAI_FORM:
        base = base or next((os.environ[name] for name in _ADDRESSES if os.environ.get(name)), None)
        key = api_key or key or os.environ.get("OPENAI_API_KEY") or None
    model = f"{provider}/{bare}"
    if style == "completion":
        if provider not in (*OPENAI_FORM, *litellm.openai_compatible_providers):
            raise ModelNotFound(f"{name!r} can't continue a text: {provider!r} has no completion endpoint; use 'chat'")
        model, provider = f"text-completion-openai/{bare}", "text-completion-openai"
    price_name = None if api_base or (base and provider in OPENAI_FORM) else _price_name(name, provider, bare)
    takes_schema = bool(litellm.supports_response_schema(bare, provider))
    return Route(model, bare, provider, api_key or key, base, takes_schema, price_name)


def route_to_ours(label: str, api_base: str, style: Literal["chat", "completion"]) -> Route:
    """The route to a server that we started: litellm, two seconds of import, isn't asked."""
    provider = OPENAI_FORM[style == "completion"]
    return Route(f"{provider}/{label}", label, provider, None, api_base, True, None, is_ours=True)


def check_key(name: str) -> None:
    """Raise `MissingKey`, naming the variables, where the provider of `name` wants a key that isn't set."""
    # Set but empty is how CI hands over a secret that it doesn't have; litellm takes it for a key.
    for variable in [key for key, value in os.environ.items() if key.endswith("_API_KEY") and not value.strip()]:
        del os.environ[variable]
    found = load_litellm().validate_environment(model=name)
    # An address that isn't set has a default; a key has none.
    missing = [variable for variable in found["missing_keys"] if not variable.endswith(("_API_BASE", "_BASE_URL"))]
    if missing and not found["keys_in_environment"]:
        raise MissingKey(f"{name!r} needs an API key: set {' and '.join(missing)}")


def price(route: Route, usage: Usage, details: Any = None) -> float | None:
    """US dollars of a call, None where the price isn't known.

    `details` is litellm's own usage object, which also has what only some providers count
    (tokens written to a cache, audio); without it, `usage` is priced.
    """
    if route.price_name is None:
        return None
    litellm = load_litellm()
    counted = details or litellm.Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        prompt_tokens_details={"cached_tokens": usage.cached_input_tokens},
    )
    paid = litellm.cost_per_token(model=route.bare, custom_llm_provider=route.provider, usage_object=counted)
    return float(sum(paid))


def max_output_tokens(route: Route) -> int | None:
    """The most tokens that the model writes in one reply; None where that isn't known."""
    if route.price_name is None:
        return None
    found = load_litellm().model_cost[route.price_name].get("max_output_tokens")
    return int(found) if isinstance(found, int | float) else None


def price_list(route: Route) -> dict[str, float] | None:
    """Dollars per million tokens, for the record; None where the price isn't known."""
    if route.price_name is None:
        return None
    million = {
        "input": Usage(input_tokens=10**6),
        "cached_input": Usage(input_tokens=10**6, cached_input_tokens=10**6),
        "output": Usage(output_tokens=10**6),
    }
    return {kind: round(price(route, usage) or 0.0, 6) for kind, usage in million.items()}


@contextmanager
def without_callbacks() -> Iterator[None]:
    """Calls made inside leave no work behind: litellm neither logs them nor calls anybody back.

    Its logging worker would take a tenth of a call's time and outlive it.
    """
    mark = _internal_mark()
    token = mark.set(True)
    try:
        yield
    finally:
        mark.reset(token)


@cache
def plain_tools() -> dict[str, Any]:
    """The argument that keeps litellm from asking its MCP gateway about tools of ours.

    To ask, it imports the package mcp, which it doesn't depend on: without this argument a call
    with tools ends in "No module named 'mcp'". A litellm without the gateway doesn't know it.
    """
    gateway = Path(load_litellm().__file__).parent / "responses" / "mcp" / "chat_completions_handler.py"
    return {"_skip_mcp_handler": True} if gateway.is_file() else {}


async def close_shared_pool() -> None:
    """Close the connections that litellm made itself, and forget them, so that it makes new ones."""
    litellm = load_litellm()
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


def _price_name(name: str, provider: str, bare: str) -> str | None:
    prices = load_litellm().model_cost
    names = (name, f"{provider}/{bare}", bare)
    return next((n for n in names if prices.get(n, {}).get("input_cost_per_token") is not None), None)


@cache
def _internal_mark() -> ContextVar[bool]:
    try:
        from litellm._internal_context import is_internal_call
    except ImportError:  # an older litellm, or one that moved it: slower, and just as right
        return ContextVar("unused", default=False)
    mark: ContextVar[bool] = is_internal_call
    return mark
