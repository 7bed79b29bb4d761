"""`rewoo-bench new KIND NAME`: a small runnable example to edit, from the files in templates/."""

from __future__ import annotations

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
    "arch": "rewoo-bench run --arch ./{name},rewoo --model oracle -n 10",
    "runner": "rewoo-bench run --arch ./{name},direct -n 3",
    "tool": "rewoo-bench run --arch ./{name},react -n 3",
    "dataset": "rewoo-bench run --arch rewoo,react --dataset ./{name} --model oracle",
    "agent": "rewoo-bench run --arch ./{name},direct -n 3",
}


@click.command(context_settings=SETTINGS)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
def new(kind: str, name: str) -> int:
    """Write a runnable example of an architecture, a runner, a tool, a data set or an agent into ./NAME.

    arch: prompts and settings for a bundled runner. runner: a loop of your own in Python. tool: a tool of your own
    and an architecture that uses it. dataset: questions and passages. agent: a program that answers one question,
    with its model and its tools over HTTP.
    """
    for path in write_example(kind, name, Path.cwd()):
        click.echo(terminal(str(path)))
    click.echo(terminal(f"next: {_NEXT[kind].format(name=name)}"), err=True)
    return DONE


def write_example(kind: str, name: str, parent: Path) -> list[Path]:
    """Writes the files of an example; their paths, relative to `parent`. Raises `UsageError`."""
    from rewoo_bench.cli.new_names import MODULE_KINDS, check_class_name, check_name, class_name

    check_name(kind, name, parent)
    files = _files(kind, {"name": name, "class_name": class_name(name)})
    if kind in MODULE_KINDS:
        check_class_name(class_name(name), files)
    folder = parent / name
    try:
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"new: {name!r} exists already; choose another name") from None
    except OSError as error:
        raise UsageError(f"new: can't write {str(folder)!r}: {error.strerror}") from None
    return [Path(name) / file for file in files]


def _files(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """The names of an example's files and their texts, by name."""
    from string import Template

    return {
        template.name.removesuffix(_SUFFIX): Template(template.read_text(encoding="utf-8")).substitute(values)
        for template in sorted((_TEMPLATES / kind).glob(f"*{_SUFFIX}"))
    }
