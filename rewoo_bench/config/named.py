"""Where an architecture or a data set is, by its name: bundled, in an installed package, or a folder.

    find_named("architectures", "rewoo")    # Named("rewoo", folder=Path(".../architectures/rewoo"))
    find_named("architectures", "tree")     # Named("tree", class_path="my_package.tree:Tree", package="my-package")

Bundled and installed names come first; `./name` is the folder of that name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rewoo_bench.config.specs import ArchitectureSpec, DatasetSpec, Settings, read_values, validated
from rewoo_bench.paths import bundled_folder, bundled_names
from rewoo_bench.plugins import check_name, find_plugin, installed_plugins, plugin_folder, plugin_named

FolderKind = Literal["architectures", "datasets"]
DESCRIPTIONS = {"architectures": "architecture.toml", "datasets": "dataset.toml"}


@dataclass(frozen=True, slots=True)
class Named:
    """A folder with a description, or the import path of a class; `package` is the installed one that has it."""

    name: str
    folder: Path | None = None
    class_path: str = ""
    package: str | None = None


def find_named(kind: FolderKind, name: str) -> Named | None:
    """The folder or class of that name, or None.

    Raises `SpecError` where two packages have the name, or an installed one is faulty.
    """
    description = DESCRIPTIONS[kind]
    if name in bundled_names(kind, description):
        check_name(kind, name)
        return Named(name, bundled_folder(kind) / name)
    if plugin := plugin_named(kind, name):
        where = f"{name!r} of the package {plugin.distribution}"
        folder = plugin_folder(find_plugin(kind, name), description, where)
        return Named(name, folder, "" if folder else plugin.value, plugin.distribution)
    return Named(name, Path(name)) if name and Path(name).is_dir() else None


def known_names(kind: FolderKind) -> list[str]:
    """Bundled and installed names, sorted."""
    return sorted({*bundled_names(kind, DESCRIPTIONS[kind]), *(plugin.name for plugin in installed_plugins(kind))})


def read_architecture(named: Named) -> ArchitectureSpec:
    """The architecture.toml of a folder. Raises `SpecError`."""
    return _described(named, "architectures", ArchitectureSpec)


def read_dataset(named: Named) -> DatasetSpec:
    """The dataset.toml of a folder. Raises `SpecError`."""
    return _described(named, "datasets", DatasetSpec)


def _described(named: Named, kind: FolderKind, settings: type[Settings]) -> Settings:
    """The description in a folder; without a `name` it has the folder's, or that of the entry point."""
    assert named.folder is not None
    path = named.folder / DESCRIPTIONS[kind]
    values: dict[str, Any] = read_values(path)
    return validated(
        settings, {"name": named.name if named.package else path.resolve().parent.name, **values}, str(path)
    )
