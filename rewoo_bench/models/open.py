"""Open a model by its name.

    async with open_model("local/smollm2-135m") as opened:
        completion = await opened.model.complete(Request([Message("user", "2 + 2 =")], role="solver"))

`local/<name>` is downloaded once and served on this machine, `local/<file.gguf>` is a user's own file,
`replay/<run folder>` answers from a recorded run, `oracle` from the questions' gold, and `<package>:<class>`
and the names of entry points are users' own models. Every other name is litellm's.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.metadata import version
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import Any

from anyio import CancelScope, to_thread

from rewoo_bench.config.names import LOCAL, REPLAY, WIRE_NAME, is_oracle
from rewoo_bench.config.plugins import find_plugin
from rewoo_bench.config.specs import import_object
from rewoo_bench.errors import ModelError, UsageError
from rewoo_bench.models.hosted.client import DEFAULT_SETTINGS, HostedModel, ModelSettings
from rewoo_bench.models.hosted.providers import PromptForm, is_provider_name, price, price_list, route_to_ours
from rewoo_bench.models.local.catalogue import fetch, find_local_model, stamped_sha256
from rewoo_bench.models.local.server import (
    LocalServer,
    PerArchitectureModel,
    ServerSettings,
    has_chat_template,
    processor,
    serve,
    server_version,
)
from rewoo_bench.models.oracle.model import open_oracle
from rewoo_bench.runs.manifest import MANIFEST, read_manifest
from rewoo_bench.system.files import cache_dir
from rewoo_bench.types import Completion, GoldAware, Model, Request, Usage

__all__ = ["ModelSettings", "OpenModel", "open_model"]

HOSTED_CONCURRENCY = 32
REPLAY_CONCURRENCY = 8
OWN_CONCURRENCY = 8
_SPEED_ONLY = frozenset({"threads", "prefix_cache"})  # facts of a manifest that change latencies and no answer
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
    price: Callable[[Usage], float | None] | None = None
    """Dollars of a call at these prices; None for a model that counts its own dollars, or has none."""
    sent: Callable[[], Mapping[str, Any]] = dict
    """How requests differ so far from the settings, since the endpoint refused a part of them."""
    recall: Callable[[Mapping[str, Any]], None] = lambda _: None
    """Restores what `sent` returned in an earlier session."""
    wire_name: str | None = None
    """The model's name in requests of external agents; None where it has no HTTP endpoint."""
    seed: int | None = None
    """That of its requests in a question's first trial; None where it has none."""
    embedding_name: str | None = None
    """The name of the embedding model of a recorded run, in a replay of it."""

    @property
    def cache_key_part(self) -> str:
        """The model's part of a `--answer-cache` key: the manifest without facts that change no answer."""
        facts = {name: fact for name, fact in self.manifest.items() if name not in _SPEED_ONLY}
        return json.dumps(facts, sort_keys=True, default=str)


class ReplayModel:
    """The model of a replay. The recorder answers every call, so any call of it is an error."""

    async def complete(self, request: Request) -> Completion:
        raise ModelError("a replay has no model; it has only recorded answers")


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
    elif is_oracle(name):
        oracle = open_oracle(name)
        yield OpenModel(oracle, name, REPLAY_CONCURRENCY, oracle.manifest)
    elif is_own_model(name):
        async with open_own_model(name) as own:
            yield OpenModel(own, name, OWN_CONCURRENCY, own_manifest(name, own))
    elif name.startswith(LOCAL):
        async with _open_local(name, settings) as opened:
            yield opened
    else:
        async with aclosing(HostedModel(name, settings)) as model:
            model.check()
            import_module("aiohttp")  # now, and not in the first question's seconds
            manifest = {**model.manifest(), "api_base": settings.api_base, "litellm": version("litellm")}
            route = model.route("chat")
            yield OpenModel(
                model,
                name,
                HOSTED_CONCURRENCY,
                manifest,
                price_list(route),
                price=partial(price, route),
                sent=model.sent,
                recall=model.recall,
                wire_name=model.wire_name,
                seed=settings.seed,
            )


def is_hosted(name: str) -> bool:
    """Whether a model of that name is asked at a provider or at an address."""
    return not (name.startswith((REPLAY, LOCAL)) or is_oracle(name) or is_own_model(name))


def _recorded_wire_names(recorded: Path) -> dict[str, str]:
    """By role: the model's name in the requests of a recorded run's agents, if any."""
    models = read_manifest(recorded).models if (recorded / MANIFEST).exists() else {}
    return {role: facts[WIRE_NAME] for role, facts in models.items() if facts and facts.get(WIRE_NAME)}


@asynccontextmanager
async def _open_local(name: str, settings: ModelSettings) -> AsyncIterator[OpenModel]:
    try:
        program = tuple(shlex.split(settings.llama_server or ""))
    except ValueError as error:
        raise UsageError(f"--llama-server: {settings.llama_server!r} is not a command: {error}") from None
    software = await to_thread.run_sync(server_version, program)
    path, style, facts = await to_thread.run_sync(_local_file, name.removeprefix(LOCAL))
    label = path.stem if name.endswith(".gguf") else name.removeprefix(LOCAL)
    wanted = ServerSettings(n_parallel=settings.n_parallel, program=program)
    copies = 1 if settings.n_parallel > 1 or program else settings.n_caches
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(serve(path, wanted, copies=copies))
        parameters = servers.all[0].parameters
        if style is None:
            style = "chat" if parameters > _CHAT_FROM and has_chat_template(path) else "completion"
            facts["parameters"] = parameters
        settings = replace(
            settings,
            prompt_form=style if settings.prompt_form == "auto" else settings.prompt_form,
            constrain="grammar" if settings.constrain == "auto" else settings.constrain,
        )
        clients: dict[LocalServer, HostedModel] = {}
        for server in servers.all:
            to_it = partial(route_to_ours, label, server.api_base)
            client = HostedModel(name, replace(settings, api_base=server.api_base), find_route=to_it)
            clients[server] = await stack.enter_async_context(aclosing(client))
        served = {
            "n_parallel": servers.settings.n_parallel,
            "threads": servers.settings.threads,
            "context": servers.settings.context,
            "prefix_cache": "shared" if settings.n_caches > copies else "own",
            "processor": processor(),
            **software,
        }
        if program[1:]:  # they overrule ours and may change answers, so they are a part of the `--answer-cache` key
            served["llama_server_arguments"] = shlex.join(program[1:])
        manifest = {**client.manifest(), **facts, **served}
        model = PerArchitectureModel(servers, clients)
        of_call = partial(price, client.route("chat"))
        yield OpenModel(
            model, name, settings.n_parallel, manifest, settings.prices, price=of_call, wire_name=label,
            seed=settings.seed,
        )  # fmt: skip


def _local_file(name: str) -> tuple[Path, PromptForm | None, dict[str, Any]]:
    """The file of a catalogue name (downloaded) or of a path, the form that the catalogue gives it, and its facts."""
    if not name.endswith(".gguf"):
        entry = find_local_model(name)
        file = entry.files[0]
        return fetch(entry), entry.style, {"file": file.name, "sha256": file.sha256, "licence": entry.licence}
    path = Path(name).expanduser()
    has_chat_template(path)  # which refuses what is no model file
    # The stamp lies in the cache: nothing is written into the user's folder.
    place = hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    sha256 = stamped_sha256(path, cache_dir() / "stamps" / f"{place}.stamp")
    return path, None, {"file": path.name, "sha256": sha256}


# A user's own model: by its import path, or by the name of an installed package's entry point.
#
#     rewoo-bench run --model my_package:MyModel      # a class, a function that returns a model, or a model
#     rewoo-bench run --model my-model                # [project.entry-points."rewoo_bench.models"] my-model = "…"
#
# A class or function is called without arguments. The model needs `async complete(request)`, as
# `rewoo_bench.types.Model` has it; `name`, `max_output_tokens` and `async aclose()` are optional. Its price is unknown,
# and the flags that set temperature or output length are its own affair. A model with `with_gold` is given each
# question's gold, as the oracle is, and the manifest says so (`sees_gold`).


_OTHER_SIGNATURE = """'complete' gets one argument, the request. Change it to
    from rewoo_bench.types import Request
    async def complete(self, request: Request):
        messages, role, stop = request.messages, request.role, request.stop     # and max_tokens, tools, schema, …"""
_IMPORT_PATH = re.compile(r"(?!ft:)[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")  # "ft:…" is OpenAI's


def is_own_model(name: str) -> bool:
    """Whether a name is an import path, or one that an installed package has given to a model."""
    if name.startswith((LOCAL, REPLAY)) or is_oracle(name):
        return False
    if _IMPORT_PATH.fullmatch(name):
        return True
    return not is_provider_name(name) and find_plugin("models", name) is not None


@asynccontextmanager
async def open_own_model(name: str) -> AsyncIterator[Model]:
    """The model of that name, closed in the end.

    Raises `UsageError` where it can't be imported or made, or has no `async complete`.
    """
    where = f"--model: {name!r}"
    model: Any = import_object(name, "--model") if _IMPORT_PATH.fullmatch(name) else find_plugin("models", name)
    if isinstance(model, type) or not hasattr(model, "complete"):
        if not callable(model):
            raise UsageError(f"{where} is neither a model nor a function or class that makes one")
        try:
            model = model()
        except Exception as error:  # of the user's own code
            raise UsageError(f"{where} can't be made without arguments: {type(error).__name__}: {error}") from error
    if not iscoroutinefunction(getattr(model, "complete", None)):
        raise UsageError(f"{where} is no model: {type(model).__name__} has no method 'async def complete(…)'")
    if len(signature(model.complete).parameters) != 1:
        raise UsageError(f"{where}: {_OTHER_SIGNATURE}")
    try:
        yield model
    finally:
        if iscoroutinefunction(close := getattr(model, "aclose", None)):
            with CancelScope(shield=True):
                await close()


def own_manifest(name: str, model: Model) -> dict[str, Any]:
    """What exactly answers, JSON-ready."""
    kind = type(model)
    facts: dict[str, Any] = {
        "name": name,
        "import_path": name if _IMPORT_PATH.fullmatch(name) else f"{kind.__module__}:{kind.__qualname__}",
        "own_name": str(getattr(model, "name", kind.__name__)),
    }
    return {**facts, "sees_gold": True} if isinstance(model, GoldAware) else facts
