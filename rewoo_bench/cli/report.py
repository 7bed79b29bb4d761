"""`rewoo-bench report RUN …`: one HTML file with tables, figures and every trajectory, or the same in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import anyio
import click

from rewoo_bench.cli.flag_types import run_folders
from rewoo_bench.errors import UsageError
from rewoo_bench.report.write import write_page
from rewoo_bench.system.files import is_stream
from rewoo_bench.system.output import announce, echo

_RUNS = Path("results/local")


# fmt: off
@click.command("report")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="RUN...", shell_complete=run_folders)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Where to write the page.  [default: report.html in the first run's folder]")
@click.option("--without-texts", is_flag=True,
              help="Leave out what data sets, tools and models said; numbers, ids and outcomes stay.")
@click.option("--with-prompts", is_flag=True, help="Add the prompt and the raw completion of every model call.")
@click.option("--no-figures", is_flag=True, help="Leave out the plots, which take most of the time.")
@click.option("--live", is_flag=True,
              help=f"Write nothing: show RUN, or all runs of a folder (by default {_RUNS}), in the browser. A run in "
                   "progress updates itself. Ctrl-C ends it.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT",
              help="Port of --live on 127.0.0.1.  [default: a free one]")
@click.option("--no-browser", is_flag=True, help="With --live, only print the address.")
def report_command(
    runs: tuple[Path, ...], out: Path | None, without_texts: bool, with_prompts: bool, no_figures: bool, live: bool,
    port: int | None, no_browser: bool
) -> None:
    """Write runs as one HTML file that needs no network: what was measured, and every question side by side."""
    # fmt: on
    if live:
        if out or without_texts or with_prompts or no_figures or len(runs) > 1:
            raise UsageError("--live writes no file: it takes one run or one folder of runs, --port and --no-browser")
        _show_live(runs[0] if runs else _RUNS, port or 0, no_browser)
        return
    if port is not None or no_browser:
        raise UsageError("--port and --no-browser are for --live")
    if not runs:
        raise click.UsageError("Missing argument 'RUN...'.")
    if without_texts and with_prompts:
        raise UsageError("--with-prompts and --without-texts exclude each other")
    path = out or (runs[0] if runs[0].is_dir() else runs[0].parent) / "report.html"
    announce("writing the page" if no_figures else "drawing figures and writing the page; --no-figures is faster")
    size = write_page(runs, path, texts=not without_texts, figures=not no_figures, prompts=with_prompts)
    # The page itself may be standard output.
    echo(f"{path} ({size / 1e6:.1f} MB)", err=is_stream(path))


def _show_live(folder: Path, port: int, no_browser: bool) -> None:
    """Serves the pages of a run, or of all runs in a folder, until Ctrl-C."""
    from rewoo_bench.report.live import serving  # aiohttp's server, which a file needn't wait for

    if not folder.is_dir():
        raise UsageError(f"no such folder: {str(folder)!r}; expected a run, or a folder of runs")

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
