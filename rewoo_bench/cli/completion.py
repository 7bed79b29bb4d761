"""Shell completion of names and folders: `eval "$(_REWOO_BENCH_COMPLETE=bash_source rewoo-bench)"`.

Each function returns the completions of an incomplete word, in the form of `shell_complete` of a click parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from rewoo_bench.plugins import Kind

_RUNS = Path("results/local")


def architectures(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Architectures, also after a comma; and folders."""
    before, comma, last = incomplete.rpartition(",")
    return [*_matching(_names("architectures"), last, before + comma), *_folders(last if not comma else "")]


def datasets(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Data sets, files and folders."""
    return [*_matching(_names("datasets"), incomplete), _item(incomplete, type="file")]


def models(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Local models, the oracle, and replays of past runs."""
    from rewoo_bench.model_names import LOCAL, ORACLE, REPLAY
    from rewoo_bench.models.local.catalogue import catalogue

    replays = (f"{REPLAY}{folder}" for folder in _past_runs())
    return _matching([ORACLE, *(f"{LOCAL}{name}" for name in catalogue()), *_names("models"), *replays], incomplete)


def run_folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Past runs in results/local, and folders."""
    return [*_matching(map(str, _past_runs()), incomplete), *_folders(incomplete)]


def _matching(names: Iterable[str], incomplete: str, before: str = "") -> list[CompletionItem]:
    return [_item(before + name) for name in names if name.startswith(incomplete)]


def _folders(incomplete: str) -> list[CompletionItem]:
    """Tells the shell to complete folders, too."""
    return [_item(incomplete, type="dir")]


def _names(kind: Kind) -> list[str]:
    """Bundled names, and those of installed packages."""
    from rewoo_bench.config.named import DESCRIPTIONS
    from rewoo_bench.paths import bundled_names
    from rewoo_bench.plugins import installed_plugins

    bundled = bundled_names(kind, DESCRIPTIONS[kind]) if kind in ("architectures", "datasets") else []
    return [*bundled, *(plugin.name for plugin in installed_plugins(kind))]


def _past_runs() -> Iterator[Path]:
    """Run folders in results/local, the newest first: their names begin with the time."""
    from rewoo_bench.runs.manifest import MANIFEST

    yield from sorted((path.parent for path in _RUNS.glob(f"*/{MANIFEST}")), reverse=True)


def _item(value: str, **more: str) -> CompletionItem:
    from click.shell_completion import CompletionItem

    return CompletionItem(value, **more)
