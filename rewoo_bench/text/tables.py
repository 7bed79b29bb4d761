"""Tables of cells, the first row of which is the header: as plain text and as Markdown.

>>> print("\\n".join(text_table([["", "n", "total"], ["rewoo", "50", "1,431.9"]])))
        n    total
rewoo  50  1,431.9
"""

from __future__ import annotations

from collections.abc import Sequence

from rewoo_bench.escaping import markdown, one_line


def text_table(cells: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, with the first column to the left and the others to the right."""
    cells = [list(map(one_line, row)) for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
    return lines


def markdown_table(cells: Sequence[Sequence[str]]) -> list[str]:
    """The same for GitHub, with every cell as plain text."""
    header, *rows = [list(map(markdown, row)) for row in cells]
    sides = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(row)} |" for row in (header, sides, *rows)]
