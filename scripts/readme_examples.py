"""The worked examples of README.md and results/README.md, made by running them on committed runs.

    python scripts/readme_examples.py            # runs each and writes what it prints below it
    python scripts/readme_examples.py --check    # says which differ; exit code 1 if any does

An example is a block of Python followed by a block of text, or a console block that begins with
`$ rewoo-bench`; blocks of Python without a block of text below are left alone. The Python blocks of a file
share their names, and the last expression of each is printed, as in a notebook.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILES = ("README.md", "results/README.md")
_PYTHON = re.compile(r"(```python\n(?P<code>[^`]*)```\n[^`]*?```text\n)(?P<printed>[^`]*)(```)")
_CONSOLE = re.compile(
    r"(```console\n\$ (?P<command>rewoo-bench (?:compare|claims|gate) [^\n]*)\n)(?P<printed>[^`]+)(```)"
)


def rewritten(text: str, root: Path) -> str:
    """The text of a file with each example's output as it is now. `root` is what its paths start from."""
    names: dict[str, Any] = {}
    with contextlib.chdir(root):
        text = _PYTHON.sub(lambda found: found[1] + printed(found["code"], names) + found[4], text)
        return _CONSOLE.sub(lambda found: found[1] + answered(found["command"]) + found[4], text)


def printed(code: str, names: dict[str, Any]) -> str:
    """What a block prints, the value of its last expression included. Leaves its names in `names`."""
    *statements, last = ast.parse(code).body
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(statements, []), "README", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "README", "eval"), names)
            if value is not None:
                print(value)
        else:
            exec(compile(ast.Module([*statements, last], []), "README", "exec"), names)
    return re.sub(r" +$", "", out.getvalue(), flags=re.MULTILINE)


def answered(command: str) -> str:
    """What a command prints on standard output."""
    program = [sys.executable, "-m", "rewoo_bench", *shlex.split(command)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(program, capture_output=True, text=True, check=True, env=environment).stdout


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where an example differs")
    options = parser.parse_args(arguments)
    differ = 0
    for file in FILES:
        before = (ROOT / file).read_text(encoding="utf-8")
        after = rewritten(before, ROOT)
        if before == after:
            continue
        differ = 1
        if options.check:
            say("".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), file, "as it is now")))
        else:
            (ROOT / file).write_text(after, encoding="utf-8")
    return differ if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
