"""Types of flags that click lacks, and shell completion of names and folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from rewoo_bench.config.names import LOCAL, ORACLE_MODEL, REPLAY
from rewoo_bench.runs.manifest import MANIFEST

if TYPE_CHECKING:
    from rewoo_bench.config.plugins import PluginKind


class FolderFlag(click.Path):
    """A folder, which may be a new one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)


class NumberFlag(click.FloatRange):
    """A number, or `none` for no value.

    `--help` shows its range and `RunOptions` checks it, so that Python has the same error message.
    """

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return None if value == "none" else click.FLOAT.convert(value, parameter, context)


class WholeFlag(click.IntRange):
    """The same for a whole number."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return None if value == "none" else click.INT.convert(value, parameter, context)


class IdsFile(click.ParamType[Any]):
    """A file of ids, one a line, as the tuple of its ids; a list of ids is taken as it is (`--from`)."""

    name = "file"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        from rewoo_bench.evaluation.question_choice import read_ids  # 0.2 s, which `run --help` needn't take

        return tuple(map(str, value)) if isinstance(value, list | tuple) else read_ids(Path(value))

    def shell_complete(
        self, context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def tool_names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names of tools, from repeated flags or lists with commas; the run checks them."""
    names = tuple(name.strip() for value in values for name in value.split(",") if name.strip())
    if values and not names:
        raise click.BadParameter("expected the name of a tool")
    return names


def as_share(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """`2%` or `0.02` as a share. A whole number without a percent sign is ambiguous and refused."""
    if value is None:
        return None
    percent = value.strip().endswith("%")
    try:
        number = float(value.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < (float("inf") if percent else 1):
        raise click.BadParameter(f"{value!r} is neither a percentage (2%) nor a fraction below 1 (0.02)")
    return number


# Shell completion of names and folders: `eval "$(_REWOO_BENCH_COMPLETE=bash_source rewoo-bench)"`.
#
# Each function returns the completions of an incomplete word, in the form of `shell_complete` of a click parameter, and
# imports what only a completion needs: `compare` and `runs` start 45 ms sooner.


def architectures(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Architectures, also after a comma; and folders."""
    before, comma, last = incomplete.rpartition(",")
    return [*_matching(_names("architectures"), last, before + comma), *_folders(last if not comma else "")]


def datasets(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Data sets, files and folders."""
    return [*_matching(_names("datasets"), incomplete), CompletionItem(incomplete, type="file")]


def models(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Local models, the oracle, and replays of past runs."""
    from rewoo_bench.models.local.catalogue import catalogue

    replays = (f"{REPLAY}{folder}" for folder in _past_runs())
    local = (f"{LOCAL}{name}" for name in catalogue())
    return _matching(dict.fromkeys([ORACLE_MODEL, *local, *_names("models"), *replays]), incomplete)


def run_folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Past runs in results/local, and folders."""
    return [*_matching(map(str, _past_runs()), incomplete), *_folders(incomplete)]


def _matching(names: Iterable[str], incomplete: str, before: str = "") -> list[CompletionItem]:
    return [CompletionItem(before + name) for name in names if name.startswith(incomplete)]


def _folders(incomplete: str) -> list[CompletionItem]:
    """Tells the shell to complete folders, too."""
    return [CompletionItem(incomplete, type="dir")]


def _names(kind: PluginKind) -> list[str]:
    """Bundled names, and those of installed packages."""
    from rewoo_bench.config.named import known_names

    return known_names(kind)


def _past_runs() -> Iterator[Path]:
    """Run folders in results/local, the newest first: their names begin with the time."""
    yield from sorted((path.parent for path in Path("results/local").glob(f"*/{MANIFEST}")), reverse=True)
