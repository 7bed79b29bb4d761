"""The program `rewoo-bench`; each command has a file of its own in this package.

Exit codes: 0 done, 1 a gate failed, 2 the command is wrong, 3 incomplete (a cap, failed questions, interrupted),
70 a fault of ours, with its traceback.
What does the work is imported when a command runs, so that `--help` answers at once.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import click

from rewoo_bench.cli.baseline import baseline
from rewoo_bench.cli.claims import claims
from rewoo_bench.cli.compare import compare
from rewoo_bench.cli.conventions import BROKEN, INCOMPLETE, SETTINGS, WRONG
from rewoo_bench.cli.gate import gate
from rewoo_bench.cli.list_names import list_names
from rewoo_bench.cli.plot import plot
from rewoo_bench.cli.publish import publish
from rewoo_bench.cli.report import report
from rewoo_bench.cli.run import run
from rewoo_bench.cli.show import show
from rewoo_bench.cli.view import view
from rewoo_bench.errors import RewooBenchError, UsageError
from rewoo_bench.escaping import terminal
from rewoo_bench.redaction import redact

_INTERRUPTED = "interrupted before the first question, or after the last"


@click.group(context_settings=SETTINGS)
@click.version_option(package_name="rewoo-bench")
def group() -> None:
    """Measure what an agent architecture costs and what it buys."""


group.add_command(run)
group.add_command(list_names)
group.add_command(gate)
group.add_command(baseline)
group.add_command(compare)
group.add_command(claims)
group.add_command(plot)
group.add_command(publish)
group.add_command(report)
group.add_command(show)
group.add_command(view)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits with its code; an error of ours is one line."""
    try:
        code = group.main(list(arguments) if arguments is not None else None, "rewoo-bench", standalone_mode=False)
    except click.exceptions.Abort:
        code = _fail(_INTERRUPTED, INCOMPLETE)
    except click.ClickException as error:
        error.show()
        code = WRONG
    except UsageError as error:
        code = _fail(str(error), WRONG)
    except RewooBenchError as error:
        code = _fail(str(error), INCOMPLETE)
    except KeyboardInterrupt:
        code = _fail(_INTERRUPTED, INCOMPLETE)
    except Exception:  # a fault of ours; never exit code 1, which says that a gate failed
        click.echo(terminal(redact(traceback.format_exc())), err=True, nl=False)
        code = BROKEN
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    click.echo(terminal(f"rewoo-bench: {redact(message)}"), err=True)
    return code
