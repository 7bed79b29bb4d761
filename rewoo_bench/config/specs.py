"""architecture.toml, dataset.toml and budgets.toml, read into validated settings.

    [tools.Search]            # a table a tool, in the order shown to the model
    max_concurrency = 4

A misspelt key is an error that names the key and the nearest right one.
"""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rewoo_bench.errors import SpecError, unknown
from rewoo_bench.paths import bundled_folder, bundled_names
from rewoo_bench.scoring import Scoring

Settings = TypeVar("Settings", bound=BaseModel)


class ToolSettings(BaseModel):
    """A `[tools.Name]` table of architecture.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_concurrency: int | None = Field(default=None, ge=1)
    """Calls of this tool at once, within a question; None is no limit."""
    timeout_s: float | None = Field(default=None, gt=0)
    """A call that takes longer fails with `timeout`; None leaves it to the tool itself."""
    prompt: str | None = None
    """File of the prompt, for the LLM tool."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Output limit of the LLM tool."""
    factory: str | None = None
    """Import path `package.module:function` of a tool of your own; called with no arguments."""


class ArchitectureSpec(BaseModel):
    """architecture.toml: an agent architecture's loop, tools, prompts and settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str
    runner: str
    """Import path of the loop, `package.module:Class`."""
    source: str = ""
    """Where the architecture was described first."""
    tools: dict[str, ToolSettings] = {}
    prompts: dict[str, str] = {}
    """Name -> text file, relative to the folder."""
    exemplars: dict[str, dict[str, str]] = {}
    """Prompt -> question style (`multihop`, `trivia`) -> exemplar file, relative to the folder."""
    max_exemplars: int | None = Field(default=None, ge=0)
    """Use only the first so many exemplars of each prompt."""
    settings: dict[str, Any] = {}
    """Validated by the runner's own `Settings`."""


class HubSource(BaseModel):
    """Where a data set lives on the Hugging Face hub."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    config: str
    configs: tuple[str, ...] = ()
    """Other configurations that may be chosen, as `name:config`."""
    revision: str | None = None
    """Commit or tag to read; None is the newest, and the run's manifest says which that was."""


class DatasetSpec(BaseModel):
    """dataset.toml: where a data set's questions come from and how its answers are scored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str
    format: Literal["hotpotqa", "triviaqa", "sample"]
    """The shape of its rows."""
    style: Literal["multihop", "trivia"]
    """Which exemplars fit its questions."""
    scoring: Scoring
    """Whose official exact match and F1."""
    hub: HubSource | None = None
    default_split: str = "validation"
    default_limit: int | None = None
    """Questions taken where no limit is asked for; None is all."""
    questions: str | None = None
    """File of the questions, relative to the folder."""
    generator: str | None = None
    """Import path `package.module:Class` of what makes the questions, where no file has them."""
    corpus: str | None = None
    """File of the passages that the search tool sees, relative to the folder."""
    license: str = ""
    url: str = ""


def read_spec(path: Path, kind: type[Settings]) -> Settings:
    """A description file as validated settings. Raises `SpecError`."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"{path.parent} has no {path.name}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: not valid TOML: {error}") from None
    return validated(kind, values, str(path))


def validated(kind: type[Settings], values: dict[str, Any], where: str) -> Settings:
    """`values` as `kind`; the first fault becomes one line that starts with `where`."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "missing":
            raise SpecError(f"{where}: the key {key!r} is missing") from None
        if fault["type"] != "extra_forbidden":
            said = fault["msg"].removeprefix("Value error, ")  # pydantic's, before what a validator says
            raise SpecError(f"{where}: {key}: {said}, got {fault['input']!r}") from None
        names = _field_names(kind, fault["loc"][:-1])
        near = get_close_matches(str(fault["loc"][-1]), names, n=1)
        hint = f", did you mean {near[0]!r}?" if near else ";"
        raise SpecError(f"{where}: unknown key {key!r}{hint} available: {', '.join(sorted(names))}") from None


def _field_names(kind: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Names of the fields of the model that lies at `path` below `kind`."""
    for part in path:
        field = kind.model_fields.get(str(part))
        kind = (field and _model_in(field.annotation)) or kind
    return list(kind.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The first model in an annotation such as `dict[str, Model]` or `Model | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def architecture_folder(name: str) -> Path:
    """The folder of a bundled architecture, or `name` itself where it is a folder."""
    names = bundled_names("architectures", "architecture.toml")
    if name in names:
        return bundled_folder("architectures") / name
    if Path(name).is_dir():
        return Path(name)
    raise SpecError(f"{unknown('architecture', name, names)}; or the path of a folder")


def import_object(path: str, where: str) -> Any:
    """The object at `package.module:name`. Raises `SpecError` that names `where`."""
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise SpecError(f"{where}: {path!r} is not an import path; expected 'package.module:name'")
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise SpecError(f"{where}: can't import {path!r}: {error}") from None
    except AttributeError:
        raise SpecError(f"{where}: module {module!r} has no {name!r}") from None
