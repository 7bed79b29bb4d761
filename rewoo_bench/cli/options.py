"""Options of a command under headings, and a flag for each option of a run.

@click.command(cls=GroupedCommand, everyday=("temperature",))
@flag_for(OPTIONS["temperature"])
@under("Output")("--json", is_flag=True, help="Print the summary as JSON.")
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click

from rewoo_bench.cli import flag_types
from rewoo_bench.runs.option_types import MOST, Bounds, Option

_ALL = "rewoo_bench.help_all"
"""In a context's `meta`: whether help shows every option."""
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _GroupedOption(click.Option):
    def __init__(self, *declarations: Any, heading: str, **settings: Any) -> None:
        super().__init__(*declarations, **settings)
        self.heading = heading


class GroupedCommand(click.Command):
    """A command whose help lists each group of options under its heading.

    `--help` shows the options that are named in `everyday`, and `--help-all` every one.
    """

    def __init__(self, *arguments: Any, everyday: Collection[str], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._everyday = everyday
        self._help_all = click.Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all,
            help="Show every flag and exit.",
        )  # fmt: skip

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), self._help_all]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {}
        hidden = 0
        for option in self.get_params(ctx):
            is_shown = ctx.meta.get(_ALL) or option.name in self._everyday or not isinstance(option, _GroupedOption)
            hidden += not is_shown
            if is_shown and (row := option.get_help_record(ctx)) is not None:
                rows.setdefault(getattr(option, "heading", "Other"), []).append(row)
        for heading, group in rows.items():
            with formatter.section(heading):
                formatter.write_dl(group)
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help-all shows {hidden} more flags.")


def _show_all(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def under(heading: str) -> Callable[..., Decorator]:
    """`click.option` for the options of one group."""
    return partial(click.option, cls=_GroupedOption, heading=heading)


def flag_for(option: Option) -> Decorator:
    """`click.option` for an option of the table."""
    settings: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    names = option.flags or (option.flag,)
    base, bounds = option.type, Bounds()  # of a value that isn't None
    if get_origin(base) in (Union, UnionType):
        (base,) = (each for each in get_args(base) if each is not NoneType)
    if get_origin(base) is Annotated:
        base, bounds = base.__origin__, base.__metadata__[0]
    reader = getattr(flag_types, option.reader) if option.reader else None
    if option.completion:
        settings["shell_complete"] = getattr(flag_types, option.completion)
    if reader is flag_types.IdsFile:
        settings |= {"type": reader(), "default": (), "show_default": False}
    elif get_origin(base) is tuple:
        settings |= {"multiple": True, "callback": reader}
    elif base is bool and option.flags == ("--no-progress",):
        settings |= {"flag_value": False, "default": True, "show_default": False}
    elif base is bool:
        names = (f"{option.flag}/--no-{option.name}",) if option.default else names
        settings |= {"is_flag": True, "default": option.default, "show_default": option.default}
    else:
        kind: Any = base
        if get_origin(base) is Literal:
            kind = click.Choice(get_args(base))
        elif base is Path:
            kind = click.Path(path_type=Path, file_okay=option.metavar == "FILE")
        elif base in (int, float) and (shown := _shown(bounds)):
            kind = flag_types.WholeFlag(**shown) if base is int else flag_types.NumberFlag(**shown)
        settings |= {"type": kind, "callback": reader, "default": option.default}
    return under(option.group)(*names, option.name, **settings)


def _shown(bounds: Bounds) -> dict[str, Any]:
    """A range as `--help` shows it: without what only a typing error would reach."""
    low = bounds.ge if bounds.gt is None else bounds.gt
    range_ = {"min": low, "max": bounds.le, "min_open": True if bounds.gt is not None else None}
    return {name: value for name, value in range_.items() if value is not None and abs(value) < MOST}
