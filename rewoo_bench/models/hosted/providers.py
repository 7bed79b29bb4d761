"""The provider, key and price of a model's name, and litellm's table of models, where most of it stands.

    find_route("openai/gpt-4o-mini")                                 # provider "openai", priced
    find_route("openai/mine", "http://127.0.0.1:8080/v1", None, "completion").provider
                                                                     # "text-completion-openai"

Names in the OpenAI form need only litellm's table of models. For every other provider
litellm itself is imported, quiet and offline, which takes some seconds.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anyio import to_thread

from rewoo_bench.config.names import LOCAL, ORACLE_MODEL, REPLAY
from rewoo_bench.config.price_table import PriceEntry, find_price_entry, given_entry
from rewoo_bench.errors import MissingKey, ModelNotFound
from rewoo_bench.events import starting
from rewoo_bench.models.hosted.http_endpoint import Redirected
from rewoo_bench.types import Usage

if TYPE_CHECKING:
    import httpx

# Providers with an OpenAI-compatible endpoint: our direct client sends what litellm would.
TEXT_COMPLETION = "text-completion-openai"
OPENAI_FORM = ("openai", TEXT_COMPLETION)
PromptForm = Literal["chat", "completion"]
"""How a prompt is sent: as turns, or as one transcript that the model continues."""
_ADDRESSES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")


@dataclass(frozen=True, slots=True)
class Route:
    """The endpoint of a model's name.

    `bare` is litellm's name for it, without the provider. `entry` is its line of the price table, None where it has
    none or where the address isn't the provider's: a user's own server may well call its model gpt-4o. `is_ours`
    marks a server that we started.
    """

    bare: str
    provider: str
    api_key: str | None
    api_base: str | None
    takes_schema: bool
    entry: PriceEntry | None
    is_ours: bool = False


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Undoes changes of the environment that are made inside: it belongs to the host program."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for variable in os.environ.keys() - before.keys():
            del os.environ[variable]
        os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})


@cache
def load_litellm() -> Any:
    """The module, imported on first use (two seconds), kept from the network and from the terminal.

    Its clients follow redirects with the prompt and often the key, and there is no setting for it. All of them send by
    one transport of litellm's, which raises `Redirected` inside an `exchange`.
    """
    with _environment_kept():  # programs that are started later inherit it
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the import fetches a newer price map
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")  # else it reads `.env`
        os.environ["MAX_IMAGE_URL_DOWNLOAD_SIZE_MB"] = "0"  # an agent's picture by address isn't fetched from here
        import litellm
        from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport

    send = LiteLLMAiohttpTransport.handle_async_request

    async def watched(transport: LiteLLMAiohttpTransport, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await send(transport, request)
        if (current := _exchange.get()) is not None:
            current.answered = True
            if response.has_redirect_location:
                raise Redirected(response.status_code, str(request.url), response.headers["Location"])
            if current.keeps:
                current.keep_answer(response)
        return response

    LiteLLMAiohttpTransport.handle_async_request = watched
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.turn_off_message_logging = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


async def litellm_loaded() -> Any:
    """The module. A question that waits for its import isn't working, and other questions go on meanwhile."""
    if not load_litellm.cache_info().currsize:
        with starting():
            await to_thread.run_sync(load_litellm)
    return load_litellm()


def provider_of(name: str) -> str:
    """The provider of a model, whose key it is asked with."""
    if named := _in_openai_form(name):
        return named[0]
    litellm = load_litellm()
    try:
        return str(litellm.get_llm_provider(name)[1])
    except litellm.exceptions.BadRequestError:
        return name.partition("/")[0]


def find_route(name: str, api_base: str | None = None, api_key: str | None = None, form: PromptForm = "chat") -> Route:
    """The route of a model's name. Raises `ModelNotFound` where no provider of it is known."""
    named = _in_openai_form(name)
    if named is None:
        ours = next(iter(get_close_matches(name, [ORACLE_MODEL, LOCAL, REPLAY], n=1)), None)
        if ours and not api_base and "litellm" not in sys.modules:  # whoever has imported it may have added a provider
            raise _unknown(name, ours)
        litellm = load_litellm()
        try:
            bare, provider, key, base = litellm.get_llm_provider(name, api_base=api_base, api_key=api_key)
        except litellm.exceptions.BadRequestError:
            raise _unknown(name, ours) from None
        named, base, key = (provider, bare), api_base or base, api_key or key
        if provider not in OPENAI_FORM:
            entry = None if api_base else find_price_entry(name, f"{provider}/{bare}", bare)
            if form == "chat":
                takes_schema = bool(litellm.supports_response_schema(bare, provider))
                return Route(bare, provider, key, base, takes_schema, entry)
            if provider not in litellm.openai_compatible_providers:
                raise ModelNotFound(
                    f"{name!r} can't continue a text: {provider!r} has no completion endpoint; use 'chat'"
                )
            return Route(bare, TEXT_COMPLETION, key, base, False, None if base else entry)
        api_base, api_key = base, key
    provider, bare = named
    base = api_base or next((os.environ[name] for name in _ADDRESSES if os.environ.get(name)), None)
    key = (api_key or os.environ.get("OPENAI_API_KEY", "")).strip() or None  # one read from a file ends with a line
    if form == "completion":
        provider = TEXT_COMPLETION
    entry = _openai_entry(bare)
    takes_schema = provider != TEXT_COMPLETION and entry is not None and entry.supports_response_schema
    return Route(bare, provider, key, base, takes_schema, None if base else entry)


def _unknown(name: str, near: str | None) -> ModelNotFound:
    return ModelNotFound(
        f"unknown model {name!r}{f', did you mean {near!r}' if near else ''}: litellm knows no provider of "
        "that name; put the provider first, as in 'openai/gpt-4o-mini', or 'openai/<name>' with --api-base for "
        "your own server"
    )


def is_provider_name(name: str) -> bool:
    """Whether a provider's name is in front of the model's, or the name is one of OpenAI's."""
    return "/" in name or _in_openai_form(name) is not None


def route_to_ours(label: str, api_base: str, form: PromptForm) -> Route:
    """The route to a server that we started."""
    return Route(label, OPENAI_FORM[form == "completion"], None, api_base, True, None, is_ours=True)


def check_key(name: str) -> None:
    """Raise `MissingKey`, naming the variables, where the provider of `name` wants a key that isn't set."""
    if _in_openai_form(name):
        missing = [] if os.environ.get("OPENAI_API_KEY", "").strip() else ["OPENAI_API_KEY"]
    else:
        # In CI a missing secret is often an empty variable; litellm would take that for a key.
        empty = [key for key, value in os.environ.items() if key.endswith("_API_KEY") and not value.strip()]
        held = {key: os.environ.pop(key) for key in empty}
        report = load_litellm().validate_environment(model=name)
        os.environ.update(held)
        # An address that isn't set has a default; a key has none.
        missing = [variable for variable in report["missing_keys"] if not variable.endswith(("_API_BASE", "_BASE_URL"))]
        missing = [] if report["keys_in_environment"] else missing
    if missing:
        raise MissingKey(f"{name!r} needs an API key: set {' and '.join(missing)}")


def price(route: Route, usage: Usage, details: Any = None) -> float | None:
    """US dollars of a call, None where the price isn't known.

    `details` is litellm's own usage object of a call through litellm: it includes counts of only some providers
    (audio, searches), and litellm prices it. Without it, `usage` is priced.
    """
    known = route.entry.price(usage) if route.entry else None
    if route.entry is None or known is None or details is None or route.entry.is_given:
        return known
    paid = load_litellm().cost_per_token(model=route.bare, custom_llm_provider=route.provider, usage_object=details)
    return float(sum(paid))


def with_prices(route: Route, prices: Mapping[str, float] | None) -> Route:
    """The route with a user's prices, in dollars per million tokens."""
    return replace(route, entry=given_entry(route.bare, prices, route.entry)) if prices else route


def price_list(route: Route) -> dict[str, float] | None:
    """Dollars per million tokens, for the manifest; None where the price isn't known."""
    rates = route.entry.rates(1) if route.entry else None
    if route.entry is None or rates is None:
        return None
    kinds = ("input", "cached_input", "output", *(("cache_write",) if route.entry.is_given else ()))
    return {kind: round(10**6 * rates[kind], 6) for kind in kinds}


@dataclass(slots=True)
class Exchange:
    """A call of litellm. `answered`: a server has answered, whatever it said. With `keeps` its answers are kept."""

    keeps: bool = False
    answered: bool = False
    kept: list[tuple[Any, list[bytes]]] = field(default_factory=list)
    """Responses of httpx, and the pieces of their bodies as they came."""

    def answers(self) -> Iterator[bytes]:
        """The answers as far as they were read, decompressed."""
        import httpx

        for response, pieces in self.kept:
            yield httpx.Response(200, headers=response.headers, content=b"".join(pieces)).content

    def keep_answer(self, response: Any) -> None:
        """Keeps what is read of a response."""
        import httpx

        class Kept(httpx.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                async for piece in stream:
                    pieces.append(piece)
                    yield piece

            async def aclose(self) -> None:
                await stream.aclose()

        stream, pieces = response.stream, list[bytes]()
        if isinstance(stream, httpx.AsyncByteStream) and not any(known is response for known, _ in self.kept):
            self.kept.append((response, pieces))
            response.stream = Kept()


_exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
_UNUSED: ContextVar[bool] = ContextVar("unused", default=False)


@contextmanager
def exchange(made: Exchange | None = None) -> Iterator[Exchange]:
    """A call of litellm is made inside: it follows no redirect, and none of litellm's callbacks is called.

    `made` is the exchange that goes on.
    """
    load_litellm()
    # litellm's logging worker would take a tenth of a call's time and outlive the call. Without the mark, in a litellm
    # that has moved it, it does.
    mark = getattr(sys.modules.get("litellm._internal_context"), "is_internal_call", _UNUSED)
    made = made or Exchange()
    tokens = mark.set(True), _exchange.set(made)
    try:
        yield made
    finally:
        mark.reset(tokens[0])
        _exchange.reset(tokens[1])


def call_litellm(function: str, route: Route, timeout: float, **arguments: Any) -> Any:
    """A call of one of litellm's functions, to be awaited; it makes no second attempt.

    Our tools aren't sent to litellm's MCP gateway, if it has one: that imports the package mcp, which isn't a
    dependency of litellm, and the call would end in "No module named 'mcp'".
    """
    litellm = load_litellm()
    gateway = Path(litellm.__file__).parent / "responses" / "mcp" / "chat_completions_handler.py"
    if "tools" in arguments and gateway.is_file():
        arguments["_skip_mcp_handler"] = True
    return getattr(litellm, function)(
        model=f"{route.provider}/{route.bare}",
        api_base=route.api_base,
        api_key=route.api_key or ("none" if route.provider in OPENAI_FORM else None),  # they may want none
        timeout=timeout,
        num_retries=0,
        max_retries=0,
        **arguments,
    )


def _in_openai_form(name: str) -> tuple[str, str] | None:
    """The provider and the bare name of a model that is served in the OpenAI form; None for any other."""
    provider, slash, bare = name.partition("/")
    if slash:
        return (provider, bare) if bare and provider in OPENAI_FORM else None
    entry = _openai_entry(name)
    return (entry.provider, name) if entry else None


def _openai_entry(bare: str) -> PriceEntry | None:
    """OpenAI's model of that name; a fine-tuned one ("ft:gpt-4o-…:me::1") has its base's entry ("ft:gpt-4o-…").

    Gateways to many providers call it "openai/gpt-4o".
    """
    plain = bare.removeprefix("openai/")
    entry = find_price_entry(plain, ":".join(plain.split(":")[:2]))
    return entry if entry and entry.provider in OPENAI_FORM else None


_users_of_shared_pool: set[int] = set()


def use_shared_pool(user: object) -> None:
    """Registers a user of litellm's own pool of connections, which all models share; before a call through litellm."""
    _users_of_shared_pool.add(id(user))


async def release_shared_pool(user: object) -> None:
    """Closes the pool where this was its last user: a later event loop couldn't use its connections."""
    if id(user) in _users_of_shared_pool:
        _users_of_shared_pool.discard(id(user))
        if not _users_of_shared_pool:
            litellm = load_litellm()
            await litellm.close_litellm_async_clients()
            litellm.in_memory_llm_clients_cache.flush_cache()  # so that it opens new ones
            vars(litellm).pop("module_level_aclient", None)  # else the one that streams would open a session again
