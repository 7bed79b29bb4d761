"""`rewoo-bench new KIND NAME`: a small runnable example to edit, from the files in templates/."""

from __future__ import annotations

import keyword
import re
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
    "agent": "echo 'Which river is in Paris?' | OPENAI_BASE_URL=http://localhost:8000/v1 python {name}/agent.py",
}


@click.command(context_settings=SETTINGS)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
def new(kind: str, name: str) -> int:
    """Write a runnable example of an architecture, a runner, a tool, a data set or an agent into ./NAME.

    arch: prompts and settings for a bundled runner. runner: a loop of your own in Python. tool: a tool of your own
    and an architecture that uses it. dataset: questions and passages. agent: a program that answers one question
    over an OpenAI-compatible endpoint; it runs by itself, and `run` doesn't take agents as architectures yet.
    """
    for path in write_example(kind, name, Path.cwd()):
        click.echo(terminal(str(path)))
    click.echo(terminal(f"next: {_NEXT[kind].format(name=name)}"), err=True)
    return DONE


def write_example(kind: str, name: str, parent: Path) -> list[Path]:
    """Writes the files of an example; their paths, relative to `parent`. Raises `UsageError`."""
    from string import Template

    _check_name(kind, name)
    folder = parent / name
    templates = sorted((_TEMPLATES / kind).glob(f"*{_SUFFIX}"))
    values = {"name": name, "class_name": _class_name(name)}
    try:
        folder.mkdir()
        for template in templates:
            text = Template(template.read_text(encoding="utf-8")).substitute(values)
            (folder / template.name.removesuffix(_SUFFIX)).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"new: {name!r} exists already; choose another name") from None
    except OSError as error:
        raise UsageError(f"new: can't write {str(folder)!r}: {error.strerror}") from None
    return [Path(name) / template.name.removesuffix(_SUFFIX) for template in templates]


def _check_name(kind: str, name: str) -> None:
    """A folder's name; that of a runner or a tool is also a Python package's."""
    if kind in ("arch", "dataset", "agent"):
        if not re.fullmatch(r"[A-Za-z][\w-]*", name, re.ASCII):
            raise UsageError(f"new: {name!r} is no name; use letters, digits, '-' and '_'")
        return
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
        nearest = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        hint = f", for example {nearest}" if nearest.isidentifier() and not keyword.iskeyword(nearest) else ""
        raise UsageError(f"new: {name!r} is no name of a Python module; use letters, digits and '_'{hint}")
    if name in _taken():
        raise UsageError(f"new: {name!r} is an installed Python module; choose another name")


def _taken() -> set[str]:
    import sys

    return {*sys.stdlib_module_names, "rewoo_bench", "architectures", "datasets"}


def _class_name(name: str) -> str:
    """`look_once` as `LookOnce`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_-]+", name))
