"""Names for `rewoo-bench new`: one that is taken would make an example that can't be used, or that hides another thing.

check_name("tool", "day_count", Path.cwd())    # UsageError for "json", "search", "day-count"
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from rewoo_bench.errors import UsageError

MODULE_KINDS = ("runner", "tool")
"""Examples with a Python module and a class of that name."""


def check_name(kind: str, name: str, parent: Path) -> None:
    """Raises `UsageError` for a name that is no folder's, no Python module's where it must be one, or taken."""
    if kind in MODULE_KINDS:
        _check_identifier(name)
    elif not re.fullmatch(r"[A-Za-z][\w-]*", name, re.ASCII):
        raise UsageError(f"new: {name!r} is no name; use letters, digits, '-' and '_'")
    if (parent / name).exists():
        raise UsageError(f"new: {name!r} exists already; choose another name")
    if kind != "agent":
        _check_plugin_names(kind, name)
    if kind in MODULE_KINDS:
        _check_module(name, parent)


def check_class_name(name: str, files: Mapping[str, str]) -> None:
    """Raises `UsageError` where a class can't have the name, or the example's Python file uses it for another thing."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"new: the class of the example can't be named {name!r} in Python; choose another name")
    for file, text in files.items():
        if file.endswith(".py") and (name in vars(builtins) or _declared(text).count(name) > 1):
            raise UsageError(f"new: {file} uses the name {name!r} for another thing; choose another name")


def class_name(name: str) -> str:
    """`look_once` as `LookOnce`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_-]+", name))


def _check_identifier(name: str) -> None:
    if (name.isascii() and name.isidentifier()) and not keyword.iskeyword(name):
        return
    nearest = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    hint = f", for example {nearest}" if nearest.isidentifier() and not keyword.iskeyword(nearest) else ""
    raise UsageError(f"new: {name!r} is no name of a Python module; use letters, digits and '_'{hint}")


def _check_plugin_names(kind: str, name: str) -> None:
    """Bundled and installed architectures, data sets and tools."""
    from rewoo_bench.plugins import packages_with

    if kind == "dataset":
        packages, what = packages_with("datasets", name), f"the data set {name!r}"
    else:
        packages, what = packages_with("architectures", name), f"the architecture {name!r}"
    if kind == "tool" and not packages:
        packages, what = packages_with("tools", class_name(name)), f"the tool {class_name(name)!r}"
    if packages:
        raise UsageError(f"new: {what} exists already, in {packages[0]}; choose another name")
    if kind == "tool" and class_name(name) == "Finish":
        raise UsageError("new: 'Finish' is the action that ends a question of ReAct; choose another name")


def _check_module(name: str, parent: Path) -> None:
    """Every other module of that name is imported in the place of the example."""
    if name in _own_modules() or any(finder.find_spec(name, None) for finder in sys.meta_path):
        raise UsageError(f"new: {name!r} is an installed Python module; choose another name")
    if (parent / f"{name}.py").exists():
        raise UsageError(f"new: the file {name}.py in this folder is a Python module of that name; choose another name")


def _own_modules() -> set[str]:
    return {*sys.stdlib_module_names, "rewoo_bench", "architectures", "datasets"}


def _declared(text: str) -> list[str]:
    """The names of the classes and imports of a Python file."""
    nodes = list(ast.walk(ast.parse(text)))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    return classes + [alias.asname or alias.name for node in imports for alias in node.names]
