"""Tables of cells, the first row of which is the header: as plain text and as Markdown.

>>> print("\\n".join(text_table([["", "n", "total"], ["rewoo", "50", "1,431.9"]])))
        n    total
rewoo  50  1,431.9
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from rewoo_bench.escaping import markdown, one_line


def terminal_width() -> int:
    """Columns of the terminal that standard output is; a file and a pipe have no end."""
    on_terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if on_terminal else sys.maxsize


def text_table(cells: Sequence[Sequence[str]], width: int | None = None, *, left: bool = False) -> list[str]:
    """A line for each row, with the first column to the left and the others to the right (texts: `left`).

    A table that is wider than `width` becomes several below each other, each of which begins with the first column.
    The default is the terminal's width; a file and a pipe get one table, however wide.
    """
    cells = [list(map(one_line, row)) for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    limit = width or terminal_width()
    blocks: list[list[int]] = [[]]
    for place in range(1, len(widths)):
        if blocks[-1] and widths[0] + sum(2 + widths[each] for each in (*blocks[-1], place)) > limit:
            blocks.append([])
        blocks[-1].append(place)
    lines: list[str] = []
    for block in blocks:
        lines += [""] if lines else []
        for row in cells:
            others = (getattr(row[place], "ljust" if left else "rjust")(widths[place]) for place in block)
            lines.append("  ".join([row[0].ljust(widths[0]), *others]).rstrip())
    return lines


def markdown_table(cells: Sequence[Sequence[str]]) -> list[str]:
    """The same for GitHub, with every cell as plain text."""
    header, *rows = [list(map(markdown, row)) for row in cells]
    sides = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(row)} |" for row in (header, sides, *rows)]
