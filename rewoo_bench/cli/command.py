"""What the commands share: exit codes, settings, the group, output that may be closed or full."""

from __future__ import annotations

import errno
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import click

from rewoo_bench.errors import RewooBenchError, UsageError, unknown
from rewoo_bench.text.escaping import terminal

DONE, FAILED, WRONG, INCOMPLETE, BROKEN, INTERRUPTED = 0, 1, 2, 3, 70, 130
# FAILED: of a gate, of an external agent on every question, or of a run in which no model call was metered.
# BROKEN: EX_SOFTWARE of sysexits.h
SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}


class LazyGroup(click.Group):
    """Commands that are imported when they are called, so that `--help` and every command start at once.

    `places` has of each the module and the name in it, `gate:baseline`, and what `--help` says about it.
    """

    def __init__(self, *arguments: Any, places: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.places:
            return super().get_command(ctx, cmd_name)
        module, _, name = self.places[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"rewoo_bench.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Says which flag is given more than once, though one value of it counts.

        Raises `UsageError` for a command that doesn't exist.
        """
        if (
            args
            and not args[0].startswith("-")
            and not ctx.resilient_parsing
            and args[0] not in self.list_commands(ctx)
        ):
            raise UsageError(unknown("command", args[0], self.list_commands(ctx)))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            with suppress(click.UsageError):  # raised when the command reads them
                _, _, order = command.make_parser(click.Context(command, parent=ctx)).parse_args([*rest])
                for option, times in Counter(order).items():
                    if times > 1 and isinstance(option, click.Option) and not option.multiple:
                        flag = "/".join([max(option.opts, key=len), *option.secondary_opts])
                        click.echo(f"rewoo-bench: {flag} is given {times} times, the last one counts", err=True)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.places[name][1]) for name in sorted(self.places)])


def warn_of_unfinished(*runs: str | Path) -> None:
    """Prints a line on standard error for each run that isn't done, whose figures are of a part of it."""
    from rewoo_bench.runs.comparability import unfinished  # `--help` reads no run
    from rewoo_bench.runs.folder import named_manifests

    for line in unfinished(named_manifests(*runs)):
        click.echo(terminal(f"WARNING: {line}"), err=True)


# Standard output and standard error that may be closed or full: `rewoo-bench … | head`, `> /dev/full`.
#
#     with guarded_output():
#         ...     # a closed pipe is silent, and the command keeps its own exit code; a full disk raises OutputFailed
#
# Without it a closed pipe would end a command in the middle, with exit code 1, which means that a gate failed.


_CLOSED = (errno.EPIPE, errno.ESHUTDOWN)


class OutputFailed(RewooBenchError):
    """Standard output can't be written, for example because the disk is full."""


class GuardedStream:
    """A text stream whose failed writes are silent where nobody reads any more, or where `is_silent`.

    After the first failure everything goes to the null device: the interpreter's own last flush would fail, too.
    """

    def __init__(self, stream: TextIO, *, is_silent: bool) -> None:
        self._stream = stream
        self._is_silent = is_silent
        self._failure: OutputFailed | None = None  # raised at every use: click ignores errors of its first, empty write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._guarded(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._guarded(self._stream.flush)

    def _guarded(self, call: Callable[..., object], *arguments: str) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            call(*arguments)
        except OSError as error:
            with suppress(OSError, ValueError):  # not every stream has a file descriptor
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            if not self._is_silent and error.errno not in _CLOSED:
                self._failure = OutputFailed(f"can't write to standard output: {error.strerror or error}")
                raise self._failure from None


@contextmanager
def guarded_output() -> Iterator[None]:
    """Guards `sys.stdout` and `sys.stderr`. Inside, `OutputFailed` is raised for standard output alone."""
    before = sys.stdout, sys.stderr
    # Streams closed by the caller (`2>&-`) go to the null device; the next file would get their number otherwise.
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    sys.stdout = GuardedStream(sys.stdout, is_silent=False)
    sys.stderr = GuardedStream(sys.stderr, is_silent=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
