"""architecture.toml, dataset.toml and budgets.toml as validated settings.

    [tools.Search]            # a table a tool, in the order shown to the model
    max_concurrency = 4

A misspelt key is an error that names the key and the nearest right one.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from hashlib import sha256
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rewoo_bench.errors import SpecError, unknown

AGENT_NAME = "agent"
"""Short name of the runner of external agents."""

QuestionStyle = Literal["multihop", "trivia", "arithmetic", "yes_no"]
"""A kind of question that has exemplars of its own."""

FormatName = (
    Literal["sample", "task", "hotpotqa", "triviaqa", "musique", "2wiki", "parallelqa"]
    | Literal["gsm8k", "strategyqa", "physics", "sports", "sotu"]
)
"""A shape of a data set's rows (loaders/formats.py)."""

Settings = TypeVar("Settings", bound=BaseModel)


class ToolSettings(BaseModel):
    """A `[tools.Name]` table of architecture.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_concurrency: int | None = Field(default=None, ge=1)
    """Concurrent calls of this tool within a question; None is no limit."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Seconds after which a call fails with `timeout`; None is no limit."""
    prompt: str | None = None
    """File of the prompt, for the LLM tool."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Output limit of the LLM tool."""
    mcp: str | None = None
    """MCP server that has the tool: a command, or an address."""
    mcp_tool: str | None = None
    """The server's name of the tool; None is the table's name."""
    recording: str | None = None
    """Folder of a run whose recorded calls answer (`tools.recordings`); in a run's manifest the id of that run."""
    recorded_tool: str | None = None
    """The recording's name of the tool; None is the table's name."""
    recording_sha256: str | None = None
    """Hash of the recorded calls, which a run writes into its manifest."""
    schema_sha256: str | None = None
    """Hash of the description of a server's or a recording's tool, which a run writes into its manifest."""
    changes_state: bool = False
    """Whether calls of it change state; a run writes it into its manifest, from the tool's own mark."""
    world: bool = False
    """Whether it is one of the question's world (`--world`), which a run writes into its manifest."""
    function: str | None = None
    """A function of a file that is the tool itself: `my_tools.py:lookup_order` (`config.functions`)."""
    factory: str | None = None
    """Import path `package.module:function` of a function or class that makes the tool (`tools.factories`)."""


Form = Literal["papers", "today", "programs"]
"""The papers' form: text, with exemplars in every call. Today's: JSON by a schema or tool calls, without exemplars."""
FORM_WORDS: dict[Form, str] = {"papers": "the papers' form", "today": "today's form", "programs": "programs"}


class ArchitectureSpec(BaseModel):
    """architecture.toml: an agent architecture's loop, tools, prompts and settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """The folder's name, where architecture.toml has none."""
    description: str = ""
    runner: str
    """Short name of a bundled loop, or an import path `package.module:Class`."""
    form: Form | None = None
    """How its model writes calls; None is not said."""
    source: str = ""
    """Publication that describes it."""
    tools: dict[str, ToolSettings] = {}
    prompts: dict[str, str] = {}
    """Name -> text file, relative to the folder."""
    exemplars: dict[str, dict[str, str]] = {}
    """Prompt -> `QuestionStyle` -> exemplar file in the folder; `multihop` stands in for the others.

    `trivia without LLM` has those of `trivia` for an architecture whose tool LLM is left out (`?tools=Search`).
    """
    max_exemplars: int | None = Field(default=None, ge=0)
    """Number of exemplars of each prompt, the first ones; None is all."""
    solver_exemplars: int | None = Field(default=None, ge=0)
    """The same for the prompt `solver` alone, where that is fewer."""
    settings: dict[str, Any] = {}
    """Validated by the runner's own `Settings`."""

    def most_exemplars(self, prompt: str) -> int | None:
        """Number of exemplars that a prompt may have; None is all."""
        limits = (self.max_exemplars, self.solver_exemplars if prompt == "solver" else None)
        return min((limit for limit in limits if limit is not None), default=None)

    @model_validator(mode="before")
    @classmethod
    def _read_agent(cls, values: Any) -> Any:
        """`[agent]` is the runner "agent" with these settings."""
        if not isinstance(values, dict) or "agent" not in values:
            return values
        others = {name: value for name, value in values.items() if name != "agent"}
        if clash := next((name for name in ("runner", "settings") if name in others), None):
            raise ValueError(f"[agent] takes the place of {clash!r}; leave it out")
        return {**others, "runner": AGENT_NAME, "settings": values["agent"]}


class HubSource(BaseModel):
    """A data set on the Hugging Face hub."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    config: str
    configs: tuple[str, ...] = ()
    """Other configurations that may be chosen, as `name:config`."""
    revision: str | None = None
    """Commit or tag to read; None is the newest, which the run's manifest records."""


class DatasetSpec(BaseModel):
    """dataset.toml: where a data set's questions come from and how its answers are scored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """The folder's name, where dataset.toml has none."""
    description: str = ""
    format: FormatName | None = None
    """The shape of its rows; None is what their keys say."""
    exemplars: QuestionStyle | None = None
    """Which exemplars fit its questions; None is that of the format."""
    scoring: str | None = None
    """A scorer: a bundled or installed one, or `package.module:function`; None is that of the format."""
    tools: tuple[str, ...] = ()
    """Tools that its questions need; an architecture with tools has these of them in place of its own."""
    hub: HubSource | None = None
    default_split: str = "validation"
    default_limit: int | None = None
    """Questions taken where no limit is asked for; None is all."""
    questions: str | None = None
    """File of the questions, relative to the folder."""
    generator: str | None = None
    """Class that makes the questions, by its short name or import path `package.module:Class`."""
    corpus: str | None = None
    """File of the passages that the search tool sees, relative to the folder."""
    license: str = ""
    url: str = ""


def read_spec(path: Path, kind: type[Settings]) -> Settings:
    """A description file as validated settings. Raises `SpecError`."""
    return validated(kind, read_values(path), str(path))


def read_values(path: Path) -> dict[str, Any]:
    """A TOML file as it is. Raises `SpecError`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"{path.absolute().parent} has no {path.name}") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise SpecError(f"{path}: not valid TOML: {error}") from None


def validated(kind: type[Settings], values: dict[str, Any], where: str) -> Settings:
    """`values` as `kind`. Raises `SpecError` with one line that starts with `where`.

    All missing and unknown keys are named, since one may be the other's misspelling; else the first wrong value.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = error.errors()
    lines = []
    if missing := [repr(_key(fault["loc"])) for fault in faults if fault["type"] == "missing"]:
        keys = f"keys {', '.join(missing)} are" if len(missing) > 1 else f"key {missing[0]} is"
        lines.append(f"the {keys} missing")
    lines += [_unknown_key(kind, fault["loc"]) for fault in faults if fault["type"] == "extra_forbidden"]
    if lines:
        raise SpecError(f"{where}: {'; '.join(lines)}")
    fault = faults[0]
    message = fault["msg"].removeprefix("Value error, ")  # pydantic's, before the message of a validator
    place = ": ".join(filter(None, [where, _key(fault["loc"])]))
    given = repr(fault["input"])
    raise SpecError(f"{place}: {message}, got {given if len(given) <= 80 else f'{given[:77]}…'}")


def _key(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))


def _unknown_key(kind: type[BaseModel], location: tuple[int | str, ...]) -> str:
    for part in location[:-1]:
        field = kind.model_fields.get(str(part))
        kind = (field and _model_in(field.annotation)) or kind
    names = list(kind.model_fields)
    near = get_close_matches(str(location[-1]), names, n=1)
    hint = f", did you mean {near[0]!r}?" if near else ";"
    return f"unknown key {_key(location)!r}{hint} available: {', '.join(sorted(names))}"


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The first model in an annotation such as `dict[str, Model]` or `Model | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def import_class(name: str, bundled: Mapping[str, str], what: str, where: str, folder: Path | None = None) -> Any:
    """The class behind a short name or an import path. Raises `SpecError` that lists the short names."""
    path = bundled.get(name, name)
    if ":" not in path:
        raise SpecError(f"{where}: {unknown(what, name, bundled)}; or package.module:Class")
    return import_object(path, where, folder if path == name else None)


def import_object(path: str, where: str, folder: Path | None = None) -> Any:
    """The object at `package.module:name`, or at `module:name` of a file in `folder`, which comes first.

    Raises `SpecError` that names `where`.
    """
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise SpecError(f"{where}: {path!r} is not an import path; expected 'package.module:name'")
    found = load_module(module, where, folder, path)
    if not hasattr(found, name):
        raise SpecError(f"{where}: module {module!r} has no {name!r}")
    return getattr(found, name)


def load_module(module: str, where: str, folder: Path | None = None, path: str = "") -> ModuleType:
    """The module of that name; of a file in `folder`, which comes first. Raises `SpecError` with `where` and `path`."""
    path = path or module
    try:
        return _module_in(folder, module) if folder else import_module(module)
    except ImportError as error:
        hint = f"; expected {module}.py in this folder, or an installed package" if error.name == module else ""
        raise SpecError(f"{where}: can't import {path!r}: {error}{hint}") from None
    except SystemExit as error:  # a program without `if __name__ == "__main__"`: it would end this one as done
        raise SpecError(f"{where}: can't import {path!r}: it ends the program with {error.code!r}") from None
    except Exception as error:  # of somebody's own code
        raised, place = error.__traceback__, ""
        while raised and not isinstance(error, SyntaxError):  # whose text has its place
            place = f" ({Path(raised.tb_frame.f_code.co_filename).name}, line {raised.tb_lineno})"
            raised = raised.tb_next
        raise SpecError(f"{where}: can't import {path!r}: {type(error).__name__}: {error}{place}") from error


def _module_in(folder: Path, name: str) -> ModuleType:
    """The module of that name in a folder's files, or an installed one. Files of the folder may import each other.

    It has a name of its own in `sys.modules`, so that two folders may each have a `scorer.py`.
    """
    file = folder.resolve() / f"{name}.py"
    if "." in name or not file.is_file():
        return import_module(name)
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    own = f"{name}_{sha256(str(file).encode()).hexdigest()[:12]}"
    if own in sys.modules:
        return sys.modules[own]
    spec = spec_from_file_location(own, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module in {str(file)!r}")
    module = sys.modules[own] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:  # whatever it raises: half a module isn't kept
        del sys.modules[own]
        raise
    return module
