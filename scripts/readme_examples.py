"""Writes the worked examples of README.md and of docs/ by running them.

    python scripts/readme_examples.py            # runs each and writes its output below it
    python scripts/readme_examples.py --check    # shows the differences; exit code 1 if there are any

Two kinds of examples, and tables of columns:

- A block of Python followed by a block of text: run from the root of the repository, on committed runs. The Python
  blocks of a file share their names, and the last expression of each is printed, as in a notebook. A block of Python
  without a block of text below it is left alone.
- `<!-- example: NAME -->` before a block: `EXAMPLES[NAME]` makes a run of the oracle in a temporary folder and returns
  the output of a command on it. Lines with measured seconds aren't compared.
- `<!-- columns: questions -->` and `<!-- columns: calls -->` before a table: made from runs/columns.py.
- `<!-- names: architectures -->` before a table, likewise `datasets` and `agents`: made from their TOML.
- `<!-- file: NAME -->` before a block: docs/examples/NAME as it is.

The last three end at `<!-- end -->`.
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
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewoo_bench.config.named import Named, read_architecture, read_dataset
from rewoo_bench.config.specs import FORM_WORDS, DatasetSpec
from rewoo_bench.runs.columns import CALL_COLUMNS, QUESTION_COLUMNS, TYPE_NAMES, Column

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("rewoo_bench/*/README.md"))]
EXAMPLE_FILES = ROOT / "docs" / "examples"
LANGUAGES = {".py": "python", ".jsonl": "json"}
"""Of a file's block, where the ending isn't the language's name."""
CI_RUN = "results/local/ci"
_PYTHON = re.compile(r"(```python\n(?P<code>[^`]*)```\n[^`]*?```text\n)(?P<printed>[^`]*)(```)")
_EXAMPLE = re.compile(
    r"(<!-- example: (?P<name>\w+) -->\n```(?:console|text)\n(?:\$ [^\n]*\n)?)(?P<printed>.*?\n)(```)", re.DOTALL
)
_MADE = re.compile(r"(<!-- (?P<kind>columns|names|file): (?P<what>[\w./]+) -->\n\n).*?(\n*<!-- end -->)", re.DOTALL)
_SECONDS = re.compile(r"^.*\d s .*$", re.MULTILINE)


def rewritten(text: str, root: Path) -> str:
    """The text of a file with the present output of each example. `root` is the folder that its paths start from."""
    names: dict[str, Any] = {}
    with contextlib.chdir(root):
        text = _PYTHON.sub(lambda block: block[1] + printed(block["code"], names) + block[4], text)
    text = with_made_parts(text)
    return _EXAMPLE.sub(lambda block: block[1] + example(block["name"], block["printed"], text) + block[4], text)


def with_made_parts(text: str) -> str:
    """The text with the tables and files of today."""
    makers = {"columns": column_table, "names": name_table, "file": file_block}
    return _MADE.sub(lambda part: f"{part[1]}{makers[part['kind']](part['what'])}\n\n<!-- end -->", text)


def column_table(file: str) -> str:
    """The columns of questions.parquet or calls.parquet."""
    columns: dict[str, Sequence[Column[Any]]] = {"questions": QUESTION_COLUMNS, "calls": CALL_COLUMNS}
    rows = [f"| `{c.name}` | {TYPE_NAMES[c.type]} | {c.meaning} | {c.null} |" for c in columns[file]]
    return "\n".join(["| column | type | meaning | null |", "|---|---|---|---|", *rows])


def name_table(kind: str) -> str:
    """The bundled architectures, data sets or agents, each with a link to its card or its program."""
    folders = {"architectures": "architectures", "datasets": "datasets", "agents": "architectures/agents"}
    rows = []
    for path in sorted(ROOT.glob(f"{folders[kind]}/*/*.toml")):
        folder = path.parent
        page = next(folder.glob("agent.*" if kind == "agents" else "README.md")).relative_to(ROOT).as_posix()
        named = Named(folder.name, folder)
        cells = [f"[{folder.name}](../{page})"]
        if kind == "datasets":
            data = read_dataset(named)
            cells += [data.description, source_of(data)]
        else:
            spec = read_architecture(named)
            cells += [spec.description, *([FORM_WORDS[spec.form] if spec.form else ""] if kind != "agents" else [])]
        rows.append(f"| {' | '.join(cells)} |")
    heads = {
        "architectures": "| architecture | | form |",
        "datasets": "| data set | | questions |",
        "agents": "| agent | |",
    }
    return "\n".join([heads[kind], "|---" * (2 if kind == "agents" else 3) + "|", *rows])


def source_of(data: DatasetSpec) -> str:
    """Where the questions of a bundled data set come from."""
    if data.generator:
        return "generated" if data.generator == "chain" else f"package `{data.generator}`"
    return "bundled" if data.questions else "hub, or a file" if data.hub else "a file"


def file_block(name: str) -> str:
    """A file of docs/examples as a block, below a link to it."""
    file = EXAMPLE_FILES / name
    language = LANGUAGES.get(file.suffix, file.suffix[1:])
    return f"[{file.name}](examples/{name}):\n\n```{language}\n{file.read_text(encoding='utf-8')}```"


def printed(code: str, names: dict[str, Any]) -> str:
    """The output of a block, including the value of its last expression. Adds its names to `names`."""
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


def output(command: str, folder: Path, *, code: int = 0) -> str:
    """The standard output of a command. Raises for another exit code."""
    program = [sys.executable, "-m", "rewoo_bench", *shlex.split(command)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    environment.pop("GITHUB_STEP_SUMMARY", None)
    ended = subprocess.run(program, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    if ended.returncode != code:
        raise RuntimeError(f"{command}: exit code {ended.returncode}: {ended.stdout}{ended.stderr}")
    return str(ended.stdout)


def example(name: str, before: str, text: str) -> str:
    """The output of an example."""
    with tempfile.TemporaryDirectory() as folder:
        return newer(before, EXAMPLES[name](Path(folder), text))


def newer(before: str, now: str) -> str:
    """The output `now`; the one `before` where they differ only in lines with seconds."""
    return before if _SECONDS.sub("", now) == _SECONDS.sub("", before) else now


def gate_example(folder: Path, text: str) -> str:
    """`gate` with the budgets in the file's text, after one more sentence in the planner's prompt."""
    budgets = re.search(r"```toml\n(# budgets\.toml.*?)```", text, re.DOTALL)
    if budgets is None:
        raise ValueError("the example `gate` needs a block of TOML that begins with `# budgets.toml`")
    (folder / "budgets.toml").write_text(budgets[1], encoding="utf-8")
    shutil.copytree(ROOT / "architectures", folder / "architectures")
    flags = re.search(r"rewoo-bench run --arch rewoo (.*) --out", text)
    if flags is None:
        raise ValueError("the example `gate` needs a command that begins with `rewoo-bench run --arch rewoo`")
    run = f"rewoo-bench run --arch ./architectures/rewoo {flags[1]} --out {CI_RUN}"
    output(run, folder)
    output(f"rewoo-bench gate {CI_RUN} --baseline baseline.json --update", folder)
    shutil.rmtree(folder / CI_RUN)
    prompt = folder / "architectures" / "rewoo" / "planner.txt"
    prompt.write_text("Think about what each step needs before you write it.\n" + prompt.read_text("utf-8"), "utf-8")
    output(run, folder)
    return output(f"rewoo-bench gate {CI_RUN} --budgets budgets.toml --baseline baseline.json", folder, code=1)


EXAMPLES: Mapping[str, Callable[[Path, str], str]] = {"gate": gate_example}


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where an example differs")
    options = parser.parse_args(arguments)
    differ = 0
    for file in PAGES:
        before = file.read_text(encoding="utf-8")
        after = rewritten(before, ROOT)
        if before == after:
            continue
        differ = 1
        if options.check:
            shown = difflib.unified_diff(before.splitlines(True), after.splitlines(True), file.name, "as it is now")
            say("".join(shown))
        else:
            file.write_text(after, encoding="utf-8")
    return differ if options.check else 0


if __name__ == "__main__":
    sys.exit(main())
