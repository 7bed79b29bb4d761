"""`rewoo-bench new KIND NAME`: a small runnable example to edit, from the files in templates/."""

from __future__ import annotations

import keyword
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template

import click

from rewoo_bench.config.names import bundled_folder, bundled_names
from rewoo_bench.config.plugins import KINDS, PluginKind, packages_with
from rewoo_bench.errors import UsageError
from rewoo_bench.system.output import echo
from rewoo_bench.text.argument_checks import check_known

_TEMPLATES = Path(__file__).parent / "templates"
_SUFFIX = ".template"
EXAMPLE_KINDS = {
    "arch": "rewoo-bench run --arch {where},{original} --model oracle -n 10",
    "runner": "rewoo-bench run --arch {where},direct -n 3",
    "tool": "rewoo-bench run --arch {where},react -n 3",
    "dataset": "rewoo-bench run --arch rewoo,react --dataset {where} --model oracle",
    "agent": "rewoo-bench run --arch {where},direct -n 3",
    "world": "rewoo-bench run --arch rewoo-json,react-native --world {where}/{name}.py "
    "--dataset {where}/questions.jsonl --model oracle",
}
"""What can be written, with the command that uses it."""
MODULE_KINDS = ("runner", "tool")
"""Examples with a Python module and a class of that name."""


@click.command()
@click.argument("kind", type=click.Choice(tuple(EXAMPLE_KINDS)))
@click.argument("name", metavar="NAME|PATH")
@click.option("--from", "original", metavar="ARCH", help="arch: copy this bundled architecture, such as rewoo-json.")
def new(kind: str, name: str, original: str | None) -> None:
    """Write a runnable example of an architecture, a runner, a tool, a data set, an agent or a world into ./NAME, or
    into ./PATH, whose last part is the name. A runner and a tool are Python modules of the folder that runs them:
    they have a name alone.

    arch: prompts and settings for a bundled runner, in the form of the ReWOO paper or those of --from. runner: a loop
    of your own in Python. tool: a tool of your own and an architecture that uses it. dataset: questions and passages.
    agent: a program that answers one question, with its model and its tools over HTTP. world: tools over a state of
    its own for each question, with a check.
    """
    path = Path(name)
    folder = Path.cwd() / path
    plain = name if kind in MODULE_KINDS else path.name
    class_name = "".join(part[:1].upper() + part[1:] for part in re.split(r"[_-]+", plain))
    _check_name(kind, plain, class_name, folder)
    if original is not None and kind != "arch":
        raise UsageError(f"new: --from copies an architecture: write `new arch {name} --from {original}`")
    files = _copied(original, plain) if original else _from_templates(kind, {"name": plain, "class_name": class_name})
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    for file in files:
        echo(str(path / file))
    where = name if name.startswith((".", "/")) else f"./{name}"
    echo(
        f"next: {EXAMPLE_KINDS[kind].format(where=shlex.quote(where), name=plain, original=original or 'rewoo')}",
        err=True,
    )


def _from_templates(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """The files of an example by their places in its folder."""
    return {
        template.name.removesuffix(_SUFFIX).replace("__name__", values["name"]): Template(
            template.read_text(encoding="utf-8")
        ).substitute(values)
        for template in sorted((_TEMPLATES / kind).glob(f"*{_SUFFIX}"))
    }


def _copied(original: str, name: str) -> dict[str, str]:
    """The files of a bundled architecture under another name; a prompt of a neighbour is copied into a folder of its
    name: `../rewoo/solver.txt` becomes `rewoo/solver.txt`. Raises `UsageError` where there is no such architecture."""
    check_known("architecture", [original], bundled_names("architectures"), "--from")
    root = bundled_folder("architectures")
    own = (root / original / "architecture.toml").read_text(encoding="utf-8")
    borrowed = sorted(set(re.findall(r'"\.\./([^"]+)"', own)))
    own = re.sub(r'^name = ".*"', f'name = "{name}"', own.replace('"../', '"'), flags=re.MULTILINE)
    prompts = {path.relative_to(root / original).as_posix(): path for path in sorted((root / original).rglob("*.txt"))}
    prompts |= {place: root / place for place in borrowed}
    return {"architecture.toml": own, **{place: path.read_text(encoding="utf-8") for place, path in prompts.items()}}


def _check_name(kind: str, name: str, class_name: str, folder: Path) -> None:
    """Raises `UsageError` for a name that can't name what is written, or that is taken.

    One that is taken would make an example that can't be used, or that hides another thing.
    """
    is_python = kind in (*MODULE_KINDS, "world")
    if not re.fullmatch(r"[A-Za-z][\w-]*", name, re.ASCII) or (is_python and not name.isidentifier()):
        raise UsageError(f"new: {name!r} is no name; use letters, digits and '_'{'' if is_python else ' or -'}")
    if is_python and keyword.iskeyword(name):
        raise UsageError(f"new: {name!r} is a word of Python's own; choose another name, such as 'my_{name}'")
    if folder.exists():
        raise UsageError(f"new: {name!r} exists already; choose another name")
    taken: list[tuple[PluginKind, str]] = []
    if kind in ("dataset", "arch", *MODULE_KINDS):
        taken.append(("datasets" if kind == "dataset" else "architectures", name))
    if kind == "tool":
        taken.append(("tools", class_name))
    for plugins, given in taken:
        if packages := packages_with(plugins, given):
            raise UsageError(
                f"new: the {KINDS[plugins].what} {given!r} exists already, in {packages[0]}; choose another name"
            )
    # Every other module of that name is imported in the place of the example.
    is_found = folder.with_name(f"{name}.py").exists() or any(each.find_spec(name, None) for each in sys.meta_path)
    if kind in MODULE_KINDS and is_found:
        raise UsageError(f"new: there is a Python module {name!r} already; choose another name")
