"""Counts that say how large the project is for whoever keeps it.

    python scripts/measure_house.py code     # lines, files, entries of rewoo_bench/, imports between and inside them,
                                             # calls that clean or escape text, handlers of RecursionError, tests,
                                             # commands, flags of `run`
    python scripts/measure_house.py words    # words of hand-written Markdown, by file, the longest first
    python scripts/measure_house.py compare tests/golden/models/hotpotqa-qwen-1.5b    # what a comparison runs through

A word is what `wc -w` counts, code blocks included. Left out is what a script writes: whole files, parts between
`<!-- NAME: SCRIPT -->` and `<!-- end -->`, blocks below `<!-- example: NAME -->`, places for figures (`{{NAME}}`), and
the tables of pages whose sentences a person wrote.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import click

import rewoo_bench
from rewoo_bench.cli.main import group

ROOT = Path(__file__).parents[1]
GENERATED = re.compile(r"results/study/(README|papers|variations|captions)\.md|tests/golden/.*")
GENERATED_TABLES = ("results/coverage.md", "results/gate.md", "results/law.md")
_PART = re.compile(r"<!-- example: \w+ -->\n```.*?```|<!-- [\w ]+: .*?<!-- end -->|\{\{[^{}]+\}\}", re.DOTALL)
_ROW = re.compile(r"^\|.*$", re.MULTILINE)


_CLEANING: dict[str | None, Callable[[str], bool]] = {
    "rewoo_bench.text.escaping": lambda _: True,
    "rewoo_bench.text.redaction": lambda _: True,
    "rewoo_bench.text.model_output": lambda name: name.startswith("check_"),
}


def hand_written(page: str, text: str) -> str:
    """The part of a page that no script writes."""
    if GENERATED.fullmatch(page):
        return ""
    text = _PART.sub("", text)
    return _ROW.sub("", text) if page in GENERATED_TABLES else text


def words(root: Path = ROOT) -> dict[str, int]:
    """Words of hand-written Markdown, by page."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=True).stdout
    counted = {page: len(hand_written(page, (root / page).read_text("utf-8")).split()) for page in listed.split()}
    return {page: count for page, count in counted.items() if count}


def _imported(node: ast.AST, module: str, package: bool) -> Iterator[str]:
    """The modules that an import statement names, absolute."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = module.split(".")[: len(module.split(".")) - node.level + package]
        base = ".".join([*above, *([node.module] if node.module else [])]) if node.level else str(node.module)
        yield from (f"{base}.{alias.name}" for alias in node.names)


def floors(arrows: Collection[tuple[str, str]]) -> int:
    """The number of entries on the longest way along the arrows. Raises where they form a circle."""
    sorter = TopologicalSorter[str]()
    below: dict[str, list[str]] = {}
    for entry, other in arrows:
        sorter.add(entry, other)
        below.setdefault(entry, []).append(other)
    height: dict[str, int] = {}
    for entry in sorter.static_order():
        height[entry] = 1 + max((height[each] for each in below.get(entry, ())), default=0)
    return max(height.values(), default=0)


def code(root: Path = ROOT, package: str = "rewoo_bench") -> dict[str, int]:
    """Counts of a package's Python. An entry is what stands side by side in its folder, a module or a package."""
    folder = root / package
    files = sorted(path for path in folder.rglob("*.py") if "node_modules" not in path.parts)
    entries = {path.relative_to(folder).parts[0].removesuffix(".py") for path in files} - {"__init__"}
    arrows, lines, within, functions, cleaning, handlers = set(), 0, 0, 0, 0, 0
    for path in files:
        text = path.read_text(encoding="utf-8")
        lines += len(text.splitlines())
        tree = ast.parse(text)
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        for node in ast.walk(tree):
            for name in _imported(node, module, path.name == "__init__.py"):
                other = name.split(".")[1] if name.startswith(f"{package}.") else ""
                if other in entries - {parts[1]} and parts[1] in entries:
                    arrows.add((parts[1], other))
        cleaning += _cleaning_calls(tree)
        handlers += sum(isinstance(node, ast.Name) and node.id == "RecursionError" for node in ast.walk(tree))
        found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        functions += len(found)
        within += len(
            {each for node in found for each in ast.walk(node) if isinstance(each, ast.Import | ast.ImportFrom)}
        )
    return {
        "lines": lines,
        "files": len(files),
        "functions": functions,
        f"entries in {package}/": len(entries),
        "import arrows between them": len(arrows),
        "floors": floors(arrows),
        "imports inside functions": within,
        "calls that clean, redact or escape text": cleaning,
        "handlers of RecursionError": handlers,
        "lines of tests": sum(len(path.read_text("utf-8").splitlines()) for path in (root / "tests").rglob("*.py")),
    }


def _cleaning_calls(tree: ast.AST) -> int:
    """Calls of functions that a module has from the rooms of escaping and redaction, or that check a model's text."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in _CLEANING:
            checked = [each for each in node.names if _CLEANING[node.module](each.name)]
            names |= {each.asname or each.name for each in checked}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return sum(isinstance(call.func, ast.Name) and call.func.id in names for call in calls)


def compared(runs: Sequence[str], package: Path = ROOT / "rewoo_bench") -> dict[str, list[str]]:
    """The functions that comparing runs and writing the tables calls, by file; neither lambdas nor comprehensions.

    Counted the second time, when all modules are imported.
    """
    rows, manifests = rewoo_bench.load(*runs), rewoo_bench.manifests(*runs)
    compare, found = rewoo_bench.compare, set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and not code.co_name.startswith("<") and Path(code.co_filename).is_relative_to(package):
            found.add((str(Path(code.co_filename).relative_to(package)), code.co_qualname))

    str(compare(rows, manifests=manifests))
    sys.setprofile(note)
    try:
        str(compare(rows, manifests=manifests))
    finally:
        sys.setprofile(None)
    files = sorted({file for file, _ in found})
    return {file: sorted(name for other, name in found if other == file) for file in files}


def commands() -> dict[str, int]:
    """The number of commands, and of flags of `run`."""
    context = click.Context(group)
    run = group.get_command(context, "run")
    flags = [each for each in run.params if isinstance(each, click.Option) and not each.hidden] if run else []
    return {"commands": len(group.list_commands(context)), "flags of run": len(flags)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["code", "words", "compare"])
    parser.add_argument("runs", nargs="*", metavar="RUN", help="folders of finished runs, for compare")
    given = parser.parse_args(arguments)
    if given.what == "compare":
        by_file = compared(given.runs)
        for file, names in by_file.items():
            print(f"{len(names):7,} {file}: {', '.join(names)}")
        print(f"{sum(map(len, by_file.values())):7,} functions in {len(by_file)} files")
        return
    if given.what == "code":
        for name, count in (code() | commands()).items():
            print(f"{count:7,} {name}")
        return
    counted = words()
    for page, count in sorted(counted.items(), key=lambda each: -each[1]):
        print(f"{count:7,} {page}")
    print(f"{sum(counted.values()):7,} in {len(counted)} files")


if __name__ == "__main__":
    main()
