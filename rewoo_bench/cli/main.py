"""The program `rewoo-bench`; each command has a file of its own in this package.

Exit codes: 0 done, 1 a gate failed, 2 the command is wrong, 3 incomplete (a cap, failed questions, questions that
were interrupted), 70 a fault of rewoo_bench itself, with its traceback, 130 interrupted at another time.
A command is imported when it is called, so `--help` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import click

from rewoo_bench.cli.command import BROKEN, INCOMPLETE, INTERRUPTED, WRONG, OutputFailed, guarded_output
from rewoo_bench.errors import RewooBenchError, UsageError, unknown
from rewoo_bench.system.output import echo

_INTERRUPTED = "interrupted"
# Of every command: those below inherit them.
_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}

_GROUPS = {  # the module of each command and the name in it, and what `--help` says
    "Everyday": {
        "run": ("run:run_command", "Ask architectures questions, and record each call."),
        "compare": ("compare:compare", "Compare architectures: accuracy, tokens, cost and latency."),
        "report": ("report:report_command", "Write runs as one HTML file, or show them in the browser."),
        "show": ("show:show_command", "Print one question with the steps of each architecture."),
        "gate": ("gate:gate_command", "Fail where a run costs more than its budget or its baseline."),
        "new": ("new:new", "Write an example: architecture, tool, data set, agent …"),
        "list": ("list_names:list_names", "List architectures, data sets, tools, scorers, models and prices."),
        "runs": ("runs:runs", "List past runs, the newest first."),
    },
    "Traces of other programs": {
        "import": ("import_run:import_command", "Read runs that other programs recorded."),
        "plannable": ("plannable:plannable_command", "Say which of a loop's tool calls could have been planned."),
    },
    "Research": {
        "study": ("study:study", "Make, watch and publish the runs that one file declares."),
        "claims": ("claims:claims", "Test published claims against runs of your own."),
        "publish": ("publish:publish_command", "Copy a run without the texts of its data set."),
        "plot": ("plot:plot_command", "Draw runs: tokens, accuracy and latency."),
        "rescore": ("publish:rescore_command", "Score the predictions of a run again."),
    },
}
_COMMANDS = {name: command for group in _GROUPS.values() for name, command in group.items()}


class _Commands(click.Group):
    """Commands that are imported when they are called, so that `--help` and every command start at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"rewoo_bench.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises `UsageError` for a command that doesn't exist."""
        is_name = args and not args[0].startswith("-")
        if is_name and not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            raise UsageError(unknown("command", args[0], _COMMANDS))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, _COMMANDS))
        for heading, commands in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), said) for name, (_, said) in commands.items()])


@click.group(cls=_Commands, context_settings=_SETTINGS)
@click.version_option(package_name="rewoo-bench")
def group() -> None:
    """Run the same questions through different agent designs, and compare cost and accuracy.

    A first run: rewoo-bench run --arch rewoo,react --model oracle
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its code; an expected error is one line."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    with _interruptible(), _own_path(), guarded_output():
        code = _run(given)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """The exit code of a command, whose error is printed."""
    try:
        code = int(group.main(arguments, "rewoo-bench", standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        error.show()
        return WRONG
    except OutputFailed as error:
        text, code = str(error), INCOMPLETE if arguments[:1] == ["run"] else WRONG
    except RewooBenchError as error:
        text, code = str(error), WRONG if isinstance(error, UsageError) else INCOMPLETE
    except (click.exceptions.Abort, KeyboardInterrupt):
        when = " while no question was being asked" if arguments[:1] == ["run"] else ""
        text, code = f"{_INTERRUPTED}{when}", INTERRUPTED
    except Exception as error:  # never exit code 1, which means that a gate failed
        import traceback  # two milliseconds that `--help` is spared

        if isinstance(error, OSError) and error.strerror:  # a folder that can't be written, a full disk
            text, code = ": ".join(filter(None, [str(error.filename or ""), error.strerror])), WRONG
        else:
            text, code = traceback.format_exc(), BROKEN
        if signal.getsignal(signal.SIGINT) is _leave:  # Ctrl-C during an import may come as another exception
            text, code = _INTERRUPTED, INTERRUPTED
    from rewoo_bench.text.redaction import redact  # `--help` prints none

    if code == INTERRUPTED and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _exit)  # the line is below, and threads may take a while to end
    echo(redact(text.rstrip("\n") if code == BROKEN else f"rewoo-bench: {text}"), err=True)
    return code


@contextmanager
def _interruptible() -> Iterator[None]:
    """The first Ctrl-C ends what goes on in good order; the second one ends the process, without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    is_ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, _interrupt)
    yield
    if is_ours and signal.getsignal(signal.SIGINT) not in (_leave, _exit):
        signal.signal(signal.SIGINT, before)


@contextmanager
def _own_path() -> Iterator[None]:
    """Every command finds a user's own code in the working folder, after everything that is installed.

    The folder goes with the command: a process that runs many would otherwise search each one's at every import and
    for every plug-in.
    """
    before = list(sys.path)
    with suppress(OSError):  # the folder may have been removed
        sys.path.append(str(Path.cwd()))
    try:
        yield
    finally:
        sys.path[:] = before


def _interrupt(*_: object) -> None:
    signal.signal(signal.SIGINT, _leave)
    raise KeyboardInterrupt


def _leave(*_: object) -> None:
    os.write(2, f"\nrewoo-bench: {_INTERRUPTED}\n".encode())
    os._exit(INTERRUPTED)


def _exit(*_: object) -> None:
    os._exit(INTERRUPTED)
