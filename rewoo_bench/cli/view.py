"""`rewoo-bench view [FOLDER]`: the pages of all runs in a folder, in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import anyio
import click

from rewoo_bench.cli.flag_types import FolderFlag
from rewoo_bench.errors import UsageError
from rewoo_bench.report.view import serving


@click.command()
@click.argument("folder", type=FolderFlag(), default=Path("results/local"))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1.  [default: a free one]",
              show_default=False)  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def view(folder: Path, port: int, no_browser: bool) -> None:
    """Show the runs in FOLDER in the browser; a run in progress updates itself. Ctrl-C ends it."""
    if not folder.is_dir():
        raise UsageError(f"no such folder: {str(folder)!r}; expected a folder of runs, by default results/local")

    async def serve() -> None:
        async with serving(folder, port) as address:
            click.echo(f"{address}  (Ctrl-C ends it)")
            if not no_browser:
                webbrowser.open(address)
            await anyio.sleep_forever()

    try:
        anyio.run(serve)
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror or error}") from None
