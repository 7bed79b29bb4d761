"""Architectures, data sets, tools, models and scorers of other installed packages: their entry points.

    [project.entry-points."rewoo_bench.architectures"]     # pyproject.toml of such a package
    tree = "my_package.tree:FOLDER"                        # a folder with an architecture.toml, or a runner class

    find_plugin("architectures", "tree")                   # the object, as for --arch tree

| group `rewoo_bench.…` | object | used as |
|---|---|---|
| `architectures` | a folder with `architecture.toml`, or a runner class | `--arch NAME` |
| `datasets` | a folder with `dataset.toml`, or a generator class | `--dataset NAME` |
| `tools` | a function or class that makes a tool | `[tools.NAME]`, `?tools=Search+NAME` |
| `models` | a function or class that makes a model | `--model NAME` |
| `scorers` | `(prediction, answers) -> Score` | `scoring = "NAME"` in dataset.toml |

A folder is a path, a function that returns one, or the package (`my_package.tree`) that holds the file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass, ismodule
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rewoo_bench.config.names import ORACLE_MODEL, SCORERS, TOOLS, bundled_names
from rewoo_bench.errors import SpecError

PluginKind = Literal["architectures", "datasets", "tools", "models", "scorers"]

_THIS_PACKAGE = "rewoo-bench"


class _Kind(NamedTuple):
    what: str
    bundled: Callable[[], Sequence[str]]


KINDS: Mapping[PluginKind, _Kind] = {
    "architectures": _Kind("architecture", lambda: bundled_names("architectures")),
    "datasets": _Kind("data set", lambda: bundled_names("datasets")),
    "tools": _Kind("tool", lambda: TOOLS),
    "models": _Kind("model", lambda: (ORACLE_MODEL,)),
    "scorers": _Kind("scorer", lambda: SCORERS),
}


class Plugin(NamedTuple):
    """An entry point: its name, the package that has it, and the import path of its object."""

    name: str
    distribution: str
    value: str


def installed_plugins(kind: PluginKind) -> list[Plugin]:
    """The entry points of that kind, sorted by name; nothing is imported."""
    return _plugins_on(f"rewoo_bench.{kind}", tuple(sys.path))


def packages_with(kind: PluginKind, name: str) -> list[str]:
    """The packages that have something of that kind under the name, this one included."""
    own = [_THIS_PACKAGE] if name in KINDS[kind].bundled() else []
    return own + [plugin.distribution for plugin in installed_plugins(kind) if plugin.name == name]


def check_name(kind: PluginKind, name: str) -> None:
    """Raises `SpecError` where more than one package has something of that kind under the name."""
    packages = packages_with(kind, name)
    if len(packages) > 1:
        raise SpecError(
            f"the {KINDS[kind].what} {name!r} is in {len(packages)} packages: {', '.join(packages)}; "
            f"uninstall all but one of them"
        )


def find_plugin(kind: PluginKind, name: str) -> Any | None:
    """The object of an installed package under that name, or None where there is none.

    Raises `SpecError` where two packages have the name, this one included, or where it can't be imported.
    """
    check_name(kind, name)
    plugin = next((each for each in installed_plugins(kind) if each.name == name), None)
    if plugin is None:
        return None
    where = f"{KINDS[kind].what} {name!r} of the package {plugin.distribution}"
    try:
        loaded = EntryPoint(name, plugin.value, f"rewoo_bench.{kind}").load()
    except (Exception, SystemExit) as error:  # of another package's code: it can't be used, whatever it raised
        what = f"can't import {plugin.value!r}: {type(error).__name__}: {error}"
        raise SpecError(f"{where}: {what}") from error
    return loaded


def plugin_folder(plugin: Any, description: str, where: str) -> Path | None:
    """The folder that an entry point's object names and that holds the file `description`; None for a class.

    Raises `SpecError`, which begins with `where`, for anything else.
    """
    if isclass(plugin):
        return None
    try:
        place = (
            Path(str(plugin.__file__)).parent if ismodule(plugin) else Path(plugin() if callable(plugin) else plugin)
        )
    except Exception as error:  # of another package's function
        raise SpecError(f"{where}: {plugin!r} is no class, and no folder: {type(error).__name__}: {error}") from error
    if not (place / description).is_file():
        raise SpecError(f"{where}: the folder {str(place)!r} has no {description}")
    return place


@lru_cache(maxsize=64)
def _plugins_on(group: str, path: tuple[str, ...]) -> list[Plugin]:
    """The entry points of a group; `path` is the `sys.path` that they are read from, some 10 ms each time."""
    found = entry_points(group=group)
    return sorted(Plugin(each.name, each.dist.name if each.dist else "unknown", each.value) for each in found)
