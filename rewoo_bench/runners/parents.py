"""The architectures that another one runs: their texts, tools and exemplars as one set.

merged(spec, prompts, tool_prompts, parents)   ->   the router's spec, prompts and prompts of tools

A tool that both parents have is one tool: a setting that one of them gives holds for both, and two different ones are
an error. Prompts have their parent's name in front (`rewoo/planner`), so that a manifest has a hash of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewoo_bench.config.specs import ArchitectureSpec, ToolSettings
from rewoo_bench.errors import SpecError
from rewoo_bench.runners.prompts import Prompts
from rewoo_bench.types import Runner


@dataclass(frozen=True)
class Parent:
    """An architecture that another one may run."""

    spec: ArchitectureSpec
    prompts: Prompts
    tool_prompts: dict[str, str]
    runner: Runner
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def description(self) -> str:
        return self.spec.description

    @property
    def tools(self) -> dict[str, ToolSettings]:
        return self.spec.tools


def merged(
    spec: ArchitectureSpec, prompts: Prompts, parents: Sequence[Parent]
) -> tuple[ArchitectureSpec, Prompts, dict[str, str]]:
    """The spec with the parents' tools, all prompts, and the prompts of the tools. Raises `SpecError`."""
    if spec.tools:
        raise SpecError(
            "its tools are those of its parents; give them there, as in parents = ['rewoo?tools=Search', …]"
        )
    tools: dict[str, ToolSettings] = {}
    tool_prompts: dict[str, str] = {}
    for parent in parents:
        for name, settings in parent.tools.items():
            tools[name] = _joined(name, tools[name], settings) if name in tools else settings
            text = parent.tool_prompts.get(name)
            if text is not None and tool_prompts.setdefault(name, text) != text:
                raise SpecError(f"its parents have two prompts for the tool {name!r}; they share one")
    texts, exemplars = dict(prompts.texts), dict(prompts.exemplars)
    for parent in parents:
        texts |= {f"{parent.name}/{name}": text for name, text in parent.prompts.texts.items()}
        exemplars |= {f"{parent.name}/{name}": shots for name, shots in parent.prompts.exemplars.items()}
    return spec.model_copy(update={"tools": tools}), Prompts(texts, exemplars), tool_prompts


def _joined(name: str, first: ToolSettings, second: ToolSettings) -> ToolSettings:
    """The settings of a tool that two parents have; a prompt is compared by its text, not by its path."""
    given = [settings.model_dump(exclude_defaults=True) for settings in (first, second)]
    for key in given[0].keys() & given[1].keys() - {"prompt"}:
        if given[0][key] != given[1][key]:
            raise SpecError(
                f"its parents have the tool {name!r} with two settings: {key} = {given[0][key]!r} and "
                f"{given[1][key]!r}; they share one tool"
            )
    return ToolSettings(**{**given[1], **given[0]})
