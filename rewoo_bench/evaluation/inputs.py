"""What a run asks of whom: its questions, its architectures and what they search, all checked.

Nothing here costs anything: no model is fetched or asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from anyio import to_thread

from rewoo_bench.errors import UsageError
from rewoo_bench.evaluation.step_limits import check_step_limits
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.loaders.gold_chains import for_oracle
from rewoo_bench.loaders.load import Dataset, load_dataset_examples
from rewoo_bench.model_names import LOCAL, REPLAY, is_oracle
from rewoo_bench.models.own import is_own_model
from rewoo_bench.models.settings import ModelSettings
from rewoo_bench.runners.architecture import Architecture, load_architecture
from rewoo_bench.runs.options import RunOptions
from rewoo_bench.tools import Corpus
from rewoo_bench.tools.faults import Faults


@dataclass(frozen=True)
class Inputs:
    """What is asked of whom, all checked."""

    dataset: Dataset
    architectures: list[Architecture]
    toolbox: Toolbox
    corpus: Corpus | None


async def read_inputs(options: RunOptions) -> Inputs:
    """The questions, the architectures and what they search. Raises `UsageError`."""
    if options.api_base and not options.api_base.startswith(("http://", "https://")):
        shown = options.api_base.rpartition("@")[2]
        raise UsageError(f"--api-base: {shown!r} is no address; write http://… or https://…")
    if options.api_base:
        _check_user_info(options.api_base)
    load = partial(load_dataset_examples, options.dataset, split=options.split, seed=options.seed)
    dataset = await to_thread.run_sync(lambda: load(limit=options.limit))
    architectures = _architectures(options, dataset.style)
    if options.resume is None and not options.model.startswith(REPLAY):  # a begun run goes on as it is
        check_step_limits(dataset, architectures)
    path = options.corpus or dataset.corpus
    corpus = await to_thread.run_sync(Corpus.open, path) if path else None
    for flag, value in (("--llama-server", options.llama_server), ("--threads", options.threads)):
        if value and not any(role.name.startswith(LOCAL) for role in options.role_models.values()):
            raise UsageError(f"{flag}: no model of this run is a local one (--model local/…)")
    hosted = [role.name for role in options.role_models.values() if not _is_ours(role.name)]
    for flag, value in (("--api-base", options.api_base), ("--prompt-cache", options.prompt_cache)):
        if value and not hosted and options.resume is None:  # a begun run goes on as it is
            raise UsageError(f"{flag}: no model of this run is asked at a provider; leave it out")
    if options.judge_model and is_oracle(options.judge_model):
        raise UsageError("--judge-model: an oracle judges nothing; name a language model")
    _check_replay(options)
    if any(is_oracle(role.name) for role in options.role_models.values()):
        looks_up = any(architecture.spec.tools for architecture in architectures)
        larger = (lambda limit: load(limit=limit)) if options.limit else None
        dataset = await to_thread.run_sync(lambda: for_oracle(dataset, corpus, larger, looks_up=looks_up))
    toolbox = Toolbox(corpus, Faults(options.tool_failure_rate, options.tool_failure_mode, options.seed))
    for architecture in architectures:
        toolbox.check(architecture, dataset.examples[0])
        _check_pages(architecture, dataset, corpus)
    return Inputs(dataset, architectures, toolbox, corpus)


def sample_note(dataset: Dataset, limit: int | None) -> str | None:
    """What the user should know about the number of questions, if anything."""
    size, left_out = len(dataset.examples), dataset.manifest.get("without_chain") or 0
    have_none = f"{left_out} others have no gold chain, and the oracle needs one"
    if limit is not None and size < limit:
        note = f"{dataset.name} has {size} questions{' with a gold chain' if left_out else ''}"
        return f"{note}, all of them are taken (-n {limit})" + (f"; {have_none}" if left_out else "")
    return f"{dataset.name}: {size} questions are taken; {have_none}" if left_out else None


def _check_user_info(api_base: str) -> None:
    """A raw "/" in a password would make the user's name the host, and the password a part of what is sent there."""
    try:
        parts = urlsplit(api_base)
        is_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise UsageError("--api-base: an '@' or a port in the wrong place; percent-encode the password ('/' is %2F)")


def _is_ours(name: str) -> bool:
    """Whether a model is asked at no address of a provider: a local one, a replay, the oracle, or a user's own."""
    return name.startswith((LOCAL, REPLAY)) or is_oracle(name) or is_own_model(name)


def _check_replay(options: RunOptions) -> None:
    """What a recorded planner planned is all that its solver was asked of: only a judge can be another model."""
    for flag, name in (("--planner-model", options.planner_model), ("--solver-model", options.solver_model)):
        if name and name != options.model and any(each.startswith(REPLAY) for each in (name, options.model)):
            raise UsageError(f"{flag}: a replay answers for the planner and the solver both; leave it out")


def _check_pages(architecture: Architecture, dataset: Dataset, corpus: Corpus | None) -> None:
    """A search with nothing to find would make every agent look bad."""
    searches = {"Search", "Lookup"} & architecture.spec.tools.keys()
    if searches and corpus is None and not any(example.documents for example in dataset.examples):
        raise UsageError(
            f"the questions of {dataset.name!r} come without documents, and {architecture.name!r} searches: "
            "give passages with --corpus FILE"
        )


def _architectures(options: RunOptions, style: str) -> list[Architecture]:
    max_steps = options.max_steps
    architectures = [load_architecture(name, style=style, max_steps=max_steps) for name in options.architectures]
    names = [architecture.name for architecture in architectures]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--arch: {name!r} twice; two folders need two names in their architecture.toml")
    return architectures


def model_settings(options: RunOptions) -> ModelSettings:
    """What the options say to every model."""
    return ModelSettings(
        api_base=options.api_base,
        llama_server=options.llama_server,
        temperature=options.temperature,
        max_output_tokens=options.max_output_tokens,
        reasoning_effort=options.reasoning_effort,
        prompt_cache=options.prompt_cache,
        drop_params=options.drop_params,
        extra_body=json.loads(options.extra_body) if options.extra_body else {},
        timeout=options.timeout,
        seed=options.seed,
        style=options.style,
        constrain=options.constrain,
        n_parallel=options.concurrency or 1,
        threads=options.threads,
        n_caches=len(options.architectures),
    )
