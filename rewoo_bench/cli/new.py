"""`rewoo-bench new KIND NAME`: a small runnable example to edit, from the files in templates/."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template

import click

from rewoo_bench.cli.command import DONE, SETTINGS
from rewoo_bench.config.plugins import Kind, packages_with
from rewoo_bench.errors import UsageError
from rewoo_bench.text.escaping import terminal

KINDS = ("arch", "runner", "tool", "dataset", "agent")
MODULE_KINDS = ("runner", "tool")
"""Examples with a Python module and a class of that name."""
_TEMPLATES = Path(__file__).parent / "templates"
_SUFFIX = ".template"
_NEXT = {
    "arch": "rewoo-bench run --arch {where},rewoo --model oracle -n 10",
    "runner": "rewoo-bench run --arch {where},direct -n 3",
    "tool": "rewoo-bench run --arch {where},react -n 3",
    "dataset": "rewoo-bench run --arch rewoo,react --dataset {where} --model oracle",
    "agent": "rewoo-bench run --arch {where},direct -n 3",
}


@click.command(context_settings=SETTINGS)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name", metavar="NAME|PATH")
def new(kind: str, name: str) -> int:
    """Write a runnable example of an architecture, a runner, a tool, a data set or an agent into ./NAME, or into
    ./PATH, whose last part is the name. A runner and a tool are Python modules of the folder that runs them: they
    have a name alone.

    arch: prompts and settings for a bundled runner. runner: a loop of your own in Python. tool: a tool of your own
    and an architecture that uses it. dataset: questions and passages. agent: a program that answers one question,
    with its model and its tools over HTTP.
    """
    for path in write_example(kind, name, Path.cwd()):
        click.echo(terminal(str(path)))
    where = name if name.startswith((".", "/")) else f"./{name}"
    click.echo(terminal(f"next: {_NEXT[kind].format(where=shlex.quote(where))}"), err=True)
    return DONE


def write_example(kind: str, name: str, parent: Path) -> list[Path]:
    """Writes the files of an example; their paths, relative to `parent`. `name` may be a path. Raises `UsageError`."""
    path = Path(name)
    if kind not in MODULE_KINDS:
        parent, name = parent / path.parent, path.name
    _check_name(kind, name, parent)
    values = {"name": name, "class_name": _class_name(name)}
    files = {
        template.name.removesuffix(_SUFFIX): Template(template.read_text(encoding="utf-8")).substitute(values)
        for template in sorted((_TEMPLATES / kind).glob(f"*{_SUFFIX}"))
    }
    if kind in MODULE_KINDS:
        _check_class_name(_class_name(name), files)
    folder = parent / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"new: {name!r} exists already; choose another name") from None
    except OSError as error:
        raise UsageError(f"new: can't write {str(folder)!r}: {error.strerror}") from None
    return [path / file for file in files]


def _class_name(name: str) -> str:
    """`look_once` as `LookOnce`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_-]+", name))


def _check_name(kind: str, name: str, parent: Path) -> None:
    """Raises `UsageError` for a name that is no folder's, no Python module's where it must be one, or taken.

    One that is taken would make an example that can't be used, or that hides another thing.
    """
    if kind in MODULE_KINDS:
        if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
            nearest = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
            hint = f", for example {nearest}" if nearest.isidentifier() and not keyword.iskeyword(nearest) else ""
            raise UsageError(f"new: {name!r} is no name of a Python module; use letters, digits and '_'{hint}")
    elif not re.fullmatch(r"[A-Za-z][\w-]*", name, re.ASCII):
        raise UsageError(f"new: {name!r} is no name; use letters, digits, '-' and '_'")
    if (parent / name).exists():
        raise UsageError(f"new: {name!r} exists already; choose another name")
    if kind == "dataset":
        _check_free("datasets", name, "data set")
    elif kind != "agent":
        _check_free("architectures", name, "architecture")
    if kind == "tool":
        _check_free("tools", _class_name(name), "tool")
        if _class_name(name) == "Finish":
            raise UsageError("new: 'Finish' is the action that ends a question of ReAct; choose another name")
    if kind in MODULE_KINDS:  # every other module of that name is imported in the place of the example
        own = {*sys.stdlib_module_names, "rewoo_bench", "architectures", "datasets"}
        if name in own or any(finder.find_spec(name, None) for finder in sys.meta_path):
            raise UsageError(f"new: {name!r} is an installed Python module; choose another name")
        if (parent / f"{name}.py").exists():
            raise UsageError(
                f"new: the file {name}.py in this folder is a Python module of that name; choose another name"
            )


def _check_free(kind: Kind, name: str, what: str) -> None:
    """Raises `UsageError` where a bundled or an installed package has the name."""
    if packages := packages_with(kind, name):
        raise UsageError(f"new: the {what} {name!r} exists already, in {packages[0]}; choose another name")


def _check_class_name(name: str, files: Mapping[str, str]) -> None:
    """Raises `UsageError` where a class can't have the name, or the example's Python file uses it for another thing."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"new: the class of the example can't be named {name!r} in Python; choose another name")
    for file, text in files.items():
        if file.endswith(".py") and (name in vars(builtins) or _declared(text).count(name) > 1):
            raise UsageError(f"new: {file} uses the name {name!r} for another thing; choose another name")


def _declared(text: str) -> list[str]:
    """The names of the classes and imports of a Python file."""
    nodes = list(ast.walk(ast.parse(text)))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    return classes + [alias.asname or alias.name for node in imports for alias in node.names]
