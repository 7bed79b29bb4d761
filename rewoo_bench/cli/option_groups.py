"""Options of a command under headings, in their order of declaration.

MODEL = under("Model")

@click.command(cls=GroupedCommand)
@MODEL("--temperature", type=float, help="Sampling temperature.")
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click


class _GroupedOption(click.Option):
    def __init__(self, *declarations: Any, heading: str, **settings: Any) -> None:
        super().__init__(*declarations, **settings)
        self.heading = heading


class GroupedCommand(click.Command):
    """A command whose help lists each group of options under its heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            if (row := option.get_help_record(ctx)) is not None:
                rows.setdefault(getattr(option, "heading", "Other"), []).append(row)
        for heading, group in rows.items():
            with formatter.section(heading):
                formatter.write_dl(group)


def under(heading: str) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """`click.option` for the options of one group."""
    return partial(click.option, cls=_GroupedOption, heading=heading)
