"""An architecture, ready to run: its description, its texts and its loop.

load_architecture("rewoo", style="multihop")
load_architecture("./somewhere/mine", style="trivia", max_steps=5)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rewoo_bench.errors import SpecError
from rewoo_bench.runners.prompts import Prompts, read_prompts
from rewoo_bench.specs import ArchitectureSpec, ToolSettings, architecture_folder, import_object, read_spec, validated
from rewoo_bench.types import Runner

DESCRIPTION = "architecture.toml"


@dataclass(frozen=True)
class Architecture:
    """A runner with the spec and prompts that it was made from. Runners keep no state: one serves all questions."""

    spec: ArchitectureSpec
    prompts: Prompts
    tool_prompts: dict[str, str]
    settings: BaseModel | None
    runner: Runner

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What a run's manifest says of it: settings as they were, tools, and hashes of all texts."""
        return {
            "name": self.name,
            "runner": self.spec.runner,
            "settings": self.settings.model_dump() if self.settings else self.spec.settings,
            "tools": {name: tool.model_dump(exclude_defaults=True) for name, tool in self.spec.tools.items()},
            "exemplars": {name: len(shots) for name, shots in self.prompts.exemplars.items()},
            "prompts_sha256": self.prompts.digest,
            "texts_sha256": self.prompts.digests,
            "tool_prompts_sha256": {
                name: sha256(text.encode()).hexdigest() for name, text in sorted(self.tool_prompts.items())
            },
        }


def load_architecture(name: str, *, style: str, **overrides: Any) -> Architecture:
    """A bundled architecture by name, one in a folder, or a class by import path, for one style of question.

    `package.module:Class` alone gets no prompts, the tools Search and Lookup, and its class's name.
    `overrides` replace settings where the runner has them and the value is not None. Raises
    `SpecError`.
    """
    if ":" in name and not Path(name).is_dir():
        return _from_class(name, overrides)
    folder = architecture_folder(name)
    where = str(folder / DESCRIPTION)
    spec = read_spec(folder / DESCRIPTION, ArchitectureSpec)
    exemplars = {name: _exemplar_file(name, files, style, where) for name, files in spec.exemplars.items()}
    prompts = read_prompts(folder, spec.prompts, exemplars, spec.max_exemplars)
    tool_prompts = {name: _read_tool_prompt(folder, tool.prompt) for name, tool in spec.tools.items() if tool.prompt}
    return _assembled(spec, prompts, tool_prompts, overrides, where)


def _exemplar_file(name: str, files: dict[str, str], style: str, where: str) -> str:
    if style not in files:
        there_are = ", ".join(sorted(files)) or "none"
        raise SpecError(f"{where}: [exemplars.{name}] has none for {style!r} questions; there are: {there_are}")
    return files[style]


def _from_class(path: str, overrides: dict[str, Any]) -> Architecture:
    tools = {"Search": ToolSettings(), "Lookup": ToolSettings()}
    spec = ArchitectureSpec(name=path.rpartition(":")[2], description=path, runner=path, tools=tools)
    return _assembled(spec, Prompts(), {}, overrides, f"architecture {path!r}")


def _assembled(
    spec: ArchitectureSpec, prompts: Prompts, tool_prompts: dict[str, str], overrides: dict[str, Any], where: str
) -> Architecture:
    kind = import_object(spec.runner, where)
    settings = _settings(kind, spec, overrides, where)
    try:
        runner = kind(prompts, settings) if settings else kind(prompts)
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None
    return Architecture(spec, prompts, tool_prompts, settings, runner)


def _settings(kind: Any, spec: ArchitectureSpec, overrides: dict[str, Any], where: str) -> BaseModel | None:
    model: type[BaseModel] | None = getattr(kind, "Settings", None)
    if model is None:
        if spec.settings:
            raise SpecError(f"{where}: [settings] given, but {spec.runner} has no Settings")
        return None
    wanted = {key: value for key, value in overrides.items() if value is not None and key in model.model_fields}
    return validated(model, {**spec.settings, **wanted}, f"{where}: [settings]")


def _read_tool_prompt(folder: Path, file: str) -> str:
    return read_prompts(folder, {"tool": file}).texts["tool"].strip()
