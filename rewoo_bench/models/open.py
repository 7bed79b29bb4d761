"""Open a model by its name.

    async with open_model("local/smollm2-135m") as opened:
        completion = await opened.model.complete(Request([Message("user", "2 + 2 =")], role="solver"))

`local/<name>` is downloaded once and served on this machine, `local/<file.gguf>` is a user's own file,
`replay/<run folder>` answers from a recorded run, `oracle` from the questions' gold, and `<package>:<class>`
and the names of entry points are users' own models (own.py). Every other name is litellm's.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from anyio import CancelScope, to_thread

from rewoo_bench.config.names import LOCAL, REPLAY, WIRE_NAME, is_oracle
from rewoo_bench.errors import DataError, ModelError, UsageError
from rewoo_bench.models.hosted.client import HostedModel, Style
from rewoo_bench.models.hosted.providers import Route, find_route, price_list, route_to_ours, with_prices
from rewoo_bench.models.local.catalogue import fetch, find_entry, stamped_sha256
from rewoo_bench.models.local.server import (
    LocalServer,
    PerArchitectureModel,
    ServerSettings,
    read_header,
    serve,
    server_version,
)
from rewoo_bench.models.oracle.model import open_oracle
from rewoo_bench.models.own import ModelSettings, is_own_model, open_own_model, own_manifest
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.system.files import cache_dir
from rewoo_bench.types import Completion, Model, Request

__all__ = ["ModelSettings", "OpenModel", "open_model"]

DEFAULT_SETTINGS = ModelSettings()
HOSTED_CONCURRENCY = 32
REPLAY_CONCURRENCY = 8
OWN_CONCURRENCY = 8
_SPEED_ONLY = frozenset({"threads", "prefix_cache"})  # facts of a manifest that change latencies and no answer
_THREAD_FLAGS = frozenset({"-t", "--threads"})  # of a llama-server
_log = logging.getLogger(__name__)
_CHAT_FROM = 1_000_000_000  # weights; smaller models continue a transcript better than they answer in turns


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model that is ready.

    `name` is the user's name for it, `manifest` its exact description (JSON-ready), `concurrency` a sensible number
    of simultaneous calls. `prices` are dollars per million tokens by kind, None where they aren't known.
    """

    model: Model
    name: str
    concurrency: int
    manifest: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, float] | None = None
    sent: Callable[[], Mapping[str, Any]] = dict
    """How requests differ so far from the settings, since the endpoint refused a part of them."""
    recall: Callable[[Mapping[str, Any]], None] = lambda _: None
    """Restores what `sent` returned in an earlier session."""
    wire_name: str | None = None
    """The model's name in requests of external agents; None where it has no HTTP endpoint."""
    embedding_name: str | None = None
    """The name of the embedding model of a recorded run, in a replay of it."""

    @property
    def identity(self) -> str:
        """The model's part of a `--answer-cache` key: the manifest without facts that change no answer."""
        facts = {name: fact for name, fact in self.manifest.items() if name not in _SPEED_ONLY}
        return json.dumps(facts, sort_keys=True, default=str)


class ReplayModel:
    """The model of a replay. The recorder answers every call, so any call of it is an error."""

    async def complete(self, request: Request) -> Completion:
        raise ModelError("a replay has no model; it has only recorded answers")


@dataclass(frozen=True, slots=True)
class _LocalFile:
    """A model file and its default settings."""

    label: str
    path: Path
    style: Literal["chat", "completion"]
    facts: Mapping[str, Any]


@asynccontextmanager
async def open_model(name: str, settings: ModelSettings = DEFAULT_SETTINGS) -> AsyncIterator[OpenModel]:
    """The model of that name; a local one is downloaded and served first.

    Raises `ModelNotFound` for a model that doesn't exist or can't be downloaded, `MissingKey` where a provider's
    key isn't set.
    """
    if name.startswith(REPLAY):
        names = await to_thread.run_sync(_recorded_wire_names, Path(name.removeprefix(REPLAY)))
        wire: dict[str, Any] = {"wire_name": names.get("default"), "embedding_name": names.get("embedding")}
        yield OpenModel(ReplayModel(), name, REPLAY_CONCURRENCY, {"name": name}, **wire)
        return
    if is_oracle(name):
        oracle = open_oracle(name)
        yield OpenModel(oracle, name, REPLAY_CONCURRENCY, oracle.manifest)
        return
    if is_own_model(name):
        async with open_own_model(name) as model:
            yield OpenModel(model, name, OWN_CONCURRENCY, own_manifest(name, model))
        return
    opening = _open_local(name, settings) if name.startswith(LOCAL) else _open_hosted(name, settings)
    async with opening as opened:
        yield opened


@asynccontextmanager
async def _open_local(name: str, settings: ModelSettings) -> AsyncIterator[OpenModel]:
    program = _command(settings.llama_server or "")
    software = await to_thread.run_sync(server_version, program)
    file = await to_thread.run_sync(_local_file, name.removeprefix(LOCAL))
    style = file.style if settings.prompt_form == "auto" else settings.prompt_form
    constrain = "grammar" if settings.constrain == "auto" else settings.constrain
    wanted = ServerSettings(n_parallel=settings.n_parallel, threads=settings.threads, program=program)
    copies = 1 if settings.n_parallel > 1 or program else settings.n_caches
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(serve(file.path, wanted, copies=copies))
        clients: dict[LocalServer, Model] = {}
        for server in servers.all:
            ours = partial(route_to_ours, file.label, server.api_base)
            find_route = lambda style, ours=ours: with_prices(ours(style), settings.prices)  # noqa: E731
            client = _client(name, settings, style, constrain, server.api_base, "none", find_route)
            clients[server] = await stack.enter_async_context(_closing(client))
        served = {
            "n_parallel": servers.settings.n_parallel,
            "threads": servers.settings.threads,
            "context": servers.settings.context,
            "prefix_cache": "shared" if settings.n_caches > copies else "own",
            **software,
        }
        if program[1:]:  # they overrule ours and may change answers, so they are a part of the `--answer-cache` key
            served["llama_server_arguments"] = shlex.join(program[1:])
            if not _THREAD_FLAGS.isdisjoint(argument.partition("=")[0] for argument in program[1:]):
                del served["threads"]  # the arguments say it
        manifest = {**_settings_manifest(name, settings, style, constrain), **file.facts, **served}
        model = PerArchitectureModel(servers, clients)
        yield OpenModel(model, name, settings.n_parallel, manifest, settings.prices, wire_name=file.label)


@asynccontextmanager
async def _open_hosted(name: str, settings: ModelSettings) -> AsyncIterator[OpenModel]:
    style = "chat" if settings.prompt_form == "auto" else settings.prompt_form
    constrain = "schema" if settings.constrain == "auto" else settings.constrain

    def routed(style: Style) -> Route:
        return with_prices(find_route(name, settings.api_base, None, style), settings.prices)

    model = _client(name, settings, style, constrain, settings.api_base, None, routed)
    async with _closing(model):
        model.check()
        manifest = {**_settings_manifest(name, settings, style, constrain), "api_base": settings.api_base}
        prices = price_list(routed("chat"))
        manifest["litellm"] = version("litellm")
        wire_name = model.wire_name
        yield OpenModel(model, name, HOSTED_CONCURRENCY, manifest, prices, model.sent, model.recall, wire_name)


@asynccontextmanager
async def _closing(model: HostedModel) -> AsyncIterator[HostedModel]:
    """The model; its connections are closed in the end, after a cancellation too."""
    try:
        yield model
    finally:
        with CancelScope(shield=True):
            await model.aclose()


def _client(
    name: str,
    settings: ModelSettings,
    style: Literal["chat", "completion"],
    constrain: Literal["grammar", "schema", "none"],
    api_base: str | None,
    api_key: str | None,
    find_route: Callable[[Style], Route] | None = None,
) -> HostedModel:
    return HostedModel(
        name,
        api_base=api_base,
        api_key=api_key,
        style=style,
        constrain=constrain,
        temperature=settings.temperature,
        max_output_tokens=settings.reply_tokens,
        timeout=settings.timeout,
        seed=settings.seed,
        reasoning_effort=settings.reasoning_effort,
        prompt_cache=settings.provider_cache,
        drop_params=settings.drop_params,
        extra_body=settings.extra_body,
        find_route=find_route,
    )


def _recorded_wire_names(recorded: Path) -> dict[str, str]:
    """By role: the model's name in the requests of a recorded run's agents, if any.

    Warns of a manifest that can't be read: a replay needs only the journal, but the run is damaged.
    """
    if not (recorded / MANIFEST).exists():
        return {}
    try:
        models = read_manifest(recorded).models
    except DataError as error:
        _log.warning("%s; the replay uses the recorded calls alone", error)
        return {}
    return {role: facts[WIRE_NAME] for role, facts in models.items() if facts and facts.get(WIRE_NAME)}


def _command(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--llama-server: {text!r} is not a command: {error}") from None


def _settings_manifest(name: str, settings: ModelSettings, style: str, constrain: str) -> dict[str, Any]:
    """The part of a manifest that every model has."""
    facts = {
        "name": name,
        "style": style,
        "constrain": constrain,
        "temperature": settings.temperature,
        "max_output_tokens": settings.reply_tokens,
        "seed": settings.seed,
    }
    chosen = {
        "reasoning_effort": settings.reasoning_effort,
        "prompt_cache": settings.provider_cache,
        "drop_params": list(settings.drop_params),
        "extra_body": dict(settings.extra_body),
    }
    return {**facts, **{fact: value for fact, value in chosen.items() if value}}


def _local_file(name: str) -> _LocalFile:
    """The file of a catalogue name (downloaded) or of a path."""
    if not name.endswith(".gguf"):
        entry = find_entry(name)
        facts: dict[str, Any] = {"file": entry.files[0].name, "sha256": entry.files[0].sha256, "licence": entry.licence}
        return _LocalFile(name, fetch(entry), entry.style, facts)
    path = Path(name).expanduser()
    header = read_header(path)
    style: Literal["chat", "completion"] = (
        "chat" if header.chat_template and header.parameters > _CHAT_FROM else "completion"
    )
    sha256 = stamped_sha256(path, _stamp_of(path))
    facts = {"file": path.name, "sha256": sha256, "parameters": header.parameters}
    return _LocalFile(path.stem, path, style, facts)


def _stamp_of(path: Path) -> Path:
    """The stamp of a user's own file, in the cache: nothing is written into the user's folder."""
    place = hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    return cache_dir() / "stamps" / f"{place}.stamp"
