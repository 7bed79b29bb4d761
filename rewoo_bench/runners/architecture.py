"""An architecture, ready to run: its description, its texts and its loop.

load_architecture("rewoo", style="multihop")
load_architecture("./somewhere/mine", style="trivia", max_steps=5)
load_architecture("rewoo?max_exemplars=2&slot_tokens=100", style="multihop")
load_architecture("rewoo?tools=Search+LLM+Calculator", style="multihop")
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from rewoo_bench.config.named import (
    find_named,
    functions_of_files,
    known_names,
    named_settings,
    read_architecture,
    tools_for,
    with_own,
)
from rewoo_bench.config.names import AGENT_RUNNER, DESCRIPTIONS, RUNNERS, read_options, short_name
from rewoo_bench.config.names import TOOLS as BUNDLED_TOOLS
from rewoo_bench.config.specs import (
    AGENT_NAME,
    ArchitectureSpec,
    QuestionStyle,
    ToolSettings,
    import_class,
    import_object,
    validated,
)
from rewoo_bench.errors import SpecError, unknown
from rewoo_bench.runners.notation.quoting import QUOTED
from rewoo_bench.runners.prompts import Prompts, read_prompt, read_prompts
from rewoo_bench.system.files import is_file
from rewoo_bench.text.argument_checks import take_values
from rewoo_bench.types import Runner

AGENT_COMMAND = "agent:"
"""Start of the name of an architecture that is a command: "agent:python my_agent.py"."""
FALLBACK_STYLE = "multihop"
"""The style whose exemplars a prompt has for questions of a style that it has no exemplars for."""
WITHOUT = " without "
"""Between a style and the tools of the architecture that aren't offered: exemplars that don't show them."""
MAX_EXEMPLARS, SOLVER_EXEMPLARS, TOOLS = "max_exemplars", "solver_exemplars", "tools"  # options that are no settings
OBJECTIVES = "objectives"
MAP_TOKENS = "map_tokens"  # the setting that counts for each question of a task
_NEWER = ("quote_evidence", "frozen_arguments")
_AGENT_NAME = re.compile(r"(?=[\w.-]*[a-z])([A-Za-z0-9][\w.-]*)=")


@dataclass(frozen=True)
class UnfitExemplars:
    """Exemplars that are left out: the absent tools that they call, and their tokens in the longest prompt."""

    tools: tuple[str, ...]
    tokens: int


@dataclass(frozen=True)
class Architecture:
    """A runner with the spec and prompts that it was made from. Runners keep no state: one serves all questions."""

    spec: ArchitectureSpec
    prompts: Prompts
    tool_prompts: dict[str, str]
    settings: BaseModel | None
    runner: Runner
    package: str | None = None
    """The installed package that has it; None for a bundled one and for a path."""
    fallback_styles: Mapping[str, str] = field(default_factory=dict)
    """The style whose exemplars a prompt has instead, for prompts without exemplars of the questions' style."""
    parents: tuple[Architecture, ...] = ()
    """The architectures that it chooses from."""
    left_out_tools: tuple[str, ...] = ()
    """Its own tools that a data set, `--tools` or the option `tools` leaves out."""
    unfit: UnfitExemplars | None = None
    """The exemplars that it would have, if it had the tools that these call."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def uses_tools(self) -> bool:
        """Whether its loop can call a tool, also one that somebody else's server has."""
        return bool(self.spec.tools or self.left_out_tools) or any(parent.uses_tools for parent in self.parents)

    @property
    def has_foreign_tools(self) -> bool:
        """Whether it has a tool that isn't a bundled one."""
        return any(
            name not in BUNDLED_TOOLS
            or settings.factory
            or settings.mcp
            or settings.recording
            or settings.function
            or settings.world
            for name, settings in self.spec.tools.items()
        )

    @property
    def shown_but_left_out(self) -> list[str]:
        """Tools that its exemplars call, and that it doesn't offer."""
        shots = [message.content for name in self.prompts.exemplars for message in self.prompts.shots(name)]
        absent = [tool for tool in dict.fromkeys((*BUNDLED_TOOLS, *self.left_out_tools)) if tool not in self.spec.tools]
        forms = {tool: re.compile(rf'\b{re.escape(tool)}[\[(]|"{re.escape(tool)}"') for tool in absent}
        return [tool for tool, form in forms.items() if any(form.search(shot) for shot in shots)]

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The facts for a run's manifest: settings, tools, and hashes of all texts."""
        own = ("name", "runner", "settings")  # the rest of a parent is in what the parents have together
        parents = [{key: parent.manifest[key] for key in own} for parent in self.parents]
        optional = {"package": self.package, "fallback_styles": dict(self.fallback_styles)}
        return {
            "name": self.name,
            **{key: value for key, value in optional.items() if value},
            "runner": short_name(self.spec.runner),
            "settings": _without_newer(self.settings.model_dump()) if self.settings else self.spec.settings,
            "tools": {name: tool.model_dump(exclude_defaults=True) for name, tool in self.spec.tools.items()},
            "exemplars": {name: len(shots) for name, shots in self.prompts.exemplars.items()},
            "prompts_sha256": self.prompts.digest,
            "texts_sha256": self.prompts.digests,
            "tool_prompts_sha256": {
                name: sha256(text.encode()).hexdigest() for name, text in sorted(self.tool_prompts.items())
            },
            **({"parents": parents} if parents else {}),
        }


def _without_newer(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings without the newer ones that are off, as in the manifests of earlier runs."""
    kept = {key: value for key, value in settings.items() if key not in _NEWER or value}
    return {key: _without_newer(value) if isinstance(value, dict) else value for key, value in kept.items()}


def load_architecture(
    name: str, *, style: str, tools: Sequence[str] = (), objectives: int = 1, **overrides: Any
) -> Architecture:
    """An architecture by its bundled or installed name, its folder or its class's import path, for a style of question.

    `package.module:Class` alone gets no prompts, the tools Search and Lookup, and its class's name.
    Options behind a `?` replace settings, `max_exemplars`, `solver_exemplars` and the `tools` (names joined by `+`);
    they are part of the architecture's name, so that one run can compare it with the plain one. `overrides` replace
    settings where the runner has them, and `max_exemplars`, where the value is not None and no option says otherwise.
    `tools` are those that the questions need (`config.tools`), unless an option names others. The setting `map_tokens`
    counts for each of `objectives` questions of a task, unless an option says otherwise. Raises `SpecError`.
    """
    if name.startswith(AGENT_COMMAND):
        return _agent(name.removeprefix(AGENT_COMMAND), tools)
    plain, options = _without_options(name)
    spec, folder, package = _described(plain)
    where = str(folder / DESCRIPTIONS["architectures"]) if folder else f"architecture {plain!r}"
    own = spec.tools
    if tools:
        spec = spec.model_copy(update={"tools": tools_for(spec.tools, tools)})
    if options:
        where = f"architecture {name!r}"
        spec = _with_options(spec, options, where)
    left_out = tuple(tool for tool in own if tool not in spec.tools)
    limit = overrides.pop(MAX_EXEMPLARS, None)
    if limit is not None and MAX_EXEMPLARS not in options:
        spec = spec.model_copy(update={MAX_EXEMPLARS: limit})
    prompts, tool_prompts, fallbacks = Prompts(), dict[str, str](), dict[str, str]()
    if folder:
        without = f"{style}{WITHOUT}{'+'.join(left_out)}"
        styles = {prompt: _style(prompt, files, style, without, where) for prompt, files in spec.exemplars.items()}
        shots = {name: (files[styles[name]], spec.most_exemplars(name)) for name, files in spec.exemplars.items()}
        prompts = read_prompts(folder, spec.prompts, shots)
        tool_files = {name: folder / tool.prompt for name, tool in spec.tools.items() if tool.prompt}
        tool_prompts = {name: read_prompt(file).strip() for name, file in tool_files.items()}
        others = ((prompt, each) for prompt, each in styles.items() if prompts.exemplars[prompt])
        fallbacks = {prompt: each for prompt, each in others if each not in (style, without)}
        if spec.runner == AGENT_NAME:
            overrides["folder"] = str(folder.absolute())
    overrides = {key: value for key, value in overrides.items() if key not in options}
    if getattr(_runner_class(spec, where), "takes_parents", False):
        questions = {"style": style, "tools": tools, "objectives": objectives}
        made = _with_parents(spec, prompts, folder, where, overrides, **questions)
        return replace(made, package=package)
    if objectives > 1 and MAP_TOKENS not in options:
        settings = _settings(_runner_class(spec, where), spec, overrides, where)
        of_one = getattr(settings, MAP_TOKENS, None) or getattr(getattr(settings, "rewoo", None), MAP_TOKENS, None)
        overrides |= {MAP_TOKENS: of_one * objectives} if isinstance(of_one, int) else {}
    made = _assembled(spec, prompts, tool_prompts, overrides, where)
    return replace(made, package=package, fallback_styles=fallbacks, left_out_tools=left_out)


def _agent(command: str, wanted: Sequence[str]) -> Architecture:
    """The architecture of `--agent [NAME=][VAR=VALUE …] COMMAND`, called after the first file that the command names.

    A name has a small letter in it; a variable has none.
    """
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise SpecError(f"--agent: {command!r} is not a command: {error}") from None
    named = _AGENT_NAME.match(parts[0]) if parts else None
    if named:
        parts[0] = parts[0].removeprefix(named[0])
        parts = parts if parts[0] else parts[1:]
    env = take_values(parts, "--agent")
    if not parts:
        raise SpecError("--agent: the command is empty")
    script = next((part for part in parts[1:] if is_file(part)), parts[0])
    own = {tool: ToolSettings() for tool in ("Search", "Lookup", "Calculator")}
    settings = {"command": parts, "folder": str(Path.cwd()), "env": env}
    title = named[1] if named else Path(script).stem
    spec = ArchitectureSpec(
        name=title, description=command, runner=AGENT_NAME, tools=tools_for(own, wanted), settings=settings
    )
    made = _assembled(spec, Prompts(), {}, {}, f"--agent {command!r}")
    return replace(made, left_out_tools=tuple(tool for tool in own if tool not in spec.tools))


def _without_options(name: str) -> tuple[str, dict[str, str]]:
    """`rewoo?max_steps=5` as `rewoo` and its options; a folder may have a question mark in its name."""
    plain, mark, behind = name.partition("?")
    if not mark or Path(name).is_dir():
        return name, {}
    try:
        return plain, read_options(behind)
    except ValueError as error:
        raise SpecError(f"architecture {plain!r}: {error}") from None


def _described(plain: str) -> tuple[ArchitectureSpec, Path | None, str | None]:
    """The spec that a name, a path or an import path means, with its folder and its package if it has them."""
    if ":" in plain and not Path(plain).is_dir():
        name, class_path, package = plain.rpartition(":")[2], plain, None
    elif named := find_named("architectures", plain):
        if named.folder:
            return read_architecture(named), named.folder, named.package
        name, class_path, package = named.name, named.class_path, named.package
    else:
        raise SpecError(f"{unknown('architecture', plain, known_names('architectures'))}; or the path of a folder")
    own = {"Search": ToolSettings(), "Lookup": ToolSettings()}
    return ArchitectureSpec(name=name, description=class_path, runner=class_path, tools=own), None, package


def _with_options(spec: ArchitectureSpec, options: dict[str, str], where: str) -> ArchitectureSpec:
    """The spec as its options change it, under a name that has them."""
    model = getattr(_runner_class(spec, where), "Settings", None)
    own = [SOLVER_EXEMPLARS] if "solver" in spec.exemplars else []
    known = [MAX_EXEMPLARS, *own, TOOLS, *(model.model_fields if model else ())]
    if wrong := next((option for option in options if option not in known), None):
        raise SpecError(f"{where}: {unknown('option', wrong, known)}")
    query = "&".join(f"{key}={value.replace(' ', '+')}" for key, value in options.items())
    changed = {**spec.model_dump(exclude_unset=True), "name": f"{spec.name}?{query}"}
    settings = dict(options)
    changed |= {key: settings.pop(key) for key in (MAX_EXEMPLARS, SOLVER_EXEMPLARS) if key in settings}
    if TOOLS in settings:
        names = settings.pop(TOOLS).split()  # a "+" of an address is a space
        if not names:
            raise SpecError(f"{where}: tools: expected names joined by +, as in tools=Search+LLM")
        changed[TOOLS] = with_own(
            [named_settings(name, f"{where}: tools") for name in functions_of_files(names, where)], spec.tools
        )
    return validated(ArchitectureSpec, {**changed, "settings": {**spec.settings, **settings}}, where)


def _style(prompt: str, files: Mapping[str, str], style: str, without: str, where: str) -> str:
    """The style of a prompt's exemplars: that of the questions, or `multihop` where it has none of a known style.

    Before both come its exemplars `without` the tools that are left out: those of `trivia without LLM`.
    """
    if without in files:
        return without
    if style in files:
        return style
    if style in get_args(QuestionStyle) and FALLBACK_STYLE in files:
        return FALLBACK_STYLE
    available = ", ".join(sorted(files)) or "none"
    raise SpecError(f"{where}: [exemplars.{prompt}] has none for {style!r} questions; there are: {available}")


def _with_parents(
    spec: ArchitectureSpec,
    prompts: Prompts,
    folder: Path | None,
    where: str,
    overrides: dict[str, Any],
    **questions: Any,
) -> Architecture:
    """An architecture that runs others: those of `parents` in its settings, with their tools and prompts.

    `questions` has their style, the tools that they need, and the number of them in a task.
    """
    settings: Any = _settings(_runner_class(spec, where), spec, overrides, where)
    # A path such as `./mine` begins in the folder of the architecture that names it.
    names = [str(folder / name) if folder and name.startswith(".") else name for name in settings.parents]
    shared = {**questions, **overrides, MAX_EXEMPLARS: spec.max_exemplars}
    try:
        parents = [load_architecture(name, **shared) for name in names]
        if wrong := next((each.name for each in parents if each.parents or each.spec.runner == AGENT_NAME), None):
            raise SpecError(f"{wrong!r} can't be a parent: it is a router, or an external agent")
        if len({parent.name for parent in parents}) < len(parents):
            raise SpecError(f"its parents are both called {parents[0].name!r}; they need two names")
        if spec.tools:
            raise SpecError("its tools are those of its parents; give them there, as in 'rewoo?tools=Search'")
        tools, tool_prompts = _shared_tools(parents)
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None
    spec = spec.model_copy(update={"tools": tools})
    made = _assembled(spec, prompts, tool_prompts, overrides, where, parents=parents)
    texts, exemplars, fallbacks = dict(prompts.texts), dict(prompts.exemplars), dict[str, str]()
    for parent in parents:
        texts |= {f"{parent.name}/{prompt}": text for prompt, text in parent.prompts.texts.items()}
        exemplars |= {f"{parent.name}/{prompt}": shots for prompt, shots in parent.prompts.exemplars.items()}
        fallbacks |= {f"{parent.name}/{prompt}": style for prompt, style in parent.fallback_styles.items()}
    return replace(made, prompts=Prompts(texts, exemplars), parents=tuple(parents), fallback_styles=fallbacks)


def _shared_tools(parents: Sequence[Architecture]) -> tuple[dict[str, ToolSettings], dict[str, str]]:
    """The parents' tools and their prompts. Raises `SpecError` where two of them have a tool in two ways.

    A prompt is compared by its text, not by its path.
    """
    tools: dict[str, ToolSettings] = {}
    prompts: dict[str, str] = {}
    for parent in parents:
        for name, settings in parent.spec.tools.items():
            first, second = (each.model_dump(exclude_defaults=True) for each in (tools.get(name, settings), settings))
            if any(first[key] != second[key] for key in first.keys() & second.keys() - {"prompt"}):
                raise SpecError(f"its parents have the tool {name!r} with two settings, and share one tool")
            tools[name] = ToolSettings(**{**second, **first})
            text = parent.tool_prompts.get(name)
            if text is not None and prompts.setdefault(name, text) != text:
                raise SpecError(f"its parents have two prompts for the tool {name!r}; they share one")
    return tools, prompts


def _assembled(
    spec: ArchitectureSpec,
    prompts: Prompts,
    tool_prompts: dict[str, str],
    overrides: dict[str, Any],
    where: str,
    **more: Any,
) -> Architecture:
    """The architecture; its class is made with its prompts, its settings and `more`."""
    kind = _runner_class(spec, where)
    settings = _settings(kind, spec, overrides, where)
    if getattr(settings, "quote_evidence", False):
        tool_prompts = {name: f"{text}\n\n{QUOTED}" for name, text in tool_prompts.items()}
    try:
        runner = kind(prompts, settings, **more) if settings else kind(prompts)
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None
    except Exception as error:  # of a user's class: the architecture can't run
        raise SpecError(f"{where}: {spec.runner} can't be made: {type(error).__name__}: {error}") from error
    if not callable(getattr(runner, "run", None)):
        raise SpecError(f"{where}: {spec.runner} is no runner: it has no method run(question, *, model, tools)")
    return Architecture(spec, prompts, tool_prompts, settings, runner)


def _runner_class(spec: ArchitectureSpec, where: str) -> Any:
    if spec.runner == AGENT_NAME:
        return import_object(AGENT_RUNNER, where)
    return import_class(spec.runner, RUNNERS, "runner", where)


def _settings(kind: Any, spec: ArchitectureSpec, overrides: dict[str, Any], where: str) -> BaseModel | None:
    model: type[BaseModel] | None = getattr(kind, "Settings", None)
    if model is None:
        if spec.settings:
            raise SpecError(f"{where}: [settings] given, but {spec.runner} has no Settings")
        return None
    table = "agent" if spec.runner == AGENT_NAME else "settings"
    wanted = {key: value for key, value in overrides.items() if value is not None and key in model.model_fields}
    return validated(model, {**spec.settings, **wanted}, f"{where}: [{table}]")
