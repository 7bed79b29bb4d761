"""`rewoo-bench new KIND NAME`: a small runnable example to edit, from the files in templates/."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import click

from rewoo_bench.cli.conventions import DONE, SETTINGS
from rewoo_bench.errors import UsageError
from rewoo_bench.escaping import terminal

KINDS = ("arch", "runner", "tool", "dataset", "agent")
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
    from rewoo_bench.cli.new_names import MODULE_KINDS, check_class_name, check_name, class_name

    path = Path(name)
    if kind not in MODULE_KINDS:
        parent, name = parent / path.parent, path.name
    check_name(kind, name, parent)
    files = _files(kind, {"name": name, "class_name": class_name(name)})
    if kind in MODULE_KINDS:
        check_class_name(class_name(name), files)
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


def _files(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """The names of an example's files and their texts, by name."""
    from string import Template

    return {
        template.name.removesuffix(_SUFFIX): Template(template.read_text(encoding="utf-8")).substitute(values)
        for template in sorted((_TEMPLATES / kind).glob(f"*{_SUFFIX}"))
    }
