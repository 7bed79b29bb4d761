"""The tables of rewoo_bench/runs/columns.md, made from columns.py beside it.

python scripts/column_page.py            # writes them between the page's marks
python scripts/column_page.py --check    # exit code 1 where the page has others
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewoo_bench.runs.columns import CALL_COLUMNS, QUESTION_COLUMNS, TYPE_NAMES, Column

PAGE = Path(__file__).parents[1] / "rewoo_bench" / "runs" / "columns.md"
FILES: dict[str, Sequence[Column[Any]]] = {"questions": QUESTION_COLUMNS, "calls": CALL_COLUMNS}


def table(columns: Sequence[Column[Any]]) -> str:
    """The columns of a file as a table in Markdown."""
    head = ["| column | type | meaning | null |", "|---|---|---|---|"]
    rows = [f"| `{c.name}` | {TYPE_NAMES[c.type]} | {c.meaning} | {c.null} |" for c in columns]
    return "\n".join([*head, *rows])


def page(before: str) -> str:
    """The page with the tables of today."""
    for file, columns in FILES.items():
        start, rest = before.split(f"<!-- {file}: python scripts/column_page.py -->\n")
        end = rest[rest.index("<!-- end -->") :]
        before = f"{start}<!-- {file}: python scripts/column_page.py -->\n\n{table(columns)}\n\n{end}"
    return before


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of write")
    is_check = parser.parse_args(arguments).check
    before = PAGE.read_text(encoding="utf-8")
    if page(before) == before:
        return 0
    if is_check:
        print(f"{PAGE.name} differs: run python scripts/column_page.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(before), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
