"""A group that imports a command when it is called, so that `--help` and every command start at once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click


class CommandPlace(NamedTuple):
    """Where a command is, and what `--help` says about it."""

    module: str
    """Its last part is the command's name in the module, too."""
    help: str


class LazyGroup(click.Group):
    """Commands by name. `--help` of the group imports none of them."""

    def __init__(self, *arguments: Any, places: Mapping[str, CommandPlace], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.places:
            return super().get_command(ctx, cmd_name)
        module = self.places[cmd_name].module
        command: click.Command = getattr(import_module(module), module.rpartition(".")[2])
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.places[name].help) for name in sorted(self.places)])
