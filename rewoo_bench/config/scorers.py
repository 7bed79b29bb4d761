"""A scorer by its name: bundled, of an installed package, or a function by its import path.

find_scorer("hotpotqa", "my_set/dataset.toml")
find_scorer("my_package.scoring:numbers", "my_set/dataset.toml")
"""

from __future__ import annotations

from pathlib import Path

from rewoo_bench.config.specs import import_object
from rewoo_bench.errors import SpecError, unknown
from rewoo_bench.plugins import find_plugin, installed_plugins
from rewoo_bench.scoring import BUNDLED, Scorer


def find_scorer(name: str | Scorer, where: str = "scoring", folder: Path | None = None) -> Scorer:
    """The scorer of that name; a scorer is itself. `folder` is the data set's, whose files may have the function.

    Raises `SpecError` that begins with `where`.
    """
    if isinstance(name, Scorer):
        return name
    plugin = find_plugin("scorers", name)  # also raises for a bundled name that another package has
    if name in BUNDLED:
        return BUNDLED[name]
    if plugin is None and ":" not in name:
        known = {*BUNDLED, *(each.name for each in installed_plugins("scorers"))}
        raise SpecError(f"{where}: {unknown('scoring', name, known)}; or package.module:function")
    function = import_object(name, where, folder) if plugin is None else plugin
    if not callable(function):
        raise SpecError(f"{where}: the scorer {name!r} is {function!r}, expected (prediction, answers) -> Score")
    return Scorer(name, function)
