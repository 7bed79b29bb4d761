"""The inputs of a run, loaded and checked: questions, architectures and passages.

Nothing here costs anything: no model is fetched or asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from anyio import to_thread

from rewoo_bench.config.named import checked_tools, find_scorer, known_names
from rewoo_bench.config.names import LOCAL, RECORDED, REPLAY, RUNNERS, is_oracle
from rewoo_bench.config.specs import AGENT_NAME, ToolSettings
from rewoo_bench.errors import UsageError, unknown
from rewoo_bench.evaluation.question_choice import load_chosen
from rewoo_bench.evaluation.toolbox import Toolbox
from rewoo_bench.evaluation.with_worlds import (
    LIMITS_IN_WORLDS,
    shared_state_notes,
    with_checked_actions,
    with_checked_world,
    with_world_tools,
    worlds_of,
)
from rewoo_bench.loaders.load import Dataset, with_chains
from rewoo_bench.loaders.sampling import ids_hash
from rewoo_bench.models.hosted.client import ModelSettings
from rewoo_bench.models.open import REPLAY_CONCURRENCY, OpenModel, is_hosted
from rewoo_bench.runners.architecture import (
    AGENT_COMMAND,
    MAX_EXEMPLARS,
    Architecture,
    UnfitExemplars,
    load_architecture,
)
from rewoo_bench.runners.notation.replies import FINISH
from rewoo_bench.runs.option_types import json_object
from rewoo_bench.runs.options import OPTIONS, RunOptions
from rewoo_bench.text.redaction import hide_credentials
from rewoo_bench.text.scoring import Scorer
from rewoo_bench.text.tokens import count_tokens
from rewoo_bench.text.words import counted
from rewoo_bench.tools import Corpus
from rewoo_bench.tools.guards import Faults
from rewoo_bench.tools.mcp_server import McpServers
from rewoo_bench.tools.recordings import Recording
from rewoo_bench.types import CountsSteps, Example, GoldAware, Hop, Model

EXAMPLES = "examples"
"""The data set's name in a run over examples."""

PYTHON = "python"
"""Key of the manifest's facts about an object, which no command can make again."""


@dataclass(frozen=True)
class PythonInputs:
    """Objects that a run uses instead of the names in its options; None where the name counts."""

    examples: Sequence[Example] | None = None
    exemplars: str = "multihop"
    """Style of the exemplars for `examples`."""
    scoring: str | Scorer = "hotpotqa"
    """Metric for `examples`."""
    architectures: Sequence[str | Architecture] | None = None
    model: Model | None = None
    loaded: Dataset | None = None
    """The data set, loaded and checked in another process."""
    n_caches: int | None = None
    """Prefix caches of a local model, which other runs may use, too; None is one for each architecture."""

    def open_model(self) -> OpenModel:
        """The given model, as `open_model` gives one for a name."""
        model = cast(Model, self.model)
        name = model_name(model)
        facts = getattr(model, "manifest", None) or {
            "name": name,
            PYTHON: f"{type(model).__module__}:{type(model).__qualname__}",
        }
        return OpenModel(model, name, REPLAY_CONCURRENCY, facts, wire_name=getattr(model, "wire_name", None))

    def dataset(self, limit: int | None, seed: int) -> Dataset:
        """The first `limit` of the examples. Raises `UsageError` for two of the same id."""
        every = tuple(self.examples or ())
        counts = Counter(example.id for example in every)
        if repeated := next((name for name, count in counts.items() if count > 1), None):
            raise UsageError(f"dataset: {counts[repeated]} examples have the id {repeated!r}")
        chosen = every[:limit]
        digest = ids_hash(example.id for example in chosen)
        facts = {
            "name": EXAMPLES,
            "source": {PYTHON: EXAMPLES, "sha256": sha256(repr(every).encode()).hexdigest()},
            "seed": seed,
            "limit": limit,
            "rows": len(every),
            "examples": len(chosen),
            "ids_hash": digest,
        }
        return Dataset(EXAMPLES, self.exemplars, find_scorer(self.scoring), "", chosen, digest, None, facts)


def model_name(model: Model) -> str:
    """The name that a model object has in a run; a name that means another kind of model gives way to its class's."""
    name = str(getattr(model, "name", "") or type(model).__name__)
    is_taken = name.startswith((LOCAL, REPLAY)) or (is_oracle(name) and not isinstance(model, GoldAware))
    return type(model).__name__ if is_taken else name


async def with_mcp_tools(
    architectures: Sequence[Architecture], addresses: Sequence[str], servers: McpServers
) -> list[Architecture]:
    """The architectures with these tools, their servers connected. One that uses no tools stays as it is.

    Raises `UsageError` for a server that can't be used, and for two tools of one name.
    """
    added = [(address, *names) for address in addresses for names in (await servers.connect(address)).names.items()]
    extended = []
    for architecture in architectures:
        tools = {
            name: await _checked(name, settings, servers, architecture.name) if settings.mcp else settings
            for name, settings in architecture.spec.tools.items()
        }
        for address, name, remote in added if architecture.uses_tools else ():
            if name in tools or name.lower() == FINISH.lower():
                taken = "has a tool" if name in tools else "has an action"
                raise UsageError(
                    f"--mcp: {architecture.name!r} {taken} {name!r} already; give this server's tools a prefix: "
                    f"--mcp '[prefix=other] {hide_credentials(address)}', or choose some of them: [only=NAME,NAME]"
                )
            settings = ToolSettings(mcp=address, mcp_tool=remote)
            tools[name] = await _checked(name, settings, servers, architecture.name)
        if tools:
            architecture = replace(architecture, spec=architecture.spec.model_copy(update={"tools": tools}))
        extended.append(architecture)
    return extended


async def _checked(name: str, settings: ToolSettings, servers: McpServers, architecture: str) -> ToolSettings:
    """The settings with the hash of the server's description. Raises `UsageError` for a tool that it doesn't have."""
    assert settings.mcp is not None
    server = await servers.connect(settings.mcp)
    remote = settings.mcp_tool or name
    if remote not in server.schemas:
        raise UsageError(
            f"architecture {architecture!r}: [tools.{name}]: {unknown('MCP tool', remote, server.schemas)}"
        )
    schema = server.schemas[remote]
    return settings.model_copy(update={"schema_sha256": schema.sha256, "changes_state": schema.changes_state})


def with_recorded_tools(
    architectures: Sequence[Architecture],
) -> tuple[list[Architecture], dict[str, Recording]]:
    """The architectures with the tools of the recordings that they name, and these recordings by the ids of their runs.

    Raises `UsageError` for what is no recording, and for a tool that it doesn't have.
    """
    read: dict[str, Recording] = {}
    extended = []
    for architecture in architectures:
        own = architecture.spec.tools
        tools: dict[str, ToolSettings] = {}
        for name, settings in own.items():
            if settings.recording is None:
                tools[name] = settings
                continue
            if settings.recording not in read:
                read[settings.recording] = Recording.read(Path(settings.recording))
            recording = read[settings.recording]
            remote = settings.recorded_tool or name
            if name.startswith(RECORDED):
                names = recording.names({*own, *tools} - {name})
            elif remote in recording.schemas:
                names = {name: remote}
            else:
                what = unknown("recorded tool", remote, recording.schemas)
                raise UsageError(f"architecture {architecture.name!r}: [tools.{name}]: {what}")
            for each, remote in names.items():
                facts = {"recording": recording.run_id, "recording_sha256": recording.sha256, "recorded_tool": remote}
                facts["schema_sha256"] = recording.schemas[remote].sha256
                tools[each] = settings.model_copy(update=facts)
        if tools != own:
            architecture = replace(architecture, spec=architecture.spec.model_copy(update={"tools": tools}))
        extended.append(architecture)
    return extended, {recording.run_id: recording for recording in read.values()}


def _check_tools_left(architectures: Iterable[Architecture], chosen_by: str) -> None:
    """Raises `UsageError` for an architecture that uses tools and has none; a program may have tools of its own."""
    for each in architectures:
        own = {tool for parent in each.parents for tool in parent.spec.tools}
        from_servers = each.spec.tools.keys() - own
        for loop in each.parents or (each,):
            if loop.uses_tools and not (loop.spec.tools or from_servers) and loop.spec.runner != AGENT_NAME:
                raise UsageError(
                    f"{chosen_by} leaves {loop.name!r} without a tool; add one of {', '.join(loop.left_out_tools)}, "
                    "a tool of your own (module:function), or a server's with --mcp"
                )


def with_fitting_exemplars(
    wanted: Sequence[str | Architecture], architectures: Sequence[Architecture], **choices: Any
) -> list[Architecture]:
    """The architectures, each without its bundled exemplars where these call a tool that isn't beside foreign ones.

    `?max_exemplars=` keeps them, and those of a folder of the user's own stay.
    """
    fitting = []
    for named, each in zip(wanted, architectures, strict=True):
        is_bundled = isinstance(named, str) and named.partition("?")[0] in known_names("architectures")
        if is_bundled and each.has_foreign_tools and (shown := each.shown_but_left_out):
            bare = load_architecture(str(named), **{**choices, MAX_EXEMPLARS: 0})
            if not bare.shown_but_left_out:
                shots = map(each.prompts.shots, each.prompts.exemplars)
                tokens = max(sum(count_tokens(message.content) for message in prompt) for prompt in shots)
                each = replace(bare, spec=bare.spec.model_copy(update={"tools": each.spec.tools}))
                each = replace(each, unfit=UnfitExemplars(tuple(shown), tokens))
        fitting.append(each)
    return fitting


def _check_played_tools(dataset: Dataset, architectures: Iterable[Architecture]) -> None:
    """Raises `UsageError` for an architecture whose foreign tools an oracle can't call in the place of those it plays.

    Tools beside these are no harm. Which tools a program or a loop of the user's own calls isn't known here.
    """
    looks_up = any(hop.tool != "Calculator" for example in dataset.examples for hop in example.chain)
    played = {"Search", "Wikipedia"} if looks_up else {"Calculator"}
    for each in architectures:
        tools = each.spec.tools
        if each.has_foreign_tools and not played & tools.keys() and each.spec.runner in RUNNERS:
            raise UsageError(
                f"the oracle plays Search, Calculator and LLM alone, and {each.name!r} has {', '.join(tools)}; name a "
                f"language model with --model, or add {min(played)} to --tools"
            )


# A question of a generated set such as chain needs a given number of look-ups. An architecture with a lower step limit
# would end without an answer, after hardly any tool calls: a cost that says nothing about it. With other data sets the
# step limit is a part of the measurement.


def check_step_limits(dataset: Dataset, architectures: Iterable[Architecture]) -> None:
    """Raises `UsageError` where a question of a generated set needs more steps than an architecture may take."""
    if "generator" not in (dataset.manifest.get("source") or {}):
        return
    short = [
        (needed, allowed, architecture.name)
        for architecture in architectures
        for example in dataset.examples
        for needed, allowed in _steps(architecture, example.chain)
        if needed > allowed
    ]
    if short:
        needed, allowed, name = max(short)
        raise UsageError(
            f"{dataset.name} has questions that need {needed} steps of {name!r}, which takes at most {allowed}: "
            f"give --max-steps {needed}"
        )


def step_limit_notes(dataset: Dataset, architectures: Iterable[Architecture]) -> list[str]:
    """A note for each architecture whose step limit keeps even a perfect model from answering some questions."""
    notes = []
    for each in architectures:
        needs = [_steps(each, example.chain) for example in dataset.examples]
        # One loop with a limit that is high enough, or without any, answers.
        beyond = [min(need) for need in needs if need and all(needed > allowed for needed, allowed in need)]
        if beyond:
            needed, allowed = max(beyond)
            count = f"{len(beyond)} of {len(needs)} questions"
            notes.append(
                f"{dataset.name}: {count} need more than the {allowed} steps that {each.name} may take; "
                f"--max-steps {needed} is enough"
            )
    return notes


def trial_notes(options: RunOptions, architectures: Iterable[Architecture]) -> list[str]:
    """A note where trials ask for one answer again and again; an external agent has a temperature of its own, an oracle
    none."""
    is_set = options.temperature or all(is_oracle(role.name) for role in options.role_models.values())
    if options.trials < 2 or is_set or all(each.spec.runner == AGENT_NAME for each in architectures):
        return []
    return [
        "at temperature 0 a model that computes the same each time gives every trial the same answer: trials show "
        "how the server's arithmetic differs, and --temperature 0.7 how the answers do"
    ]


def _steps(architecture: Architecture, chain: Sequence[Hop]) -> list[tuple[float, float]]:
    """Steps that each loop of an architecture needs for a gold chain, and its step limit; empty without a chain.

    An architecture that chooses from others has their loops. A runner that doesn't say what it needs may take any
    number of steps.
    """
    runners = [parent.runner for parent in architecture.parents] or [architecture.runner]
    return [
        (runner.steps_needed(chain), runner.max_steps) if isinstance(runner, CountsSteps) else (0, math.inf)
        for runner in runners
        if chain
    ]


NOTHING_GIVEN = PythonInputs()


@dataclass(frozen=True)
class RunInputs:
    """Questions, architectures, tools and passages of a run, all checked."""

    dataset: Dataset
    architectures: list[Architecture]
    toolbox: Toolbox
    corpus: Corpus | None


async def read_run_inputs(
    options: RunOptions, python_inputs: PythonInputs = NOTHING_GIVEN, servers: McpServers | None = None
) -> RunInputs:
    """Loads and checks the inputs of a run; `servers` are to hold its MCP servers. Raises `UsageError`."""
    _check_flags(options, python_inputs)
    if python_inputs.loaded is not None:
        dataset = python_inputs.loaded
    elif python_inputs.examples is not None:
        dataset = python_inputs.dataset(options.questions, options.seed)
    else:
        dataset = await to_thread.run_sync(load_chosen, options)
    worlds = await to_thread.run_sync(worlds_of, options, dataset)
    tools = checked_tools(options.tools, "--tools") or (("LLM",) if worlds else dataset.tools)
    wanted = python_inputs.architectures or options.architectures
    choices: dict[str, Any] = {"style": dataset.style, "tools": tools, "max_steps": options.max_steps}
    choices["objectives"] = dataset.scorer.objectives
    if worlds is not None:
        choices |= {**LIMITS_IN_WORLDS, **({"max_steps": options.max_steps} if options.max_steps else {})}
    architectures = _architectures(wanted, **choices)
    if worlds is not None:
        dataset = await with_checked_world(dataset, worlds, options.mcp_timeout)
        dataset = with_checked_actions(dataset, worlds)
        architectures = with_world_tools(architectures, worlds)
    if servers is not None:
        architectures = await with_mcp_tools(architectures, options.mcp, servers)
    architectures, recordings = await to_thread.run_sync(with_recorded_tools, architectures)
    _check_tools_left(architectures, f"--tools {','.join(options.tools)}" if options.tools else f"{dataset.name!r}")
    architectures = with_fitting_exemplars(wanted, architectures, **choices)
    for run, recording in recordings.items():
        if python_inputs.loaded is None and not any(example.id in recording.tasks for example in dataset.examples):
            raise UsageError(
                f"--tools {RECORDED}…: the run {run!r} has no tool call of these questions, which are known by their "
                "ids; give its tasks as the questions: --dataset with the same folder"
            )
    if options.judge_model and not any(example.answers for example in dataset.examples):
        raise UsageError(f"--judge-model: the questions of {dataset.name!r} have no gold answers to judge by")
    is_chosen = python_inputs.model is None and not options.model.startswith(REPLAY)
    if is_chosen and options.resume is None and python_inputs.loaded is None:  # a resumed run stays as it is
        check_step_limits(dataset, architectures)
    path = options.corpus or dataset.corpus
    corpus = await to_thread.run_sync(Corpus.open, path) if path else None
    if python_inputs.loaded is None and any(is_oracle(role.name) for role in options.role_models.values()):
        looks_up = any(architecture.spec.tools for architecture in architectures)

        def load_larger(count: int) -> Dataset:  # from which questions without a gold chain are left out
            return load_chosen(replace(options, questions=count))

        larger = load_larger if options.questions and python_inputs.examples is None else None
        in_world = worlds is not None
        dataset = await to_thread.run_sync(
            lambda: with_chains(dataset, corpus, larger, looks_up=looks_up, in_world=in_world)
        )
        if worlds is None:
            _check_played_tools(dataset, architectures)
    faults = Faults(options.tool_failure_rate, options.tool_failure_mode, options.seed)
    toolbox = Toolbox(
        corpus, faults, servers, options.tool_result_tokens, recordings, worlds, timeout_s=options.mcp_timeout
    )
    for architecture in architectures:
        toolbox.check(architecture, dataset.examples[0])
        searches = {name for name, settings in architecture.spec.tools.items() if settings.recording is None}
        if python_inputs.examples is not None or not {"Search", "Lookup"} & searches:
            continue  # examples of the caller may be for a model that needs no search
        if corpus is None and not any(example.documents for example in dataset.examples):
            raise UsageError(  # every agent would look bad
                f"the questions of {dataset.name!r} come without documents, and {architecture.name!r} searches: "
                "give passages with --corpus FILE, leave the search out with --tools Calculator,LLM, or take the "
                f"tools of a recorded run with --tools {RECORDED}RUN"
            )
    return RunInputs(dataset, architectures, toolbox, corpus)


def question_notes(dataset: Dataset) -> list[str]:
    """Notes on questions that are left out, and on those for which the oracle makes up a gold chain."""
    facts = dataset.manifest
    left_out = {
        "have neither a gold chain nor a page with the answer, and the oracle needs one": facts.get("without_chain"),
        "have a gold chain, but no documents to find its pages in": facts.get("without_pages"),
        f"fill no task of {dataset.scorer.objectives} questions": facts.get("without_task"),
    }
    notes = [f"{dataset.name}: left out since they {why}: {count}" for why, count in left_out.items() if count]
    if made_up := facts.get("one_look_up"):
        count = f"{made_up} of {counted(len(dataset.examples), 'question')}"
        why = "the oracle finds the answer in one look-up, so costs are those of questions that need no more"
        notes.append(f"{dataset.name}: {count} have no gold chain ('chain' in the file): {why}")
    return notes


def input_notes(dataset: Dataset, architectures: Iterable[Architecture], limit: int | None) -> list[str]:
    """Notes on fewer questions than asked for, and on architectures whose exemplars don't fit questions or tools."""
    size = len(dataset.examples)
    notes = []
    if limit is not None and size < limit:
        notes.append(f"{dataset.name} has {size} questions, all of them are taken (-n {limit})")
    notes += shared_state_notes(architectures)
    notes += [
        f"{each.name}: its exemplars show {' and '.join(shown)}, which it isn't offered"
        for each in architectures
        if (shown := each.shown_but_left_out)
    ]
    if unfit := {each.name: each.unfit for each in architectures if each.unfit}:
        called = " and ".join(dict.fromkeys(tool for exemplars in unfit.values() for tool in exemplars.tools))
        most = max(exemplars.tokens for exemplars in unfit.values())
        notes.append(
            f"without exemplars: {', '.join(unfit)}. The bundled ones call {called}, which isn't offered, and would "
            f"take up to {most:,} tokens of each prompt; `rewoo-bench new arch NAME` writes a folder for your own"
        )
    return notes + [
        f"{each.name} has no exemplars for {dataset.style} questions ({', '.join(each.fallback_styles)}); "
        f"those for {', '.join(dict.fromkeys(each.fallback_styles.values()))} questions are used"
        for each in architectures
        if each.fallback_styles
    ]


def _check_flags(options: RunOptions, python_inputs: PythonInputs) -> None:
    """Raises `UsageError` for an address that is none, and for a model that can't have the role of its flag."""
    if options.api_base is not None:
        _check_api_base(options.api_base)
    names = [role.name for role in options.role_models.values()]
    own = options.model if python_inputs.model is not None else None
    hosted = [name for name in names if name != own and is_hosted(name)]
    if options.api_base and not hosted and options.resume is None:  # a resumed run stays as it is
        raise UsageError("--api-base: no model of this run has a provider; leave it out")
    if options.judge_model and is_oracle(options.judge_model):
        raise UsageError("--judge-model: an oracle judges nothing; name a language model")
    if options.embedding_model and not is_hosted(options.embedding_model):
        reason = "a replay has the recorded embeddings" if options.model.startswith(REPLAY) else "it has no embeddings"
        raise UsageError(f"--embedding-model {options.embedding_model}: {reason}; name a provider's model")
    for flag, other in (("--planner-model", options.planner_model), ("--solver-model", options.solver_model)):
        if other and other != options.model and any(each.startswith(REPLAY) for each in (other, options.model)):
            raise UsageError(f"{flag}: a replay answers for the planner and the solver both; leave it out")


def _check_api_base(api_base: str) -> None:
    if not api_base.startswith(("http://", "https://")):
        raise UsageError(f"--api-base: {api_base.rpartition('@')[2]!r} is no address; write http://… or https://…")
    # A raw "/" in a password would make the user's name the host, and the password its path.
    try:
        parts = urlsplit(api_base)
        is_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise UsageError("--api-base: an '@' or a port in the wrong place; percent-encode the password ('/' is %2F)")


def _architectures(wanted: Sequence[str | Architecture], **choices: Any) -> list[Architecture]:
    """The architectures, loaded with the choices of `load_architecture` where they are names."""
    architectures = [load_architecture(each, **choices) if isinstance(each, str) else each for each in wanted]
    names = [architecture.name for architecture in architectures]
    for name in names:
        if names.count(name) > 1:
            if any(isinstance(each, str) and each.startswith(AGENT_COMMAND) for each in wanted):
                raise UsageError(f"--agent: two architectures are called {name!r}; give them folders with two names")
            raise UsageError(f"--arch: {name!r} twice; two folders need two names in their architecture.toml")
    return architectures


def model_settings(options: RunOptions) -> ModelSettings:
    """The settings of every model of a run: options of the same names, but for prices and fields, which are texts."""
    body = json_object(options.extra_body, "--extra-body")
    same = {each.name for each in fields(ModelSettings)} & OPTIONS.keys() - {"seed", "prices", "extra_body"}
    return ModelSettings(
        **{name: getattr(options, name) for name in same},
        extra_body={name: value for name, value in body.items() if value is not None},
        drop_params=tuple(name for name, value in body.items() if value is None),
        seed=options.seed,
        n_parallel=options.concurrency or 1,
        n_caches=len(options.architectures),
    )
