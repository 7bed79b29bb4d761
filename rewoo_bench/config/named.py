"""Where an architecture or a data set is, by its name: bundled, in an installed package, or a folder.

    find_named("architectures", "rewoo")    # Named("rewoo", folder=Path(".../architectures/rewoo"))
    find_named("architectures", "tree")     # Named("tree", class_path="my_package.tree:Tree", package="my-package")

Bundled and installed names come first; `./name` is the folder of that name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewoo_bench.config.functions import file_schemas, file_tool, is_tool_file
from rewoo_bench.config.names import DESCRIPTIONS, RECORDED, TOOLS, FolderKind, bundled_folder, bundled_names
from rewoo_bench.config.plugins import KINDS, PluginKind, check_name, find_plugin, installed_plugins, plugin_folder
from rewoo_bench.config.specs import (
    ArchitectureSpec,
    DatasetSpec,
    Settings,
    ToolSettings,
    import_object,
    read_values,
    validated,
)
from rewoo_bench.errors import SpecError, unknown
from rewoo_bench.text.scoring import BUNDLED, Scorer


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
    check_name(kind, name)
    if name in bundled_names(kind):
        return Named(name, bundled_folder(kind) / name)
    if plugin := next((each for each in installed_plugins(kind) if each.name == name), None):
        where = f"{name!r} of the package {plugin.distribution}"
        folder = plugin_folder(find_plugin(kind, name), DESCRIPTIONS[kind], where)
        return Named(name, folder, "" if folder else plugin.value, plugin.distribution)
    return Named(name, Path(name)) if name and Path(name).is_dir() else None


def known_names(kind: PluginKind) -> list[str]:
    """Bundled and installed names, sorted."""
    return sorted({*KINDS[kind].bundled(), *(plugin.name for plugin in installed_plugins(kind))})


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


WITHOUT_TOOLS = "none"
"""The name of no tool: alone, it leaves every architecture without tools."""


def checked_tools(names: Sequence[str], where: str) -> tuple[str, ...]:
    """The names of tools, bundled or installed, import paths, or recordings; or `none` alone.

    Raises `SpecError` that begins with `where`.
    """
    if tuple(names) == (WITHOUT_TOOLS,):
        return (WITHOUT_TOOLS,)
    known = known_names("tools") if names else []
    names = functions_of_files(names, where)
    for name in names:
        if ":" in name:
            named_settings(name, where)
        elif name not in known:
            raise SpecError(f"{where}: {unknown('tool', name, known)}; or give an import path 'module:function'")
        if names.count(name) > 1:
            raise SpecError(f"{where}: {name} is named twice")
    return tuple(names)


def functions_of_files(names: Iterable[str], where: str) -> list[str]:
    """The names, with the public functions of a Python file in the place of its name: `my_tools.py:lookup_order`."""
    return [
        each
        for name in names
        for each in ([f"{name}:{own}" for own in file_schemas(name, where)] if is_tool_file(name) else [name])
    ]


def named_settings(name: str, where: str) -> tuple[str, ToolSettings]:
    """The name of a tool as architectures have it, and its settings: `my_module:make_tool` is imported.

    Its name is given before it (`Stock=my_module:make_tool`), else that of the class, or of the tool that a function
    without parameters makes, else the function's.
    `recorded:RUN` stands for all tools of a recording, and imports nothing.
    Raises `SpecError` that begins with `where`.
    """
    if name.startswith(RECORDED):
        return name, ToolSettings(recording=name.removeprefix(RECORDED))
    if ":" not in name:
        return name, ToolSettings()
    given, _, path = name.rpartition("=")
    file, _, function = path.rpartition(":")
    if is_tool_file(file):
        schema = file_tool(file, function, where).schema
        return given or function, ToolSettings(function=path, changes_state=schema.changes_state)
    made = import_object(path, where)
    if given:
        return given, ToolSettings(factory=path)
    try:
        if inspect.isroutine(made) and not inspect.signature(made).parameters:
            made = made()
    except Exception as error:  # of somebody's own function
        raise SpecError(f"{where}: {name!r} raised {type(error).__name__}: {error}") from error
    own = getattr(made, "name", None) or getattr(made, "__name__", None)
    return own if isinstance(own, str) else path.rpartition(":")[2], ToolSettings(factory=path)


def with_own(made: Iterable[tuple[str, ToolSettings]], own: Mapping[str, ToolSettings]) -> dict[str, ToolSettings]:
    """Named tools with an architecture's own settings; of a tool with an import path, only its limits are these.

    Raises `SpecError` where two have the same name.
    """
    tools = dict[str, ToolSettings]()
    for name, settings in made:
        if name in tools:
            path = settings.factory or settings.function or tools[name].factory or "module:function"
            raise SpecError(f"two tools have the name {name!r}; name one, as in --tools Other={path}")
        limits = own[name].model_dump(include={"max_concurrency", "timeout_s"}) if name in own else {}
        tools[name] = (
            settings.model_copy(update=limits) if settings.factory or settings.function else own.get(name, settings)
        )
    return tools


def tools_for(own: Mapping[str, ToolSettings], wanted: Sequence[str]) -> dict[str, ToolSettings]:
    """The tools `wanted` by a data set in the place of an architecture's `own`, with its own settings.

    - None are wanted, or it has none: its own stay. `none` is wanted: it gets none.
    - LLM only where it has it: a loop that calls the model after each observation needs no model as a tool.
    - Wikipedia in the place of Search, where it has that and no Search; Lookup with either, where it has that.
    - Tools of its own that aren't bundled ones stay, but for one whose name a wanted tool has.

    Raises `SpecError` where two of `wanted` have the same name.
    """
    if not wanted or not own:
        return dict(own)
    if tuple(wanted) == (WITHOUT_TOOLS,):
        return {}
    names: list[str] = []
    for name in wanted:
        if name == "LLM" and name not in own:
            continue
        search = "Wikipedia" if name == "Search" and "Wikipedia" in own and "Search" not in own else name
        names += [search, "Lookup"] if name == "Search" and "Lookup" in own else [search]
    made = [named_settings(name, "--tools") for name in dict.fromkeys(names)]
    taken = {name for name, _ in made}
    made += [(name, settings) for name, settings in own.items() if name not in TOOLS and name not in taken]
    return with_own(made, own)


def find_scorer(name: str | Scorer, where: str = "scoring", folder: Path | None = None) -> Scorer:
    """The scorer of that name; a scorer is itself. `folder` is the data set's, whose files may have the function.

    Raises `SpecError` that begins with `where`.
    """
    if isinstance(name, Scorer):
        return name
    plain, mark, objectives = name.partition("?objectives=")
    if mark and objectives.isdecimal():
        return find_scorer(plain, where, folder).of_objectives(int(objectives))
    plugin = find_plugin("scorers", name)  # also raises for a bundled name that another package has
    if name in BUNDLED:
        return BUNDLED[name]
    if plugin is None and ":" not in name:
        raise SpecError(f"{where}: {unknown('scoring', name, known_names('scorers'))}; or package.module:function")
    function = import_object(name, where, folder) if plugin is None else plugin
    if not callable(function):
        raise SpecError(f"{where}: the scorer {name!r} is {function!r}, expected (prediction, answers) -> Score")
    return Scorer(name, function)
